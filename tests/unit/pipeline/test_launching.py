"""Whose fault a failed launch is: the engine's when it fails at other things too, the target's when only at this."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from harness.model.errors import EngineError, TargetError
from harness.pipeline.launching import CONTROL, TRIES, launched, target_errors
from harness.sandbox.base import LaunchSpec, Sandbox, SandboxedProcess

pytestmark = pytest.mark.anyio

SPEC = LaunchSpec(image="python313", volume=None, argv=("server",), environment={"A": "b"}, seed={"x": b"y"})


class Fragile:
    """A sandbox whose launches fail with these messages in turn ("" succeeds); the last one goes on for ever."""

    def __init__(self, *target: str, control: str = "") -> None:
        self._target = list(target)
        self._control = control
        self.launches: list[LaunchSpec] = []

    @asynccontextmanager
    async def launch(self, spec: LaunchSpec) -> AsyncIterator[SandboxedProcess]:
        self.launches.append(spec)
        if spec.argv == CONTROL:
            message = self._control
        else:
            message = self._target.pop(0) if len(self._target) > 1 else self._target[0]
        if message:
            raise EngineError(message, remedy="do something")
        yield cast("SandboxedProcess", "process")


async def launch(sandbox: Fragile) -> Any:
    async with launched(cast("Sandbox", sandbox), SPEC) as process:
        return process


async def test_a_launch_that_works_is_made_once() -> None:
    sandbox = Fragile("")
    assert await launch(sandbox) == "process"
    assert sandbox.launches == [SPEC]


async def test_a_failure_that_passes_is_forgotten() -> None:
    sandbox = Fragile("busy", "busy", "")
    assert await launch(sandbox) == "process"


async def test_what_fails_for_this_target_only_is_the_targets() -> None:
    sandbox = Fragile("too long")
    with pytest.raises(TargetError, match="3 times in a row.*too long"):
        await launch(sandbox)
    assert [spec.argv for spec in sandbox.launches] == [SPEC.argv] * TRIES + [CONTROL]
    assert (sandbox.launches[-1].environment, sandbox.launches[-1].seed) == ({}, {})


@pytest.mark.parametrize("target", [("gone",), ("one", "another")])
async def test_what_fails_for_others_too_or_differently_is_the_engines(target: tuple[str, ...]) -> None:
    with pytest.raises(EngineError, match=target[-1]):
        await launch(Fragile(*target, control="gone"))


async def test_a_failure_of_the_body_is_passed_on() -> None:
    sandbox = Fragile("")
    with pytest.raises(EngineError, match="of the body"):
        async with launched(cast("Sandbox", sandbox), SPEC):
            raise EngineError("of the body")
    assert len(sandbox.launches) == 1


def test_groups_are_the_targets_only_when_all_in_them_is() -> None:
    one, other = TargetError("one"), TargetError("other")
    assert target_errors(one) == (one,)
    assert target_errors(ExceptionGroup("", [one, ExceptionGroup("", [other])])) == (one, other)
    assert target_errors(ExceptionGroup("", [one, EngineError("x")])) == ()
    assert target_errors(ValueError()) == ()
