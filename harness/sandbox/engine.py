"""The Docker engine: connecting to it, calling it without blocking, and saying in one line what is wrong with it.

Every call of the SDK goes through `Engine.call`, in a worker thread. What the SDK and its HTTP client raise is
turned into `EngineError` here and nowhere else.
"""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread
import docker.errors
import requests.exceptions as http_errors  # noqa: TID251 - only to name what the SDK raises
from docker import APIClient
from docker.context import ContextAPI
from docker.errors import APIError, DockerException, NotFound

from harness.model.errors import EngineError

P = ParamSpec("P")
T = TypeVar("T")

DEFAULT_HOST = "unix:///var/run/docker.sock"
#: The engine's configuration and its first answer must come within this time.
CONNECT_SECONDS = 5
#: Bound on one call. Creating and starting took 0.2 s where it was measured; a loaded machine takes longer.
CALL_SECONDS = 60
#: How long a call that was begun is waited for when its caller is cancelled, and how often it is looked at.
CANCELLED_SECONDS = 10.0
POLL_SECONDS = 0.01
#: Worker threads for calls; waiting for containers has its own, so that many targets can't starve the engine.
CALL_THREADS = 16
WAIT_THREADS = 256

SET_UP = "run `harness doctor --fix`, or set DOCKER_HOST to an engine that runs"


class EngineNotFound(EngineError):
    """The engine answers, and has no such container, volume or image."""


class EngineConflict(EngineError):
    """The engine answers, and the object is in use or the name is taken."""


class EngineTimeout(EngineError):
    """The engine took longer over one call than the call's bound."""


class Engine:
    """A connection to a Docker engine; an async context manager.

    `host` is a Docker host URL (`unix://`, `tcp://`); by default DOCKER_HOST, else the current Docker context's,
    else the well-known socket. Entering raises `EngineError` when no engine answers within 5 s.
    """

    def __init__(self, host: str | None = None) -> None:
        self.host = host or find_host()
        self._api: APIClient | None = None
        self._calls = anyio.CapacityLimiter(CALL_THREADS)
        self._waits = anyio.CapacityLimiter(WAIT_THREADS)
        self._facts: dict[str, str] | None = None
        self._paths: dict[str, str] = {}

    async def __aenter__(self) -> Engine:
        self._api = await self._threaded(self._calls, True, _connect, self.host)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._api is not None:
            self._api.close()

    @property
    def api(self) -> APIClient:
        """The SDK's low-level client; call its methods through `call` only."""
        if self._api is None:
            raise EngineError("the engine was used before it was connected")
        return self._api

    async def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run one SDK call in a thread and return its result.

        A call that was begun is finished even when the caller is cancelled, so that what it made is known.
        Raises `EngineNotFound`, `EngineConflict` or another `EngineError`.
        """
        begun, done = threading.Event(), threading.Event()

        def whole() -> T:
            begun.set()
            try:
                return function(*args, **kwargs)
            finally:
                done.set()

        try:
            return await self._threaded(self._calls, False, whole)
        except anyio.get_cancelled_exc_class():
            # Ctrl-C cancels the task itself, and a shielded scope does not hold that off.
            with anyio.CancelScope(shield=True), anyio.move_on_after(CANCELLED_SECONDS):
                await anyio.sleep(POLL_SECONDS)
                while begun.is_set() and not done.is_set():  # noqa: ASYNC110 - set by a thread
                    await anyio.sleep(POLL_SECONDS)
            raise

    async def ask(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Like `call`, for calls that change nothing or whose result nobody needs: cancellation abandons the thread."""
        return await self._threaded(self._calls, True, function, *args, **kwargs)

    async def wait(self, container: str) -> int:
        """Wait for a container's end and return its exit code.

        Asked in slices of ten seconds, so that an abandoned thread is soon gone. Raises as `call` does.
        """
        while True:
            try:
                answer = await self._threaded(self._waits, True, partial(self.api.wait, container, timeout=10))
            except EngineTimeout:
                continue
            return int(answer["StatusCode"])

    async def image_path(self, image: str) -> str:
        """The PATH that an image sets, or the usual one."""
        if image not in self._paths:
            config = (await self.ask(self.api.inspect_image, image)).get("Config") or {}
            variables = dict(item.partition("=")[::2] for item in config.get("Env") or [])
            self._paths[image] = variables.get("PATH") or "/usr/local/bin:/usr/bin:/bin"
        return self._paths[image]

    async def facts(self) -> dict[str, str]:
        """Name, version, kernel and isolation features of the engine, for the manifest and `doctor`; asked once."""
        if self._facts is None:
            version = await self.ask(self.api.version)
            info = await self.ask(self.api.info)
            self._facts = _facts(self.host, version, info)
        return dict(self._facts)

    async def _threaded(
        self, limiter: anyio.CapacityLimiter, abandon: bool, function: Callable[..., T], /, *args: Any, **kwargs: Any
    ) -> T:
        try:
            return await anyio.to_thread.run_sync(
                partial(function, *args, **kwargs), abandon_on_cancel=abandon, limiter=limiter
            )
        except (DockerException, http_errors.RequestException, OSError) as error:
            # A call that failed while we were being cancelled most likely failed because of it.
            await anyio.lowlevel.checkpoint_if_cancelled()
            raise translate(error, self.host) from error


def find_host() -> str:
    """The engine's address: DOCKER_HOST, else the current Docker context's, else the well-known socket."""
    if host := os.environ.get("DOCKER_HOST"):
        return host
    try:
        context = ContextAPI.get_current_context()
        host = context.Host if context.Name != "default" else None
    except (DockerException, OSError, ValueError, TypeError):  # a damaged client configuration is not our business
        host = None
    return host or DEFAULT_HOST


def _connect(host: str) -> APIClient:
    """Connect and negotiate the API version. Blocking; raises what the SDK raises, or `EngineError`."""
    if host.startswith("ssh://"):
        raise EngineError(
            "an engine behind ssh:// can't be used",
            remedy="forward its socket with `ssh -L` and set DOCKER_HOST to the forwarded socket",
        )
    if os.environ.get("DOCKER_TLS_VERIFY"):
        raise EngineError(
            "an engine behind TLS can't be used", remedy="use its unix socket and unset DOCKER_TLS_VERIFY"
        )
    if host.startswith("unix://"):
        # Tried with a socket of our own first: the SDK forgets to close its one when nobody listens.
        with socket.socket(socket.AF_UNIX) as trial:
            trial.settimeout(CONNECT_SECONDS)
            trial.connect(host.removeprefix("unix://"))
    client = APIClient(base_url=host, version="auto", timeout=CONNECT_SECONDS, max_pool_size=CALL_THREADS)
    client.timeout = CALL_SECONDS
    return client


def translate(error: BaseException, host: str) -> EngineError:
    """Turn an error of the SDK, its HTTP client or the socket into an `EngineError` that says what to do."""
    if isinstance(error, EngineError):
        return error
    if isinstance(error, APIError):
        kind = EngineNotFound if isinstance(error, NotFound) else EngineError
        if error.response is not None and error.response.status_code == 409:
            kind = EngineConflict
        explanation = " ".join(str(error.explanation or error).split())[:400]
        return kind(f"the Docker engine refused: {explanation}")
    causes = list(_causes(error))
    numbers = {cause.errno for cause in causes if isinstance(cause, OSError)}
    if numbers & {errno.EACCES, errno.EPERM}:
        return EngineError(
            f"no permission to use the Docker engine at {host}",
            remedy="add your user to the `docker` group and log in again",
        )
    if numbers & {errno.ENOENT, errno.ECONNREFUSED}:
        return EngineError(f"no Docker engine answers at {host}", remedy=SET_UP)
    if any(isinstance(cause, (http_errors.Timeout, TimeoutError)) for cause in causes):
        return EngineTimeout(
            f"the Docker engine at {host} did not answer in time", remedy="look at its log, or start it again"
        )
    if any(
        isinstance(cause, (http_errors.ConnectionError, http_errors.ChunkedEncodingError, ConnectionError))
        for cause in causes
    ):
        return EngineError(f"the Docker engine at {host} went away", remedy="start it again and repeat the run")
    text = " ".join(str(error).split())[:400]
    if isinstance(error, docker.errors.TLSParameterError | docker.errors.InvalidVersion | DockerException):
        return EngineError(f"the Docker engine at {host} can't be used: {text}", remedy=SET_UP)
    return EngineError(f"the connection to the Docker engine failed: {text}", remedy=SET_UP)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """All errors behind `error`: causes, contexts, and those that HTTP libraries carry in their arguments."""
    seen: set[int] = set()
    queue: list[BaseException] = [error]
    while queue:
        current = queue.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        queue += [e for e in (current.__cause__, current.__context__) if e is not None]
        queue += [argument for argument in current.args if isinstance(argument, BaseException)]


def _facts(host: str, version: dict[str, Any], info: dict[str, Any]) -> dict[str, str]:
    return {
        "name": "docker",
        "host": host.partition("://")[0],
        "version": str(version.get("Version", "")),
        "api": str(version.get("ApiVersion", "")),
        "kernel": str(info.get("KernelVersion", "")),
        "os": str(info.get("OperatingSystem", "")),
        "arch": str(info.get("Architecture", "")),
        "cgroup_version": str(info.get("CgroupVersion", "1")),
        "cgroup_driver": str(info.get("CgroupDriver", "")),
        "storage_driver": str(info.get("Driver", "")),
        "security": ",".join(sorted(str(option) for option in info.get("SecurityOptions") or [])),
        "runtimes": ",".join(sorted(info.get("Runtimes") or {})),
        "default_runtime": str(info.get("DefaultRuntime", "")),
        "limits": ",".join(name for name in ("MemoryLimit", "SwapLimit", "PidsLimit", "CpuCfsQuota") if info.get(name)),
        "root": str(info.get("DockerRootDir", "")),
        "cpus": str(info.get("NCPU", "")),
        "memory": str(info.get("MemTotal", "")),
    }
