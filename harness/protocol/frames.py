"""The recorded form of one line on the wire."""

from __future__ import annotations

import base64
import codecs
from typing import Literal

from harness.model.recording import Anomaly, Direction, FrameEvent


def frame_event(
    direction: Direction,
    raw: bytes,
    size: int,
    anomalies: tuple[Anomaly, ...],
    *,
    phase: str,
    session: str,
    keep: int,
) -> FrameEvent:
    """The event of one line of `size` bytes of which `raw` was kept; at most `keep` bytes go into it."""
    kept = raw[:keep]
    encoding: Literal["utf-8", "base64"] = "utf-8"
    try:
        # A cut may go through a character: its first bytes are left out.
        data = codecs.getincrementaldecoder("utf-8")().decode(kept, final=size <= keep)
    except UnicodeDecodeError:
        data, encoding = base64.b64encode(kept).decode("ascii"), "base64"
    return FrameEvent(
        phase=phase,
        session=session,
        direction=direction,
        data=data,
        encoding=encoding,
        size=size,
        truncated=size > len(kept),
        anomalies=anomalies,
    )
