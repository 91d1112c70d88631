"""Tags and banners by their form: text set apart for a model, not for a reader. Every repetition is bounded."""

from __future__ import annotations

import re

#: Words that a tag or a banner for the model, not for a reader, is named after.
_FOR_MODELS = (
    r"system|important|hidden|secret|critical|admin|override|mandatory|invisible|assistant|llm|agent|model|ai|internal|"
    r"developer|directives?|instructions?|imperative|urgent|confidential|root|jailbreak|policy"
)
_ADDS = r"(?:prompt|message|instructions?|rules?|notes?|notice|override|command|directive|task|context|policy|info)"
TAG_PATTERN = re.compile(
    rf"(?<!\w)<\s{{0,4}}/?\s{{0,4}}(?:{_FOR_MODELS})(?:[-_ ]{_ADDS}){{0,2}}(?:\s[^<>]{{0,60}})?>"
    rf"|(?<!\w)<\s{{0,4}}\w{{1,20}}[-_](?:for|to)[-_](?:{_FOR_MODELS})\w{{0,4}}>"
    r"|<\w{1,12}\s[^<>]{0,40}(?:\b(?:to|for|role)\s?=\s?[\"']?(?:model|assistant|ai|llm|agent|system)"
    r"|display:\s?none|\bhidden\b)"
    r"|(?-i:[\[({]{1,2}[#%]?\s{0,2}/?(?:SYSTEM|INST|ADMIN|OVERRIDE|HIDDEN|System|ROOT|AI|LLM|ASSISTANT|DEVELOPER)"
    r"(?:[ _-](?:MESSAGE|PROMPT|NOTE|INSTRUCTIONS?|OVERRIDE|COMMAND|ONLY)){0,2}\s{0,2}[:\])}])"
    r"|\[/(?:hidden|system|inst|secret|admin)\]|\{\{[#/~]\s?(?:system|assistant|user)\b"
    r"|%%\s?(?:system|admin|hidden|secret)\b"
    r"|<\|(?:im_start|im_end|system|endoftext|assistant|user|start_header_id|eot_id)\|>"
    r"|\b(?:system|admin|developer)[ _-]override\s{0,2}[:!\]]|\bimportant system (?:instruction|message|note)s?\b"
    rf"|(?-i:\b(?:BEGIN|START|END)[ _](?:OF[ _])?(?:SYSTEM|HIDDEN|SECRET|ADMIN|INTERNAL|MODEL|AI)\b)"
    r"|(?<![-=*_~])[-=*_~]{3,40}\s{0,2}(?:system|hidden|admin|developer)\b"
    r"|/\*\s{0,2}(?:system|assistant|ai|llm|model|agent)\s?:"
    r"|\b(?:human|user)\s?:[^\n]{1,200}\bassistant\s?:"
    r"|<!--(?!\s{0,4}-->)|#{2,4}\s{0,4}(?:(?:system|hidden)[ :]{1,2}(?:prompt|message|instructions?|override)"
    r"|instruction:)"
    r"|<<sys>>",
    re.IGNORECASE,
)
#: What stands before a tag that is only spoken about.
SPOKEN_OF = re.compile(
    r"(?:[`\"'\u201c(]|such as |like |e\.g\. |tags? |named |called |the |detects? |strips? |removes? )\s{0,2}$",
    re.IGNORECASE,
)
