"""What a refusal says about the arguments: a small set of phrases that libraries and authors use.

The text is a target's, bounded by the caller; at worst it leads to another call that is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.model.base import JsonValue
from harness.probing.synthesis.draft import Leaf
from harness.probing.synthesis.words import words_of

MOST_CHARACTERS = 4_000
_QUOTED = re.compile(r"'([^'\n]{1,80})'|\"([^\"\n]{1,80})\"|`([^`\n]{1,80})`")
_BARE = re.compile(r"[\w./:-]{1,80}")


@dataclass(frozen=True)
class Hint:
    """One thing that a refusal says. `names`: properties it is about (empty: those of `roles`, or all); `values`:
    what is allowed. `wanted`: a property is missing; `unwanted`: one is too many.
    """

    names: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    values: tuple[JsonValue, ...] = ()
    wanted: bool = False
    unwanted: bool = False

    def about(self, leaf: Leaf) -> bool:
        """Whether it concerns a value."""
        if self.names:
            return leaf.name in self.names or any(words_of(leaf.name) == words_of(name) for name in self.names)
        return not self.roles or leaf.role in self.roles


_PATHS = ("path", "directory", "repository", "new-file", "new-directory", "database", "image", "uri")
_ONE_OF = re.compile(
    r"(?:must|should) be(?: one of| in| either)?\b|\bone of\b|\bexpected\b|allowed(?: values| commands)?(?: are)?\b"
    r"|available(?: \w+)?\b|valid (?:\w+ )?(?:values|options|choices)(?: are)?\b|choose from"
    r"|supported(?: \w+)?(?: are)?\b|input should be",
    re.IGNORECASE,
)
_REQUIRED = (
    re.compile(r"['\"`]?([\w.-]{1,60})['\"`]?:? (?:is|are) (?:a )?(?:required|missing|mandatory)", re.IGNORECASE),
    re.compile(r"(?:missing|required)(?: \w+){0,3}?:? ['\"`]([\w.-]{1,60})['\"`]", re.IGNORECASE),
    re.compile(
        r"(?:must|please|need to) (?:provide|specify|supply|give|set) (?:an? |the |either )*['\"`]?(\w{1,60})",
        re.IGNORECASE,
    ),
    re.compile(r"^([\w.-]{1,60})\s*\n\s*field required", re.IGNORECASE | re.MULTILINE),
    re.compile(r"\bor ['\"`]?(\w{1,60})['\"`]? (?:must be|is|are) (?:provided|required|given)", re.IGNORECASE),
)
_TOO_MANY = re.compile(
    r"(?:unrecognized|unexpected|unknown|extra|additional)[\w ]{0,30}(?:key|argument|propert|parameter|field|input)\w*"
    r"(?:\(s\))?[^'\"`]{0,30}['\"`]([\w.-]{1,60})['\"`]",
    re.IGNORECASE,
)
_PLAIN: tuple[tuple[re.Pattern[str], Hint], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), hint)
    for pattern, hint in (
        (
            r"not a (?:valid )?git repo|invalidgitrepository|no git repo",
            Hint(roles=("repository", "directory", "path")),
        ),
        (r"not a directory|enotdir|not a folder", Hint(roles=("path", "directory", "new-file"))),
        (r"is a directory|eisdir|not a file", Hint(roles=("path", "directory", "new-file"))),
        (
            r"no such file|enoent|not found|does not exist|doesn't exist|cannot find",
            Hint(roles=(*_PATHS, "table", "id", "git-ref")),
        ),
        (r"already exists|eexist", Hint(roles=("new-file", "new-directory", "new-branch", "name", "sql"))),
        (r"outside|not allowed|access denied|permission|forbidden", Hint(roles=(*_PATHS, "command", "url"))),
        (r"absolute path|relative path", Hint(roles=_PATHS)),
        (r"unsupported (?:file|format|extension|type)|invalid (?:file|format)|extension", Hint(roles=_PATHS)),
        (
            r"invalid (?:date|time|iso)|does not match format|yyyy|isoformat",
            Hint(roles=("date", "later-date", "date-time", "later-date-time", "time", "month")),
        ),
        (
            r"invalid url|not a (?:valid )?url|unknown url type|parse url|must start with|unsupported protocol|scheme",
            Hint(roles=("url", "uri", "repository-url")),
        ),
        (r"no such table|table .{0,60}not exist|catalog error", Hint(roles=("table", "sql", "query"))),
        (
            r"syntax error|parser error|parse error",
            Hint(roles=("sql", "code", "expression", "json", "xml", "yaml", "mermaid")),
        ),
        (r"only select|must be a select|read-only|not a select", Hint(roles=("sql",))),
        (r"command", Hint(roles=("command",))),
    )
)


def hints_of(text: str) -> tuple[Hint, ...]:
    """The hints of a refusal, most telling first."""
    text = text[:MOST_CHARACTERS]
    found: list[Hint] = []
    for match in _ONE_OF.finditer(text):
        values = tuple(dict.fromkeys(_listed(text[match.end() : match.end() + 400].partition("\n")[0])))
        if len(values) > 1:
            names = tuple(_names_before(text[: match.start()]))
            found += [Hint(names=names, values=values)] if names else []
            found.append(Hint(roles=("command",) if "command" in match[0].lower() else (), values=values))
    for pattern in _REQUIRED:
        found += [Hint(names=(name,), wanted=True) for name in dict.fromkeys(pattern.findall(text))]
    found += [Hint(names=(name,), unwanted=True) for name in dict.fromkeys(_TOO_MANY.findall(text))]
    found += [hint for pattern, hint in _PLAIN if pattern.search(text)]
    names = tuple(dict.fromkeys(_names_before(text)))
    if names:
        found.append(Hint(names=names))
    return tuple(found)


def _listed(text: str) -> list[str]:
    """The values of a list in words: quoted ones, or single words between commas, bars, `or` and `and`."""
    quoted = [next(filter(None, groups)) for groups in _QUOTED.findall(text)]
    if quoted:
        return quoted
    found = []
    for part in re.split(r",|\||\bor\b|\band\b", text):
        word = part.strip(" :[](){}.")
        if not _BARE.fullmatch(word):
            break
        found.append(word)
    return found


def _names_before(text: str) -> list[str]:
    """Words just before a statement that may be properties: `path: …`, `"path"`, `["path"]`."""
    tail = text[-200:]
    return re.findall(r"[A-Za-z_][\w-]{0,60}", tail)[-6:]
