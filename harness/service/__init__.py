"""Nightly vetting of many submissions (to come)."""
