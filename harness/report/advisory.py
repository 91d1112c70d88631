"""A case for a maintainer: an advisory draft in Markdown, the messages to send, and how to send them.

Words of the target stand in code spans and fences that they can't close.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from harness.model.base import canonical_json
from harness.model.call import Call
from harness.model.payload import Effect, EffectKind
from harness.model.reproduction import ProofCase, Tried
from harness.report.escape import one_line, visible
from harness.report.proof import STEPS, WORDS

_TEXT = 2000
_MADE = {
    "repository": "a git repository with a commit and a change that is not committed",
    "directory": "a folder",
    "database": "an SQLite database with a table",
    "archive": "an archive of that kind",
    "document": "a document of that kind",
}
_EFFECTS = {
    EffectKind.CREATED: "the server creates {path}",
    EffectKind.CHANGED: "the server changes {path}",
    EffectKind.OPENED: "the server opens {path}",
    EffectKind.EXECUTED: "the server starts a program with the argument {text}",
    EffectKind.STUB_CALLED: "the server starts a program that it was not asked for, with {text}",
    EffectKind.CONNECTED: "the server connects to {address}",
    EffectKind.DISCLOSED: "the result holds {text}, which stands outside and was not sent",
    EffectKind.COMPUTED: "the result holds {text}, which was not sent and is what the payload evaluates to",
    EffectKind.ACCEPTED: "the server serves what it should refuse",
    EffectKind.EXHAUSTED: "the server does not answer in time",
}


def advisory(case: ProofCase) -> str:
    """A draft: what, impact, steps, evidence, affected version, CWE. Ends in one line end."""
    return "\n".join(_advisory(case)) + "\n"


def _advisory(case: ProofCase) -> Iterator[str]:
    finding, target = case.finding, case.target
    name = f"{target.name} {target.version}".strip() or target.ref
    yield f"# {_plain(finding.title)}"
    yield ""
    yield "Draft of an advisory. Read it, and correct it, before it goes to anybody."
    yield ""
    yield f"* Affected: {_code(name)} ({_code(target.ref)}); other versions were not tried"
    if target.digest:
        yield f"* Closure: SHA-256 {_code(target.digest)}"
    yield f"* Weakness: CWE-{finding.cwe}" if finding.cwe is not None else "* Weakness: not classified"
    yield f"* Severity: {finding.severity} (of the finding; not a CVSS score)"
    yield f"* Rule: {_code(finding.rule_id)}, finding {_code(finding.id)}"
    yield ""
    yield "## What"
    yield ""
    yield _plain(finding.description, _TEXT)
    yield ""
    yield "## Impact"
    yield ""
    if any(call.place == "header" for call in case.steps):
        yield (
            "The headers of a request come from whoever reaches the server's port. No more is needed than a call of "
            "this item with such a header."
        )
    else:
        yield (
            "The arguments of a tool come from a language model, and so from whoever writes what the model reads. "
            "No more is needed than a call of this item with such an argument."
        )
    if case.boundary is not None:
        value = f" {_code(case.boundary.value)}" if case.boundary.value else ""
        yield ""
        said = f": {_code(case.boundary.text)}" if case.boundary.text else ""
        yield f"It crosses this boundary: {case.boundary.kind}{value}, known from {_plain(case.boundary.source)}{said}."
    yield ""
    yield "## Steps"
    yield ""
    yield from _steps(case)
    yield ""
    yield "## Evidence"
    yield ""
    for evidence in finding.evidence:
        event = f", event {evidence.seq}" if evidence.seq is not None else ""
        step = evidence.kind in STEPS  # of the call above it
        call = f" {_plain(evidence.call)}" if evidence.call and not step else ""
        kind = WORDS.get(evidence.kind) or _plain(evidence.kind)
        yield f"{'  ' if step else ''}* {kind}{call}{event}: {_code(evidence.text)}"
    if finding.confirmation is not None:
        yield f"* confirmed with payload {_code(finding.confirmation.payload)}: {_plain(finding.confirmation.control)}"
    if case.outcome is not None:
        again = {
            Tried.REPRODUCED: "and again in a fresh sandbox with fresh nonces",
            Tried.NOT_REPRODUCED: "but not when it was tried again",
            Tried.NOT_TRIED: "and not tried again",
        }[case.outcome.outcome]
        yield f"* {again}: {_plain(case.outcome.why) or 'no more is known'}"
    yield ""
    yield "## Remedy"
    yield ""
    yield _plain(finding.remediation or "not known", _TEXT)


def _steps(case: ProofCase) -> Iterator[str]:
    number = 1
    yield f"{number}. Install exactly this version (the files and their digests are in `case.json`)."
    for path, text, link in planted(case):
        number += 1
        yield f"{number}. Make the file {_code(path)} with the text {_code(text)}."
        if link:
            number += 1
            yield f"{number}. Make {_code(link)} lead there by a symbolic link (it or a folder above it)."
    for kind, path in needed(case):
        number += 1
        yield f"{number}. Make {_MADE.get(kind, 'some file')} at {_code(path)}, if it is not there already."
    if case.argv:
        number += 1
        yield f"{number}. Start the server:"
        yield from ("", *_fence(" ".join(_shell(word) for word in case.argv)), "")
    number += 1
    how = f"each in a POST to {_code(case.place)}, with the session id that it gives" if case.place else "a line each"
    yield f"{number}. Send it these messages, {how} (`steps.jsonl`); wait for each answer:"
    yield from ("", *_fence(steps(case).rstrip("\n")), "")
    for headers in _headers(case.steps):
        number += 1
        yield f"{number}. With the call go these headers:"
        yield from ("", *_fence(headers), "")
    for answer in {canonical_json(a.model_dump(mode="json")): a for c in case.steps for a in c.answers}.values():
        number += 1
        yield f"{number}. When it asks for {_code(answer.method)}, answer ({answer.action}) with this content:"
        yield from ("", *_fence(json.dumps(answer.content, ensure_ascii=True)), "")
    for effect in {effect: None for call in case.steps for effect in call.effects}:
        number += 1
        yield f"{number}. See that {_effect(effect)}."
    for call in case.control[:1]:
        number += 1
        yield f"{number}. Compare with an inert value of the same shape, which has no such effect:"
        yield from ("", *_fence("\n".join([json.dumps(call.given, ensure_ascii=True), *_headers([call])])))


def _headers(calls: Sequence[Call]) -> list[str]:
    """The headers of calls, a line each; each set once."""
    sets = ("\n".join(f"{name}: {value}" for name, value in sorted(call.headers.items())) for call in calls)
    return list(dict.fromkeys(lines for lines in sets if lines))


def planted(case: ProofCase) -> list[tuple[str, str, str]]:
    """The planted files that the predictions speak of: path, text, and the way to it by a link, if that was used."""
    texts = {effect.text for call in case.steps for effect in call.effects if effect.kind is EffectKind.DISCLOSED}
    paths = {effect.path for call in case.steps for effect in call.effects if effect.kind is EffectKind.CHANGED}
    sent = json.dumps([call.given for call in case.steps])
    found: dict[str, tuple[str, str]] = {}
    for item in case.world.items:
        if item.kind in ("file", "document", "link") and ((item.secret and item.secret in texts) or item.path in paths):
            link = item.path if item.target and item.path in sent else ""
            path, text = item.target or item.path, item.secret or "anything"
            if path not in found or (link and not found[path][1]):
                found[path] = text, link
    return sorted((path, text, link) for path, (text, link) in found.items())


def needed(case: ProofCase) -> list[tuple[str, str]]:
    """What else of the planted world the start, the calls or the control name: kind and path."""
    told = {place for path, _, link in planted(case) for place in (path, link)}
    named = set(case.argv)
    waiting: list[object] = [call.given for call in (*case.steps, *case.control)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            named.add(value)
        elif isinstance(value, dict | list | tuple):
            waiting += value.values() if isinstance(value, dict) else value
    items = {item.path: str(item.kind) for item in case.world.items if not item.target and item.kind != "stub"}
    return sorted((items[path], path) for path in named & items.keys() - told)


def steps(case: ProofCase) -> str:
    """The messages to send, one JSON-RPC message a line."""
    version = case.target.protocol_version or "2025-06-18"
    client = {"name": "client", "version": "1"}
    offers: dict[str, object] = {"sampling": {}, "elicitation": {}} if any(call.answers for call in case.steps) else {}
    hello = {"protocolVersion": version, "capabilities": offers, "clientInfo": client}
    messages: list[dict[str, object]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]
    messages += [_message(call, number) for number, call in enumerate(case.steps, 2)]
    return "".join(json.dumps(message, ensure_ascii=True) + "\n" for message in messages)


def readme(case: ProofCase) -> str:
    """What lies in the folder, and what to do with it."""
    lines = [
        f"# Case {case.finding.id}",
        "",
        "* `advisory.md`: a draft of what to tell the maintainers",
        "* `case.json`: target and the digests of its closure, how it is started, what is planted, the calls, what to"
        " expect",
        "* `steps.jsonl`: the messages to send on the server's standard input (or over HTTP), in order",
        "* `recording/`: what was recorded when it was tried again (`harness report recording`), if it was",
        "",
        "Paths are those of the sandbox. Make the planted files (`advisory.md` names them), or replace the paths in",
        "messages and start by others that relate in the same way: inside or outside of the root.",
        "Run it in a container or a virtual machine: it does what it says.",
    ]
    return "\n".join(lines) + "\n"


def _message(call: Call, number: int) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "method": call.method, "params": call.params}


def _effect(effect: Effect) -> str:
    words = {key: _code(getattr(effect, key)) for key in ("path", "text", "address")}
    return _EFFECTS[effect.kind].format(**words)


def _plain(text: str, limit: int = 400) -> str:
    """Prose with words of the target in it: on one line, and nothing in it is Markdown or HTML."""
    return re.sub(r"([\\`*_{}\[\]<>#|!~&])", r"\\\1", one_line(text, limit))


def _code(text: str, limit: int = 400) -> str:
    """A code span that the text can't close."""
    shown = visible(text, limit)
    ticks = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown[:1] in ("`", " ", "") or shown[-1:] in ("`", " ") else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def _fence(text: str) -> list[str]:
    """A fenced block that the text can't close."""
    lines = [visible(line, 4000) for line in text.split("\n")]
    ticks = "`" * max(3, max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    return [ticks, *lines, ticks]


def _shell(word: str) -> str:
    return word if re.fullmatch(r"[A-Za-z0-9_@%+=:,./-]+", word) else "'" + word.replace("'", "'\\''") + "'"
