"""Where a layer of a connection leads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Place:
    """`host` as the client named it last, the port, and the `address` that the connection was made to."""

    host: str
    port: int
    address: str = ""
