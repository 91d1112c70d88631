"""What is known of a target's schemas beyond what this process may find out: asked of a child with limits."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from subprocess import DEVNULL  # noqa: TID251 - a constant
from typing import TypeVar

import anyio
from pydantic import ValidationError

from harness.model.base import JsonObject, JsonValue, Record, canonical_json
from harness.model.surface import ItemKind, Surface
from harness.model.world import World
from harness.pipeline.synthesizer import (
    MOST_QUESTIONS,
    PatternAnswer,
    PatternQuestion,
    Questions,
    SchemaAnswer,
    SchemaQuestion,
)
from harness.probing.calls.subjects import matches
from harness.probing.synthesis.draft import Context
from harness.probing.synthesis.drafting import draft
from harness.probing.synthesis.roles import Clues
from harness.probing.synthesis.values import ROLES, values_for

#: How long the child may take for all of it; what it has not answered by then stays unknown.
SECONDS = 12.0
MOST_OUTPUT_BYTES = 8 << 20
MOST_PATTERN_CHARACTERS = 2_000
#: Keywords that the walk through a schema does not promise to meet.
_HARD = frozenset(
    {
        "pattern", "patternProperties", "propertyNames", "oneOf", "not", "if", "dependentRequired", "dependentSchemas",
        "dependencies", "contains", "unevaluatedProperties", "unevaluatedItems", "uniqueItems", "minProperties",
    }
)  # fmt: skip

_Answer = TypeVar("_Answer", bound=Record)


class SchemaFacts:
    """Implements `Regexes`: knows nothing until `learn` was called, and asks nobody later."""

    def __init__(self) -> None:
        self._patterns: dict[str, PatternAnswer] = {}
        self._refused: set[str] = set()
        self._spare: dict[str, tuple[JsonObject, ...]] = {}

    def fitting(self, pattern: str, values: tuple[str, ...]) -> tuple[str, ...]:
        answer = self._patterns.get(pattern)
        if answer is None:
            return ()
        matching = tuple(value for value in values if value in answer.matching)
        return (*matching, *(answer.samples or answer.matching[:6]))

    def refused(self, schema: JsonValue, arguments: JsonObject) -> bool:
        return bool(self._refused) and _key(schema, arguments) in self._refused

    def spare(self, schema: JsonValue) -> tuple[JsonObject, ...]:
        return self._spare.get(canonical_json(schema), ()) if self._spare else ()

    async def learn(self, surface: Surface, world: World, *, allow: Sequence[str] = ("*",), seed: int = 0) -> None:
        """Ask about every pattern, then about every schema with keywords that need it, of the tools that are allowed.

        At most `SECONDS`, and no errors: what a schema does to the child is the schema's own loss. Nothing is started
        when there is nothing to ask.
        """
        schemas = [
            (item.name, item.value["inputSchema"], item.value.get("description"))
            for item in surface.of(ItemKind.TOOL)
            if isinstance(item.value, dict)
            and isinstance(item.value.get("inputSchema"), dict)
            and any(matches(item.name, pattern) for pattern in allow)
        ]
        with anyio.move_on_after(SECONDS):
            patterns = tuple(dict.fromkeys(p for _, schema, _ in schemas for p in _patterns(schema)))[:MOST_QUESTIONS]
            if patterns:
                pool = _pool(world)
                asked = Questions(seed=seed, patterns=tuple(PatternQuestion(pattern=p, values=pool) for p in patterns))
                await _ask(asked, self._keep_pattern)
            hard = [entry for entry in schemas if _HARD & set(_keywords(entry[1]))][:MOST_QUESTIONS]
            if not hard:
                return
            context = Context(world=world, seed=seed)
            questions = []
            for name, schema, said in hard:
                about = said if isinstance(said, str) else ""
                made = draft(name, schema, context, description=about, regexes=self)
                questions.append(SchemaQuestion(schema_=schema, candidates=made.candidates))
            await _ask(Questions(seed=seed, schemas=tuple(questions)), partial(self._keep_schema, questions))

    def _keep_pattern(self, line: bytes) -> None:
        answer = _read(line, PatternAnswer)
        if answer is not None and answer.known:
            self._patterns[answer.pattern] = answer

    def _keep_schema(self, questions: list[SchemaQuestion], line: bytes) -> None:
        answer = _read(line, SchemaAnswer)
        if answer is None or not 0 <= answer.number < len(questions):
            return
        question = questions[answer.number]
        for arguments, valid in zip(question.candidates, answer.valid, strict=False):
            if not valid:
                self._refused.add(_key(question.schema_, arguments))
        if answer.spare:
            self._spare[canonical_json(question.schema_)] = answer.spare


def _read(line: bytes, kind: type[_Answer]) -> _Answer | None:
    try:
        return kind.model_validate_json(line) if line else None
    except ValidationError:
        return None


def _key(schema: JsonValue, arguments: JsonObject) -> str:
    return f"{canonical_json(schema)}\n{canonical_json(arguments)}"


def _pool(world: World) -> tuple[str, ...]:
    """Every value that a role may bring, so that those that match are known beforehand."""
    context = Context(world=world)
    found: dict[str, None] = {}
    for role in sorted(ROLES):
        for value in values_for(role, Clues(name=role), context):
            found[str(value)] = None
    return tuple(found)


def _patterns(schema: JsonValue) -> Iterator[str]:
    for here in _objects(schema):
        value = here.get("pattern")
        if isinstance(value, str) and len(value) <= MOST_PATTERN_CHARACTERS:
            yield value
        inner = here.get("patternProperties")
        if isinstance(inner, dict):
            yield from (name for name in inner if len(name) <= MOST_PATTERN_CHARACTERS)


def _keywords(schema: JsonValue) -> Iterator[str]:
    for here in _objects(schema):
        yield from here


def _objects(schema: JsonValue) -> Iterator[JsonObject]:
    """Every object in a schema; framing bounds how deep and how many they can be."""
    waiting = [schema]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            yield here
            waiting += reversed(here.values())
        elif isinstance(here, list):
            waiting += reversed(here)


async def _ask(questions: Questions, keep: Callable[[bytes], None]) -> None:
    """Hand each line of the child's answers on as it comes. The child is killed with its forks, whatever happens."""
    argv = [sys.executable, "-m", "harness.pipeline.synthesizer"]
    process = await anyio.open_process(argv, stderr=DEVNULL, start_new_session=True)
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await process.stdin.send(questions.model_dump_json().encode() + b"\n")
            pending, size = b"", 0
            async for chunk in process.stdout:
                size += len(chunk)
                if size > MOST_OUTPUT_BYTES:
                    break
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    keep(line)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with anyio.CancelScope(shield=True):
            await process.aclose()
