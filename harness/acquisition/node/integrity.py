"""Subresource-integrity strings, as npm's locks carry them (`sha512-…`, W3C "Subresource Integrity")."""

from __future__ import annotations

import base64
import binascii

_ALGORITHMS = {"sha512": 64, "sha384": 48, "sha256": 32, "sha1": 20}


def strongest(integrity: object) -> tuple[str, str] | None:
    """Algorithm and hex digest of the strongest part of an integrity string; None when none is usable."""
    if not isinstance(integrity, str) or len(integrity) > 4096:
        return None
    parts: dict[str, str] = {}
    for part in integrity.split():
        algorithm, _, encoded = part.split("?")[0].partition("-")
        try:
            digest = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            continue
        if _ALGORITHMS.get(algorithm) == len(digest):
            parts[algorithm] = digest.hex()
    return next(((name, parts[name]) for name in _ALGORITHMS if name in parts), None)
