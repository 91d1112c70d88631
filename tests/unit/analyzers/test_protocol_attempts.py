"""Several starts of one session: one counts, failed ones are no faults, and an end comes with its last words."""

from __future__ import annotations

from typing import Any

import pytest
from recordings_sample import Tape

from harness.analyzers.engine import run_one
from harness.model.plan import Obstacle
from harness.model.recording import Anomaly, AttemptEvent, DeadlineEvent, ObstacleEvent, StderrEvent
from harness.model.result import AnalyzerResult, AnalyzerStatus


class Attempts(Tape):
    """A tape on which the session is started again."""

    def attempt(self, number: int, *, guess: bool = False) -> Attempts:
        self.add(AttemptEvent(phase="start", session=self.session, number=number, argv=("clock",), guess=guess))
        self.enter("start")
        return self

    def words(self, text: str) -> Attempts:
        self.add(StderrEvent(phase="stop", session=self.session, size=len(text), kept=len(text), sha256="", tail=text))
        return self

    def fails(self, code: int = 1) -> Attempts:
        self.ask("initialize").line(b"Usage: clock", Anomaly.NOT_JSON).stop(code, by="target")
        return self

    def works(self) -> Attempts:
        self.handshake().enter("discover").tools().stop()
        return self


def judge(tape: Tape, **facts: Any) -> AnalyzerResult:
    return run_one("protocol", tape.input(**facts))


def begin() -> Attempts:
    tape = Attempts()
    tape.start()
    return tape


def test_a_failed_attempt_before_one_that_works_is_no_fault() -> None:
    result = judge(begin().fails().attempt(2).fails(2).attempt(3).works())
    assert result.findings == () and result.status is AnalyzerStatus.COMPLETED
    assert result.coverage.subjects["sessions"].analyzed == 1 and result.coverage.gaps() == ()


def test_an_attempt_that_was_answered_counts_before_a_later_one_that_was_not() -> None:
    result = judge(begin().works().attempt(2).fails())
    assert result.findings == () and result.status is AnalyzerStatus.COMPLETED


def test_where_none_was_answered_the_last_that_was_no_guess_counts() -> None:
    tape = begin().fails(1).words("A_KEY is required").attempt(2).fails(7).words("no database")
    result = judge(tape.attempt(3, guess=True).fails(64).words("unknown command mcp"))
    early = [finding for finding in result.findings if finding.rule_id == "protocol.early-exit"]
    assert len(early) == 1 and [evidence.text for evidence in early[0].evidence] == [
        "the process ended with exit code 7",
        "no database",
    ]
    assert "exit code 7" in result.reason


def test_silence_stays_the_finding_when_a_guess_ends_early() -> None:
    tape = begin()
    tape.ask("initialize").add(DeadlineEvent(phase="start", what="initialize", seconds=60.0))
    tape.stop()
    result = judge(tape.attempt(2, guess=True).fails(2))
    assert [finding.rule_id for finding in result.findings] == ["protocol.hang"]


def test_last_words_are_escaped_and_bounded() -> None:
    result = judge(begin().fails().words("\x1b[31m" + "x" * 5000 + "\x1b[0m the end"))
    (finding,) = [finding for finding in result.findings if finding.rule_id == "protocol.early-exit"]
    words = finding.evidence[-1].text
    assert finding.evidence[-1].kind == "stderr" and "\x1b" not in words and len(words) <= 501


@pytest.mark.parametrize("obstacle", list(Obstacle))
def test_what_the_sandbox_lacks_is_a_reason_and_no_finding(obstacle: Obstacle) -> None:
    tape = Attempts()
    tape.start().ask("initialize").stop(1, by="target")
    tape.start("stock-client").ask("initialize").stop(1, by="target")
    tape.add(ObstacleEvent(phase="stop", obstacle=obstacle, what="acme\x1b"))
    result = judge(tape)
    assert result.findings == () and result.status is AnalyzerStatus.PARTIAL
    assert "acme\\u001B" in result.reason
    assert any("acme" in gap and "reason limit" in gap for gap in result.coverage.gaps())


def test_an_obstacle_excuses_nothing_in_a_server_that_answered() -> None:
    tape = begin().works()
    tape.add(ObstacleEvent(phase="stop", obstacle=Obstacle.NETWORK))
    assert judge(tape).status is AnalyzerStatus.COMPLETED


def test_a_rule_is_told_of_the_stock_client_only_where_the_main_session_does_not_show_it() -> None:
    noisy = begin()
    noisy.line(b"banner", Anomaly.NOT_JSON)
    noisy.works()
    noisy.start("stock-client").line(b"banner", Anomaly.NOT_JSON).say(
        {"jsonrpc": "2.0", "id": 9, "result": {}}, Anomaly.UNKNOWN_ID
    )
    noisy.stop()
    result = judge(noisy)
    assert {(finding.rule_id, finding.location.phase) for finding in result.findings} == {
        ("protocol.wrong-id", "stock-client"),
        ("protocol.non-json-output", None),
    }
