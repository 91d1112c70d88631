"""A launched target whose system calls may be recorded: every heartbeat it is given is expected in the record."""

from __future__ import annotations

from typing import Any

from harness.model.recording import ImageFact
from harness.sandbox.engine import Engine
from harness.sandbox.gated import Gated
from harness.sandbox.process import DockerProcess
from harness.sandbox.recording import Recording
from harness.sandbox.warden import Warden

#: How much longer than its target a recorder may last.
RECORDER_GRACE_SECONDS = 30.0


class RecordedProcess(DockerProcess):
    """Implements `harness.sandbox.base.SandboxedProcess`; `recording` is None for a launch without a record."""

    def __init__(
        self,
        engine: Engine,
        gated: Gated,
        warden: Warden,
        image: ImageFact,
        recording: Recording | None,
        **options: Any,
    ) -> None:
        super().__init__(engine, gated, warden, image, **options)
        self._recording = recording

    @property
    def recording(self) -> Recording | None:
        return self._recording

    async def mark(self, phase: str, nonce: str) -> None:
        if self._recording is not None and not self._warden.deadline_passed:
            self._recording.expect(nonce)
        await super().mark(phase, nonce)

    def close(self) -> None:
        super().close()
        if self._recording is not None:
            self._recording.close()
