"""The seccomp generator, and that what is committed is what it makes."""

from __future__ import annotations

import copy
import hashlib
import json

import pytest

from harness.sandbox.image_spec import sandboxes_dir
from harness.sandbox.seccomp import DENIED, derive, profile_json, render

FOLDER = sandboxes_dir() / "seccomp"
BASE = json.loads((FOLDER / "upstream.json").read_text())


def test_the_committed_profile_is_the_generated_one() -> None:
    assert (FOLDER / "target.json").read_text() == render(derive(BASE))
    assert json.loads(profile_json()) == derive(BASE)


def test_the_base_is_the_one_its_note_names() -> None:
    digest = hashlib.sha256((FOLDER / "upstream.json").read_bytes()).hexdigest()
    assert digest in (FOLDER / "ORIGIN.md").read_text()


def test_it_denies_by_default_and_knows_two_native_architectures() -> None:
    profile = derive(BASE)
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    assert profile["archMap"] == [
        {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []},
        {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": []},
    ]


def test_nothing_denied_is_named_and_no_rule_asks_for_a_capability() -> None:
    rules = derive(BASE)["syscalls"]
    named = {name for rule in rules for name in rule["names"]}
    assert not named & {name for names in DENIED.values() for name in names}
    assert {"bpf", "mount", "setns", "ptrace"} <= {name for block in BASE["syscalls"] for name in block["names"]}
    assert all("caps" not in rule.get("includes", {}) and "excludes" not in rule for rule in rules)


def test_it_only_takes_away() -> None:
    allowed = {n for b in BASE["syscalls"] if b["action"] == "SCMP_ACT_ALLOW" for n in b["names"]}
    ours = {n for r in derive(BASE)["syscalls"] if r["action"] == "SCMP_ACT_ALLOW" for n in r["names"]}
    assert ours < allowed


@pytest.mark.parametrize("field", ["action", "clone", "mask"])
def test_a_base_that_is_not_what_it_is_taken_for_is_refused(field: str) -> None:
    base = copy.deepcopy(BASE)
    if field == "action":
        base["defaultAction"] = "SCMP_ACT_ALLOW"
    elif field == "clone":
        base["syscalls"][0]["names"].append("clone")
    else:
        rule = next(b for b in base["syscalls"] if b["names"] == ["clone"])
        rule["args"][0]["value"] = 0
    with pytest.raises(ValueError, match="base profile"):
        derive(base)
