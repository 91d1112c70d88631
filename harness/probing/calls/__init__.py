"""The plan of calls: which are made, in which order, with what payloads, and what is to be confirmed. Sans I/O."""
