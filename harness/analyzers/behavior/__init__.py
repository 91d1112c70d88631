"""Checks over what the target did (they come with the recorder)."""
