"""What a client answers when a server asks it for a model's text or for a form's fields: plausible, and made from what
is asked alone, so that the same request in the same world gets the same answer. Pure.

Facts of the two requests: specification of revision 2025-11-25, client/sampling and client/elicitation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.model.base import JsonObject, JsonValue
from harness.model.call import ClientAnswer
from harness.model.world import World
from harness.probing.synthesis.draft import Context
from harness.probing.synthesis.drafting import draft

SAMPLING = "sampling/createMessage"
ELICITATION = "elicitation/create"
#: What a payload in an answer stands in (see `Applies.places`).
PLACES = {SAMPLING: "sampling-answer", ELICITATION: "elicitation-answer"}
#: The refusals that each method knows.
REFUSALS: dict[str, tuple[ClientAnswer, ...]] = {
    SAMPLING: (ClientAnswer(method=SAMPLING, action="decline"),),
    ELICITATION: (
        ClientAnswer(method=ELICITATION, action="decline"),
        ClientAnswer(method=ELICITATION, action="cancel"),
    ),
}
#: The member of a `ClientAnswer`'s content that holds a model's text.
TEXT = "answer"
#: Characters of a prompt that are read for what it wants.
MOST_PROMPT = 1_000
_JSON = re.compile(r"\bjson\b", re.IGNORECASE)
#: Fields of a form that are given a secret.
_SECRET = re.compile(
    r"pass(?:word|phrase|code)|\bpwd\b|secret|token|api key|access key|private key|credential|seed phrase|mnemonic"
    r"|\bpin\b|\botp\b|one time code|card number|\bcvv\b|\bcvc\b|\bssn\b"
)


def wanted(method: str, params: JsonObject) -> JsonObject:
    """JSON Schema of the content that a request wants: a form's own, or one text, described by the prompt.

    A field of a form that nothing describes is described by its title and the form's message.
    """
    if method == ELICITATION:
        schema = params.get("requestedSchema")
        if not isinstance(schema, dict):
            return {"type": "object", "properties": {}}
        said = {name: _described(field, params.get("message")) for name, field in _fields(schema)}
        properties = schema.get("properties")
        return {**schema, "properties": {**properties, **said}} if isinstance(properties, dict) else schema
    prompt = _prompt(params)
    text: JsonObject = {"type": "string", "description": prompt}
    if _JSON.search(prompt) is not None:
        text["examples"] = ['{"name": "garden", "items": [1, 2]}', "[1, 2]"]
    return {"type": "object", "properties": {TEXT: text}, "required": [TEXT]}


def plausible(
    method: str, params: JsonObject, world: World | None = None, *, seed: int = 0, typed: str = ""
) -> ClientAnswer:
    """The answer of somebody who fills everything in. `typed`: what is entered where a form asks for a secret.

    A page that shall be opened is not: nobody would come back from it.
    """
    if method == ELICITATION and params.get("mode") == "url":
        return ClientAnswer(method=method, action="decline")
    schema = wanted(method, params)
    here = world or World(nonce="", root="/home/user/workspace", outside="/home/user/private")
    made = draft("", schema, Context(world=here, seed=seed), place=PLACES.get(method, "argument"))
    content = dict(made.full or next(iter(made.candidates), {}))
    if method == ELICITATION:
        content |= dict.fromkeys(_of_type(schema, "boolean"), True)  # whoever accepts a form agrees
        if typed:
            content |= dict.fromkeys(secret_fields(schema), typed)
    return ClientAnswer(method=method, content=content)


def secret_fields(schema: JsonValue) -> tuple[str, ...]:
    """The fields of a form, filled with free text, that are named for a secret or said to be one."""
    return tuple(
        name
        for name, field in _fields(schema)
        if field.get("type", "string") == "string"
        and not {"enum", "oneOf", "anyOf", "const"} & field.keys()
        and (field.get("format") == "password" or _SECRET.search(_plain(name, field.get("title"))) is not None)
    )


def result_of(answer: ClientAnswer) -> JsonObject | None:
    """The result that is sent; None where the method knows no refusal, so that an error is."""
    if answer.method == ELICITATION:
        accepted: JsonObject = {"action": "accept", "content": answer.content}
        return accepted if answer.action == "accept" else {"action": answer.action}
    if answer.action != "accept":
        return None
    said = answer.content.get(TEXT, "")
    text = said if isinstance(said, str) else str(said)
    return {
        "role": "assistant",
        "content": {"type": "text", "text": text},
        "model": "claude-sonnet-4-5",
        "stopReason": "endTurn",
    }


def _fields(schema: JsonValue) -> Iterator[tuple[str, JsonObject]]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, field in properties.items() if isinstance(properties, dict) else ():
        if isinstance(field, dict):
            yield str(name), field


def _described(field: JsonObject, message: JsonValue) -> JsonObject:
    words = ". ".join(text for text in (field.get("title"), message) if isinstance(text, str) and text)[:MOST_PROMPT]
    return field if not words or {"description", "$ref"} & field.keys() else {**field, "description": words}


def _of_type(schema: JsonValue, kind: str) -> Iterator[str]:
    return (name for name, field in _fields(schema) if field.get("type") == kind)


def _plain(name: str, title: JsonValue) -> str:
    """A name and a title as words: `apiKey` is `api key`."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", f"{name} {title if isinstance(title, str) else ''}"[:200])
    return re.sub(r"[^a-z0-9]+", " ", parted.casefold())


def _prompt(params: JsonObject) -> str:
    """The last message to the model, then its orders, bounded."""
    messages = params.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    content = last.get("content") if isinstance(last, dict) else None
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "\n".join(text for text in (*texts, params.get("systemPrompt")) if isinstance(text, str))[:MOST_PROMPT]
