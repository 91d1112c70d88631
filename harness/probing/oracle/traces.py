"""What the oracle keeps of each call once it is over: enough to judge by, little enough to keep for all of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.model.call import Call, Outcome, Purpose
from harness.model.payload import Boundary
from harness.probing.oracle.case import conclusive
from harness.probing.oracle.effects import Sighting
from harness.probing.results import was_cut

#: Purposes of calls that may leave something behind which a later effect could come from.
LIVE = frozenset({Purpose.PAYLOAD, Purpose.CONFIRM, Purpose.MINIMISE})


@dataclass
class Trace:
    """One call. `seq` is where its prediction stands, `end` where its answer does; `clean`: no other payload was sent
    in its session before it. `planned`: the plan holds this very call. `programs`: what it executed. `cut`: not all
    of its answer was kept.
    """

    call: Call
    seq: int
    session: str
    network: str
    clean: bool
    planned: bool
    world_seq: int | None
    end: int | None = None
    frame: int | None = None
    state: str = "unsent"
    conclusive: bool = False
    sightings: list[Sighting] = field(default_factory=list)
    programs: frozenset[str] = frozenset()
    cut: bool = False

    def finish(self, outcome: Outcome, sightings: tuple[Sighting, ...], end: int, frame: int | None) -> None:
        """Keep what came of it."""
        self.end, self.frame, self.state = end, frame, outcome.state
        self.conclusive, self.cut = conclusive(outcome), was_cut(outcome.text)
        self.sightings += sightings
        self.programs = frozenset(run.path for run in outcome.executions if run.ok)

    @property
    def nonce(self) -> str:
        """What was drawn for this call, or at least for its world."""
        return self.call.nonce or self.call.world


@dataclass
class Group:
    """The calls of one try: one, or the steps of several with one nonce."""

    steps: list[Trace]

    @property
    def lead(self) -> Trace:
        """The step that shows it best: the last with a proof, with a sighting, or at all."""
        order = sorted(self.steps, key=lambda t: (any(s.proof for s in t.sightings), bool(t.sightings), t.call.step))
        return order[-1]

    @property
    def call(self) -> Call:
        """The call of the leading step."""
        return self.lead.call

    @property
    def entry(self) -> Call:
        """The call in which the payload stands: the first step, which may be one of another item than the last."""
        return self.steps[0].call

    @property
    def sightings(self) -> tuple[Sighting, ...]:
        """All that was seen of the predictions."""
        return tuple(sighting for trace in self.steps for sighting in trace.sightings)

    @property
    def proofs(self) -> tuple[Sighting, ...]:
        """Those that nothing else explains."""
        return tuple(sighting for sighting in self.sightings if sighting.proof)

    @property
    def ended(self) -> bool:
        """Every step was answered, or at least waited for."""
        return all(trace.end is not None and trace.state != "unsent" for trace in self.steps)


@dataclass
class Facts:
    """What is known besides the calls: boundaries with the number of the event that told them; sessions by name whose
    records turned out to have gaps; whether the kernel's record is of a grade that can prove.
    """

    boundaries: dict[Boundary, int] = field(default_factory=dict)
    gaps: set[str] = field(default_factory=set)
    kernel: bool = False

    def before(self, boundary: Boundary, seq: int) -> bool:
        """Whether this very boundary was recorded before event `seq`."""
        told = self.boundaries.get(boundary)
        return told is not None and told < seq
