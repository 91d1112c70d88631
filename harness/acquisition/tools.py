"""Running the package managers: a clean environment, bounded output, a time limit, and errors without secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE  # noqa: TID251 - only the constant; processes are started through anyio
from typing import NamedTuple

import anyio
from anyio.abc import ByteReceiveStream

from harness.acquisition.limits import TOOL_ERROR_BYTES, TOOL_OUTPUT_BYTES, TOOL_SECONDS
from harness.model.errors import HarnessError, RegistryError

#: What a package manager needs of the user's environment; everything else could change what is resolved.
_KEPT = (
    "HOME",
    "PATH",
    "NETRC",
    "LANG",
    "TMPDIR",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
)

#: Where distributions keep the bundle of all trusted certificates.
_CA_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


class ToolResult(NamedTuple):
    """How a tool ended: exit code, standard output, and standard error (both bounded)."""

    code: int
    output: bytes
    error: str


def clean_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The environment for a package manager: what it needs of the user's, plus `extra`."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, "NO_COLOR": "1", **extra}


def system_ca_bundle() -> str | None:
    """The file of trusted certificates that the user's environment names, or the distribution's; None without one."""
    named = (os.environ.get(name) for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"))
    for path in (*named, *_CA_BUNDLES):
        if path and Path(path).is_file():
            return path
    return None


async def run_tool(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    cwd: Path,
    stdin: bytes = b"",
    seconds: float = TOOL_SECONDS,
) -> ToolResult:
    """Run one package manager command and return how it ended.

    Raises RegistryError when it takes longer than `seconds`, HarnessError when it can't be started or prints
    without end. On cancellation the process is killed.
    """
    try:
        process = await anyio.open_process(
            list(argv), stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=cwd, env=dict(environment), start_new_session=True
        )
    except OSError as error:
        raise HarnessError(f"{argv[0]} could not be started: {error.strerror}") from error
    output, errors = bytearray(), bytearray()
    name = Path(argv[0]).name
    try:
        with anyio.fail_after(seconds):
            async with process:
                assert process.stdin and process.stdout and process.stderr
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(_collect, process.stdout, output, TOOL_OUTPUT_BYTES)
                    tasks.start_soon(_collect_tail, process.stderr, errors, TOOL_ERROR_BYTES)
                    # A tool that ends without reading tells why by its exit code.
                    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
                        await process.stdin.send(stdin)
                    await process.stdin.aclose()
                code = await process.wait()
    except TimeoutError:
        raise RegistryError(
            f"{name} got no complete answer from the package registry within {seconds:.0f} s",
            remedy="check the network and the registry settings, and try again",
        ) from None
    if len(output) > TOOL_OUTPUT_BYTES:
        raise HarnessError(f"{name} printed more than {TOOL_OUTPUT_BYTES} bytes")
    return ToolResult(code, bytes(output), redact(errors.decode("utf-8", "replace")))


async def _collect(stream: ByteReceiveStream, into: bytearray, limit: int) -> None:
    """Read `stream` to its end, keeping one byte more than `limit` at most."""
    async for chunk in stream:
        if len(into) <= limit:
            into += chunk[: limit + 1 - len(into)]


async def _collect_tail(stream: ByteReceiveStream, into: bytearray, limit: int) -> None:
    """Read `stream` to its end, keeping its last `limit` bytes: what went wrong is said last."""
    async for chunk in stream:
        into += chunk
        if len(into) > 2 * limit:
            del into[:-limit]
    del into[:-limit]


def redact(text: str) -> str:
    """`text` without the user names, passwords and tokens that URLs and settings may carry."""
    text = re.sub(r"(?<=://)[^/\s@]*@", "", text)
    return re.sub(r"(?i)((?:_auth\w*|password|token|authorization)[\"']?\s*[=:]\s*)\S+", r"\1…", text)


def summary(text: str, limit: int = 300) -> str:
    """The gist of a tool's complaint in one line of at most `limit` characters."""
    line = " ".join(re.sub(r"^\s*(npm )?(error:?|cause:)\s*", "", part) for part in text.split("\n") if part.strip())
    line = re.sub(r"\s+", " ", line).strip()
    return line if len(line) <= limit else line[: limit - 1] + "…"
