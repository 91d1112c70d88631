"""Fetches plain files as pip would, and does nothing else with them: `python -m harness.acquisition.python.download`.

`pip download` runs the build backend of an sdist, so it can't be used for one. This child uses pip's own session
(its proxies, certificates and credentials) to write the bytes of each address to a file. Reads one `Order` as JSON on
stdin; prints nothing; ends with 1 and a line on stderr when a file can't be had.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from harness.model.base import Record


class Download(Record):
    """One file: where it is, the digest it must have, and where it goes."""

    url: str
    sha256: str
    path: str


class Order(Record):
    """All files of one call. `limit`: bytes for one file; `timeout`: seconds without an answer."""

    files: tuple[Download, ...]
    index_urls: tuple[str, ...] = ()
    trusted_hosts: tuple[str, ...] = ()
    certificates: str | None = None
    client_certificate: str | None = None
    limit: int
    timeout: int


def main() -> int:
    """Do the order on stdin."""
    from pip._internal.network.session import PipSession

    order = Order.model_validate_json(sys.stdin.buffer.read())
    session = PipSession(retries=2, trusted_hosts=order.trusted_hosts, index_urls=list(order.index_urls))
    if order.certificates:
        session.verify = order.certificates
    if order.client_certificate:
        session.cert = order.client_certificate
    session.auth.prompting = False
    for file in order.files:
        try:
            # No content coding: a server that compresses once more would change the digest.
            with session.get(
                file.url.split("#")[0], stream=True, timeout=order.timeout, headers={"Accept-Encoding": "identity"}
            ) as answer:
                answer.raise_for_status()
                _write(answer.raw, file, order.limit)
        except Exception as error:
            sys.stderr.write(f"{Path(file.path).name}: {error}\n")
            return 1
    return 0


def _write(source: object, file: Download, limit: int) -> None:
    digest, size = hashlib.sha256(), 0
    with Path(file.path).open("xb") as sink:
        while chunk := source.read(1 << 20):  # type: ignore[attr-defined]
            size += len(chunk)
            if size > limit:
                raise ValueError(f"it is larger than {limit} bytes")
            digest.update(chunk)
            sink.write(chunk)
    if digest.hexdigest() != file.sha256:
        raise ValueError("it is another file than the index announced")


if __name__ == "__main__":
    sys.exit(main())
