"""What the planner of calls keeps of each subject, and how it names and moves things. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.model.base import JsonObject, JsonValue, sha256_hex
from harness.model.call import ClientAnswer, Outcome
from harness.model.payload import PayloadClass
from harness.model.world import World
from harness.probing.calls.kit import Attack
from harness.probing.calls.subjects import Subject
from harness.probing.synthesis.pointers import put

#: A subject that hangs or crashes so often is set aside; so is one that never answered, and a class of payloads.
MOST_BREAKS = 12
MOST_UNANSWERED = 3
MOST_OF_A_CLASS = 5
#: Where a hang is what is predicted, each is waited for to the end.
MOST_EXHAUSTED = 2
#: Once a call hung for the whole call timeout, those with payloads are waited for so many times as long as the item's
#: baseline took, and so many seconds at least: the first of an item that is not answered, and further ones.
FIRST_HANG = (40, 8.0)
FURTHER_HANG = (20, 3.0)
#: A name that synthesis gives to what is to be made.
_NEW_NAME = re.compile(r"\bmade-[0-9a-f]{6}\b")
_WORTH = {"answered": 3, "tool-error": 2, "error": 1}


@dataclass(eq=False)
class State:
    """What is known of one subject. `arguments` and `outcome`: of the best call so far, made in `world`; `reactions`:
    what refusals of payloads showed of a place; `headers`: those of a request that its refusals asked for.
    `answers`: what the client has to answer for its calls to succeed, where that is not what it answers by itself.
    """

    subject: Subject
    reached: bool = False
    reason: str = ""
    calls: int = 0
    breaks: int = 0
    arguments: JsonObject | None = None
    outcome: Outcome | None = None
    world: World | None = None
    tried: list[tuple[JsonObject, str]] = field(default_factory=list)
    broken: dict[PayloadClass, int] = field(default_factory=dict)
    reactions: dict[str, frozenset[str]] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    answers: tuple[ClientAnswer, ...] = ()

    @property
    def set_aside(self) -> bool:
        """It broke the session too often."""
        return self.breaks >= MOST_BREAKS or (not self.reached and self.breaks >= MOST_UNANSWERED)

    def broke(self, payload_class: PayloadClass | None) -> None:
        """A call of it hung or ended the session."""
        self.breaks += 1
        if payload_class is not None:
            self.broken[payload_class] = self.broken.get(payload_class, 0) + 1

    def breaks_on(self, payload_class: PayloadClass) -> bool:
        """Payloads of this class broke the session too often."""
        most = MOST_EXHAUSTED if payload_class is PayloadClass.EXHAUSTION else MOST_OF_A_CLASS
        return self.broken.get(payload_class, 0) >= most

    def patience(self, *, first: bool) -> float:
        """Seconds that an answer is waited for where others hung, by what the baseline took; 0 where none succeeded."""
        if not self.reached or self.outcome is None:
            return 0.0
        times, least = FIRST_HANG if first else FURTHER_HANG
        return round(max(least, times * self.outcome.seconds), 1)

    def learn(self, arguments: JsonObject, outcome: Outcome) -> None:
        """Keep the call that tells most: one that succeeded, else one in which the tool itself failed."""
        if self.outcome is None or _WORTH.get(outcome.state, 0) > _WORTH.get(self.outcome.state, 0):
            self.arguments, self.outcome = arguments, outcome
        if outcome.state == "answered":
            self.reached, self.reason = True, ""


class Maker:
    """Numbers calls, and draws nonces that follow from seed, world and number."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._calls = 0
        self._nonces = 0

    def call_id(self) -> str:
        """The next call's id."""
        self._calls += 1
        return f"c{self._calls}"

    def nonce(self, world: str) -> str:
        """20 hex digits, fresh for each call; nobody who does not know the world's can tell them beforehand."""
        self._nonces += 1
        return sha256_hex(f"{self._seed}/{world}/{self._nonces}")[:20]

    def put(self, arguments: JsonObject, attack: Attack, value: str) -> JsonObject:
        """The arguments with another text in the attack's place."""
        changed = put(arguments, attack.argument, value)
        return changed if isinstance(changed, dict) else arguments


#: What takes a file away, or its content.
_TAKES = frozenset({"delete", "rename"})
_HARSH = re.compile(
    r"(?:^|[_.\-\s])(?:delete|remove|rm|move|mv|rename|clear|reset|drop|purge|wipe|truncate|kill|stop|shutdown|close|write"
    r"|edit|update|replace|format|uninstall)(?:$|[_.\-\s])"
)


def gentle_first(states: Sequence[State]) -> list[State]:
    """In the order served, but for those that say that they take away or change: they come last."""
    return sorted(states, key=harsh)


def harsh(state: State) -> bool:
    """Whether a subject says that it takes away or changes."""
    hints = state.subject.annotations or {}
    if hints.get("readOnlyHint") is True:
        return False
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", state.subject.name).casefold()
    return hints.get("destructiveHint") is True or _HARSH.search(name) is not None


def wears(outcome: Outcome, world: World) -> bool:
    """Whether a call took away something that was planted for later calls, or a folder above it."""
    taken = [file.path.rstrip("/") for file in outcome.files if file.ok and file.how in _TAKES]
    if not taken:
        return False
    inside = [item.path.rstrip("/") for item in world.items if item.where in ("inside", "linked")]
    return any(path == gone or path.startswith(f"{gone}/") for gone in taken for path in (*inside, world.root))


def renewed(arguments: JsonObject, nonce: str) -> JsonObject:
    """The same arguments with names for what is to be made that were not used yet: an earlier call's file is in the way
    of the next one, and what the server then says hides what it does with the payload.
    """
    text = _NEW_NAME.sub(f"made-{sha256_hex(nonce)[:6]}", json.dumps(arguments))
    found: JsonObject = json.loads(text)
    return found


def moved(arguments: JsonObject, old: World, new: World) -> JsonObject:
    """The same arguments for another world: what was planted under one name there is named as it is planted here."""
    if old.nonce == new.nonce:
        return arguments
    pairs = [(old.nonce, new.nonce), (old.domain, new.domain)]
    for item in old.items:
        if (now := new.item(item.name)) is not None:
            pairs.append((item.path, now.path))
    for host in old.hosts:
        if (there := new.host(host.name)) is not None:
            pairs += [(host.url, there.url), (host.address, there.address)]
    changes = sorted({(before, after) for before, after in pairs if before and before != after}, key=_longest)

    def move(value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            for before, after in changes:
                value = value.replace(before, after)
            return value
        if isinstance(value, dict):
            return {key: move(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [move(inner) for inner in value]
        return value

    return {key: move(value) for key, value in arguments.items()} if changes else arguments


def _longest(pair: tuple[str, str]) -> tuple[int, str]:
    return -len(pair[0]), pair[0]
