"""strace's lines taken apart: who, when, which call, arguments, result. Pure; any bytes may come.

strace is told to print every string in hexadecimal (`-xx`), so nothing that a target chose can look like syntax: the
quotes, brackets and line ends in a line are strace's own. What still does not parse is counted, never guessed.
"""

from __future__ import annotations

import errno
import ipaddress
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from harness.sandbox.records_text import text

#: Of a longer line the head and the tail are kept: an argument vector may be of any length, the result comes last.
HEAD_BYTES = 192 << 10
TAIL_BYTES = 512
CUT = b"..."
REMEMBERED_BYTES = 1024

_LINE = re.compile(rb"(\d{1,10}) +(\d{1,12})\.(\d{9}) (.+)", re.DOTALL)
_RESULT = re.compile(rb"(.*)\)\s+= (\S.*)", re.DOTALL)
_RESUMED = re.compile(rb"<\.\.\. ([a-z0-9_]+) resumed>(.*)", re.DOTALL)
_CALL = re.compile(rb"([a-z0-9_]+)\((.*)", re.DOTALL)
_EXITED = re.compile(rb"\+\+\+ exited with (\d+) \+\+\+")
_KILLED = re.compile(rb"\+\+\+ killed by (SIG\w+)( \(core dumped\))? \+\+\+")
_SUPERSEDED = re.compile(rb"\+\+\+ superseded by execve in pid (\d+) \+\+\+")
_MODE = re.compile(rb"\[ Process PID=\d+ runs in (.{1,20}) mode\. \]")
UNFINISHED = b" <unfinished ...>"

_HEX = re.compile(rb"\\x([0-9a-f]{2})")
_STRING = re.compile(rb'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')
_DESCRIPTOR = re.compile(rb"(-?\d+|AT_FDCWD)<([^<>]*)>(\(deleted\))?")
_INTEGER = re.compile(rb"(-?(?:0x[0-9a-f]+|\d+))(?![\w.])")
_TOKEN = re.compile(rb'[\[({]|[\])}]|,|"[^"]*"')
_PORT = re.compile(rb"sin6?_port=htons\((\d+)\)")
_INET = re.compile(rb'inet_addr\("([^"]*)"\)')
_INET6 = re.compile(rb'inet_pton\(AF_INET6, "([^"]*)"')
_PATH = re.compile(rb'sun_path=(@?)"([^"]*)"')
_FAMILY = re.compile(rb"sa_family=(AF_\w+|0x[0-9a-f]+)")


class Said(NamedTuple):
    """One line of the trace. `what` is `call`, `begun`, `resumed`, `exit`, `killed`, `superseded`, `mode`,
    `other` or `bad`.

    `time` is CLOCK_REALTIME in nanoseconds. `body`: the arguments' text, or a signal's or a mode's name; `number`: an
    exit code or a pid; `result`: the text after the equals sign.
    """

    tid: int
    time: int
    what: str
    name: str = ""
    body: bytes = b""
    result: bytes = b""
    number: int = 0


class LineReader:
    """Cuts a stream into lines of bounded length, however it was cut into reads."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._tail = b""
        self._cutting = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines that `data` completes, without their ends; the middle of an overlong one is `CUT`."""
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._add(line)
            yield self._taken()
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        if not self._cutting and len(self._held) + len(piece) <= HEAD_BYTES:
            self._held += piece
            return
        room = 0 if self._cutting else HEAD_BYTES - len(self._held)
        self._held += piece[:room]
        self._cutting = True
        self._tail = (self._tail + piece[room:])[-TAIL_BYTES:]

    def _taken(self) -> bytes:
        line = bytes(self._held) + (CUT + self._tail if self._cutting else b"")
        self._held.clear()
        self._tail, self._cutting = b"", False
        return line


def parse(line: bytes) -> Said:
    """Take one line apart; `bad` where it is none of strace's trace."""
    found = _LINE.fullmatch(line)
    if found is None:
        return Said(0, 0, "bad")
    tid, time, rest = int(found[1]), int(found[2]) * 1_000_000_000 + int(found[3]), found[4]
    first = rest[:1]
    if first == b"-":
        return Said(tid, time, "other")
    if first == b"+":
        return _ended(tid, time, rest)
    if first == b"[":
        mode = _MODE.fullmatch(rest)
        return Said(tid, time, "bad") if mode is None else Said(tid, time, "mode", body=mode[1])
    if first == b"<":
        resumed = _RESUMED.fullmatch(rest)
        if resumed is None:
            return Said(tid, time, "bad")
        whole = _RESULT.fullmatch(resumed[2])
        if whole is None:
            return Said(tid, time, "bad")
        return Said(tid, time, "resumed", resumed[1].decode(), whole[1], whole[2])
    call = _CALL.fullmatch(rest)
    if call is None:
        return Said(tid, time, "bad")
    name, body = call[1].decode(), call[2]
    if body.endswith(UNFINISHED):
        return Said(tid, time, "begun", name, body[: -len(UNFINISHED)])
    whole = _RESULT.fullmatch(body)
    if whole is None:
        return Said(tid, time, "bad")
    return Said(tid, time, "call", name, whole[1], whole[2])


def _ended(tid: int, time: int, rest: bytes) -> Said:
    if (found := _EXITED.fullmatch(rest)) is not None:
        return Said(tid, time, "exit", number=int(found[1]))
    if (found := _KILLED.fullmatch(rest)) is not None:
        return Said(tid, time, "killed", body=found[1])
    if (found := _SUPERSEDED.fullmatch(rest)) is not None:
        return Said(tid, time, "superseded", number=int(found[1]))
    return Said(tid, time, "bad")


def arguments(body: bytes, limit: int = 16) -> list[bytes]:
    """The arguments of a call, at most `limit`; nested lists and structures stay whole."""
    found: list[bytes] = []
    depth = start = 0
    for token in _TOKEN.finditer(body):
        char = token[0]
        if char in (b"[", b"(", b"{"):
            depth += 1
        elif char in (b"]", b")", b"}"):
            depth -= 1
        elif char == b"," and depth <= 0:
            found.append(body[start : token.start()].strip())
            start = token.end()
            if len(found) >= limit:
                return found
    last = body[start:].strip()
    if last or found:
        found.append(last)
    return found


def unhex(quoted: bytes) -> bytes:
    """The bytes behind strace's hexadecimal text; anything else stays as it is."""
    return _remembered(quoted) if len(quoted) <= REMEMBERED_BYTES else _unhexed(quoted)


def _unhexed(quoted: bytes) -> bytes:
    plain = quoted.replace(b"\\x", b"")
    if 2 * len(plain) == len(quoted):  # nothing but such pairs, as for all that a target chose
        with suppress(ValueError):
            return bytes.fromhex(plain.decode("ascii"))
    return _HEX.sub(lambda match: bytes((int(match[1], 16),)), quoted)


#: Programs name the same files again and again; the long ones are not worth the memory.
_remembered = lru_cache(maxsize=8192)(_unhexed)


def string(argument: bytes) -> tuple[bytes, bool] | None:
    """The bytes of a string argument and whether it was cut; None for a pointer that could not be read."""
    found = _STRING.match(argument)
    return None if found is None else (unhex(found[1]), found[2] is not None)


def strings(argument: bytes, limit: int) -> tuple[list[bytes], bool]:
    """The strings of an array argument, at most `limit`, and whether any of them or the array was cut."""
    found = list(_STRING.finditer(argument))
    whole = argument.startswith(b"[") and argument.endswith(b"]") and not argument.endswith(b", ...]")
    cut = not whole or len(found) > limit or any(match[2] for match in found)
    return [unhex(match[1]) for match in found[:limit]], cut


def descriptor(argument: bytes) -> tuple[bytes, bool] | None:
    """What the kernel says that a descriptor is (`/path`, `socket:[9]`), and whether it is deleted; None without."""
    found = _DESCRIPTOR.match(argument)
    return None if found is None else (unhex(found[2]), found[3] is not None)


def integer(argument: bytes) -> int | None:
    """The number at the beginning of an argument or a result, as a signed 64-bit one; None where it has none."""
    found = _INTEGER.match(argument)
    if found is None:
        return None
    value = int(found[1], 0) if not found[1].lstrip(b"-").startswith(b"0") or b"x" in found[1] else int(found[1], 8)
    return value - (1 << 64) if value >= 1 << 63 else value


def outcome(result: bytes) -> int | None:
    """The kernel's result: negative for an errno; None for a call that did not return, or will be begun anew."""
    if result.startswith(b"-1 E"):
        return -getattr(errno, result[3:].split(b" ", 1)[0].decode("ascii", "replace"), 1)
    return integer(result)


def addresses(argument: bytes) -> tuple[tuple[str, ...], bool]:
    """The socket addresses in an argument (`203.0.113.1:443`, `unix:/path` …), at most 64, and whether escaped."""
    found: list[str] = []
    escaped = False
    for piece in re.split(rb"(?=sa_family=)", argument)[1:65]:
        family = _FAMILY.match(piece)
        port = _PORT.search(piece)
        if family is None:
            continue
        if family[1] == b"AF_UNIX":
            path = _PATH.match(piece.partition(b", ")[2])
            shown, odd = text(unhex(path[2])) if path is not None else ("", False)
            escaped = escaped or odd
            found.append(f"unix:{'@' if path is not None and path[1] else ''}{shown}")
        elif port is not None and (inet := _INET.search(piece) or _INET6.search(piece)) is not None:
            host = _host(unhex(inet[1]))
            found.append(f"[{host}]:{int(port[1])}" if ":" in host else f"{host}:{int(port[1])}")
        else:
            found.append(family[1].decode())
    return tuple(found), escaped


def _host(raw: bytes) -> str:
    try:
        return str(ipaddress.ip_address(raw.decode("ascii", "replace")))
    except ValueError:
        return raw.decode("ascii", "replace")[:64]
