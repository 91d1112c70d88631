"""Building the whole result around a decision, the same for a run and for its replay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.assessment.aggregate import Decision, Scope
from harness.assessment.policy_model import Policy
from harness.assessment.profile import Behavior, Profiler
from harness.model.base import Record
from harness.model.recording import (
    CallEvent,
    Event,
    Manifest,
    NoteEvent,
    PhaseEvent,
    RecorderEndEvent,
    StockClientEvent,
)
from harness.model.result import (
    ActiveFacts,
    BehaviorFacts,
    RecordingFacts,
    ScanResult,
    ScanStatus,
    StockClientFacts,
    SurfaceFacts,
    TargetFacts,
)
from harness.model.surface import ItemKind, Surface

#: Notes are for people; more than these are cut and counted.
MAX_NOTES = 100
CALL_TOOL = "tools/call"


class EventSummary(Record):
    """What the result says of the events. `phases` in order of first appearance, all calls as one; `called`: tools,
    `others`: prompts, resources and templates.

    `lost`: events that the recorder could not keep.
    """

    events: int = 0
    lost: int = 0
    phases: tuple[str, ...] = ()
    called: int = 0
    others: int = 0
    notes: tuple[str, ...] = ()
    stock_client: StockClientFacts = StockClientFacts()
    behavior: Behavior = Behavior()


class Summary:
    """A fold over the events, bounded by the number of phases and of tools called, and by the profile's own bounds."""

    def __init__(self) -> None:
        self._events = 0
        self._lost = 0
        self._profiler = Profiler()
        self._phases: dict[str, None] = {}
        self._called: set[tuple[str, str]] = set()
        self._notes: dict[str, None] = {}
        self._cut = 0
        self._stock = StockClientFacts()

    def event(self, event: Event) -> None:
        """Take the next event."""
        self._events += 1
        self._profiler.event(event)
        if isinstance(event, PhaseEvent):
            self._phases[event.phase.partition(":")[0]] = None
        elif isinstance(event, CallEvent):
            self._called.add((event.call.method, event.call.item))
        elif isinstance(event, NoteEvent):
            if len(self._notes) < MAX_NOTES:
                self._notes[event.text] = None
            elif event.text not in self._notes:
                self._cut += 1
        elif isinstance(event, RecorderEndEvent):
            self._lost += sum(max(0, number) for number in event.lost.values())
        elif isinstance(event, StockClientEvent):
            works = f"it listed {event.tools} tools" if event.works and event.tools is not None else ""
            self._stock = StockClientFacts(works=event.works, client=event.client, detail=event.error or works)

    def finish(self) -> EventSummary:
        """The summary so far."""
        more = (f"and {self._cut} more notes",) if self._cut else ()
        return EventSummary(
            events=self._events,
            lost=self._lost,
            phases=tuple(self._phases),
            called=sum(method == CALL_TOOL for method, _ in self._called),
            others=sum(method != CALL_TOOL for method, _ in self._called),
            notes=(*self._notes, *more),
            stock_client=self._stock,
            behavior=self._profiler.finish(),
        )


def summarize(events: Iterable[Event]) -> EventSummary:
    """Fold all events at once."""
    summary = Summary()
    for event in events:
        summary.event(event)
    return summary.finish()


def scope_of(manifest: Manifest, surfaces: Sequence[Surface], summary: EventSummary) -> Scope:
    """What a SAFE has to say about itself."""
    declared = len(surfaces[0].of(ItemKind.TOOL)) if surfaces else 0
    return Scope(
        level=manifest.options.active,
        declared=declared,
        called=summary.called,
        others=summary.others,
        target=manifest.target.text,
    )


def assemble(
    manifest: Manifest,
    surfaces: Sequence[Surface],
    summary: EventSummary,
    decision: Decision,
    policy: Policy,
    *,
    bundle: str | None = None,
) -> ScanResult:
    """The result, with the surface of the first look. `bundle`: the name of the recording's folder, never a path."""
    surface = surfaces[0] if surfaces else Surface()
    incomplete = decision.status is not ScanStatus.COMPLETED
    return ScanResult(
        harness_version=manifest.harness_version,
        target=TargetFacts(
            ref=manifest.target.text,
            kind=manifest.target.kind,
            name=manifest.name,
            version=manifest.version,
            digest=manifest.closure_digest,
            transport=manifest.transport or manifest.options.transport,
            protocol_version=surface.protocol_version,
        ),
        status=decision.status,
        verdict=decision.verdict,
        exit_code=decision.exit_code,
        headline=decision.headline,
        reasons=(*manifest.problems, *decision.reasons) if incomplete else decision.reasons,
        active=ActiveFacts(level=manifest.options.active, allowed=manifest.options.allow),
        policy=policy.facts,
        findings=decision.findings,
        analyzers=decision.analyzers,
        coverage=decision.coverage,
        surface=_surface(surface),
        behavior=BehaviorFacts(
            egress=summary.behavior.egress,
            processes=summary.behavior.processes,
            files=summary.behavior.files,
            profile=summary.behavior.profile,
            stock_client=summary.stock_client,
        ),
        recording=RecordingFacts(
            bundle=bundle,
            recorder=manifest.recorder,
            grade=manifest.grade,
            network=manifest.network,
            phases=summary.phases,
            events=summary.events,
            lost=summary.lost,
        ),
        warnings=decision.warnings if incomplete else (*decision.warnings, *manifest.problems),
        notes=(*manifest.notes, *summary.notes),
        timing=manifest.timing,
    )


def _surface(surface: Surface) -> SurfaceFacts:
    def values(kind: ItemKind) -> tuple[object, ...]:
        return tuple(item.value for item in surface.of(kind))

    return SurfaceFacts(
        server=surface.server_info,
        protocol_version=surface.protocol_version,
        era=surface.era.value if surface.era is not None else None,
        instructions=surface.instructions,
        tools=values(ItemKind.TOOL),
        prompts=values(ItemKind.PROMPT),
        resources=values(ItemKind.RESOURCE),
        resource_templates=values(ItemKind.RESOURCE_TEMPLATE),
    )
