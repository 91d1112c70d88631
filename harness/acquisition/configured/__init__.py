"""Targets that say themselves how they are started: configurations, registry entries, MCP bundles, images."""
