"""The catalog of malformed messages: entries as they stand in `catalog.toml`, and the probes that they become.

Reading the file is the pipeline's business; here its text is checked and unfolded for one server.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Literal

from pydantic import Field, ValidationError

from harness.model.base import JsonObject, Record, canonical_json
from harness.model.errors import HarnessError
from harness.model.finding import Severity
from harness.model.options import Transport
from harness.model.probe import Encoding, Family, HttpShape, Must, Probe
from harness.model.surface import Era, Item, ItemKind, Surface
from harness.probing.malformed.arguments import Fault, faulty_arguments
from harness.probing.malformed.templates import Ids, fill_in, meta

#: Beside this module, and read by whoever makes the plan.
FILE_NAME = "catalog.toml"

STATELESS = "2026-07-28"
NEWEST_HANDSHAKE = "2025-11-25"
_RANGES = {
    "all": ("0", "9999"),
    "handshake": ("0", NEWEST_HANDSHAKE),
    "stateless": (STATELESS, "9999"),
}
_RANGE = re.compile(r"(\d{4}(?:-\d\d-\d\d)?)\.\.(\d{4}(?:-\d\d-\d\d)?)")


class Entry(Record):
    """One entry; the file's opening says what each member means."""

    id: str = Field(pattern="[A-Z][0-9]{2}[a-z]?")
    title: str
    family: Family
    send: tuple[str, ...] = Field(min_length=1)
    must: Must
    source: str
    accepted: Severity = Severity.INFO
    fault: Literal["", "access.rebinding", "access.authentication"] = ""
    encoding: Encoding = Encoding.UTF8
    echo: tuple[str, ...] = ()
    answers: int = 1
    revisions: str = "all"
    transports: tuple[Transport, ...] = (Transport.STDIO, Transport.HTTP)
    when: Literal["open", "before"] = "open"
    needs: str = ""
    per: Literal["", "tool"] = ""
    most: int = 8
    arguments: Fault | None = None
    version: str = ""
    patience: float = 0.0
    http: HttpShape | None = None

    def applies(self, surface: Surface, transport: Transport, credential: str = "") -> bool:
        """Whether it can be sent to a server with these declarations. `credential`: the header of the one it has."""
        first, last = _RANGES.get(self.revisions) or self.revisions.split("..")
        revision = surface.protocol_version or NEWEST_HANDSHAKE
        if surface.era is Era.STATELESS:
            revision = max(revision, STATELESS)
        if not first <= revision <= last or transport not in self.transports:
            return False
        if self.needs == "credential":
            return bool(credential)
        wanted = self.needs.removeprefix("!")
        return not wanted or (wanted in surface.capabilities) is not self.needs.startswith("!")


class Catalog(Record):
    """All entries in the order in which they are sent."""

    entries: tuple[Entry, ...] = ()

    def probes(
        self,
        surface: Surface,
        transport: Transport,
        ids: Ids,
        *,
        before: bool = False,
        credential: str = "",
    ) -> Iterator[Probe]:
        """The probes for this server, in order, without a request for a sign of life yet."""
        for entry in self.entries:
            if (entry.when == "before") is before and entry.applies(surface, transport, credential):
                yield from _unfold(entry, surface, transport, ids)


def parse_catalog(text: str) -> Catalog:
    """Check the text of a catalog. Raises HarnessError that names the entry and what is wrong with it."""
    try:
        tables = tomllib.loads(text).get("probe", [])
    except tomllib.TOMLDecodeError as error:
        raise HarnessError(f"the catalog of malformed messages is no TOML: {error}") from error
    entries: list[Entry] = []
    seen: set[str] = set()
    for number, table in enumerate(tables, 1):
        name = table.get("id", f"number {number}")
        try:
            entry = Entry.model_validate(table)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise HarnessError(f"malformed message {name}: {where}: {first['msg']}") from error
        if entry.id in seen:
            raise HarnessError(f"malformed message {entry.id} is there twice")
        if entry.revisions not in _RANGES and not _RANGE.fullmatch(entry.revisions):
            raise HarnessError(f"malformed message {entry.id}: revisions are {', '.join(_RANGES)} or FIRST..LAST")
        if (entry.per == "tool") != (entry.arguments is not None):
            raise HarnessError(f"malformed message {entry.id}: `per` and `arguments` go together")
        seen.add(entry.id)
        entries.append(entry)
    return Catalog(entries=tuple(entries))


def _unfold(entry: Entry, surface: Surface, transport: Transport, ids: Ids) -> Iterator[Probe]:
    if entry.per != "tool":
        yield _probe(entry, surface, transport, ids)
        return
    assert entry.arguments is not None
    made = 0
    for item in surface.of(ItemKind.TOOL):
        if made >= entry.most:
            return
        if item.name and (arguments := faulty_arguments(item.value, entry.arguments)) is not None:
            made += 1
            yield _probe(entry, surface, transport, ids, item, arguments)


def _probe(
    entry: Entry,
    surface: Surface,
    transport: Transport,
    ids: Ids,
    tool: Item | None = None,
    arguments: JsonObject | None = None,
) -> Probe:
    values = {
        "meta": meta(surface.era, comma=True),
        "meta0": meta(surface.era, comma=False),
        "version": NEWEST_HANDSHAKE,
        "tool": canonical_json(tool.name)[1:-1] if tool is not None else "",
        "arguments": canonical_json(arguments or {}),
    }
    sends, used = fill_in(entry.send, values, ids)
    return Probe(
        id=entry.id if tool is None else f"{entry.id}.{_plain(tool.name)}",
        title=entry.title,
        family=entry.family,
        sends=sends,
        encoding=entry.encoding,
        ids=(*used, *entry.echo),
        answers=entry.answers,
        must=entry.must,
        source=entry.source,
        accepted=entry.accepted,
        fault=entry.fault,
        tool=tool.name if tool is not None else "",
        version=entry.version,
        patience=entry.patience,
        transport=transport,
        http=entry.http,
    )


def _plain(name: str) -> str:
    """A tool's name as part of a phase's: what else is in it becomes an underscore."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64]
