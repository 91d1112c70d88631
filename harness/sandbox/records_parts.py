"""The parts of a record: paths, strings, addresses and identities, as the recorder quotes them from a target.

Pure; any bytes may come. `parts` maps a part's tag to its flags and bytes; what is odd about one goes to `notes`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import lru_cache

from harness.sandbox.records_text import address, forwards, joined, text

IDENTITY = struct.Struct("<QII")

(
    PART_ARGUMENTS, PART_PATH, PART_PATH2, PART_BASE, PART_BASE2, PART_FILE, PART_FILE2, PART_IDENTITY, PART_SOCKET,
    PART_LOCAL, PART_REMOTE, PART_ADDRESS, PART_ARGV, PART_ENVIRONMENT, PART_REQUESTED, PART_INTERPRETER,
    PART_CHANGED, PART_DIRECTORY,
) = range(1, 19)  # fmt: skip
CUT, CLAIM, DELETED, DETACHED, REVERSED = (1 << bit for bit in range(5))

#: More arguments of one exec than this are left out.
ARGV_STRINGS = 1024

_PART_NOTES = ((CUT, "cut"), (DELETED, "deleted"), (DETACHED, "detached"))


def add_note(notes: list[str], name: str) -> None:
    """Note it once."""
    if name not in notes:
        notes.append(name)


#: Programs open the same files and go by the same names again and again.
_text = lru_cache(maxsize=8192)(text)


@lru_cache(maxsize=8192)
def _kernel_path(raw: bytes, cut: int) -> tuple[str, bool]:
    return text(forwards(raw, cut=bool(cut)))


def said(raw: bytes, notes: list[str]) -> str:
    """What the target said, as text."""
    shown, escaped = _text(raw)
    if escaped:
        add_note(notes, "escaped")
    return shown


def part_text(parts: Mapping[int, tuple[int, bytes]], tag: int, notes: list[str]) -> str:
    """The text of a part; empty without one."""
    found = parts.get(tag)
    if found is None:
        return ""
    if found[0] & CUT:
        add_note(notes, "cut")
    return said(found[1], notes)


def part_strings(parts: Mapping[int, tuple[int, bytes]], tag: int, notes: list[str]) -> tuple[str, ...]:
    """The strings of a part, at most `ARGV_STRINGS`; none without one."""
    flags, raw = parts.get(tag, (0, b""))
    if not raw:
        return ()
    strings = raw.split(b"\0")
    if not strings[-1]:
        strings.pop()
    if flags & CUT or len(strings) > ARGV_STRINGS:
        add_note(notes, "cut")
    return tuple(said(string, notes) for string in strings[:ARGV_STRINGS])


def path_of(
    parts: Mapping[int, tuple[int, bytes]], file: int, path: int, base: int, notes: list[str]
) -> tuple[str | None, bool]:
    """The kernel's path where there is one, else the claimed one, resolved; and whether it is a claim."""
    found = parts.get(file)
    claimed = found is None
    if found is None:
        found = parts.get(path)
        if found is None:
            return None, False
    flags, raw = found
    if flags & (CUT | DELETED | DETACHED):
        for bit, name in _PART_NOTES:
            if flags & bit:
                add_note(notes, name)
    if flags & REVERSED:
        shown, escaped = _kernel_path(raw, flags & CUT)
        if escaped:
            add_note(notes, "escaped")
        return shown, claimed
    if base in parts:
        base_flags, directory = parts[base]
        raw = joined(forwards(directory, cut=bool(base_flags & CUT)), raw)
        add_note(notes, "relative")
    return said(raw, notes), claimed


def identity_of(parts: Mapping[int, tuple[int, bytes]]) -> str:
    """`device:inode` of the file; empty where the record has none."""
    found = parts.get(PART_IDENTITY)
    if found is None:
        return ""
    inode, device, _ = IDENTITY.unpack_from(found[1])
    return f"{device}:{inode}"


def shown_address(raw: bytes, notes: list[str]) -> str:
    """A socket address as text."""
    shown, escaped = address(raw)
    if escaped:
        add_note(notes, "escaped")
    return shown


def part_address(parts: Mapping[int, tuple[int, bytes]], tag: int, notes: list[str]) -> str:
    """The address in a part; empty without one."""
    found = parts.get(tag)
    return shown_address(found[1], notes) if found is not None else ""
