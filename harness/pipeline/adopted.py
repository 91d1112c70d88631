"""A child that was begun without an event loop (see `early`), as the process that the loop would have started."""

from __future__ import annotations

from signal import SIGKILL, SIGTERM, Signals

import anyio
import anyio.abc
import anyio.to_thread

from harness.pipeline import early


class AdoptedProcess(anyio.abc.Process):
    """Made by `adopt`. What `anyio.open_process` gives, with sockets for pipes."""

    def __init__(
        self,
        begun: early.Begun,
        stdin: anyio.abc.ByteSendStream,
        stdout: anyio.abc.ByteReceiveStream,
        stderr: anyio.abc.ByteReceiveStream | None,
    ) -> None:
        self._process = begun.process
        self._stdin, self._stdout, self._stderr = stdin, stdout, stderr

    async def aclose(self) -> None:
        """Close its streams, and wait for its end; killed where that is cancelled."""
        with anyio.CancelScope(shield=True):
            for stream in (self._stdin, self._stdout, self._stderr):
                if stream is not None:
                    await stream.aclose()
        try:
            await self.wait()
        except BaseException:
            self.kill()
            raise

    async def wait(self) -> int:
        return await anyio.to_thread.run_sync(self._process.wait, abandon_on_cancel=True)

    def terminate(self) -> None:
        self.send_signal(SIGTERM)

    def kill(self) -> None:
        self.send_signal(SIGKILL)

    def send_signal(self, signal: Signals) -> None:
        self._process.send_signal(signal)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.poll()

    @property
    def stdin(self) -> anyio.abc.ByteSendStream:
        return self._stdin

    @property
    def stdout(self) -> anyio.abc.ByteReceiveStream:
        return self._stdout

    @property
    def stderr(self) -> anyio.abc.ByteReceiveStream | None:
        return self._stderr


async def adopt(command: tuple[str, ...]) -> AdoptedProcess | None:
    """The child that was begun ahead with this command; None where there is none, or none any more."""
    begun = early.take(command)
    if begun is None:
        return None
    streams = [
        await anyio.abc.UNIXSocketStream.from_socket(end)
        for end in (begun.stdin, begun.stdout, begun.stderr)
        if end is not None
    ]
    return AdoptedProcess(begun, streams[0], streams[1], streams[2] if len(streams) > 2 else None)
