"""Answers of the fake resolver, over whatever transport: a question in, an answer out, and what was asked. Pure."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

import dnslib
from dnslib import QTYPE, RCODE, RR, DNSHeader, DNSRecord

from sinkhole.names import Names

TTL = 60
MOST_QUESTIONS = 8


@dataclass(frozen=True)
class Answered:
    """`asked`: the names in the questions with their types (`example.com A`). `wire` is empty for what is no query."""

    wire: bytes
    asked: tuple[str, ...]


def answer(wire: bytes, names: Names, *, limit: int = 0) -> Answered:
    """Answer a query; `limit` > 0 truncates as UDP does. What can't be parsed gets FORMERR or nothing."""
    try:
        query = DNSRecord.parse(wire)
    except Exception:  # the parser raises what its parts raise
        if len(wire) < 12:
            return Answered(b"", ())
        header = DNSHeader(id=int.from_bytes(wire[:2], "big"), qr=1, rcode=RCODE.FORMERR)
        return Answered(bytes(DNSRecord(header).pack()), ())
    if query.header.qr or not query.questions:
        return Answered(b"", ())
    reply = query.reply(aa=0)
    asked = []
    for question in query.questions[:MOST_QUESTIONS]:
        name, kind = str(question.qname), QTYPE.get(question.qtype, str(question.qtype))
        asked.append(f"{name.rstrip('.') or '.'} {kind}")
        records, exists = _records(name, str(kind), names)
        if not exists:
            reply.header.rcode = RCODE.NXDOMAIN
        for rtype, data in records:
            reply.add_answer(RR(question.qname, getattr(QTYPE, rtype), rdata=data, ttl=TTL))
    packed = bytes(reply.pack())
    if limit and len(packed) > limit:
        packed = bytes(reply.truncate().pack())
    return Answered(packed, tuple(asked))


def _records(name: str, kind: str, names: Names) -> tuple[list[tuple[str, object]], bool]:
    """The records for one question, and whether the name exists."""
    plain = name.rstrip(".").lower()
    if kind == "PTR" or plain.endswith((".in-addr.arpa", ".ip6.arpa")):
        found = names.names_of(_reversed(plain))
        return ([("PTR", dnslib.PTR(found[0]))] if found and kind in ("PTR", "ANY") else []), bool(found)
    host = plain
    while host.startswith("_") and "." in host:  # services and DKIM keys: _sip._tcp.example.com
        host = host.partition(".")[2]
    addresses = names.resolve(plain if kind in ("A", "AAAA") else host)
    if addresses is None:
        return [], False
    v4, v6 = addresses
    made: list[tuple[str, object]] = []
    if kind in ("A", "ANY") and v4:
        made.append(("A", dnslib.A(v4)))
    if kind in ("AAAA", "ANY") and v6:
        made.append(("AAAA", dnslib.AAAA(v6)))
    if kind in ("MX", "ANY"):
        made.append(("MX", dnslib.MX(f"mail.{host}", 10)))
    if kind in ("TXT", "ANY"):
        made.append(("TXT", dnslib.TXT(f"v=spf1 include:_spf.{host} ~all")))
    if kind == "NS":
        made += [("NS", dnslib.NS(f"ns{number}.{host}")) for number in (1, 2)]
    if kind == "SOA":
        made.append(("SOA", dnslib.SOA(f"ns1.{host}", f"hostmaster.{host}", (2026010101, 7200, 3600, 1209600, 3600))))
    if kind == "SRV":
        made.append(("SRV", dnslib.SRV(10, 10, _service_port(plain), host)))
    if kind == "CNAME" and plain.startswith("www."):
        made.append(("CNAME", dnslib.CNAME(plain[4:])))
    if kind == "CAA":
        made.append(("CAA", dnslib.CAA(0, "issue", "letsencrypt.org")))
    return made, True


def _service_port(name: str) -> int:
    ports = {"_sip": 5060, "_xmpp-client": 5222, "_ldap": 389, "_kerberos": 88, "_imaps": 993, "_submission": 587}
    return ports.get(name.partition(".")[0], 443)


def _reversed(name: str) -> str:
    """The address in a name below in-addr.arpa or ip6.arpa, or ""."""
    try:
        if name.endswith(".in-addr.arpa"):
            return str(ipaddress.IPv4Address(".".join(reversed(name.removesuffix(".in-addr.arpa").split(".")))))
        digits = "".join(reversed(name.removesuffix(".ip6.arpa").split(".")))
        return str(ipaddress.IPv6Address(int(digits, 16))) if len(digits) == 32 else ""
    except ValueError:
        return ""
