"""The case for a maintainer: complete, runnable as messages, and no word of a target gets out of its span."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from harness.model.payload import EffectKind
from harness.model.reproduction import ProofCase, Reproduction, Tried
from harness.model.result import TargetFacts
from harness.report.advisory import advisory, needed, planted, readme, steps
from tests.unit.probing.oracle.scripts import Script
from tests.unit.probing.oracle.test_oracle_again import recorded


def case(**target: str) -> ProofCase:
    finding = Script().tape().judge().findings[0]
    found = recorded()
    return ProofCase(
        finding=finding,
        target=TargetFacts(**{"ref": "npm:x@1", "kind": "npm", "name": "x", "version": "1", **target}),
        argv=("node", "/app/x.js", "/home/user/my notes"),
        boundary=found.steps[0].boundary,
        steps=found.steps,
        control=found.control,
        world=found.world,
        outcome=Reproduction(finding=finding.id, outcome=Tried.REPRODUCED, why="created seen in the kernel record"),
    )


def test_a_draft_has_all_its_parts() -> None:
    text = advisory(case(digest="d" * 64))
    for part in ("Affected: `x 1`", "CWE-78", "## What", "## Impact", "## Steps", "## Evidence", "## Remedy"):
        assert part in text
    assert "'/home/user/my notes'" in text and "and again in a fresh sandbox" in text
    assert "the server creates `/home/user/private/made-" in text


def test_steps_are_messages_in_order() -> None:
    sent = [json.loads(line) for line in steps(case()).splitlines()]
    assert [message.get("id") for message in sent] == [1, None, 2]
    assert sent[2]["params"]["arguments"]["name"].startswith("x; touch ")


def test_only_what_the_effects_speak_of_is_planted() -> None:
    one = case()
    assert planted(one) == []
    secret = one.world.items[2].secret
    effect = one.steps[0].effects[0].model_copy(update={"kind": EffectKind.DISCLOSED, "path": "", "text": secret})
    call = one.steps[0].model_copy(update={"effects": (effect,), "params": {"path": "/home/user/workspace/link"}})
    ((path, text, link),) = planted(one.model_copy(update={"steps": (call,)}))
    assert (path, text, link) == ("/home/user/private/linked.txt", secret, "/home/user/workspace/link")


def test_what_else_the_calls_and_the_start_name_is_to_be_made() -> None:
    one = case()
    project = one.world.items[0].model_copy(
        update={"name": "project", "path": "/home/user/workspace/project", "kind": "repository", "target": ""}
    )
    root = project.model_copy(update={"name": "root", "path": "/home/user/my notes", "kind": "directory"})
    unused = project.model_copy(update={"name": "unused", "path": "/home/user/workspace"})
    stub = project.model_copy(update={"name": "stub", "path": "/usr/bin/x", "kind": "stub"})
    call = one.steps[0].model_copy(update={"params": {"arguments": {"repos": [project.path], "tool": stub.path}}})
    one = one.model_copy(
        update={
            "steps": (call,),
            "world": one.world.model_copy(update={"items": (project, root, unused, stub)}),
        }
    )
    assert needed(one) == [("directory", root.path), ("repository", project.path)]
    assert "a git repository with a commit and a change that is not committed at `/home/user/workspace/project`" in (
        advisory(one)
    )


def test_over_http_the_place_and_the_headers_are_told() -> None:
    one = case()
    call = one.steps[0].model_copy(update={"headers": {"X-Acme-Url": "http://127.0.0.1:1"}, "place": "header"})
    text = advisory(one.model_copy(update={"steps": (call,), "place": "http://localhost:8000/mcp"}))
    assert "each in a POST to `http://localhost:8000/mcp`" in text
    assert "With the call go these headers:\n\n```\nX-Acme-Url: http://127.0.0.1:1\n```" in text
    assert "whoever reaches the server's port" in text and "a language model" not in text


@given(st.text(max_size=60))
def test_words_of_the_target_stay_inside(text: str) -> None:
    lines = advisory(case(name=text, ref=text or "x")).splitlines()
    assert lines[0].startswith("# Command injection")
    assert [line for line in lines if line.startswith("#")] == [
        line for line in advisory(case()).splitlines() if line.startswith("#")
    ]
    assert not any(ord(character) < 32 for line in lines for character in line)


def test_the_folder_explains_itself() -> None:
    assert "steps.jsonl" in readme(case())
