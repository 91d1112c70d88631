"""Where Debian packages come from: this machine's own apt configuration, or what HARNESS_APT_MIRROR says.

Nothing here names a mirror. Both formats of apt's sources are read (one line each, and deb822), the best entry for a
Debian archive is picked, and turned into sources for the suite that is wanted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from harness.model.base import Record
from harness.model.errors import HarnessError

#: `MAIN [SECURITY]`: base URIs of a Debian archive and, optionally, of its security archive.
MIRROR_VARIABLE = "HARNESS_APT_MIRROR"
DEBIAN_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
CODENAMES = frozenset({"bullseye", "bookworm", "trixie", "forky", "sid", "stable", "testing", "unstable"})

#: The apt settings of this machine that hold for fetching as well (proxies, certificates, clocks).
_SETTINGS = re.compile(r"^Acquire::(?:(?:https?|Check-Valid-Until|Check-Date|Retries|ForceIPv[46])(?:::\S*)?) ", re.I)


class Source(Record):
    """One entry of apt's sources, one URI and suite each. `options` keeps Signed-By and Trusted as written."""

    uri: str
    suite: str
    components: tuple[str, ...]
    options: dict[str, str] = {}


class Mirror(Record):
    """The archive to take packages from, and the one with its security updates where there is one."""

    main: Source
    security: Source | None = None

    def sources(self, suite: str) -> str:
        """The deb822 text for a suite given by its code name: release, updates and security."""
        stanzas = [_stanza(self.main, f"{suite} {suite}-updates")]
        if self.security is not None:
            stanzas.append(_stanza(self.security, f"{suite}-security"))
        return "\n".join(stanzas)


def _stanza(source: Source, suites: str) -> str:
    lines = ["Types: deb", f"URIs: {source.uri}", f"Suites: {suites}", "Components: main"]
    options = {"Signed-By": DEBIAN_KEYRING, **source.options}
    return "\n".join([*lines, *(f"{key}: {value}" for key, value in options.items())]) + "\n"


def parse_one_line(text: str) -> list[Source]:
    """Read sources in the one-line format (sources.list(5)); lines that are none are passed over."""
    found = []
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[([^\]]*)\]\s*)?(\S+)\s+(\S+)\s*([^#]*)", line)
        if match is None:
            continue
        given = dict(word.split("=", 1) for word in (match[1] or "").split() if "=" in word)
        options = {_KEPT[key.lower()]: value for key, value in given.items() if key.lower() in _KEPT}
        found.append(Source(uri=match[2], suite=match[3], components=tuple(match[4].split()), options=options))
    return found


def parse_deb822(text: str) -> list[Source]:
    """Read sources in the deb822 format (sources.list(5)); disabled stanzas and other types are passed over."""
    found = []
    for stanza in re.split(r"\n[ \t]*\n", text.replace("\r\n", "\n")):
        fields: dict[str, str] = {}
        name = ""
        for line in stanza.split("\n"):
            if line.startswith("#"):
                continue
            if line[:1] in " \t" and name:
                fields[name] += "\n" + line
            elif ":" in line:
                key, value = line.split(":", 1)
                name = key.strip().lower()
                fields[name] = value.strip()
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").lower() in ("no", "false"):
            continue
        options = {_KEPT[key]: value for key, value in fields.items() if key in _KEPT}
        components = tuple(fields.get("components", "").split())
        for uri in fields.get("uris", "").split():
            for suite in fields.get("suites", "").split():
                found.append(Source(uri=uri, suite=suite, components=components, options=options))
    return found


_KEPT = {"signed-by": "Signed-By", "trusted": "Trusted"}


def choose_mirror(sources: Iterable[Source]) -> Mirror | None:
    """Pick the Debian archive among all sources; None when there is none.

    Many third parties use Debian's code names too, so an archive that also serves `-updates`, is signed with Debian's
    keyring, or whose path is `/debian` is preferred, in this order.
    """
    known = [source for source in sources if "main" in source.components]
    serving = {source.uri for source in known if source.suite.endswith("-updates")}

    def likeness(source: Source) -> tuple[bool, bool, bool]:
        return (
            source.uri in serving,
            "debian-archive" in source.options.get("Signed-By", ""),
            urlsplit(source.uri).path.rstrip("/").endswith("/debian"),
        )

    mains = [source for source in known if source.suite in CODENAMES and any(likeness(source))]
    if not mains:
        return None
    securities = [s for s in known if s.suite.partition("-security")[0] in CODENAMES and s.suite.endswith("-security")]
    return Mirror(main=max(mains, key=likeness), security=max(securities, key=likeness, default=None))


def find_mirror(environ: Mapping[str, str] = os.environ, root: Path = Path("/etc/apt")) -> Mirror:
    """The archive to use on this machine. Raises HarnessError when it names none."""
    uris = environ.get(MIRROR_VARIABLE, "").split()
    if uris:
        made = [Source(uri=uri, suite="stable", components=("main",)) for uri in uris[:2]]
        return Mirror(main=made[0], security=made[1] if len(made) > 1 else None)
    sources: list[Source] = []
    for path in [root / "sources.list", *sorted((root / "sources.list.d").glob("*"))]:
        if path.is_file() and path.suffix in (".list", ".sources"):
            parse = parse_deb822 if path.suffix == ".sources" else parse_one_line
            sources += parse(path.read_text(errors="replace"))
    mirror = choose_mirror(sources)
    if mirror is None:
        remedy = f"set {MIRROR_VARIABLE} to the base URI of a Debian archive, or HARNESS_IMAGE_SOURCE=pull"
        raise HarnessError("this machine's apt sources name no Debian archive", remedy=remedy)
    return mirror


def acquire_settings(dump: str) -> tuple[str, ...]:
    """The lines of `apt-config dump` that hold for fetching from a mirror."""
    return tuple(line for line in dump.splitlines() if _SETTINGS.match(line) and not line.endswith(' "";'))
