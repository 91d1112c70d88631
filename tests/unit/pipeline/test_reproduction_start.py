"""How a target is started when its findings are tried again, from what a bundle's plan tells."""

from __future__ import annotations

from pathlib import Path

from harness.model.call import Call, Purpose
from harness.model.plan import Action, ActionKind, Adjustment
from harness.pipeline.reproduce import _adjustment

CALL = Call(id="c1", method="tools/call", item="run", params={}, purpose=Purpose.BASELINE, world="w")


def test_it_is_started_as_when_its_calls_were_made_with_the_closure_at_hand(tmp_path: Path) -> None:
    actions = [
        Action(number=1, kind=ActionKind.START),
        Action(number=2, kind=ActionKind.START, attempt=2, adjustment=Adjustment(of_its_time=True, arguments=("x",))),
        Action(number=3, kind=ActionKind.CALL, call=CALL),
        Action(number=4, kind=ActionKind.START, adjustment=Adjustment(arguments=("later",))),
    ]
    (tmp_path / "plan.jsonl").write_text("".join(action.model_dump_json() + "\n" for action in actions))
    # Its dependencies as of the release are what the bundle holds: to look for them again would need the registry.
    assert _adjustment(tmp_path) == Adjustment(arguments=("x",))
