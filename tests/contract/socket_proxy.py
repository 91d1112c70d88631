"""A unix socket that passes everything on to another one, until it is closed: an engine that can be lost."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path


class SocketProxy:
    """Runs in threads of its own; `close` breaks all connections and removes the socket."""

    def __init__(self, path: Path, behind: str) -> None:
        self._path = path
        self._behind = behind
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._lock = threading.Lock()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(64)

    @property
    def host(self) -> str:
        return f"unix://{self._path}"

    def __enter__(self) -> SocketProxy:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        for thread in self._threads:
            thread.join(10)

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._path.unlink()
            for one in (self._listener, *self._open):
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
                one.close()

    def _start(self, target: object, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.socket(socket.AF_UNIX)
                with self._lock:
                    self._open += [near, far]
                    if self._closed:
                        near.close()
                        far.close()
                        return
                far.connect(self._behind)
                self._start(self._move, near, far)
                self._start(self._move, far, near)

    def _move(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)
