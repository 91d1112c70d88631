"""Choosing analyzers, running one so that nothing it does wrong escapes, and putting results in order.

Where they run (killable children, several at once) is the business of an `Executor` that the pipeline gives.
What a child's death or a timeout means is decided here, by `failed_result`.
"""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Mapping, Sequence
from typing import Protocol

from harness.analyzers import registry
from harness.analyzers.base import AnalysisInput, Analyzer, Fold
from harness.model.base import Record
from harness.model.errors import UsageError
from harness.model.result import AnalyzerResult, AnalyzerStatus, Selection


class Selected(Record):
    """One analyzer that is to run, and how it was chosen."""

    name: str
    selection: Selection = Selection.DEFAULT


class AnalyzerInfo(Record):
    """One row of the list of analyzers; `unavailable` holds the reason, None when it can run."""

    name: str
    version: str
    description: str
    rules: tuple[str, ...]
    unavailable: str | None


class CheckCrashed(Exception):
    """Raised by an analyzer that knows which of its checks broke; the cause is chained."""

    def __init__(self, check: str) -> None:
        super().__init__(check)
        self.check = check


class Executor(Protocol):
    """Runs each named analyzer on the run's input, in processes that can be killed.

    The mapping may lack names: what is missing counts as crashed. It must not raise for what an analyzer does.
    """

    def __call__(self, names: Sequence[str]) -> Awaitable[Mapping[str, AnalyzerResult]]: ...


def list_analyzers() -> tuple[AnalyzerInfo, ...]:
    """All analyzers with their availability, in the registry's order."""
    return tuple(
        AnalyzerInfo(
            name=a.name,
            version=a.version,
            description=a.description,
            rules=tuple(rule.id for rule in a.rules),
            unavailable=a.availability(),
        )
        for a in registry.ANALYZERS
    )


def select(text: str | None) -> tuple[Selected, ...]:
    """Parse `a,b?` in the given order; None or blank selects all by default.

    Raises UsageError on an unknown name (with the nearest ones), a repeated or an empty one.
    """
    if text is None or not text.strip():
        return tuple(Selected(name=name) for name in registry.names())
    chosen: dict[str, Selected] = {}
    for part in text.split(","):
        word = part.strip()
        best_effort = word.endswith("?")
        name = word.removesuffix("?").strip()
        if not name:
            raise UsageError("--analyzers holds an empty name", remedy="write names separated by commas")
        if registry.find(name) is None:
            near = difflib.get_close_matches(name, registry.names(), n=3, cutoff=0.4)
            known = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(registry.names())}"
            raise UsageError(f"unknown analyzer '{name}'", remedy=known)
        if name in chosen:
            raise UsageError(f"analyzer '{name}' is named twice", remedy="name each analyzer once")
        chosen[name] = Selected(name=name, selection=Selection.BEST_EFFORT if best_effort else Selection.NAMED)
    return tuple(chosen.values())


def run_one(name: str, given: AnalysisInput) -> AnalyzerResult:
    """Run one analyzer over the input. Never raises for what the analyzer does: a crash is a CRASHED result.

    Raises UsageError when there is no such analyzer; errors of the input's own iterator are the analyzer's too,
    except that a process-ending exception passes.
    """
    analyzer = registry.find(name)
    if analyzer is None:
        raise UsageError(f"unknown analyzer '{name}'")
    return run_analyzer(analyzer, given)


def run_analyzer(analyzer: Analyzer, given: AnalysisInput) -> AnalyzerResult:
    """The same as `run_one` for an analyzer that need not be registered."""
    return run_analyzers((analyzer,), given)[0]


def run_together(names: Sequence[str], given: AnalysisInput) -> tuple[AnalyzerResult, ...]:
    """Run several analyzers over one reading of the events, each as `run_one` would; one that crashes stops no other.

    What ends the process or never returns takes all of them with it: then each has to be run by itself.
    Raises UsageError when there is no such analyzer.
    """
    found = [registry.find(name) for name in names]
    if None in found:
        raise UsageError(f"unknown analyzer '{names[found.index(None)]}'")
    return run_analyzers([analyzer for analyzer in found if analyzer is not None], given)


def run_analyzers(analyzers: Sequence[Analyzer], given: AnalysisInput) -> tuple[AnalyzerResult, ...]:
    """The same as `run_together` for analyzers that need not be registered; results in their order."""
    results: dict[int, AnalyzerResult] = {}
    folds: dict[int, Fold] = {}
    for place, analyzer in enumerate(analyzers):
        reason = _refusal(analyzer, given)
        if reason is not None:
            status, text = reason
            results[place] = AnalyzerResult(name=analyzer.name, version=analyzer.version, status=status, reason=text)
            continue
        try:
            folds[place] = analyzer.start(given.facts)
        except Exception as error:
            results[place] = _crash(analyzer, error, "start")
    _feed(analyzers, given, folds, results)
    for place, fold in folds.items():
        analyzer = analyzers[place]
        try:
            result: object = fold.finish()
        except Exception as error:
            results[place] = _crash(analyzer, error, "finish")
            continue
        if isinstance(result, AnalyzerResult) and result.name == analyzer.name:
            results[place] = result
        else:
            results[place] = failed_result(analyzer.name, AnalyzerStatus.CRASHED, "the result is not its own")
    return tuple(results[place] for place in range(len(analyzers)))


def _feed(
    analyzers: Sequence[Analyzer], given: AnalysisInput, folds: dict[int, Fold], results: dict[int, AnalyzerResult]
) -> None:
    """Show all events to all folds; one that crashes moves from `folds` to `results`, all do when reading fails."""
    takers = list(folds.items())
    try:
        for event in given.events if folds else ():
            for place, fold in takers:
                try:
                    fold.event(event)
                except Exception as error:
                    results[place] = _crash(analyzers[place], error, f"event {event.kind}")
                    del folds[place]
            if len(takers) != len(folds):
                takers = list(folds.items())
    except Exception as error:
        for place in folds:
            results[place] = _crash(analyzers[place], error, "the events")
        folds.clear()


def _crash(analyzer: Analyzer, error: Exception, step: str) -> AnalyzerResult:
    """Only the type is told: messages of exceptions quote paths of this machine and bytes of the target."""
    if isinstance(error, CheckCrashed):
        detail = f"{type(error.__cause__ or error).__name__} in check {error.check}"
    else:
        detail = f"{type(error).__name__} in {step}"
    return failed_result(analyzer.name, AnalyzerStatus.CRASHED, detail)


def _refusal(analyzer: Analyzer, given: AnalysisInput) -> tuple[AnalyzerStatus, str] | None:
    try:
        reason = analyzer.availability()
    except Exception as error:
        return AnalyzerStatus.CRASHED, f"{type(error).__name__} in availability"
    if reason is not None:
        return AnalyzerStatus.UNAVAILABLE, reason
    if given.material not in analyzer.materials:
        needed = " or ".join(sorted(analyzer.materials))
        return AnalyzerStatus.SKIPPED, f"it needs {needed}, and this is {given.material}"
    return None


def failed_result(name: str, kind: AnalyzerStatus, detail: str) -> AnalyzerResult:
    """The result of an analyzer that could not give one: `kind` is TIMEOUT, CRASHED or ERROR; `detail` one line.

    Raises ValueError for another kind.
    """
    if not kind.failed:
        raise ValueError(f"{kind} is not a failure")
    analyzer = registry.find(name)
    version = analyzer.version if analyzer is not None else ""
    said = " ".join(detail.split()) or "no detail"
    return AnalyzerResult(name=name, version=version, status=kind, reason=f"{kind.lower()}: {said}")


def in_order(selected: Sequence[Selected], results: Mapping[str, AnalyzerResult]) -> tuple[AnalyzerResult, ...]:
    """The results in the operator's order, each marked with how it was selected; a missing one has crashed."""
    ordered: list[AnalyzerResult] = []
    for choice in selected:
        result = results.get(choice.name)
        if result is None:
            result = failed_result(choice.name, AnalyzerStatus.CRASHED, "no result came back")
        elif result.name != choice.name:
            result = failed_result(choice.name, AnalyzerStatus.CRASHED, "the result carries another name")
        ordered.append(result.model_copy(update={"selection": choice.selection}))
    return tuple(ordered)


async def run_selected(selected: Sequence[Selected], executor: Executor) -> tuple[AnalyzerResult, ...]:
    """Have the executor run all of `selected`; results come back in that order, whatever finished first."""
    return in_order(selected, await executor([choice.name for choice in selected]))
