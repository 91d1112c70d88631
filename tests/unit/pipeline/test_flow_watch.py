"""Flows and captures on their way into a bundle: what does not fit any more is said."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from bundle_samples import MANIFEST

from harness.model.flow import GatewayEndEvent
from harness.model.options import Limits
from harness.model.recording import LimitEvent
from harness.pipeline import blobs
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.entropy import Entropy
from harness.pipeline.flows import FlowWatch
from harness.pipeline.recorded import BundleRecording
from harness.sandbox.base import SeenFlow

pytestmark = pytest.mark.anyio

HEAD = bytes.fromhex("4d3cb2a1020004000000000000000000000004000100000000000000")[:24]


class Quiet:
    """A fake internet that saw nothing but leaves a capture of 1,000 bytes."""

    async def flows(self) -> AsyncIterator[SeenFlow]:
        return
        yield

    async def stop(self, capture: Path | None = None) -> GatewayEndEvent:
        assert capture is not None
        capture.write_bytes(HEAD + bytes(976))
        return GatewayEndEvent(phase="stop")


async def test_a_capture_past_the_bound_is_dropped_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blobs, "MOST_CAPTURE_BYTES", 2000)
    folder = tmp_path / "b"
    with BundleWriter(folder, Entropy(), Limits()) as bundle:
        bundle.manifest(MANIFEST)
        for session in ("main", "again-1", "again-2"):
            watch = FlowWatch(Quiet(), bundle, session, "start")
            await watch.run()
            await watch.stop()
    limits = [event for event in BundleRecording(folder, verify=False).events() if isinstance(event, LimitEvent)]
    assert [(event.session, event.what, event.seen) for event in limits] == [("again-2", "bundle-packets", 2976)]
    assert (folder / "egress.pcap").stat().st_size == 1976
    assert not list(folder.glob("*.part"))
