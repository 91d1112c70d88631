"""What is run for the score: one trial for each version of a server, and a few kinds of trial for the benign ones.

Pairs and unfixed servers are probed with the tools allowed in which the fault is known to be (`--all-tools`: every
tool); benign ones are run at level safe, with their useful tool allowed, and with all of their tools allowed.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import dataclass
from typing import Any, Literal

from tests.survey.entries import CORPUS, Start, read_corpus

Kind = Literal["vulnerable", "fixed", "unfixed", "safe", "useful", "all"]


@dataclass(frozen=True)
class Trial:
    """One run. `classes`: of the known fault, any of which is right; `allow`: values of `--allow`. `open_fault`: the
    entry of another known fault of the same class, which a version that mended this one still has. `answers`: a file of
    tests/data/answers with what a service that the server needs says to benign calls.
    """

    start: Start
    kind: Kind
    classes: tuple[str, ...]
    allow: tuple[str, ...]
    open_fault: str = ""
    answers: str = ""

    @property
    def name(self) -> str:
        """The file name of its result."""
        return f"{self.start.name}-{self.kind}".replace("/", "_")

    @property
    def digest(self) -> str:
        """A digest of all that it is made of (16 hex digits)."""
        fields = [self.start.digest, self.kind, self.allow, *filter(None, [self.answers])]
        return hashlib.sha256(json.dumps(fields).encode()).hexdigest()[:16]

    @property
    def options(self) -> list[str]:
        """The words of the level for `harness run`."""
        if not self.allow:
            return ["--active", "safe"]
        answers = ["--respond", str(CORPUS.parent / "answers" / self.answers)] if self.answers else []
        return [*answers, "--active", "tool-calls", *(word for name in self.allow for word in ("--allow", name))]


def read_trials(*, all_tools: bool = False) -> list[Trial]:
    """Every trial, in the order of the corpus: faulty ones first."""
    entries: dict[str, dict[str, Any]] = {e["id"]: e for e in tomllib.loads(CORPUS.read_text())["server"]}
    starts, _ = read_corpus()
    trials: list[Trial] = []
    for start in starts:
        entry = entries[start.id]
        if entry["kind"] == "benign":
            trials.append(Trial(start, "safe", (), ()))
            if "useful_tool" in entry:
                trials.append(Trial(start, "useful", (), (entry["useful_tool"],)))
            trials.append(Trial(start, "all", (), ("*",)))
        elif "classes" in entry:
            first = start.target.endswith(entry["versions"][0])
            kind: Kind = "unfixed" if entry["kind"] == "unfixed" else "vulnerable" if first else "fixed"
            tools = entry.get("tools_at_fault", ())
            allow = ("*",) if all_tools or not tools else tuple(tools)
            version = start.target.rpartition("==" if "==" in start.target else "@")[2]
            open_fault = entry.get("open_faults", {}).get(version, "")
            trials.append(Trial(start, kind, tuple(entry["classes"]), allow, open_fault, entry.get("answers", "")))
    return sorted(trials, key=lambda trial: trial.start.kind == "benign")
