"""A launched target that strace watches: its marks stand in the trace, and its end leaves the tracer alive."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from harness.model.errors import EngineError
from harness.model.recording import ImageFact
from harness.sandbox.containers import kill_container
from harness.sandbox.engine import Engine
from harness.sandbox.gated import Gated
from harness.sandbox.process import DockerProcess
from harness.sandbox.strace import Tracer
from harness.sandbox.warden import Warden


class TracedProcess(DockerProcess):
    """Implements `harness.sandbox.base.SandboxedProcess`."""

    def __init__(
        self, engine: Engine, gated: Gated, warden: Warden, image: ImageFact, tracer: Tracer, **options: Any
    ) -> None:
        super().__init__(engine, gated, warden, image, **options)
        self._tracer = tracer

    @property
    def recording(self) -> Tracer:
        return self._tracer

    async def mark(self, phase: str, nonce: str) -> None:
        await super().mark(phase, nonce)
        if not self._warden.deadline_passed:
            self._tracer.expect(nonce)
            await self._tracer.mark(phase, nonce)

    async def _end_all(self) -> None:
        """Kill the target's container: the warden would kill strace with it, and the record would lack its end."""
        with suppress(EngineError):
            await kill_container(self._engine, self.container)

    def close(self) -> None:
        super().close()
        self._tracer.close()
