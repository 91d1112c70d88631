"""Looks again at what a server declares: in the same session, or in another life, as another client and later."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import anyio.abc

from harness.model.errors import HarnessError
from harness.model.options import RunOptions
from harness.model.plan import Action, Adjustment
from harness.model.probe import LookEvent, LookRequest
from harness.model.recording import Phase
from harness.model.surface import ItemKind, ListEnd, Surface
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.entropy import Entropy
from harness.pipeline.probes import Prober
from harness.pipeline.session import Session, open_session
from harness.pipeline.wire import spoken_to
from harness.protocol.discovery import discover
from harness.protocol.handshake import Greeting, greet
from harness.protocol.observe import look
from harness.protocol.session import RawSession
from harness.sandbox.base import LaunchSpec, Sandbox


class Looker:
    """Made for one run. A look that shows what the first did is told as an event, and not kept once more."""

    def __init__(
        self, sandbox: Sandbox, bundle: BundleWriter, entropy: Entropy, options: RunOptions, prober: Prober
    ) -> None:
        self._sandbox = sandbox
        self._bundle = bundle
        self._entropy = entropy
        self._options = options
        self._prober = prober

    async def again(
        self,
        request: LookRequest,
        session: Session,
        raw: RawSession,
        greeting: Greeting,
        first: Surface | None,
        *,
        days: int = 0,
    ) -> Surface | None:
        """Read the lists on a session that was greeted; None when the session is over.

        `days`: how far ahead its clock was set.
        """
        await session.enter(Phase.DISCOVER)
        raw.phase = Phase.DISCOVER
        seen = await discover(
            raw,
            greeting,
            session.witness,
            limits=self._options.limits,
            call_timeout=self._options.call_timeout,
            look=request.name,
        )
        if raw.closed is not None:
            return None
        changed = first is not None and seen.unlike(first)
        if changed:
            self._bundle.surface(seen)
        self._bundle.record(
            LookEvent(
                phase=Phase.DISCOVER,
                session=session.name,
                look=request.name,
                changed=changed,
                client=request.client,
                days=days,
                items=len(seen.items),
                unread=_unread(first, seen),
            )
        )
        return seen

    async def anew(
        self,
        action: Action,
        spec: LaunchSpec,
        first: Surface | None,
        started: Adjustment,
        ending: Callable[[], None] = lambda: None,
    ) -> Surface | None:
        """The same in a life of its own, `started` as the first was but for client and clock; what comes before the
        handshake is sent first.

        `ending` is called when all is seen and the life comes to its end.
        None when it was not greeted, or was over before its lists were read.
        """
        request = action.look
        assert request is not None
        seen: Surface | None = None
        spec = later(spec, request.days)
        async with (
            open_session(action.session, self._sandbox, spec, self._bundle, self._entropy, self._options) as session,
            spoken_to(session, self._options, started) as raw,
        ):
            for probe in request.before:
                probed = await self._prober.probe(probe, session, raw)
                if probed.state != "alive":
                    break
            await session.enter(Phase.START)
            raw.phase = Phase.START
            greeting = await greet(
                raw,
                start_timeout=self._options.start_timeout,
                call_timeout=self._options.call_timeout,
                client=request.client,
            )
            if greeting.failure is None:
                seen = await self.again(request, session, raw, greeting, first, days=spec.days_ahead)
            ending()
        return seen


async def look_once_more(
    name: str,
    session: Session,
    bundle: BundleWriter,
    options: RunOptions,
    adjustment: Adjustment,
    first: Surface | None,
    *,
    days: int = 0,
) -> None:
    """Greet and read the lists in a life that nothing is asked of but that, as the first was, and tell of it.

    `name`: of the look; `days`: how far ahead its clock was set.
    """
    async with spoken_to(session, options, adjustment) as raw:
        seen = await look(raw, session.witness, options=options, phase_hook=session.enter, name=name)
    if seen.era is None:
        return
    changed = first is not None and seen.unlike(first)
    if changed:
        bundle.surface(seen)
    bundle.record(
        LookEvent(
            phase=Phase.DISCOVER,
            session=session.name,
            look=name,
            changed=changed,
            days=days,
            items=len(seen.items),
            unread=_unread(first, seen),
        )
    )


def _unread(first: Surface | None, seen: Surface) -> tuple[ItemKind, ...]:
    """The lists that were read whole at first, and are not now."""
    whole = {outcome.kind for outcome in seen.lists if outcome.end in (ListEnd.COMPLETE, ListEnd.NOT_OFFERED)}
    read = {outcome.kind for outcome in first.lists if outcome.end is ListEnd.COMPLETE} if first is not None else set()
    return tuple(sorted(read - whole))


def later(spec: LaunchSpec, days: int) -> LaunchSpec:
    """The launch with a clock that is so far ahead; as it is where the image is not ours, and can't set one."""
    return spec if spec.foreign is not None else spec.model_copy(update={"days_ahead": days})


def beside(
    tasks: anyio.abc.TaskGroup, take: Callable[[], Awaitable[Surface | None]]
) -> Callable[[], Awaitable[Surface | None]]:
    """Begin `take` in `tasks`; returns what waits for its end, and gives or raises what it did."""
    over = anyio.Event()
    found: list[Surface | None] = []
    errors: list[Exception] = []

    async def run() -> None:
        try:
            found.append(await take())
        except (HarnessError, ExceptionGroup) as error:  # whoever waits is told, as if it had been done there
            errors.append(error)
        finally:
            over.set()

    async def taken() -> Surface | None:
        await over.wait()
        if errors:
            raise errors[0]
        return found[0] if found else None

    tasks.start_soon(run)
    return taken
