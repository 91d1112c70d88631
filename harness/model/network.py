"""What the operator has the fake internet answer (`--respond FILE.toml`)."""

from __future__ import annotations

from harness.model.base import Record


class CannedAnswer(Record):
    """One rule: empty fields fit everything, `host` and `path` are shell patterns; the first that fits answers.

    `body` is text, or base64 with `encoded`. `greeting`: sent to whoever connects to that host and port, before
    anything else; such a rule answers no HTTP request.
    """

    host: str = ""
    port: int = 0
    method: str = ""
    path: str = ""
    status: int = 200
    headers: dict[str, str] = {}
    body: str = ""
    encoded: bool = False
    greeting: str = ""
