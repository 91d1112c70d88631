"""The sample servers with one fault each: every mode is labelled, has its twin, and every class is there in number."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from harness.model.payload import PayloadClass

SERVERS = Path(__file__).parents[1] / "servers"
SETS = ("beside", "held_out")
#: What only a server over HTTP can have.
OVER_HTTP = {PayloadClass.MISSING_AUTHENTICATION, PayloadClass.DNS_REBINDING}
#: How a mode is written in JavaScript: by itself, or with its twin. Unit tests do without Node.
MODE = re.compile(r'^  (?:"([a-z-]+)": \[|\.\.\.pair\("([a-z-]+)")', re.MULTILINE)


def labels(folder: str) -> dict[str, dict[str, list[str]]]:
    return tomllib.loads((SERVERS / folder / "faults.toml").read_text())


def modes_of_python(folder: str) -> set[str]:
    words = [sys.executable, str(SERVERS / folder / "faults.py"), "--list"]
    return set(subprocess.run(words, capture_output=True, text=True, check=True).stdout.split())


def modes_of_node(folder: str) -> set[str]:
    found = MODE.findall((SERVERS / folder / "faults.mjs").read_text())
    paired = {pair for _, pair in found if pair}
    return {single for single, _ in found if single} | paired | {f"{name}-benign" for name in paired}


@pytest.mark.parametrize("folder", SETS)
def test_every_mode_is_labelled_and_has_a_twin(folder: str) -> None:
    known = {"python": modes_of_python(folder), "node": modes_of_node(folder)}
    for language, modes in labels(folder).items():
        assert set(modes) | {f"{name}-benign" for name in modes} == known[language]


def test_each_class_is_there_twice_and_in_both_languages() -> None:
    everywhere: Counter[str] = Counter()
    languages: dict[str, set[str]] = {}
    for folder in SETS:
        for language, modes in labels(folder).items():
            for classes in modes.values():
                everywhere.update(classes)
                for name in classes:
                    languages.setdefault(name, set()).add(language)
    wanted = {kind.value for kind in set(PayloadClass) - OVER_HTTP}
    assert {name for name, count in everywhere.items() if count >= 2} == wanted
    assert {name for name in wanted if languages[name] != {"python", "node"}} == set()
    assert sum(len(modes) for folder in SETS for modes in labels(folder).values()) >= 40
