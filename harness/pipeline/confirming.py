"""The oracle's judgement as one more result beside the analyzers': the pipeline joins it, live and in a replay."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from harness.analyzers.base import AnalysisFacts, AnalyzerBase, Fold, Rule
from harness.model.errors import BundleError
from harness.model.options import ActiveLevel
from harness.model.plan import Action
from harness.model.recording import Manifest
from harness.probing.oracle import NAME as NAME
from harness.probing.oracle import Confirmation, call_digest, rule_ids

PLAN = "plan.jsonl"
#: A plan longer than this is none of ours: some thousand actions of at most some hundred KiB.
MAX_LINE_BYTES = 4 << 20
MAX_ACTIONS = 100_000

RULES = tuple(Rule(id=rule, title=title) for rule, title in rule_ids().items())


class ConfirmationAnalyzer(AnalyzerBase):
    """Runs the oracle over a recording. `planned`: digests of the calls in the plan of the same bundle."""

    name = NAME
    description = "what calls did, and what of it is proven"
    rules = RULES

    def __init__(self, planned: frozenset[str]) -> None:
        self._planned = planned

    def start(self, facts: AnalysisFacts) -> Fold:
        """Begin to judge. Raises ValueError without a manifest."""
        if facts.manifest is None:
            raise ValueError("there is no recording")
        return Confirmation(facts.manifest, self._planned)


def joins(manifest: Manifest) -> bool:
    """Whether a run is one in which calls are made, so that their judgement is part of its result."""
    return manifest.options.active is ActiveLevel.TOOL_CALLS


def planned_calls(bundle: Path) -> frozenset[str]:
    """The digests of all calls in a bundle's plan; what follows a damaged line does not count.

    Raises BundleError when there is a plan that can't be read.
    """
    return frozenset(call_digest(action.call) for action in planned_actions(bundle) if action.call is not None)


def planned_actions(bundle: Path) -> tuple[Action, ...]:
    """The actions of a bundle's plan in order, up to a damaged line. Raises BundleError."""
    path = bundle / PLAN
    if not path.is_file():
        return ()
    actions: list[Action] = []
    try:
        with path.open("rb") as file:
            while len(actions) < MAX_ACTIONS and (line := file.readline(MAX_LINE_BYTES)):
                try:
                    actions.append(Action.model_validate_json(line))
                except ValidationError:
                    break
    except OSError as error:
        raise BundleError(f"{PLAN} can't be read: {error.strerror}") from error
    return tuple(actions)
