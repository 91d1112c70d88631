"""The gate on the labelled corpora: bounds on our own, the level reached on the other. `make gate` shows the tables."""

from __future__ import annotations

import pytest
from definitions_gate import MAX_FALSE_POSITIVES, MIN_RECALL, Outcome, held, own, rates


@pytest.fixture(scope="module")
def mine() -> list[Outcome]:
    return own()


def test_recall_and_false_positives_hold_the_gate(mine: list[Outcome]) -> None:
    found = rates(mine)
    assert found.recall is not None
    assert found.recall >= MIN_RECALL, [o.name for o in mine if o.malicious and not o.found]
    for klass in {o.klass for o in mine if o.malicious}:
        recall = rates([o for o in mine if o.klass == klass]).recall
        assert recall is not None
        assert recall >= MIN_RECALL - 0.05, klass
    negatives = rates([o for o in mine if o.klass.startswith("hard-negative")])
    assert negatives.false_positives is not None
    assert negatives.false_positives <= MAX_FALSE_POSITIVES, [o.name for o in mine if not o.malicious and o.dangerous]


def test_what_must_be_dangerous_is(mine: list[Outcome]) -> None:
    wanted = [o for o in mine if o.wanted]
    assert sum(o.dangerous for o in wanted) / len(wanted) >= MIN_RECALL, [o.name for o in wanted if not o.dangerous]


def test_benign_entries_are_wholly_silent(mine: list[Outcome]) -> None:
    assert [o.name for o in mine if o.klass.startswith("benign") and o.found] == []


#: What was reached on the half that nobody read: one of its 70 honest entries is called dangerous.
UNREAD_RECALL = 0.88
UNREAD_FALSE_POSITIVES = 0.015


def test_the_level_reached_on_entries_written_by_others_is_kept() -> None:
    """Not the goal but what is reached: raise the numbers with the checks, never tune on the unread half."""
    read, unread = (rates(half) for half in held())
    assert (read.recall or 0) >= 0.99
    assert read.false_positives == 0
    assert (unread.recall or 0) >= UNREAD_RECALL
    assert (unread.false_positives or 0) <= UNREAD_FALSE_POSITIVES
