"""The boundaries of a target, found before anything of it is called: what it was started with, and what it says.

A boundary is what an effect has to cross to be a fault. Where nothing draws one, an effect is a capability. Roots are
absolute paths in the arguments and the environment of the start; lists of commands and read-only modes are found by
the words around them; that data is not code, and that internal addresses are nobody's business, is convention, unless
the tool says otherwise. Pure.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.model.base import JsonValue
from harness.model.payload import Boundary, BoundaryKind, PayloadClass
from harness.model.purpose import WORDS_CHARACTERS, is_code
from harness.model.surface import ItemKind, Surface
from harness.model.world import World
from harness.probing.synthesis.words import words_of

TEXT_CHARACTERS = 200
MOST = 400

#: Variables and options that list what may be run.
_ALLOW_NAME = re.compile(
    r"(?:allow|permit|white|safe|approved)[a-z]*[_-]?(?:ed|list|listed)?[_-]*(?:commands?|cmds?|binar|programs?|exec)",
    re.IGNORECASE,
)
#: Variables that say where programs, their settings and their scratch files are found: no room to stay in.
_NO_ROOT = re.compile(
    r"^(?:(?:NODE_|PYTHON|LD_LIBRARY_|MAN)?PATH|HOME|TMPDIR|TEMP|TMP)$|CONFIG(?:_?(?:FILE|PATH))?$|CREDENTIALS(?:_FILE)?$",
    re.IGNORECASE,
)
_READ_ONLY_OPTION = re.compile(
    r"^-{1,2}(?:read[_-]?only|ro|(?:disable|no|without|block)[_-]?(?:write|delete|writes|mutation)s?)(?:=(?:1|true|yes|on))?$",
    re.IGNORECASE,
)
_READ_ONLY_NAME = re.compile(r"(?:^|_)(?:READ_?ONLY|DISABLE_WRITES?|NO_WRITES?)$", re.IGNORECASE)
_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"0", "false", "no", "off"})
#: A description that draws a root: the tool works inside of something.
_FOLDER = r"(?:director(?:y|ies)|folders?|workspace|root|project|repositor(?:y|ies)|sandbox)"
_ROOT_WORDS = re.compile(
    r"\b(?:(?:only|must be|restricted|confined|limited|sandboxed)\b[^.]{0,60}"
    rf"\b(?:within|inside|in|to|under|below)\b[^.]{{0,40}}\b{_FOLDER}"
    r"|(?:within|inside) (?:the )?(?:allowed|permitted|configured|workspace|project|base|root|working|sandbox)"
    rf"[a-z ]{{0,30}}{_FOLDER}"
    r"|relative to (?:the )?(?:workspace|project|root|base|vault|working|repository)"
    r"|(?:outside|beyond) (?:of )?(?:the )?(?:allowed|permitted|workspace|project|base|root|working)[^.]{0,40}"
    r"(?:not (?:be )?(?:allowed|permitted|accessible|accessed|accepted|possible|readable|read|written)|denied|rejected"
    r"|refused|forbidden|blocked))",
    re.IGNORECASE,
)
_READ_ONLY_WORDS = re.compile(
    r"\b(?:read[ -]only|only (?:select|read)|select (?:queries|statements|query|statement) only"
    r"|(?:must|can) only (?:be )?(?:a )?(?:select|read)|no (?:writes?|modifications?))\b"
    r"|\bdoes not (?:modify|change|write)(?: to)?(?: (?:any|the))?(?: (?:files?|data(?:base)?|disk|anything|state"
    r"|repository|environment))?\s*(?:[.,;)\n]|$)|^\s*(?:execute|run)s? an? select\b",
    re.IGNORECASE,
)
#: What makes the words after it mean the contrary, or something else than the tool.
_NOT_MEANT = re.compile(
    r"(?:\b(?:not|no|never|without|unless|if|when|whether|neither|nor|for an?|see)\b|n't\b)[^.;\n]{0,40}$",
    re.IGNORECASE,
)
#: Tools that write by their names: what is read-only there is something else.
_WRITERS = frozenset(
    {
        "write", "create", "update", "delete", "insert", "edit", "modify", "remove", "save", "append", "set", "put",
        "drop", "rename", "move", "chmod", "add", "upload", "alter", "truncate",
    }
)  # fmt: skip
#: A server that says that it keeps secrets back. What one tool says of that holds for files that others read.
_SECRET_WORDS = re.compile(
    r"\b(?:prevent|block|refus|reject|den(?:y|ies)|exclud|filter|redact|withh[eo]ld|hid(?:e|ing))\w*\b[^.]{0,60}"
    r"\b(?:secrets?|credentials|api keys?|passwords?|sensitive (?:information|data|files?|contents?|values?))\b",
    re.IGNORECASE,
)
_ALLOWLIST_WORDS = re.compile(
    r"\b(?:allowed|whitelisted|permitted|approved|safe) (?:commands?|programs?|binaries|executables?|shell commands?)\b"
    r"|\b(?:allowlist|whitelist)\b|\bcommands? (?:that )?(?:are|is) (?:allowed|permitted|whitelisted)\b",
    re.IGNORECASE,
)
#: A description that names the one program whose commands a tool runs. Interpreters are none: they run anything.
_PROGRAM_WORDS = re.compile(
    r"\b(?:run|runs|running|execute|executes|executing|invoke|invokes|issue|issues|perform|performs)\s+"
    r"(?:(?:an?|any|the|some|raw|custom|arbitrary|given|single)\s+){0,2}[`'\"]?([a-z][a-z0-9_-]{1,20})[`'\"]?"
    r"(?:\s+cli)?\s+(?:commands?|subcommands?|operations?)\b",
    re.IGNORECASE,
)
PROGRAMS = frozenset(
    {
        "adb", "ansible", "aws", "az", "cargo", "composer", "curl", "docker", "ffmpeg", "ffprobe", "firebase", "flyctl",
        "gcloud", "gh", "git", "gradle", "gsutil", "helm", "heroku", "istioctl", "kubectl", "kustomize", "minikube",
        "mongosh", "mysql", "netlify", "nmap", "npm", "oc", "openssl", "pandoc", "pip", "pnpm", "podman", "psql",
        "rclone", "redis-cli", "rsync", "sqlite3", "ssh", "svn", "systemctl", "tar", "terraform", "tmux", "vercel",
        "yarn", "yt-dlp",
    }
)  # fmt: skip
#: Who says this reaches internal addresses on purpose, in a sentence that does not say that it refuses them.
_INTERNAL_BY_DESIGN = re.compile(
    r"\b(?:localhost|loopback|internal (?:network|address|url|service|host)\w*|local (?:network|server|development)"
    r"|private (?:network|address|ip|range|host)\w*|intranet|lan|127\.0\.0\.1|192\.168\.|10\.\d|172\.16\.|169\.254\.)",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"\b(?:reject|block|den(?:y|ie)|refus|forb|disallow|prevent|exclud|except|filter|guard|protect)\w*"
    r"|\b(?:not|never|cannot|without|no)\b|n't\b",
    re.IGNORECASE,
)
#: Who says that this shows the environment on purpose.
_ENVIRONMENT_BY_DESIGN = re.compile(r"\benv(?:ironment)? ?var(?:iable)?s?\b|\b(?:getenv|printenv)\b", re.IGNORECASE)
#: A tool that is there to fill in templates.
_TEMPLATE_TOOL = re.compile(
    r"\b(?:render|evaluat|expand|compil|process|fill)\w*\b[^.]{0,40}"
    r"\b(?:templates?|jinja2?|handlebars|mustache|ejs|nunjucks|liquid|erb)\b",
    re.IGNORECASE,
)
_TEMPLATE_WORDS = re.compile(r"\b(?:templates?|jinja2?|handlebars|mustache|ejs|nunjucks|liquid|erb)\b", re.IGNORECASE)
_QUERY_WORDS = re.compile(r"\b(?:sql|quer(?:y|ies)|statements?)\b", re.IGNORECASE)

CODE_CLASSES = frozenset({PayloadClass.COMMAND_INJECTION, PayloadClass.CODE_EVALUATION})

#: Which boundaries a class can cross, the likeliest first: such as the oracle admits, and for exhaustion, which proves
#: nothing, what makes it worth telling.
CROSSES: Mapping[PayloadClass, tuple[BoundaryKind, ...]] = {
    PayloadClass.COMMAND_INJECTION: (BoundaryKind.ALLOWLIST, BoundaryKind.DATA_NOT_CODE),
    PayloadClass.ARGUMENT_INJECTION: (BoundaryKind.ALLOWLIST, BoundaryKind.ROOT, BoundaryKind.DATA_NOT_CODE),
    PayloadClass.ALLOWLIST_BYPASS: (BoundaryKind.ALLOWLIST, BoundaryKind.ROOT, BoundaryKind.READ_ONLY),
    PayloadClass.TRAVERSAL_READ: (BoundaryKind.ROOT,),
    PayloadClass.TRAVERSAL_WRITE: (BoundaryKind.ROOT, BoundaryKind.READ_ONLY),
    PayloadClass.SYMLINK_ESCAPE: (BoundaryKind.ROOT,),
    PayloadClass.SSRF: (BoundaryKind.INTERNAL_ADDRESS,),
    PayloadClass.SQL: (BoundaryKind.READ_ONLY, BoundaryKind.ROOT, BoundaryKind.DATA_NOT_CODE),
    PayloadClass.CODE_EVALUATION: (BoundaryKind.DATA_NOT_CODE,),
    PayloadClass.TEMPLATE_INJECTION: (BoundaryKind.DATA_NOT_CODE,),
    PayloadClass.DESERIALISATION: (BoundaryKind.DATA_NOT_CODE,),
    PayloadClass.ATTRIBUTE_ACCESS: (BoundaryKind.DATA_NOT_CODE,),
    PayloadClass.XXE: (BoundaryKind.DATA_NOT_CODE, BoundaryKind.ROOT, BoundaryKind.INTERNAL_ADDRESS),
    PayloadClass.ARCHIVE_SLIP: (BoundaryKind.ROOT, BoundaryKind.DATA_NOT_CODE),
    PayloadClass.HEADER_INJECTION: (BoundaryKind.DATA_NOT_CODE,),
    PayloadClass.SECRET_DISCLOSURE: (BoundaryKind.CREDENTIAL_SERVICES, BoundaryKind.SECRETS),
    PayloadClass.EXHAUSTION: (BoundaryKind.DATA_NOT_CODE,),
    PayloadClass.MISSING_AUTHENTICATION: (BoundaryKind.SESSION,),
    PayloadClass.DNS_REBINDING: (BoundaryKind.SESSION,),
}


def find_boundaries(
    surface: Surface, world: World, arguments: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> tuple[Boundary, ...]:
    """All boundaries of a target, the narrowest root first.

    `arguments`: what the server was started with after its own command; `environment`: what was set for it.
    """
    given = dict(environment or {})
    roots = _roots(arguments, given, world)
    found = [
        *roots,
        *_lists(arguments, given, world),
        *_modes(arguments, given),
        *_said(surface, world, rooted=any(root.value in world.roots for root in roots)),
        Boundary(kind=BoundaryKind.DATA_NOT_CODE, source="convention", text="what is given as data is not run as code"),
        Boundary(
            kind=BoundaryKind.INTERNAL_ADDRESS,
            source="convention",
            text="an address that a caller names is not to lead to the machine itself or its network",
        ),
        Boundary(
            kind=BoundaryKind.CREDENTIAL_SERVICES,
            source="convention",
            text="a secret of the server's environment is for the service that it belongs to, not for callers",
        ),
    ]
    return tuple(dict.fromkeys(found))[:MOST]


def session_boundaries(credential: str = "") -> tuple[Boundary, ...]:
    """What stands between a server over HTTP and whoever reaches its port.

    `credential`: the header in which it asks for one, or for which it was given one; empty where there is none.
    """
    origin = Boundary(
        kind=BoundaryKind.SESSION,
        source="specification",
        value="origin",
        text="pages of other names and origins are not to reach a server on this machine (DNS rebinding)",
    )
    if not credential:
        return (origin,)
    asked = "who has no credential is not to be served: it was started with one, or asks for one"
    return origin, Boundary(
        kind=BoundaryKind.SESSION, source="configuration", value=f"credential {credential}", text=asked
    )


def boundary_for(
    payload_class: PayloadClass,
    wanted: BoundaryKind,
    tool: str,
    tool_words: str,
    name: str,
    words: str,
    boundaries: Iterable[Boundary],
) -> Boundary | None:
    """The boundary that a payload in this argument of this tool would cross, or None: then there is only a capability.

    `wanted`: the kind that the payload says it needs; another one that its class can cross serves too. `tool_words`:
    the tool's name and description; `name` and `words`: the argument's.
    """
    usable = [boundary for boundary in boundaries if boundary.tool in ("", tool)]
    can_cross = CROSSES.get(payload_class, ())
    for kind in sorted(can_cross, key=lambda kind: kind is not wanted):
        if (kind is BoundaryKind.SECRETS) is not (wanted is BoundaryKind.SECRETS):
            continue  # what holds a secret crosses nothing else, and nothing else crosses that
        if kind is BoundaryKind.ALLOWLIST and wanted is BoundaryKind.ROOT:
            continue  # what a program on the list reads or writes itself is not forbidden by the list
        if _by_design(payload_class, kind, tool_words, name, words):
            continue
        for boundary in usable:
            if boundary.kind is kind:
                return boundary
    return None


def _by_design(payload_class: PayloadClass, kind: BoundaryKind, tool_words: str, name: str, words: str) -> bool:
    """Whether the tool says that it does what the effect would be."""
    if kind is BoundaryKind.INTERNAL_ADDRESS:
        return _by_words(_INTERNAL_BY_DESIGN, f"{tool_words}\n{words}")
    if kind is BoundaryKind.CREDENTIAL_SERVICES:  # whoever may run anything may ask for the environment
        return is_code(tool_words, name, words) or _by_words(_ENVIRONMENT_BY_DESIGN, f"{tool_words}\n{words}")
    if kind is not BoundaryKind.DATA_NOT_CODE:
        return False
    if payload_class is PayloadClass.SQL:
        return _QUERY_WORDS.search(f"{name} {words}"[:WORDS_CHARACTERS].replace("_", " ")) is not None
    if payload_class is PayloadClass.TEMPLATE_INJECTION:
        own = _TEMPLATE_WORDS.search(f"{name} {words}"[:WORDS_CHARACTERS].replace("_", " ")) is not None
        return own or _TEMPLATE_TOOL.search(tool_words[:WORDS_CHARACTERS].replace("_", " ")) is not None
    if payload_class in CODE_CLASSES or payload_class is PayloadClass.ARGUMENT_INJECTION:
        return is_code(tool_words, name, words)
    return False


def _by_words(pattern: re.Pattern[str], text: str) -> bool:
    """Whether a sentence says it that does not say that it is refused."""
    sentences = re.split(r"[.;!\n](?:\s|$)", text[:WORDS_CHARACTERS].replace("_", " "))
    return any(pattern.search(sentence) and not _REFUSED.search(sentence) for sentence in sentences)


def _meant(pattern: re.Pattern[str], words: str) -> str:
    """What of the words draws a boundary: the first match that nothing before it turns into something else."""
    for found in pattern.finditer(words):
        if not _NOT_MEANT.search(words[max(0, found.start() - 80) : found.start()]):
            return found[0]
    return ""


def _root_meant(words: str) -> str:
    """The same for a root: that a path may be relative to it draws none where it may be absolute as well."""
    said = _meant(_ROOT_WORDS, words)
    absolute = said.casefold().startswith("relative") and re.search(r"\babsolute\b", words, re.IGNORECASE)
    free = re.search(r"\banywhere\b|\bany (?:file|path|folder|directory) on\b", words, re.IGNORECASE)
    return "" if absolute or free else said


def _roots(arguments: Sequence[str], environment: Mapping[str, str], world: World) -> list[Boundary]:
    found = []
    for source, text in (
        *(("arguments", argument) for argument in arguments),
        *(("configuration", f"{n}={value}") for n, value in sorted(environment.items()) if not _NO_ROOT.search(n)),
    ):
        for path in _paths(text, world):
            found.append(Boundary(kind=BoundaryKind.ROOT, source=source, value=path, text=_cut(text)))
    return sorted(found, key=lambda boundary: -len(boundary.value))


def _paths(text: str, world: World) -> Iterator[str]:
    """The world's root and folders or files below it that a text names: whole, after `=`, or in a list."""
    for part in re.split(r"[=,;:\s\"'\[\]]+", text):
        path = posixpath.normpath(part) if part.startswith("/") else ""
        if path == world.root or path.startswith(f"{world.root}/"):
            yield path


def _lists(arguments: Sequence[str], environment: Mapping[str, str], world: World) -> Iterator[Boundary]:
    home = posixpath.dirname(world.root)  # no program that a list allows lies among the target's own files
    pairs = [("configuration", name, value) for name, value in sorted(environment.items())]
    for number, argument in enumerate(arguments):
        option, equals, value = argument.partition("=")
        if option.startswith("-"):
            following = arguments[number + 1] if number + 1 < len(arguments) else ""
            pairs.append(("arguments", option, value if equals else following))
    for source, name, value in pairs:
        if value and _ALLOW_NAME.search(name.replace("-", "_")):
            parts = [part for part in re.split(r"[,;|\s\[\]\"']+", value) if part and part[0] not in "-*"]
            programs = [part for part in parts if part.casefold() not in _YES | _NO and not part.startswith(f"{home}/")]
            if programs:
                given = " ".join(programs)
                yield Boundary(kind=BoundaryKind.ALLOWLIST, source=source, value=given, text=_cut(f"{name}={value}"))


def _modes(arguments: Sequence[str], environment: Mapping[str, str]) -> Iterator[Boundary]:
    for number, argument in enumerate(arguments):
        following = arguments[number + 1] if number + 1 < len(arguments) else ""
        if _READ_ONLY_OPTION.match(argument) and following.casefold() not in _NO:
            yield Boundary(kind=BoundaryKind.READ_ONLY, source="arguments", text=_cut(argument))
    for name, value in sorted(environment.items()):
        if _READ_ONLY_NAME.search(name) and value.casefold() in _YES:
            yield Boundary(kind=BoundaryKind.READ_ONLY, source="configuration", text=_cut(f"{name}={value}"))


def _said(surface: Surface, world: World, *, rooted: bool) -> Iterator[Boundary]:
    """What tools say of themselves in words and annotations; each binds its tool only.

    `rooted`: the start names roots, so that those are what a tool means that speaks of allowed folders. The whole
    workspace would be a wider one, and allow what lies beside them.
    """
    for item in surface.of(ItemKind.TOOL):
        if not isinstance(item.value, dict) or not item.name:
            continue
        words = _words(item.value)
        annotations = item.value.get("annotations")
        hint = annotations.get("readOnlyHint") if isinstance(annotations, dict) else None
        if not rooted and (said := _root_meant(words)):
            yield Boundary(
                kind=BoundaryKind.ROOT, source="description", value=world.root, text=_cut(said), tool=item.name
            )
        if said := _meant(_ALLOWLIST_WORDS, words):
            yield Boundary(kind=BoundaryKind.ALLOWLIST, source="description", text=_cut(said), tool=item.name)
        elif (program := _program(item.name, words)) is not None:
            yield Boundary(
                kind=BoundaryKind.ALLOWLIST,
                source="description",
                value=program,
                text=f"a tool for commands of {program}",
                tool=item.name,
            )
        if said := _meant(_SECRET_WORDS, words):
            yield Boundary(kind=BoundaryKind.SECRETS, source="description", text=_cut(f"{item.name}: {said}"))
        writes = hint is False or not _WRITERS.isdisjoint(words_of(item.name))
        if not writes and (said := _meant(_READ_ONLY_WORDS, words)):
            yield Boundary(kind=BoundaryKind.READ_ONLY, source="description", text=_cut(said), tool=item.name)
        if hint is True:
            yield Boundary(kind=BoundaryKind.READ_ONLY, source="annotation", text="readOnlyHint: true", tool=item.name)


def _program(name: str, words: str) -> str | None:
    """The one program whose commands a tool is for, by its own name or its description."""
    if name.casefold() in PROGRAMS:
        return name.casefold()
    said = {found[1].casefold() for found in _PROGRAM_WORDS.finditer(words)} & PROGRAMS
    return said.pop() if len(said) == 1 else None


def _words(value: Mapping[str, JsonValue]) -> str:
    """A tool's description, and those of its arguments."""
    texts = [value.get("description")]
    schema = value.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if isinstance(properties, dict):
        texts += [entry.get("description") for entry in properties.values() if isinstance(entry, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))[:WORDS_CHARACTERS]


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_CHARACTERS else text[: TEXT_CHARACTERS - 1] + "…"
