"""Bytes of the recorder as text: paths, argument vectors, socket addresses. Pure; takes any bytes."""

from __future__ import annotations

import ipaddress
import posixpath
import re

_TO_ESCAPE = re.compile(rb"\\|[\x80-\xff]")
#: Linux's numbers of address families, from <linux/socket.h>.
FAMILIES = {
    0: "AF_UNSPEC", 1: "AF_UNIX", 2: "AF_INET", 10: "AF_INET6", 16: "AF_NETLINK", 17: "AF_PACKET", 31: "AF_BLUETOOTH",
    38: "AF_ALG", 40: "AF_VSOCK", 44: "AF_XDP",
}  # fmt: skip
UNIX, INET, INET6 = 1, 2, 10


def text(raw: bytes) -> tuple[str, bool]:
    """The text of some bytes, and whether it is escaped (see `KernelEvent`). Lone surrogates never come out."""
    try:
        return raw.decode(), False
    except UnicodeDecodeError:
        return _TO_ESCAPE.sub(_escaped, raw).decode("ascii"), True


def _escaped(match: re.Match[bytes]) -> bytes:
    byte = match[0]
    return b"\\\\" if byte == b"\\" else b"\\x%02x" % byte[0]


def unescape(escaped: str) -> bytes:
    """The bytes behind an escaped text; the inverse of `text`. Raises ValueError for what it did not make."""
    out = bytearray()
    at = 0
    while at < len(escaped):
        if escaped[at] != "\\":
            out += escaped[at].encode()
            at += 1
        elif escaped[at + 1 : at + 2] == "\\":
            out += b"\\"
            at += 2
        elif escaped[at + 1 : at + 2] == "x" and len(escaped) >= at + 4:
            out.append(int(escaped[at + 2 : at + 4], 16))
            at += 4
        else:
            raise ValueError("not an escaped text")
    return bytes(out)


def forwards(reversed_path: bytes, *, cut: bool) -> bytes:
    """A path from its components, last first, each followed by a slash. A cut one lacks its beginning: `.../b/c`."""
    names = reversed_path.split(b"/")[:-1]
    names.reverse()
    return (b".../" if cut else b"/") + b"/".join(names)


def joined(base: bytes, path: bytes) -> bytes:
    """A relative path as it resolves from a directory, as far as its text tells (links are not followed)."""
    whole = posixpath.normpath(posixpath.join(base, path)) if path else base
    return b"/" + whole.lstrip(b"/") if base.startswith(b"/") else whole


def address(raw: bytes) -> tuple[str, bool]:
    """A socket address as text, and whether it is escaped.

    `203.0.113.1:443`, `[2001:db8::1]:443`, `unix:/path`, `unix:@name` (abstract), `unix:` (unnamed), else the family.
    """
    if len(raw) < 2:
        return "", False
    family = int.from_bytes(raw[:2], "little")
    port = int.from_bytes(raw[2:4], "big")
    if family == INET and len(raw) >= 8:
        return f"{ipaddress.IPv4Address(raw[4:8])}:{port}", False
    if family == INET6 and len(raw) >= 24:
        return f"[{ipaddress.IPv6Address(raw[8:24])}]:{port}", False
    if family == UNIX:
        name = raw[2:]
        if name[:1] == b"\0":
            shown, escaped = text(name[1:])
            return f"unix:@{shown}", escaped
        shown, escaped = text(name.split(b"\0", 1)[0])
        return f"unix:{shown}", escaped
    return FAMILIES.get(family, f"family {family}"), False
