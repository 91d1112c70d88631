"""Starts the servers of the corpus, each from its own fields, and keeps what came of it below docs/."""
