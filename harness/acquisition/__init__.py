"""Acquisition: from what the user typed to everything that gets installed, without executing any of it."""

from harness.acquisition.dispatch import acquire
from harness.acquisition.reference import parse_target

__all__ = ["acquire", "parse_target"]
