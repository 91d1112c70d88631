"""The chain of evidence of a confirmed finding in words: what was crossed, then call, syscall and state of each try."""

from __future__ import annotations

from collections.abc import Iterator

from harness.model.finding import Evidence, Finding
from harness.report.escape import one_line, visible
from harness.report.phrasing import quoted

WORDS = {
    "boundary": "boundary",
    "control": "control",
    "documented": "documented use",
    "minimal": "smallest payload",
}
#: What follows from a call, drawn under it.
STEPS = ("syscall", "egress", "result", "answer", "state")
_TEXT = 160


def chain(finding: Finding) -> Iterator[str]:
    """One line a link, in the order of the proof; safe to print. Ends with what the confirmation says of itself."""
    for evidence in finding.evidence:
        event = f" (event {evidence.seq})" if evidence.seq is not None else ""
        yield f"{_lead(evidence)}{event}: {quoted(evidence.text, _TEXT)}"
    confirmation = finding.confirmation
    if confirmation is not None:
        mode = f", network mode {visible(confirmation.network)}" if confirmation.network else ""
        yield (
            f"confirmed {len(confirmation.nonces)} times with payload {visible(confirmation.payload)}{mode}; "
            f"{one_line(confirmation.control)}"
        )


def _lead(evidence: Evidence) -> str:
    if evidence.kind in STEPS:
        return f"-> {evidence.kind}"
    word = WORDS.get(evidence.kind, visible(evidence.kind))
    return f"{word} {visible(evidence.call)}" if evidence.call else word


def links(finding: Finding, kinds: tuple[str, ...] = ("call", "syscall", "egress", "result", "state")) -> Iterator[str]:
    """The links of the first try only, for where there is little room."""
    first = next((evidence.call for evidence in finding.evidence if evidence.kind == "call"), None)
    for evidence in finding.evidence:
        if evidence.call == first and evidence.kind in kinds:
            event = f" {evidence.seq}" if evidence.seq is not None else ""
            yield f"{evidence.kind}{event}: {quoted(evidence.text, 120)}"
