"""Kinds of secrets: each shaped, down to its length, as its provider hands it out, and the hosts that it is for.

The shapes are those that providers publish for secret scanning. Nothing in them is ours, so that nothing tells them
from real ones. Adding a kind is adding an entry.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
from dataclasses import dataclass

from harness.probing.starting.material import ALNUM, BASE32, DIGITS, HEX, LOWER, Material

#: From a source of characters and a label: the text to plant, and the part of it that is looked for.
Make = Callable[[Material, str], tuple[str, str]]


@dataclass(frozen=True)
class Token:
    """One kind of secret. `services`: host suffixes that it is for; none: nobody on the network."""

    kind: str
    make: Make
    services: tuple[str, ...] = ()


def _plain(prefix: str, length: int, alphabet: str = ALNUM) -> Make:
    def make(material: Material, label: str) -> tuple[str, str]:
        value = prefix + material.text(label, length, alphabet)
        return value, value

    return make


def _jwt(material: Material, label: str) -> tuple[str, str]:
    value = material.jwt(label)
    return value, value.rpartition(".")[2]


def _uuid(material: Material, label: str) -> tuple[str, str]:
    value = material.uuid(label)
    return value, value


def _numbers(material: Material, label: str) -> tuple[str, str]:
    """64 bytes as a JSON list: a key as some wallets keep it. What is looked for is the list's middle."""
    numbers = [str(byte) for byte in bytes.fromhex(material.text(label, 128, HEX))]
    return f"[{','.join(numbers)}]", ",".join(numbers[20:36])


def _ssh_key(material: Material, label: str) -> tuple[str, str]:
    """An OpenSSH private key of type ed25519, by its format (PROTOCOL.key of OpenSSH); its two halves don't match."""

    def text(data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + data

    public = bytes.fromhex(material.text(f"{label} public", 64, HEX))
    private = bytes.fromhex(material.text(label, 64, HEX))
    check = bytes.fromhex(material.text(f"{label} check", 8, HEX)) * 2
    head = b"openssh-key-v1\0" + text(b"none") + text(b"none") + text(b"") + struct.pack(">I", 1)
    head += text(text(b"ssh-ed25519") + text(public))
    inner = check + text(b"ssh-ed25519") + text(public) + struct.pack(">I", 64)
    tail = private + public + text(b"dev@workstation")
    inner_size = len(inner) + len(tail)
    padding = bytes(range(1, 1 + -inner_size % 8))
    start = len(head) + 4 + len(inner)
    encoded = base64.b64encode(head + struct.pack(">I", inner_size + len(padding)) + inner + tail + padding).decode()
    lines = [encoded[at : at + 70] for at in range(0, len(encoded), 70)]
    first, end = -(-start * 8 // 6), (start + 32) * 8 // 6  # the characters that the secret half alone decides
    pieces = [line[max(0, first - n * 70) : max(0, end - n * 70)] for n, line in enumerate(lines)]
    body = "\n".join(lines)
    return f"-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----\n", max(pieces, key=len)


def _pem(material: Material, label: str) -> tuple[str, str]:
    """A private key in PKCS#8 as far as its frame goes (RFC 5958, RFC 7468); the numbers in it are random."""
    body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ" + material.text(label, 1566, ALNUM + "+/")
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    text = "\n".join(lines)
    return f"-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n", lines[12]


TOKENS: dict[str, Token] = {
    "aws-id": Token("aws-key-id", _plain("AKIA", 16, BASE32), ("amazonaws.com", "aws.amazon.com")),
    "aws-secret": Token("aws-secret", _plain("", 40, ALNUM + "+/"), ("amazonaws.com", "aws.amazon.com")),
    "github": Token("github-token", _plain("ghp_", 36), ("github.com", "githubusercontent.com", "githubcopilot.com")),
    "github-oauth": Token("github-token", _plain("gho_", 36), ("github.com", "githubusercontent.com")),
    "gitlab": Token("gitlab-token", _plain("glpat-", 20), ("gitlab.com",)),
    "npm": Token("npm-token", _plain("npm_", 36), ("npmjs.org", "npmjs.com")),
    "pypi": Token("pypi-token", _plain("pypi-AgEIcHlwaS5vcmcC", 150, ALNUM + "-_"), ()),
    "openai": Token("openai-key", _plain("sk-", 48), ("openai.com",)),
    "anthropic": Token("anthropic-key", _plain("sk-ant-api03-", 95, ALNUM + "-_"), ("anthropic.com", "claude.ai")),
    "claude-oauth": Token("anthropic-key", _plain("sk-ant-oat01-", 95, ALNUM + "-_"), ("anthropic.com", "claude.ai")),
    "google-refresh": Token("google-token", _plain("1//0", 99, ALNUM + "-_"), ("googleapis.com", "google.com")),
    "google-key": Token("google-key", _plain("AIza", 35, ALNUM + "-_"), ("googleapis.com", "google.com")),
    "slack": Token("slack-token", _plain("xoxb-", 56, ALNUM), ("slack.com",)),
    "notion": Token("notion-token", _plain("ntn_", 46), ("notion.com", "notion.so")),
    "linear": Token("linear-key", _plain("lin_api_", 40), ("linear.app",)),
    "stripe": Token("stripe-key", _plain("sk_live_", 99), ("stripe.com",)),
    "sentry": Token("sentry-token", _plain("sntryu_", 64, HEX), ("sentry.io",)),
    "docker": Token("docker-token", _plain("dckr_pat_", 27, ALNUM + "-_"), ("docker.io", "docker.com")),
    "heroku": Token("heroku-key", _uuid, ("heroku.com",)),
    "vault": Token("vault-token", _plain("hvs.", 90, ALNUM + "-_")),
    "kubernetes": Token("jwt", _jwt),
    "jwt": Token("jwt", _jwt),
    "password": Token("password", _plain("", 20)),
    "hex-secret": Token("secret", _plain("", 64, HEX)),
    "ssh-key": Token("private-key", _ssh_key),
    "pem-key": Token("private-key", _pem),
    "wallet": Token("wallet-key", _numbers),
    "sealed": Token("sealed-password", _plain("", 32)),
}
#: What a template may hold beside tokens: made up too, and no secret.
PLAIN: dict[str, Callable[[Material, str], str]] = {
    "user": lambda m, label: m.text(label, 7, LOWER),
    "number": lambda m, label: m.text(label, 12, DIGITS[1:]),
    "ssh-public": lambda m, label: _ssh_public(m, label),
}


def _ssh_public(material: Material, label: str) -> str:
    """The public half that `_ssh_key` shows for the same label."""
    public = bytes.fromhex(material.text(f"{label} public", 64, HEX))
    blob = struct.pack(">I", 11) + b"ssh-ed25519" + struct.pack(">I", 32) + public
    return base64.b64encode(blob).decode()
