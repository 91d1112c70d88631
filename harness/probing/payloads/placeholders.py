"""The words in braces of payloads, and what each stands for.

`{name}`, `{name:which}` and either with `|encoding`s. Only lower-case names are placeholders, so `${IFS}`, `{ }` and
`{a,b}` are themselves; `{brace:x}` is `{x}` where that has to be written.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from harness.model.base import sha256_hex
from harness.model.world import PlantedHost, PlantedItem, World

#: A name in braces, as a format has them.
SLOT = re.compile(r"\{\s*([A-Za-z_]\w{0,40})")
PATTERN = re.compile(r"\{([a-z][a-z0-9_]*)(?::([^{}|]+))?((?:\|[a-z0-9-]+)*)\}")

#: More than any path has parts: a way up that ends at the root of the file system from wherever it starts.
_UP = "../" * 12


class Missing(Exception):
    """This world has nothing for a placeholder: the payload can't be tried in it."""


@dataclass(frozen=True)
class Place:
    """What a payload is filled in for: the world, the argument's benign value, a fresh nonce, and the root that is
    the boundary (the narrowest one unless given).
    """

    world: World
    base: str
    nonce: str
    root: str

    def number(self, name: str) -> int:
        """A number of five digits that follows from the nonce: products of two have nine or ten."""
        return 10_001 + int(sha256_hex(f"{self.nonce}/{name}")[:12], 16) % 89_990

    def letters(self, name: str) -> str:
        """Eight letters that follow from the nonce."""
        return "".join(chr(97 + int(digit, 16)) for digit in sha256_hex(f"{self.nonce}/{name}")[:8])


def _item(place: Place, name: str) -> PlantedItem:
    """The planted thing of that name; for what belongs to a root, the one of this place's root."""
    mark = "" if place.root == place.world.root else "@" + place.root.removeprefix(f"{place.world.root}/")
    area, slash, rest = name.partition("/")
    found = place.world.item(f"{area}{mark}{slash}{rest}") or place.world.item(name)
    if found is None:
        raise Missing(name)
    return found


def _host(place: Place, name: str) -> PlantedHost:
    found = place.world.host(name)
    if found is None:
        raise Missing(name)
    return found


def _file(name: str) -> Callable[[Place, str], str]:
    return lambda place, which: _item(place, which or name).path


def _secret(name: str) -> Callable[[Place, str], str]:
    def find(place: Place, which: str) -> str:
        secret = _item(place, which or name).secret
        if not secret:
            raise Missing(f"secret of {which or name}")
        return secret

    return find


def _alike(place: Place, _: str) -> PlantedItem:
    """The thing outside that is of the kind of the argument's benign value: a repository for a repository, a table
    for a table; a text where the value tells nothing.
    """
    base = place.base.removeprefix("file://")
    names = (base, f"{place.root}/{base}", f"{place.world.root}/{base}")
    mine = next((item for item in place.world.items if item.path.rstrip("/") in [n.rstrip("/") for n in names]), None)
    kind = mine.kind if mine is not None else "file"
    if base.rstrip("/") in (place.root, place.world.root, ".", "./"):
        kind = "repository" if kind == "repository" else "directory"
    if kind == "repository":
        return _item(place, "outside/project")
    if kind == "directory":
        return _item(place, "outside/records")
    if kind == "database":
        return _item(place, "outside/accounts.db")
    ending = base.rpartition(".")[2].lower() if "." in base.rpartition("/")[2] else ""
    for item in place.world.items:
        if ending and item.name.startswith("outside/account") and item.path.endswith(f".{ending}"):
            return item
    return _item(place, "outside/account.txt")


def _alike_secret(place: Place, which: str) -> str:
    item = _alike(place, which)
    if item.kind == "directory":
        return _item(place, "outside/records/statement.txt").secret
    if not item.secret:
        raise Missing("a secret of that kind")
    return item.secret


def _ending(place: Place, _: str) -> str:
    """The ending of the benign value, dot included."""
    name = place.base.rpartition("/")[2]
    return f".{name.rpartition('.')[2]}" if "." in name[1:] else ""


def _slot(place: Place, _: str) -> str:
    """The first name in braces in the benign value, which a format is documented to fill in; else the commonest."""
    found = SLOT.search(place.base)
    return found[1] if found is not None else "name"


def _unpacked(place: Place, which: str) -> str:
    target = _item(place, which or "inside/bundle.zip").target
    if not target:
        raise Missing("a path that an archive leads to")
    return target


def _relative(place: Place, which: str) -> str:
    """The relative way from the root to a planted thing."""
    return _way(place, _item(place, which or "outside/account.txt").path)


def _way(place: Place, path: str) -> str:
    here, there = place.root.strip("/").split("/"), path.strip("/").split("/")
    common = 0
    while common < min(len(here), len(there)) and here[common] == there[common]:
        common += 1
    return "/".join([".."] * (len(here) - common) + there[common:])


def _host_part(part: str) -> Callable[[Place, str], str]:
    def find(place: Place, which: str) -> str:
        host = _host(place, which or "loopback")
        if part == "address":
            return host.address
        split = urlsplit(host.url)
        return {
            "url": host.url,
            "path": split.path,
            "port": host.address.rpartition(":")[2],
            "host": host.address.rpartition(":")[0],
        }[part]

    return find


def _host_secret(place: Place, which: str) -> str:
    secret = _host(place, which or "loopback").secret
    if not secret:
        raise Missing(f"secret of {which}")
    return secret


def _ipv4(form: Callable[[list[int]], str]) -> Callable[[Place, str], str]:
    def write(place: Place, which: str) -> str:
        parts = _host_part("host")(place, which).split(".")
        if len(parts) != 4:
            raise Missing(f"an IPv4 address of {which}")
        return form([int(part) for part in parts])

    return write


def _number_of(parts: list[int]) -> int:
    return int.from_bytes(bytes(parts), "big")


Resolver = Callable[[Place, str], str]

#: Name: what it stands for, in a line, and how it is found. `which` (after the colon) names another planted thing.
PLACEHOLDERS: Mapping[str, tuple[str, Resolver]] = {
    "base": ("the argument's value in the baseline call", lambda place, _: place.base),
    "slot": ("the first name in braces in that value, `name` where there is none", _slot),
    "nonce": ("20 fresh hex digits", lambda place, _: place.nonce),
    "a": ("a fresh number of five digits", lambda place, _: str(place.number("a"))),
    "b": ("another", lambda place, _: str(place.number("b"))),
    "product": ("the product of a and b, which is not sent", lambda p, _: str(p.number("a") * p.number("b"))),
    "left": ("eight fresh letters", lambda place, _: place.letters("left")),
    "right": ("eight others", lambda place, _: place.letters("right")),
    "marker": ("left and right without a gap, not sent as one", lambda p, _: p.letters("left") + p.letters("right")),
    "root": ("the root that is the boundary", lambda place, _: place.root),
    "up": ("a relative way to the root of the file system, from anywhere", lambda place, _: _UP),
    "outside": ("the folder that no boundary allows", lambda place, _: place.world.outside),
    "outside_file": ("a file in it", _file("outside/account.txt")),
    "outside_secret": ("the content of that file, which is never sent", _secret("outside/account.txt")),
    "alike": (
        "what lies outside of the kind of the benign value: file, folder, repository, database …",
        lambda p, w: _alike(p, w).path,
    ),
    "alike_secret": ("its content, which is never sent", _alike_secret),
    "ending": ("the ending of the benign value, with its dot", _ending),
    "relative_alike": ("the relative way from the root to it", lambda p, w: _way(p, _alike(p, w).path)),
    "variable": ("the value of a variable of the environment, which is never sent", _secret("home/environment")),
    "relative": ("the relative way from the root to that file", _relative),
    "ledger": ("another file in it, to be changed", _file("outside/ledger.txt")),
    "sibling_file": ("a file in the root's sibling of the longer name", _file("sibling/account.txt")),
    "sibling_secret": ("its content", _secret("sibling/account.txt")),
    "sibling": ("the folder of that name", _file("sibling/")),
    "linked_file": ("a link in the root to a file outside", _file("linked/latest.txt")),
    "linked_secret": ("the content of that file", _secret("linked/latest.txt")),
    "linked_folder": ("a link in the root to a folder outside", _file("linked/shared")),
    "linked_target": ("that folder", lambda place, which: _item(place, which or "linked/shared").target),
    "beside_secret": ("a word in the name of a file beside the root", _secret("beside/statement.txt")),
    "listed_secret": ("a word in the name of a file outside", _secret("outside/records/statement.txt")),
    "inside_file": ("a file in the root", _file("inside/notes.txt")),
    "repository": ("a git repository in the root, with a change that is not committed", _file("inside/project")),
    "database": ("a SQLite database in the root", _file("inside/data/garden.db")),
    "outside_repository": ("a git repository outside, whose messages are never sent", _file("outside/project")),
    "repository_secret": ("a word of its messages", _secret("outside/project")),
    "outside_database": ("a SQLite database outside", _file("outside/accounts.db")),
    "database_secret": ("a value in its table accounts", _secret("outside/accounts.db")),
    "item": ("the path of any planted thing", _file("inside/notes.txt")),
    "secret": ("the secret of any planted thing", _secret("outside/account.txt")),
    "unpacked": ("where an archive's member lands that leaves its folder", _unpacked),
    "sink_host": ("a fresh name that leads to the sinkhole", lambda p, _: f"{p.nonce}.{p.world.domain}"),
    "domain": ("the domain of those names", lambda place, _: place.world.domain),
    "decoy_url": ("a page inside: loopback, private, metadata …", _host_part("url")),
    "decoy_address": ("its address and port", _host_part("address")),
    "decoy_host": ("its address", _host_part("host")),
    "decoy_port": ("its port", _host_part("port")),
    "decoy_path": ("the page's path", _host_part("path")),
    "decoy_secret": ("what the page holds, which is never sent", _host_secret),
    "decoy_decimal": ("its IPv4 address as one number", _ipv4(lambda parts: str(_number_of(parts)))),
    "decoy_hex": ("as one hexadecimal number", _ipv4(lambda parts: f"0x{_number_of(parts):08x}")),
    "decoy_octal": ("in octal parts", _ipv4(lambda parts: ".".join(f"0{part:o}" for part in parts))),
    "decoy_short": ("without its inner zeros", _ipv4(lambda parts: f"{parts[0]}.{parts[3]}")),
    "decoy_mapped": ("as an IPv6 address", _ipv4(lambda p: f"[::ffff:{p[0]:02x}{p[1]:02x}:{p[2]:02x}{p[3]:02x}]")),
    "redirect_url": (
        "a page outside that leads to a page inside",
        lambda p, w: _host(p, f"redirect-{w or 'loopback'}").url,
    ),
    "brace": ("the text after the colon, in braces", lambda place, which: "{" + which + "}"),
}

ENCODINGS: Mapping[str, Callable[[str], str]] = {
    "percent": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "percent2": lambda text: "".join(f"%25{byte:02x}" for byte in text.encode()),
    "query": lambda text: quote(text, safe=""),
    "base64": lambda text: base64.b64encode(text.encode("latin-1", "replace")).decode(),
    "hex": lambda text: text.encode().hex(),
    "slashes": lambda text: text.replace("/", "\\"),
    "dots": lambda text: text.replace("../", "..%2f"),
    "doubled": lambda text: text.replace("../", "....//"),
    "full-width": lambda text: text.replace(".", "\uff0e").replace("/", "\uff0f"),
    "quoted": lambda text: text.replace("\\", "\\\\").replace('"', '\\"'),
    "colons": lambda text: text.replace("/", "::"),
}


def problems(text: str) -> list[str]:
    """What is wrong with the placeholders of a text."""
    found = []
    for match in PATTERN.finditer(text):
        name, _, encodings = match.groups()
        if name not in PLACEHOLDERS:
            found.append(f"there is no placeholder {match[0]}; {{brace:…}} writes braces")
        found += [f"there is no encoding {word}" for word in encodings.split("|")[1:] if word not in ENCODINGS]
    return found


def fill(text: str, place: Place) -> str:
    """A text with its placeholders filled in. Raises Missing when the world has nothing for one."""

    def one(match: re.Match[str]) -> str:
        name, which, encodings = match.groups()
        value = PLACEHOLDERS[name][1](place, which or "")
        for word in encodings.split("|")[1:]:
            value = ENCODINGS[word](value)
        return value

    return PATTERN.sub(one, text)


def names_in(text: str) -> set[str]:
    """The names of the placeholders of a text."""
    return {match[1] for match in PATTERN.finditer(text)}
