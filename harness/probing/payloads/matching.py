"""Which payloads fit a place in the arguments, and how well."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence

from harness.model.payload import EffectKind, Payload, PayloadClass
from harness.probing.payloads.placeholders import SLOT
from harness.probing.synthesis.draft import InjectionPoint
from harness.probing.synthesis.words import description_words, words_of

#: So many payloads of a class are planned for a place that was seen to be for it, for one that looks so, for others.
MOST_SEEN = 14
MOST_FITTING = 8
MOST_OTHERS = 2
#: Without a sign of it these are not tried at all: they are commands.
_ONLY_FITTING = frozenset({PayloadClass.ALLOWLIST_BYPASS})

_PATHS = (
    PayloadClass.TRAVERSAL_READ,
    PayloadClass.TRAVERSAL_WRITE,
    PayloadClass.SYMLINK_ESCAPE,
    PayloadClass.ARGUMENT_INJECTION,
    PayloadClass.COMMAND_INJECTION,
)
#: Places in what the client answers, which take what an argument takes.
_ANSWERS = frozenset({"sampling-answer", "elicitation-answer"})
_COMMANDS = (PayloadClass.COMMAND_INJECTION, PayloadClass.ALLOWLIST_BYPASS, PayloadClass.ARGUMENT_INJECTION)
_FETCHED = (
    PayloadClass.SSRF,
    PayloadClass.HEADER_INJECTION,
    PayloadClass.COMMAND_INJECTION,
    PayloadClass.TRAVERSAL_READ,
)

#: Role of a value (`harness.probing.synthesis.roles`): classes that its name alone points to.
SUGGESTS: dict[str, tuple[PayloadClass, ...]] = {
    "path": (*_PATHS, PayloadClass.ARCHIVE_SLIP, PayloadClass.XXE, PayloadClass.DESERIALISATION),
    "directory": (*_PATHS, PayloadClass.ARCHIVE_SLIP),
    "repository": _PATHS,
    "new-file": (PayloadClass.TRAVERSAL_WRITE, *_PATHS),
    "new-directory": (PayloadClass.TRAVERSAL_WRITE, *_PATHS),
    "database": (*_PATHS, PayloadClass.SQL),
    "image": _PATHS,
    "glob": _PATHS,
    "url": _FETCHED,
    "uri": _FETCHED,
    "repository-url": (*_FETCHED, PayloadClass.ARGUMENT_INJECTION),
    "host": (PayloadClass.SSRF, PayloadClass.COMMAND_INJECTION, PayloadClass.ARGUMENT_INJECTION),
    "ipv4": (PayloadClass.SSRF, PayloadClass.COMMAND_INJECTION),
    "command": _COMMANDS,
    "code": (PayloadClass.CODE_EVALUATION, PayloadClass.COMMAND_INJECTION, PayloadClass.ATTRIBUTE_ACCESS),
    "expression": (PayloadClass.CODE_EVALUATION, PayloadClass.ATTRIBUTE_ACCESS, PayloadClass.COMMAND_INJECTION),
    "formula": (PayloadClass.CODE_EVALUATION,),
    "sql": (PayloadClass.SQL,),
    "query": (PayloadClass.SQL, PayloadClass.CODE_EVALUATION),
    "search": (PayloadClass.SQL, PayloadClass.COMMAND_INJECTION, PayloadClass.ARGUMENT_INJECTION),
    "table": (PayloadClass.SQL,),
    "column": (PayloadClass.SQL, PayloadClass.ATTRIBUTE_ACCESS),
    "regex": (PayloadClass.EXHAUSTION, PayloadClass.COMMAND_INJECTION, PayloadClass.ARGUMENT_INJECTION),
    "git-ref": (PayloadClass.ARGUMENT_INJECTION, PayloadClass.COMMAND_INJECTION),
    "git-tag": (PayloadClass.ARGUMENT_INJECTION, PayloadClass.COMMAND_INJECTION),
    "new-branch": (PayloadClass.ARGUMENT_INJECTION, PayloadClass.COMMAND_INJECTION),
    "template": (PayloadClass.TEMPLATE_INJECTION, PayloadClass.ATTRIBUTE_ACCESS),
    "xml": (PayloadClass.XXE,),
    "yaml": (PayloadClass.DESERIALISATION,),
    "json": (PayloadClass.DESERIALISATION,),
    "base64": (PayloadClass.DESERIALISATION,),
    "data": (PayloadClass.DESERIALISATION, PayloadClass.XXE),
    "key": (PayloadClass.ATTRIBUTE_ACCESS, PayloadClass.TRAVERSAL_READ, PayloadClass.SECRET_DISCLOSURE),
    "id": (PayloadClass.SQL, PayloadClass.TRAVERSAL_READ, PayloadClass.COMMAND_INJECTION),
    "name": (
        PayloadClass.TEMPLATE_INJECTION,
        PayloadClass.SQL,
        PayloadClass.COMMAND_INJECTION,
        PayloadClass.TRAVERSAL_READ,
    ),
    "text": (PayloadClass.TEMPLATE_INJECTION,),
}

#: What a place that is written and not read can't show, and what would only spoil what others read.
_READING = frozenset(
    {
        PayloadClass.TRAVERSAL_READ,
        PayloadClass.XXE,
        PayloadClass.DESERIALISATION,
        PayloadClass.ARCHIVE_SLIP,
        PayloadClass.SECRET_DISCLOSURE,
    }
)
_WRITES = frozenset({EffectKind.CREATED, EffectKind.CHANGED})

#: Classes by how likely they are where nothing points anywhere.
_LIKELY = (
    PayloadClass.COMMAND_INJECTION,
    PayloadClass.TRAVERSAL_READ,
    PayloadClass.SSRF,
    PayloadClass.SQL,
    PayloadClass.CODE_EVALUATION,
    PayloadClass.TRAVERSAL_WRITE,
    PayloadClass.ARGUMENT_INJECTION,
    PayloadClass.TEMPLATE_INJECTION,
    PayloadClass.DESERIALISATION,
    PayloadClass.XXE,
    PayloadClass.ATTRIBUTE_ACCESS,
)

#: What a value was seen to do in the baseline call: classes that this points to (`Applies.observed`).
SHOWS: dict[str, tuple[PayloadClass, ...]] = {
    "opened-path": (
        PayloadClass.TRAVERSAL_READ,
        PayloadClass.SYMLINK_ESCAPE,
        PayloadClass.ARCHIVE_SLIP,
        PayloadClass.XXE,
        PayloadClass.DESERIALISATION,
    ),
    "written-path": (PayloadClass.TRAVERSAL_WRITE, PayloadClass.SYMLINK_ESCAPE),
    "in-argv": (PayloadClass.ARGUMENT_INJECTION, PayloadClass.ALLOWLIST_BYPASS, PayloadClass.COMMAND_INJECTION),
    "in-shell": (PayloadClass.COMMAND_INJECTION, PayloadClass.ALLOWLIST_BYPASS, PayloadClass.ARGUMENT_INJECTION),
    "resolved-host": (PayloadClass.SSRF, PayloadClass.HEADER_INJECTION),
    "connected-host": (PayloadClass.SSRF, PayloadClass.HEADER_INJECTION),
    "in-query": (PayloadClass.SQL,),
    "in-code": (PayloadClass.CODE_EVALUATION, PayloadClass.TEMPLATE_INJECTION, PayloadClass.ATTRIBUTE_ACCESS),
    "in-parser": (PayloadClass.DESERIALISATION, PayloadClass.XXE),
    "echoed": (PayloadClass.TEMPLATE_INJECTION, PayloadClass.CODE_EVALUATION),
}


def fits(payload: Payload, point: InjectionPoint) -> bool:
    """Whether a payload may be tried at a place: every list that it gives must match."""
    applies = payload.applies
    whole = point.siblings and point.type == "array"
    if (
        not (point.place in applies.places or (point.place in _ANSWERS and "argument" in applies.places))
        or bool(payload.elements) != whole
    ):
        return False
    if not whole and point.type not in applies.types and not (point.numeric and "number" in applies.types):
        return False
    if applies.formats and point.format not in applies.formats:
        return False
    if applies.names and not set(applies.names) & set(words_of(point.name)):
        return False
    if applies.descriptions and not set(applies.descriptions) & description_words(point.description):
        return False
    if "{slot}" in payload.template and not (isinstance(point.value, str) and SLOT.search(point.value)):
        return False  # nothing is filled in there that anybody tells of
    # What invalid arguments do is worth a few calls; who fills in a form chooses from what is offered.
    return not point.closed or (payload.order <= 10 and point.place not in _ANSWERS)


def observed(payload: Payload, uses: Iterable[str]) -> bool:
    """Whether what was seen of a place is what the payload, or its class, is made for."""
    seen = set(uses)
    made_for = set(payload.applies.observed)
    return bool(seen & made_for) if made_for else any(payload.payload_class in SHOWS.get(use, ()) for use in seen)


def choose(
    payloads: Iterable[Payload], point: InjectionPoint, uses: Iterable[str], programs: Sequence[str] = ()
) -> tuple[tuple[Payload, bool], ...]:
    """The payloads for a place, the likeliest first, and whether what was seen there points to each.

    Of each class only some: more where name or observation point to it, fewest where nothing does. `programs`: those
    that the target's list of allowed commands holds; a command line of another program has no chance.
    """
    uses = frozenset(uses)
    written = "written-path" in uses and "opened-path" not in uses
    suggested = SUGGESTS.get(point.role, ())
    shown = [payload_class for use in sorted(uses) for payload_class in SHOWS.get(use, ())]
    ranked = []
    for payload in payloads:
        if not fits(payload, point) or not _on_list(payload, programs) or (written and _reads(payload)):
            continue
        is_seen = observed(payload, uses)
        kind = payload.payload_class
        rank = 0 if is_seen else 1 + suggested.index(kind) if kind in suggested else 1 + len(suggested)
        most = MOST_SEEN if is_seen or kind in shown else MOST_FITTING if kind in suggested else MOST_OTHERS
        if most > MOST_OTHERS or kind not in _ONLY_FITTING:
            likely = _LIKELY.index(kind) if kind in _LIKELY else len(_LIKELY)
            ranked.append((rank, likely, payload.order, payload.id, payload, is_seen, most))
    counts: dict[PayloadClass, int] = {}
    chosen = []
    for *_, payload, is_seen, most in sorted(ranked, key=lambda entry: entry[:4]):
        count = counts.get(payload.payload_class, 0)
        if count < most:
            counts[payload.payload_class] = count + 1
            chosen.append((payload, is_seen))
    return tuple(chosen)


def _reads(payload: Payload) -> bool:
    """Whether it leads a path to something that is only to be read."""
    if payload.payload_class in _READING:
        return True
    escape = payload.payload_class is PayloadClass.SYMLINK_ESCAPE
    return escape and not any(effect.kind in _WRITES for effect in payload.effects)


def _on_list(payload: Payload, programs: Sequence[str]) -> bool:
    if not programs or payload.payload_class is not PayloadClass.ALLOWLIST_BYPASS:
        return True
    first = payload.elements[0] if payload.elements else payload.template.partition(" ")[0]
    return "{" in first or first in {posixpath.basename(program) for program in programs}
