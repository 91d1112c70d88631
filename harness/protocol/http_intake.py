"""Who takes in the answers over HTTP: a task for each, so many at a time, for as long as the session receives."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc

#: Answers that are taken in at a time; then the oldest is given up.
MOST_OPEN = 32


class Intake:
    """Tasks that outlive the sending of a request and not the session. `begun` is set once they can be started."""

    def __init__(self) -> None:
        self.begun = anyio.Event()
        self._tasks: anyio.abc.TaskGroup | None = None
        self._open: list[anyio.CancelScope] = []
        self._some_over = anyio.Event()

    @asynccontextmanager
    async def receiving(self) -> AsyncIterator[None]:
        """Tasks can be started until the context is left, which ends those that still run."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            self.begun.set()
            try:
                yield
            finally:
                self._tasks = None  # from here on: a group that has ended takes no task any more
                tasks.cancel_scope.cancel()

    def beside(self, task: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Run `task` beside everything else; False, and nothing is run, when nothing more is received."""
        if self._tasks is None:
            return False
        self._tasks.start_soon(task)
        return True

    def take(self, answer: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """As `beside`, for an answer: of those, at most `MOST_OPEN` are open."""

        async def bounded() -> None:
            with anyio.CancelScope() as scope:
                self._open.append(scope)
                try:
                    await answer()
                finally:
                    if scope in self._open:
                        self._open.remove(scope)
                    self._some_over.set()
                    self._some_over = anyio.Event()

        if len(self._open) >= MOST_OPEN and self._tasks is not None:
            self._open.pop(0).cancel()
        return self.beside(bounded)

    async def drained(self) -> None:
        """Return when no answer is open."""
        while self._open:
            await self._some_over.wait()
