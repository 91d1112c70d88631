"""The child that evaluates schemas: it answers, and hostile patterns and schemas cost only their own answers."""

from __future__ import annotations

import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from harness.model.surface import Item, ItemKind, Surface
from harness.pipeline.entropy import Entropy
from harness.pipeline.schema_facts import SchemaFacts
from harness.pipeline.synthesizer import as_python
from harness.pipeline.workspace import planted_files
from harness.pipeline.world import plant
from harness.probing.synthesis.draft import Context
from harness.probing.synthesis.drafting import draft
from harness.sandbox.base import LaunchSpec

pytestmark = pytest.mark.anyio
WORLD = plant(Entropy(), LaunchSpec(image="base", volume=None, argv=("s",), seed=planted_files())).world


def takes(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def text(pattern: str) -> dict[str, Any]:
    return takes(s={"type": "string", "pattern": pattern})


GOOD = {
    "code": text(r"^[A-Z]{2}-\d{4}$"),
    "date": text(r"^\d{4}-\d{2}-\d{2}$"),
    "ecma": text(r"^(?<first>\p{L}+)\/[a-z]+$"),
    "lookaheads": text(r"^(?=.*[A-Z])(?=.*\d)(?!.*x).{8,20}$"),
    "condition": {
        **takes(kind={"type": "string", "enum": ["a", "b"]}),
        "if": {"properties": {"kind": {"const": "a"}}},
        "then": {"required": ["x"]},
    },
    "not": takes(x={"not": {"type": "string"}}),
}
HOSTILE = {
    "backtracking": text(r"^(([a-z])+.)+[A-Z]([a-z])+$"),
    "repetition": text(r"^(a{1,1000}){1,1000}$"),
    "broken": text("^(["),
    "elsewhere": {**takes(x={"$ref": "http://127.0.0.1:9/x.json"}), "not": {}},
    "references": {
        "not": {},
        "$defs": {**{f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(30)}, "d30": {}},
        "$ref": "#/$defs/d0",
    },
}


def surface(schemas: dict[str, Any]) -> Surface:
    return Surface(
        items=tuple(
            Item(kind=ItemKind.TOOL, name=name, value={"name": name, "inputSchema": schema}, frame=0)
            for name, schema in schemas.items()
        )
    )


async def test_answers_make_first_candidates_valid_and_hostile_ones_cost_only_their_own() -> None:
    facts = SchemaFacts()
    await facts.learn(surface({**HOSTILE, **GOOD}), WORLD, seed=3)
    context = Context(world=WORLD)
    made = {name: draft(name, schema, context, regexes=facts) for name, schema in GOOD.items()}
    for name in ("code", "date", "condition", "not"):
        assert Draft202012Validator(GOOD[name]).is_valid(made[name].candidates[0]), made[name].candidates
    assert re.fullmatch(r"[A-Za-z]+/[a-z]+", made["ecma"].candidates[0]["s"])
    assert made["date"].candidates[0] == {"s": "2026-01-05"}
    for name, schema in HOSTILE.items():
        draft(name, schema, context, regexes=facts)
    again = SchemaFacts()
    await again.learn(surface(GOOD), WORLD, seed=3)
    assert draft("code", GOOD["code"], context, regexes=again) == made["code"]


async def test_nothing_is_started_where_there_is_nothing_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.pipeline.schema_facts._ask", None)
    facts = SchemaFacts()
    await facts.learn(surface({"plain": takes(path={"type": "string"})}), WORLD)
    assert facts.fitting("x", ("x",)) == ()


def test_patterns_of_ecma_are_read() -> None:
    assert re.fullmatch(as_python(r"(?<year>\d+)\/[\p{L}_]+"), "2026/ab_c")
    assert as_python(r"(?<=a)(?<!b)c") == r"(?<=a)(?<!b)c"
