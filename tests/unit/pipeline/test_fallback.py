"""Which recorder a run gets, and what its record is worth in the end."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest

from harness.model.errors import EngineError, HarnessError
from harness.model.grade import grade_of, weaker
from harness.model.options import RecorderChoice, RunOptions
from harness.model.recording import Grade, RecorderEndEvent
from harness.pipeline.fallback import choose_recorder

pytestmark = pytest.mark.anyio

AUTO, EBPF, STRACE, NONE = (RecorderChoice(name) for name in ("auto", "ebpf", "strace", "none"))


class Machine:
    """What a sandbox says of its recorders: None for one that works, else why not."""

    def __init__(self, ebpf: str | Exception | None, strace: str | Exception | None, runtime: str = "runc") -> None:
        self.says = {"ebpf": ebpf, "strace": strace}
        self.runtime = runtime
        self.asked: list[str] = []

    async def engine_facts(self) -> Mapping[str, str]:
        return {"default_runtime": self.runtime}

    async def recorder_problem(self) -> str | None:
        return self._say("ebpf")

    async def use_strace(self) -> str | None:
        return self._say("strace")

    def _say(self, name: str) -> str | None:
        self.asked.append(name)
        found = self.says[name]
        if isinstance(found, Exception):
            raise found
        return found


async def choose(machine: Any, choice: RecorderChoice, **options: Any) -> tuple[str, Grade, str]:
    found = await choose_recorder(machine, RunOptions(recorder=choice, **options))
    return found.recorder, found.grade, found.said


async def test_the_best_that_works_is_taken_in_order_and_only_a_fallback_is_spoken_of() -> None:
    assert await choose(Machine(None, None), AUTO) == ("ebpf", Grade.TRUSTED, "")
    recorder, grade, said = await choose(Machine("no BTF", None), AUTO)
    assert (recorder, grade) == ("strace", Grade.CONTAINED) and "no BTF" in said and "strace" in said
    recorder, grade, said = await choose(Machine("no BTF", "no ptrace"), AUTO)
    assert (recorder, grade) == ("none", Grade.NONE) and "no BTF" in said and "no ptrace" in said


async def test_an_image_that_can_not_be_made_is_a_reason_like_any_other() -> None:
    recorder, _, said = await choose(Machine(HarnessError("clang is missing"), None), AUTO)
    assert recorder == "strace" and "clang is missing" in said


@pytest.mark.parametrize("choice", [EBPF, STRACE])
async def test_a_recorder_asked_for_by_name_is_had_or_nothing_is_run(choice: RecorderChoice) -> None:
    machine = Machine(None, None)
    assert (await choose(machine, choice))[0] == choice
    assert machine.asked == [choice]
    with pytest.raises(EngineError, match=f"with {choice}: broken.*doctor") as caught:
        await choose(Machine("broken", "broken"), choice)
    assert caught.value.exit_code == 4


async def test_nothing_by_choice_asks_nobody_and_says_nothing() -> None:
    machine = Machine(None, None)
    assert await choose(machine, NONE) == ("none", Grade.NONE, "")
    assert machine.asked == []


@pytest.mark.parametrize(("default", "options"), [("runsc", {}), ("runc", {"runtime": "kata"})])
async def test_another_runtime_keeps_its_processes_to_itself(default: str, options: dict[str, str]) -> None:
    recorder, _, said = await choose(Machine(None, None, default), AUTO, **options)
    assert recorder == "none" and (options.get("runtime") or default) in said
    with pytest.raises(EngineError, match="runtime"):
        await choose(Machine(None, None, default), EBPF, **options)


def end(**fields: Any) -> RecorderEndEvent:
    return RecorderEndEvent(phase="stop", **fields)


def test_a_record_is_worth_what_made_it_and_nothing_without_its_heartbeats() -> None:
    assert grade_of(end()) is Grade.TRUSTED
    assert grade_of(end(recorder="strace")) is Grade.CONTAINED
    assert grade_of(end(recorder="what")) is Grade.NONE
    for recorder, fault in product(("ebpf", "strace"), ({"marks_missing": ("n",)}, {"loaded": False})):
        assert grade_of(end(recorder=recorder, **fault)) is Grade.NONE


def test_several_records_are_worth_the_weakest() -> None:
    order = [Grade.TRUSTED, Grade.CONTAINED, Grade.TAMPERABLE, Grade.NONE]
    for (one, first), (two, second) in product(enumerate(order), enumerate(order)):
        assert weaker(first, second) is order[max(one, two)]
