"""Analyzers over what the recorder saw the target's processes do. Each is a fold with bounded memory."""
