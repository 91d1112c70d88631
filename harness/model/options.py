"""What the operator asked for, and the bounds of a run. Units are in the names or the comments.

Defaults are interface.md's, or come from the measurements in the design notes where a comment says so.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from harness.model.base import Record
from harness.model.network import CannedAnswer


class ActiveLevel(StrEnum):
    """How much is sent to the target (verdict.md)."""

    NONE = "none"
    SAFE = "safe"
    TOOL_CALLS = "tool-calls"


class Transport(StrEnum):
    """How the target is spoken to."""

    STDIO = "stdio"
    HTTP = "http"


class RecorderChoice(StrEnum):
    """What records system calls: the best that works, one of them or no run at all, or nothing by choice."""

    AUTO = "auto"
    EBPF = "ebpf"
    STRACE = "strace"
    NONE = "none"


class NetworkChoice(StrEnum):
    """What the fake internet does: it answers, it refuses every attempt, or there is none at all (no gateway)."""

    ANSWER = "answer"
    REFUSE = "refuse"
    NONE = "none"


class Limits(Record):
    """Bounds on everything that a target can make grow. Sizes in bytes, times in seconds."""

    line_bytes: int = 4 << 20
    stdout_bytes: int = 64 << 20
    stderr_bytes: int = 1 << 20
    messages: int = 200_000
    json_depth: int = 64
    json_values: int = 250_000  # of a line, and of all lists together: parsed, each takes up to 100 bytes
    pages: int = 100
    items: int = 10_000
    cursor_bytes: int = 4096
    surface_bytes: int = 8 << 20  # of all lists together
    queued_server_requests: int = 32
    frame_keep_bytes: int = 1 << 20
    bundle_message_bytes: int = 64 << 20
    memory_bytes: int = 1 << 30
    pids: int = 256
    cpus: float = 1.0
    open_files: int = 1024
    tmpfs_bytes: int = 256 << 20
    kernel_events: int = 2_000_000
    analyzer_seconds: float = 60.0
    analyzer_memory_bytes: int = 1 << 30


class PlantedFile(Record):
    """A file that the operator plants with `--file`: its place below the workspace, and what it is.

    `link` is the target of a symbolic link, else `data` (not written down) is the content with this SHA-256.
    """

    path: str
    sha256: str = ""
    size: int = 0
    executable: bool = False
    link: str | None = None
    data: bytes = Field(default=b"", exclude=True, repr=False)


class RunOptions(Record):
    """The options of one run that change what is done or how it is judged; secrets are already redacted."""

    active: ActiveLevel = ActiveLevel.NONE
    allow: tuple[str, ...] = ()
    entry: str | None = None
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = Field(default={}, description="values given with --env are redacted")
    transport: Transport = Transport.STDIO
    constraints: tuple[str, ...] = ()
    as_of: str | None = Field(default=None, description="a date; nothing published later is resolved")
    files: tuple[PlantedFile, ...] = ()
    python: str | None = None
    node: str | None = None
    timeout: float = 300.0
    call_timeout: float = 20.0
    start_timeout: float = 60.0  # the slowest of 100 popular servers took 32 s to answer initialize
    install_timeout: float = 240.0
    stop_grace: float = 2.0
    jobs: int = 4
    runtime: str | None = None
    stock_client: bool = True
    recorder: RecorderChoice = RecorderChoice.AUTO
    network: NetworkChoice = NetworkChoice.NONE
    respond: tuple[CannedAnswer, ...] = ()
    stealth: bool = False
    port: int | None = None
    path: str = "/mcp"
    idle: float = 2.0
    call_budget: int | None = None
    seed: int = 0
    limits: Limits = Limits()
