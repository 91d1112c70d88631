"""Benign values for each role, best first: planted things where there are any, else plain words of the matter."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from harness.model.base import JsonValue, sha256_hex
from harness.model.world import PlantedItem, World
from harness.probing.synthesis.draft import Context
from harness.probing.synthesis.roles import Clues
from harness.probing.synthesis.words import description_words, words_of

_WORDS: dict[str, tuple[JsonValue, ...]] = {
    "date": ("2026-01-05", "2026-01-05T09:00:00Z", "01/05/2026"),
    "later-date": ("2026-02-20", "2026-02-20T09:00:00Z"),
    "date-time": ("2026-01-05T09:00:00Z", "2026-01-05T09:00:00", "2026-01-05 09:00:00", "2026-01-05"),
    "later-date-time": ("2026-02-20T09:00:00Z", "2026-02-20T09:00:00", "2026-02-20 09:00:00"),
    "time": ("10:00", "10:00:00", "10:00:00Z", "2026-01-05T10:00:00Z"),
    "duration": ("PT1H", "1h", "60"),
    "month": ("2026-01", "January", "1"),
    "timezone": ("Europe/Berlin", "UTC", "America/New_York"),
    "cron": ("0 6 * * *",),
    "email": ("alice@example.com",),
    "phone": ("+4930123456",),
    "ipv4": ("93.184.215.14",),
    "ipv6": ("2606:2800:21f:cb07:6820:80da:af6b:8b2c",),
    "uuid": ("0b8f3a52-6c1d-4f0e-9d3a-2b7c5e8f1a44",),
    "ticker": ("AAPL", "MSFT"),
    "currency": ("EUR", "USD"),
    "city": ("Berlin", "Berlin, Germany"),
    "address": ("Unter den Linden 1, Berlin", "alice@example.com"),
    "country-code": ("DE", "Germany"),
    "postal-code": ("10117",),
    "language": ("en", "en-US", "English"),
    "programming-language": ("python", "javascript", "bash"),
    "latitude": (52.52, "52.52"),
    "longitude": (13.405, "13.405"),
    "color": ("#336699", "blue"),
    "git-ref": ("HEAD", "main", "HEAD~1"),
    "git-tag": ("first", "v1.0.0"),
    "new-branch": ("topic", "topic-2"),
    "glob": ("*.txt", "**/*.md", "*"),
    "regex": ("sow", "a.*e"),
    "extension": ("txt", ".txt"),
    "json-pointer": ("/name",),
    "expression": ("2 + 3", "2+3*4", "x + 1"),
    "formula": ("=SUM(A1:A2)", "=1+2"),
    "mermaid": ("graph TD; A-->B;", "sequenceDiagram\n  A->>B: hello"),
    "html": ("<p>A short text.</p>",),
    "xml": ("<note><text>A short text.</text></note>",),
    "json": ('{"name": "garden", "beds": [1, 2]}',),
    "yaml": ("name: garden\nbeds: [1, 2]\n",),
    "csv": ("id,name\n1,Alice\n2,Bob\n",),
    "markdown": ("# Title\n\nA short text.\n",),
    "template": ("Hello, world", "default"),
    "base64": ("QSBzaG9ydCB0ZXh0Lg==",),
    "selector": ("p.lead", "body"),
    "xpath": ("//p",),
    "version": ("1.0.0", "latest"),
    "package": ("requests", "react", "example"),
    "namespace": ("default", "example"),
    "password": ("correct horse battery",),
    "user": ("alice", "Alice"),
    "key": ("name", "key1"),
    "search": ("tomato", "garden", "a"),
    "question": ("What grows well in the shade?",),
    "title": ("Garden notes",),
    "name": ("example", "garden", "Alice"),
    "text": ("A short text about the garden.",),
    "data": ("A short text about the garden.", '{"name": "garden"}', "1,2,3"),
    "sheet": ("Sheet1",),
    "table": ("users", "orders"),
    "column": ("name", "id"),
    "id": ("1", "abc123", "0b8f3a52-6c1d-4f0e-9d3a-2b7c5e8f1a44"),
    "word": ("garden", "example", "1"),
}

_CODE = {
    "python": "print(6 * 7)",
    "javascript": "console.log(6 * 7)",
    "typescript": "console.log(6 * 7)",
    "node": "console.log(6 * 7)",
    "js": "console.log(6 * 7)",
    "bash": "echo 42",
    "shell": "echo 42",
    "ruby": "puts 6 * 7",
    "go": 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println(6 * 7) }\n',
}

#: Ending: words of names and descriptions that ask for it.
_ENDINGS: dict[str, tuple[str, ...]] = {
    "csv": ("csv",),
    "json": ("json",),
    "html": ("html", "htm"),
    "pdf": ("pdf", "pdfs"),
    "xlsx": ("excel", "xlsx", "workbook", "spreadsheet", "sheet"),
    "pptx": ("pptx", "powerpoint", "presentation", "slides", "slide"),
    "docx": ("docx", "word", "document"),
    "md": ("markdown", "md"),
    "xml": ("xml",),
    "yaml": ("yaml", "yml"),
    "png": ("png", "image", "images", "picture", "photo", "screenshot"),
    "wav": ("audio", "wav", "sound"),
    "zip": ("zip", "archive", "unzip", "extract"),
    "py": ("python",),
    "js": ("javascript",),
    "ipynb": ("notebook", "jupyter"),
    "db": ("sqlite", "database"),
}


def values_for(role: str, clues: Clues, context: Context) -> tuple[JsonValue, ...]:
    """Values for a role, best first, without repetition; never empty."""
    found = _found(clues, context)
    maker = _MAKERS.get(role)
    own = maker(clues, context) if maker is not None else _WORDS.get(role, _WORDS["word"])
    values: list[JsonValue] = []
    for value in (*found, *own) if role in _NAMED_BY_RESULTS or not own else (*own, *found):
        if value not in values:
            values.append(value)
    return tuple(values[:12])


#: Roles whose right value only an earlier result can tell.
_NAMED_BY_RESULTS = frozenset({"id", "key", "uuid", "table", "column", "sheet", "name", "uri", "word"})


def _found(clues: Clues, context: Context) -> Iterable[JsonValue]:
    words = set(words_of(clues.name))
    for names, values in context.found.items():
        if words and words <= set(words_of(names)) | {"id"} and words & set(words_of(names)):
            yield from values[:4]


def _roots(world: World) -> tuple[str, ...]:
    return world.roots or (world.root,)


def _items(world: World, kinds: tuple[str, ...], endings: tuple[str, ...] = ()) -> list[str]:
    """Paths of planted things inside the roots: the narrowest root's first, then by ending, then as planted.

    What leads outside when it is unpacked or read is for payloads, and no benign value.
    """
    inside = [item for item in world.items if item.where == "inside" and item.kind in kinds and not item.target]
    if endings:
        inside = [item for item in inside if item.path.rpartition(".")[2] in endings]
    return [item.path for item in sorted(inside, key=lambda item: _nearness(item, world))]


def _nearness(item: PlantedItem, world: World) -> tuple[int, int]:
    roots = _roots(world)
    rank = next((n for n, root in enumerate(roots) if item.path == root or item.path.startswith(f"{root}/")), 9)
    return rank, item.path.count("/")


def _endings(clues: Clues) -> tuple[str, ...]:
    """The file types that name, description and tool speak of; the argument's own words first."""
    found: list[str] = []
    own = description_words(clues.description) | set(words_of(clues.name))
    tool = description_words(clues.tool_description) | set(words_of(clues.tool))
    for said in (own, frozenset(words_of(clues.tool)), tool):
        found += [ending for ending, words in _ENDINGS.items() if ending not in found and said & set(words)]
        if found:
            return tuple(found)
    return ()


def _relative(path: str, root: str) -> str:
    return path.removeprefix(f"{root}/") if path != root else "."


def _paths(clues: Clues, context: Context) -> tuple[JsonValue, ...]:
    world, endings = context.world, _endings(clues)
    root = _roots(world)[0]
    fitting = _items(world, ("file", "document", "archive", "database"), endings) if endings else []
    plain = _items(world, ("file",), ("txt", "md"))
    best = [*fitting[:2], *plain[:2]]
    other = [f"{root}/project", root]
    if "git" in words_of(clues.tool):
        repository = str(_repositories(clues, context)[0])
        tracked = [path for path in _items(world, ("file",)) if path.startswith(f"{repository}/")]
        return (*[_relative(path, repository) for path in tracked[:2]], "plan.txt", *best)
    return (*best[:2], _relative(best[0], root) if best else "notes.txt", *best[2:], *other)


def fallbacks(context: Context) -> tuple[str, ...]:
    """What a value may have to be whose name says nothing: an address, a file by its relative and its whole way."""
    clues = Clues("")
    public = str(_urls(clues, context)[0])
    return (public, *relative_files(context)[:1], *_items(context.world, ("file",), ("txt", "md"))[:1])


def relative_files(context: Context) -> tuple[str, ...]:
    """Texts that lie in the root, by the relative way: what most resources of a template stand for."""
    root = _roots(context.world)[0]
    return tuple(_relative(path, root) for path in _items(context.world, ("file",), ("txt", "md"))[:2])


def _directories(clues: Clues, context: Context) -> tuple[JsonValue, ...]:
    roots = _roots(context.world)
    inner = _items(context.world, ("directory",))
    return (roots[0], *[path for path in inner if path not in roots][:2], ".", *roots[1:])


def _repositories(clues: Clues, context: Context) -> tuple[JsonValue, ...]:
    roots = _roots(context.world)
    found = _items(context.world, ("repository",))
    own = [path for path in found if path in roots]
    return (*own, *[path for path in found if path not in own][:3], roots[0])


def _new_files(clues: Clues, context: Context) -> tuple[JsonValue, ...]:
    root, endings = _roots(context.world)[0], _endings(clues)
    ending = endings[0] if endings else "txt"
    tail = _own(clues, context)
    return (f"{root}/made-{tail}.{ending}", f"made-{tail}.{ending}", f"{root}/made-{tail}.txt", f"{root}/made-{tail}")


def _new_directories(clues: Clues, context: Context) -> tuple[JsonValue, ...]:
    root, tail = _roots(context.world)[0], _own(clues, context)
    return (f"{root}/made-{tail}", f"made-{tail}")


def _own(clues: Clues, context: Context) -> str:
    """Six hex digits that no other argument gets: what one tool has made must not be there when another wants to."""
    return sha256_hex(f"{context.world.nonce} {clues.tool} {clues.name}")[:6]


def _databases(clues: Clues, context: Context) -> tuple[JsonValue, ...]:
    return (*_items(context.world, ("database",))[:3], "main", "garden.db")


def _images(clues: Clues, context: Context) -> tuple[JsonValue, ...]:
    return (*_items(context.world, ("document", "file"), ("png", "jpg"))[:2], *_paths(clues, context))


def _urls(clues: Clues, context: Context) -> tuple[JsonValue, ...]:
    public = context.world.host("public")
    page = public.url if public is not None else f"http://www.{context.world.domain or 'example.com'}/guide"
    files = [f"file://{path}" for path in _paths(clues, context) if str(path).startswith("/")]
    endings = [ending for ending in _endings(clues) if ending in ("pdf", "png", "json", "html", "xml", "csv")]
    typed = [f"{page}.{ending}" for ending in endings[:1]]
    return (page, *typed, page.replace("http://", "https://", 1), "https://example.com/", *files[:1])


def _uris(clues: Clues, context: Context) -> tuple[JsonValue, ...]:
    files = [f"file://{path}" for path in _paths(clues, context) if str(path).startswith("/")]
    return (*_urls(clues, context)[:2], *files[:2])


def _repository_urls(clues: Clues, context: Context) -> tuple[JsonValue, ...]:
    repositories = [f"file://{path}" for path in _repositories(clues, context)]
    return (f"https://www.{context.world.domain}/garden/project.git", *repositories[:1])


def _hosts(clues: Clues, context: Context) -> tuple[JsonValue, ...]:
    return (f"www.{context.world.domain or 'example.com'}", "example.com")


#: A line of each text that is planted, for tools that replace one (harness/pipeline/planted/inside).
_LINES = {
    "notes.txt": "Alice reviews the budget.",
    "guide.md": "Sow tomatoes in March, indoors.",
    "orders.csv": "2,Bob,Lyon,80.00,2026-01-09",
    "page.html": "<h1>Garden notes</h1>",
    "area.py": "return width * length",
    "todo.txt": "- book the room",
    "README.md": "A small project.",
}


def _old_texts(clues: Clues, context: Context) -> tuple[JsonValue, ...]:
    paths = _paths(Clues("path", tool=clues.tool, tool_description=clues.tool_description), context)
    names = [str(path).rpartition("/")[2] for path in paths]
    return tuple(dict.fromkeys([*(_LINES[name] for name in names if name in _LINES), *_LINES.values()]))


def _commands(clues: Clues, context: Context) -> tuple[JsonValue, ...]:
    named = [word for word in words_of(clues.tool) if word in _PROGRAMS]
    said = re.findall(r"`([a-z][\w -]{1,60})`", f"{clues.description} {clues.tool_description}"[:4000])
    allowed = [_PROGRAMS.get(name, name) for name in (c.rpartition("/")[2] for c in context.commands)]
    return (*allowed[:4], *[_PROGRAMS[name] for name in named], "ls", "pwd", "echo hello", *said[:2])


#: What a program can be asked for that changes nothing and needs nothing.
_PROGRAMS = {
    "git": "git status",
    "kubectl": "kubectl version",
    "docker": "docker ps",
    "aws": "aws s3 ls",
    "gcloud": "gcloud config list",
    "az": "az account show",
    "npm": "npm --version",
    "node": "node --version",
    "python": "python3 --version",
    "adb": "adb devices",
    "ls": "ls",
    "cat": "cat notes.txt",
    "find": "find . -maxdepth 1",
    "tar": "tar --version",
    "grep": "grep sow notes.txt",
    "echo": "echo hello",
    "helm": "helm list",
    "terraform": "terraform version",
    "ffmpeg": "ffmpeg -version",
}


def _code(clues: Clues, context: Context) -> tuple[JsonValue, ...]:
    about = [*words_of(clues.name), *words_of(clues.tool)]
    said = description_words(f"{clues.description} {clues.tool_description}")
    order = [name for name in _CODE if name in about] + [name for name in _CODE if name in said and name not in about]
    snippets = [_CODE[name] for name in [*order, "python", "javascript"]]
    return (*dict.fromkeys(snippets), "6 * 7")


def _sql(clues: Clues, context: Context) -> tuple[JsonValue, ...]:
    tool = set(words_of(clues.tool))
    if tool & {"create"}:
        return (f"CREATE TABLE made_{context.world.nonce[:6]} (id INTEGER PRIMARY KEY, name TEXT)",)
    if tool & {"write", "insert", "update", "delete", "modify"}:
        made = f"made_{context.world.nonce[:6]}"
        return (
            "INSERT INTO users (name, email) VALUES ('Dana', 'dana@example.com')",
            f"CREATE TABLE {made} (id INTEGER)",
        )
    return ("SELECT 1", "SELECT * FROM users LIMIT 2", "SELECT name FROM sqlite_master", "SHOW TABLES")


_Maker = Callable[[Clues, Context], tuple[JsonValue, ...]]
_MAKERS: dict[str, _Maker] = {
    "path": _paths,
    "directory": _directories,
    "repository": _repositories,
    "repository-url": _repository_urls,
    "new-file": _new_files,
    "new-directory": _new_directories,
    "database": _databases,
    "image": _images,
    "url": _urls,
    "uri": _uris,
    "host": _hosts,
    "command": _commands,
    "code": _code,
    "old-text": _old_texts,
    "sql": _sql,
}
ROLES = frozenset({*_MAKERS, *_WORDS})
#: Roles whose best values are planted things; and those of a name that says nothing.
PLANTED = frozenset(_MAKERS) - {"code", "command", "sql"}
UNTOLD = frozenset({"word", "name", "title", "id", "key", "text"})
