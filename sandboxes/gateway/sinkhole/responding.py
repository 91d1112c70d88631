"""Canned answers of `--respond FILE.toml`: the first rule that fits host, port, method and path. Pure."""

from __future__ import annotations

import base64
import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sinkhole.pages import Page, Request


@dataclass(frozen=True)
class Rule:
    """Empty fields fit everything; `host` and `path` are shell patterns. `greeting`: sent to whoever connects."""

    host: str = ""
    port: int = 0
    method: str = ""
    path: str = ""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    greeting: bytes = b""

    def fits(self, host: str, port: int, method: str, path: str) -> bool:
        """Whether this rule is for that request."""
        return (
            (not self.host or fnmatch.fnmatchcase(host.lower(), self.host.lower()))
            and self.port in (0, port)
            and self.method.upper() in ("", method.upper())
            and (not self.path or fnmatch.fnmatchcase(path, self.path))
        )


@dataclass(frozen=True)
class Canned:
    """All rules, in the operator's order."""

    rules: tuple[Rule, ...] = ()

    @classmethod
    def read(cls, given: list[Mapping[str, Any]]) -> Canned:
        """From the harness' message; bytes are base64 there."""
        return cls(
            tuple(
                Rule(
                    host=str(rule.get("host", "")),
                    port=int(rule.get("port", 0)),
                    method=str(rule.get("method", "")),
                    path=str(rule.get("path", "")),
                    status=int(rule.get("status", 200)),
                    headers=tuple((str(name), str(value)) for name, value in rule.get("headers", [])),
                    body=base64.b64decode(rule.get("body", "")),
                    greeting=base64.b64decode(rule.get("greeting", "")),
                )
                for rule in given
            )
        )

    def page(self, request: Request) -> Page | None:
        """The canned answer to an HTTP request, if there is one."""
        path = request.target.partition("?")[0]
        for rule in self.rules:
            fits = any(rule.fits(h, request.port, request.method, path) for h in (request.host, request.address))
            if not rule.greeting and fits:
                headers = rule.headers
                if not any(name.lower() == "content-type" for name, _ in headers):
                    kind = "application/json" if rule.body[:1] in (b"{", b"[") else "text/plain; charset=utf-8"
                    headers = (*headers, ("content-type", kind))
                return Page(rule.status, headers, rule.body)
        return None

    def greeting(self, host: str, port: int) -> bytes | None:
        """What is sent first to whoever connects there."""
        for rule in self.rules:
            if rule.greeting and rule.fits(host, port, "", ""):
                return rule.greeting
        return None
