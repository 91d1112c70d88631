"""What was sent with a call, in every form in which a target could give it back without having evaluated anything."""

from __future__ import annotations

import base64
import binascii
import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator
from html import unescape
from urllib.parse import unquote_plus

from harness.model.base import JsonValue
from harness.model.call import Call

#: Payloads are small; what is longer is compared as it is.
MAX_DECODED = 1 << 16
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([0-7]{3}))")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{12,}={0,2}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){6,}")
_PLAIN = re.compile(r"[^0-9a-z]+")


def leaves(value: JsonValue, *, keys: bool = True) -> Iterator[str]:
    """The texts of a JSON value in order, keys included unless told otherwise; numbers as they are written."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            for key, inner in reversed(item.items()):
                stack += (inner, key) if keys else (inner,)
        elif isinstance(item, list | tuple):
            stack += reversed(item)
        elif isinstance(item, str):
            yield item
        elif isinstance(item, int | float) and not isinstance(item, bool):
            yield str(item)


def sent_texts(call: Call) -> tuple[str, ...]:
    """Every text of a call: the values of its parameters and answers in order, then keys and values, then headers."""
    return (*leaves(call.given, keys=False), *leaves(call.given), *leaves(dict(call.headers)))


def echoes(text: str, sent: Iterable[str]) -> bool:
    """Whether `text` was sent, as it is or decoded: then whoever gives it back has evaluated nothing.

    Case does not count. An empty text always could be an echo.
    """
    wanted = text.casefold()
    return not wanted or any(wanted in form.casefold() for part in sent for form in _forms(part))


def joins(text: str, sent: Iterable[str]) -> bool:
    """Whether `text` comes of what was sent by leaving out punctuation and spaces, or by putting parts together."""
    parts, wanted, bare = list(sent), text.casefold(), _bare(text)
    joined = (*parts, "".join(parts))
    return any(
        wanted in form.casefold() or (bool(bare) and bare in _bare(form)) for part in joined for form in _forms(part)
    )


def names_path(texts: Iterable[str], path: str, bases: Iterable[str]) -> bool:
    """Whether one of the texts as a whole names this absolute path: as it is, as a `file:` address, or from a base.

    `bases`: the folders that a relative one may be meant from, the home first.
    """
    folders = tuple(bases)
    for text in texts:
        said = text.strip()
        if said.casefold().startswith("file:"):
            said = "/" + unquote_plus(said[len("file:") :].replace("+", "%2B")).lstrip("/")
        if said.startswith("~/") and folders:
            said = posixpath.join(folders[0], said[2:])
        wholes = [said] if said.startswith("/") else [posixpath.join(base, said) for base in folders if said]
        if any(posixpath.normpath(whole) == path for whole in wholes):
            return True
    return False


def told(secrets: Iterable[str], texts: Iterable[str]) -> set[str]:
    """Which of the secrets stand in the texts, as they are or in a disguise that results and arguments have."""
    parts = list(texts)
    forms = [form for part in parts for form in _forms(part)]
    return {s for s in secrets if s and (any(s in form for form in forms) or any(disguised(p, s) for p in parts))}


def _bare(text: str) -> str:
    return _PLAIN.sub("", text.casefold())


def _forms(text: str) -> Iterator[str]:
    yield text
    if len(text) > MAX_DECODED:
        return
    once = unquote_plus(text)
    yield once
    yield unquote_plus(once)
    yield _ESCAPE.sub(_unescaped, text)
    yield unescape(text)
    yield unicodedata.normalize("NFKC", text)
    for match in _BASE64.finditer(text):
        token = match[0].rstrip("=").replace("-", "+").replace("_", "/")
        if len(token) % 4 != 1:
            yield base64.b64decode(token + "=" * (-len(token) % 4)).decode("latin-1")
    for match in _HEX.finditer(text):
        try:
            yield binascii.unhexlify(match[0]).decode("latin-1")
        except binascii.Error:  # the pattern takes pairs only
            continue


def _unescaped(match: re.Match[str]) -> str:
    four, two, octal = match.groups()
    return chr(int(four or two, 16) if octal is None else int(octal, 8))


def holds(haystack: str, text: str) -> bool:
    """Whether `text` stands in `haystack`; digits alone must not be a piece of a longer number."""
    if not text.isdigit():
        return text in haystack
    return re.search(rf"(?<!\d){text}(?!\d)", haystack) is not None


def disguised(haystack: str, text: str) -> bool:
    """Whether `text` stands in `haystack` as it is, in hex or in base64 (at any offset), as binary results do."""
    if text in haystack:
        return True
    raw = text.encode()
    if raw.hex() in haystack.casefold():
        return True
    for offset in range(3):
        coded = base64.b64encode(b"\0" * offset + raw).decode()
        # The first and last groups hold neighbours' bits.
        inner = coded[4 if offset else 0 : len(coded) // 4 * 4 - 4]
        if len(inner) >= 12 and inner in haystack:
            return True
    return False
