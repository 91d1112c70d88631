"""`messages.requests`: what the server asks its client for: texts for the user's model, and forms for the user.

Both are answered by a client without the server's user having asked for anything, so a server can have a model work
for it, or ask a person for a password under a client's own name. A prompt for a model is full of orders by its nature:
of those only what overrides other orders, hides itself or asks for secrets is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.analyzers.base import AnalysisFacts, AnalyzerBase, Rule
from harness.analyzers.definitions.analyzer import CHECKS
from harness.analyzers.definitions.view import ItemView, RegistryView, Text, build_view, walk
from harness.analyzers.evidence import render_safe
from harness.analyzers.messages.echoes import without_echoes
from harness.analyzers.messages.requests_refused import REFUSAL, Refusals
from harness.analyzers.messages.requests_words import UNSURE, asks_model, asks_user, names_secret
from harness.analyzers.messages.sessions import read_messages
from harness.model.base import JsonObject, JsonValue, canonical_json, sha256_hex
from harness.model.call import Call, CallEndEvent, CallEvent
from harness.model.coverage import Coverage, Skip, SkipReason, Tally
from harness.model.finding import Evidence, EvidenceLevel, Finding, Location, Severity, Threat, ThreatLevel, Tier
from harness.model.recording import Direction, Event, FrameEvent
from harness.model.result import AnalyzerResult, AnalyzerStatus

SAMPLING = "sampling/createMessage"
ELICITATION = "elicitation/create"
_METHODS = {SAMPLING: "the model", ELICITATION: "the user"}
#: Bounds: different requests that are judged, characters of one that are matched, calls whose arguments are kept.
MAX_REQUESTS = 2048
REQUEST_CHARS = 64 << 10
MAX_CALLS = 256
EXAMPLES = 3

SECRET = Rule(id="requests.secret", title="The client was asked for secrets")
INJECTION = Rule(id="requests.injection", title="Instructions against its user in a request to the client")
HIDDEN = Rule(id="requests.hidden-characters", title="Hidden characters in a request to the client")
CONTEXT = Rule(id="requests.context", title="The client was asked for what other servers said")
_CHECKS = {"unicode.hidden": HIDDEN, "phrase.injection": INJECTION}

_REMEDIES = {
    SAMPLING: "Have the client show each such request before the model sees it, or turn sampling off.",
    ELICITATION: "Enter nothing there: a server that needs a secret takes it from its settings, or opens a page.",
}


@dataclass(frozen=True, slots=True)
class _Said:
    """One thing that is wrong with a request. `fact` is part of the identity."""

    rule: Rule
    severity: Severity
    level: EvidenceLevel
    fact: str
    text: str
    words: str
    threat: Threat = Threat.PROMPT_INJECTION


class RequestsAnalyzer(AnalyzerBase):
    """Judges requests of the server to its client."""

    name = "messages.requests"
    description = "what the server asks its client for: orders to the model, secrets of the user, a yes"
    rules = (SECRET, INJECTION, HIDDEN, CONTEXT, REFUSAL)
    light = True

    def start(self, facts: AnalysisFacts) -> RequestsFold:
        """Begin."""
        return RequestsFold(facts)


class RequestsFold:
    """Memory: the findings, digests of requests already judged, and the arguments of the last calls, all bounded."""

    def __init__(self, facts: AnalysisFacts) -> None:
        self._facts = facts
        self._registry: RegistryView | None = None
        self._calls: dict[str, Call] = {}
        self._judged: set[str] = set()
        self._found: dict[tuple[str, str, str], list[Finding]] = {}
        self._seen = 0
        self._unread = 0
        self._refusals = Refusals()

    def event(self, event: Event) -> None:
        """Take the next event."""
        if isinstance(event, CallEvent):
            while len(self._calls) >= MAX_CALLS:
                del self._calls[next(iter(self._calls))]
            self._calls[event.phase] = event.call
            self._refusals.called(event.phase, event.call)
        elif isinstance(event, CallEndEvent):
            self._refusals.ended(event)
        elif isinstance(event, FrameEvent) and event.direction is Direction.RECEIVED:
            if event.truncated and (b"sampling/" in event.raw or b"elicitation/" in event.raw):
                self._seen += 1
                self._unread += 1
            for message in read_messages(event):
                for method, params in _requests(message):
                    self._take(method, params, event)

    def _take(self, method: str, params: JsonObject, event: FrameEvent) -> None:
        self._seen += 1
        self._refusals.asked(event.phase, method)
        call = self._calls.get(event.phase)
        tool = call.item if call is not None and call.method == "tools/call" else None
        texts = [(path, text) for path, text in _texts(method, params)]
        if sum(len(text) for _, text in texts) > REQUEST_CHARS:
            self._unread += 1
            return
        given = call.given if call is not None else None
        digest = sha256_hex(canonical_json([tool or "", method, _bare(params, given)]))
        if digest in self._judged:
            return
        if len(self._judged) >= MAX_REQUESTS:
            self._unread += 1
            return
        self._judged.add(digest)
        texts = [(path, without_echoes(text, given)) for path, text in texts]
        for said in self._say(method, params, texts):
            self._note(said, method, tool, call, event)

    def _say(self, method: str, params: JsonObject, texts: list[tuple[str, str]]) -> Iterator[_Said]:
        yield from self._checked(texts)
        if method == SAMPLING:
            yield from _of_model(params, texts)
        else:
            yield from _of_user(params, texts)

    def _checked(self, texts: list[tuple[str, str]]) -> Iterator[_Said]:
        """What the checks of declarations say of these texts."""
        if self._registry is None:
            self._registry = build_view(self._facts)
        shown = tuple(Text(path, text) for path, text in texts if text.strip())
        item = ItemView(kind="request", name="request", location=Location(), texts=shown, budget=REQUEST_CHARS)
        for check in CHECKS:
            rule = _CHECKS.get(check.rule.id)
            hits = check.inspect(item, self._registry) if rule is not None else ()
            hard = [hit for hit in hits if hit.signal.tier is Tier.HARD]
            if rule is not None and hard:
                fact = sha256_hex(canonical_json(sorted({hit.fact for hit in hard})))
                words = hard[0].signal.evidence
                yield _Said(
                    rule, Severity.HIGH, EvidenceLevel.PROTOCOL, fact, "It holds what no honest request needs.", words
                )

    def _note(self, said: _Said, method: str, tool: str | None, call: Call | None, event: FrameEvent) -> None:
        location = Location(tool=tool, phase="call") if tool is not None else Location()
        found = self._found.setdefault((said.rule.id, method + said.fact, tool or ""), [])
        if len(found) >= EXAMPLES:
            return
        found.append(
            Finding.make(
                rule_id=said.rule.id,
                title=said.rule.title,
                severity=said.severity,
                evidence_level=said.level,
                threat=said.threat,
                threat_level=ThreatLevel.DANGEROUS if said.severity is Severity.HIGH else ThreatLevel.WARNING,
                location=location,
                fact=f"{method}:{said.fact}",
                analyzer=RequestsAnalyzer.name,
                description=f"By {method} the server asked {_METHODS[method]} for something. {said.text}",
                remediation=_REMEDIES[method],
                evidence=(
                    Evidence(
                        kind="request",
                        phase=render_safe(event.phase),
                        call=call.id if call is not None else None,
                        seq=event.seq,
                        text=render_safe(said.words),
                    ),
                ),
            )
        )

    def finish(self) -> AnalyzerResult:
        """Say what was found."""
        skip = Skip(item="requests of the server", reason=SkipReason.LIMIT, count=max(1, self._unread))
        skips = (skip,) if self._unread else ()
        tally = Tally(discovered=self._seen, analyzed=self._seen - self._unread, skipped=skips)
        findings = tuple(
            found[0].model_copy(update={"evidence": tuple(one.evidence[0] for one in found)})
            for _, found in sorted(self._found.items())
        )
        findings = (*findings, *self._refusals.findings())
        reason = "" if self._facts.complete else "the recording is incomplete"
        return AnalyzerResult(
            name=RequestsAnalyzer.name,
            version=RequestsAnalyzer.version,
            status=AnalyzerStatus.PARTIAL if reason else AnalyzerStatus.COMPLETED,
            reason=reason,
            findings=findings,
            coverage=Coverage(subjects={"requests of the server": tally}),
        )


def _bare(value: JsonValue, given: JsonValue) -> JsonValue:
    """A request without what was sent: every payload in it would make it another one."""
    if isinstance(value, str):
        return without_echoes(value, given)
    if isinstance(value, dict):
        return {key: _bare(inner, given) for key, inner in value.items()}
    return [_bare(inner, given) for inner in value] if isinstance(value, list) else value


def _requests(message: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """The requests in a message: itself, or in the stateless revision those of a result that wants more input."""
    entries: list[JsonValue] = [message] if "id" in message else []
    result = message.get("result")
    wanted = result.get("inputRequests") if isinstance(result, dict) else None
    if isinstance(wanted, dict):
        entries += list(wanted.values())[:MAX_REQUESTS]
    for entry in entries:
        if isinstance(entry, dict) and entry.get("method") in _METHODS:
            params = entry.get("params")
            yield str(entry["method"]), params if isinstance(params, dict) else {}


def _texts(method: str, params: JsonObject) -> Iterator[tuple[str, str]]:
    """What the model or the user would read, with its place."""
    shown = ("messages", "systemPrompt", "tools") if method == SAMPLING else ("message", "requestedSchema")
    for member in shown:
        for text in walk(params.get(member)):
            if not text.key and not text.path.endswith((".role", ".type", ".data", ".mimeType")):
                yield f"$.{member}{text.path[1:]}", text.raw


def _of_model(params: JsonObject, texts: list[tuple[str, str]]) -> Iterator[_Said]:
    for path, text in texts:
        if (words := asks_model(text)) is not None:
            what = "The model shall tell secrets that it was told elsewhere."
            said = f"{path}: {words}"
            threat = Threat.EXFILTRATION
            yield _Said(SECRET, Severity.HIGH, EvidenceLevel.PROTOCOL, "secrets of the model", what, said, threat)
            break
    wide = params.get("includeContext")
    if wide == "allServers":
        what = "The model shall be given what other servers said with it."
        yield _Said(CONTEXT, Severity.LOW, EvidenceLevel.PROTOCOL, "context", what, "includeContext: allServers")


def _of_user(params: JsonObject, texts: list[tuple[str, str]]) -> Iterator[_Said]:
    must_not = 'The specification says that it "MUST NOT request sensitive information" so.'
    fields = [(name, secret) for name, secret in _fields(params.get("requestedSchema")) if secret]
    if fields:
        named = ", ".join(f"{name}: {secret}" for name, secret in fields[:8])
        fact = "field " + ",".join(sorted({secret for _, secret in fields}))
        severity = Severity.MEDIUM if {secret for _, secret in fields} <= UNSURE else Severity.HIGH
        yield _Said(SECRET, severity, EvidenceLevel.PROTOCOL, fact, must_not, named, Threat.EXFILTRATION)
    elif params.get("mode") != "url":
        asked = next((words for path, text in texts if path == "$.message" and (words := asks_user(text))), None)
        if asked is not None:
            level = EvidenceLevel.PROTOCOL
            yield _Said(SECRET, Severity.MEDIUM, level, "message", must_not, asked, Threat.EXFILTRATION)


def _fields(schema: JsonValue) -> Iterator[tuple[str, str | None]]:
    """The fields of a form that are filled with free text, and the secret that each wants."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, field in properties.items() if isinstance(properties, dict) else ():
        value = field if isinstance(field, dict) else {}
        if value.get("type", "string") != "string" or {"enum", "oneOf", "anyOf", "const"} & value.keys():
            continue
        title = value.get("title")
        secret = names_secret(str(name)) or (names_secret(title) if isinstance(title, str) else None)
        if secret is None and value.get("format") == "password":
            secret = "password"  # noqa: S105 - a word, no password
        yield str(name), secret
