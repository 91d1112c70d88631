"""The plan of a run at level `none`, further attempts included: start, read what is declared, stop; if need be, again.

The conversation: each attempt is START, DISCOVER, STOP. After one that was not answered, the remedies are asked in
order; the first adjustment that was not tried becomes the next attempt. What an earlier attempt would still have
suggested is kept, for when the later ones lead nowhere. The way of a server that starts at once is as short as ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.model.base import canonical_json
from harness.model.options import RunOptions
from harness.model.plan import Action, ActionKind, Adjustment, Observation
from harness.probing.starting.case import Case, Proposal, StartFacts, case_of
from harness.probing.starting.material import Material

if TYPE_CHECKING:
    from harness.probing.starting.remedies import Remedy

#: How often a target is started at most.
MAX_ATTEMPTS = 8
#: Attempts after one that started and listed no tools.
MAX_FOR_TOOLS = 2
#: Why a start follows when no more is to be found out by it.
AGAIN = "the start that was answered, again"


class StartPlanner:
    """Made for one run. `next(observation)` answers with the next action; None ends the run.

    `hold`: a session that was answered is left open, for what follows; one that is over by then is started again.
    """

    def __init__(self, options: RunOptions, facts: StartFacts, *, hold: bool = False) -> None:
        self._facts = facts
        self._hold = hold
        self._held = False
        self._material = facts.material or Material(facts.seed)
        self._stock_client = options.stock_client
        self._number = 0
        self._attempt = 0
        self._current = Proposal(Adjustment(), "")
        self._tried = {_key(Adjustment())}
        self._whys: set[str] = set()
        self._cases: list[tuple[Case, tuple[Remedy, ...]]] = []
        self._variables: tuple[str, ...] | None = None
        self._headers: tuple[str, ...] = ()
        self._answered: tuple[Adjustment, int] | None = None
        self._telling: Case | None = None
        self._for_tools = 0
        self._steps = self._conversation()
        self._seen: Observation | None = None

    def next(self, observation: Observation | None) -> Action | None:
        """The action to do now, given what came of the last one (None at the beginning)."""
        self._seen = observation
        return next(self._steps, None)

    def _conversation(self) -> Iterator[Action]:
        if self._stock_client:
            yield self._action(ActionKind.STOCK_CLIENT, session="stock-client", background=True)
        proposal: Proposal | None = self._current
        while proposal is not None:
            self._current = proposal
            self._attempt += 1
            yield from self._try()
            proposal = None
            if self._unfinished():
                if self._wants_source():
                    yield self._action(ActionKind.READ_SOURCE)
                    self._learn(self._seen.variables if self._seen else ())
                proposal = self._propose()
                if proposal is None and self._variables is None and self._facts.readable and self._source_may_tell():
                    yield self._action(ActionKind.READ_SOURCE)
                    self._learn(self._seen.variables if self._seen else ())
                    proposal = self._propose()
        if self._hold and self._answered is not None and not self._held:
            yield from self._reopen(self._answered[0])
        yield from self._conclude()

    def _reopen(self, adjustment: Adjustment) -> Iterator[Action]:
        """The attempt that was answered, once more: the session that goes on."""
        yield self._action(ActionKind.START, adjustment=adjustment, attempt=self._attempt + 1, why=AGAIN)
        if self._seen is not None and self._seen.usable:
            yield self._action(ActionKind.DISCOVER)

    def _try(self) -> Iterator[Action]:
        """One attempt; what it showed becomes the newest case."""
        adjustment = self._current.adjustment
        yield self._action(
            ActionKind.START,
            adjustment=adjustment,
            attempt=self._attempt,
            why=self._current.why,
            guess=self._current.guess,
        )
        started = self._seen
        if started is None or not started.usable:
            self._attempt -= 1  # it never ran: the sandbox could not make what was to be tried
            self._result = started
            return
        yield self._action(ActionKind.DISCOVER)
        looked = self._seen
        answered = looked is not None and looked.usable
        if answered and self._attempt > 1 and self._stock_client and (looked and looked.tools):
            yield self._again(adjustment)
        if self._hold and looked is not None and _complete(looked):
            self._result, self._held = looked, True
            self._answered = adjustment, self._attempt
            return
        yield self._action(ActionKind.STOP)
        ended = self._seen
        if looked is None or ended is None:
            return
        seen = ended.model_copy(update={"usable": answered, "tools": looked.tools, "failed_lists": looked.failed_lists})
        self._result = seen
        if answered:
            self._answered = adjustment, self._attempt
        case = case_of(self._facts, adjustment, seen, self._material, self._variables or (), self._headers)
        if not self._current.guess or self._telling is None:
            self._telling = case
        if _complete(seen):
            return
        lives = answered and seen.exit_code is None and seen.exit_signal is None
        self._for_tools += answered
        if self._current.guess and self._cases and _same(case, self._cases[-1][0]):
            return  # the guess changed nothing: what was seen before counts on
        if self._cases and _refused(case):
            return  # what was added was wrong: on from where it was not there
        from harness.probing.starting.remedies import remedies_for  # a server that starts at once never pays for them

        self._cases.append((case, remedies_for(seen, lives=lives)))

    _result: Observation | None = None

    def _again(self, adjustment: Adjustment) -> Action:
        return self._action(
            ActionKind.STOCK_CLIENT,
            session="stock-client",
            background=True,
            adjustment=adjustment,
            attempt=self._attempt,
            why="the adjustments that the server was started with",
        )

    def _unfinished(self) -> bool:
        """True when another attempt may be made."""
        if self._attempt >= MAX_ATTEMPTS or not self._cases:
            return False
        if self._result is not None and _complete(self._result):
            return False
        return self._for_tools <= MAX_FOR_TOOLS

    def _wants_source(self) -> bool:
        """True when the output names settings in a form that only the source completes."""
        if self._variables is not None or not self._facts.readable:
            return False
        from harness.probing.starting.variables import incomplete

        return incomplete(self._cases[-1][0])

    def _source_may_tell(self) -> bool:
        """True when a remedy for the newest case works with what the source reads."""
        from harness.probing.starting.remedies import FROM_SOURCE

        return not FROM_SOURCE.isdisjoint(self._cases[-1][1])

    def _learn(self, names: tuple[str, ...]) -> None:
        self._variables = names
        self._headers = self._seen.headers if self._seen else ()
        self._cases = [
            (case_of(case.facts, case.adjustment, case.seen, self._material, names, self._headers), remedies)
            for case, remedies in self._cases
        ]

    def _propose(self) -> Proposal | None:
        """The first adjustment that was not tried, by what the newest attempt showed, else by what earlier ones did.

        What an earlier attempt suggested is not tried again in another combination, and not at all once the server
        answered.
        """
        for case, remedies in reversed(self._cases):
            newest = case is self._cases[-1][0]
            if not newest and self._cases[-1][0].seen.usable:
                break
            for remedy in remedies:
                for proposal in remedy(case):
                    key = _key(proposal.adjustment)
                    if key not in self._tried and (newest or proposal.why not in self._whys):
                        self._tried.add(key)
                        self._whys.add(proposal.why)
                        return proposal
        return None

    def _conclude(self) -> Iterator[Action]:
        """Say what it took to start, or why it did not; nothing where the first attempt was all."""
        if self._answered is not None and self._answered[1] == 1:
            return
        from harness.probing.starting.obstacles import obstacle_of
        from harness.probing.starting.words import differences, ending

        if self._answered is not None:
            adjustment, attempt = self._answered
            if attempt > 1 and self._cases:
                first = ending(self._cases[0][0])
                note = f"it {first} when started as its package says; attempt {attempt} had {differences(adjustment)}"
                yield self._action(ActionKind.CONCLUDE, notes=(note,))
            return
        telling = self._telling
        if telling is None:
            return
        found = obstacle_of(telling.text)
        if self._attempt == 1 and found is None:
            return  # the finding about the early end has its last words
        tries = f"{self._attempt} attempts" if self._attempt > 1 else "1 attempt"
        yield self._action(
            ActionKind.CONCLUDE,
            obstacle=found[0] if found is not None else None,
            what=found[1] if found is not None else "",
            notes=(f"no answer in {tries}; with {differences(telling.adjustment)} it {ending(telling)}",),
        )

    def _action(self, kind: ActionKind, **details: object) -> Action:
        self._number += 1
        return Action.model_validate({"number": self._number, "kind": kind, **details})


_REFUSAL = re.compile(
    r"(?:unrecognized|unknown|unexpected|invalid|no such)(?: extra)? (?:arguments?|options?|choice|parameters?):?"
    r" ([^\n]{1,200})",
    re.IGNORECASE,
)


def _refused(case: Case) -> bool:
    """True when a complaint names an argument that an attempt added."""
    added = {part.partition("=")[0] for part in case.adjustment.arguments}
    return any(
        part in added for text in _REFUSAL.findall(case.text) for part in re.split(r"[\s'\"(),=\[\]]+", text) if part
    )


def _complete(seen: Observation) -> bool:
    """True when nothing is left to try for."""
    return bool(seen.usable and seen.tools and not seen.failed_lists)


def _same(case: Case, other: Case) -> bool:
    """True when two attempts showed the same, numbers and times aside."""
    return case.seen.usable == other.seen.usable and re.sub(r"\d+", "", case.text) == re.sub(r"\d+", "", other.text)


def _key(adjustment: Adjustment) -> str:
    """What makes two adjustments the same attempt."""
    return canonical_json(adjustment.model_dump(mode="json", exclude={"patience"}))
