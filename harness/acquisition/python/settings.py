"""The machine's package index settings, read from pip's configuration on purpose and nothing else of it.

Read are the indexes, find-links, the certificate settings, proxy and time limit, from the files and variables
that pip documents (pip.pypa.io, "Configuration": global, user, site, PIP_CONFIG_FILE, environment; the later
wins). Everything else there (constraints, targets, build options …) has no effect on what is fetched.
"""

from __future__ import annotations

import configparser
import os
import sys
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname  # noqa: TID251 - a path conversion; nothing is opened

from harness.acquisition.tools import clean_environment, system_ca_bundle
from harness.model.base import Record, canonical_json, sha256_hex

_LISTS = ("extra-index-url", "find-links", "trusted-host")
_NAMES = ("index-url", "no-index", "cert", "client-cert", "proxy", "timeout", *_LISTS)
_SECTIONS = ("global", "install", "download")


class IndexSettings(Record):
    """Where packages come from. May hold credentials: passed on in environments only, never printed."""

    index: str | None = None
    extra: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    trusted_hosts: tuple[str, ...] = ()
    certificates: str | None = None
    client_certificate: str | None = None
    proxy: str | None = None
    timeout: int | None = None

    @property
    def digest(self) -> str:
        """A digest of the settings, for cache keys."""
        return sha256_hex(canonical_json(self.model_dump()))

    def uv_environment(self, cache: Path) -> dict[str, str]:
        """The environment that makes uv use exactly these settings."""
        extra = {
            "UV_CACHE_DIR": str(cache),
            "UV_NO_CONFIG": "1",
            "UV_PYTHON_DOWNLOADS": "never",
            "UV_NO_PROGRESS": "1",
            "UV_HTTP_RETRIES": "2",
            # All indexes are asked and the best version wins, as pip does it.
            "UV_INDEX_STRATEGY": "unsafe-best-match",
            **_named("UV_DEFAULT_INDEX", self.index),
            **_named("UV_EXTRA_INDEX_URL", " ".join(self.extra)),
            **_named("UV_FIND_LINKS", ",".join(self.find_links)),
            **_named("UV_NO_INDEX", "1" if self.no_index else None),
            **_named("UV_INSECURE_HOST", " ".join(self.trusted_hosts)),
            **_named("SSL_CERT_FILE", self.certificates),
            **_named("SSL_CLIENT_CERT", self.client_certificate),
            **_named("UV_HTTP_TIMEOUT", str(self.timeout) if self.timeout else None),
        }
        return clean_environment({**extra, **self._proxies()})

    def pip_environment(self) -> dict[str, str]:
        """The environment for pip when it fetches files whose addresses are known, or lists versions."""
        extra = {
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INPUT": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_COLOR": "1",
            "PIP_RETRIES": "2",
            **_named("PIP_INDEX_URL", self.index),
            **_named("PIP_EXTRA_INDEX_URL", " ".join(self.extra)),
            **_named("PIP_FIND_LINKS", " ".join(self.find_links)),
            **_named("PIP_NO_INDEX", "1" if self.no_index else None),
            **_named("PIP_TRUSTED_HOST", " ".join(self.trusted_hosts)),
            **_named("PIP_CERT", self.certificates),
            **_named("PIP_CLIENT_CERT", self.client_certificate),
            **_named("PIP_DEFAULT_TIMEOUT", str(self.timeout) if self.timeout else None),
        }
        return clean_environment({**extra, **self._proxies()})

    def _proxies(self) -> dict[str, str]:
        return {"HTTPS_PROXY": self.proxy, "HTTP_PROXY": self.proxy} if self.proxy else {}


def read_index_settings() -> IndexSettings:
    """Read the settings of this machine and user. Damaged files are passed over, as their owner will hear from pip."""
    values: dict[str, str] = {}
    override = os.environ.get("PIP_CONFIG_FILE")
    if override != os.devnull:
        for path in _config_files(override):
            values.update(_read_file(path))
    for name in _NAMES:
        variable = os.environ.get("PIP_" + name.upper().replace("-", "_"))
        if variable:
            values[name] = variable
    timeout = values.get("timeout") or os.environ.get("PIP_DEFAULT_TIMEOUT") or values.get("default-timeout", "")
    certificates = values.get("cert") or system_ca_bundle()
    return IndexSettings(
        index=values.get("index-url") or None,
        extra=tuple(url for url in values.get("extra-index-url", "").split() if _exists(url)),
        find_links=tuple(place for place in values.get("find-links", "").split() if _exists(place)),
        no_index=values.get("no-index", "").lower() in ("1", "true", "yes", "on", "y", "t"),
        trusted_hosts=tuple(values.get("trusted-host", "").split()),
        certificates=certificates,
        client_certificate=values.get("client-cert") or None,
        proxy=values.get("proxy") or None,
        timeout=int(float(timeout)) if timeout.replace(".", "", 1).isdigit() and float(timeout) >= 1 else None,
    )


def _config_files(override: str | None) -> list[Path]:
    """pip's configuration files, the later overriding the earlier; missing ones included."""
    home = Path.home()
    system = [Path(p) / "pip" / "pip.conf" for p in os.environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":") if p]
    user_folder = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    user = [home / ".pip" / "pip.conf", user_folder / "pip" / "pip.conf"]
    own = [Path(override)] if override else []
    if override and Path(override).exists():
        user = []
    return [*system, Path("/etc/pip.conf"), *user, Path(sys.prefix) / "pip.conf", *own]


def _read_file(path: Path) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, configparser.Error):
        return {}
    found: dict[str, str] = {}
    for section in _SECTIONS:
        if parser.has_section(section):
            found.update({name.replace("_", "-").lstrip("-"): value for name, value in parser.items(section)})
    return {name: value for name, value in found.items() if name in (*_NAMES, "default-timeout")}


def _exists(place: str) -> bool:
    """False for a local index or folder that isn't there: pip passes over it, uv would stop."""
    parts = urlsplit(place)
    if parts.scheme == "file":
        return Path(url2pathname(parts.path)).exists()
    return bool(parts.scheme) or Path(place).exists()


def _named(name: str, value: str | None) -> dict[str, str]:
    return {name: value} if value else {}
