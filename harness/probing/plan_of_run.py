"""Which stages make up the plan of a run, by its active level."""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.options import ActiveLevel, RunOptions, Transport
from harness.model.payload import BoundaryKind, Payload
from harness.probing.boundaries import find_boundaries, session_boundaries
from harness.probing.calls.arsenal import Arsenal
from harness.probing.calls.header_kit import HeaderKit, HeaderReader
from harness.probing.calls.planner import CallPlanner
from harness.probing.calls.subjects import check_names
from harness.probing.chain import Chain, Ground, Stage
from harness.probing.drift import DriftPlanner
from harness.probing.malformed.catalog import Catalog
from harness.probing.malformed.planner import ProbePlanner
from harness.probing.planner import Planner
from harness.probing.starting import StartFacts, StartPlanner
from harness.probing.synthesis.walker import Regexes


def plan_of_run(
    options: RunOptions,
    facts: StartFacts,
    catalog: Catalog | None = None,
    payloads: Sequence[Payload] = (),
    regexes: Regexes | None = None,
) -> Planner:
    """Start and read the declarations; at `safe` the malformed messages follow, at `tool-calls` the calls too.

    `catalog`: of malformed messages, none where it is not given; `payloads`: what calls are made with. `regexes`
    answers for the patterns of schemas. Then it is looked again at what is declared, and last, where calls were
    made, those that succeeded are made with a later clock. The plan raises UsageError where a name is allowed that the
    server does not have.
    """
    stages = _stages(options, catalog or Catalog())
    if options.active is ActiveLevel.TOOL_CALLS:
        # Calls first: malformed messages end some servers again and again, and time is short.
        reader, called = HeaderReader(), list[CallPlanner]()
        calls = _calls(options, payloads, regexes, reader, called)
        stages = (_names(options), _headers(options, reader), calls, *stages, _later(called))
    return Chain(StartPlanner(options, facts, hold=bool(stages)), stages)


def _names(options: RunOptions) -> Stage:
    """No actions: what is allowed is compared with what there is, before anything is sent."""

    def names(ground: Ground) -> None:
        if ground.surface is not None:
            check_names(ground.surface, options.allow)

    return names


def _headers(options: RunOptions, reader: HeaderReader) -> Stage:
    """Over HTTP the source is asked for headers that it reads."""
    return lambda ground: reader if _transport(ground, options) is Transport.HTTP else None


def _calls(
    options: RunOptions,
    payloads: Sequence[Payload],
    regexes: Regexes | None,
    reader: HeaderReader,
    called: list[CallPlanner],
) -> Stage:
    """The stage of the calls; the plan that it makes is put into `called`."""

    def calls(ground: Ground) -> Planner | None:
        if ground.surface is None or ground.world is None:
            return None
        boundaries = find_boundaries(ground.surface, ground.world, ground.arguments, ground.environment)
        lists = [b.value for b in boundaries if b.kind is BoundaryKind.ALLOWLIST and b.tool == ""]
        kit = Arsenal(
            payloads,
            seed=options.seed,
            regexes=regexes,
            commands=tuple(dict.fromkeys(command for value in lists for command in value.split())),
        )
        headers = None
        if _transport(ground, options) is Transport.HTTP:
            headers = HeaderKit(payloads, reader.names, ground.surface)
            boundaries += session_boundaries(ground.credential)
        planner = CallPlanner(
            options,
            ground.surface,
            ground.world,
            kit,
            boundaries=boundaries,
            usable=ground.open and ground.usable,
            headers=headers,
        )
        called.append(planner)
        return planner

    return calls


def _later(called: list[CallPlanner]) -> Stage:
    """What succeeded is called once more, with a later clock."""
    return lambda _: called[-1].later() if called else None


def _transport(ground: Ground, options: RunOptions) -> Transport:
    return Transport.HTTP if ground.http else options.transport


def _stages(options: RunOptions, catalog: Catalog) -> tuple[Stage, ...]:
    if options.active is ActiveLevel.NONE:
        return ()

    sent: list[ProbePlanner] = []

    def probes(ground: Ground) -> Planner | None:
        if not ground.usable or ground.surface is None:
            return None
        sent.append(ProbePlanner(catalog, ground, _transport(ground, options)))
        return sent[-1]

    def looks(ground: Ground) -> Planner | None:
        if ground.first is None:
            return None
        return DriftPlanner(catalog, ground, _transport(ground, options), alive=sent[-1].alive if sent else "")

    return (probes, looks)
