"""Bounded framing, raw JSON-RPC sessions of both eras, discovery; the only home of the mcp SDK."""
