"""Which predicted effects were seen: each in a channel that does not depend on what the target says of itself.

An echo of the payload is no effect, nor is a name that was only resolved, a file inside the boundary, or a value that
was sent. Pure: a call, its outcome and the world in, sightings out.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from harness.model.base import Record
from harness.model.call import Call, Connection, OpenedFile, Outcome
from harness.model.payload import Boundary, BoundaryKind, Effect, EffectKind, PayloadClass
from harness.model.world import World
from harness.probing.oracle.crossing import allowed, host_of, host_with, internal, item_with, split, within
from harness.probing.oracle.sent import disguised, echoes, holds, joins, leaves, names_path, sent_texts

#: A shorter marker turns up by chance.
SHORTEST = 6
_CREATING = frozenset({"create", "write", "mkdir", "rename", "link"})
#: Whether a path is there (`access`) is asked by guards too, before they refuse it.
_OPENING = frozenset({"read", "write", "create", "delete", "rename", "link", "chmod"})
_CHANGING = frozenset({"write", "create", "delete", "rename", "chmod"})
#: Bounds on what one call may take (bytes); both are far beyond what a useful answer needs.
MEMORY_BYTES = 512 << 20
OUTPUT_BYTES = 16 << 20


class Sighting(Record):
    """One effect that was seen. `channel`: kernel, egress, result or protocol; `seqs`: the events that show it.

    `doubt`: why it proves nothing. `joined`: the value could come of what was sent by leaving out punctuation, which is
    a proof only beside a control that would show the same. `witness`: the event in which the kernel saw the target
    reach what it then disclosed, told in `witnessed`.
    """

    effect: Effect
    channel: str
    seqs: tuple[int, ...] = ()
    text: str = ""
    doubt: str = ""
    joined: bool = False
    witness: int | None = None
    witnessed: str = ""

    @property
    def proof(self) -> bool:
        """Whether this sighting can stand for a CONFIRMED finding."""
        return self.effect.kind in PROVING and not self.doubt


PROVING = frozenset(kind for kind in EffectKind if Effect(kind=kind).proves)


def hits(call: Call, outcome: Outcome, world: World) -> tuple[Effect, ...]:
    """The predicted effects of `call` that its outcome shows."""
    return tuple(sighting.effect for sighting in sightings(call, outcome, world))


def sightings(
    call: Call,
    outcome: Outcome,
    world: World,
    *,
    sent: Iterable[str] = (),
    boundaries: tuple[Boundary, ...] = (),
) -> tuple[Sighting, ...]:
    """The same with where it was seen and what speaks against it.

    `sent`: whatever else was sent to the target before; `boundaries`: all that were found.
    """
    every = (*sent_texts(call), *sent)
    found = []
    for effect in call.effects:
        if allowed(effect, call, world, boundaries):
            continue
        sighting = _sight(effect, call, outcome, world, every)
        if sighting is not None:
            found.append(sighting)
    return tuple(found)


def late(
    earlier: Sequence[Call], outcome: Outcome, world: World, *, sent: Iterable[str] = ()
) -> tuple[tuple[Call, Sighting], ...]:
    """Effects of earlier calls of the same world that show only now, attributed by what was drawn for the call.

    An effect that holds neither its call's nonce nor a path of its own could be anybody's and is left out; so is what
    only a result or a status shows.
    """
    paths = Counter(path for call in earlier for path in {e.path for e in call.effects if e.kind is EffectKind.CREATED})
    for item in world.items:
        paths.pop(item.path, None)
    found = []
    for call in earlier:
        if call.id == outcome.call or call.world != world.nonce:
            continue
        own = tuple(effect for effect in call.effects if _carries(effect, call.nonce) or paths[effect.path] == 1)
        marked = call.model_copy(update={"effects": tuple(effect for effect in own if effect.kind in _LATE)})
        answer = outcome.model_copy(update={"call": call.id})
        found += [(call, sighting) for sighting in sightings(marked, answer, world, sent=sent)]
    return tuple(found)


_LATE = frozenset({EffectKind.CREATED, EffectKind.CHANGED, EffectKind.CONNECTED, EffectKind.STUB_CALLED})


def _carries(effect: Effect, nonce: str) -> bool:
    return bool(nonce) and any(nonce in part for part in (effect.path, effect.text, effect.address))


def _sight(effect: Effect, call: Call, outcome: Outcome, world: World, sent: tuple[str, ...]) -> Sighting | None:
    match effect.kind:
        case EffectKind.CREATED:
            return _file(effect, call, outcome.files, _CREATING, world, sent)
        case EffectKind.CHANGED:
            return _file(effect, call, outcome.files, _CHANGING, world, sent)
        case EffectKind.OPENED:
            return _file(effect, call, outcome.files, _OPENING, world, sent)
        case EffectKind.EXECUTED:
            return _executed(effect, call, outcome)
        case EffectKind.STUB_CALLED:
            return _stub(effect, call, outcome, world, sent)
        case EffectKind.CONNECTED:
            return _connected(effect, call, outcome, world)
        case EffectKind.DISCLOSED:
            return _disclosed(effect, outcome, world, sent)
        case EffectKind.COMPUTED:
            return _computed(effect, outcome, sent)
        case EffectKind.ACCEPTED:
            return _accepted(effect, call, outcome)
        case EffectKind.EXHAUSTED:
            return _exhausted(effect, outcome)


def bases_of(world: World) -> tuple[str, ...]:
    """The folders from which a relative path may be meant: home, workspace, and roots."""
    return (posixpath.dirname(world.root), world.root, *world.roots)


#: Over these a path that was asked for by its name is a crossing all the same.
_BINDS_NAMES = frozenset({BoundaryKind.ROOT, BoundaryKind.READ_ONLY, BoundaryKind.ALLOWLIST})


def _file(
    effect: Effect, call: Call, files: Sequence[OpenedFile], ways: frozenset[str], world: World, sent: tuple[str, ...]
) -> Sighting | None:
    """A path that was opened so. What was created below a new folder counts for the folder."""
    path = posixpath.normpath(effect.path) if effect.path.startswith("/") else ""
    if not path:
        return None
    below = effect.kind is EffectKind.CREATED
    seen = [
        file
        for file in files
        if file.ok
        and file.how in ways
        and (posixpath.normpath(file.path) == path or (below and within(file.path, path)))
    ]
    if not seen:
        return None
    told = [file for file in seen if not file.claimed]
    best = (told or seen)[0]
    doubt = "" if told else "the path is told by the target's memory, not by the kernel"
    named = names_path((*leaves(call.given), *sent), path, bases_of(world))
    if named and (call.boundary is None or call.boundary.kind not in _BINDS_NAMES):
        doubt = doubt or "its name was an argument of the call"
    return Sighting(effect=effect, channel="kernel", seqs=(best.seq,), text=f"{best.how} {best.path}", doubt=doubt)


def _executed(effect: Effect, call: Call, outcome: Outcome) -> Sighting | None:
    """A word of the payload that became an argument of its own; one that was sent as it is, is an echo."""
    if not effect.text or effect.text in (*leaves(call.given), *call.headers.values()):
        return None
    for run in outcome.executions:
        if run.ok and effect.text in run.argv:
            return Sighting(effect=effect, channel="kernel", seqs=(run.seq,), text=" ".join(run.argv))
    return None


def _stub(effect: Effect, call: Call, outcome: Outcome, world: World, sent: tuple[str, ...]) -> Sighting | None:
    stubs = {item.path for item in world.items if item.kind == "stub" and effect.path in ("", item.path)}
    for run in outcome.executions:
        if not run.ok or run.path not in stubs or not effect.text:
            continue
        if not any(effect.text in word for word in run.argv[1:]):
            continue
        doubt = ""
        if joins(effect.text, sent) and not _forbidden(run.path, call.boundary):
            doubt = "its argument is an echo of what was sent"
        return Sighting(effect=effect, channel="kernel", seqs=(run.seq,), text=" ".join(run.argv), doubt=doubt)
    return None


def _forbidden(path: str, boundary: Boundary | None) -> bool:
    """Whether the boundary is a list of programs that this one is not on: to execute it is to cross."""
    if boundary is None or boundary.kind is not BoundaryKind.ALLOWLIST or not boundary.value:
        return False
    words = re.split(r"[\s,;|\[\]\"'`^$]+", boundary.value.casefold())
    names = {posixpath.basename(word.removesuffix("*").rstrip(":")).removesuffix(".exe") for word in words if word}
    return posixpath.basename(path).casefold() not in names and "" not in names


def _connected(effect: Effect, call: Call, outcome: Outcome, world: World) -> Sighting | None:
    for connection in outcome.connections:
        if not _meets(effect.address, connection) or effect.text not in connection.text:
            continue
        doubt = ""
        if call.boundary is not None and call.boundary.kind is BoundaryKind.INTERNAL_ADDRESS:
            planted = host_of(world, effect)
            if planted is None and not internal(effect.address) and not internal(connection.address):
                doubt = "the address is not known to be an internal one"
        elif call.payload_class is PayloadClass.ARGUMENT_INJECTION and echoes(f"//{effect.address}", sent_texts(call)):
            doubt = "its address was sent as one, which a tool may follow"
        return Sighting(
            effect=effect,
            channel="egress" if connection.flow is not None else "kernel",
            seqs=(connection.seq,),
            text=" ".join(filter(None, (connection.address, connection.text))),
            doubt=doubt,
        )
    return None


def _meets(address: str, connection: Connection) -> bool:
    host, port = split(address)
    there, at = split(connection.address)
    names = {name.rstrip(".").casefold() for name in connection.names}
    return bool(host) and (not port or port == at) and (host == there or host in names)


def _disclosed(effect: Effect, outcome: Outcome, world: World, sent: tuple[str, ...]) -> Sighting | None:
    text = effect.text
    if len(text) < SHORTEST or joins(text, sent) or not disguised(outcome.text, text):
        return None
    item, host = item_with(world, text), host_with(world, text)
    doubt = "" if item is not None or host is not None else "this was not planted in this world"
    seq, told = None, ""
    if item is not None:
        paths = {posixpath.normpath(path) for path in (item.path, item.target) if path}
        found = next((f for f in outcome.files if f.ok and f.how == "read" and f.path in paths), None)
        if found is not None:
            seq, told = found.seq, f"read {found.path}"
    elif host is not None:
        reached = next((c for c in outcome.connections if _meets(host.address, c)), None)
        if reached is not None:
            seq, told = reached.seq, f"connect {reached.address}"
    return Sighting(effect=effect, channel="result", text=text, doubt=doubt, witness=seq, witnessed=told)


def _computed(effect: Effect, outcome: Outcome, sent: tuple[str, ...]) -> Sighting | None:
    text = effect.text
    if len(text) < SHORTEST or echoes(text, sent) or not holds(outcome.text, text):
        return None
    return Sighting(effect=effect, channel="result", text=text, joined=joins(text, sent))


#: What a server says that refuses in the result of a tool.
_REFUSES = re.compile(
    r"unauthori[sz]ed|unauthenticated|forbidden|denied|not (?:allowed|permitted|authori[sz]ed)|\b40[13]\b"
    r"|(?:missing|invalid|no|wrong|bad) (?:\w+ ){0,2}(?:token|key|credentials?|auth(?:oriz|entic)ation|host|origin)",
    re.IGNORECASE,
)


def _accepted(effect: Effect, call: Call, outcome: Outcome) -> Sighting | None:
    """What had to be refused was answered: by a result, and for a header by a tool that failed at its own work."""
    served = outcome.state == "answered" and (not effect.text or effect.text in outcome.text)
    if call.place == "header" and outcome.state in ("answered", "tool-error"):
        served = _REFUSES.search(outcome.text) is None
    if not served:
        return None
    lines = "; ".join(f"{name}: {value}" if value else f"no {name}" for name, value in sorted(call.headers.items()))
    return Sighting(effect=effect, channel="protocol", text=f"{outcome.state} {lines}".rstrip())


def _exhausted(effect: Effect, outcome: Outcome) -> Sighting | None:
    what = ""
    if outcome.state in ("timeout", "closed"):
        what = outcome.state
    elif outcome.memory_bytes is not None and outcome.memory_bytes > MEMORY_BYTES:
        what = f"{outcome.memory_bytes >> 20} MiB of memory"
    elif outcome.size > OUTPUT_BYTES:
        what = f"{outcome.size >> 20} MiB of answer"
    return Sighting(effect=effect, channel="protocol", text=what) if what else None
