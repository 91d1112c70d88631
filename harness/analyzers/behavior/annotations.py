"""`behavior.annotations`: does a tool do what its annotations say that it does not?

The hints of the protocol's schema: `readOnlyHint` (does not modify its environment), `destructiveHint` (when false,
only adds), `openWorldHint` (when false, stays in its own domain). Only what falls into a call is judged.
"""

from __future__ import annotations

from typing import Any

from harness.analyzers.behavior.addresses import Reach, destination
from harness.analyzers.behavior.attribution import CALL, Where
from harness.analyzers.behavior.baseline import usual_path
from harness.analyzers.behavior.effects import FILE_CALLS, What, effects_of, is_reading
from harness.analyzers.behavior.fold import BehaviorAnalyzer, BehaviorFold
from harness.analyzers.behavior.ledger import Kind
from harness.analyzers.behavior.made import PathMemory
from harness.analyzers.behavior.places import Area, area_of
from harness.model.finding import Severity, Threat
from harness.model.recording import SyscallEvent
from harness.model.surface import ItemKind

_REMEDY = "Correct the annotation: clients let tools through because of it."

WROTE = Kind(
    "behavior.annotations.read-only",
    "A tool declared read-only writes",
    Severity.MEDIUM,
    "The tool is declared with readOnlyHint, and a call of it changed files.",
    threat=Threat.TOOL_POISONING,
    cwe=451,
    remediation=_REMEDY,
)
DELETED = Kind(
    "behavior.annotations.destructive",
    "A tool declared harmless deletes",
    Severity.HIGH,
    "The tool is declared read-only or not destructive, and a call of it deleted or moved away what it had not made.",
    threat=Threat.TOOL_POISONING,
    cwe=451,
    remediation=_REMEDY,
)
CONNECTED = Kind(
    "behavior.annotations.open-world",
    "A tool declared closed connects elsewhere",
    Severity.MEDIUM,
    "The tool is declared with openWorldHint false, and a call of it tried to reach another machine.",
    threat=Threat.EXFILTRATION,
    cwe=451,
    remediation=_REMEDY,
)

#: Places whose change no reader would call one of the environment: temporary files, caches, devices.
_UNSEEN = frozenset({Area.SCRATCH, Area.DEVICE, Area.KERNEL, Area.STATE})


class AnnotationsFold(BehaviorFold):
    """Memory: the hints of the declared tools, and paths that the target made."""

    calls = FILE_CALLS | {"connect", "sendto", "sendmsg", "sendmmsg"}

    def __init__(self, analyzer: BehaviorAnalyzer, facts: Any) -> None:
        super().__init__(analyzer, facts)
        self._hints = _hints(facts)
        self._made = PathMemory()

    def syscall(self, event: SyscallEvent) -> None:
        """Judge one call against the hints of the tool it belongs to."""
        if not self._hints:
            return
        if event.call not in FILE_CALLS:
            if event.call in self.calls:
                self._connect(event)
            return
        if event.result is None or event.result < 0 or is_reading(event):
            return
        for effect in effects_of(event, self.attribution):
            if not effect.done or effect.what is What.READ:
                continue
            made = effect.path in self._made
            if effect.what is What.DELETE:
                self._made.discard(effect.path)
            else:
                self._made.add(effect.path)
            if area_of(effect.path) in _UNSEEN:
                continue
            where, hints = self._tool(event, effect.path)
            if not hints or usual_path(effect.path, where.process.name, writing=True):
                continue
            text = f"{event.call}: {effect.path}"
            read_only = hints.get("readOnlyHint") is True
            if effect.what is What.WRITE:
                if read_only:
                    self.ledger.note(WROTE, "wrote", event, where, text)
            elif not made and not self._made.forgot and (read_only or hints.get("destructiveHint") is False):
                self.ledger.note(DELETED, "deleted", event, where, text)

    def _connect(self, event: SyscallEvent) -> None:
        for address in event.addresses:
            if destination(address).reach in (Reach.PUBLIC, Reach.PRIVATE, Reach.METADATA, Reach.RESOLVER):
                where, hints = self._tool(event)
                if hints.get("openWorldHint") is False:
                    self.ledger.note(CONNECTED, "connected", event, where, f"{event.call} to {address}")

    def _tool(self, event: SyscallEvent, *texts: str) -> tuple[Where, dict[str, bool]]:
        where = self.attribution.where(event, *texts)
        if where.phase != CALL or where.tool is None:
            return where, {}
        return where, self._hints.get(where.tool, {})


def _hints(facts: Any) -> dict[str, dict[str, bool]]:
    """By tool: its hints that are true or false, as last declared."""
    found: dict[str, dict[str, bool]] = {}
    for surface in facts.surfaces:
        for item in surface.of(ItemKind.TOOL):
            annotations = item.value.get("annotations") if isinstance(item.value, dict) else None
            if isinstance(annotations, dict):
                found[item.name] = {key: value for key, value in annotations.items() if isinstance(value, bool)}
    return found


class AnnotationsAnalyzer(BehaviorAnalyzer):
    """Judges calls against annotations."""

    name = "behavior.annotations"
    description = "tools that do what their annotations deny: writing, deleting, connecting"
    fold = AnnotationsFold
    kinds = (WROTE, DELETED, CONNECTED)
