"""Plausible answers to HTTP requests, chosen by host, path and what the client accepts. Pure.

None of them is meant to be right; they are meant to let a client go on. What must not exist on the public internet
(a decoy) is answered by `sinkhole.decoys`.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

_PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
_SHORTENERS = {"bit.ly", "t.co", "tinyurl.com", "goo.gl", "is.gd", "t.ly", "ow.ly", "rb.gy"}


@dataclass(frozen=True)
class Request:
    """One request: header names in lower case. `host` without its port; `body` is its beginning; `address` is where
    the connection was made to, whatever the request says."""

    method: str
    target: str
    host: str
    port: int
    tls: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    address: str = ""

    @property
    def path(self) -> str:
        """The path, decoded."""
        return unquote(urlsplit(self.target).path or "/", errors="replace")


@dataclass(frozen=True)
class Page:
    """An answer."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


def json_page(value: Any, status: int = 200, *headers: tuple[str, str]) -> Page:
    """An answer of JSON."""
    return Page(status, (("content-type", "application/json"), *headers), json.dumps(value).encode())


def text_page(text: str, status: int = 200, kind: str = "text/plain; charset=utf-8") -> Page:
    """An answer of text."""
    return Page(status, (("content-type", kind),), text.encode())


def public_page(request: Request) -> Page:
    """What a public host would say."""
    path, host = request.path, request.host.lower()
    base = f"{'https' if request.tls else 'http'}://{request.host}"
    if "/.well-known/" in path:
        return _well_known(path, base)
    if host in _SHORTENERS and request.method in ("GET", "HEAD"):
        return Page(301, (("location", f"https://www.{host.replace('.', '-')}-target.com{path}"),), b"")
    if path.endswith("/releases/latest") and request.method in ("GET", "HEAD"):
        return Page(302, (("location", f"{base}{path.removesuffix('latest')}tag/v1.0.0"),), b"")
    registry = _registry(host, path)
    if registry is not None:
        return registry
    if request.method == "POST" and path.rstrip("/").endswith(("/token", "/oauth/access_token")):
        token = hashlib.sha256(request.host.encode()).hexdigest()
        return json_page({"access_token": token, "token_type": "Bearer", "expires_in": 3600, "scope": ""})
    if request.method == "POST" and path.rstrip("/").endswith("/register"):
        return json_page({"client_id": hashlib.sha256(host.encode()).hexdigest()[:24], "redirect_uris": []}, 201)
    if request.method == "OPTIONS":
        allowed = (("allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"), ("access-control-allow-origin", "*"))
        return Page(204, allowed, b"")
    return _negotiated(request, path, host, base)


def _negotiated(request: Request, path: str, host: str, base: str) -> Page:
    accept = request.headers.get("accept", "*/*").lower()
    ending = path.rpartition(".")[2].lower() if "." in path.rpartition("/")[2] else ""
    title = html.escape(request.host or "Welcome")
    if ending == "txt" or path == "/robots.txt":
        return text_page("User-agent: *\nAllow: /\n" if path == "/robots.txt" else f"{request.host}\n")
    if ending in ("png", "jpg", "jpeg", "gif", "ico", "webp") or accept.startswith("image/"):
        return Page(200, (("content-type", "image/png"),), _PIXEL)
    if ending in ("xml", "rss", "atom") or ("xml" in accept and "html" not in accept):
        text = (
            f'<?xml version="1.0" encoding="UTF-8"?>\n<feed><title>{title}</title><updated>2026-01-01</updated></feed>'
        )
        return text_page(text, kind="application/xml")
    if "text/event-stream" in accept and "json" not in accept:
        return text_page('data: {"status":"ok"}\n\ndata: [DONE]\n\n', kind="text/event-stream")
    api = host.startswith("api.") or "/api" in path or ending == "json" or "/graphql" in path or "/v1" in path
    sent_json = "json" in request.headers.get("content-type", "")
    if "html" in accept and not (api and sent_json):
        text = (
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>\n'
            f"<body><h1>{title}</h1><p>Welcome. This page has moved to a new design.</p>"
            f'<p><a href="{html.escape(base)}/about">About</a> <a href="{html.escape(base)}/contact">Contact</a></p>'
            "</body></html>\n"
        )
        return text_page(text, kind="text/html; charset=utf-8")
    if "json" in accept or "*/*" in accept or api or sent_json:
        made = hashlib.sha256(f"{host}{path}".encode()).hexdigest()
        value = {
            "id": made[:24],
            "object": "response",
            "status": "ok",
            "success": True,
            "ok": True,
            "data": [],
            "items": [],
        }
        return json_page(value, 201 if request.method == "PUT" else 200)
    return text_page("OK\n")


def _well_known(path: str, base: str) -> Page:
    if "oauth-protected-resource" in path:
        return json_page({"resource": base, "authorization_servers": [base], "bearer_methods_supported": ["header"]})
    if "oauth-authorization-server" in path or "openid-configuration" in path:
        return json_page(
            {
                "issuer": base,
                "authorization_endpoint": f"{base}/authorize",
                "token_endpoint": f"{base}/token",
                "registration_endpoint": f"{base}/register",
                "jwks_uri": f"{base}/jwks.json",
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none", "client_secret_post", "client_secret_basic"],
            }
        )
    return json_page({"error": "not_found"}, 404)


def _registry(host: str, path: str) -> Page | None:
    """What package registries answer when asked for the newest version; mirrors too, so by path and by kind of name."""
    parts = [part for part in path.split("/") if part]
    if len(parts) >= 2 and parts[0] == "simple":
        return text_page(
            f"<!DOCTYPE html><html><body><h1>Links for {html.escape(parts[1])}</h1></body></html>", kind="text/html"
        )
    if len(parts) >= 3 and parts[0] == "pypi" and parts[-1] == "json":
        info = {"name": parts[1], "version": "1.0.0", "summary": "", "requires_dist": None}
        return json_page({"info": info, "releases": {"1.0.0": []}, "urls": [], "last_serial": 1})
    if host.partition(".")[0] == "registry" and parts:
        name = "/".join(parts[:2]) if parts[0].startswith("@") else parts[0]
        if parts[0] == "-":
            return json_page({})
        if path.endswith(".tgz"):
            return json_page({"error": "not_found"}, 404)
        version = {"name": name, "version": "1.0.0", "dist": {}}
        if parts[-1] != name and len(parts) > name.count("/") + 1:
            return json_page(version)
        return json_page({"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}})
    return None
