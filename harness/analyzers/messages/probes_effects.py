"""What the processes did while a malformed message was answered, and had not done before: from the kernel's record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harness.analyzers.behavior.addresses import Reach, destination
from harness.analyzers.behavior.attribution import Attribution
from harness.analyzers.behavior.baseline import usual_path, usual_program
from harness.analyzers.behavior.effects import FILE_CALLS, What, effects_of, is_reading
from harness.analyzers.behavior.places import Area, area_of
from harness.model.recording import AttemptEvent, Event, MarkEvent, Origin, ProcessEvent, SyscallEvent

#: Effects are remembered up to this number; what a server does beyond that is one of the same.
MOST = 4096

_REACHES = frozenset({Reach.PUBLIC, Reach.PRIVATE, Reach.METADATA})
_CONNECTS = frozenset({"connect", "sendto", "sendmsg", "sendmmsg"})
#: Places whose change no reader would call an effect: temporary files, caches, devices.
_UNSEEN = frozenset({Area.SCRATCH, Area.DEVICE, Area.KERNEL, Area.STATE})
#: A tool that asks its service may get to it while so many further probes are sent.
LATE = 3
_PROBE = "probe:"
_ALIVE = "probe:A"


class Effect(NamedTuple):
    """What was done: in which phase, by which event. `public`: no more than to talk to a machine of the internet.

    `helper`: the number of the helper process that did it, 0 for the server itself. `before`: the phases of
    the probes that this life got just before this one, whose late effect it may be.
    """

    phase: str
    fact: str
    words: str
    event: Event
    public: bool = False
    helper: int = 0
    before: tuple[str, ...] = ()


class ProbeEffects:
    """Feed it every event; at the end it tells what probes did.

    What happens at the start, while lists are read or with a message that is in order is no probe's effect. Nor is
    what the target does by itself in another life that has not got the probe: that it came with one here was chance.
    By itself is what comes for the first time in a life while no probe is being answered. And what a helper does that
    was started before the first probe, and ends while the life goes on, is its own: no message reached it.
    """

    def __init__(self) -> None:
        self._attribution = Attribution()
        self._before: set[str] = set()
        self._lives: dict[str, int] = {}
        self._sent: dict[str, list[str]] = {}
        #: By what is known again, and by life: how many probes had been sent there, None within one.
        self._first: dict[str, dict[str, int | None]] = {}
        self._told: list[tuple[str, str, Effect]] = []
        #: By life and process: the child of the first program that it descends from, if no probe was sent before.
        self._helpers: dict[tuple[str, int], int] = {}
        #: Helpers that ended, and how many probes had been sent then.
        self._ended: dict[tuple[str, int], int] = {}

    def found(self) -> Iterator[Effect]:
        """The effects of probes; after the last event."""
        for known, life, effect in self._told:
            if not self._by_itself(known, life, effect.phase) and not self._helped(life, effect.helper):
                yield effect

    def _helped(self, life: str, helper: int) -> bool:
        ended = self._ended.get((life, helper))
        return ended is not None and len(self._sent.get(life, ())) > ended

    def _born(self, event: ProcessEvent) -> None:
        life = self._life(event.session)
        if event.what == "fork":
            helper = self._helpers.get((life, event.pid), 0)
            if not helper and event.parent == 0 and not self._sent.get(life):
                helper = event.child
            self._helpers.pop((life, event.child), None)  # numbers come again
            if helper and len(self._helpers) < MOST:
                self._helpers[life, event.child] = helper
        elif event.what == "exit" and self._helpers.get((life, event.pid)) == event.pid:
            self._ended.setdefault((life, event.pid), len(self._sent.get(life, ())))

    def _by_itself(self, known: str, life: str, phase: str) -> bool:
        return any(
            other != life and count is not None and phase not in self._sent.get(other, [])[:count]
            for other, count in self._first.get(known, {}).items()
        )

    def _life(self, session: str) -> str:
        return f"{session} {self._lives.get(session, 0)}"

    def take(self, event: Event) -> None:
        """Take the next event."""
        self._attribution.take(event)
        if isinstance(event, AttemptEvent):
            self._lives[event.session] = self._lives.get(event.session, 0) + 1
        elif isinstance(event, MarkEvent) and event.by is Origin.WARDEN and _is_probe(event.phase):
            self._sent.setdefault(self._life(event.session), []).append(event.phase)
        if isinstance(event, ProcessEvent):
            self._born(event)
            if event.what == "exec" and not self._attribution.noise(event):
                name = (event.path or event.requested).rpartition("/")[2]
                if not usual_program(name, event.argv):
                    words = " ".join(event.argv)[:200]
                    program = event.path or event.requested
                    self._tell(event, f"exec:{program}", words, exactly=f"exec:{program} {words}")
        elif isinstance(event, SyscallEvent):
            if event.call in _CONNECTS:
                self._connects(event)
            elif event.call in FILE_CALLS and not is_reading(event):
                self._files(event)

    def _connects(self, event: SyscallEvent) -> None:
        for address in event.addresses:
            to = destination(address)
            # Port 0 sends nothing: resolvers learn from it which of their addresses would be used (RFC 6724, 6).
            if to.reach in _REACHES and to.port and not self._attribution.noise(event):
                public = to.reach is Reach.PUBLIC
                self._tell(event, f"connect:{address}", f"{event.call} to {address}", public=public)

    def _files(self, event: SyscallEvent) -> None:
        if event.result is None or event.result < 0 or self._attribution.noise(event):
            return
        for effect in effects_of(event, self._attribution):
            if not effect.done or effect.what is What.READ or area_of(effect.path) in _UNSEEN:
                continue
            name = self._attribution.where(event).process.name
            if not usual_path(effect.path, name, writing=True) and not _logs(event, effect.path):
                self._tell(event, f"{effect.what}:{effect.path}", f"{effect.what} {effect.path}")

    def _tell(
        self, event: ProcessEvent | SyscallEvent, fact: str, words: str, *, exactly: str = "", public: bool = False
    ) -> None:
        """`exactly`: what it is known again by, where that is more than the fact."""
        known = exactly or fact
        phase = self._attribution.where(event, fact).phase
        life = self._life(event.session)
        within = _is_probe(phase)
        if known in self._first or len(self._first) < MOST:
            sent = len(self._sent.get(life, ()))
            self._first.setdefault(known, {}).setdefault(life, None if within else sent)
        if not within:
            if len(self._before) < MOST:
                self._before.add(known)
        elif known not in self._before and len(self._told) < MOST:
            helper = self._helpers.get((life, event.pid), 0)
            before = tuple(self._sent.get(life, [])[-1 - LATE : -1])
            self._told.append((known, life, Effect(phase, fact, words, event, public, helper, before)))


def _logs(event: SyscallEvent, path: str) -> bool:
    """A line more in a log of its own: what servers write when a message is wrong, and at any other time."""
    return "O_APPEND" in event.flags and path.endswith(".log") and area_of(path) is Area.HOME


def _is_probe(phase: str) -> bool:
    return phase.startswith(_PROBE) and not phase.startswith(_ALIVE)
