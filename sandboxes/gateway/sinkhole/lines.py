"""Protocols of lines in which the server speaks first: SMTP, FTP, POP3, IMAP; their commands are told as they come.

A dialogue is a pure object: it has a greeting, and takes a line and gives the reply and what the line was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from sinkhole.channel import Channel
from sinkhole.flows import Part

MOST_LINE = 64 << 10


@dataclass(frozen=True)
class Reply:
    """What is sent back; `tls`: TLS follows; `data`: a message follows; `end`: the connection ends after it."""

    text: bytes
    secret: bool = False
    tls: bool = False
    data: bool = False
    end: bool = False


class Dialogue(Protocol):
    """One side of a protocol of lines."""

    name: str
    greeting: bytes

    def line(self, line: bytes) -> Reply:
        """Answer one line (without its end)."""
        ...


class Smtp:
    """Mail submission (RFC 5321) with STARTTLS (RFC 3207) and AUTH (RFC 4954)."""

    name = "smtp"

    def __init__(self, host: str) -> None:
        self._host = host.encode("ascii", "replace")
        self.greeting = b"220 " + self._host + b" ESMTP ready\r\n"
        self._secrets = 0
        self.secured = False

    def line(self, line: bytes) -> Reply:
        """Answer one command, or one line of credentials."""
        if self._secrets:
            self._secrets -= 1
            more = b"334 UGFzc3dvcmQ6\r\n" if self._secrets else b"235 2.7.0 Authentication successful\r\n"
            return Reply(more, secret=True)
        verb, _, rest = line.upper().partition(b" ")
        if verb == b"EHLO":
            start = b"" if self.secured else b"250-STARTTLS\r\n"
            head = b"250-" + self._host + b"\r\n250-SIZE 52428800\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n"
            return Reply(head + start + b"250 AUTH PLAIN LOGIN\r\n")
        if verb == b"AUTH":
            kind, _, initial = rest.partition(b" ")
            if kind == b"LOGIN":
                self._secrets = 1 if initial else 2
                return Reply(b"334 UGFzc3dvcmQ6\r\n" if initial else b"334 VXNlcm5hbWU6\r\n", secret=bool(initial))
            if not initial:
                self._secrets = 1
                return Reply(b"334 \r\n")
            return Reply(b"235 2.7.0 Authentication successful\r\n", secret=True)
        if verb == b"STARTTLS":
            self.secured = True
            return Reply(b"220 2.0.0 Ready to start TLS\r\n", tls=True)
        if verb == b"DATA":
            return Reply(b"354 End data with <CR><LF>.<CR><LF>\r\n", data=True)
        if verb == b"QUIT":
            return Reply(b"221 2.0.0 Bye\r\n", end=True)
        return Reply(b"250 2.0.0 OK\r\n")


class Ftp:
    """File transfer control (RFC 959): takes credentials, offers nothing."""

    name = "ftp"
    greeting = b"220 FTP server ready\r\n"

    def line(self, line: bytes) -> Reply:
        """Answer one command."""
        verb = line.upper().partition(b" ")[0]
        fixed = {
            b"USER": Reply(b"331 Please specify the password.\r\n", secret=True),
            b"PASS": Reply(b"230 Login successful.\r\n", secret=True),
            b"AUTH": Reply(b"234 Proceed with negotiation.\r\n", tls=True),
            b"SYST": Reply(b"215 UNIX Type: L8\r\n"),
            b"PWD": Reply(b'257 "/" is the current directory\r\n'),
            b"PASV": Reply(b"502 Command not implemented.\r\n"),
            b"EPSV": Reply(b"502 Command not implemented.\r\n"),
            b"QUIT": Reply(b"221 Goodbye.\r\n", end=True),
        }
        return fixed.get(verb, Reply(b"200 OK\r\n"))


class Pop3:
    """Mail retrieval (RFC 1939): an empty mailbox."""

    name = "pop3"
    greeting = b"+OK POP3 ready\r\n"

    def line(self, line: bytes) -> Reply:
        """Answer one command."""
        verb = line.upper().partition(b" ")[0]
        if verb == b"STLS":
            return Reply(b"+OK Begin TLS\r\n", tls=True)
        if verb == b"STAT":
            return Reply(b"+OK 0 0\r\n")
        if verb in (b"LIST", b"UIDL", b"CAPA"):
            return Reply(b"+OK\r\n.\r\n")
        return Reply(b"+OK\r\n", secret=verb in (b"USER", b"PASS", b"APOP", b"AUTH"), end=verb == b"QUIT")


class Imap:
    """Mail access (RFC 3501): every command succeeds and there is no mail."""

    name = "imap"
    greeting = b"* OK [CAPABILITY IMAP4rev1 STARTTLS AUTH=PLAIN] IMAP ready\r\n"

    def line(self, line: bytes) -> Reply:
        """Answer one command."""
        tag, _, rest = line.partition(b" ")
        verb = rest.upper().partition(b" ")[0]
        done = tag + b" OK " + (verb or b"done") + b" completed\r\n"
        if verb == b"CAPABILITY":
            return Reply(b"* CAPABILITY IMAP4rev1 STARTTLS AUTH=PLAIN\r\n" + done)
        if verb in (b"SELECT", b"EXAMINE"):
            return Reply(b"* 0 EXISTS\r\n* 0 RECENT\r\n" + done)
        return Reply(done, secret=verb in (b"LOGIN", b"AUTHENTICATE"), tls=verb == b"STARTTLS", end=verb == b"LOGOUT")


#: What speaks first on which port, and whether TLS comes before that.
SERVER_FIRST: dict[int, Callable[[str], Dialogue]] = {
    21: lambda host: Ftp(),
    25: Smtp,
    465: Smtp,
    587: Smtp,
    2525: Smtp,
    110: lambda host: Pop3(),
    995: lambda host: Pop3(),
    143: lambda host: Imap(),
    993: lambda host: Imap(),
}
#: One message and then whatever comes: the binary ones are a MySQL 8 and an empty VNC greeting.
BANNERS: dict[int, bytes] = {
    22: b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n",
    2222: b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n",
    23: b"login: ",
    119: b"200 news server ready\r\n",
    3306: b"\x4a\x00\x00\x00\x0a8.0.36\x00\x0b\x00\x00\x00\x31\x4a\x5a\x3e\x21\x06\x66\x35\x00\xff\xff\xff\x02\x00"
    b"\xff\xdf\x15\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x2c\x3b\x5d\x2f\x4a\x23\x55\x21\x7e\x69\x5c\x49\x00"
    b"caching_sha2_password\x00",
    5900: b"RFB 003.008\n",
    6667: b":irc.server NOTICE * :*** Looking up your hostname...\r\n",
}


async def converse(channel: Channel, dialogue: Dialogue, *, greet: bool = True) -> str:
    """Hold a dialogue until the connection ends ("") or TLS follows (`tls`). Raises what the channel raises."""
    flow = channel.flow
    if greet:
        await channel.send(dialogue.greeting)
    held = b""
    message: Part | None = None
    while data := await channel.read():
        held += data
        while True:
            if message is not None:
                assert message.content is not None
                before, found, after = held.partition(b"\r\n.\r\n")
                if not found:
                    message.content.add(held[:-4])  # the end may be cut in two
                    held = held[-4:]
                    break
                message.content.add(before)
                message, held = None, after
                await channel.send(b"250 2.0.0 Ok: queued\r\n")
                continue
            line, newline, rest = held.partition(b"\n")
            if not newline and len(held) < MOST_LINE:
                break
            held = rest
            reply = dialogue.line(line.rstrip(b"\r"))
            what = "credentials" if reply.secret else f"{dialogue.name}-command"
            flow.part(what, line[:500].decode("utf-8", "backslashreplace").strip(), line)
            if reply.text:
                await channel.send(reply.text)
            if reply.data:
                message = flow.part(f"{dialogue.name}-message")
            if reply.tls:
                channel.put_back(held)
                return "tls"
            if reply.end:
                return ""
    if message is not None and message.content is not None:
        message.content.add(held)
    return ""
