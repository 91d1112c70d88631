"""Hosts by whom they belong to, and by what a target said of them. The tables are data, one reason a line."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from functools import lru_cache

from harness.analyzers.base import AnalysisFacts
from harness.model.base import canonical_json

#: Who gathers how programs are used or fail; a program that talks to one says so, or should. Suffixes of hosts.
TELEMETRY: dict[str, str] = {
    "sentry.io": "Sentry",
    "posthog.com": "PostHog",
    "segment.io": "Segment",
    "segment.com": "Segment",
    "mixpanel.com": "Mixpanel",
    "amplitude.com": "Amplitude",
    "google-analytics.com": "Google Analytics",
    "googletagmanager.com": "Google Analytics",
    "app-measurement.com": "Google Analytics",
    "scarf.sh": "Scarf",
    "rudderstack.com": "RudderStack",
    "heap.io": "Heap",
    "heapanalytics.com": "Heap",
    "honeycomb.io": "Honeycomb",
    "datadoghq.com": "Datadog",
    "datadoghq.eu": "Datadog",
    "newrelic.com": "New Relic",
    "nr-data.net": "New Relic",
    "bugsnag.com": "Bugsnag",
    "rollbar.com": "Rollbar",
    "logrocket.io": "LogRocket",
    "applicationinsights.azure.com": "Azure Application Insights",
    "vortex.data.microsoft.com": "Microsoft",
    "events.data.microsoft.com": "Microsoft",
    "telemetry.nextjs.org": "Next.js",
    "telemetry.astro.build": "Astro",
    "statsigapi.net": "Statsig",
    "launchdarkly.com": "LaunchDarkly",
    "betterstack.com": "Better Stack",
    "axiom.co": "Axiom",
    "plausible.io": "Plausible",
    "aptabase.com": "Aptabase",
    "cloud.langfuse.com": "Langfuse",
    "logfire.pydantic.dev": "Logfire",
}
#: Where programs ask for newer versions and package managers for packages.
REGISTRIES: dict[str, str] = {
    "pythonhosted.org": "Python's package index",
    "npmjs.org": "npm's registry",
    "npmjs.com": "npm's registry",
    "yarnpkg.com": "npm's registry",
}
#: Labels of country domains below which others register.
_SECOND = frozenset({"co", "com", "net", "org", "gov", "ac", "edu", "ne", "or"})
#: Domains below which anybody gets a name.
_SHARED = frozenset(
    {
        "github.io", "gitlab.io", "vercel.app", "netlify.app", "workers.dev", "pages.dev", "ngrok.io", "ngrok.app",
        "ngrok-free.app", "herokuapp.com", "azurewebsites.net", "cloudfront.net", "firebaseapp.com", "web.app",
        "onrender.com", "fly.dev", "appspot.com", "run.app", "supabase.co", "trycloudflare.com", "duckdns.org",
        "replit.app", "glitch.me", "railway.app", "deno.dev", "blogspot.com", "pipedream.net",
    }
)  # fmt: skip
_HOST = re.compile(r"(?<![\w@.-])((?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,24})(?![\w-])", re.IGNORECASE)
#: What looks like a host's last label and is a file's suffix.
_SUFFIXES = frozenset(
    re.findall(
        r"\w+",
        "py js ts mjs cjs json yaml yml toml md txt csv pdf html css png jpg sh env lock cfg ini log db xml sql zip gz "
        "tar rs go rb java exe dll so tsx jsx ipynb docx xlsx pptx svg",
    )
)
_GENERIC = frozenset(
    re.findall(
        r"\w+",
        "server servers client python node npm pypi tool tools model context protocol official community "
        "modelcontextprotocol local remote http https token secret access private public personal password passwd auth "
        "apikey credential credentials environment oauth bearer user username email region project account api default "
        "service",
    )
)
#: Hosts remembered of what a target says of itself, and text looked through for them.
MOST_HOSTS = 512
MOST_TEXT = 1 << 20


@lru_cache(maxsize=4096)
def site(host: str) -> str:
    """The part of a name that is registered (`b.a.example.co.uk` is `example.co.uk`); addresses as they are."""
    try:
        return str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        pass
    labels = host.rstrip(".").lower().split(".")
    country = len(labels) > 2 and labels[-2] in _SECOND and len(labels[-1]) == 2
    return ".".join(labels[-3 if country or ".".join(labels[-2:]) in _SHARED else -2 :])


def steady(host: str) -> str:
    """The name as far as it is the same in every run: all of it, or its site where a label looks made up."""
    name, at = host.rstrip(".").lower(), site(host)
    labels = name.removesuffix(at).strip(".").split(".")
    plain = len(labels) <= 3 and all(len(part) <= 24 and sum(c.isdigit() for c in part) <= 2 for part in labels)
    return name if plain else at


def within(host: str, suffixes: Iterable[str]) -> bool:
    """True when the host is one of these, or below one."""
    name = host.rstrip(".").lower()
    return any(name == suffix or name.endswith(f".{suffix}") for suffix in suffixes)


def vendor(host: str, table: dict[str, str]) -> str | None:
    """Whose host it is by a table of suffixes, None when it is in none of its rows."""
    return next((who for suffix, who in table.items() if within(host, (suffix,))), None)


def words(text: str) -> frozenset[str]:
    """The words of a name that say what it is about: no generic ones, none shorter than four letters."""
    found = re.split(r"[^a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", text).lower())
    return frozenset(word for word in found if len(word) > 3 and word not in _GENERIC)


def named_after(host: str, names: Iterable[str]) -> bool:
    """True when one of these words is in the registered part of the host, without its ending."""
    label = site(host).partition(".")[0]
    return bool(label) and any(word in label for word in names)


def hosts_in(text: str) -> set[str]:
    """The names of hosts that a text mentions."""
    found = {match[1].lower() for match in _HOST.finditer(text[:MOST_TEXT])}
    return {host for host in found if host.rpartition(".")[2] not in _SUFFIXES}


class Expectations:
    """What the target's own words, its name and its arguments let expect. Fixed before the first event."""

    def __init__(self, facts: AnalysisFacts) -> None:
        self._hosts: dict[str, str] = {}
        self._names: frozenset[str] = frozenset()
        for surface in facts.surfaces[:1]:
            texts = [surface.instructions or "", canonical_json(surface.server_info)]
            texts += [canonical_json(item.value) for item in surface.items]
            self._know("\n".join(texts), "its description names it")
        manifest = facts.manifest
        if manifest is not None:
            self._know("\n".join(manifest.options.arguments), "its arguments name it")
            self._names = words(manifest.name or manifest.target.name or "")

    def learn(self, argv: Iterable[str]) -> None:
        """Arguments of a start."""
        self._know("\n".join(argv), "its arguments name it")

    def _know(self, text: str, why: str) -> None:
        for host in sorted(hosts_in(text)):
            if len(self._hosts) < MOST_HOSTS:
                self._hosts.setdefault(site(host), why)

    def why(self, host: str) -> str | None:
        """Why this host is to be expected; None when nothing says so."""
        found = self._hosts.get(site(host))
        if found is None and named_after(host, self._names):
            return "the target bears its name"
        return found
