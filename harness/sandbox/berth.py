"""The place of one launch on the engine: made in a task of its own, perhaps ahead, and cleared away behind its back.

A launch waits for the engine many times, to make its containers and to remove them. Neither need hold up who drives
the target: what the next launch needs can be made while this one is looked at, and what a target that is known to be
dead has left can be removed while the next one runs.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

import anyio
import anyio.abc

from harness.model.errors import EngineError, HarnessError
from harness.model.options import NetworkChoice
from harness.model.recording import ImageFact
from harness.sandbox.base import LaunchSpec
from harness.sandbox.cable import Cable
from harness.sandbox.containers import CLEANUP_SECONDS, Doomed
from harness.sandbox.gated import Gated
from harness.sandbox.gateway import Gateway
from harness.sandbox.warden import Warden

#: How far the end of a launch that was made ahead may be from the end that is wanted when it is taken.
DEADLINE_TOLERANCE_SECONDS = 1.0


@dataclass(frozen=True)
class Berth:
    """What stands ready for one launch: everything but the opened gate. `began`: before its warden's clock did."""

    image: ImageFact
    warden: Warden
    container: Gated
    gateway: Gateway | None
    cable: Cable | None
    collected: Doomed
    tasks: anyio.abc.TaskGroup
    began: float
    deadline_seconds: float


class Booking:
    """One berth being made by `run`, a task of the sandbox's; `get` waits for it, `leave` has it cleared away."""

    def __init__(self, spec: LaunchSpec, context: AbstractAsyncContextManager[Berth]) -> None:
        self.key = what_is_made(spec)
        self.ends = time.monotonic() + spec.deadline_seconds
        self.gone = anyio.Event()
        self._context = context
        self._done, self._left = anyio.Event(), anyio.Event()
        self._scope = anyio.CancelScope()
        self._berth: Berth | None = None
        self._error: HarnessError | None = None

    @property
    def usable(self) -> bool:
        """It was not given up, nor has failed already."""
        return not self.gone.is_set() and self._error is None and not self._left.is_set()

    def fits(self, spec: LaunchSpec) -> bool:
        """Whether a launch can take it: the same containers, which are ended at the same time."""
        late = self.ends - (time.monotonic() + spec.deadline_seconds)
        return self.usable and abs(late) <= DEADLINE_TOLERANCE_SECONDS and self.key == what_is_made(spec)

    async def get(self) -> Berth:
        """The berth once it is made. Raises `HarnessError` where it can't be."""
        await self._done.wait()
        if self._berth is None:
            raise self._error or EngineError("the sandbox was closed while a launch was made")
        return self._berth

    def leave(self) -> None:
        """Begin to clear it away; `gone` is set when that is done."""
        self._left.set()
        self._scope.cancel()

    async def cleared(self) -> None:
        """Wait until it is gone, for as long as clearing away may take; also when cancelled."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(CLEANUP_SECONDS):
            await self.gone.wait()

    async def run(self) -> None:
        """Make it, and hold it until it is left; what goes wrong is kept for who waits."""
        try:
            with self._scope:
                async with self._context as self._berth:
                    self._done.set()
                    await self._left.wait()
        except HarnessError as error:
            self._error = error
        finally:
            self._done.set()
            self.gone.set()


class Bookings:
    """The berths of a sandbox. `make` gives the context in which one is made; `tasks` are the sandbox's own."""

    def __init__(
        self, tasks: anyio.abc.TaskGroup, make: Callable[[LaunchSpec], AbstractAsyncContextManager[Berth]]
    ) -> None:
        self._tasks, self._make = tasks, make
        self._ahead: list[Booking] = []

    def prepare(self, spec: LaunchSpec) -> None:
        """Begin to make a berth for a launch that will be asked for."""
        self._ahead.append(self._begin(spec))

    @asynccontextmanager
    async def take(self, spec: LaunchSpec, ended: Callable[[], bool]) -> AsyncIterator[Berth]:
        """Yield a berth, made ahead if one fits. Raises `HarnessError` where it can't be made.

        At exit it is cleared away. That is waited for, unless the body came to its end and `ended` says that
        the target is dead: then the sandbox's end waits for it.
        """
        booking = next((one for one in self._ahead if one.fits(spec)), None)
        if booking is None:
            booking = self._begin(spec)
        else:
            self._ahead.remove(booking)
        orderly = False
        try:
            yield await booking.get()
            orderly = ended()
        finally:
            booking.leave()
            if not orderly:
                await booking.cleared()

    def _begin(self, spec: LaunchSpec) -> Booking:
        booking = Booking(spec, self._make(spec))
        self._tasks.start_soon(booking.run)
        return booking


def what_is_made(spec: LaunchSpec) -> LaunchSpec:
    """A launch without what is only told once the gate opens: who it is, what is planted, how the network answers."""
    told = {"seed": {}, "executables": frozenset(), "links": {}, "session": "", "epoch": 0, "deadline_seconds": 0.0}
    world = {"authority": "", "decoys": {}, "hosts": (), "answers": ()}
    network = spec.network if spec.network is NetworkChoice.NONE else NetworkChoice.ANSWER
    return spec.model_copy(update={**told, **world, "network": network})
