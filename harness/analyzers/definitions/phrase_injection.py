"""`phrase.injection`: orders to drop instructions or guardrails, to hand over secrets, or to tell the system prompt.

Hard at a confidence of 0.6 or more after the discount of its position, else soft (tool-definitions.md).
"""

from __future__ import annotations

import re
from functools import cache

from harness.analyzers.base import Rule
from harness.analyzers.definitions.check import Hit, Match, Phrase, match_frames, match_phrases, strongest
from harness.analyzers.definitions.frame_rules import EXFILTRATION, OVERRIDE, PROMPT, frames_of
from harness.analyzers.definitions.phrases import compile_phrase
from harness.analyzers.definitions.view import ItemView, RegistryView
from harness.analyzers.definitions.vocabulary import VOCABULARY
from harness.analyzers.evidence import EVIDENCE_CHARS, render_safe
from harness.model.finding import Signal, Threat, Tier

HARD_FLOOR = 0.6
SOFT_CONFIDENCE = 0.3


#: Where the verb comes first, its third person describes what the tool does itself.
_VERB_FIRST: tuple[tuple[str, float, str], ...] = (
    (OVERRIDE, 0.9, "{drop} ~4 {earlier} ~3 {orders}"),
    (OVERRIDE, 0.9, "{drop} ~2 {all} ~2 {firm_orders}"),
    (OVERRIDE, 0.8, "{drop} ~2 {all} ~3 {earlier} ~2 {loose}"),
    (
        OVERRIDE,
        0.85,
        "override/overrule/supersede ~2 previous/prior/earlier/above ~2 instruction/guideline/directive/prompt",
    ),
    (OVERRIDE, 0.8, "{drop} ~1 {told}"),
    (
        OVERRIDE,
        0.8,
        "{drop}/drop ~2 {plain_orders} ~3 above/before/previously/earlier/you_were_given/you_received/you_have",
    ),
    (OVERRIDE, 0.8, "{drop} ~1 user/users/humans ~1 request/question/wishes/intent"),
    (OVERRIDE, 0.9, "{bypass} ~3 {guards}"),
    (OVERRIDE, 0.9, "{strong_bypass} ~3 {filters}"),
    (OVERRIDE, 0.7, "bypass/circumvent/skip/suppress ~2 user/human ~1 consent/confirmation/approval/permission"),
    (PROMPT, 0.9, "{tell} ~4 {owned} ~2 {system_prompt}"),
    (OVERRIDE, 0.8, "prioritize/prioritise/prefer/obey/follow ~4 over ~2 {system_prompt}"),
    (PROMPT, 0.85, "{tell} ~2 exact/precise/literal wording/text/words of ~2 {system_prompt}"),
    (PROMPT, 0.85, "{spill} ~4 {system_prompt}"),
    (PROMPT, 0.85, "{tell} ~4 {system_prompt} ~3 verbatim/word_for_word/exactly_as/in_full"),
    (PROMPT, 0.8, "{tell} ~3 {text_above} ~3 above/before_this !"),
    (PROMPT, 0.8, "{tell} ~3 {text_above} ~3 you_were_given/verbatim/given_to_you/above_this/above_exactly"),
    (EXFILTRATION, 0.9, "{steal} ~3 {secrets}"),
    (EXFILTRATION, 0.8, "exfiltrate/siphon/smuggle ~5 data/file/content/information/code/message/document"),
    (EXFILTRATION, 0.8, "{sly} ~1 {sly_act} ~6 {secrets}"),
    (EXFILTRATION, 0.65, "set/fill ~4 parameter/param/field/argument ~6 user/users ~2 {secrets}"),
    (EXFILTRATION, 0.8, "print/take/dump/read ~4 {content} ~5 {files} ~8 {parameter}"),
    (EXFILTRATION, 0.9, "{upload} ~6 {strong_secrets} ~6 {into}/at/along"),
    (EXFILTRATION, 0.8, "{carry} ~4 {found} ~4 {loose_secrets}"),
    (EXFILTRATION, 0.8, "{send} ~5 {secrets} ~5 {to} ~4 {url}/{drop_box}/{mail_address}"),
    (EXFILTRATION, 0.8, "{hand} ~4 {content} ~5 {files}"),
    (EXFILTRATION, 0.8, "curl/wget/netcat/nc ~10 {files}"),
    (EXFILTRATION, 0.65, "{hand} ~2 {whole_history} ~8 {parameter}"),
    (EXFILTRATION, 0.65, "{read} ~6 file/{file_name} ^8 {pass_on} ~1 its/the content/contents ~3 {parameter}"),
    (
        EXFILTRATION,
        0.65,
        "{gather} ~6 {login} ^10 {pass_on} ~2 {its} ~4 {parameter}",
    ),
    (
        EXFILTRATION,
        0.8,
        "{steal}/{carry} ~3 {talk} ~3 {to} ~2 {url}/{drop_box}/{mail_address}",
    ),
    (
        EXFILTRATION,
        0.7,
        "{read} ~3 {kept} ^10 {pass_on}/hand ~2 {its}",
    ),
    (EXFILTRATION, 0.7, "{read} ~1 user/users ~3 password/passwords/credentials/private_key ^10 {pass_on} ~2 {its}"),
    (EXFILTRATION, 0.7, "{upload}/redirect/route ~1 all/every/any email/mail/message ~6 {mail_address}"),
    (EXFILTRATION, 0.9, "{take_out} ~6 {files}/{keys} ^16 {hand} ~2 {its} ~4 {parameter}"),
    (EXFILTRATION, 0.9, "{take_out} ~6 {files}/{keys} ^16 {hand} ~2 {its} ~4 {to} ~3 {external}"),
)
_NOUN_FIRST: tuple[tuple[str, float, str], ...] = (
    (OVERRIDE, 0.85, "instruction/directive/rules/guideline/message/description/prompt ~4 {supersede} ~3 {orders}"),
    (OVERRIDE, 0.9, "{earlier} ~2 {plain_orders} ~3 be ignored/disregarded/overridden/discarded/forgotten"),
    (
        OVERRIDE,
        0.9,
        "{earlier} ~2 {plain_orders} ~3 are void/cancelled/invalid/obsolete/revoked/superseded/overridden/null",
    ),
    (OVERRIDE, 0.9, "{earlier} ~2 {plain_orders} ~3 no longer apply/valid"),
    (
        OVERRIDE,
        0.8,
        "do_not/stop/cease/never/instead_of/rather_than follow/obey/comply_with/adhere_to ~3 {whose} ~2 {orders}",
    ),
    (OVERRIDE, 0.8, "do_not/never follow/obey/apply ~3 safety/ethical/security ~1 guideline/rules/instruction/policy"),
    (OVERRIDE, 0.8, "no longer ~3 follow/obey/adhere_to/comply_with ~3 {plain_orders}"),
    (OVERRIDE, 0.8, "instruction/rules ~3 override/supersede ~1 anything/everything/whatever ~1 user/system/developer"),
    (PROMPT, 0.85, "assistant/model/ai/llm/agent must/should/shall/will {tell} ~2 its ~1 {system_prompt}"),
    (OVERRIDE, 0.8, "your ~2 {orders}/training/safety ~2 does/do not apply"),
    (OVERRIDE, 0.8, "system/developer/user told you ~3 no_longer/not valid/apply/count/matter"),
    (OVERRIDE, 0.8, "your ~1 new {orders}/task/goal/role/objective/purpose/system_prompt/identity is/are"),
    (
        OVERRIDE,
        0.8,
        "you_are/consider_yourself no/not longer? ~2 bound_by/restricted_by/limited_by/subject_to ~3 {orders}",
    ),
    (EXFILTRATION, 0.9, "{secrets} ^14 {carry} ~2 {its} ~5 {to} ~4 {external}"),
    (EXFILTRATION, 0.9, "{secrets}/password ^14 email/mail it/them/everything ~3 to ~3 {mail_address}"),
    (EXFILTRATION, 0.8, "{files} ~8 curl/wget/netcat/nc ~6 {url}/{host}"),
    (EXFILTRATION, 0.8, "{secrets} ~6 must/should/shall/always/to be {sent} ~3 {to} ~4 {external}"),
    (EXFILTRATION, 0.8, "always/must/every/also/{sly} ~6 bcc/blind_copy/cc/forward/redirect ~8 {mail_address}"),
    (
        EXFILTRATION,
        0.7,
        "when/whenever/if/before/after/for ~3 {tool} ~8 always/must/only/every ~1 set/fill/replace/change/use/put ~5 "
        "argument/parameter/field/recipient/to/cc/bcc ~3 {mail_address}",
    ),
    (EXFILTRATION, 0.7, "bcc/blind_copy ~5 {mail_address} ~8 every/all/each/always/any"),
    (EXFILTRATION, 0.7, "{swap} ~2 {payee} ~4 to/with ~3 {mail_address}/{number}/attacker"),
)
_WORDS = VOCABULARY | {
    "login": "credentials/api_key/password/aws_key/secret_key/access_key/ssh_key",
    "kept": "saved/stored/browser ~2 password/credentials/cookie/token",
    "talk": "conversation/chat/transcript/history",
    "gather": "collect/harvest/gather/extract/dump/grab/scan/search/find/look_up/locate",
    "pass_on": "pass/include/append/attach/put/insert/embed/provide/supply/place/paste/send/submit",
    "file_name": "re:[^ .]+ dot (?:txt|json|md|yaml|yml|toml|ini|cfg|conf|pem|key|log|csv|db|env)",
    "swap": "change/replace/set/swap/substitute",
    "payee": "recipient/destination/payee/phone_number/account_number/wallet_address/beneficiary",
}

#: The override family in other languages, over unstemmed words without accents: verb, gap, orders, which.
_ELSEWHERE: tuple[tuple[str, str, str], ...] = (
    (
        r"ignor[aeo]\w*|olvid[ae]\w*|descart[ae]\w*|omit[ae]\w*",
        "instrucciones|indicaciones|directrices|reglas|ordenes",
        "anteriores|previas|del sistema",
    ),
    (r"ignor[aeo]\w*|esquec\w*|desconsider\w*", "instrucoes|ordens|regras|diretrizes", "anteriores|previas|acima"),
    (
        "ignore[rz]?|oublie[rz]?|neglige[rz]?",
        "instructions|consignes|directives|regles",
        "precedentes|anterieures|ci dessus",
    ),
    (
        r"ignorier\w*|vergiss|vergesst|vergessen|missacht\w*",
        "(?:vorherig|bisherig|vorig|obig|fruher|vorangegangen)en?",
        "anweisungen|instruktionen|befehle|regeln|vorgaben",
    ),
    (r"ignora\w*|dimentica\w*", "istruzioni|regole|direttive|indicazioni", "precedenti|anteriori"),
    (r"ignora\w*|dimentica\w*", "precedenti", "istruzioni|regole|direttive"),
    (r"игнориру\w*|забудь\w*", r"предыдущ\w+|прежн\w+|прошл\w+|системн\w+", r"инструкци\w+|указани\w+|правил\w*"),
)
_WITHOUT_SPACES: tuple[str, ...] = (
    "(?:忽略|无视|無視|忘记|忘記|不要理会|绕过|丢弃)[^。.]{0,12}(?:指令|指示|说明|說明|提示词|提示|规则|規則|命令)",
    "(?:以前|前|上記|これまで|すべて|全て|先ほど)の?[^。.]{0,8}(?:指示|命令|プロンプト|ルール)[^。.]{0,4}(?:無視|忘れ)",
    "(?:이전|앞선|모든|위의)[^.]{0,10}(?:지시|명령|지침|프롬프트)[^.]{0,8}(?:무시|잊)",
    "تجاهل[^.]{0,24}(?:التعليمات|الأوامر|الإرشادات)",
)


@cache
def catalog() -> tuple[Phrase, ...]:
    """The phrases, compiled when first asked for."""
    phrases: list[Phrase] = []
    for rows, verb_first in ((_VERB_FIRST, True), (_NOUN_FIRST, False)):
        for family, confidence, text in rows:
            threat = Threat.EXFILTRATION if family == EXFILTRATION else Threat.PROMPT_INJECTION
            phrases.append(Phrase(family, compile_phrase(text, _WORDS), confidence, threat, names_own_act=verb_first))
    for verb, noun, which in _ELSEWHERE:
        pattern = rf"\b(?:{verb}) (?:[^ .]+ ){{0,4}}(?:{noun}) (?:[^ .]+ )?(?:{which})\b"
        phrases.append(Phrase(OVERRIDE, re.compile(pattern), 0.85, stemmed=False))
    phrases.extend(Phrase(OVERRIDE, re.compile(pattern), 0.85, stemmed=False) for pattern in _WITHOUT_SPACES)
    return tuple(phrases)


class PhraseInjection:
    """At most one signal for each family of phrases and item."""

    rule = Rule(id="phrase.injection", title="Instructions to the model that override, leak or exfiltrate")

    def inspect(self, item: ItemView, registry: RegistryView) -> tuple[Hit, ...]:
        """Match every text of the item."""
        frames = frames_of(OVERRIDE, PROMPT, EXFILTRATION)
        return tuple(
            self._hit(match) for match in strongest(match_phrases(item, catalog()), match_frames(item, frames))
        )

    def _hit(self, match: Match) -> Hit:
        hard = match.confidence >= HARD_FLOOR
        signal = Signal(
            check=self.rule.id,
            tier=Tier.HARD if hard else Tier.SOFT,
            position=match.position,
            confidence=match.confidence if hard else SOFT_CONFIDENCE,
            evidence=render_safe(f"{match.family}: {match.excerpt}", EVIDENCE_CHARS),
        )
        return Hit(signal, f"{self.rule.id}:{match.family}:{match.words}", match.threat, match.path)
