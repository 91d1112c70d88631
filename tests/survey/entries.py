"""The corpus as data: its entries, how each becomes a command line, and what a start is remembered by."""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import dataclass
from pathlib import Path

CORPUS = Path(__file__).resolve().parent.parent / "data" / "corpus.toml"


@dataclass(frozen=True)
class Start:
    """One version of one server, to be started. `plant`: fixtures; `tools`: how many are known, None if unknown."""

    id: str
    kind: str
    target: str
    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    plant: tuple[str, ...]
    pins: tuple[str, ...]
    node: str | None
    tools: int | None
    port: int | None = None
    path: str = "/mcp"

    @property
    def name(self) -> str:
        """The file name of its result."""
        version = self.target.rpartition("==" if "==" in self.target else "@")[2]
        return f"{self.id}-{version}".replace("/", "_")

    @property
    def digest(self) -> str:
        """A digest of all that its start is made of (16 hex digits)."""
        fields: list[object] = [self.target, self.arguments, self.environment, self.plant, self.pins, self.node]
        if self.port is not None:
            fields += [self.port, self.path]
        return hashlib.sha256(json.dumps(fields).encode()).hexdigest()[:16]

    def options(self, planted: list[str]) -> list[str]:
        """The words for `harness run`; `planted`: values of `--file`."""
        words = [self.target]
        words += [f"--arg={argument}" for argument in self.arguments]
        words += [word for name, value in self.environment for word in ("--env", f"{name}={value}")]
        words += [word for pin in self.pins for word in ("--constraint", pin)]
        words += [word for place in planted for word in ("--file", place)]
        if self.port is not None:
            words += ["--transport", "http", "--port", str(self.port), "--path", self.path]
        return words + (["--node", self.node] if self.node else [])


@dataclass(frozen=True)
class LeftOut:
    """An entry that is not started, and why."""

    id: str
    kind: str
    why: str


def read_corpus() -> tuple[list[Start], list[LeftOut]]:
    """All starts in the order of the file, and what is left out."""
    starts: list[Start] = []
    left_out: list[LeftOut] = []
    for entry in tomllib.loads(CORPUS.read_text())["server"]:
        if "left_out" in entry:
            left_out.append(LeftOut(entry["id"], entry["kind"], entry["left_out"]))
            continue
        for version in entry["versions"]:
            separator = "==" if entry["package"].startswith("pypi:") else "@"
            starts.append(
                Start(
                    id=entry["id"],
                    kind=entry["kind"],
                    target=f"{entry['package']}{separator}{version}",
                    arguments=tuple(entry.get("arguments", ())),
                    environment=tuple(sorted(entry.get("environment", {}).items())),
                    plant=tuple(entry.get("plant", ())),
                    pins=tuple(entry.get("pins", {}).get(version, ())),
                    node=entry.get("node"),
                    tools=entry.get("tools") if version == entry["versions"][-1] else None,
                    port=entry.get("port"),
                    path=entry.get("path", "/mcp"),
                )
            )
    return starts, left_out


def package_names() -> set[str]:
    """The names of all packages of the corpus."""
    return {entry["package"].partition(":")[2] for entry in tomllib.loads(CORPUS.read_text())["server"]}
