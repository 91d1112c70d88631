"""The child that evaluates what targets wrote in their schemas: `python -m harness.pipeline.synthesizer`.

Regular expressions and validation can take for ever or fill the memory, so each is done in a fork of its own, with
limits on processor time and address space; a fork that dies tells nothing, and the next goes on.

In: one line of JSON, `Questions`. Out: a line of JSON for each answer, `PatternAnswer` or `SchemaAnswer`. It ends by
itself, reads no file and opens no connection: references to other documents are not followed.
"""

from __future__ import annotations

import os
import re
import resource
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from harness.model.base import JsonObject, JsonValue, Record, canonical_json

SECONDS = 2
MEMORY_BYTES = 768 << 20
#: Bounds of what is asked and told.
MOST_QUESTIONS = 400
MOST_SAMPLES = 6
MOST_CHARACTERS = 2_000
MOST_ANSWER_BYTES = 256 << 10


class PatternQuestion(Record):
    """Which of these match, and what else does?"""

    pattern: str
    values: tuple[str, ...] = ()


class SchemaQuestion(Record):
    """Which of these arguments are valid? Others are made where none is."""

    schema_: JsonValue
    candidates: tuple[JsonObject, ...] = ()


class Questions(Record):
    """All that is asked in one life; `seed` makes the answers repeatable."""

    seed: int = 0
    patterns: tuple[PatternQuestion, ...] = ()
    schemas: tuple[SchemaQuestion, ...] = ()


class PatternAnswer(Record):
    """Values that match, and made ones. `known`: the pattern could be read."""

    pattern: str
    known: bool = False
    matching: tuple[str, ...] = ()
    samples: tuple[str, ...] = ()


class SchemaAnswer(Record):
    """By position: whether each candidate is valid; `spare`: made ones. `number` is the question's."""

    number: int
    valid: tuple[bool, ...] = ()
    spare: tuple[JsonObject, ...] = ()


def answer_pattern(question: PatternQuestion, seed: int) -> PatternAnswer:
    """Match and make. Call it under limits only."""
    try:
        compiled = re.compile(as_python(question.pattern))
    except (re.error, RecursionError, OverflowError):
        return PatternAnswer(pattern=question.pattern)
    matching = tuple(value for value in question.values if compiled.search(value))
    samples: tuple[str, ...] = ()
    if not matching:
        from hypothesis import strategies

        printable = strategies.characters(min_codepoint=33, max_codepoint=126)
        made = _drawn(strategies.from_regex(compiled, fullmatch=True, alphabet=printable), seed)
        texts = [text for text in made if isinstance(text, str) and len(text) <= MOST_CHARACTERS]
        samples = tuple(sorted(dict.fromkeys(texts), key=lambda text: (not text, abs(len(text) - 8))))[:MOST_SAMPLES]
    return PatternAnswer(pattern=question.pattern, known=True, matching=matching, samples=samples)


def answer_schema(number: int, question: SchemaQuestion, seed: int) -> SchemaAnswer:
    """Validate, and make others where none is valid. Call it under limits only."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from referencing import Registry

    schema: Any = question.schema_
    known = validator_for(schema, default=Draft202012Validator) if isinstance(schema, dict) else Draft202012Validator
    registry: Any = Registry()  # without a way to fetch anything
    validator: Any = known(schema, registry=registry)

    def is_valid(arguments: JsonObject) -> bool:
        try:
            return bool(validator.is_valid(arguments))
        except (RecursionError, MemoryError):
            raise
        except Exception:  # whatever a broken schema makes of it: then nobody can say that they are invalid
            return True

    valid = tuple(is_valid(arguments) for arguments in question.candidates)
    if any(valid):
        return SchemaAnswer(number=number, valid=valid)
    from hypothesis_jsonschema import from_schema

    closed = {**schema, "additionalProperties": False} if "properties" in schema else schema
    made = [value for value in _drawn(from_schema(closed), seed) if isinstance(value, dict) and is_valid(value)]
    made.sort(key=lambda value: len(canonical_json(value)))
    return SchemaAnswer(number=number, valid=valid, spare=tuple(made[:MOST_SAMPLES]))


def as_python(pattern: str) -> str:
    """A regular expression of ECMA 262, as Python reads it: named groups and the commonest classes of Unicode."""
    pattern = re.sub(r"\(\?<([A-Za-z_]\w*)>", r"(?P<\1>", pattern)
    for name, members in (("L", "A-Za-z"), ("Lu", "A-Z"), ("Ll", "a-z"), ("N", "0-9"), ("Nd", "0-9")):
        pattern = pattern.replace(f"[\\p{{{name}}}", f"[{members}").replace(f"\\p{{{name}}}", f"[{members}]")
    return pattern.replace("\\/", "/")


def _drawn(strategy: Any, seed: int) -> list[Any]:
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded

    drawn: list[Any] = []

    @seeded(seed)
    @settings(
        max_examples=12,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(value: Any) -> None:
        drawn.append(value)

    draw()
    return drawn


def forked(work: Callable[[], Record]) -> bytes:
    """What `work` makes, as JSON, done in a fork with limits; empty when it did not end well."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(read_end)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
            data = work().model_dump_json().encode()
            while data:
                data = data[os.write(write_end, data) :]
            code = 0
        finally:
            os._exit(code)
    os.close(write_end)
    kept = bytearray()
    while chunk := os.read(read_end, 1 << 16):
        if len(kept) <= MOST_ANSWER_BYTES:
            kept += chunk
    os.close(read_end)
    _, status = os.waitpid(pid, 0)
    return bytes(kept) if status == 0 and len(kept) <= MOST_ANSWER_BYTES else b""


def main() -> None:
    """Answer one line of questions."""
    warnings.simplefilter("ignore")
    questions = Questions.model_validate_json(sys.stdin.buffer.readline())
    import hypothesis_jsonschema  # noqa: F401 - once, before the forks

    devnull = os.open(os.devnull, os.O_WRONLY)
    out = os.dup(1)
    os.dup2(devnull, 1)  # nothing but answers goes out
    os.dup2(devnull, 2)
    for pattern in questions.patterns[:MOST_QUESTIONS]:
        os.write(out, forked(partial(answer_pattern, pattern, questions.seed)) + b"\n")
    for number, schema in enumerate(questions.schemas[:MOST_QUESTIONS]):
        os.write(out, forked(partial(answer_schema, number, schema, questions.seed)) + b"\n")


if __name__ == "__main__":
    main()
