"""What tools do by design: commands in a folder, with and without a list, a setting or words that confine them."""

from __future__ import annotations

import pytest

from harness.model.call import Purpose
from harness.model.finding import EvidenceLevel
from harness.model.payload import Boundary, BoundaryKind, PayloadClass
from tests.unit.probing.oracle.tape import NONCES, ROOT, ROOTED, Tape, call, disclosed

LIST = Boundary(kind=BoundaryKind.ALLOWLIST, source="configuration", value="cat ls")
FOREIGN = LIST.model_copy(update={"tool": "another"})
CONFINED = Boundary(kind=BoundaryKind.ROOT, source="configuration", value=ROOT, text=f"ALLOWED_DIR={ROOT}")
SAID = Boundary(kind=BoundaryKind.ROOT, source="description", value=ROOT, text="inside the workspace", tool="show")


@pytest.mark.parametrize(
    ("boundary", "others", "confirmed"),
    [
        (ROOTED, (), False),
        (ROOTED, (FOREIGN,), False),
        (ROOTED, (LIST,), True),
        (CONFINED, (), True),
        (SAID, (), True),
    ],
)
def test_a_shell_leaves_its_folder_by_design_unless_it_is_confined(
    boundary: Boundary, others: tuple[Boundary, ...], confirmed: bool
) -> None:
    tape = Tape()
    tape.start("main", "w1")
    tape.boundaries(boundary, *others)
    for number, (name, purpose, session) in enumerate(
        (
            ("c1", Purpose.PAYLOAD, ""),
            ("c2", Purpose.CONTROL, ""),
            ("c3", Purpose.DOCUMENTED, ""),
            ("c4", Purpose.CONFIRM, "again-1"),
            ("c5", Purpose.CONFIRM, "again-2"),
        )
    ):
        if session:
            tape.start(session, f"w{number}")
        secret = tape.here.items[1].secret
        quiet = purpose in (Purpose.CONTROL, Purpose.DOCUMENTED)
        one = call(
            name,
            purpose,
            {"command": "cat notes.txt" if quiet else "cat ../private/account.txt"},
            disclosed(secret),
            nonce=NONCES[number],
            here=tape.here,
            kind=PayloadClass.ALLOWLIST_BYPASS,
            boundary=boundary,
            about="" if name == "c1" else "c1",
            payload="allowlist-bypass/cat",
        )
        tape.call(one, text="" if quiet else secret)
    (finding,) = tape.judge().findings
    assert (finding.evidence_level is EvidenceLevel.CONFIRMED) is confirmed
    assert confirmed or finding.rule_id == "capability.commands"


def test_a_capability_is_not_told_beside_a_fault_of_the_same_argument() -> None:
    tape = Tape()
    tape.start("main", "w1")
    tape.boundaries(ROOTED)
    secret = tape.here.items[1].secret
    for name, kind, nonce in (
        ("c1", PayloadClass.ALLOWLIST_BYPASS, NONCES[0]),
        ("c2", PayloadClass.TRAVERSAL_READ, NONCES[1]),
    ):
        one = call(
            name,
            Purpose.PAYLOAD,
            {"name": ".."},
            disclosed(secret),
            nonce=nonce,
            here=tape.here,
            kind=kind,
            boundary=ROOTED,
        )
        tape.call(one, text=secret)
    assert [finding.rule_id for finding in tape.judge().findings] == ["traversal.read"]
