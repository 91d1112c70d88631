"""What a check is, and how positions discount what it matched (tool-definitions.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

from harness.analyzers.base import Rule
from harness.analyzers.definitions.frames import Frame
from harness.analyzers.definitions.text import Prose
from harness.analyzers.definitions.view import ItemView, RegistryView
from harness.model.finding import Position, Signal, Threat

#: Frames this weak say something only as orders; described or quoted, honest tools are full of them.
WEAK = 0.5
#: How much of a confidence is left at each position.
DISCOUNT = {Position.INSTRUCTION: 1.0, Position.DESCRIPTIVE: 0.5, Position.EXAMPLE: 0.25}


@dataclass(frozen=True)
class Hit:
    """A signal, the normalised fact behind it, its threat, and where in the item it was."""

    signal: Signal
    fact: str
    threat: Threat
    path: str


class Check(Protocol):
    """One check over one item; `registry` holds all the others. Pure; what it raises is isolated by the caller."""

    @property
    def rule(self) -> Rule: ...

    def inspect(self, item: ItemView, registry: RegistryView) -> tuple[Hit, ...]: ...


# How far back an introduction may stand, in tokens of the same sentence.
_REACH = 28
_EXAMPLE = re.compile(
    r"\b(?:such as|for example|for instance|examples?|eg|phrases?|strings? like|texts? like|words? like|"
    r"prompts? like|inputs? like|requests? like|messages? like|things like|attacks? like|attempts? like|patterns? like|"
    r"wording|ejemplo|exemple|beispiel|esempio|exemplo)\b(?: \S+){0,12}$"
)
#: What says that the sentence speaks about such texts, however long its list of them is.
_TOPIC = re.compile(
    r"\b(?:attempts?|attack(?:s|ers?)?|jailbreaks?|injections?|(?:prompts?|texts?|inputs?|messages?|content|"
    r"documents?|descriptions?|strings?|instructions?|commands?|requests?|patterns?|code|files?|tools?|responses?|skills?|"
    r"servers?|emails?|pages?|samples?|users?) (?:that|which|who|trying|asking|telling|designed|attempting|"
    r"intended|says|asks|tells|wants|tries|claims)|"
    r"whether|if an?|adversar\w+|malicious|suspicious|poison\w*|threats?|payloads?|red team\w*)\b"
)
_VERBS = (
    "detect|block|prevent|flag|scan|identif|reject|filter|classif|guard|protect|recogni[sz]|monitor|warn|catch|"
    "mitigat|defend|sanitiz|sanitis|analy[sz]|inspect|evaluat|refus|highlight|quarantin|redact|test|check|measur|score|"
    "screen|mask|replac|remov|strip|encrypt|hash|hid|explain|describ|teach|discuss|summari[sz]|annotat|label|assess|review|"
    "simulat|verif|search|report"
)
#: A verb of detection in the third person or as a gerund anywhere, or as the sentence's first word.
_DETECTS = re.compile(
    rf"\b(?:{_VERBS})(?:s|es|ies|ing|ion|ation|ed|or|er)\b(?: [^ ,]+){{0,14}}$|"
    rf"^(?:to )?(?:{_VERBS})(?:e|y)?\b(?: [^ ,]+){{0,14}}$"
)
#: Chinese and Japanese verbs of detection and words for "such as" (no spaces, so no word boundaries).
_CJK_TOPIC = re.compile("检测|阻止|识别|防止|拦截|过滤|例如|比如|検出|防ぐ|ブロック|例えば")
_NEGATED = re.compile(
    r"\b(?:never|not|refuse to|refuses to|without|prevent(?:s|ing)? .{0,20} from|cannot)(?: \S+){0,2}$"
)
#: After these the description is over and an order begins.
_TURN = re.compile(
    r"\b(?:and then|then|you must|you should|you have to|please|instead|now|from here on|after that|afterwards|"
    r"once done|so|also|and (?:always|immediately|secretly|silently))$"
)


def position_of(prose: Prose, first: int, last: int) -> Position:
    """The position of the tokens `first` to `last`: quoted or introduced as an example, described, or an order."""
    lead = prose.before(first, _REACH)
    quoted = lead.count('"') % 2 == 1 and '"' in prose.after(last, _REACH).split()
    said = " ".join(word for word in lead if word != '"')
    if quoted or _EXAMPLE.search(said):
        return Position.EXAMPLE
    if _TURN.search(said.rstrip(" ,")):
        return Position.INSTRUCTION
    if _NEGATED.search(said) or _TOPIC.search(said) or _DETECTS.search(said) or _CJK_TOPIC.search(said):
        return Position.DESCRIPTIVE
    return Position.INSTRUCTION


@dataclass(frozen=True)
class Phrase:
    """A family of phrases as a pattern over stems (or over unstemmed words), and what a match in it means.

    `names_own_act`: a verb in the third person ("Sends …") describes what the tool does and orders nothing.
    """

    family: str
    pattern: re.Pattern[str]
    confidence: float
    threat: Threat = Threat.PROMPT_INJECTION
    stemmed: bool = True
    names_own_act: bool = False
    refuses: bool = False


@dataclass(frozen=True)
class Match:
    """The strongest match of one family in an item: its place, position, discounted confidence and words."""

    family: str
    threat: Threat
    path: str
    position: Position
    confidence: float
    words: str
    excerpt: str


#: Plain forms that end like something else.
_PLAIN_FORMS = frozenset({"bypass", "dismiss", "pass", "access", "suppress", "trespass", "embed", "feed", "mention"})
#: A second verb that tells what the tool does, where the secret is of a common kind (a token, a password).
_CARRIES = re.compile(
    r"(?!.*\b(?:dot|rsa|ssh|private|seed|environment)\b).*"
    r"\b(?:sends|uploads|transmits|forwards|posts|submits|delivers|relays|ships)\b"
)
#: Text from elsewhere whose instructions are to be ignored: what honest servers say about it.
_UNTRUSTED = re.compile(
    r"(?:(?:or|and) [^ .]+ )?(?:(?:found|contained|returned|given|written|shown|by|embedded|included|present|"
    r"hidden|that appear|that are|coming|in|inside|within|from) )+"
    r"(?:[^ .]+ ){0,3}(?:it|them|content|contents|pages?|texts?|documents?|results?|files?|output|data|websites?|"
    r"emails?|responses?|tools?|query|queries|servers?|sites?|inputs?|rows?|records?|this)\b"
)


#: Who acts when a verb in the third person orders something after all.
_SUBJECT = frozenset({"assistant", "model", "agent", "ai", "llm", "following", "must"})
_NO = frozenset({"not", "never", "without"})
_BE = frozenset(
    "is are be been being was were had has have get gets you consider as treat by".split()  # noqa: SIM905
)
_OBLIGED = frozenset({"be", "must", "should", "shall", "always"})
_MOVED = frozenset(
    {"sent", "posted", "uploaded", "transmitted", "forwarded", "submitted", "delivered", "given", "included"}
)
_ACTORS = frozenset({"they", "it", "which", "may", "might", "could", "who", "attackers"})


def match_phrases(item: ItemView, phrases: tuple[Phrase, ...]) -> tuple[Match, ...]:
    """For each family the match with the highest confidence after its position's discount; the first among equals."""
    best: dict[str, Match] = {}
    for text, prose in item.proses:
        for phrase in phrases:
            source = prose.stems if phrase.stemmed else prose.words
            for found in phrase.pattern.finditer(source):
                known = best.get(phrase.family)
                if known is not None and known.confidence >= phrase.confidence:
                    break
                at = prose.token_at if phrase.stemmed else prose.word_token_at
                first, last = at(found.start()), at(max(found.start(), found.end() - 1))
                position = _position(prose, phrase, first, last)
                confidence = round(phrase.confidence * DISCOUNT[position], 4)
                if known is None or confidence > known.confidence:
                    words, shown = found.group()[:200], prose.excerpt(first, last)
                    best[phrase.family] = Match(
                        phrase.family, phrase.threat, text.path, position, confidence, words, shown
                    )
    return tuple(best.values())


def match_frames(item: ItemView, frames: tuple[Frame, ...]) -> tuple[Match, ...]:
    """The same for frames, of which an item finds the occurrences once."""
    best: dict[str, Match] = {}
    for (text, prose), spans in zip(item.proses, item.spans, strict=True):
        for frame in frames:
            if frame.parameters and ".properties." not in text.path:
                continue
            for first, last, head in spans.get(frame.concept, ()):
                known = best.get(frame.family)
                if known is not None and known.confidence >= frame.confidence:
                    break
                position = _frame_position(prose, frame, first, last, head)
                if frame.confidence <= WEAK and position is not Position.INSTRUCTION:
                    continue
                confidence = round(frame.confidence * DISCOUNT[position], 4)
                if known is None or confidence > known.confidence:
                    words, shown = prose.between(first, last)[:200], prose.excerpt(first, last)
                    best[frame.family] = Match(
                        frame.family, frame.threat, text.path, position, confidence, words, shown
                    )
    return tuple(best.values())


def strongest(*found: Iterable[Match]) -> tuple[Match, ...]:
    """One match a family, the first among equals."""
    best: dict[str, Match] = {}
    for match in chain(*found):
        known = best.get(match.family)
        if known is None or match.confidence > known.confidence:
            best[match.family] = match
    return tuple(best.values())


def _frame_position(prose: Prose, frame: Frame, first: int, last: int, head: int) -> Position:
    position = min(position_of(prose, first, last), position_of(prose, head, last), key=DISCOUNT.__getitem__)
    if position is not Position.INSTRUCTION:
        return position
    lead = prose.before(head, 4)
    denied = head > first and not _NO.isdisjoint(lead[-3:])
    if denied or _tells(prose.word(head), lead, frame.threat) or _UNTRUSTED.match(prose.after(last, 8)):
        return Position.DESCRIPTIVE
    return position


def _tells(verb: str, lead: list[str], threat: Threat) -> bool:
    """Whether a verb in this form, after these words, says what happens instead of ordering it."""
    if verb in _PLAIN_FORMS or not _SUBJECT.isdisjoint(lead):
        return False
    if verb in ("sent", "given", "written", "put") or verb.endswith("ed"):
        passive = threat is Threat.EXFILTRATION and _OBLIGED.isdisjoint(lead)
        return verb != "put" and (passive or _BE.isdisjoint(lead))
    return verb.endswith(("s", "tion")) or (bool(lead) and lead[-1] in _ACTORS)


def _position(prose: Prose, phrase: Phrase, first: int, last: int) -> Position:
    position = position_of(prose, first, last)
    if position is Position.DESCRIPTIVE and phrase.refuses and _NEGATED.search(" ".join(prose.before(first, 4))):
        position = Position.INSTRUCTION
    verb = prose.word(first)
    own_act = verb.endswith(("s", "ed", "tion")) and verb not in _PLAIN_FORMS
    if phrase.threat is Threat.EXFILTRATION and not phrase.names_own_act:
        own_act = _CARRIES.match(prose.between(first, last)) is not None
        return Position.DESCRIPTIVE if own_act and position is Position.INSTRUCTION else position
    if phrase.family == "override" and _UNTRUSTED.match(prose.after(last, 8)):
        own_act = True
        return Position.DESCRIPTIVE if position is Position.INSTRUCTION else position
    harmless = phrase.names_own_act and (own_act or _UNTRUSTED.match(prose.after(last, 8)) is not None)
    return Position.DESCRIPTIVE if harmless and position is Position.INSTRUCTION else position
