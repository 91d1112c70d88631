"""Words by which a server asks for what it must not have: secrets of the user, and what the model knows of them.

"Servers MUST NOT use form mode elicitation to request sensitive information" (specification 2025-11-25,
client/elicitation; the revision before says the same of all elicitation).
"""

from __future__ import annotations

import re

_SENSITIVE = (
    r"pass ?(?:word|wd|phrase|code|key)s?|pwd|secrets?|credentials?"
    r"|(?:api|access|private|secret|signing|encryption|ssh) keys?"
    r"|(?:api|access|auth|bearer|refresh|session|id|security|git ?hub|git ?lab|slack|npm|personal access)"
    r" tokens?|(?:seed|recovery|backup|mnemonic) (?:phrase|words|codes?)|mnemonic|(?:credit|debit|bank|payment)"
    r" card(?: number| no)?|card (?:number|no)|cvv|cvc|social security"
    r" (?:number|no)|ssn|pin (?:code|number)|(?:one time|verification|security|2fa|mfa|otp|authenticator)"
    r" (?:code|password|token)s?|otp|totp"
)
#: May be a coin or a place on a map as well.
UNSURE = frozenset({"token", "pin"})
_FIELD = re.compile(rf"\b(?:{_SENSITIVE}|token|pin)\b")
#: Names that only speak about one: how long it is, whether it is shown, where it lies, what it is called.
_ABOUT = re.compile(
    r"\b(?:length|policy|polic(?:y|ies)|count|limit|name|names|hint|manager|strength|expiry|expires|age|path|file|type"
    r"|kind|scope|scopes|holder|url|max|min|number of|id of)\b"
)
_ASKED_OF_USER = re.compile(
    rf"\b(?<!not )(?<!never )(?:enter|type|provide|give|send|paste|supply|submit|confirm|re ?enter|tell|share"
    r"|input|fill in)"
    rf"(?: (?!of )[^ .]+){{0,5}}? (?:{_SENSITIVE})\b(?! (?:an?|names?|length|policy)\b)"
    rf"|\b(?:what is|whats|what are) (?:your|the)(?: [^ .]+){{0,3}}? (?:{_SENSITIVE})\b"
    rf"|\byour(?: [^ .]+){{0,2}}? (?:{_SENSITIVE}) (?:is|are) (?:needed|required)\b"
)
#: What the model is asked to do, with what, and where it would have that from.
_ASKED_OF_MODEL = re.compile(
    r"\b(?<!not )(?<!never )(?:print|list|reveal|tell|give|show|repeat|output|return|extract|include|collect|find"
    r"|write|recall|dump|quote|send|copy|report|state|name|gather|enumerate|provide)"
    rf"(?: [^ .]+){{0,6}}? (?:{_SENSITIVE})\b"
)
_OF_THE_MODEL = re.compile(
    r"\b(?:you (?:know|have|remember|saw|see|were (?:given|told|shown))|(?:this|the|our|your|previous|earlier|whole"
    r"|entire|any|all|other) (?:conversations?|chats?|context|messages?|history|memory|session|discussion)|so far|above"
    r"|the users?|users?|in your context|known to you|from memory|other (?:servers?|tools?))\b"
)
_SPLIT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\-./\s]+")
_NO_WORD = re.compile(r"[^\w.]+")


def plain(text: str) -> str:
    """Words in lower case with one blank between them, names of members taken apart; ends of sentences stay."""
    return _NO_WORD.sub(" ", " ".join(_SPLIT.split(text))).casefold().strip()


def names_secret(text: str) -> str | None:
    """The secret that a field's name or title asks for; None where it asks for none."""
    words = plain(text)
    found = _FIELD.search(words)
    return found[0] if found is not None and _ABOUT.search(words) is None else None


def asks_user(text: str) -> str | None:
    """The words by which a text asks its reader for a secret."""
    found = _ASKED_OF_USER.search(_sentences(text))
    return found[0] if found is not None else None


def asks_model(text: str) -> str | None:
    """The words by which a text asks a model for secrets that it was told elsewhere, not for those in the text."""
    for sentence in _sentences(text).split("."):
        found = _ASKED_OF_MODEL.search(sentence)
        if found is not None and _OF_THE_MODEL.search(sentence):
            return found[0]
    return None


def _sentences(text: str) -> str:
    """Plain words, with a full stop where a sentence or a line ends."""
    ends = re.sub(r"[.!?;:\n]+(?:\s|$)", " . ", text.replace("'", "").replace("’", ""))
    return re.sub(r"[^\w.]+", " ", re.sub(r"(?<=\w)[-_/](?=\w)", " ", ends)).casefold().strip()
