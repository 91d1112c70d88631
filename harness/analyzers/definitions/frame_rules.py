"""The frames: which concepts near each other make an order against the user (frames.py has the notation)."""

from __future__ import annotations

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
owner: your|maker
rules: orders <>3 owner
rules: orders >6 told
rules: orders_core <>2 earlier >3 told
earlier_rules: orders_core <>2 earlier
model_rules: orders <>3 model
model_earlier: model_rules <>3 earlier
cancel: cancel_strong|cancel_loose
guards: guard_kind >1 orders
system_rules: system_word >1 orders_core
cancel_it: cancel >1 this
any_rules: rules|earlier_rules|model_rules|guards
unfollow: not >3 obey
unbinding: not >3 not_bind
secret: hard_secret
secret: soft_secret <>4 whose
secret: soft_secret <>3 user
send: transfer_strong
to_outside: address|drop_box|number
obliged: must >3 be
tool_secret: collect <>8 hard_secret|secret
pronoun: this|content
"""

#: Family, confidence, rule.
_FRAMES: tuple[tuple[str, float, str], ...] = (
    (OVERRIDE, 0.9, "cancel <>7 rules"),
    (OVERRIDE, 0.85, "cancel_strong <>4 earlier_rules"),
    (OVERRIDE, 0.85, "cancel <>6 model_earlier"),
    (OVERRIDE, 0.8, "ignore_words <>4 system_rules"),
    (OVERRIDE, 0.85, "cancel_strong <>4 guards"),
    (OVERRIDE, 0.5, "cancel_loose <>4 guards"),
    (OVERRIDE, 0.8, "any_rules >>16 cancel_it"),
    (OVERRIDE, 0.8, "cancel_strong <>4 model_rules"),
    (OVERRIDE, 0.8, "cancel >5 told"),
    (OVERRIDE, 0.85, "unfollow >5 rules|earlier_rules|told|model_rules"),
    (OVERRIDE, 0.85, "unbinding <>7 rules|earlier_rules|model_rules"),
    (OVERRIDE, 0.8, "unbinding <>4 orders >4 you"),
    (OVERRIDE, 0.7, "orders_core >8 unbinding >3 you"),
    (OVERRIDE, 0.8, "comply <>9 refused"),
    (OVERRIDE, 0.65, "new_orders"),
    (PROMPT, 0.9, "reveal <>7 system_prompt <>3 your"),
    (PROMPT, 0.85, "reveal_strong <>6 system_prompt"),
    (PROMPT, 0.85, "reveal <>6 system_prompt <>6 verbatim|carrier"),
    (PROMPT, 0.85, "reveal >6 prompt_words >6 set_for_you"),
    (PROMPT, 0.8, "reveal >4 text_above <>8 verbatim|carrier|your"),
    (EXFILTRATION, 0.9, "send <>9 hard_secret <>12 to_outside !authenticates"),
    (EXFILTRATION, 0.85, "send <>9 secret <>12 to_outside !authenticates"),
    (EXFILTRATION, 0.85, "transfer <>7 secret <>10 address !authenticates"),
    (EXFILTRATION, 0.85, "transfer|send <>7 hard_secret <>8 carrier !authenticates"),
    (EXFILTRATION, 0.9, "collect <>8 secret >>18 transfer|send >4 pronoun <>8 to_outside|carrier !authenticates"),
    (EXFILTRATION, 0.85, "transfer|send <>2 content <>4 hard_secret"),
    (EXFILTRATION, 0.85, "steal >3 secret|soft_secret"),
    (EXFILTRATION, 0.8, "swap <>5 payee <>5 number|address"),
    (EXFILTRATION, 0.8, "send <>4 everything_said <>3 every <>10 to_outside"),
    (EXFILTRATION, 0.75, "every >5 soft_secret|hard_secret >10 obliged >4 report_out|send"),
    (SECRECY, 0.6, "forbid >3 let_know <>8 user"),
    (SECRECY, 0.6, "forbid >3 let_know <>2 subject"),
    (SECRECY, 0.6, "not <>4 perceive <>5 user"),
    (SECRECY, 0.6, "conceal <>8 from >3 user"),
    (SECRECY, 0.6, "secrecy_word"),
    (SECRECY, 0.6, "conceal >3 pronoun >4 secret_state"),
    (SECRECY, 0.6, "sly <>3 act"),
    (SECRECY, 0.6, "act <>8 sly"),
    (SECRECY, 0.6, "pretend"),
    (FIRST, 0.6, "call <>8 before <>4 any_other"),
    (FIRST, 0.5, "call <>8 each_turn"),
    (FIRST, 0.5, "begin <>3 each_turn"),
    (FIRST, 0.5, "prefer <>8 any_other"),
    (FIRST, 0.5, "not <>4 call <>3 other_tools"),
    (FIRST, 0.5, "other_tools <>6 bad_tool"),
    (JAILBREAK, 0.7, "become <>7 unbound"),
    (JAILBREAK, 0.6, "become|model <>9 no_limit"),
)
_THREATS = {EXFILTRATION: Threat.EXFILTRATION}


def _read() -> tuple[tuple[Rule, ...], tuple[Frame, ...]]:
    rules = []
    for line in _DERIVED.strip().splitlines():
        name, _, text = line.partition(": ")
        rules.append(parse_rule(name, text))
    frames = []
    for number, (family, confidence, text) in enumerate(_FRAMES):
        concept = f"{family}#{number}"
        rules.append(parse_rule(concept, text))
        frames.append(Frame(family, concept, confidence, _THREATS.get(family, Threat.PROMPT_INJECTION)))
    return tuple(rules), tuple(frames)


LEXICON = Lexicon(CONCEPTS, LANGUAGES)
RULES, FRAMES = _read()
