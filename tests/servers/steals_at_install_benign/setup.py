"""Reads its own settings and what it is built on; the twin of a package that looks for keys and sends them away."""

import os
import sysconfig
from contextlib import suppress
from pathlib import Path

from setuptools import setup

print(sysconfig.get_platform(), os.environ.get("CFLAGS", ""))
for place in ("pyproject.toml", ".aws/settings"):
    with suppress(OSError):
        print(len(Path(place).read_bytes()))

setup()
