"""The word lists that phrases are made of (see phrases.py for the notation; `re:` begins a pattern over tokens).

A dot inside a name is the token `dot`, so `~/.ssh/id_rsa` reads `~ / dot ssh / id rsa`.
"""

from __future__ import annotations

VOCABULARY: dict[str, str] = {
    # Dropping instructions.
    "drop": "ignore/disregard/forget/neglect/discard/abandon/overlook/set_aside/ignoring/disregarding",
    "earlier": "previous/previously/prior/preceding/above/earlier/foregoing/existing/original/initial/your/system/"
    "developer/past/former/current/other/user/safety",
    "orders": "instruction/guideline/directive/prompt/guardrail/restriction/constraint/policy/safeguard/programming/"
    "directions/rules/guidance",
    "firm_orders": "instruction/guideline/directive/guardrail/safeguard/restriction",
    "plain_orders": "instruction/guideline/directive/rules/prompt/guidance",
    "all": "all/any/every/everything/entire/whole",
    "loose": "message/context/conversation/text/training/command/input/content/request",
    "told": "everything/anything/all/whatever/what that? above/before_this/you_were/you_have_been/you_know/"
    "you_are_told/"
    "said_before",
    "bypass": "bypass/override/circumvent/disable/evade/deactivate/violate/break/lift/suspend/remove/turn_off/"
    "switch_off/"
    "work_around/get_around/ignore/disregard/skip/drop/unlock",
    "strong_bypass": "bypass/override/circumvent/evade/violate/break/ignore/disregard/work_around/get_around",
    "filters": "content_filter/content_policy/content_moderation",
    "guards": "guardrails/security_guideline/security_instruction\n"
    "safety guideline/filter/protocol/training/restriction/policy/instruction/rules/mechanism/measures/safeguards/"
    "constraints/controls\n"
    "ethical/moral guideline/constraint/rules/boundaries\n"
    "your ~2 restriction/programming/training/instruction/guideline/rules/limits/limitations/safety/policy/constraint/"
    "filter/safeguard/system_prompt/ethics",
    "supersede": "override/supersede/overrule/outrank/trump over? ~3 {whose}\n"
    "take/have/with ~2 precedence/priority over? ~3 {whose}",
    "whose": "all/any/previous/prior/other/system/user/earlier/existing/your/above/every",
    # The system prompt.
    "system_prompt": "system/developer prompt/instruction/message\n"
    "initial/original/hidden/secret/internal/confidential/starting/configured prompt/instruction",
    "owned": "your/your_own/the_assistant/assistants/the_model/the_ai/the_agent/hidden/secret",
    "tell": "print/output/show/display/return/tell/give/share/include/quote/paste/extract/write/provide/list/send/copy/"
    "translate/summarize/state/append/what_is/what_are/what_were/reveal/disclose/leak/dump/expose/recite/repeat/echo/"
    "put/pass/add/"
    "place/insert",
    "spill": "reveal/disclose/leak/dump/expose/recite/repeat/echo/spill/divulge",
    "text_above": "everything/all_text/the_text/all_the_text/the_words/all_content/the_instructions/your_instructions",
    # Secrets.
    "files": r"re:dot ssh|id rsa|id ed25519|id ecdsa|dot aw|dot env|dot netrc|dot npmrc|dot pypirc|dot kube|dot gnupg|"
    r"dot docker|dot cursor|dot git credenti|dot bash histori|dot zsh histori|dot vault token|mcp dot json|"
    r"wallet dot dat|claud desktop config|/ etc / (?:passwd|shadow)|credenti dot json|login keychain|keychain db|"
    r"secret dot (?:json|yaml|yml|toml|txt|env)|dot config / gcloud|dot password store",
    "keys": "private_key/private_keys/ssh_key/ssh_keys/seed_phrase/recovery_phrase/mnemonic/wallet_key",
    "environment": "environment_variables/env_variables/env_vars/environment_secrets",
    "history": "conversation/chat/message/dialog/browsing/browser history/log/transcript\n"
    "entire/full/whole/complete/previous/prior/user ~1 conversation/chat",
    "whole_history": "entire/full/whole/complete/all/users ~2 conversation/chat/history/transcript",
    "loose_secrets": "credentials/api_key/api_keys/access_token/auth_token/session_token/secret/secrets/cookie/"
    "session_cookie/bearer_token/access_key/secret_key/token/tokens/login\n"
    "{password}",
    "password": "re:password(?! reset| chang| polic| hash| manag)",
    "strong_secrets": "{files}/{keys}/{environment}/{history}/{system_prompt}",
    "secrets": "{strong_secrets}/{loose_secrets}",
    "found": "all/any/every/users/found/stored/local/available/saved/victim/discovered",
    # Moving things out.
    "steal": "exfiltrate/leak/steal/harvest/siphon/smuggle",
    "upload": "send/upload/transmit/forward/post/submit/email/deliver/relay/ship/dispatch/mail/beacon",
    "send": "{upload}/push/copy/report/share/exfiltrate/leak/put/append/encode/write/curl",
    "carry": "send/upload/transmit/forward/post/submit/deliver/relay/ship/dispatch/exfiltrate/leak",
    "sent": "sent/posted/uploaded/forwarded/transmitted/submitted/emailed/delivered/copied/exfiltrated/leaked/mailed/"
    "relayed",
    "hand": "{upload}/pass/include/append/attach/add/put/insert/embed/provide/supply/place/encode/copy/paste/"
    "write/return/"
    "output/give/store/share/report/use/set/fill",
    "read": "read/open/cat/load/access/fetch/get/retrieve/collect/harvest/gather/dump/extract/grab/find/list/"
    "copy/look_up/"
    "locate/obtain/scan/search/look_for/{read_tool}",
    "read_tool": "re:(?:read|open|get|load|fetch)_[a-z]+",
    "take_out": "{read}/print/take/encode/show",
    "content": "content/contents/text/value/values/data/output/copy",
    "its": "it/them/that/this/these/those/everything/contents/results/output/values\n"
    "its/their/the/each/any/all/file/found ~2 {content}/result/results/key/keys/file/credentials/secrets/"
    "token/tokens/body",
    "into": "as/in/into/to/through/via/inside/with/use",
    "parameter": "{into} ~4 parameter/param/field/argument/sidenote/context/note/notes/metadata/body/header/"
    "query/feedback/"
    "comment/scratchpad/property/payload/url/input/tool/call/request/response/message",
    "to": "to/at/via/into/onto",
    "mail_address": r"re:[^ ]+ @ [^ ]+",
    "url": r"re:https? / / [^ ]+",
    "number": r"re:[0-9]{6,}|0x[0-9a-f]+",
    "host": r"re:[^ .]+ dot (?:com|net|org|io|xyz|example|test|dev|site|ru|cn|co|me|app|cc|info|invalid)|"
    r"[0-9]+ dot [0-9]+ dot [0-9]+",
    "drop_box": "attacker/pastebin/ngrok/webhook/telegram/discord/collector",
    "external": "{url}/{mail_address}/{host}/{drop_box}/remote/external/server/endpoint/url/domain/host/slack/"
    "bucket/gist/"
    "address/channel",
    # Directives.
    "refuse": "re:(?:do|must|should|shall|will|can|may|need) not|never|without|avoid|refrain from|no need to",
    "let_know": "tell/mention/inform/notify/reveal/disclose/alert/warn/let/acknowledge/announce/telling/mentioning/"
    "informing/notifying/revealing/disclosing/alerting/admit",
    "person": "user/human/person/anyone/anybody/owner/them/client/customer",
    "this": "it !\nthis/that/these/anything/any_of_this/any_of_these/what_you/the_existence_of/the_fact",
    "call": "call/use/invoke/run/execute/trigger",
    "calling": "using/calling/invoking/running/executing",
    "tool": "tool/function",
    "this_tool": "this_{tool}",
    "any_other": r"re:(?:ani|everi|all|each) (?:of the )?(?:other )?"
    r"(?:tool|function|action|oper|request|task|step|thing)",
    "act": "read/open/cat/access/collect/gather/send/upload/copy/dump/extract/export/download/execute/run/"
    "retrieve/scan/include/pass/list/fetch/load/{read_tool}",
    "take": "read/open/cat/collect/gather/dump/extract/send/upload/copy/export",
    "thing": "file/contents/config/prompt/command/dot/~",
    "private_thing": "key/secret/credentials/conversation/history/environment/ssh/password/curl/system_prompt/id_rsa",
    "private_place": r"re:~ /|dot (?:ssh|env|aw|cursor|config)|/ etc|id rsa|mcp dot json",
    "sly": "silently/covertly/quietly/stealthily/discreetly",
    "sly_act": "read/send/collect/upload/call/run/execute/forward/copy/include/add/append/access/invoke/attach/"
    "transmit/exfiltrate/bcc/change/replace/insert",
}
