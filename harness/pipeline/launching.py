"""Whose fault it is when a target can't be launched: a broken engine's, or the target's that breaks it each time.

A failure of the engine says nothing about a target. But one that comes three times in a row at the same point, while
the engine launches something else, is the target's doing, and is told as such instead of being retried for ever.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import anyio

from harness.model.errors import EngineError, TargetError
from harness.sandbox.base import LaunchSpec, Sandbox, SandboxedProcess

TRIES = 3
#: Failures as slow as this are not waited for again: a sandbox that does not start in time takes 30 s to say so.
SLOW_SECONDS = 20.0

#: Something that every sandbox image can try to start; that it is missing would be its exit code, and a launch.
CONTROL = ("true",)


@asynccontextmanager
async def launched(sandbox: Sandbox, spec: LaunchSpec) -> AsyncIterator[SandboxedProcess]:
    """Launch `spec` as `Sandbox.launch` does. Failures inside the body are passed on.

    Raises EngineError when the engine fails the control too, or fails differently; TargetError when only this target
    can't be launched.
    """
    async with AsyncExitStack() as stack:
        yield await _enter(sandbox, spec, stack)


async def _enter(sandbox: Sandbox, spec: LaunchSpec, stack: AsyncExitStack) -> SandboxedProcess:
    began = anyio.current_time()
    first: EngineError | None = None
    for _ in range(TRIES):
        try:
            return await stack.enter_async_context(sandbox.launch(spec))
        except EngineError as error:
            if first is not None and error.message != first.message:
                raise
            first = first or error
            if anyio.current_time() - began > SLOW_SECONDS:
                raise
    assert first is not None
    try:
        async with sandbox.launch(spec.model_copy(update={"argv": CONTROL, "environment": {}, "seed": {}})):
            pass
    except EngineError:
        raise first from None
    raise TargetError(
        f"the sandbox can't be started with it, {TRIES} times in a row, and can with another program: {first.message}"
    )


def target_errors(error: BaseException) -> tuple[TargetError, ...]:
    """The errors in a group, or the one that it is, if all of them are the target's; else none."""
    if isinstance(error, TargetError):
        return (error,)
    if not isinstance(error, BaseExceptionGroup):
        return ()
    parts = [target_errors(inner) for inner in error.exceptions]
    return tuple(found for part in parts for found in part) if all(parts) else ()
