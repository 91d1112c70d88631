"""A life with an interface of its own: what is done there alone is told, and its benign twins stay silent."""

from __future__ import annotations

import pytest
from flow_sample import Net, behind, rules

from harness.analyzers.behavior import apart
from harness.analyzers.behavior.apart import LIFE, shows_network
from harness.model.finding import Severity
from harness.model.recording import LookEvent, RecorderEndEvent, SyscallEvent

RULE = "behavior.evasion.otherwise-unwatched"


def lives(first: str, second: str) -> Net:
    """What it does in the life that shares a namespace, and in that with an interface of its own."""
    net = behind()
    for name, does in (("main", first), (LIFE, second)):
        if name == LIFE:
            net.closed()
            net.session, net.phase = LIFE, "start"
            net.begin()
        for word in does.split():
            kind, _, what = word.partition(":")
            if kind == "post":
                net.post(what, b"{}")
            elif kind == "ask":
                net.ask_name(what)
            elif kind == "run":
                net.spawn(20 + len(net.events), what, what)
            elif kind == "decoy":
                net.flow("", b"x", address="127.0.0.1", port=80, decoy=what)
    return net.closed()


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ("", "post:x.test", ["host"]),
        ("post:a.test", "post:a.test ask:b.test run:/usr/bin/id", ["host", "program"]),
        ("post:a.test run:/usr/bin/id", "post:a.test run:/usr/bin/id", []),
        ("post:a.test", "", []),
        ("", "decoy:private", []),
        ("ask:a.test", "post:a.test", []),
    ],
)
def test_what_is_done_in_that_life_alone_is_told(first: str, second: str, told: list[str]) -> None:
    result = lives(first, second).judge("behavior.evasion")
    found = [finding for finding in result.findings if finding.rule_id == RULE]
    assert len(found) == len(told) and all(finding.severity is Severity.MEDIUM for finding in found)


@pytest.mark.parametrize("changed", [True, False])
def test_other_declarations_there_are_told(changed: bool) -> None:
    net = lives("", "")
    net.told(LookEvent(phase="discover", session=LIFE, look=LIFE, changed=changed))
    assert rules(net.judge("behavior.evasion")) == ({RULE: "MEDIUM"} if changed else {})


def test_past_the_bound_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "MAX_KNOWN", 2)
    assert rules(lives("ask:a.test ask:b.test ask:c.test", "ask:d.test").judge("behavior.evasion")) == {}


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/proc/7/net/tcp", True), ("/proc/net/packet", True), ("/proc/7/task/9/net/unix", True),
        ("/sys/class/net", True), ("/sys/devices/virtual/net/lo/address", True), ("/proc/self/net/dev", True),
        ("/proc/7/status", False), ("/proc/sys/net/core/somaxconn", False), ("/home/user/net/tcp", False),
        ("/proc/networks", False), ("/sys/class/netdevs", False), (None, False),
    ],
)  # fmt: skip
def test_which_looks_ask_for_it(path: str | None, wanted: bool) -> None:
    fields = {"phase": "start", "pid": 7, "tid": 7, "parent": 1, "record": 1, "call": "openat", "result": 3}
    event = SyscallEvent.model_validate({**fields, "path": path})
    assert shows_network(event) is wanted
    assert not shows_network(event.model_copy(update={"session": LIFE}))
    assert not shows_network(RecorderEndEvent(phase="stop"))
