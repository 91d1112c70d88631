"""When a release was published, and the same target with the dependencies of that time.

Asked only after a start failed as starts do whose dependencies moved on (dependencies as of the release date plus two
weeks mended all six that this was tried on).
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from harness.acquisition.dispatch import acquire
from harness.acquisition.store import Store
from harness.model.errors import BlamedError
from harness.model.options import RunOptions
from harness.model.target import Acquired, TargetKind

#: Time for the dependencies to settle after a release: what its author had, else what came within two weeks.
SETTLED = (timedelta(days=1), timedelta(days=14))


async def acquire_of_its_time(
    acquired: Acquired, options: RunOptions, cache_dir: Path, progress: Callable[[str], None]
) -> Acquired | None:
    """Acquire exactly this version again, its dependencies as of its release plus a day, or two weeks.

    The longer time is taken where the shorter gives no closure. (A package whose dependency broke nine days after it
    started with what its author had, and not with what two weeks brought.)

    None when the release date is not known, when that is too short ago, when nothing would be different, or when the
    registry has no such closure.
    """
    again: Acquired | None = None
    for settled in SETTLED:
        try:
            released = await _released(acquired, Store(cache_dir))
            if released is None or released + settled > datetime.now(UTC):
                return None
            date = (released + settled).date().isoformat()
            dated = options.model_copy(update={"as_of": date})
            ref = acquired.ref.model_copy(update={"version": acquired.version})
            again = await acquire(ref, dated, cache_dir, progress)
            break
        except BlamedError:
            continue
    if again is None:
        return None
    if again.version != acquired.version or again.closure.digest == acquired.closure.digest:
        return None
    return again.model_copy(update={"ref": acquired.ref})


async def _released(acquired: Acquired, store: Store) -> datetime | None:
    if acquired.ref.kind is TargetKind.PYPI:
        from harness.acquisition.python.resolve import PYTHONS, Resolver
        from harness.acquisition.python.settings import read_index_settings

        resolver = Resolver(store, read_index_settings(), platform.machine())
        python = next((p for p in PYTHONS if acquired.install.image.endswith(p.replace(".", ""))), next(iter(PYTHONS)))
        wheels = await resolver.lock([f"{acquired.name}=={acquired.version}"], python, deps=False)
        return wheels[0].uploaded
    if acquired.ref.kind is TargetKind.NPM:
        from harness.acquisition.node.package import NodeWorld
        from harness.acquisition.node.settings import read_registry_settings
        from harness.acquisition.python.settings import read_index_settings
        from harness.acquisition.python.world import PythonWorld

        machine = platform.machine()
        python_world = PythonWorld(store, read_index_settings(), machine, lambda text: None)
        npm = await NodeWorld(store, read_registry_settings(), python_world, machine, lambda text: None).npm()
        with store.work() as work:
            result = await npm.run(work, "view", f"{acquired.name}@{acquired.version}", "time", "--json", seconds=30)
        try:
            times = json.loads(result.output) if result.code == 0 else {}
            return datetime.fromisoformat(str(times[acquired.version]).replace("Z", "+00:00"))
        except (ValueError, KeyError, TypeError):
            return None
    return None
