"""What the processes did while a malformed message was answered, and had not done before: from the kernel's record."""

from __future__ import annotations

from collections.abc import Iterator

from harness.analyzers.behavior.addresses import Reach, destination
from harness.analyzers.behavior.attribution import Attribution
from harness.analyzers.behavior.baseline import usual_path, usual_program
from harness.analyzers.behavior.effects import FILE_CALLS, What, effects_of, is_reading
from harness.analyzers.behavior.places import Area, area_of
from harness.model.recording import Event, ProcessEvent, SyscallEvent

#: Effects are remembered up to this number; what a server does beyond that is one of the same.
MOST = 4096

_REACHES = frozenset({Reach.PUBLIC, Reach.PRIVATE, Reach.METADATA})
_CONNECTS = frozenset({"connect", "sendto", "sendmsg", "sendmmsg"})
#: Places whose change no reader would call an effect: temporary files, caches, devices.
_UNSEEN = frozenset({Area.SCRATCH, Area.DEVICE, Area.KERNEL, Area.STATE})
_ALIVE = "probe:A"


class ProbeEffects:
    """Feed it every event; it tells what a probe did, as (phase, fact, words).

    What happens at the start, while lists are read or with a message that is in order is no probe's effect.
    """

    def __init__(self) -> None:
        self._attribution = Attribution()
        self._before: set[str] = set()

    def take(self, event: Event) -> Iterator[tuple[str, str, str]]:
        """The effects of the event."""
        self._attribution.take(event)
        if isinstance(event, ProcessEvent):
            if event.what == "exec" and not self._attribution.noise(event):
                name = (event.path or event.requested).rpartition("/")[2]
                if not usual_program(name, event.argv):
                    words = " ".join(event.argv)[:200]
                    program = event.path or event.requested
                    yield from self._tell(event, f"exec:{program}", words, exactly=f"exec:{program} {words}")
        elif isinstance(event, SyscallEvent):
            if event.call in _CONNECTS:
                yield from self._connects(event)
            elif event.call in FILE_CALLS and not is_reading(event):
                yield from self._files(event)

    def _connects(self, event: SyscallEvent) -> Iterator[tuple[str, str, str]]:
        for address in event.addresses:
            if destination(address).reach in _REACHES and not self._attribution.noise(event):
                yield from self._tell(event, f"connect:{address}", f"{event.call} to {address}")

    def _files(self, event: SyscallEvent) -> Iterator[tuple[str, str, str]]:
        if event.result is None or event.result < 0 or self._attribution.noise(event):
            return
        for effect in effects_of(event, self._attribution):
            if not effect.done or effect.what is What.READ or area_of(effect.path) in _UNSEEN:
                continue
            name = self._attribution.where(event).process.name
            if not usual_path(effect.path, name, writing=True):
                yield from self._tell(event, f"{effect.what}:{effect.path}", f"{effect.what} {effect.path}")

    def _tell(
        self, event: ProcessEvent | SyscallEvent, fact: str, words: str, *, exactly: str = ""
    ) -> Iterator[tuple[str, str, str]]:
        """`exactly`: what it is known again by, where that is more than the fact."""
        known = exactly or fact
        phase = self._attribution.where(event, fact).phase
        if phase.startswith("probe:") and not phase.startswith(_ALIVE):
            if known not in self._before:
                yield phase, fact, words
        elif len(self._before) < MOST:
            self._before.add(known)
