"""Fetching a target and its closure without executing any of it."""
