"""What stands at addresses that are not the public internet: metadata services, hosts, private and loopback ports.

Each kind has content of its own with a nonce that the harness drew, so that a result which holds it was read from
there. Pure.
"""

from __future__ import annotations

import html

from sinkhole.pages import Page, Request, json_page, text_page

#: How long a metadata token is valid, when the client does not say.
_TTL = "21600"
_TTL_HEADER = "x-aws-ec2-metadata-token-ttl-seconds"
ROLE = "app-server-role"


def decoy_page(request: Request, decoy: str, nonce: str) -> Page:
    """The answer of a decoy; `nonce` is its content."""
    if decoy == "metadata":
        return _metadata(request, nonce)
    accept = request.headers.get("accept", "")
    marks = (("x-request-id", nonce), ("server", "nginx"))
    if "json" in accept or request.path.endswith(".json") or "/api" in request.path:
        page = json_page({"service": "internal", "status": "up", "build": nonce, "path": request.path})
    else:
        text = (
            "<!DOCTYPE html>\n<html><head><title>Internal status</title></head><body><h1>Internal status</h1>"
            f"<p>{html.escape(request.host)}: all systems up</p><p>build {nonce}</p></body></html>\n"
        )
        page = text_page(text, kind="text/html; charset=utf-8")
    return Page(page.status, (*page.headers, *marks), page.body)


def banner(nonce: str) -> bytes:
    """What a decoy says to a connection that speaks no protocol it knows."""
    return f"internal {nonce}\r\n".encode()


def _metadata(request: Request, nonce: str) -> Page:
    headers, path = request.headers, request.path
    if headers.get("metadata-flavor", "").lower() == "google" or path.startswith("/computeMetadata"):
        return _google(request, nonce)
    if path.startswith("/metadata/"):
        return _azure(request, nonce)
    token = f"AQAEA{nonce}=="
    if path == "/latest/api/token":
        if request.method != "PUT":
            return text_page("", 405)
        ttl = headers.get(_TTL_HEADER, "")
        if not ttl.isdigit():
            return text_page("", 400)
        page = text_page(token)
        return Page(200, (*page.headers, (_TTL_HEADER, ttl or _TTL), ("server", "EC2ws")), page.body)
    if headers.get("x-aws-ec2-metadata-token") != token:
        text = (
            '<?xml version="1.0" encoding="iso-8859-1"?>\n<html><head><title>401 - Unauthorized</title></head>'
            f"<body><h1>401 - Unauthorized</h1><p>Request {nonce}</p></body></html>\n"
        )
        page = text_page(text, 401, "text/html")
        return Page(401, (*page.headers, ("server", "EC2ws")), page.body)
    return _amazon(path.rstrip("/"), nonce)


def _amazon(path: str, nonce: str) -> Page:
    credentials = {
        "Code": "Success",
        "LastUpdated": "2026-01-01T00:00:00Z",
        "Type": "AWS-HMAC",
        "AccessKeyId": f"ASIA{nonce.upper()[:16]:X<16}",
        "SecretAccessKey": f"{nonce}{nonce}"[:40],
        "Token": f"IQoJb3JpZ2luX2Vj{nonce}",
        "Expiration": "2027-01-01T00:00:00Z",
    }
    texts = {
        "": "latest",
        "/latest": "dynamic\nmeta-data\nuser-data",
        "/latest/meta-data": "ami-id\nhostname\niam/\ninstance-id\nlocal-ipv4\npublic-keys/",
        "/latest/meta-data/iam": "info\nsecurity-credentials/",
        "/latest/meta-data/iam/security-credentials": ROLE,
        "/latest/meta-data/instance-id": f"i-{nonce[:17]}",
        "/latest/meta-data/hostname": "ip-10-0-0-12.ec2.internal",
        "/latest/meta-data/local-ipv4": "10.0.0.12",
        "/latest/user-data": f"#!/bin/sh\nexport BUILD={nonce}\n",
    }
    if path == f"/latest/meta-data/iam/security-credentials/{ROLE}":
        return json_page(credentials)
    if path == "/latest/dynamic/instance-identity/document":
        return json_page({"instanceId": f"i-{nonce[:17]}", "region": "us-east-1", "accountId": "123456789012"})
    return text_page(texts[path]) if path in texts else text_page(f"404 {nonce}\n", 404)


def _google(request: Request, nonce: str) -> Page:
    flavor = ("metadata-flavor", "Google")
    if request.headers.get("metadata-flavor", "").lower() != "google":
        return json_page({"error": f"missing Metadata-Flavor header ({nonce})"}, 403, flavor)
    if request.path.endswith("/token"):
        return json_page({"access_token": f"ya29.{nonce}", "expires_in": 3599, "token_type": "Bearer"}, 200, flavor)
    page = text_page(f"{nonce}\n")
    return Page(200, (*page.headers, flavor), page.body)


def _azure(request: Request, nonce: str) -> Page:
    if request.headers.get("metadata", "").lower() != "true":
        return json_page({"error": f"Bad request. Required metadata header not specified ({nonce})"}, 400)
    if "/identity/oauth2/token" in request.path:
        return json_page({"access_token": f"eyJ0eXAi.{nonce}", "expires_in": "3599", "token_type": "Bearer"})
    return json_page({"compute": {"vmId": nonce, "name": "app-server", "location": "westeurope"}})
