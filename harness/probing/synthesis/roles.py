"""What an argument seems to be, told from its format, its name, its description and its tool's name.

A table: the first line that fits is taken. Names are tried before descriptions, so that a telling name is not
overruled by a long text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.probing.synthesis.words import description_words, words_of


@dataclass(frozen=True)
class Clues:
    """What is known of a value: its property's name, formats, descriptions; of the tool, name and description."""

    name: str
    format: str = ""
    description: str = ""
    tool: str = ""
    tool_description: str = ""


_FORMATS = {
    "date": "date",
    "date-time": "date-time",
    "time": "time",
    "duration": "duration",
    "email": "email",
    "idn-email": "email",
    "hostname": "host",
    "idn-hostname": "host",
    "ipv4": "ipv4",
    "ipv6": "ipv6",
    "uri": "url",
    "url": "url",
    "iri": "url",
    "uri-reference": "url",
    "uuid": "uuid",
    "regex": "regex",
    "json-pointer": "json-pointer",
    "byte": "base64",
    "path": "path",
    "file-path": "path",
    "directory-path": "directory",
    "password": "password",
}

#: Words that must all be among the name's, and the role. Longer combinations first.
_NAMES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("repository", "url"), "repository-url"),
    (("repository", "path"), "repository"),
    (("working", "directory"), "directory"),
    (("output", "directory"), "directory"),
    (("time", "zone"), "timezone"),
    (("table", "name"), "table"),
    (("file", "id"), "id"),
    (("file", "key"), "id"),
    (("file", "type"), "extension"),
    (("file", "extension"), "extension"),
    (("file", "pattern"), "glob"),
    (("include", "patterns"), "glob"),
    (("exclude", "patterns"), "glob"),
    (("ignore", "patterns"), "glob"),
    (("branch", "name"), "new-branch"),
    (("base", "branch"), "git-ref"),
    (("start", "date"), "date"),
    (("end", "date"), "later-date"),
    (("start", "timestamp"), "date-time"),
    (("end", "timestamp"), "later-date-time"),
    (("date", "time"), "date-time"),
    (("sheet", "name"), "sheet"),
    (("database", "path"), "database"),
    (("database", "file"), "database"),
    (("db", "path"), "database"),
    (("new", "path"), "new-file"),
    (("output", "path"), "new-file"),
    (("output", "file"), "new-file"),
    (("output", "file", "name"), "new-file"),
    (("image", "path"), "image"),
    (("image", "url"), "url"),
    (("search", "pattern"), "regex"),
    (("old", "text"), "old-text"),
    (("old", "string"), "old-text"),
    (("old", "str"), "old-text"),
    (("old", "content"), "old-text"),
    (("search", "text"), "old-text"),
    (("find", "text"), "old-text"),
    (("text", "to", "replace"), "old-text"),
    (("anchor",), "old-text"),
    (("postal", "code"), "postal-code"),
    (("zip", "code"), "postal-code"),
    (("country", "code"), "country-code"),
    (("language", "code"), "language"),
    (("language", "id"), "programming-language"),
    (("programming", "language"), "programming-language"),
    (("currency",), "currency"),
    (("url",), "url"),
    (("urls",), "url"),
    (("uri",), "uri"),
    (("href",), "url"),
    (("endpoint",), "url"),
    (("website",), "url"),
    (("webpage",), "url"),
    (("directory",), "directory"),
    (("directories",), "directory"),
    (("folder",), "directory"),
    (("root",), "directory"),
    (("workspace",), "directory"),
    (("repository",), "repository"),
    (("destination",), "new-file"),
    (("path",), "path"),
    (("paths",), "path"),
    (("file",), "path"),
    (("files",), "path"),
    (("filename",), "path"),
    (("sql",), "sql"),
    (("statement",), "sql"),
    (("table",), "table"),
    (("column",), "column"),
    (("columns",), "column"),
    (("database",), "database"),
    (("command",), "command"),
    (("commands",), "command"),
    (("shell",), "command"),
    (("script",), "code"),
    (("snippet",), "code"),
    (("code",), "code"),
    (("expression",), "expression"),
    (("formula",), "formula"),
    (("equation",), "expression"),
    (("calculation",), "expression"),
    (("timezone",), "timezone"),
    (("email",), "email"),
    (("phone",), "phone"),
    (("host",), "host"),
    (("domain",), "host"),
    (("server",), "host"),
    (("ip",), "ipv4"),
    (("uuid",), "uuid"),
    (("guid",), "uuid"),
    (("ticker",), "ticker"),
    (("symbol",), "ticker"),
    (("symbols",), "ticker"),
    (("stock",), "ticker"),
    (("latitude",), "latitude"),
    (("longitude",), "longitude"),
    (("city",), "city"),
    (("location",), "city"),
    (("place",), "city"),
    (("address",), "address"),
    (("country",), "country-code"),
    (("language",), "language"),
    (("locale",), "language"),
    (("color",), "color"),
    (("colour",), "color"),
    (("date",), "date"),
    (("day",), "date"),
    (("timestamp",), "date-time"),
    (("since",), "date"),
    (("until",), "later-date"),
    (("before",), "later-date"),
    (("after",), "date"),
    (("time",), "time"),
    (("month",), "month"),
    (("cron",), "cron"),
    (("branch",), "git-ref"),
    (("revision",), "git-ref"),
    (("commit",), "git-ref"),
    (("ref",), "git-ref"),
    (("target",), "git-ref"),
    (("tag",), "git-tag"),
    (("glob",), "glob"),
    (("regex",), "regex"),
    (("pattern",), "glob-or-regex"),
    (("extension",), "extension"),
    (("mermaid",), "mermaid"),
    (("diagram",), "mermaid"),
    (("html",), "html"),
    (("xml",), "xml"),
    (("json",), "json"),
    (("yaml",), "yaml"),
    (("csv",), "csv"),
    (("markdown",), "markdown"),
    (("template",), "template"),
    (("base64",), "base64"),
    (("selector",), "selector"),
    (("xpath",), "xpath"),
    (("version",), "version"),
    (("package",), "package"),
    (("module",), "package"),
    (("library",), "package"),
    (("namespace",), "namespace"),
    (("password",), "password"),
    (("secret",), "password"),
    (("token",), "password"),
    (("username",), "user"),
    (("user", "name"), "user"),
    (("user",), "user"),
    (("login",), "user"),
    (("owner",), "user"),
    (("id",), "id"),
    (("ids",), "id"),
    (("key",), "key"),
    (("query",), "query"),
    (("search",), "search"),
    (("term",), "search"),
    (("keyword",), "search"),
    (("keywords",), "search"),
    (("topic",), "search"),
    (("question",), "question"),
    (("prompt",), "question"),
    (("title",), "title"),
    (("subject",), "title"),
    (("name",), "name"),
    (("label",), "name"),
    (("message",), "text"),
    (("content",), "text"),
    (("contents",), "text"),
    (("text",), "text"),
    (("body",), "text"),
    (("description",), "text"),
    (("comment",), "text"),
    (("note",), "text"),
    (("thought",), "text"),
    (("data",), "data"),
    (("input",), "text"),
    (("output",), "new-file"),
    (("source",), "path"),
)

#: Phrases of a description, and the role; for names that say nothing.
_DESCRIPTIONS: tuple[tuple[str, str], ...] = (
    (r"iana|time ?zone", "timezone"),
    (r"yyyy-mm-dd ?t?hh|iso ?-?8601 (?:date-?time|timestamp)|date and time", "date-time"),
    (r"yyyy-mm-dd|iso ?-?8601 date|\bdate\b", "date"),
    (r"\bhh:mm|24-hour", "time"),
    (r"repository (?:path|directory|folder)|path (?:to|of) (?:the |a )?(?:git )?repo", "repository"),
    (r"(?:path|folder|directory)[^.]{0,40}(?:to|where)[^.]{0,20}(?:write|save|create|store)", "new-file"),
    (r"\b(?:director(?:y|ies)|folder)s?\b", "directory"),
    (r"\b(?:file|path)s? ?(?:name|path)?s?\b(?! type)", "path"),
    (r"\b(?:branch|commit|revision|tag)s? or (?:a )?(?:branch|commit|revision|tag)\b|\bgit ref|branch name", "git-ref"),
    (r"\burls?\b|\bhttps?://|web ?page|web ?site", "url"),
    (r"\bsql\b|select quer", "sql"),
    (r"\bshell|command (?:line|to run|to execute)|\bcommands?\b", "command"),
    (r"\bpython|javascript|\bcode\b|\bscript\b", "code"),
    (r"mathematical|\bexpression\b|arithmetic", "expression"),
    (r"\bhost ?name|\bdomain\b", "host"),
    (r"\be-?mail", "email"),
    (r"\bcity\b|\blocation\b", "city"),
    (r"\bticker|stock", "ticker"),
    (r"\b(?:id|identifier)\b", "id"),
)
_COMPILED = tuple((re.compile(pattern, re.IGNORECASE), role) for pattern, role in _DESCRIPTIONS)

_CREATES = frozenset({"write", "create", "save", "export", "generate", "new"})
_LISTS = frozenset({"list", "tree", "directory", "directories", "folder", "index", "scan", "pack", "codebase"})
_DATABASES = frozenset(
    {"sql", "sqlite", "database", "table", "tables", "select", "duckdb", "postgres", "mysql", "rows"}
)


def role_of(clues: Clues) -> str:
    """The role of a value, `word` where nothing tells."""
    tool = frozenset(words_of(clues.tool))
    about = description_words(f"{clues.tool_description} {clues.description}") | tool
    if clues.format in _FORMATS:
        role = _FORMATS[clues.format]
        return "url" if role == "url" and "repository" not in words_of(clues.name) else role
    names = frozenset(words_of(clues.name))
    for wanted, role in _NAMES:
        if names.issuperset(wanted):
            return _refined(role, clues, tool, about)
    for pattern, role in _COMPILED:
        if pattern.search(clues.description[:1000]):
            return _refined(role, clues, tool, about)
    return "word"


def _refined(role: str, clues: Clues, tool: frozenset[str], about: frozenset[str]) -> str:
    said = clues.description.lower()
    match role:
        case "path":
            names = words_of(clues.name)
            if "source" in names:
                return "path"
            if re.search(r"\bdirector|\bfolder", said) and not re.search(r"\bfiles? or", said) and "file" not in names:
                return "new-directory" if tool & {"create", "make", "mkdir"} else "directory"
            if tool & {"create", "make", "mkdir"} and tool & {"directory", "folder"}:
                return "new-directory"
            if (tool & _LISTS or tool & {"search", "find"}) and "file" not in names:
                return "directory"
            return "new-file" if tool & _CREATES or "output" in names else "path"
        case "query" | "statement" if about & _DATABASES:
            return "sql"
        case "query":
            return "search"
        case "code" if tool & {"country", "language", "currency"}:
            return "word"
        case "uri" if "file" in said or "http" in said:
            return "uri"
        case "git-ref" if clues.name.lower() == "target" and not about & {"git", "branch", "commit", "diff"}:
            return "name"
        case "city" if "file" in said or "path" in said or "directory" in said:
            return "path"
        case "sql" if not about & _DATABASES:
            return "text"
        case "command" if "kubectl" in about and "shell" not in about:
            return "command"
        case "glob-or-regex":
            return "regex" if "regex" in said or "regular" in said or "grep" in tool else "glob"
        case "new-branch" if not tool & {"create", "new"}:
            return "git-ref"
        case _:
            return role
