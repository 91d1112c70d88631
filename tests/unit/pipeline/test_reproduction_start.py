"""How a target is started when its findings are tried again, from what a bundle's plan tells."""

from __future__ import annotations

from pathlib import Path

import pytest

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


@pytest.mark.parametrize(("restarts", "unsealed"), [((), False), ((False, True, True), True), ((True, False), False)])
def test_it_can_write_to_its_installation_if_its_last_life_could(
    tmp_path: Path, restarts: tuple[bool, ...], unsealed: bool
) -> None:
    actions = [Action(number=1, kind=ActionKind.START), Action(number=2, kind=ActionKind.CALL, call=CALL)]
    for number, opened in enumerate(restarts, 3):
        adjustment = Adjustment(unsealed=opened)
        actions.append(Action(number=number, kind=ActionKind.RESTART, adjustment=adjustment))
    (tmp_path / "plan.jsonl").write_text("".join(action.model_dump_json() + "\n" for action in actions))
    assert _adjustment(tmp_path).unsealed is unsealed
