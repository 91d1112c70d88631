"""Checks over agent skills (to come)."""
