"""Asks, while a run is still being recorded, which findings so far are worth a life with other canaries."""

from __future__ import annotations

import anyio

from harness.analyzers.behavior.canaries import wants_second_look
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.second_look import Foreseen
from harness.pipeline.workers import WorkerPool


class Foresee:
    """For one run. `ask` looks through messages and flows once as long as no more of them come.

    So it may be asked ahead, while a life ends of which nothing is asked any more.
    """

    def __init__(self, pool: WorkerPool, bundle: BundleWriter) -> None:
        self._pool, self._bundle = pool, bundle
        self._lock = anyio.Lock()
        self._talked = -1
        self._found = Foreseen()

    async def ask(self) -> Foreseen:
        """What is worth it. Never raises for what an analyzer does."""
        async with self._lock:
            talked = self._bundle.talked
            if talked != self._talked:
                result = await self._pool.run("behavior.canaries", self._bundle.folder, True, brief=True)
                ids = wants_second_look(result)
                found = [finding for finding in result.findings if finding.id in ids]
                events = tuple(tuple(e.seq for e in finding.evidence if e.seq is not None) for finding in found)
                self._talked, self._found = talked, Foreseen(ids, events)
            return self._found
