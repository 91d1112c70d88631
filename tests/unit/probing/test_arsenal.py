"""The kit of a real run: payloads of the catalog in the places of a schema."""

from __future__ import annotations

from harness.model.base import JsonObject
from harness.model.options import NetworkChoice
from harness.model.payload import Boundary, BoundaryKind
from harness.model.surface import ItemKind
from harness.pipeline.entropy import Entropy
from harness.pipeline.payloads import read_payloads
from harness.pipeline.workspace import planted_files
from harness.pipeline.world import plant
from harness.probing.calls.arsenal import Arsenal
from harness.probing.calls.subjects import Subject
from harness.sandbox.base import LaunchSpec

WORLD = plant(Entropy(), LaunchSpec(image="base", volume=None, argv=("s",), seed=planted_files())).world
DATA = (Boundary(kind=BoundaryKind.DATA_NOT_CODE, source="convention"),)
NONCE = "0123456789abcdef0123"


def sent(schema: JsonObject, arguments: JsonObject, usage: dict[str, frozenset[str]]) -> dict[str, JsonObject]:
    """By payload the arguments of its first step."""
    kit, subject = Arsenal(read_payloads()), Subject(ItemKind.TOOL, "t", schema)
    attacks = kit.attacks(subject, arguments, usage, WORLD, DATA, network=NetworkChoice.ANSWER)
    filled = {a.payload.id: kit.fill(subject, a, arguments, WORLD, NONCE, control=False) for a in attacks}
    return {name: made.steps[0] for name, made in filled.items() if made is not None}


def test_a_number_is_sent_as_a_number_where_one_is_asked_for() -> None:
    schema: JsonObject = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    found = sent(schema, {"n": 1}, {})
    assert found["exhaustion/large-number"] == {"n": 999999999}
    assert isinstance(found["sql/number-union-1"]["n"], str)


def test_what_was_seen_of_a_place_brings_more_of_what_is_made_for_it() -> None:
    schema: JsonObject = {"type": "object", "properties": {"w": {"type": "string"}}, "required": ["w"]}
    plain, seen = sent(schema, {"w": "x"}, {}), sent(schema, {"w": "x"}, {"/w": frozenset({"in-query"})})
    assert "sql/string-union-2" in seen and "sql/string-union-2" not in plain
