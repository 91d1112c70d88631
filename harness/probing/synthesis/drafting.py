"""Candidates for the arguments of one item, and what to try after a refusal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.model.base import JsonObject, JsonValue, canonical_json
from harness.probing.synthesis.draft import Attempt, Context, Draft, InjectionPoint, Leaf
from harness.probing.synthesis.hints import Hint, hints_of
from harness.probing.synthesis.pointers import KEY, get, put, remove, rename
from harness.probing.synthesis.schema import Schemas, Unmakeable
from harness.probing.synthesis.walker import Regexes, Unknown, Walk
from harness.probing.synthesis.words import words_of

MOST_CANDIDATES = 12
#: Ways through `anyOf` and lists of types that are tried.
MOST_CHOICES = 3


def draft(
    item: str,
    schema: JsonValue,
    context: Context,
    *,
    description: str = "",
    place: str = "argument",
    regexes: Regexes | None = None,
) -> Draft:
    """Arguments for an item that takes `schema` (as it was served), the likeliest first, and the places in them.

    The same arguments give the same draft. Never raises: a schema that can't be met gives a draft without candidates
    and its `problem`.
    """
    known = regexes or Unknown()
    first: Walk | None = None
    full: JsonObject = {}
    tried: list[JsonObject] = []
    problem = ""
    for choice in range(MOST_CHOICES):
        walk = Walk(Schemas(schema), context, item, description[:4000], known, place, choice)
        try:
            made = walk.arguments()
        except (Unmakeable, RecursionError, ArithmeticError, ValueError, TypeError) as error:
            problem = problem or (str(error) if isinstance(error, Unmakeable) else "its schema makes no sense")
            continue
        least = _least(made, walk.optional)
        if first is None:
            first, full = walk, made
            tried = [*_varied(least, walk.leaves), made, *_with_one(least, made, walk.optional)]
        else:
            tried += [least, made]
    spare = known.spare(schema)
    if first is None:
        return Draft(item=item, candidates=spare, problem=problem)
    different = _different(tried)
    valid = [arguments for arguments in different if not known.refused(schema, arguments)]
    invalid = [arguments for arguments in different if arguments not in valid]
    return Draft(
        item=item,
        candidates=(*valid, *spare, *invalid)[: MOST_CANDIDATES + len(spare)],
        full=full,
        leaves=tuple(first.leaves),
        points=tuple(first.points),
    )


def retry(made: Draft, attempts: Sequence[Attempt], *, spent: int = 24) -> JsonObject | None:
    """What to try after these attempts, all refused; None when nothing is left to try, or `spent` of them are.

    The last refusal's words come first (`must be one of …`, `no such file`, `is required` …), then candidates that
    were not tried.
    """
    if not attempts or len(attempts) >= spent:
        return None if attempts else next(iter(made.candidates), None)
    known = {canonical_json(attempt.arguments) for attempt in attempts}
    last = attempts[-1]
    for hint in hints_of(last.text):
        for changed in _follow(made, last.arguments, hint):
            if canonical_json(changed) not in known:
                return changed
    for candidate in made.candidates:
        if canonical_json(candidate) not in known:
            return candidate
    return None


def inject(arguments: JsonObject, made: Draft, point: InjectionPoint, value: JsonValue) -> JsonObject:
    """A copy of the arguments with `value` at the point (as the key, for a key); optional parents are made.

    Raises KeyError when the arguments have something else where the point's parents would be.
    """
    pointer = point.pointer.removesuffix(KEY)
    steps = pointer.split("/")
    changed: JsonValue = arguments
    for length in range(2, len(steps)):
        parent = "/".join(steps[:length])
        if not _there(changed, parent) and _there(made.full, parent):
            changed = put(changed, parent, get(made.full, parent))
    if point.pointer.endswith(KEY):
        if not _there(changed, pointer):
            changed = put(changed, pointer, get(made.full, pointer))
        changed = rename(changed, pointer, str(value))
    else:
        changed = put(changed, pointer, value)
    assert isinstance(changed, dict)
    return changed


def companions(made: Draft, wanted: dict[str, str]) -> dict[str, str]:
    """Pointers of the arguments that the words of a payload's companions name, and their values; first match."""
    found: dict[str, str] = {}
    for words, value in wanted.items():
        for leaf in made.leaves:
            if set(words_of(words)) <= set(words_of(leaf.name)):
                found.setdefault(leaf.pointer, value)
                break
    return found


def _there(value: JsonValue, pointer: str) -> bool:
    try:
        get(value, pointer)
    except KeyError:
        return False
    return True


def _least(made: JsonObject, optional: Iterable[str]) -> JsonObject:
    for pointer in sorted(optional, key=lambda pointer: -pointer.count("/")):
        changed = remove(made, pointer)
        assert isinstance(changed, dict)
        made = changed
    return made


def _varied(least: JsonObject, leaves: Sequence[Leaf]) -> list[JsonObject]:
    """The least arguments, and the same with other values: all of them one further, then one at a time."""
    present = [leaf for leaf in leaves if _there(least, leaf.pointer) and len(leaf.values) > 1]
    varied = [least]
    for number in (1, 2):
        varied.append(_set(least, {leaf.pointer: leaf.values[number % len(leaf.values)] for leaf in present}))
    for leaf in present[:4]:
        varied += [_set(least, {leaf.pointer: value}) for value in leaf.values[1:4]]
    return varied


def _with_one(least: JsonObject, full: JsonObject, optional: Sequence[str]) -> list[JsonObject]:
    """The least arguments and one optional property, for tools that want one of several."""
    tops = [pointer for pointer in optional if pointer.count("/") == 1][:6]
    return [_set(least, {pointer: get(full, pointer)}) for pointer in tops if _there(full, pointer)]


def _set(arguments: JsonObject, values: dict[str, JsonValue]) -> JsonObject:
    changed: JsonValue = arguments
    for pointer, value in values.items():
        changed = put(changed, pointer, value)
    assert isinstance(changed, dict)
    return changed


def _different(tried: Sequence[JsonObject]) -> list[JsonObject]:
    seen: dict[str, JsonObject] = {}
    for arguments in tried:
        seen.setdefault(canonical_json(arguments), arguments)
    return list(seen.values())


def _follow(made: Draft, arguments: JsonObject, hint: Hint) -> Iterable[JsonObject]:
    """Arguments changed as a hint says, most telling first."""
    concerned = [leaf for leaf in made.leaves if hint.about(leaf)]
    if not concerned and hint.roles and not hint.names:
        yield from _reread(made, arguments, hint)
    if hint.wanted:
        for leaf in concerned:
            if not _there(arguments, leaf.pointer) and _there(made.full, leaf.pointer):
                top = "/".join(leaf.pointer.split("/")[:2])
                yield _set(arguments, {top: get(made.full, top)})
    if hint.unwanted:
        for leaf in concerned:
            changed = remove(arguments, leaf.pointer)
            if isinstance(changed, dict):
                yield changed
    for leaf in concerned:
        if not _there(arguments, leaf.pointer):
            continue
        current = get(arguments, leaf.pointer)
        others = hint.values or tuple(value for value in leaf.values if value != current)
        for value in others:
            yield _set(arguments, {leaf.pointer: value})


def _reread(made: Draft, arguments: JsonObject, hint: Hint) -> Iterable[JsonObject]:
    """Where a refusal speaks of an address or a file and no name did: a value of which nothing is known may be one."""
    address = "url" in hint.roles
    for leaf in made.leaves:
        if (address or "path" in hint.roles) and _there(arguments, leaf.pointer):
            for value in leaf.spare:
                if value.startswith("http") == address and value != get(arguments, leaf.pointer):
                    yield _set(arguments, {leaf.pointer: value})
