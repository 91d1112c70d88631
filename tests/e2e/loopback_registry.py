"""Both kinds of package registry on one loopback port, and the packages that tests publish there."""

from __future__ import annotations

import base64
import hashlib
import http.server
import io
import json
import tarfile
import threading
import urllib.parse
import zipfile
from collections.abc import Callable
from pathlib import Path


def wheel(
    name: str,
    version: str,
    requires: tuple[str, ...] = (),
    scripts: tuple[str, ...] = (),
    body: str = "def main(): pass\n",
) -> tuple[str, bytes]:
    """A pure wheel: file name and content."""
    stem = name.replace("-", "_")
    info = f"{stem}-{version}.dist-info"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as out:
        out.writestr(f"{stem}/__init__.py", body)
        lines = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"]
        lines += [f"Requires-Dist: {requirement}\n" for requirement in requires]
        out.writestr(f"{info}/METADATA", "".join(lines))
        out.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        declared = "".join(f"{script} = {stem}:main\n" for script in scripts)
        out.writestr(f"{info}/entry_points.txt", f"[console_scripts]\n{declared}")
        out.writestr(f"{info}/RECORD", "")
    return f"{stem}-{version}-py3-none-any.whl", buffer.getvalue()


def tarball(files: dict[str, str], top: str) -> bytes:
    """A gzipped tar with `files` below the folder `top`."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as out:
        for name, text in files.items():
            info = tarfile.TarInfo(f"{top}/{name}")
            info.size = len(text.encode())
            out.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


def sdist(name: str, version: str, marker: Path, requires: tuple[str, ...] = ()) -> tuple[str, bytes]:
    """An sdist whose setup.py leaves `marker`."""
    setup = (
        f"open({str(marker)!r}, 'w').close()\nfrom setuptools import setup\nsetup(name={name!r}, version={version!r})\n"
    )
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
    return f"{name}-{version}.tar.gz", tarball({"setup.py": setup, "PKG-INFO": metadata}, f"{name}-{version}")


class Registry:
    """Both registries on one loopback port, and the paths that were asked for."""

    def __init__(self) -> None:
        self.python: dict[str, list[tuple[str, bytes]]] = {}
        self.npm: dict[str, dict[str, tuple[dict[str, object], bytes]]] = {}
        self.requests: list[str] = []
        self.hold: threading.Event | None = None
        #: Files that are served with other bytes than were announced, by their name.
        self.replaced: dict[str, bytes] = {}
        #: When npm packages were published, by name and version.
        self.times: dict[str, dict[str, str]] = {}
        #: Makes the files of a Python package that was not added, from its name.
        self.endless: Callable[[str], tuple[str, bytes] | None] | None = None
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.requests.append(self.path)
                if registry.hold is not None:
                    registry.hold.wait(30)
                    return
                body = registry.answer(urllib.parse.unquote(self.path).strip("/"))
                self.send_response(404 if body is None else 200)
                kind = "text/html" if self.path.startswith("/simple/") else "application/json"
                self.send_header("Content-Type", kind)
                self.send_header("Vary", "Accept")  # as registries say it: npm keeps the short and the whole apart
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body or b"")

            do_HEAD = do_GET

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> Registry:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def add(self, name: str, file: tuple[str, bytes]) -> None:
        self.python.setdefault(name, []).append(file)

    def publish(self, name: str, version: str, **fields: object) -> None:
        """Publish an npm package; `shrinkwrap` goes into its file and is announced in its metadata."""
        shrinkwrap = fields.pop("shrinkwrap", None)
        manifest = {"name": name, "version": version, **fields}
        files = {"package.json": json.dumps(manifest), "index.js": ""}
        if shrinkwrap is not None:
            files["npm-shrinkwrap.json"] = json.dumps(shrinkwrap)
            manifest = {**manifest, "_hasShrinkwrap": True}
        self.npm.setdefault(name, {})[version] = (manifest, tarball(files, "package"))

    def answer(self, path: str) -> bytes | None:
        first, _, rest = path.partition("/")
        if first == "simple":
            if rest not in self.python and self.endless is not None and (made := self.endless(rest)):
                self.add(rest, made)
            files = self.python.get(rest)
            links = [f'<a href="/f/{n}#sha256={hashlib.sha256(d).hexdigest()}">{n}</a>' for n, d in files or ()]
            return "".join(links).encode() if files else None
        if first == "f" and rest in self.replaced:
            return self.replaced[rest]
        if first == "f":
            return next((d for files in self.python.values() for n, d in files if n == rest), None)
        if path in self.npm:
            versions = {}
            for version, (manifest, data) in self.npm[path].items():
                integrity = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
                dist = {"tarball": f"{self.url}/{path}/-/{version}.tgz", "integrity": integrity}
                versions[version] = {**manifest, "dist": dist}
            tags = {"latest": max(versions)}
            document = {"name": path, "dist-tags": tags, "versions": versions, "time": self.times.get(path, {})}
            return json.dumps(document).encode()
        name, separator, file = path.partition("/-/")
        if separator and name in self.npm:
            return self.replaced.get(name) or self.npm[name][file.removesuffix(".tgz")][1]
        return None

    def asked_for(self, word: str) -> list[str]:
        return [path for path in self.requests if word in path]
