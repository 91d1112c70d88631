"""The files that an entry of the corpus wants beside its server, made in a folder and planted from there.

One line each: `folder PLACE`, `canary PLACE` (a file with a token), `secret PLACE` (what a scanner of secrets knows),
`repository PLACE [canary]` (one commit, its message a token where asked for, and one change that is not committed),
`stub PLACE` (a program that logs its arguments), `kubeconfig PLACE`, `link PLACE TARGET`.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

CANARY = "canary-5f0c1e9d27ab4836"


def make(lines: tuple[str, ...], root: Path) -> list[str]:
    """Make the fixtures below `root` and return the values for `--file`, one for each thing at the top."""
    for line in lines:
        kind, place, *more = line.split(" ")
        path = root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        _MAKERS[kind](path, more)
    return [f"{path}:{path.name}" for path in sorted(root.iterdir())]


def _folder(path: Path, more: list[str]) -> None:
    path.mkdir(exist_ok=True)
    (path / "notes.txt").write_text("Two lines\nof notes.\n")


def _canary(path: Path, more: list[str]) -> None:
    path.write_text(f"{CANARY}\n")


def _secret(path: Path, more: list[str]) -> None:
    path.write_text(f'<file path="x">\nGITHUB_TOKEN=ghp_{"0a1b2c3d4e5f" * 3}\n{CANARY}\n</file>\n')


def _repository(path: Path, more: list[str]) -> None:
    path.mkdir(exist_ok=True)
    (path / "f").write_text("one\n")
    message = CANARY if "canary" in more else "First"
    for words in (["init", "-q", "-b", "main"], ["add", "f"], ["commit", "-q", "-m", message]):
        subprocess.run(["git", *words], cwd=path, check=True, env=_git_environment())
    for hook in (path / ".git" / "hooks").glob("*"):
        hook.unlink()
    (path / "f").write_text("one\ntwo\n")


def _git_environment() -> dict[str, str]:
    """The same commit on every machine."""
    who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in _PERSON.items()}
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", **who}


_PERSON = {"NAME": "Sam", "EMAIL": "sam@example.com", "DATE": "2025-01-01T00:00:00Z"}


def _stub(path: Path, more: list[str]) -> None:
    path.write_text('#!/bin/sh\nprintf \'%s\\n\' "$*" >> "$HOME/workspace/argv.log"\necho \'{"items": []}\'\n')
    path.chmod(0o755)


def _kubeconfig(path: Path, more: list[str]) -> None:
    path.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n"
    )


def _link(path: Path, more: list[str]) -> None:
    path.symlink_to(more[0])


_MAKERS = {
    "folder": _folder,
    "canary": _canary,
    "secret": _secret,
    "repository": _repository,
    "stub": _stub,
    "kubeconfig": _kubeconfig,
    "link": _link,
}
