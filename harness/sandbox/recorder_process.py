"""A launched target whose system calls may be recorded: every heartbeat it is given is expected in the record."""

from __future__ import annotations

from typing import Any

from harness.model.recording import ImageFact
from harness.sandbox.engine import Engine
from harness.sandbox.gated import Gated
from harness.sandbox.process import DockerProcess
from harness.sandbox.recorder import Recorder
from harness.sandbox.warden import Warden

#: How much longer than its target a recorder may last.
RECORDER_GRACE_SECONDS = 30.0


class RecordedProcess(DockerProcess):
    """Implements `harness.sandbox.base.SandboxedProcess`; `recording` is None for a launch without a recorder."""

    def __init__(
        self,
        engine: Engine,
        gated: Gated,
        warden: Warden,
        image: ImageFact,
        recorder: Recorder | None,
        **options: Any,
    ) -> None:
        super().__init__(engine, gated, warden, image, **options)
        self._recorder = recorder

    @property
    def recording(self) -> Recorder | None:
        return self._recorder

    async def mark(self, phase: str, nonce: str) -> None:
        if self._recorder is not None and not self._warden.deadline_passed:
            self._recorder.expect(nonce)
        await super().mark(phase, nonce)

    def close(self) -> None:
        super().close()
        if self._recorder is not None:
            self._recorder.close()
