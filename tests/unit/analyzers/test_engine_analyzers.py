"""Registry, selection, isolation and order of results."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from recordings_sample import healthy, surface

from harness.analyzers import engine, registry
from harness.analyzers.base import (
    AnalysisFacts,
    AnalyzerBase,
    DeclarationInput,
    Material,
    RecordingInput,
    ServerSurface,
)
from harness.analyzers.engine import CheckCrashed, Selected, failed_result, in_order, run_analyzer, run_one, select
from harness.model.errors import UsageError
from harness.model.result import AnalyzerResult, AnalyzerStatus, Selection

pytestmark = pytest.mark.anyio


def test_the_list_shows_every_analyzer_once_with_its_gaps() -> None:
    infos = {info.name: info for info in engine.list_analyzers()}
    behaviors = ["exec", "files", "install", "privilege", "evasion", "flood", "network", "egress", "canaries"]
    others = ["protocol", "probes", "messages.results", "messages.requests", "behavior.drift", "definitions"]
    last = ["behavior.annotations", "yara", "model"]
    assert list(infos) == [*others, *(f"behavior.{name}" for name in behaviors), *last]
    assert infos["protocol"].unavailable is None
    assert infos["yara"].unavailable and infos["model"].unavailable
    rules = [rule.id for rule in registry.rules()]
    assert len(rules) == len(set(rules))
    assert {"unicode.hidden", "directive.imperative", "phrase.injection", "protocol.crash"} <= set(rules)


def test_adding_an_analyzer_is_one_class_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Extra(AnalyzerBase):
        name = "extra"
        description = "one more"

        def start(self, facts: AnalysisFacts) -> Any:
            return _Fold(lambda: AnalyzerResult(name="extra", version="1", status=AnalyzerStatus.COMPLETED))

    monkeypatch.setattr(registry, "ANALYZERS", (*registry.ANALYZERS, Extra()))
    assert [info.name for info in engine.list_analyzers()][-1] == "extra"
    assert select("extra") == (Selected(name="extra", selection=Selection.NAMED),)
    assert run_one("extra", healthy().input()).status is AnalyzerStatus.COMPLETED


class _Fold:
    def __init__(self, finish: Any, event: Any = lambda event: None) -> None:
        self.finish, self.event = finish, event


def test_analyzers_over_one_reading_fail_one_by_one() -> None:
    def named(name: str, start: Any) -> Any:
        return type(name, (AnalyzerBase,), {"name": name, "description": "x", "start": start})()

    seen: list[str] = []
    done = AnalyzerResult(name="good", version="1", status=AnalyzerStatus.COMPLETED)
    group = [
        named("starts", lambda self, facts: _raise(ValueError())),
        named("breaks", lambda self, facts: _Fold(lambda: done, lambda event: _raise(KeyError()))),
        named("good", lambda self, facts: _Fold(lambda: done, lambda event: seen.append(event.kind))),
        named("ends", lambda self, facts: _Fold(lambda: _raise(OSError()))),
        named("lies", lambda self, facts: _Fold(lambda: done)),
    ]
    given = healthy().input()
    kinds = [event.kind for event in given.events]
    results = engine.run_analyzers(group, RecordingInput(facts=given.facts, events=healthy().input().events))
    assert seen == kinds and len(kinds) > 3
    assert [result.name for result in results] == ["starts", "breaks", "good", "ends", "lies"]
    assert [result.status.failed for result in results] == [True, True, False, True, True]
    assert [result.reason.split(": ")[1] for result in results if result.reason] == [
        "ValueError in start",
        f"KeyError in event {kinds[0]}",
        "OSError in finish",
        "the result is not its own",
    ]

    def damaged() -> Any:
        yield from healthy().input().events
        raise EOFError

    failed = engine.run_analyzers(group[2:], RecordingInput(facts=given.facts, events=damaged()))
    assert {result.reason.split(": ")[1] for result in failed} == {"EOFError in the events"}


def _raise(error: BaseException, cause: BaseException | None = None) -> Any:
    raise error from cause


def _analyzer(start: Any) -> Any:
    class Made(AnalyzerBase):
        name = "made"
        description = "for a test"

    made = Made()
    made.start = start  # type: ignore[attr-defined]
    return made


def test_selection_keeps_the_operators_order_and_marks_best_effort() -> None:
    assert select(" definitions , protocol? ") == (
        Selected(name="definitions", selection=Selection.NAMED),
        Selected(name="protocol", selection=Selection.BEST_EFFORT),
    )
    assert [chosen.name for chosen in select(None)] == list(registry.names())
    assert {chosen.selection for chosen in select("")} == {Selection.DEFAULT}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("protocl", "did you mean protocol"),
        ("definition?", "did you mean definitions"),
        ("zzz", "there are: protocol, probes"),
        ("protocol,protocol?", "named twice"),
        ("protocol,,definitions", "empty name"),
        ("?", "empty name"),
    ],
)
def test_a_wrong_selection_says_what_is_near(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("?", r"\?")):
        select(text)


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (lambda facts: _raise(ValueError("/home/x")), "crashed: ValueError in start"),
        (
            lambda facts: _Fold(None, lambda event: _raise(KeyError("/home/x"))),
            "crashed: KeyError in event attempt",
        ),
        (lambda facts: _Fold(lambda: _raise(RecursionError())), "crashed: RecursionError in finish"),
        (
            lambda facts: _Fold(lambda: _raise(CheckCrashed("my.check"), ZeroDivisionError())),
            "crashed: ZeroDivisionError in check my.check",
        ),
        (lambda facts: _Fold(lambda: failed_result("other", AnalyzerStatus.ERROR, "x")), "not its own"),
        (lambda facts: _Fold(lambda: None), "not its own"),
    ],
)
def test_whatever_an_analyzer_raises_is_a_crashed_result(start: Any, said: str) -> None:
    result = run_analyzer(_analyzer(start), healthy().input())
    assert result.status is AnalyzerStatus.CRASHED
    assert said in result.reason
    assert "/home" not in result.reason


def test_a_broken_iterator_of_events_is_isolated_too() -> None:
    def events() -> Any:
        yield from healthy().events
        raise OSError("/var/lib/x")

    result = run_one("protocol", RecordingInput(healthy().input().facts, events()))
    assert (result.status, result.reason) == (AnalyzerStatus.CRASHED, "crashed: OSError in the events")


def test_stubs_and_inputs_that_do_not_fit_do_not_run() -> None:
    assert run_one("yara", healthy().input()).status is AnalyzerStatus.UNAVAILABLE
    skipped = run_one("protocol", DeclarationInput((ServerSurface(surface()),)))
    assert (skipped.status, skipped.reason) == (
        AnalyzerStatus.SKIPPED,
        f"it needs {Material.RECORDING}, and this is {Material.DECLARATIONS}",
    )
    with pytest.raises(UsageError):
        run_one("nothing", healthy().input())


def test_failed_results_are_failures_on_one_line() -> None:
    result = failed_result("protocol", AnalyzerStatus.TIMEOUT, "after 60 s\nkilled")
    assert (result.status, result.reason) == (AnalyzerStatus.TIMEOUT, "timeout: after 60 s killed")
    with pytest.raises(ValueError, match="not a failure"):
        failed_result("protocol", AnalyzerStatus.PARTIAL, "x")


async def test_results_come_in_the_operators_order_whatever_finishes_first() -> None:
    chosen = select("model?,definitions,protocol")
    for order in itertools.permutations(["protocol", "definitions"]):

        async def executor(names: Sequence[str], order: tuple[str, ...] = order) -> Mapping[str, AnalyzerResult]:
            assert list(names) == ["model", "definitions", "protocol"]
            return {name: run_one(name, healthy().input()) for name in order}

        results = await engine.run_selected(chosen, executor)
        assert [(r.name, r.selection) for r in results] == [(c.name, c.selection) for c in chosen]
        assert (results[0].status, results[0].reason) == (AnalyzerStatus.CRASHED, "crashed: no result came back")


def test_a_result_under_a_wrong_name_is_a_crash() -> None:
    (result,) = in_order(select("protocol"), {"protocol": run_one("definitions", healthy().input())})
    assert result.status is AnalyzerStatus.CRASHED
