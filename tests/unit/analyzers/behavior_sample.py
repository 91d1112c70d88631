"""Records of system calls made by hand: a short notation for what the tests of the behaviour analyzers speak about."""

from __future__ import annotations

from typing import Any

from recordings_sample import TOOL, manifest, surface

from harness.analyzers import registry
from harness.analyzers.base import AnalysisFacts, RecordingInput
from harness.analyzers.engine import run_analyzer
from harness.model.recording import (
    AttemptEvent,
    Event,
    FrameEvent,
    Grade,
    InstallStepEvent,
    MarkEvent,
    Origin,
    ProcessEvent,
    RecorderEndEvent,
    SyscallEvent,
    TransferEvent,
)
from harness.model.result import AnalyzerResult

ENTRY = 7
PYTHON = "/usr/bin/python3.13"
WORKSPACE = "/home/user/workspace"
ENOENT, EACCES, EEXIST, EPERM = -2, -13, -17, -1


class Record:
    """Records events with running numbers; what is not said is the target's first process in the phase at hand."""

    def __init__(self, session: str = "main", phase: str = "start") -> None:
        self.events: list[Event] = []
        self.session = session
        self.phase = phase
        self._record = 0

    def add(self, event: Event) -> Record:
        number = len(self.events) + 1
        fields: dict[str, Any] = {"seq": number, "t": event.t or number * 1000}
        if hasattr(event, "record") and event.record == 0:
            self._record += 1
            fields["record"] = self._record
        self.events.append(event.model_copy(update=fields))
        return self

    def _kernel(self, more: dict[str, Any]) -> dict[str, Any]:
        common = {"phase": self.phase, "session": self.session, "pid": ENTRY, "tid": ENTRY, "parent": 0, "record": 0}
        fields = {**common, **more}
        if fields["pid"] != ENTRY and "parent" not in more:
            fields["parent"] = ENTRY
        return fields

    def begin(self, *argv: str, path: str = PYTHON) -> Record:
        """Gate, start mark, and the target's first program."""
        self.add(AttemptEvent(phase="start", session=self.session, number=1, argv=argv or ("server",)))
        self.add(MarkEvent(**self._kernel({"by": Origin.GATE, "nonce": "g"})))
        self.enter("start")
        return self.exec(path, *(argv or ("python", "server.py")), directory=WORKSPACE)

    def enter(self, phase: str) -> Record:
        """The warden's mark: a phase begins."""
        self.phase = phase
        nonce = phase.rpartition(":")[2]
        return self.add(MarkEvent(**self._kernel({"by": Origin.WARDEN, "nonce": nonce, "pid": 1, "parent": 0})))

    def call(self, name: str, *, result: int | None = 0, **more: Any) -> Record:
        """Any system call."""
        return self.add(SyscallEvent(**self._kernel({"call": name, "result": result, **more})))

    def open(self, path: str, *flags: str, result: int = 3, **more: Any) -> Record:
        return self.call("openat", path=path, flags=flags or ("O_RDONLY",), result=result, args=(-100, 0, 0), **more)

    def write(self, path: str, **more: Any) -> Record:
        return self.open(path, "O_WRONLY", "O_CREAT", **more)

    def unlink(self, path: str, **more: Any) -> Record:
        return self.call("unlink", path=path, **more)

    def connect(self, address: str, **more: Any) -> Record:
        fields = {"result": -101, "addresses": (address,), "args": (3,), **more}
        return self.call("connect", **fields)

    def fork(self, child: int, **more: Any) -> Record:
        return self.add(ProcessEvent(**self._kernel({"what": "fork", "child": child, **more})))

    def exec(self, path: str, *argv: str, **more: Any) -> Record:
        return self.add(ProcessEvent(**self._kernel({"what": "exec", "path": path, "argv": argv, **more})))

    def exit(self, code: int | None = 0, **more: Any) -> Record:
        return self.add(ProcessEvent(**self._kernel({"what": "exit", "code": code, **more})))

    def spawn(self, child: int, path: str, *argv: str) -> Record:
        """A child that becomes another program."""
        return self.fork(child).exec(path, *argv, pid=child)

    def transfer(self, path: str, written: int, **more: Any) -> Record:
        return self.add(TransferEvent(**self._kernel({"path": path, "written": written, **more})))

    def asked(self, data: str) -> Record:
        return self.add(
            FrameEvent(phase=self.phase, session=self.session, direction="sent", data=data, size=len(data))  # type: ignore[arg-type]
        )

    def step(self, *argv: str) -> Record:
        return self.add(InstallStepEvent(phase="install", session="install", argv=argv, code=0))

    def end(self, **more: Any) -> Record:
        """The recorder's own account."""
        return self.add(RecorderEndEvent(**{"phase": "stop", "session": self.session, **more}))

    def judge(self, name: str, *tools: dict[str, Any], **facts: Any) -> AnalyzerResult:
        """What the analyzer of that name says."""
        known: dict[str, Any] = {
            "manifest": manifest(recorder="ebpf", grade=Grade.TRUSTED),
            "surfaces": (surface(*(tools or (TOOL,))),),
        }
        analyzer = registry.find(name)
        assert analyzer is not None
        return run_analyzer(analyzer, RecordingInput(AnalysisFacts(**(known | facts)), iter(self.events)))


def started() -> Record:
    """A recording in which the target has just begun."""
    return Record().begin()


def installing() -> Record:
    """A recording of an installation in which the installing program has just begun."""
    record = Record(session="install", phase="install").step("uv", "pip", "install")
    record.enter("install")
    return record.exec("/usr/local/bin/uv", "uv", "pip", "install")


def rules(result: AnalyzerResult) -> dict[str, str]:
    """The rules found, each with its severity."""
    return {finding.rule_id: finding.severity.value for finding in result.findings}
