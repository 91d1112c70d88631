"""Values for what a configuration leaves open or what must not be used: planted ones, by what they are for.

The results hold placeholders: `{workspace}` is the planted workspace, `{canary}` a fresh token. A real credential
in a configuration never goes into a sandbox with an unknown server: a planted token stands for it.
"""

from __future__ import annotations

import re

_SECRET = re.compile(
    r"(?:^|[_.-])(?:\w*TOKEN|SECRET\w*|PASSWORD|PASSWD|PASSPHRASE|PAT|CREDENTIALS?|AUTH|AUTHORIZATION|COOKIE|"
    r"\w*API_?KEY|(?:ACCESS|PRIVATE|SECRET|AUTH|ENCRYPTION|SIGNING|SESSION|SERVICE|ACCOUNT)_?KEY|KEY|DSN)(?:$|[_.-])",
    re.IGNORECASE,
)
#: Texts that carry a credential whatever they are called: those of big providers, and an address with a password.
_CREDENTIAL = re.compile(
    r"(?:sk-|ghp_|gho_|github_pat_|glpat-|xox[abps]-|AKIA|AIza|ya29\.|eyJhbGci|-----BEGIN )[\w+/=-]{8,}"
    r"|://[^/\s:@]+:[^/\s:@]+@"
)
_PATH = re.compile(r"(?:/|~/|~$|[A-Za-z]:[\\/])")


def is_secret(name: str, value: str) -> bool:
    """Does a variable or flag of this name and value carry a credential?"""
    plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.lstrip("-")).replace("-", "_")
    return bool(_SECRET.search(plain)) or bool(_CREDENTIAL.search(value))


def is_path(value: str) -> bool:
    """Does a text look like an absolute path of the user's machine?"""
    return bool(_PATH.match(value)) and "\n" not in value


def planted_path(value: str) -> str:
    """What stands in the sandbox for a path of the user's machine: the workspace, or a file in it of the same name."""
    name = re.split(r"[\\/]", value.rstrip("\\/"))[-1]
    is_file = re.search(r"[^.]\.[A-Za-z0-9]{1,8}$", name)
    return f"{{workspace}}/{name}" if is_file else "{workspace}"


def planted(name: str, kind: str = "string", *, secret: bool = False) -> str:
    """A value for a variable or argument without one, by its name and the type that is declared for it."""
    plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").upper()
    if kind == "boolean":
        return "false"
    if kind in ("number", "integer"):
        return "8080" if plain.endswith("PORT") else "1"
    if kind in ("filepath", "file", "directory") or re.search(r"(?:^|_)(?:PATH|DIR|DIRECTORY|FOLDER|ROOT)$", plain):
        return "{workspace}/README.md" if kind == "file" else "{workspace}"
    if secret or is_secret(name, ""):
        return "{canary}"
    if re.search(r"(?:^|_)(?:URL|URI|ENDPOINT|HOST_URL)$", plain):
        return "https://example.com"
    if plain.endswith("EMAIL"):
        return "user@example.com"
    if re.search(r"(?:^|_)PORT$", plain):
        return "8080"
    return "{canary}"
