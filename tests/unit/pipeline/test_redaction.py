"""A secret given with --env appears in no file of the bundle, however the target writes it."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import anyio
from bundle_samples import MANIFEST
from hypothesis import given
from hypothesis import strategies as st

from harness.model.options import Limits
from harness.model.recording import Direction, FrameEvent, StderrEvent
from harness.model.surface import Item, ItemKind, Surface
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.entropy import Entropy
from harness.pipeline.recorded import BundleRecording
from harness.pipeline.redaction import REDACTED, Redactor

SECRET = 'pa"ss\\wörd-1234'


@given(st.text(min_size=6, max_size=40), st.text(max_size=20), st.text(max_size=20))
def test_a_secret_is_gone_from_text_json_and_json_in_json(secret: str, before: str, after: str) -> None:
    redactor = Redactor([secret])
    plain = before + secret + after
    for form in (plain, json.dumps(plain), json.dumps(json.dumps(plain)), json.dumps(plain, ensure_ascii=False)):
        assert secret not in redactor.text(form) or secret in REDACTED


def test_short_values_are_left_alone() -> None:
    assert Redactor(["3000", "true", ""]).text("port 3000 is true") == "port 3000 is true"


def test_no_file_of_a_bundle_holds_it(tmp_path: Path) -> None:
    raw = SECRET.encode() + b"\xff"
    with BundleWriter(tmp_path / "b", Entropy(), Limits(), [SECRET]) as bundle:
        bundle.manifest(MANIFEST.model_copy(update={"finished": True, "problems": (SECRET,)}))
        said = json.dumps({"result": SECRET})
        bundle.record(FrameEvent(phase="start", direction=Direction.RECEIVED, data=said, size=len(said)))
        packed = base64.b64encode(raw).decode()
        bundle.record(
            FrameEvent(phase="start", direction=Direction.RECEIVED, data=packed, encoding="base64", size=len(raw))
        )
        bundle.record(StderrEvent(phase="stop", size=1, kept=1, sha256="", tail=f"key is {SECRET}"))
        bundle.surface(Surface(items=(Item(kind=ItemKind.TOOL, name=SECRET, value={"name": SECRET}, frame=1),)))
        bundle.stderr("main", raw)
        anyio.run(bundle.seal, "{}")
    recording = BundleRecording(tmp_path / "b")
    seen = [event.model_dump_json() for event in recording.events()]
    seen += [recording.manifest.model_dump_json(), *(s.model_dump_json() for s in recording.surfaces)]
    frames = [event.raw for event in recording.events() if isinstance(event, FrameEvent)]
    assert SECRET.encode() not in b"".join(frames) + (tmp_path / "b" / "stderr.log").read_bytes()
    for text in seen:
        assert SECRET not in text
        assert json.dumps(SECRET)[1:-1] not in text
        assert json.dumps(json.dumps(SECRET)[1:-1])[1:-1] not in text
    assert sum(text.count(REDACTED) for text in seen) >= 5
