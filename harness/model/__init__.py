"""Frozen data shared by all layers; only the standard library and pydantic are imported here."""
