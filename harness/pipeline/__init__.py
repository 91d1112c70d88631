"""Joins the halves: run, judge, replay; the home of bundles, clock and randomness."""
