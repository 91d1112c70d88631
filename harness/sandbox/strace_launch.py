"""Starting strace: beside a target that waits at its gate, and once beside a warden alone to see whether it works."""

from __future__ import annotations

import anyio
import anyio.abc
import anyio.to_thread

from harness.model.errors import EngineError
from harness.model.recording import Phase
from harness.sandbox.containers import Doomed, background, doomed
from harness.sandbox.hardening import USER_ID, tracer_config, warden_config
from harness.sandbox.seccomp import profile_json
from harness.sandbox.strace import READY_SECONDS, Tracer, tracer_script
from harness.sandbox.strace_filter import tracer_profile
from harness.sandbox.warden import Warden, create_warden
from harness.sandbox.workshop import Workshop

_TRIAL_SECONDS = 60


async def start_tracer(
    shop: Workshop,
    tasks: anyio.abc.TaskGroup,
    collected: Doomed,
    warden: Warden,
    image: str,
    *,
    pid: int | None = None,
    session: str = "main",
    phase: str = Phase.START,
    epoch: int = 0,
    uid: int = USER_ID,
    runtime: str | None = None,
) -> Tracer:
    """Have strace watch the gate that waits in the warden's pid namespace (or `pid`), and return when it does.

    `image` is the engine's id of strace's image. Raises `RecorderUnavailable`, `EngineError`.
    """
    config = tracer_config(
        image=image,
        script=tracer_script(pid),
        warden=warden.name,
        labels=shop.labels("recorder"),
        seccomp=tracer_profile(await anyio.to_thread.run_sync(profile_json)),
        runtime=runtime,
    )
    tracer = Tracer(
        shop.engine,
        collected,
        shop.name("recorder"),
        config,
        profile=shop.seccomp,
        word=shop.nonce(),
        session=session,
        phase=phase,
        epoch=epoch,
        uid=uid,
    )
    tasks.start_soon(tracer.run)
    try:
        await tracer.ready()
    except BaseException:
        tracer.close()
        raise
    return tracer


async def strace_problem(shop: Workshop, warden_image: str, image: str) -> str | None:
    """Why strace can't be used on this engine, in one line; None when it can. Starts one and ends it again."""
    watch = warden_config(
        image=warden_image, deadline_seconds=_TRIAL_SECONDS, labels=shop.labels("warden"), seccomp=shop.seccomp
    )
    try:
        async with doomed(shop.engine) as collected, background() as tasks:
            warden = await create_warden(shop.engine, tasks, collected, shop.name("warden"), watch)
            try:
                with anyio.fail_after(2 * READY_SECONDS):
                    await warden.ready()
                    tracer = await start_tracer(shop, tasks, collected, warden, image, pid=1)
                    tracer.close()
            finally:
                warden.close()
    except EngineError as error:
        return error.message
    except TimeoutError:
        return "strace did not start in time"
    return None
