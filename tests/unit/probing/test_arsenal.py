"""The kit of a real run: payloads of the catalog in the places of a schema."""

from __future__ import annotations

from harness.model.base import JsonObject
from harness.model.call import Asked, ClientAnswer
from harness.model.options import NetworkChoice
from harness.model.payload import Boundary, BoundaryKind, PayloadClass
from harness.model.surface import ItemKind
from harness.pipeline.entropy import Entropy
from harness.pipeline.payloads import read_payloads
from harness.pipeline.workspace import planted_files
from harness.pipeline.world import plant
from harness.probing.answers import ELICITATION, SAMPLING
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


def test_a_choice_gets_few_payloads_as_an_argument_and_none_in_a_form() -> None:
    choice: JsonObject = {"type": "string", "enum": ["red", "blue"]}
    schema: JsonObject = {
        "type": "object",
        "properties": {"c": choice, "w": {"type": "string"}},
        "required": ["c", "w"],
    }
    kit, subject = Arsenal(read_payloads()), Subject(ItemKind.TOOL, "t", schema)
    asked = Asked(
        method=ELICITATION, number=1, params={"requestedSchema": schema}, answer=ClientAnswer(method=ELICITATION)
    )
    for one, places in ((subject, {"/c", "/w"}), (subject.asking(asked), {"/w"})):
        attacks = kit.attacks(one, {"c": "red", "w": "x"}, {}, WORLD, DATA, network=NetworkChoice.ANSWER)
        assert {attack.argument for attack in attacks} == places


def test_that_a_models_text_is_run_is_by_design_where_the_tool_says_so() -> None:
    asked = Asked(method=SAMPLING, number=1, answer=ClientAnswer(method=SAMPLING))
    for description, expected in (("Estimates.", True), ("Has the model write Python code and runs the code.", False)):
        subject = Subject(ItemKind.TOOL, "t", {"type": "object"}, description).asking(asked)
        attacks = Arsenal(read_payloads()).attacks(
            subject, {"answer": "x"}, {}, WORLD, DATA, network=NetworkChoice.ANSWER
        )
        classes = {attack.payload.payload_class for attack in attacks}
        assert (PayloadClass.CODE_EVALUATION in classes) is expected and PayloadClass.SQL in classes
