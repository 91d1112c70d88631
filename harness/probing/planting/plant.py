"""Making the canaries of one planting from one seed: files, variables, and what was planted where."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from harness.model.canary import Canary, CanaryPlace
from harness.probing.planting.browser import CHROME, FIREFOX, chrome_logins, firefox_logins
from harness.probing.planting.table import FILES, VARIABLES, FilePlace
from harness.probing.planting.tokens import PLAIN, TOKENS
from harness.probing.starting.material import DIGITS, LOWER, Material

_SLOT = re.compile(r"<<([a-z0-9-]+)(?::([a-z0-9-]+))?>>")


@dataclass(frozen=True)
class Planting:
    """What is planted: files by path below the home directory, variables by name, and the canaries in both."""

    files: dict[str, bytes]
    environment: dict[str, str]
    canaries: tuple[Canary, ...]


class _Filler:
    def __init__(self, material: Material, session: str) -> None:
        self._material = material
        self._session = session
        self.canaries: list[Canary] = []

    def fill(self, text: str, where: str, name: str, place: CanaryPlace) -> str:
        """The text with its slots filled. `where` is part of every value's label, `name` of the canaries' names."""
        values: dict[str, str] = {}

        def slot(match: re.Match[str]) -> str:
            if match[0] not in values:
                values[match[0]] = self._value(match[1], match[2] or "", where, name, place)
            return values[match[0]]

        return _SLOT.sub(slot, text)

    def _value(self, kind: str, more: str, where: str, name: str, place: CanaryPlace) -> str:
        label = f"{where} {more or kind}"
        if kind in PLAIN:
            return PLAIN[kind](self._material, where if kind == "ssh-public" else label)
        token = TOKENS[kind]
        text, value = token.make(self._material, where.removesuffix(".pub") if kind == "ssh-key" else label)
        self.canaries.append(
            Canary(
                value=value,
                name=name if place is CanaryPlace.ENVIRONMENT else f"{name} {more or kind}",
                place=place,
                kind=token.kind,
                services=token.services,
                session=self._session,
            )
        )
        return text

    def file(self, entry: FilePlace) -> bytes:
        return self.fill(entry.text, entry.path.removesuffix(".pub"), f"~/{entry.path}", entry.place).encode()

    def token(self, kind: str, path: str, more: str) -> str:
        return self._value(kind, more, path, f"~/{path}", CanaryPlace.HOME)


def plant(seed: str, *, without: Collection[str] = (), session: str = "main") -> Planting:
    """All canaries of one planting. `seed`: at least 64 random bits; `without`: variables that are given by others.

    `session`: the sessions that they are planted in, as `Canary.session` has it.
    """
    material = Material(seed)
    filler = _Filler(material, session)
    files = {entry.path: filler.file(entry) for entry in FILES}
    user = f"{material.text('browser user', 7, LOWER)}@mail.com"
    files[CHROME] = chrome_logins(user, filler.token("sealed", CHROME, "password"))
    profile = FIREFOX.replace("*", material.text("browser profile", 8, LOWER + DIGITS))
    files[profile] = firefox_logins(
        filler.token("sealed", FIREFOX, "user"), filler.token("sealed", FIREFOX, "password")
    )
    environment = {
        entry.name: filler.fill(entry.text, entry.name, f"environment {entry.name}", CanaryPlace.ENVIRONMENT)
        for entry in VARIABLES
        if entry.name not in without
    }
    return Planting(files, environment, tuple(filler.canaries))
