"""What a long piece of work tells about itself while it goes on; the command line shows it on stderr."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told of phases, of steps inside them, and of what must not be missed. Implementations must not block or fail."""

    def phase(self, name: str) -> None: ...

    def note(self, text: str) -> None: ...

    def warn(self, text: str) -> None: ...


class Silent:
    """Shows nothing."""

    def phase(self, name: str) -> None:
        """Ignore."""

    def note(self, text: str) -> None:
        """Ignore."""

    def warn(self, text: str) -> None:
        """Ignore."""
