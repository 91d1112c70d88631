"""Keeping the operator's secrets out of the recording: values given with `--env` are replaced wherever they stand.

A target that prints a secret, or sends it back in an answer, gets it into frames, standard error and surface.
The bundle holds `[redacted]` in its place, before anything is judged. Values shorter than six characters (ports,
`true`) are not secrets: replacing them would damage every number in the recording.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable

REDACTED = "[redacted]"
MIN_CHARACTERS = 6


class Redactor:
    """Replaces secrets in text and bytes, also where JSON escapes them, once or (JSON in JSON) twice."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms: set[str] = set()
        for secret in secrets:
            if len(secret) < MIN_CHARACTERS:
                continue
            level = {secret, base64.b64encode(secret.encode()).decode().rstrip("=")}
            for _ in range(3):
                forms |= level
                level = {
                    json.dumps(form, ensure_ascii=ascii_only)[1:-1] for form in level for ascii_only in (False, True)
                }
        self._forms = sorted(forms, key=lambda form: (-len(form), form))  # longest first: one may hold another
        self._raw = [form.encode() for form in self._forms]

    def text(self, text: str) -> str:
        """`text` without any secret."""
        for form in self._forms:
            text = text.replace(form, REDACTED)
        return text

    def data(self, data: bytes) -> bytes:
        """`data` without any secret (looked for in UTF-8)."""
        for form in self._raw:
            data = data.replace(form, REDACTED.encode())
        return data
