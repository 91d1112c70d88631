"""The same call for another world and with another nonce: everything that was drawn is replaced by what is drawn now.

What a payload holds of the old world (paths, hosts, secrets in names) and of the old nonce (its digits, and the numbers
and words that follow from it) is known, so nothing but the recorded call is needed: no catalog, no synthesis.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Sequence

from harness.model.base import JsonValue
from harness.model.call import Call, ClientAnswer
from harness.model.payload import Effect, EffectKind
from harness.model.world import World
from harness.probing.calls.carried import handed_out
from harness.probing.payloads.placeholders import ENCODINGS, Place

#: Encodings that work character by character, so that what is inside can be replaced in its encoded form.
_WITHIN = ("percent", "percent2", "query", "hex", "slashes", "full-width", "quoted", "colons")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}")
#: Effects that a fresh nonce has to change, else two tries could not be told apart.
_FRESH = frozenset({EffectKind.CREATED, EffectKind.DISCLOSED, EffectKind.COMPUTED})


class Reissue:
    """From calls of one world to calls of another. `nonce`: the fresh one; `handed`: see `hand`."""

    def __init__(self, old: World, new: World, old_nonce: str, nonce: str) -> None:
        self._new = new
        self._nonce = nonce
        pairs: dict[str, str] = {}
        for before, after in _pairs(old, new, old_nonce, nonce):
            if before and before != after:
                pairs.setdefault(before, after)
        self._pairs = pairs
        self._handed: dict[str, str] = {}

    def hand(self, recorded: str, answer: str) -> None:
        """What the recorded answer of a step handed out is what this answer hands out, name by name in order."""
        given: dict[str, list[str]] = {}
        for name, value in handed_out(answer):
            given.setdefault(name, []).append(value)
        for name, value in handed_out(recorded):
            if given.get(name):
                fresh = given[name].pop(0)
                if fresh != value:
                    self._handed.setdefault(value, fresh)

    def call(self, call: Call, id_: str, about: str = "") -> Call:
        """The call with everything replaced, under another id."""
        params = self._value(call.params)
        assert isinstance(params, dict)
        return call.model_copy(
            update={
                "id": id_,
                "params": params,
                "answers": tuple(self._answer(answer) for answer in call.answers),
                "headers": {name: self.text(value) for name, value in call.headers.items()},
                "nonce": self._nonce,
                "effects": tuple(self._effect(effect) for effect in call.effects),
                "about": about,
                "world": self._new.nonce,
            }
        )

    def _answer(self, answer: ClientAnswer) -> ClientAnswer:
        content = self._value(answer.content)
        assert isinstance(content, dict)
        return answer.model_copy(update={"content": content})

    def text(self, text: str) -> str:
        """A text with everything replaced, whichever way it is encoded."""
        handed = {before: after for before, after in self._handed.items() if before == text}
        if handed:
            return handed[text]
        changed = _replace(text, self._pairs)
        for name in _WITHIN:
            encode = ENCODINGS[name]
            coded = {encode(before): encode(after) for before, after in self._pairs.items() if encode(before) != before}
            changed = _replace(changed, coded, coded=True)
        return _BASE64.sub(self._coded, changed) if changed == text else changed

    def _coded(self, match: re.Match[str]) -> str:
        token = match[0]
        if len(token) % 4:
            return token
        inner = base64.b64decode(token).decode("latin-1")
        changed = _replace(inner, self._pairs)
        return token if changed == inner else base64.b64encode(changed.encode("latin-1", "replace")).decode()

    def _effect(self, effect: Effect) -> Effect:
        return effect.model_copy(
            update={key: self.text(getattr(effect, key)) for key in ("path", "text", "address") if getattr(effect, key)}
        )

    def _value(self, value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self._value(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self._value(inner) for inner in value]
        return value


def fresh(old: Sequence[Call], new: Sequence[Call]) -> bool:
    """Whether the predictions of the new calls can't be met by anything of the old ones."""
    before = {effect for call in old for effect in call.effects if effect.kind in _FRESH}
    after = {effect for call in new for effect in call.effects if effect.kind in _FRESH}
    return not before & after


def _pairs(old: World, new: World, old_nonce: str, nonce: str) -> Iterator[tuple[str, str]]:
    for item in old.items:
        now = new.item(item.name)
        if now is not None:
            yield from ((item.path, now.path), (item.secret, now.secret), (item.target, now.target))
    for host in old.hosts:
        there = new.host(host.name)
        if there is not None:
            yield from ((host.url, there.url), (host.address, there.address), (host.secret, there.secret))
    yield old.domain, new.domain
    yield old.nonce, new.nonce
    if not old_nonce:
        return
    yield old_nonce, nonce
    one, two = (Place(world=old, base="", nonce=n, root=old.root) for n in (old_nonce, nonce))
    for name in ("a", "b"):
        yield str(one.number(name)), str(two.number(name))
    yield str(one.number("a") * one.number("b")), str(two.number("a") * two.number("b"))
    left, right = one.letters("left"), one.letters("right")
    yield left + right, two.letters("left") + two.letters("right")
    yield left, two.letters("left")
    yield right, two.letters("right")


def _replace(text: str, pairs: dict[str, str], *, coded: bool = False) -> str:
    """All at once, the longest first; numbers only where they stand alone, which nothing does in an encoding."""
    present = sorted((before for before in pairs if before in text), key=lambda before: (-len(before), before))
    if not present:
        return text
    forms = (rf"(?<!\d){before}(?!\d)" if before.isdigit() and not coded else re.escape(before) for before in present)
    return re.sub("|".join(forms), lambda match: pairs[match[0]], text)
