"""Policies: the presets, and reading one from TOML text, with errors that name the key and the nearest that exists.

What a policy is, and what the text looks like, stands in `policy_model`. Reading the file is the pipeline's.
"""

from __future__ import annotations

import datetime
import difflib
import re
import tomllib
from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Any, TypeVar

from harness.assessment.policy_model import DEFAULT_PRESET, PRESETS, AllowedEgress, Policy, Suppression
from harness.model.errors import UsageError
from harness.model.finding import EvidenceLevel, Location, Severity

__all__ = ["DEFAULT_PRESET", "PRESETS", "Policy", "Suppression", "parse_policy", "preset"]

_TOP = ("preset", "required", "disabled", "blocking", "severity", "egress", "suppress")
_BLOCKING = ("severity", "evidence")
_EGRESS = ("hosts", "target")
_SUPPRESS = ("rule", "fingerprint", "location", "reason", "expires", "confirmed")
_OPTIONAL = ("confirmed",)
_LOCATION = tuple(Location.model_fields)
_HOST = re.compile(r"(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9_.:-]*[A-Za-z0-9_])?")
_DIGEST = re.compile("[0-9a-f]{64}")
_Choice = TypeVar("_Choice", bound=StrEnum)


def preset(name: str) -> Policy:
    """The preset of that name. Raises UsageError with the nearest name."""
    if name not in PRESETS:
        raise UsageError(f"there is no policy preset '{name}'", remedy=_hint(name, PRESETS))
    return PRESETS[name]


def parse_policy(
    text: str, *, name: str, rules: Collection[str] | None = None, analyzers: Collection[str] | None = None
) -> Policy:
    """The policy that a TOML text says. `name` is what reports call it.

    `rules` and `analyzers`: the known ones; a text that names another is refused. Raises UsageError.
    """
    try:
        given = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"policy {name} is not TOML: {_line(error)}", remedy="correct it there") from None
    reader = _Reader(name)
    reader.keys(given, _TOP, "")
    base = preset(reader.text(given, "preset", default=DEFAULT_PRESET))
    blocking = reader.table(given, "blocking")
    reader.keys(blocking, _BLOCKING, "blocking.")
    overrides = reader.table(given, "severity")
    return base.model_copy(
        update={
            "name": name,
            "blocking_severity": reader.choice(blocking, "severity", Severity, base.blocking_severity, "blocking."),
            "blocking_evidence": reader.choice(
                blocking, "evidence", EvidenceLevel, base.blocking_evidence, "blocking."
            ),
            "required": reader.names(given, "required", analyzers, "analyzer"),
            "disabled": reader.names(given, "disabled", rules, "rule"),
            "severities": {
                reader.known(rule, rules, "rule", "severity"): reader.choice(
                    overrides, rule, Severity, Severity.INFO, "severity."
                )
                for rule in sorted(overrides)
            },
            "egress": reader.egress(given),
            "suppressions": reader.suppressions(given, rules),
        }
    )


class _Reader:
    """Typed look-ups that say where in the policy the mistake is."""

    def __init__(self, name: str) -> None:
        self._name = name

    def fail(self, what: str, remedy: str) -> UsageError:
        return UsageError(f"policy {self._name}: {what}", remedy=remedy)

    def keys(self, table: Mapping[str, Any], known: Collection[str], place: str) -> None:
        for key in table:
            if key not in known:
                raise self.fail(f"unknown key '{place}{key}'", _hint(key, known))

    def table(self, given: Mapping[str, Any], key: str) -> dict[str, Any]:
        value = given.get(key, {})
        if not isinstance(value, dict):
            raise self.fail(f"'{key}' is not a table", f"write [{key}]")
        return value

    def text(self, given: Mapping[str, Any], key: str, *, place: str = "", default: str | None = None) -> str:
        value = given.get(key, default)
        if not isinstance(value, str) or not value.strip():
            raise self.fail(f"'{place}{key}' is not a text", f'write {key} = "…"')
        return value

    def choice(self, table: Mapping[str, Any], key: str, kind: type[_Choice], default: _Choice, place: str) -> _Choice:
        value = table.get(key, default.value)
        names = [member.value for member in kind]
        if not isinstance(value, str) or value.upper() not in names:
            raise self.fail(f"'{place}{key}' is {value!r}", f"it is one of {', '.join(names)}")
        return kind(value.upper())

    def names(self, given: Mapping[str, Any], key: str, known: Collection[str] | None, what: str) -> tuple[str, ...]:
        value = given.get(key, [])
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            raise self.fail(f"'{key}' is not a list of names", f'write {key} = ["…"]')
        return tuple(sorted({self.known(entry, known, what, key) for entry in value}))

    def known(self, entry: str, known: Collection[str] | None, what: str, key: str) -> str:
        if known is not None and entry not in known:
            raise self.fail(f"'{key}' names an unknown {what} '{entry}'", _hint(entry, known))
        return entry

    def egress(self, given: Mapping[str, Any]) -> tuple[AllowedEgress, ...]:
        value = given.get("egress", [])
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            raise self.fail("'egress' is not a list of tables", "write [[egress]]")
        return tuple(self._allowed(entry, f"egress[{n}].") for n, entry in enumerate(value))

    def _allowed(self, entry: Mapping[str, Any], place: str) -> AllowedEgress:
        self.keys(entry, _EGRESS, place)
        hosts = entry.get("hosts")
        if not isinstance(hosts, list) or not hosts or not all(isinstance(host, str) for host in hosts):
            raise self.fail(f"'{place}hosts' is not a list of names", 'write hosts = ["api.example.com"]')
        for host in hosts:
            if not _HOST.fullmatch(host):
                raise self.fail(f"'{place}hosts' holds {host[:80]!a}", "write a host's name, or *. and a name")
        target = self.text(entry, "target", place=place) if "target" in entry else None
        return AllowedEgress(hosts=tuple(sorted(set(hosts))), target=target)

    def suppressions(self, given: Mapping[str, Any], rules: Collection[str] | None) -> tuple[Suppression, ...]:
        value = given.get("suppress", [])
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            raise self.fail("'suppress' is not a list of tables", "write [[suppress]]")
        return tuple(self._suppression(entry, f"suppress[{n}].", rules) for n, entry in enumerate(value))

    def _suppression(self, entry: Mapping[str, Any], place: str, rules: Collection[str] | None) -> Suppression:
        self.keys(entry, _SUPPRESS, place)
        for key in _SUPPRESS:
            if key not in entry and key not in _OPTIONAL:
                raise self.fail(f"'{place}{key}' is missing", f"a suppression has {', '.join(_SUPPRESS[:5])}")
        expires = entry["expires"]
        if not isinstance(expires, datetime.date) or isinstance(expires, datetime.datetime):
            raise self.fail(f"'{place}expires' is not a date", "write expires = 2027-01-31, without quotes")
        fingerprint = self.text(entry, "fingerprint", place=place)
        if not _DIGEST.fullmatch(fingerprint):
            raise self.fail(f"'{place}fingerprint' is not 64 hex digits", "copy it from the JSON report")
        confirmed = entry.get("confirmed", False)
        if not isinstance(confirmed, bool):
            raise self.fail(f"'{place}confirmed' is not true or false", "write confirmed = true")
        return Suppression(
            rule=self.known(self.text(entry, "rule", place=place), rules, "rule", f"{place}rule"),
            fingerprint=fingerprint,
            location=self._location(entry["location"], f"{place}location"),
            reason=self.text(entry, "reason", place=place),
            expires=expires,
            confirmed=confirmed,
        )

    def _location(self, value: object, place: str) -> Location:
        if not isinstance(value, dict) or not value:
            raise self.fail(f"'{place}' is not a table", 'write location = {tool = "…"}')
        self.keys(value, _LOCATION, f"{place}.")
        for key, entry in value.items():
            wanted = int if key == "line" else str
            if not isinstance(entry, wanted) or isinstance(entry, bool):
                raise self.fail(f"'{place}.{key}' has the wrong type", "copy it from the JSON report")
        return Location(**value)


def _hint(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(sorted(known))}"


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
