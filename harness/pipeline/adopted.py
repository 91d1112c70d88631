"""A child that was begun without an event loop (see `early`), as the process that the loop would have started."""

from __future__ import annotations

import socket
from signal import SIGKILL, SIGTERM, Signals

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.to_thread

from harness.pipeline import early


class _End:
    """Our end of one of its standard streams. anyio's own stream over a socket reports an error of the loop's when it
    is cancelled in the moment in which something arrives; waiting for the descriptor does not.
    """

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._end = end

    async def aclose(self) -> None:
        if self._end.fileno() >= 0:
            anyio.notify_closing(self._end)
            self._end.close()
        await anyio.lowlevel.checkpoint()

    def _problem(self, error: OSError) -> Exception:
        closed = self._end.fileno() < 0
        return anyio.ClosedResourceError() if closed else anyio.BrokenResourceError(str(error))


class _Output(_End, anyio.abc.ByteReceiveStream):
    """What it writes."""

    async def receive(self, max_bytes: int = 65536) -> bytes:
        await anyio.lowlevel.checkpoint()
        while True:
            try:
                data = self._end.recv(max_bytes)
            except BlockingIOError:
                await anyio.wait_readable(self._end)
                continue
            except ConnectionResetError:  # it died with something unread
                raise anyio.EndOfStream from None
            except OSError as error:
                raise self._problem(error) from error
            if not data:
                raise anyio.EndOfStream
            return data


class _Input(_End, anyio.abc.ByteSendStream):
    """What it reads."""

    async def send(self, item: bytes) -> None:
        await anyio.lowlevel.checkpoint()
        rest = memoryview(item)
        while rest:
            try:
                rest = rest[self._end.send(rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self._end)
            except OSError as error:
                raise self._problem(error) from error


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
    await anyio.lowlevel.checkpoint()
    stderr = _Output(begun.stderr) if begun.stderr is not None else None
    return AdoptedProcess(begun, _Input(begun.stdin), _Output(begun.stdout), stderr)
