"""The frames: which concepts near each other make an order against the user (frames.py has the notation)."""

from __future__ import annotations

from functools import cache

from harness.analyzers.definitions.concepts import CONCEPTS
from harness.analyzers.definitions.frames import Frame, Lexicon, Rule, parse_rule
from harness.analyzers.definitions.languages import LANGUAGES
from harness.model.finding import Threat

OVERRIDE = "override"
PROMPT = "system-prompt"
EXFILTRATION = "exfiltration"
SECRECY = "secrecy"
FIRST = "call-first"
JAILBREAK = "jailbreak"

#: Derived concepts, each made of those above it; several lines of one name add up.
_DERIVED = """
system_prompt: prompt_kind >1 prompt_words
owner: your|maker
rules: core <>3 owner
rules: orders <>4 system_prompt
owned: orders <>3 owner
rules: orders >6 told
rules: orders <>5 set_for_you
rules: orders_core <>2 earlier >3 told
earlier_rules: core <>2 earlier
earlier_limits: orders_core <>2 earlier
model_rules: orders <>3 model
model_earlier: model_rules <>3 earlier
cancel: cancel_strong|cancel_loose
guards: guard_kind >1 orders
system_rules: system_word >1 orders_core
cancel_it: cancel >1 it_them
near_address: toward >3 address
unfollow: not >3 obey
unbinding: not >3 not_bind
secret: hard_secret|key_like
mine: hard_secret
mine: key_like <>4 whose|user
each_turn: each_word|start_word >3 turn
secret: soft_secret <>4 whose
secret: soft_secret <>3 user
send: transfer_strong
to_outside: address|drop_box|number
obliged: must >3 be
tool_secret: collect <>8 hard_secret|secret
pronoun: this|the_thing
own_prompt: model <>3 prompt_own
own_prompt: your >2 prompt_own
pronoun: content <>1 this
"""

#: Family, confidence, rule.
_FRAMES: tuple[tuple[str, float, str], ...] = (
    (OVERRIDE, 0.9, "cancel <>7 rules"),
    (OVERRIDE, 0.85, "cancel_strong <>4 earlier_rules"),
    (OVERRIDE, 0.85, "ignore_words <>4 earlier_limits"),
    (OVERRIDE, 0.5, "cancel_strong <>4 earlier_limits"),
    (OVERRIDE, 0.85, "ignore_words <>6 owned"),
    (OVERRIDE, 0.5, "cancel <>6 owned"),
    (OVERRIDE, 0.75, "despite <>6 rules|told|model_noun|system_rules"),
    (OVERRIDE, 0.65, "treat <>9 as_system"),
    (OVERRIDE, 0.65, "treat <>9 as_reliable <>9 orders|obey|rules|told|user_said|system_word|user"),
    (OVERRIDE, 0.5, "treat <>9 as_reliable"),
    (OVERRIDE, 0.85, "cancel <>6 model_earlier"),
    (OVERRIDE, 0.8, "ignore_words <>4 system_rules"),
    (OVERRIDE, 0.85, "cancel_strong <>4 guards"),
    (OVERRIDE, 0.5, "cancel_loose <>4 guards"),
    (OVERRIDE, 0.8, "rules|earlier_rules|guards|model_earlier >>16 cancel_it"),
    (OVERRIDE, 0.8, "cancel_strong <>4 model_rules"),
    (OVERRIDE, 0.8, "cancel_strong <>5 told|user_said"),
    (OVERRIDE, 0.8, "cancel <>5 told"),
    (OVERRIDE, 0.85, "unfollow >5 rules|owned|earlier_rules|earlier_limits|told|user_said|model_rules"),
    (OVERRIDE, 0.85, "unbinding <>7 rules|owned|earlier_rules|model_rules|model_noun"),
    (OVERRIDE, 0.8, "unbinding <>4 orders >4 you"),
    (OVERRIDE, 0.7, "orders_core >8 unbinding >3 you"),
    (OVERRIDE, 0.8, "gone <>6 model_noun"),
    (OVERRIDE, 0.75, "conflict <>8 rules|owned|system_rules|model_noun|told <>10 win"),
    (OVERRIDE, 0.7, "rank <>6 core >6 system_word|user|maker|told"),
    (OVERRIDE, 0.7, "core >5 rank >6 system_word|user|maker|told"),
    (OVERRIDE, 0.65, "cancel_loose|swap|gone >4 your >2 goal"),
    (OVERRIDE, 0.65, "only <>4 orders_core <>6 counts"),
    (OVERRIDE, 0.8, "comply <>9 refused"),
    (OVERRIDE, 0.75, "displace >4 user_said"),
    (OVERRIDE, 0.5, "obey|comply <>6 unconditional"),
    (OVERRIDE, 0.65, "new_orders"),
    (PROMPT, 0.9, "reveal <>7 system_prompt <>3 your"),
    (PROMPT, 0.85, "reveal_strong <>6 system_prompt"),
    (PROMPT, 0.85, "reveal <>6 system_prompt <>6 verbatim|carrier"),
    (PROMPT, 0.85, "reveal >6 prompt_words >6 set_for_you"),
    (PROMPT, 0.8, "content|verbatim <>4 system_prompt <>4 your"),
    (PROMPT, 0.75, "system_prompt <>3 your <>10 carrier|verbatim"),
    (PROMPT, 0.5, "system_prompt <>2 your"),
    (PROMPT, 0.7, "reveal >7 own_prompt <>6 carrier|verbatim"),
    (PROMPT, 0.5, "reveal >5 own_prompt"),
    (PROMPT, 0.7, "reveal <>8 briefed"),
    (PROMPT, 0.75, "verbatim <>3 own_prompt"),
    (PROMPT, 0.7, "reveal <>6 prompt_words <>2 maker <>6 carrier|verbatim"),
    (PROMPT, 0.8, "reveal >4 text_above <>8 verbatim|carrier|your"),
    (EXFILTRATION, 0.9, "send <>9 hard_secret|key_like <>12 to_outside !authenticates"),
    (EXFILTRATION, 0.85, "send <>9 secret <>12 to_outside !authenticates"),
    (EXFILTRATION, 0.85, "transfer <>7 secret <>12 near_address !authenticates"),
    (EXFILTRATION, 0.85, "transfer|send <>7 mine <>8 carrier !authenticates"),
    (EXFILTRATION, 0.5, "transfer|send >7 secret >8 field !authenticates"),
    (EXFILTRATION, 0.8, "send >4 talk >8 to_outside"),
    (
        EXFILTRATION,
        0.9,
        "collect <>8 mine|secret_file >>18 transfer|send >4 pronoun <>8 to_outside|carrier !authenticates",
    ),
    (EXFILTRATION, 0.65, "collect <>8 secret >>18 transfer|send >4 pronoun <>8 to_outside !authenticates"),
    (EXFILTRATION, 0.55, "collect <>8 secret >>18 transfer|send >4 pronoun <>8 carrier !authenticates"),
    (EXFILTRATION, 0.5, "collect <>4 secret_file >>30 transfer|send"),
    (EXFILTRATION, 0.85, "transfer|send <>2 content <>4 mine"),
    (EXFILTRATION, 0.85, "steal >3 secret|soft_secret"),
    (EXFILTRATION, 0.8, "swap <>5 payee <>5 number|address"),
    (EXFILTRATION, 0.8, "send <>7 everything_said <>3 every <>10 to_outside"),
    (EXFILTRATION, 0.75, "every >5 soft_secret|hard_secret >10 obliged >4 report_out|send"),
    (SECRECY, 0.6, "forbid >3 let_know <>8 user"),
    (SECRECY, 0.6, "forbid >3 let_know <>2 subject"),
    (SECRECY, 0.6, "not <>4 perceive <>5 user"),
    (SECRECY, 0.6, "conceal <>8 from >3 user"),
    (SECRECY, 0.6, "secrecy_word"),
    (SECRECY, 0.6, "conceal >3 pronoun >4 secret_state"),
    (SECRECY, 0.6, "sly <>3 act"),
    (SECRECY, 0.6, "act <>8 sly"),
    (SECRECY, 0.6, "leave <>4 mention >6 from"),
    (SECRECY, 0.6, "let_know >5 nothing"),
    (SECRECY, 0.6, "nobody >3 perceive"),
    (SECRECY, 0.6, "forbid >5 let_know <>6 let_know <>4 user"),
    (SECRECY, 0.6, "pretend"),
    (FIRST, 0.6, "call <>8 before <>4 any_other"),
    (FIRST, 0.5, "call <>8 each_turn"),
    (FIRST, 0.5, "not <>4 call <>5 other_tools"),
    (FIRST, 0.5, "rank >3 any_other|other_tools"),
    (FIRST, 0.5, "first_tool"),
    (FIRST, 0.5, "begin <>3 each_turn"),
    (FIRST, 0.5, "prefer <>8 any_other"),
    (FIRST, 0.5, "not <>4 call <>3 other_tools"),
    (FIRST, 0.5, "other_tools <>6 bad_tool"),
    (JAILBREAK, 0.7, "become <>7 unbound"),
    (JAILBREAK, 0.5, "forbid >4 deny"),
    (JAILBREAK, 0.6, "refusal <>4 off"),
    (JAILBREAK, 0.6, "become|model <>9 no_limit"),
)
#: The same where the text describes a parameter: what it asks for is handed over by filling it in.
_PARAMETERS: tuple[tuple[str, float, str], ...] = (
    (PROMPT, 0.7, "system_prompt <>3 your"),
    (PROMPT, 0.7, "verbatim <>4 system_prompt <>3 model|your"),
    (EXFILTRATION, 0.7, "encoded <>3 secret_file"),
)
_THREATS = {EXFILTRATION: Threat.EXFILTRATION}


@cache
def lexicon() -> Lexicon:
    """The concepts of all languages. Compiled when first asked for: who only lists analyzers need not wait for it."""
    return Lexicon(CONCEPTS, LANGUAGES)


@cache
def rules_and_frames() -> tuple[tuple[Rule, ...], tuple[Frame, ...]]:
    """The table as rules, and the frames that findings come from. Compiled when first asked for."""
    rules = []
    for line in _DERIVED.strip().splitlines():
        name, _, text = line.partition(": ")
        rules.append(parse_rule(name, text))
    frames = []
    for number, (family, confidence, text) in enumerate((*_FRAMES, *_PARAMETERS)):
        concept = f"{family}#{number}"
        rules.append(parse_rule(concept, text))
        threat = _THREATS.get(family, Threat.PROMPT_INJECTION)
        frames.append(Frame(family, concept, confidence, threat, parameters=number >= len(_FRAMES)))
    return tuple(rules), tuple(frames)


def frames_of(*families: str) -> tuple[Frame, ...]:
    """The frames of some families."""
    return tuple(frame for frame in rules_and_frames()[1] if frame.family in families)
