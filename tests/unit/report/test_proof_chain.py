"""The reports of a proof: call, syscall and state of each try, and what a server can do by design, apart."""

from __future__ import annotations

from dataclasses import replace

from report_samples import SAFE

from harness.report import json as json_report
from harness.report import summary, table
from tests.unit.probing.oracle.scripts import Script


def test_summary_and_table_tell_call_syscall_and_state() -> None:
    findings = Script().tape().judge().findings
    result = SAFE.model_copy(update={"findings": findings})
    text = " ".join(summary.render(result, width=160).split())
    for link in ("boundary (event 2)", "call c4 (event", "-> syscall (event", "-> state (event", "control c2 (event"):
        assert link in text
    assert "again" not in text and "documented use c3" in text and "confirmed 2 times" in text
    rows = " ".join(table.render(result, width=200).split())
    assert "syscall" in rows and "state" in rows
    assert '"kind": "syscall"' in json_report.render(result)


def test_what_it_can_do_by_design_has_a_section_of_its_own() -> None:
    findings = replace(Script().change(3, works=True)).tape().judge().findings
    result = SAFE.model_copy(update={"findings": findings})
    for text in (summary.render(result, width=120), table.render(result, width=120)):
        flat = " ".join(text.split())
        assert "hat this server can do by design" in flat
        assert "Findings none" in flat or "Findings: none" in flat
        assert "capability.commands" in flat
