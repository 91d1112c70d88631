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
#: An argument that is said to be code itself, and no way to it.
_ARGUMENT_WORDS = re.compile(
    r"\b(?:python|javascript|typescript|code|shell|bash)\b[^.]{0,30}\bto (?:be )?(?:run|execut|evaluat|interpret)\w*",
    re.IGNORECASE,
)
_WAY_WORDS = re.compile(r"\b(?:paths?|files?|names?|ids?|urls?|director(?:y|ies)|folders?)\b", re.IGNORECASE)
#: Arguments that are code where the tool is there to run some, by its name too.
_INPUT_NAME = re.compile(r"^(?:expression|expr|input|cell|query|text|content|body)$", re.IGNORECASE)
_RUNNER_WORDS = re.compile(
    r"\b(?:execut|run|evaluat|interpret)\w*\b[^.]{0,40}\b(?:python|javascript|typescript|code|repl|shell|bash)\b",
    re.IGNORECASE,
)


def is_code(tool_words: str, name: str, words: str) -> bool:
    """Whether this argument is code by design: it is called or said to be code, and tool or argument is said to run it.

    `tool_words`: the tool's name and description; `name` and `words`: the argument's.
    """
    plain = re.sub(r"[^A-Za-z]+", "_", name).strip("_")
    own = words[:WORDS_CHARACTERS]
    if _ARGUMENT_WORDS.search(own) is not None and _WAY_WORDS.search(f"{plain} {own}".replace("_", " ")) is None:
        return True
    if _INPUT_NAME.match(plain) is not None:
        return _RUNNER_WORDS.search(tool_words[:WORDS_CHARACTERS].replace("_", " ").replace("-", " ")) is not None
    if _CODE_NAME.match(plain) is None and not plain.casefold().endswith(("_script", "_code", "_cell")):
        return False
    return (
        _CODE_WORDS.search(tool_words[:WORDS_CHARACTERS].replace("_", " ").replace("-", " ")) is not None
        or _CODE_WORDS.search(words[:WORDS_CHARACTERS]) is not None
    )


def runs_code(tool_words: str, arguments: Iterable[tuple[str, str]]) -> bool:
    """Whether one of a tool's arguments, given as names and descriptions, is code by design."""
    return any(is_code(tool_words, name, words) for name, words in arguments)
