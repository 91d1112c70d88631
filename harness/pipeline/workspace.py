"""The planted workspace behind `{workspace}`, and placeholders in arguments and environment.

Minimal for now: a few plain files that a file server can list and read. It is unpacked by the gate into the
target's own memory-backed home, so nothing of it ever lies on this machine.
"""

from __future__ import annotations

from collections.abc import Callable

#: Below the target's home; `{workspace}` in arguments and environment stands for it.
WORKSPACE = "/home/user/workspace"

_FILES: dict[str, str] = {
    "workspace/README.md": "# Notes\n\nA small project. See `src/greeting.py` and the figures in `data/sales.csv`.\n",
    "workspace/todo.txt": "- reply to Sam\n- check the figures for March\n- book the room\n",
    "workspace/data/sales.csv": "month,units,revenue\n2026-01,120,2400.00\n2026-02,98,1960.00\n2026-03,143,2860.00\n",
    "workspace/data/settings.json": '{"currency": "EUR", "round": 2, "regions": ["north", "south"]}\n',
    "workspace/src/greeting.py": 'def greet(name: str) -> str:\n    """Say hello."""\n    return f"Hello, {name}!"\n',
}


def planted_files() -> dict[str, bytes]:
    """Paths below the home directory, and what is in them."""
    return {path: text.encode() for path, text in _FILES.items()}


def fill(text: str, token: Callable[[], str]) -> str:
    """Replace `{workspace}` and `{canary}` in an argument or a value; each `{canary}` gets a fresh `token()`."""
    text = text.replace("{workspace}", WORKSPACE)
    while "{canary}" in text:
        text = text.replace("{canary}", token(), 1)
    return text
