"""The machine's npm registry settings, read from its .npmrc files on purpose and nothing else of them.

Read are registries (also by scope), credentials, certificates and proxies, from the files that npm documents
(its manual page "npmrc": global, user, environment; the later wins). npm itself then runs with a file that holds
these and nothing else, so that no other setting of the user can change or break what is resolved.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from harness.acquisition.tools import clean_environment, system_ca_bundle
from harness.model.base import Record, canonical_json, sha256_hex

_PLAIN = {"registry", "cafile", "ca", "ca[]", "strict-ssl", "proxy", "https-proxy", "http-proxy", "noproxy"}
_PATTERN = re.compile(
    r"@[^:\s]+:registry|//\S+:(_authToken|_auth|username|_password|certfile|keyfile)|_auth|_authToken|always-auth"
)


class RegistrySettings(Record):
    """Lines for a clean user configuration. They may hold credentials: written to private files, never printed."""

    values: tuple[tuple[str, str], ...] = ()

    @property
    def digest(self) -> str:
        """A digest of the settings, for cache keys."""
        return sha256_hex(canonical_json([list(pair) for pair in self.values]))

    def registries(self, built_in: str) -> tuple[str, ...]:
        """The addresses below which package files may lie, each ending in a slash.

        `built_in` is npm's own default, which stands in locks whatever registry they were made with.
        """
        named = [value for name, value in self.values if name == "registry" or name.endswith(":registry")]
        return tuple(dict.fromkeys(address.rstrip("/") + "/" for address in (*named, built_in)))

    def text(self) -> str:
        """The content of the configuration file."""
        return "".join(f"{name}={value}\n" for name, value in self.values)

    def environment(self, home: Path) -> dict[str, str]:
        """The environment for npm; `home` is an empty folder that stands for the user's."""
        bundle = os.environ.get("NODE_EXTRA_CA_CERTS") or system_ca_bundle()
        return clean_environment({"HOME": str(home), **({"NODE_EXTRA_CA_CERTS": bundle} if bundle else {})})


def read_registry_settings() -> RegistrySettings:
    """Read the settings of this machine and user. A later file overrides an earlier one line by line."""
    values: dict[str, str] = {}
    for path in _config_files():
        values.update(_read_file(path))
    for variable, value in os.environ.items():
        name = variable.lower()
        if name.startswith("npm_config_"):
            key = name.removeprefix("npm_config_").replace("_", "-")
            if key in _PLAIN and value:
                values[key] = value
    return RegistrySettings(values=tuple(sorted(values.items())))


def _config_files() -> list[Path]:
    """npm's configuration files, the later overriding the earlier; missing ones included.

    The global file lies below npm's prefix, which depends on how npm was installed: the usual places are tried.
    """
    given = {name.lower(): value for name, value in os.environ.items() if name.lower().startswith("npm_config_")}
    prefixes = [os.environ.get("PREFIX"), given.get("npm_config_prefix"), "/usr/local", "/usr"]
    globals_ = [Path(prefix) / "etc" / "npmrc" for prefix in reversed(prefixes) if prefix]
    named, user = given.get("npm_config_globalconfig"), given.get("npm_config_userconfig")
    return [
        Path("/etc/npmrc"),
        *([Path(named)] if named else globals_),
        Path(user) if user else Path.home() / ".npmrc",
    ]


def _read_file(path: Path) -> dict[str, str]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return {}
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, separator, value = line.strip().partition("=")
        name, value = name.strip(), value.strip().strip("\"'")
        if separator and not name.startswith(("#", ";")) and (name in _PLAIN or _PATTERN.fullmatch(name)):
            expanded = re.sub(r"\$\{(\w+)\??\}", lambda match: os.environ.get(match[1], ""), value)
            if "\n" not in expanded:
                found[name] = expanded
    return found
