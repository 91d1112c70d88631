"""Lives with a later clock: what is done unasked in two of them and in no other is told, all else is not."""

from __future__ import annotations

import pytest
from flow_sample import Net, behind, rules

from harness.analyzers.behavior import later
from harness.analyzers.behavior.later import LIFE, Dates
from harness.model.finding import EvidenceLevel, Severity
from harness.model.recording import AttemptEvent, Origin

RULE = "behavior.evasion.waits-for-date"
DAYS = 400


def life(net: Net, session: str, does: str, *, days: int, phase: str = "start") -> None:
    net.session, net.phase = session, "start"
    net.add(AttemptEvent(phase="start", session=session, number=1, argv=("server",), days=days))
    net.begin()
    net.enter(phase)
    for word in does.split():
        kind, _, what = word.partition(":")
        if kind == "post":
            net.post(what, b"{}")
        elif kind == "run":
            net.spawn(20 + len(net.events), what, what)
        elif kind == "read":
            net.open(what, decoy=True)
    net.closed()


def lives(first: str, second: str, third: str = "", *, days: int = DAYS, phase: str = "start") -> Net:
    """What it does with the right time, in the first life with a later clock, and in the one that is sure."""
    net = behind().closed()
    for session, does, ahead in (("stock-client", first, 0), ("second-session", second, days), (LIFE, third, days)):
        life(net, session, does, days=ahead, phase=phase)
    return net


@pytest.mark.parametrize(
    ("first", "second", "third", "told"),
    [
        ("", "post:x.test", "post:x.test", ["host"]),
        ("post:a.test", "post:a.test post:b.test run:/usr/bin/id", "run:/usr/bin/id post:b.test", ["host", "program"]),
        ("", "read:/home/user/.ssh/id_rsa", "read:/home/user/.ssh/id_rsa", ["secret"]),
        ("post:a.test run:/usr/bin/id", "post:a.test run:/usr/bin/id", "post:a.test", []),  # it does so at any time
        ("", "post:x.test", "", []),  # it went by something else than the clock, or by chance
        ("", "", "post:x.test", []),
        ("post:a.test", "", "", []),
        ("", "post:one.test", "post:other.test", []),  # another name at each start
    ],
)
def test_what_is_done_with_a_later_clock_alone_is_told(first: str, second: str, third: str, told: list[str]) -> None:
    result = lives(first, second, third).judge("behavior.evasion")
    found = [finding for finding in result.findings if finding.rule_id == RULE]
    assert len(found) == len(told)
    assert {(f.severity, f.evidence_level) for f in found} <= {(Severity.MEDIUM, EvidenceLevel.DYNAMIC)}


def test_lives_with_the_right_time_are_no_later_ones() -> None:
    assert RULE not in rules(lives("", "post:x.test", "post:x.test", days=0).judge("behavior.evasion"))


def test_what_a_call_asked_for_is_left_to_others() -> None:
    net = lives("", "post:x.test", "post:x.test", phase="call:fetch:0123456789abcdef")
    assert RULE not in rules(net.judge("behavior.evasion"))


def test_what_the_gate_plants_under_names_of_one_life_is_no_doing_of_the_target() -> None:
    net = behind().closed()
    life(net, "again-1", "", days=DAYS)
    net.write("/home/user/private/statement-7718f6c9.txt", decoy=True, by=Origin.GATE)
    dates = Dates()
    for event in net.events:
        dates.take(event)
    assert dates.alone() == {}


def test_what_was_done_is_known_while_it_is_recorded() -> None:
    dates = Dates()
    for event in lives("post:a.test", "post:a.test post:b.test").events:
        dates.take(event)
    assert list(dates.alone()) == [("host", "b.test")] and dates.later(LIFE) and not dates.later("stock-client")


def test_where_more_was_done_than_is_remembered_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(later, "MAX_KNOWN", 1)
    assert RULE not in rules(lives("", "post:x.test", "post:x.test").judge("behavior.evasion"))
