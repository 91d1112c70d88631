"""The planted world of one session: what lies inside the root, beside it, behind its links, outside, and on the
network.

Each secret in it is drawn anew for every session and sent to nobody: where it surfaces, it was read.
"""

from __future__ import annotations

from typing import Literal

from harness.model.base import Record


class PlantedItem(Record):
    """One planted thing. `name` is stable over sessions and comes from its fixture (`outside/account.txt`; below a
    further root `inside@data/notes.txt`), `path` absolute.

    `secret` is its never-sent content (or commit message, row, page text …), empty where it has none. `where`:
    inside the root, `sibling` (`<root>_suffix`), `linked` (a link inside the root that points out: `path` is the
    link), `outside`, or `home`.
    """

    name: str
    path: str
    kind: Literal["file", "directory", "link", "repository", "database", "archive", "document", "stub"]
    where: Literal["inside", "sibling", "linked", "outside", "home"]
    secret: str = ""
    target: str = ""


class PlantedHost(Record):
    """Something on the fake network. `address` is host:port as it is written in a URL, `url` a page whose content is
    `secret`.

    `where`: loopback, private, metadata, link-local, or public. `redirect`: where it sends its visitors on to.
    """

    name: str
    address: str
    url: str
    where: Literal["loopback", "private", "metadata", "link-local", "public"]
    secret: str = ""
    redirect: str = ""


class World(Record):
    """The whole of it. `root`: the workspace that stands for `{workspace}`; `outside`: a folder that no boundary
    allows, writable by the target's user; `nonce`: this session's; `domain`: every name below it resolves to the
    sinkhole. `roots`: `root` and the folders below it that the start's arguments and environment name, narrowest
    first: each has its own sibling, its own links that point out, and its own fixtures.
    """

    nonce: str
    root: str
    outside: str
    roots: tuple[str, ...] = ()
    items: tuple[PlantedItem, ...] = ()
    hosts: tuple[PlantedHost, ...] = ()
    domain: str = ""

    def item(self, name: str) -> PlantedItem | None:
        """The planted thing of that name."""
        return next((item for item in self.items if item.name == name), None)

    def host(self, name: str) -> PlantedHost | None:
        """The planted host of that name."""
        return next((host for host in self.hosts if host.name == name), None)
