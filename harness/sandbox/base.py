"""The sandbox as the pipeline sees it: install a plan, launch a process, mark phases, learn how it ended.

Every implementation passes the conformance suite in tests/contract. A command that fails inside is a result
(`InstallOutcome`, `ExitReport`); only a broken sandbox raises (`EngineError`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Literal, Protocol

import anyio.abc

from harness.model.base import Record
from harness.model.flow import FlowEvent, GatewayEndEvent
from harness.model.network import CannedAnswer
from harness.model.options import Limits, NetworkChoice
from harness.model.recording import Event, ImageFact, RecorderEndEvent
from harness.model.target import ImageConfig, InstallPlan
from harness.model.world import PlantedHost
from harness.sandbox.install_record import InstallRecord

#: Where things lie inside a target's container.
APP = "/app"
#: Where it lies where a copy of it stands at `APP`.
SEALED_APP = "/sealed"
HOME = "/home/user"
WORKSPACE = "/home/user/workspace"


class StepReport(Record):
    """One step of an install: its argument vector, exit code, and the bounded tail of what it printed."""

    argv: tuple[str, ...]
    code: int
    output: str


class InstalledTarget(Record):
    """A sealed volume with everything below /app, and the record of the install that made it.

    `cached` is True when this run found it ready; `steps` and `record` are then those of the run that made it.
    """

    volume: str
    image: ImageFact
    steps: tuple[StepReport, ...]
    cached: bool
    seconds: float
    record: InstallRecord | None = None


class InstallFailed(Record):
    """The install ended with a failing step (the last of `steps`), or ran out of time (`timed_out`)."""

    steps: tuple[StepReport, ...]
    timed_out: bool
    seconds: float
    record: InstallRecord | None = None


class LaunchSpec(Record):
    """One process to start. `argv[0]` is looked up on the image's PATH and in /app/bin.

    `seed` maps paths below HOME to file contents, unpacked by the gate before the process starts; those in
    `executables` may be run, and `links` maps paths to what symbolic links there point to. With `foreign`, that image
    is started instead of the sandbox image `image`, and `volume` holds the gate. With `record`, a recorder sees every
    system call from the first on; its events carry `session`, and times in nanoseconds since `epoch` (CLOCK_MONOTONIC).
    `path_after` are folders for the end of PATH. `stealth`: a network namespace of its own, with a plausible interface.
    `days_ahead`: so far ahead is the time of day that programs read who ask the C library, not with `foreign`.
    `unsealed`: at /app stands a copy of what is installed, in memory, to which the process can write; not with
    `foreign`.
    """

    image: str
    volume: str | None
    argv: tuple[str, ...]
    environment: dict[str, str] = {}
    workdir: str = WORKSPACE
    seed: dict[str, bytes] = {}
    executables: frozenset[str] = frozenset()
    links: dict[str, str] = {}
    path_after: tuple[str, ...] = ()
    foreign: ImageConfig | None = None
    limits: Limits = Limits()
    runtime: str | None = None
    deadline_seconds: float = 300.0
    record: bool = False
    session: str = "main"
    epoch: int = 0
    network: NetworkChoice = NetworkChoice.NONE
    stealth: bool = False
    days_ahead: int = 0
    unsealed: bool = False
    authority: str = ""
    decoys: dict[str, str] = {}
    hosts: tuple[PlantedHost, ...] = ()
    answers: tuple[CannedAnswer, ...] = ()


class ExitReport(Record):
    """How the process ended; `code` is None when it was ended by `signal` or the engine lost it."""

    code: int | None
    signal: int | None
    oom_killed: bool
    ended_by: Literal["target", "harness", "deadline", "engine"]
    memory_peak_bytes: int | None = None


class KernelRecording(Protocol):
    """The record of a process's system calls, while it is made."""

    def batches(self) -> AsyncIterator[list[Event]]:
        """The kernel events in order, some at a time. Must be read, by one reader, for the recording to go on."""
        ...

    async def stop(self) -> RecorderEndEvent:
        """End the recording; what it says of itself. Never raises. `batches` must be read meanwhile, and ends then."""
        ...


class SeenFlow(Protocol):
    """A flow and the bytes that its event points to, by SHA-256."""

    @property
    def event(self) -> FlowEvent: ...

    @property
    def blobs(self) -> Mapping[str, bytes]: ...


class NetworkRecording(Protocol):
    """The record of a process's network flows, while it is made."""

    def flows(self) -> AsyncIterator[SeenFlow]:
        """The flows as they end. Must be read, by one reader, for the fake internet to go on."""
        ...

    async def connect(self, port: int) -> anyio.abc.ByteStream:
        """A connection to what the process serves on a TCP port of its loopback: back-pressured, ends with the network.

        Raises `ConnectionRefusedError` when nobody listens there, `EngineError` when the network is gone.
        """
        ...

    @property
    def relayed(self) -> AbstractSet[tuple[str, str, str]]:
        """Protocol, local and remote end of each connection that `connect` made: ours, not the target's."""
        ...

    async def stop(self, capture: Path | None = None) -> GatewayEndEvent:
        """End it, with the packets in the new file `capture`; what it says of itself. Never raises.

        `flows` must be read meanwhile, and ends then.
        """
        ...


class SandboxedProcess(Protocol):
    """A target's process behind the gate. Streams are raw bytes; bounding them is the reader's business."""

    @property
    def stdin(self) -> anyio.abc.ByteSendStream: ...

    @property
    def stdout(self) -> anyio.abc.ByteReceiveStream: ...

    @property
    def stderr(self) -> anyio.abc.ByteReceiveStream: ...

    @property
    def image(self) -> ImageFact: ...

    @property
    def recording(self) -> KernelRecording | None:
        """The record of what it does; None when the launch did not ask for one."""
        ...

    @property
    def network(self) -> NetworkRecording | None:
        """The record of its flows; None when the launch asked for no network."""
        ...

    async def mark(self, phase: str, nonce: str) -> None:
        """Have the warden make the phase mark inside the target's pid namespace."""
        ...

    async def peak_memory(self) -> int | None:
        """The most memory in bytes that all its processes had at once so far; None where that can't be known."""
        ...

    async def wait(self) -> ExitReport:
        """Wait for the process to end. Raises EngineError when the engine is gone."""
        ...

    async def stop(self, grace_seconds: float) -> ExitReport:
        """Close stdin, wait at most `grace_seconds`, then kill everything in its pid namespace."""
        ...


class Sandbox(Protocol):
    """A place where untrusted code runs without a network interface."""

    async def engine_facts(self) -> Mapping[str, str]:
        """Name, version, kernel, cgroup version and security options of the engine, for the manifest."""
        ...

    async def image(self, reference: str) -> ImageConfig:
        """What the engine knows of a target's own image. Raises UsageError when it has none of that name."""
        ...

    async def install(
        self, plan: InstallPlan, *, timeout: float, limits: Limits, record: bool = False
    ) -> InstalledTarget | InstallFailed:
        """Install into a labelled volume keyed by plan and image, or return the sealed one that exists.

        With `record`, the system calls of the install are recorded, and only an install that was counts as existing.
        """
        ...

    async def prepare_recorder(self) -> None:
        """Begin to start a recorder ahead of the next launch that asks for a record, without waiting for it."""
        ...

    async def prepare_network(self, launches: int = 1) -> None:
        """Begin to make fake internets ahead of that many launches that ask for one, without waiting for them."""
        ...

    async def prepare(self, spec: LaunchSpec) -> None:
        """Begin to make what `launch` needs for `spec`, up to the closed gate, without waiting for it.

        A later launch takes it that differs at most in who it is, what is planted and how the network answers, and
        whose deadline is the same moment. What no launch takes is gone with the sandbox.
        """
        ...

    async def use_strace(self) -> str | None:
        """Record with strace from now on; why that can't be, or None. Launches and installs that record use it."""
        ...

    async def recorder_problem(self) -> str | None:
        """Why no recorder can be made, or None; waits for one to start unless it is known to work here."""
        ...

    def launch(self, spec: LaunchSpec) -> AbstractAsyncContextManager[SandboxedProcess]:
        """Create gate, warden and recorder, open the gate, yield the running process; nothing of it runs at exit.

        Nothing is left either, unless the process was stopped and the body came to its end: then the rest is removed
        while others go on, and is gone with the sandbox.
        Raises `RecorderUnavailable` (an `EngineError`) for a launch that asks for a record where none can be made.
        """
        ...
