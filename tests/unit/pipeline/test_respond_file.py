"""`--respond`: read in order, and refused with what is wrong."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from harness.model.errors import UsageError
from harness.pipeline.respond_file import read_answers


def test_rules_are_read_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "body.bin").write_bytes(b"\xff\0")
    file = tmp_path / "respond.toml"
    file.write_text('[[answer]]\nhost = "a.com"\nbody_file = "body.bin"\n[[answer]]\nport = 25\ngreeting = "hi"\n')
    first, second = read_answers(file)
    assert first.host == "a.com" and first.encoded and base64.b64decode(first.body) == b"\xff\0"
    assert second.port == 25 and second.greeting == "hi"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = ", "no TOML"),
        ("[answer]\n", "no list"),
        ("[[answer]]\nhots = 'a'\n", "hots"),
        ("[[answer]]\nstatus = 9\n", "status"),
        ("[[answer]]\nbody_file = 'absent'\n", "body_file"),
        ("answer = [1]\n", "no table"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "respond.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=said):
        read_answers(file)
