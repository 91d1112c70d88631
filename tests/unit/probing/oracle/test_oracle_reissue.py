"""Calls made anew: every payload of the catalog comes out as if it had been filled in for the new world and nonce."""

from __future__ import annotations

import pytest

from harness.model.call import Call, Purpose
from harness.model.payload import Payload
from harness.pipeline.entropy import Entropy
from harness.pipeline.payloads import read_payloads
from harness.pipeline.world import plant
from harness.probing.oracle.reissue import Reissue, fresh
from harness.probing.payloads.expansion import Expansion, expand
from harness.sandbox.base import LaunchSpec

SPEC = LaunchSpec(image="node22", volume=None, argv=("server", "/home/user/workspace/data"))
OLD, NEW = (plant(Entropy(), SPEC).world for _ in range(2))
NONCES = ("0a1b2c3d4e5f60718293", "f9e8d7c6b5a493827160")


def as_call(expansion: Expansion, world: str) -> Call:
    arguments = {
        "value": expansion.value,
        "list": list(expansion.elements),
        **expansion.companions,
        "steps": [list(expansion.steps), [list(step) for step in expansion.step_elements]],
    }
    return Call(
        id="c1",
        item="t",
        params={"name": "t", "arguments": arguments},
        purpose=Purpose.CONFIRM,
        effects=expansion.effects,
        nonce=expansion.nonce,
        world=world,
    )


@pytest.mark.parametrize("payload", read_payloads(), ids=lambda payload: payload.id)
def test_a_payload_is_made_anew_from_its_call_alone(payload: Payload) -> None:
    first = expand(payload, OLD, base="notes.txt", nonce=NONCES[0])
    second = expand(payload, NEW, base="notes.txt", nonce=NONCES[1])
    if first is None or second is None:
        pytest.fail("the planted world has nothing for it")
    old, new = as_call(first, OLD.nonce), as_call(second, NEW.nonce)
    made = Reissue(OLD, NEW, *NONCES).call(old, "c1")
    assert made.params == new.params
    assert made.effects == new.effects
    # What a runtime says of itself is the same in every try, so it is seen and never proven.
    assert fresh((old,), (made,)) == fresh((old,), (new,))


def test_what_a_step_hands_out_is_handed_on() -> None:
    change = Reissue(OLD, NEW, *NONCES)
    change.hand('{"outputId": "abc123", "size": 3}', '{"outputId": "zzz999", "size": 4}')
    call = Call(id="c2", item="t", params={"arguments": {"id": "abc123", "n": 3}}, purpose=Purpose.CONFIRM)
    assert change.call(call, "r2").params == {"arguments": {"id": "zzz999", "n": 3}}


def test_numbers_are_not_replaced_inside_of_longer_ones() -> None:
    change = Reissue(OLD, NEW, *NONCES)
    number = next(before for before in change._pairs if before.isdigit() and len(before) == 5)
    assert change.text(f"1{number}1 {number}").startswith(f"1{number}1 ")
    assert not change.text(f"1{number}1 {number}").endswith(number)
