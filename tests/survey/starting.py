"""Starting one entry with the installed command, and the few facts of it that are kept."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.survey import fixtures
from tests.survey.entries import Start

TIMEOUT_SECONDS = 600


def start(entry: Start) -> dict[str, Any]:
    """Run it and return what is kept; a start that failed says why under `reason`."""
    with tempfile.TemporaryDirectory(prefix="survey-") as folder:
        planted = Path(folder) / "planted"
        planted.mkdir()
        words = entry.options(fixtures.make(entry.plant, planted))
        bundle = Path(folder) / "bundle"
        options = [
            "--format",
            "json",
            "--no-progress",
            "--no-stock-client",
            "--network",
            "none",
            "--timeout",
            "150",
            "--bundle",
            str(bundle),
        ]
        done = subprocess.run(
            [str(Path(sys.executable).with_name("harness")), "run", *words, *options],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    return kept(entry, done.returncode, done.stdout, done.stderr)


def kept(entry: Start, code: int, output: str, errors: str) -> dict[str, Any]:
    """The facts of a start that hold on every machine and at any time."""
    facts: dict[str, Any] = {"id": entry.id, "target": entry.target, "fields": entry.digest, "completed": False}
    if code not in (0, 1, 3):
        return {**facts, "reason": (errors.strip().splitlines() or ["it said nothing"])[-1][:400]}
    result = json.loads(output)
    names = [str(tool.get("name")) for tool in result["surface"]["tools"] if isinstance(tool, dict)]
    lists = result["coverage"].get("lists", {})
    facts["completed"] = bool(lists) and lists["discovered"] == lists["analyzed"] and bool(names)
    facts |= {
        "verdict": result["verdict"],
        "tools": len(names),
        "tool_names": hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()[:16],
        "protocol": result["surface"]["protocol_version"],
        "findings": sorted({finding["rule_id"] for finding in result["findings"]}),
    }
    if not facts["completed"] or result["status"] != "COMPLETED":
        facts["reason"] = (result["reasons"] or [result["headline"]])[0][:400]
    return facts


def same(kept_facts: dict[str, Any], now: dict[str, Any]) -> bool:
    """Do two starts agree? Whether it was completed, and what was declared."""
    return all(kept_facts.get(key) == now.get(key) for key in ("fields", "completed", "tools", "tool_names"))
