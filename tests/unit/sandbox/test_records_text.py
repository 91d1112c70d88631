"""Paths and addresses as text."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.sandbox.records_calls import named_flags
from harness.sandbox.records_text import address, forwards, joined, text, unescape


@given(st.binary())
def test_no_byte_is_lost(raw: bytes) -> None:
    shown, escaped = text(raw)
    assert (unescape(shown) if escaped else shown.encode()) == raw  # encodes: no lone surrogate


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_utf_8_is_told_as_it_is(whole: str) -> None:
    assert text(whole.encode()) == (whole, False)


def test_other_bytes_are_escaped() -> None:
    assert text(b"a\\b\n\xff") == ("a\\\\b\n\\xff", True)


@pytest.mark.parametrize("damaged", ["\\", "\\x", "\\x1", "\\q", "\\xzz"])
def test_what_was_not_escaped_by_us_is_refused(damaged: str) -> None:
    with pytest.raises(ValueError):
        unescape(damaged)


@given(st.lists(st.binary(min_size=1).filter(lambda name: b"/" not in name)))
def test_components_turn_around(names: list[bytes]) -> None:
    raw = b"".join(name + b"/" for name in reversed(names))
    assert forwards(raw, cut=False) == b"/" + b"/".join(names)


@pytest.mark.parametrize(
    ("base", "path", "whole"),
    [
        (b"/home/user", b"a", b"/home/user/a"),
        (b"/home/user", b"../../../etc/passwd", b"/etc/passwd"),
        (b"/", b"a/./b//c", b"/a/b/c"),
        (b"/home", b"", b"/home"),
        (b".../deep", b"a", b".../deep/a"),
    ],
)
def test_relative_paths_resolve(base: bytes, path: bytes, whole: bytes) -> None:
    assert joined(base, path) == whole


@given(st.binary(max_size=150))
def test_any_address_is_some_text(raw: bytes) -> None:
    shown, _ = address(raw)
    assert shown.encode() or len(raw) < 2


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (struct.pack("<H", 1) + b"/run/x.sock\0junk", "unix:/run/x.sock"),
        (struct.pack("<H", 1) + b"\0abstract", "unix:@abstract"),
        (struct.pack("<H", 1), "unix:"),
        (struct.pack("<H", 40) + bytes(14), "AF_VSOCK"),
        (struct.pack("<H", 99) + bytes(14), "family 99"),
        (struct.pack("<H", 2), "AF_INET"),
    ],
)
def test_addresses(raw: bytes, shown: str) -> None:
    assert address(raw) == (shown, False)


@pytest.mark.parametrize(
    ("call", "args", "names"),
    [
        ("openat", (-100, 0, 0o2102, 0), ("O_RDWR", "O_CREAT", "O_APPEND")),
        ("open", (0, 0o200000), ("O_RDONLY", "O_DIRECTORY")),
        ("openat", (1,), ()),
        ("socket", (2, 0o2000002, 0), ("AF_INET", "SOCK_DGRAM")),
        ("clone", (0x10000011,), ("CLONE_NEWUSER",)),
        ("unshare", (0x20000080,), ("CLONE_NEWTIME", "CLONE_NEWPID")),
        ("prctl", (15,), ("PR_SET_NAME",)),
        ("prctl", (-1,), ("4294967295",)),
        ("read", (1, 2, 3), ()),
    ],
)
def test_arguments_with_names(call: str, args: tuple[int, ...], names: tuple[str, ...]) -> None:
    assert named_flags(call, args, "x86_64") == names
