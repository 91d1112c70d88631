"""One trial: the installed command, and the few facts of its result that are kept."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.score.trials import Trial
from tests.survey import fixtures

ROOT = Path(__file__).resolve().parent.parent.parent
#: A run ends by itself long before; this is for one that does not.
TIMEOUT_SECONDS = 900
RUN_SECONDS = 300
#: How the command says that a tool to be allowed does not exist.
USAGE = 2
NO_SUCH_TOOL = "the server has no such tool"
EVERY_TOOL = ("--active", "tool-calls", "--allow", "*")


def product_digest() -> str:
    """A digest (12 hex digits) of everything that a result depends on: program, payloads, images."""
    digest = hashlib.sha256()
    for folder in ("harness", "payloads", "sandboxes"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def run(trial: Trial, bundles: Path | None = None, again: int = 0) -> dict[str, Any]:
    """Run it and return what is kept; one that failed says why under `reason`. `bundles`: where recordings stay.

    What was confirmed is reproduced `again` times from the recording; `reproduced` tells how often each finding was.
    """
    with tempfile.TemporaryDirectory(prefix="score-") as folder:
        planted = Path(folder) / "planted"
        planted.mkdir()
        bundle = Path(folder) / "bundle" if bundles is None else bundles / trial.name
        if bundle.is_dir():
            shutil.rmtree(bundle)
        bundle.parent.mkdir(parents=True, exist_ok=True)
        words = trial.start.options(fixtures.make(trial.start.plant, planted))
        fixed = ["--format", "json", "--no-progress", "--no-stock-client", "--timeout", str(RUN_SECONDS)]
        command = [str(Path(sys.executable).with_name("harness")), "run", *words, *fixed, "--bundle", str(bundle)]
        began = time.monotonic()
        try:
            done = _ended([*command, *trial.options])
            gone = done.returncode == USAGE and NO_SUCH_TOOL in done.stderr
            if gone:  # a fault that was mended by taking the tool away: whatever is left has to be silent
                shutil.rmtree(bundle, ignore_errors=True)
                began = time.monotonic()
                done = _ended([*command, *EVERY_TOOL])
        except subprocess.TimeoutExpired:
            return {**_head(trial), "reason": f"no end within {TIMEOUT_SECONDS} s"}
        facts = kept(trial, done.returncode, done.stdout, done.stderr, time.monotonic() - began)
        if again and any(finding["level"] == "CONFIRMED" for finding in facts.get("findings", [])):
            facts["reproduced"] = {"times": again, "findings": _reproduced(bundle, words, again, Path(folder))}
    return {**facts, "tool_gone": True} if gone else facts


def _reproduced(bundle: Path, words: list[str], times: int, folder: Path) -> dict[str, dict[str, Any]]:
    """By finding: its rule, how many `times` it was reproduced, and the first reason where it was not.

    `words`: those that the run had; the values of `--env` are secrets, which no recording holds.
    """
    secrets = [word for name, value in pairwise(words) if name == "--env" for word in (name, value)]
    found: dict[str, dict[str, Any]] = {}
    for number in range(times):
        cases = ["--cases", str(folder / f"cases-{number}")]
        command = [str(Path(sys.executable).with_name("harness")), "reproduce", str(bundle), *secrets, *cases]
        done = _ended([*command, "--format", "json", "--no-progress"])
        for one in json.loads(done.stdout or "[]"):
            facts = found.setdefault(one["finding"], {"rule": one["rule"], "reproduced": 0, "why": ""})
            facts["reproduced"] += one["outcome"] == "reproduced"
            if one["outcome"] != "reproduced":
                facts["why"] = facts["why"] or one["why"][:200]
    return found


def _ended(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)


def _head(trial: Trial) -> dict[str, Any]:
    return {"target": trial.start.target, "kind": trial.kind, "fields": trial.digest}


def kept(trial: Trial, code: int, output: str, errors: str, seconds: float) -> dict[str, Any]:
    """The facts of a trial: verdict, findings above INFO, what was called, how long it took."""
    facts = {**_head(trial), "exit": code, "seconds": round(seconds, 1)}
    if code not in (0, 1, 3):
        return {**facts, "reason": (errors.strip().splitlines() or ["it said nothing"])[-1][:300]}
    result = json.loads(output)
    coverage = result["coverage"]
    return facts | {
        "status": result["status"],
        "verdict": result["verdict"],
        "headline": result["headline"][:300],
        "reasons": [reason[:300] for reason in result["reasons"][:5]],
        "called": {k: v for k, v in coverage.items() if k.startswith(("tools", "calls"))},
        "recorder": result["recording"]["recorder"],
        "findings": [
            {
                "rule": finding["rule_id"],
                "severity": finding["severity"],
                "level": finding["evidence_level"],
                "tool": finding["location"].get("tool"),
                "field": finding["location"].get("field"),
                "title": finding["title"][:160],
                "payload": (finding.get("confirmation") or {}).get("payload"),
            }
            for finding in result["findings"]
            if finding["severity"] != "INFO"
        ],
    }
