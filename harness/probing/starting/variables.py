"""Environment variables that a server names when it complains: given, each shaped as its provider hands it out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from harness.probing.starting.case import Case, Proposal
from harness.probing.starting.complaints import SETTING, complaints
from harness.probing.starting.obstacles import obstacle_of
from harness.probing.starting.shapes import reshaped, value_for

#: At most so many are planted at once.
MOST = 24

_NAME = re.compile(r"(?<![\w$./@-])\$?\{?([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\b(?![\w.(/-])")
#: Names of one word, where the words around them say what they are.
_SINGLE = re.compile(
    r"KeyError: ['\"]([A-Z][A-Z0-9]{2,})['\"]|environment variables?:? [\"'`]?([A-Z][A-Z0-9]{2,})\b"
    r"|\b([A-Z][A-Z0-9]{3,})[\"'`]? (?:environment variable|env var|(?:is|was) (?:required|missing|not set)"
    r"|must be set)"
)
#: Fields of a settings class: a bare name, and below it the complaint.
_FIELD = re.compile(r"^([a-z][a-z0-9_]{1,60})\n\s+Field required", re.MULTILINE)
#: Not variables, or none that makes a server start.
_NOISE = re.compile(
    r"^(?:ERR|E|EAI|MODULE|INVALID|UNHANDLED|UV|SSL|TLS|HTTPS?|NPM|NODE|PYTHON|DEP0?\d*|JSON|PATH|UNDICI|OPENSSL|CVE|UTF|ISO"
    r"|LC|XDG|NO|FORCE|DISABLE|ENABLE|SKIP|USE|ALLOW|DO)_|_NOT_FOUND$|_ERROR$|^LOG_|_LOG_LEVEL$|_DEBUG$|_PROXY$|TELEMETRY"
    r"|_(?:ENABLED|DISABLED?)$|READ_ONLY|READONLY|_TIMEOUT|_USE_|_ENABLE_|_DISABLE_|_ALLOW_|_INSECURE"
)
_TRANSPORT = re.compile(r"TRANSPORT|MCP_MODE|^SSE_|_SSE|STREAMABLE|^MCP_(?:HOST|PORT|PATH)$|HTTP_(?:HOST|PORT|PATH)$")
_CREDENTIAL = re.compile(
    r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|_PAT$|URL|URI|HOST|DSN|DOMAIN|ENDPOINT|ACCOUNT|PROJECT|USER|EMAIL"
    r"|REGION|TENANT|CLIENT_ID|_ORG|WORKSPACE|DATABASE|COLLECTION|INSTANCE|SITE|_ID$|CONFIG|PATH$"
)
#: Complaints of the clouds' own libraries, which name no variable, and the variables that they read.
_CLOUDS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (
        re.compile(r"NoRegionError|specify a region|Missing region|Region is missing"),
        ("AWS_REGION", "AWS_DEFAULT_REGION"),
    ),
    (
        re.compile(
            r"NoCredentialsError|Unable to locate credentials|CredentialsProviderError|Could not load credentials"
        ),
        ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION"),
    ),
    (
        re.compile(r"DefaultCredentialsError|load the default credentials|default credentials were not found"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT"),
    ),
    (
        re.compile(r"DefaultAzureCredential|EnvironmentCredential|CredentialUnavailableError"),
        ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET"),
    ),
)
#: Runtimes that say which switch makes them go on without what is missing.
_SWITCHES: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (re.compile(r"valid ICU package"), "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1"),
)
#: A line that offers more than it asks for.
_OPTIONAL = re.compile(r"\bcustom\b|optional|overrid|alternative|to change\b|\bdefaults? to\b|\(default", re.IGNORECASE)
#: Other ways to the same end, which the source reads beside the usual one, and which would contradict it; and what only
#: takes away from what it does.
_ALTERNATIVE = re.compile(r"PRIVATE_KEY|CERT|_SSL|_TLS|SOCKET|PROXY|REDIRECT|CALLBACK|SESSION|_FILTERS?$")
_GIVEN = re.compile(r"\b([A-Z][A-Z0-9_]{3,})=(true|false|1|0|yes|on)\b(?!\.)")


def propose(case: Case) -> Iterator[Proposal]:
    """All variables that complaints name; then refused ones in another shape; then what the text itself suggests."""
    strong = complaints(case.lines, strong=True)
    needed = _leading(named(line for line in strong if not _OPTIONAL.search(line)))
    for names in (needed, _leading(named(strong)), _leading(named(complaints(case.lines)))):
        yield from plant(case, names, "named in its output")
    for pattern, read in _CLOUDS:
        if pattern.search(case.text):
            yield from plant(case, read, "that the cloud's library reads")
    for pattern, name, value in _SWITCHES:
        if pattern.search(case.text) and not case.holds(name):
            yield Proposal(case.plant({name: value}, {}), f"variable {name}, a switch of its runtime")
    yield from plant(case, _fields(case), "named in its output")
    yield from _reshape(case)
    yield from plant(case, needed[:1], "named first in its output")  # more of them may contradict each other
    suggested = {
        name: value
        for name, value in _GIVEN.findall("\n".join(complaints(case.lines)))
        if not case.holds(name) and not _TRANSPORT.search(name)
    }
    if suggested:
        why = f"variables as its output suggests: {', '.join(sorted(suggested))}"
        yield Proposal(case.plant(suggested, {}), why, guess=True)


def from_source(case: Case) -> Iterator[Proposal]:
    """Variables that the target's source reads and that look like access or an address: when the output names none."""
    if obstacle_of(case.text) is not None:
        return  # no setting helps against that
    wanted = [
        name
        for name in case.source_variables
        if _CREDENTIAL.search(name) and not name.endswith("_") and not _skipped(name) and not _ALTERNATIVE.search(name)
    ]
    for proposal in plant(case, _leading(wanted), "read by its source"):
        yield Proposal(proposal.adjustment, proposal.why, guess=True)


def named(lines: Iterable[str]) -> list[str]:
    """The names of variables in some lines, in order, each once."""
    text = "\n".join(lines)
    found = {match.start(1): match[1] for match in _NAME.finditer(text)}
    for match in _SINGLE.finditer(text):
        found[match.start()] = next(group for group in match.groups() if group)
    return [name for name in dict.fromkeys(found[place] for place in sorted(found)) if not _skipped(name)]


def _skipped(name: str) -> bool:
    return bool(_NOISE.search(name) or _TRANSPORT.search(name) or len(name) > 80)


def _leading(names: Iterable[str]) -> list[str]:
    """Without the forms that only say where the value lies (`X_FILE` beside `X`), which would contradict it."""
    every = list(dict.fromkeys(names))
    return [name for name in every if re.sub(r"_(?:FILE|PATH|FROM_FILE)$", "", name) not in set(every) - {name}]


def _fields(case: Case) -> list[str]:
    names: list[str] = []
    for found in (*_FIELD.findall(case.text), *SETTING.findall(case.text)):
        upper = found.upper()
        read = [name for name in case.source_variables if name == upper or name.endswith(f"_{upper}")]
        read += [f"{prefix}{upper}" for prefix in case.source_variables if prefix.endswith("_")]
        names += read or [upper]
    return names


def plant(case: Case, names: Iterable[str], whence: str) -> Iterator[Proposal]:
    """Plant those of `names` that are not there yet; `whence` says how they were found."""
    fresh = [name for name in dict.fromkeys(names) if not case.holds(name)][:MOST]
    if not fresh:
        return
    values, files = {}, {}
    for name in fresh:
        value = value_for(name, around(case, name), case.facts.home, case.facts.workspace, case.material)
        values[name] = value.text
        files.update(value.files)
    yield Proposal(case.plant(values, files), f"variables {whence}: {', '.join(fresh)}")


def _reshape(case: Case) -> Iterator[Proposal]:
    lines = complaints(case.lines)
    for name, given in case.adjustment.environment.items():
        # A long value that was made up is nobody else's: a line that shows it speaks of this variable.
        places = [n for n, line in enumerate(lines) if name in line or (len(given) >= 8 and given in line)]
        for place in places[:3]:
            value = reshaped(name, "\n".join(lines[max(0, place - 6) : place + 8]), case.material)
            if value is not None and value != case.adjustment.environment[name]:
                yield Proposal(case.plant({name: value}, {}), f"variable {name} in another shape")
                break


def around(case: Case, name: str) -> str:
    """The lines that hold a name, for what they say of it."""
    program = " ".join(case.facts.argv)[-200:]
    return "\n".join([*(line for line in case.lines if name in line), program])[:2000]


def incomplete(case: Case) -> bool:
    """True when settings are complained of by names that only the source makes whole."""
    return _FIELD.search(case.text) is not None
