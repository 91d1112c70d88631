"""Finding planted values in bytes, in whatever disguise: patterns, decoders, and what comes in pieces. Pure."""
