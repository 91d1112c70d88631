"""What a tool says that it is for, as far as that makes an effect its business: running code that it is given. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: So much of a description is looked at, in characters.
WORDS_CHARACTERS = 4000

#: Arguments that are code, by their names.
_CODE_NAME = re.compile(
    r"^(?:commands?|cmds?|command_?line|shell|bash|scripts?|code|source(?:_?code)?|program|python(?:_?code)?|javascript|js"
    r"|powershell|snippet|eval|statements?)$",
    re.IGNORECASE,
)
#: Descriptions of tools, and of arguments, that are run.
_CODE_WORDS = re.compile(
    r"\b(?:execut|run|evaluat|interpret)\w*\b[^.]{0,40}\b(?:code|commands?|scripts?|shell|python|javascript|programs?|snippets?|bash)\b"
    r"|\b(?:code|commands?|scripts?|shell)\b[^.]{0,20}\b(?:execut|run|interpret)\w*",
    re.IGNORECASE,
)


def is_code(tool_words: str, name: str, words: str) -> bool:
    """Whether this argument is code by design: it is called code, and the tool or the argument is said to run it.

    `tool_words`: the tool's name and description; `name` and `words`: the argument's.
    """
    if _CODE_NAME.match(re.sub(r"[^A-Za-z]+", "_", name).strip("_")) is None:
        return False
    return (
        _CODE_WORDS.search(tool_words[:WORDS_CHARACTERS].replace("_", " ").replace("-", " ")) is not None
        or _CODE_WORDS.search(words[:WORDS_CHARACTERS]) is not None
    )


def runs_code(tool_words: str, arguments: Iterable[tuple[str, str]]) -> bool:
    """Whether one of a tool's arguments, given as names and descriptions, is code by design."""
    return any(is_code(tool_words, name, words) for name, words in arguments)
