"""The fake internet of one run: every name resolves, every port answers, every attempt is told with its payload."""
