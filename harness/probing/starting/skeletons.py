"""Minimal files of the kinds that servers ask for, by the file's name. An empty file is a valid SQLite database."""

from __future__ import annotations

import json
import posixpath
import re

from harness.probing.starting.material import DIGITS, LOWER, Material

_GOOGLE = "googleusercontent.com"


def skeleton(path: str, context: str, material: Material) -> str:
    """The text of a file for `path`; `context` is what the server said of it."""
    name = posixpath.basename(path).lower()
    around = f"{name} {context}".lower()
    if re.search(r"kubeconfig|\.kube/config", path.lower()):
        return _kubeconfig(material)
    if path.endswith(("/.aws/credentials", "/.aws/config")):
        return _aws(path, material)
    if re.search(r"openapi|swagger|spec", name) and name.endswith((".json", ".yaml", ".yml")):
        return json.dumps(_OPENAPI)
    if name.endswith(".json"):
        if re.search(r"service.?account|application.?credentials|application_default", around):
            return json.dumps(_service_account(material))
        if re.search(r"oauth|client.?secret|credential|gcp|keys", around):
            return json.dumps(_oauth_client(material))
        if "token" in name:
            return json.dumps({"access_token": material.text(name, 40), "token_type": "Bearer", "expires_in": 3600})
        return "{}"
    if name.endswith((".mjs", ".ts", ".mts")):
        return "export default {};\n"
    if name.endswith((".js", ".cjs")):
        return "module.exports = {};\n"
    if name.endswith((".yaml", ".yml")):
        return "{}\n"
    if name.endswith((".pem", ".key")) or name.startswith("id_"):
        return f"-----BEGIN PRIVATE KEY-----\n{material.text(name, 64)}\n-----END PRIVATE KEY-----\n"
    if name.endswith(".csv"):
        return "name,amount\nnorth,12\nsouth,7\n"
    if re.search(r"token|secret|key|password", name) and not name.endswith((".db", ".sqlite", ".toml", ".ini")):
        return material.text(name, 40) + "\n"
    return ""


def looks_like_a_file(path: str) -> bool:
    """True when the last part of a path has a suffix, or is a dotted name of a file that is known."""
    name = posixpath.basename(path)
    return bool(re.search(r"[^.]\.[A-Za-z0-9]{1,8}$", name)) or path.endswith(
        (".kube/config", ".aws/credentials", ".aws/config", "/.env", ".npmrc", ".netrc")
    )


_OPENAPI = {
    "openapi": "3.0.3",
    "info": {"title": "Notes", "version": "1.0.0"},
    "servers": [{"url": "https://localhost/v1"}],
    "paths": {
        "/notes": {
            "get": {"operationId": "listNotes", "summary": "All notes", "responses": {"200": {"description": "ok"}}}
        }
    },
}


def _oauth_client(material: Material) -> dict[str, object]:
    number = material.text("oauth number", 12, DIGITS[1:])
    return {
        "installed": {
            "client_id": f"{number}-{material.text('oauth id', 32, LOWER + DIGITS)}.apps.{_GOOGLE}",
            "project_id": f"{material.text('project', 6, LOWER)}-{material.text('project number', 6, DIGITS)}",
            "auth_uri": "https://accounts.google.com/o/oauth2/auth",
            "token_uri": "https://oauth2.googleapis.com/token",
            "client_secret": f"GOCSPX-{material.text('oauth secret', 28)}",
            "redirect_uris": ["http://localhost"],
        }
    }


def _service_account(material: Material) -> dict[str, object]:
    project = f"{material.text('project', 6, LOWER)}-{material.text('project number', 6, DIGITS)}"
    return {
        "type": "service_account",
        "project_id": project,
        "private_key_id": material.text("key id", 40, "0123456789abcdef"),
        "private_key": f"-----BEGIN PRIVATE KEY-----\n{material.text('key', 64)}\n-----END PRIVATE KEY-----\n",
        "client_email": f"runner@{project}.iam.gserviceaccount.com",
        "client_id": material.text("client id", 21, DIGITS[1:]),
        "auth_uri": "https://accounts.google.com/o/oauth2/auth",
        "token_uri": "https://oauth2.googleapis.com/token",
    }


def _kubeconfig(material: Material) -> str:
    token = material.text("kubernetes token", 40)
    return (
        "apiVersion: v1\nkind: Config\ncurrent-context: main\n"
        "clusters:\n- name: main\n  cluster:\n    server: https://localhost:6443\n"
        "contexts:\n- name: main\n  context:\n    cluster: main\n    user: main\n"
        f"users:\n- name: main\n  user:\n    token: {token}\n"
    )


def _aws(path: str, material: Material) -> str:
    if path.endswith("config"):
        return "[default]\nregion = us-east-1\n"
    key = material.text("AWS_ACCESS_KEY_ID", 16, LOWER.upper() + "234567")
    secret = material.text("AWS_SECRET_ACCESS_KEY", 40)
    return f"[default]\naws_access_key_id = AKIA{key}\naws_secret_access_key = {secret}\n"
