"""The pure parts of the gateway's own code: what it reads, and what it answers."""

from __future__ import annotations

import ipaddress
import ssl
import time
from contextlib import suppress

import pytest
from dnslib import RCODE, DNSRecord
from hypothesis import given
from hypothesis import strategies as st
from sinkhole import dns, filters, hello, lines, packets, quic, websocket, wire
from sinkhole.authority import Authority
from sinkhole.decoys import decoy_page
from sinkhole.flows import FLOOR, Budget, Flow, Kept, end_text
from sinkhole.names import Names, decoy_of
from sinkhole.pages import Request, public_page
from sinkhole.responding import Canned


def client_hello(name: str, alpn: list[str], authority: bytes | None = None) -> bytes:
    context = ssl.create_default_context()
    context.set_alpn_protocols(alpn)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def test_a_client_hello_tells_name_protocols_and_fingerprint() -> None:
    records = client_hello("api.example.com", ["h2", "http/1.1"])
    assert hello.looks_like_tls(records) and not hello.looks_like_tls(b"GET / HTTP/1.1")
    assert hello.handshake_bytes(records[:50]) is None
    message = hello.handshake_bytes(records)
    assert message is not None
    said = hello.parse(message)
    assert said.sni == "api.example.com" and said.alpn == ("h2", "http/1.1")
    assert said.ja4().startswith("t13d") and said.ja4()[8:10] == "h2" and len(said.ja4()) == 36


def test_the_fingerprint_is_that_of_its_description() -> None:
    # The worked example of JA4's technical details, with GREASE values that must not count.
    ciphers = "1301,1302,1303,c02b,c02f,c02c,c030,cca9,cca8,c013,c014,009c,009d,002f,0035"
    extensions = "001b,0000,0033,0010,4469,0017,002d,000d,0005,0023,0012,002b,ff01,000b,000a,0015"
    signatures = "0403,0804,0401,0503,0805,0501,0806,0601"

    def numbers(text: str) -> tuple[int, ...]:
        return tuple(int(part, 16) for part in text.split(","))

    said = hello.ClientHello(
        "x.example",
        ("h2", "http/1.1"),
        (0x5A5A, 0x0304, 0x0303),
        (0x3A3A, *numbers(ciphers)),
        (0x6A6A, *numbers(extensions)),
        numbers(signatures),
    )
    assert said.ja4() == "t13d1516h2_8daaf6152771_e5627efa2ab1"


@given(st.binary(max_size=400))
def test_readers_of_hostile_bytes_raise_nothing_but_what_they_say(data: bytes) -> None:
    for read in (hello.parse, hello.handshake_bytes):
        with suppress(ValueError):
            read(data)
    packets.read(data)
    quic.client_hello((b"\xc3\0\0\0\1" + data).ljust(1200, b"\0"))
    dns.answer(data, Names())
    websocket.FrameReader().feed(data)


@pytest.mark.parametrize("kind", ["A", "AAAA", "MX", "TXT", "SRV", "NS", "SOA", "CAA"])
def test_names_resolve_to_addresses_that_look_public(kind: str) -> None:
    names = Names()
    found = dns.answer(DNSRecord.question("some.vendor.com", kind).pack(), names)
    reply = DNSRecord.parse(found.wire)
    assert found.asked == (f"some.vendor.com {kind}",) and reply.header.rcode == RCODE.NOERROR and reply.rr
    if kind in ("A", "AAAA"):
        address = str(reply.rr[0].rdata)
        assert ipaddress.ip_address(address).is_global and names.names_of(address) == ("some.vendor.com",)


def test_every_name_has_its_own_address_and_some_must_not_exist() -> None:
    names = Names(("blocked.com",))
    given_out = {names.resolve(f"n{number}.vendor.com") for number in range(3000)}
    assert len(given_out) == 3000 and None not in given_out
    for absent in ("a.invalid", "x.local", "single", "sub.blocked.com", "hidden.onion"):
        assert names.resolve(absent) is None
        answer = DNSRecord.parse(dns.answer(DNSRecord.question(absent).pack(), names).wire)
        assert answer.header.rcode == RCODE.NXDOMAIN
    assert names.resolve("metadata.google.internal") == ("169.254.169.254", "fd00:ec2::254")
    address = (names.resolve("ptr.vendor.com") or ("", ""))[0]
    back = ".".join(reversed(address.split("."))) + ".in-addr.arpa"
    reply = DNSRecord.parse(dns.answer(DNSRecord.question(back, "PTR").pack(), names).wire)
    assert str(reply.rr[0].rdata) == "ptr.vendor.com."


def test_addresses_inside_are_known_for_what_they_are() -> None:
    kinds = {
        "169.254.169.254": "metadata",
        "192.168.65.254": "host",
        "192.168.1.1": "resolver",
        "127.0.0.53": "loopback",
        "::ffff:10.0.0.1": "private",
        "10.9.8.7": "private",
        "169.254.3.4": "link-local",
        "239.1.1.1": "multicast",
        "8.8.8.8": "",
        "2606:4700::1111": "",
    }
    assert {address: decoy_of(address) for address in kinds} == kinds


def test_metadata_wants_a_token_and_every_answer_holds_the_nonce() -> None:
    def ask(method: str, path: str, **headers: str) -> tuple[int, bytes]:
        given_headers = {name.replace("_", "-"): value for name, value in headers.items()}
        page = decoy_page(Request(method, path, "169.254.169.254", 80, headers=given_headers), "metadata", "n0nce")
        return page.status, page.body

    status, body = ask("GET", "/latest/meta-data/")
    assert status == 401 and b"n0nce" in body
    status, token = ask("PUT", "/latest/api/token", x_aws_ec2_metadata_token_ttl_seconds="60")
    role = "/latest/meta-data/iam/security-credentials/app-server-role"
    status, body = ask("GET", role, x_aws_ec2_metadata_token=token.decode())
    assert status == 200 and b"n0nce" in body
    assert ask("GET", "/computeMetadata/v1/")[0] == 403
    assert b"n0nce" in ask("GET", "/computeMetadata/v1/token", metadata_flavor="Google")[1]
    assert ask("GET", "/metadata/instance")[0] == 400


def test_pages_fit_what_the_client_accepts() -> None:
    def kind(path: str, accept: str = "*/*", host: str = "vendor.com", method: str = "GET") -> tuple[int, str]:
        page = public_page(Request(method, path, host, 443, tls=True, headers={"accept": accept}))
        return page.status, dict(page.headers).get("content-type", "")

    assert kind("/")[1] == "application/json"
    assert kind("/", "text/html,*/*;q=0.8")[1].startswith("text/html")
    assert kind("/logo.png")[1] == "image/png"
    assert kind("/robots.txt")[1].startswith("text/plain")
    assert kind("/x", host="bit.ly")[0] == 301
    assert kind("/.well-known/oauth-authorization-server") == (200, "application/json")
    assert kind("/simple/requests/", host="index.packages.test")[1] == "text/html"
    assert kind("/left-pad", host="registry.packages.test")[1] == "application/json"
    assert kind("/oauth/token", method="POST")[0] == 200


def test_canned_answers_come_first_and_by_address_too() -> None:
    canned = Canned.read([{"host": "10.0.0.*", "port": 80, "path": "/a*", "status": 418, "body": "e30="}])
    request = Request("GET", "/abc?x", "spelled.otherwise", 80, address="10.0.0.7")
    page = canned.page(request)
    assert page is not None and page.status == 418 and page.body == b"{}"
    assert canned.page(Request("GET", "/b", "10.0.0.7", 80)) is None


@given(st.lists(st.binary(max_size=300), max_size=60), st.integers(0, 4000))
def test_head_and_tail_are_those_of_the_stream(pieces: list[bytes], budget: int) -> None:
    shared = Budget(budget)
    kept, whole = Kept(shared, 4096, 1024), b"".join(pieces)
    for piece in pieces:
        kept.add(piece)
    head, tail = kept.parts
    assert kept.size == len(whole) and whole.startswith(head) and whole.endswith(tail)
    assert len(head) + len(tail) >= min(len(whole), FLOOR)
    if budget >= 4000:
        assert len(head) == min(len(whole), 4096)
    kept.release()
    assert shared.left == budget


def test_a_flow_becomes_a_frame_with_its_bytes_in_order() -> None:
    flow = Flow(1, "tcp", "192.168.1.24:5", end_text("::ffff:1.2.3.4", 80), Budget(1 << 20))
    flow.sends(b"out")
    flow.gets(b"in")
    flow.part("http-body", "text/plain", b"body", "gzip")
    ((message, body),) = wire.FrameReader().feed(flow.frame())
    assert body == b"outinbody" and message["remote"] == "1.2.3.4:80" and message["sent"] == 3
    assert [part["encoding"] for part in message["parts"]] == ["gzip"]


def test_datagrams_are_made_as_they_are_read() -> None:
    for source, to in ((("1.2.3.4", 53), ("192.168.1.24", 999)), (("2001:db8::1", 53), ("fd5e:8c1a:77b2::24", 999))):
        found = packets.read(packets.datagram(source, to, b"odd"))
        assert found is not None and found.payload == b"odd" and found.name == "udp"
        assert ((found.source, found.source_port), (found.destination, found.port)) == (source, to)


def test_the_initial_of_quic_is_read() -> None:
    # The client's first packet of RFC 9001, appendix A.2, is long: its keys alone are compared here.
    key, iv, mask = quic._keys(1, bytes.fromhex("8394c8f03e515708"))
    assert key.hex() == "1f369613dd76d5467730efcbe3b1a22d"
    assert iv.hex() == "fa044b2f42a3fd3b46fb255c" and mask.hex() == "9f50449e04a0e810283a1e9933adedd2"


def test_filters_are_whole_programs() -> None:
    for attempts in (True, False):
        for datagrams in (True, False):
            code = filters.program(attempts=attempts, datagrams=datagrams)
            assert len(code) % 8 == 0 and code[-16:-14] == code[-8:-6] == b"\x06\x00"


def test_dialogues_take_credentials() -> None:
    mail = lines.Smtp("mx.vendor.com")
    assert b"STARTTLS" in mail.line(b"EHLO x").text and mail.line(b"STARTTLS").tls
    assert b"STARTTLS" not in mail.line(b"EHLO x").text
    assert [mail.line(line).secret for line in (b"AUTH LOGIN", b"dXNlcg==", b"c2VjcmV0")] == [False, True, True]
    assert mail.line(b"DATA").data and mail.line(b"QUIT").end
    assert lines.Imap().line(b"a1 LOGIN user secret").secret


def test_the_authority_is_made_from_its_seed() -> None:
    one, two = Authority(b"\x11" * 32), Authority(b"\x11" * 32)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=one.pem.decode())
    server_in, server_out = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = two.context("vendor.com").wrap_bio(server_in, server_out, server_side=True)
    client = context.wrap_bio(server_out, server_in, server_hostname="vendor.com")
    for side in (client, server, client, server):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    assert client.version() == "TLSv1.3" and b"sandbox" not in one.pem.lower()
    shown = client.getpeercert()
    assert shown is not None
    until = ssl.cert_time_to_seconds(str(shown["notAfter"])) - time.time()
    assert until > 401 * 86400, "some targets live with a later clock"
