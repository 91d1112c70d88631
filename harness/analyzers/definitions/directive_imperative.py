"""`directive.imperative`: hidden tags, secrecy, call-this-first, steps before using a tool, jailbreak words.

Soft: each of them also occurs in honest, if pushy, text. Ordinary guidance ("call list_projects first to get an
id") names a tool or a reason and is not matched.
"""

from __future__ import annotations

import re

from harness.analyzers.base import Rule
from harness.analyzers.definitions.check import Hit, Match, Phrase, match_frames, match_phrases, strongest
from harness.analyzers.definitions.frame_rules import FIRST, JAILBREAK, SECRECY, frames_of
from harness.analyzers.definitions.phrases import compile_phrase
from harness.analyzers.definitions.tags import SPOKEN_OF, TAG_PATTERN
from harness.analyzers.definitions.view import ItemView, RegistryView
from harness.analyzers.definitions.vocabulary import VOCABULARY
from harness.analyzers.evidence import EVIDENCE_CHARS, render_safe
from harness.model.finding import Position, Signal, Threat, Tier

BEFORE = "before-using"
TAG = "hidden-tag"

_ROWS: tuple[tuple[str, float, str], ...] = (
    (SECRECY, 0.6, "{refuse} ~2 {let_know} ~4 {person}"),
    (SECRECY, 0.6, "{refuse} ~2 tell/mention/reveal/disclose/show/display/explain/discuss/talk_about/say {this}"),
    (SECRECY, 0.6, "{person} must/should/may/can/does/do/need/will not/never be/to/need_to? {perceive}"),
    (SECRECY, 0.6, "keep/make sure? {this}/it ~3 secret/hidden/confidential/invisible/from_the_user/between_us"),
    (SECRECY, 0.6, "hide/conceal/keep ~4 from the? {person}"),
    (
        SECRECY,
        0.5,
        "do_not/never/must_not/no_need_to ask/request ~2 user/human ~2 permission/confirmation/consent/approval",
    ),
    (SECRECY, 0.6, "{sly} ~1 {sly_act}"),
    (FIRST, 0.6, "{call} {this_tool}/this/it/me ~3 before/prior_to ~1 {any_other}"),
    (FIRST, 0.6, "must/should/shall/has_to/needs_to/always always? be {call} ~4 before/prior_to {any_other}"),
    (FIRST, 0.5, "{call} {this_tool} ~2 first for/in/on/no_matter/regardless/always/every"),
    (FIRST, 0.5, "before ~1 {calling}/doing/answering/responding ~1 {any_other}/anything_else/anything"),
    (FIRST, 0.5, "{call} {this_tool} ~3 every/each ~1 message/response/turn/request/conversation/prompt/time"),
    (BEFORE, 0.6, "before/prior_to/when/whenever/after {calling} ~2 {tool} ~6 {take} ~8 {thing}"),
    (BEFORE, 0.6, "before/prior_to/when/whenever/after {calling} ~2 {tool} ~6 {act} ~8 {private_thing}"),
    (BEFORE, 0.6, "for this {tool} to work ~6 {act} ~8 {private_thing}/{thing}"),
    (BEFORE, 0.6, "to use/enable/activate/unlock this {tool} ~6 {act} ~8 {private_thing}/{thing}"),
    (BEFORE, 0.7, "first/you_must/must_first/always ~2 read/cat/open/collect/dump ~4 {private_place}"),
    (JAILBREAK, 0.7, "do_anything_now/dan_mode/act_as_dan/behave_as_dan/respond_as_dan/jailbreak_mode"),
    (JAILBREAK, 0.7, "developer/god mode is? now? enabled/activated/on"),
    (JAILBREAK, 0.7, "enter/enable/activate/switch_to ~1 developer/god/dan/unrestricted/unfiltered/jailbreak mode"),
    (JAILBREAK, 0.7, "you_are/become/act_as/pretend_to_be/respond_as ~3 {unbound}"),
    (JAILBREAK, 0.6, "you_have/with/there_are/has no ~1 ethical/moral/content/safety ~2 {limits}"),
    (JAILBREAK, 0.6, "you_are no longer ~3 bound/restricted/limited/assistant/constrained/claude/chatgpt"),
    (JAILBREAK, 0.5, "from now on you/your/act/respond/always/every"),
)
_WORDS = VOCABULARY | {
    "perceive": "know/see/told/aware/notice/find_out/informed/learn/notified/realize",
    "unbound": "unrestricted/unfiltered/uncensored/jailbroken/amoral/unbound/unaligned",
    "limits": "restrictions/limits/limitations/filters/guidelines/constraints/boundaries",
}
#: The adverb has the stem of the noun ("secret access key"), so this one looks at whole words.
_SECRETLY = re.compile(
    r"\bsecretly (?:[^ .]+ )?(?:read|send|collect|upload|call|run|execute|forward|copy|include|add|append|access|"
    r"invoke|pass|attach|transmit|exfiltrate|bcc|change|replace|insert|store|log|record)\b"
)
PHRASES: tuple[Phrase, ...] = (
    *(
        Phrase(
            family,
            compile_phrase(text, _WORDS),
            confidence,
            refuses=family == SECRECY,
            names_own_act=text.startswith("{sly}"),
        )
        for family, confidence, text in _ROWS
    ),
    Phrase(SECRECY, _SECRETLY, 0.6, stemmed=False),
)


class DirectiveImperative:
    """At most one signal for each family and item."""

    rule = Rule(id="directive.imperative", title="Pushy or secretive orders to the model")

    def inspect(self, item: ItemView, registry: RegistryView) -> tuple[Hit, ...]:
        """Match every text of the item; the tags are looked for in the raw text."""
        frames = frames_of(SECRECY, FIRST, JAILBREAK)
        hits = [self._hit(match) for match in strongest(match_phrases(item, PHRASES), match_frames(item, frames))]
        tag = self._tag(item)
        if tag is not None:
            hits.append(tag)
        return tuple(hits)

    def _tag(self, item: ItemView) -> Hit | None:
        best: tuple[float, str, str, str] | None = None
        for text, prose in item.proses:
            for found in TAG_PATTERN.finditer(prose.raw):
                shown = SPOKEN_OF.search(prose.raw[max(0, found.start() - 12) : found.start()]) is not None
                confidence = 0.175 if shown else 0.7
                if best is None or confidence > best[0]:
                    around = prose.raw[max(0, found.start() - 20) : found.end() + 120]
                    best = (confidence, text.path, found.group().lower(), render_safe(around))
        if best is None:
            return None
        position = Position.INSTRUCTION if best[0] > 0.5 else Position.EXAMPLE
        signal = Signal(
            check=self.rule.id,
            tier=Tier.SOFT,
            position=position,
            confidence=best[0],
            evidence=render_safe(f"{TAG}: {best[3]}", EVIDENCE_CHARS),
        )
        return Hit(signal, f"{self.rule.id}:{TAG}:{best[2]}", Threat.TOOL_POISONING, best[1])

    def _hit(self, match: Match) -> Hit:
        signal = Signal(
            check=self.rule.id,
            tier=Tier.SOFT,
            position=match.position,
            confidence=match.confidence,
            evidence=render_safe(f"{match.family}: {match.excerpt}", EVIDENCE_CHARS),
        )
        fact = f"{self.rule.id}:{match.family}:{match.words}"
        return Hit(signal, fact, Threat.PROMPT_INJECTION, match.path)
