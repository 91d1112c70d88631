"""Malformed and unsupported messages: which are sent to a server, in which order, and what follows when it breaks."""

from harness.probing.malformed.catalog import FILE_NAME, Catalog, parse_catalog
from harness.probing.malformed.planner import ProbePlanner
from harness.probing.malformed.templates import wire_bytes

__all__ = ["FILE_NAME", "Catalog", "ProbePlanner", "parse_catalog", "wire_bytes"]
