"""A recording made by hand: sessions with worlds, calls with what the kernel saw, in the order of a real one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harness.model.base import JsonObject
from harness.model.call import BoundariesEvent, Call, CallBooks, CallBooksEvent, CallEndEvent, CallEvent, Purpose
from harness.model.kernel import MarkEvent, Origin, ProcessEvent, RecorderEndEvent, SyscallEvent
from harness.model.options import ActiveLevel, RunOptions
from harness.model.payload import Boundary, BoundaryKind, Effect, EffectKind, PayloadClass
from harness.model.recording import Event, Grade, Manifest
from harness.model.result import AnalyzerResult
from harness.model.target import TargetKind, TargetRef
from harness.model.world import PlantedHost, PlantedItem, World
from harness.probing.digest import call_phase
from harness.probing.oracle import Confirmation, call_digest

ROOT = "/home/user/workspace"
OUTSIDE = "/home/user/private"
ROOTED = Boundary(kind=BoundaryKind.ROOT, source="arguments", value=ROOT)
DATA = Boundary(kind=BoundaryKind.DATA_NOT_CODE, source="convention", text="a name is no command")
INNER = Boundary(kind=BoundaryKind.INTERNAL_ADDRESS, source="convention")


def world(nonce: str) -> World:
    """A small world whose secrets hold its nonce."""
    return World(
        nonce=nonce,
        root=ROOT,
        outside=OUTSIDE,
        domain=f"{nonce}.example.net",
        items=(
            PlantedItem(
                name="inside", path=f"{ROOT}/notes.txt", kind="file", where="inside", secret=f"insidesecret{nonce}"
            ),
            PlantedItem(
                name="outside", path=f"{OUTSIDE}/account.txt", kind="file", where="outside", secret=f"outsecret{nonce}"
            ),
            PlantedItem(
                name="linked",
                path=f"{ROOT}/link",
                kind="link",
                where="linked",
                secret=f"linksecret{nonce}",
                target=f"{OUTSIDE}/linked.txt",
            ),
            PlantedItem(name="kubectl", path="/home/user/tools/bin/kubectl", kind="stub", where="home"),
        ),
        hosts=(
            PlantedHost(
                name="loopback",
                address="127.0.0.1:8899",
                url="http://127.0.0.1:8899/x",
                where="loopback",
                secret=f"page{nonce}",
            ),
            PlantedHost(
                name="public",
                address=f"www.{nonce}.example.net:80",
                url=f"http://www.{nonce}.example.net",
                where="public",
            ),
        ),
    )


@dataclass
class Tape:
    """Events as they come. `grade` and `network` go into the manifest."""

    grade: Grade = Grade.TRUSTED
    network: str = "answer"
    events: list[Event] = field(default_factory=list)
    session: str = "main"
    here: World = field(default_factory=lambda: world("none"))
    unplanned: set[str] = field(default_factory=set)
    _records: int = 0

    def add(self, event: Event) -> int:
        """Append and number."""
        self.events.append(event.model_copy(update={"seq": len(self.events) + 1, "t": len(self.events) + 1}))
        return len(self.events)

    def start(self, session: str, nonce: str, *, network: str = "") -> World:
        """A clean start with a fresh world."""
        from harness.model.call import WorldEvent

        self.session, self.here = session, world(nonce)
        self.add(WorldEvent(phase="start", session=session, world=self.here, network=network))
        return self.here

    def boundaries(self, *boundaries: Boundary) -> None:
        """What was found before the calls."""
        self.add(BoundariesEvent(phase="discover", session=self.session, boundaries=boundaries))

    def call(
        self,
        call: Call,
        *doings: Event,
        text: str = "",
        state: str = "answered",
        after: tuple[Event, ...] = (),
        marked: bool = True,
    ) -> None:
        """A call with what the kernel saw between its marks, and what it saw after them."""
        phase = call_phase(call)
        self.add(CallEvent(phase=phase, session=self.session, call=call))
        if marked:
            self.add(self._mark(phase))
        for event in doings:
            self.add(event.model_copy(update={"session": self.session}))
        if marked:
            self.add(self._mark("idle"))
        self.add(CallEndEvent(phase=phase, session=self.session, call=call.id, state=state, text=text, size=len(text)))
        for event in after:
            self.add(event.model_copy(update={"session": self.session}))

    def _mark(self, phase: str) -> MarkEvent:
        return MarkEvent(phase=phase, session=self.session, pid=1, tid=1, by=Origin.WARDEN, nonce="m", record=1)

    def end(self, *, lost: int = 0) -> None:
        """The session's record ends."""
        self.add(RecorderEndEvent(phase="stop", session=self.session, lost={"bulk": lost} if lost else {}))

    def books(self, books: CallBooks) -> None:
        """The books of the calls."""
        self.add(CallBooksEvent(phase="stop", session=self.session, books=books))

    def fold(self) -> Confirmation:
        """The oracle after all events."""
        manifest = Manifest(
            harness_version="1",
            run_id="r",
            target=TargetRef(text="t", kind=TargetKind.FILE),
            options=RunOptions(active=ActiveLevel.TOOL_CALLS, allow=("*",)),
            grade=self.grade,
            network=self.network,
        )
        planned = {call_digest(e.call) for e in self.events if isinstance(e, CallEvent)} - self.unplanned
        fold = Confirmation(manifest, planned)
        for event in self.events:
            fold.event(event)
        return fold

    def judge(self) -> AnalyzerResult:
        """The result."""
        return self.fold().finish()


def opened(path: str, *flags: str, result: int = 3, **more: Any) -> SyscallEvent:
    """A file opened by the target; `O_CREAT` among the flags makes it."""
    return SyscallEvent(
        phase="p", pid=9, tid=9, parent=5, record=1, call="openat", path=path, flags=flags, result=result, **more
    )


def made(path: str, **more: Any) -> SyscallEvent:
    """A file created by the target."""
    return opened(path, "O_WRONLY", "O_CREAT", **more)


def ran(path: str, *argv: str) -> ProcessEvent:
    """A program executed by the target."""
    return ProcessEvent(phase="p", pid=9, tid=9, parent=5, record=1, what="exec", path=path, argv=argv)


def connected(address: str, *, descriptor: int = 7) -> SyscallEvent:
    """A connection made by the target."""
    return SyscallEvent(
        phase="p", pid=9, tid=9, parent=5, record=1, call="connect", args=(descriptor,), remote=address, result=0
    )


def datagram(*, descriptor: int = 7) -> SyscallEvent:
    """A datagram socket made by the target."""
    return SyscallEvent(
        phase="p", pid=9, tid=9, parent=5, record=1, call="socket", flags=("AF_INET", "SOCK_DGRAM"), result=descriptor
    )


def call(
    id_: str,
    purpose: Purpose,
    arguments: JsonObject,
    *effects: Effect,
    nonce: str = "",
    here: World,
    kind: PayloadClass | None = PayloadClass.COMMAND_INJECTION,
    boundary: Boundary | None = DATA,
    about: str = "",
    argument: str = "/name",
    item: str = "show",
    payload: str = "command-injection/semicolon",
    **more: Any,
) -> Call:
    """A call of the tool `show` with a payload in `name`, unless said otherwise."""
    return Call(
        id=id_,
        item=item,
        params={"name": item, "arguments": arguments},
        purpose=purpose,
        payload=payload,
        payload_class=kind,
        argument=argument,
        nonce=nonce,
        effects=effects,
        boundary=boundary,
        about=about,
        world=here.nonce,
        **more,
    )


def created(path: str) -> Effect:
    """A prediction that the file will be made."""
    return Effect(kind=EffectKind.CREATED, path=path)


def disclosed(text: str) -> Effect:
    """A prediction that this comes back."""
    return Effect(kind=EffectKind.DISCLOSED, text=text)


def computed(text: str) -> Effect:
    """A prediction that this is worked out."""
    return Effect(kind=EffectKind.COMPUTED, text=text)


def reached(address: str, text: str = "") -> Effect:
    """A prediction of a connection."""
    return Effect(kind=EffectKind.CONNECTED, address=address, text=text)


NONCES = ("aaaa1111aaaa1111", "bbbb2222bbbb2222", "cccc3333cccc3333", "dddd4444dddd4444", "eeee5555eeee5555")
