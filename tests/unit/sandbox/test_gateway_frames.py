"""What the gateway says, taken apart with bounds; and the check of its capture."""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sinkhole import setup as inner
from sinkhole.flows import Budget, Flow
from sinkhole.packets import datagram
from sinkhole.responding import Canned

from harness.model.errors import EngineError
from harness.model.network import CannedAnswer
from harness.model.world import PlantedHost
from harness.sandbox.capture_check import check
from harness.sandbox.gateway import GatewaySetup
from harness.sandbox.gateway_frames import FrameReader, encode, flow_of
from harness.sandbox.hardening import gateway_config, joined_config

OWN = frozenset({"192.168.1.24", "127.0.0.1"})


def told() -> bytes:
    flow = Flow(7, "tcp", "192.168.1.24:5", "1.2.3.4:443", Budget(1 << 20), names=("vendor.com",), began=1500)
    flow.sends(b"sent")
    flow.part("http-body", "text \udcff", b"sent")
    return flow.frame()


@given(st.integers(1, 40))
def test_a_flow_comes_through_however_it_was_cut(step: int) -> None:
    reader, data, found = FrameReader(), told(), []
    for at in range(0, len(data), step):
        found += list(reader.feed(data[at : at + step]))
    ((message, body),) = found
    seen = flow_of(message, body, session="main", phase="start", epoch=1000)
    assert seen is not None
    event, digest = seen.event, hashlib.sha256(b"sent").hexdigest()
    assert (event.flow, event.began, event.names, event.session) == (7, 500, ("vendor.com",), "main")
    assert event.outbound is not None and event.outbound.sha256 == digest and seen.blobs == {digest: b"sent"}
    assert event.parts[0].text == "text \\udcff" and event.outbound.whole
    event.model_dump_json()


@given(st.dictionaries(st.text(max_size=8), st.none() | st.integers() | st.text() | st.lists(st.text())), st.binary())
def test_what_is_no_flow_is_none(message: dict[str, Any], body: bytes) -> None:
    assert flow_of(message, body, session="main", phase="start", epoch=0) is None


def test_a_stream_that_is_none_of_the_gateways_is_refused() -> None:
    with pytest.raises(EngineError):
        list(FrameReader().feed(b"\xff" * 16))
    assert list(FrameReader().feed(struct.pack("!II", 3, 0) + b"[1]")) == [({}, b"")]


def test_planted_pages_and_canned_answers_become_rules() -> None:
    hosts = (
        PlantedHost(name="a", address="10.0.0.1:80", url="http://10.0.0.1/x", where="private", secret="s3"),
        PlantedHost(
            name="b", address="go.com:80", url="http://go.com/to", where="public", redirect="http://10.0.0.1/x"
        ),
        PlantedHost(name="c", address="www.com:80", url="http://www.com/", where="public"),
    )
    answers = (CannedAnswer(host="api.com", body="hello", headers={"x": "y"}),)
    message = GatewaySetup(seed="00" * 32, hosts=hosts, answers=answers).message()
    ((again, _),) = FrameReader().feed(encode(message))
    first, second, third = Canned.read(again["canned"]).rules
    assert first.body == b"hello" and b"s3" in second.body and third.headers == (("location", "http://10.0.0.1/x"),)


def test_the_containers_are_as_narrow_as_they_can_be() -> None:
    config = gateway_config(image="i", labels={})
    host = config["HostConfig"]
    assert host["NetworkMode"] == "none" and host["ReadonlyRootfs"] and host["CapDrop"] == ["ALL"]
    assert set(host["CapAdd"]) == {"NET_ADMIN", "NET_RAW", "SETUID", "SETGID"} and "PortBindings" not in host
    assert host["Dns"] == ["192.168.1.1"] and host["ExtraHosts"] == [f"workstation:{inner.OWN_V4}"]
    joined = joined_config(config, "gw")
    assert joined["HostConfig"]["NetworkMode"] == "container:gw" and "Hostname" not in joined


def segment(source: str, to: str, flags: int, ports: tuple[int, int] = (40000, 80)) -> bytes:
    whole = datagram((source, ports[0]), (to, ports[1]), bytes(20))
    tcp = bytearray(whole)
    tcp[9] = 6
    tcp[20 + 12], tcp[20 + 13] = 0x50, flags
    return bytes(14) + bytes(tcp)


def test_a_captured_flow_without_an_event_is_named() -> None:
    public, local = "1.2.3.4", "127.0.0.1"
    packets = [
        segment("192.168.1.24", public, 0x02),
        segment(public, "192.168.1.24", 0x12, (80, 40000)),
        segment(local, local, 0x02, (5, 6)),
        segment(local, local, 0x12, (6, 5)),
        segment(local, local, 0x02, (7, 8)),
        segment(local, local, 0x14, (8, 7)),
        b"short",
    ]
    whole = check(packets, [("tcp", "192.168.1.24:40000", "1.2.3.4:80")], OWN)
    assert whole.unmatched == ("tcp 127.0.0.1:7 to 127.0.0.1:8",) and whole.local == 1 and whole.packets == 7
    assert check(packets, [], OWN).unmatched[0] == "tcp 192.168.1.24:40000 to 1.2.3.4:80"
