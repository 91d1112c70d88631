"""What further start attempts are made from: the launch as planned, its adjustments, and what the source tells."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import anyio.to_thread

from harness.model.canary import SECOND_LIFE, Canary
from harness.model.errors import TargetError
from harness.model.options import NetworkChoice, RunOptions, Transport
from harness.model.plan import Action, Adjustment, Observation
from harness.model.target import Acquired, EntryPoint, TargetKind
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.entropy import Entropy
from harness.pipeline.places import packages_dir
from harness.pipeline.planting import Garden
from harness.pipeline.preparation import choose_entry, install, launch_spec
from harness.pipeline.progress import Progress
from harness.probing.payloads.headers import header_names
from harness.probing.starting import StartFacts
from harness.sandbox.base import HOME, WORKSPACE, InstalledTarget, LaunchSpec, Sandbox

#: Kinds whose command was written by the operator, arguments included.
_OWN_COMMAND = frozenset({"command", "config"})

#: What stands at addresses that are not the public internet, each kind with content of its own; the metadata
#: service's is a canary.
DECOYS = ("host", "loopback", "link-local", "private")


class Supply:
    """One target, ready to be launched. `on_renewal` is told when another closure was installed in its place,
    `on_planting` of all canaries whenever there are more.

    `record`: whether the system calls of its lives are recorded.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        acquired: Acquired,
        entry: EntryPoint,
        installed: InstalledTarget,
        options: RunOptions,
        secrets: dict[str, str],
        bundle: BundleWriter,
        entropy: Entropy,
        progress: Progress,
        on_renewal: Callable[[Acquired, InstalledTarget], None],
        on_planting: Callable[[tuple[Canary, ...]], None],
        *,
        record: bool = False,
    ) -> None:
        self._sandbox = sandbox
        self._acquired = acquired
        self._options = options
        self._secrets = secrets
        self._bundle = bundle
        self._entropy = entropy
        self._progress = progress
        self._on_renewal = on_renewal
        self._on_planting = on_planting
        self._garden = Garden(entropy)
        self._renewed = False
        self._record = record
        self._world = {
            "network": options.network,
            "stealth": options.stealth,
            "answers": options.respond,
            "authority": entropy.seed(),
        }
        self._decoys = {kind: entropy.nonce() for kind in DECOYS}
        self._own = len(entry.argv)
        self._make: Callable[[Callable[[], str]], LaunchSpec] = partial(
            launch_spec, acquired, entry, installed, options, secrets
        )
        self._spec = self._make(self._garden.token)

    def typed(self) -> str:
        """What is entered where a form of the target asks for a secret."""
        value = self._garden.typed()
        self._on_planting(self._garden.canaries)
        return value

    def facts(self) -> StartFacts:
        """What the planner knows beforehand."""
        kind = self._acquired.ref.kind
        return StartFacts(
            argv=self._spec.argv[: self._own],
            home=HOME,
            workspace=WORKSPACE,
            seed=self._entropy.nonce(),
            arguments=self._spec.argv[self._own :],
            environment=frozenset(self._spec.environment),
            own_command=kind.value in _OWN_COMMAND,
            renewable=kind in (TargetKind.PYPI, TargetKind.NPM) and not self._options.constraints,
            gateway=self._options.network is not NetworkChoice.NONE and not self._options.stealth,
            readable=kind is not TargetKind.COMMAND,
            http=self._options.transport is Transport.HTTP,
            material=self._garden.material,
        )

    async def spec(self, adjustment: Adjustment) -> LaunchSpec | None:
        """The launch with an adjustment: what the operator gave stays; None when the adjustment can't be made."""
        if adjustment.of_its_time and not self._renewed and not await self._renew():
            return None
        spec = self._adjusted(self._garden.apply(self._spec, adjustment), adjustment, self._garden)
        self._on_planting(self._garden.canaries)
        return spec

    def with_other_canaries(self, adjustment: Adjustment) -> tuple[Adjustment, LaunchSpec]:
        """The same launch with other values for every canary, for the life that is called `SECOND_LIFE`."""
        garden = Garden(self._entropy, SECOND_LIFE)
        adjustment = garden.retold(adjustment, self._garden)
        spec = self._adjusted(garden.apply(self._make(garden.token), adjustment), adjustment, garden)
        self._on_planting((*self._garden.canaries, *garden.canaries))
        return adjustment, spec

    def unsealed(self, spec: LaunchSpec, adjustment: Adjustment) -> LaunchSpec:
        """With an installation that it can write to, where the adjustment says so; an image is run as it is."""
        opened = adjustment.unsealed and spec.foreign is None and spec.volume is not None
        return spec.model_copy(update={"unsealed": True}) if opened else spec

    def _adjusted(self, spec: LaunchSpec, adjustment: Adjustment, garden: Garden) -> LaunchSpec:
        own, own_arguments = spec.argv[: self._own], spec.argv[self._own :]
        argv = (*own, *adjustment.subcommand, *own_arguments, *adjustment.arguments)
        given: dict[str, object] = {"argv": argv, "record": self._record, **self._world}
        if self._options.network is not NetworkChoice.NONE:
            given["decoys"] = {**self._decoys, "metadata": garden.metadata()}
        return self.unsealed(spec.model_copy(update=given), adjustment)

    async def read_source(self, action: Action) -> Observation:
        """The variables that the target's source reads, or the headers that it and its documents name."""
        from harness.acquisition.variables import source_texts, source_variables

        headers: tuple[str, ...] = ()
        variables: tuple[str, ...] = ()
        if action.what == "headers" or self._options.transport is Transport.HTTP:
            headers = await anyio.to_thread.run_sync(lambda: header_names(source_texts(self._acquired, documents=True)))
        if action.what != "headers":
            variables = await anyio.to_thread.run_sync(source_variables, self._acquired)
        return Observation(number=action.number, usable=False, variables=variables, headers=headers)

    async def _renew(self) -> bool:
        """Install the dependencies of the release's time; False when there are none to be had, or the same."""
        from harness.acquisition.release import acquire_of_its_time

        self._progress.note("looking for the dependencies of the release's time")
        acquired = await acquire_of_its_time(self._acquired, self._options, packages_dir(), self._progress.note)
        if acquired is None:
            return False
        try:
            installed = await install(self._sandbox, acquired, self._options, self._bundle, record=self._record)
        except TargetError:
            return False
        entry = choose_entry(acquired, self._options.entry)
        self._own = len(entry.argv)
        self._make = partial(launch_spec, acquired, entry, installed, self._options, self._secrets)
        self._spec = self._make(self._garden.token)
        self._acquired = acquired
        self._renewed = True
        self._on_renewal(acquired, installed)
        return True
