"""The payload catalog, read from its folder."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import harness
from harness.model.errors import HarnessError, UsageError
from harness.model.payload import Payload
from harness.pipeline.entropy import Entropy
from harness.pipeline.world import plant
from harness.probing.payloads.checking import faults_of
from harness.probing.payloads.parsing import parse_payload
from harness.sandbox.base import LaunchSpec


def payloads_dir() -> Path:
    """The folder of the catalog: beside the package in a checkout, in it where it is installed. Raises HarnessError."""
    package = Path(harness.__file__).parent
    for folder in (package.parent / "payloads", package / "payloads"):
        if (folder / "README.md").is_file():
            return folder
    raise HarnessError("the payload catalog is missing", remedy="install the program again")


@lru_cache(maxsize=4)
def read_payloads(folder: Path | None = None) -> tuple[Payload, ...]:
    """All payloads, by class and order. Blocking, some 50 ms. Raises UsageError for the first mistake."""
    found = [parse_payload(text, shown) for text, shown in _files(folder or payloads_dir())]
    return tuple(sorted(found, key=lambda payload: (payload.payload_class, payload.order, payload.id)))


def check_payloads(folder: Path | None = None) -> tuple[tuple[Payload, ...], list[str]]:
    """What can be read, and every mistake, each beginning with `file:line:`. Blocking."""
    good, mistakes = [], []
    entropy = Entropy()
    spec = LaunchSpec(image="", volume=None, argv=())
    world = plant(entropy, spec).world
    for text, shown in _files(folder or payloads_dir()):
        try:
            payload = parse_payload(text, shown)
        except UsageError as error:
            mistakes.append(error.message)
            continue
        good.append(payload)
        mistakes += [f"{shown}:1: {fault}" for fault in faults_of(payload, world, (entropy.nonce(), entropy.nonce()))]
    if not good and not mistakes:
        mistakes.append(f"{folder}:1: there are no payloads")
    return tuple(good), mistakes


def _files(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.glob("*/*.toml")):
        yield path.read_text(encoding="utf-8"), f"{folder.name}/{path.relative_to(folder)}"
