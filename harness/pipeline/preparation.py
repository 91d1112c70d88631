"""From an acquired target to something that can be launched: installed, sealed, with its arguments filled in."""

from __future__ import annotations

import re
from collections.abc import Callable

from harness.model.errors import TargetError, UsageError
from harness.model.options import RunOptions
from harness.model.plan import Obstacle
from harness.model.recording import InstallStepEvent, NoteEvent, Phase
from harness.model.target import Acquired, EntryPoint, InstallPlan, TargetKind
from harness.pipeline.bundle import BundleWriter
from harness.pipeline.workspace import CANARY, PLACE, WORKSPACE, fill, planted_files
from harness.sandbox.base import InstalledTarget, InstallFailed, LaunchSpec, Sandbox

#: Half a surrogate pair can't be written down, and a zero byte ends an argument.
_NO_TEXT = re.compile("[\ud800-\udfff]")
_NO_ARGUMENT = re.compile("[\ud800-\udfff\0]")


def check_texts(acquired: Acquired) -> None:
    """Refuse what no process can be given and no record can hold. Raises TargetError."""
    arguments = [word for entry in acquired.entry_points for word in entry.argv]
    arguments += [text for pair in acquired.environment.items() for text in pair]
    if any(_NO_ARGUMENT.search(text) for text in arguments):
        raise TargetError("its arguments or environment hold what no program can be given")
    if any(_NO_TEXT.search(text) for text in (acquired.name, acquired.version, *acquired.notes)):
        raise TargetError("its name or version is no text")


def choose_entry(acquired: Acquired, wanted: str | None) -> EntryPoint:
    """The entry point named with `--entry`, or the preferred one.

    Raises UsageError for a name that isn't there (with the names there are), TargetError when there is none.
    """
    names = ", ".join(entry.name for entry in acquired.entry_points)
    if wanted is not None:
        for entry in acquired.entry_points:
            if entry.name == wanted:
                return entry
        raise UsageError(f"{acquired.ref.text} has no entry point {wanted}", remedy=f"there are: {names or 'none'}")
    if not acquired.entry_points:
        raise TargetError(
            f"{acquired.ref.text} names no way to start it", remedy="give one with --entry or -- COMMAND ARGS"
        )
    return acquired.entry_points[0]


async def install(
    sandbox: Sandbox, acquired: Acquired, options: RunOptions, bundle: BundleWriter, *, record: bool
) -> InstalledTarget:
    """Install in the sandbox and record every step, those of a cached install too; its system calls with `record`.

    Raises TargetError when a step fails or time runs out, with the reason where it is one that has a name.
    """
    outcome = await _run(sandbox, acquired.install, options, bundle, record)
    if isinstance(outcome, InstallFailed):
        from harness.acquisition.node.plan import without_scripts
        from harness.probing.starting.obstacles import obstacle_of

        output = outcome.steps[-1].output if outcome.steps else ""
        found = obstacle_of(output)
        failed = _SCRIPT_FAILED in output or (found is not None and found[0] in _SCRIPTS)
        plan = without_scripts(acquired.install) if failed else None
        if plan is not None:
            missing = f" ({found[0].value} {found[1]})".replace(" )", ")") if found else ""
            text = f"an install script failed{missing}: it was installed without running install scripts"
            outcome = await _run(sandbox, plan, options, bundle, record)
            bundle.record(NoteEvent(phase=Phase.INSTALL, session="install", text=text))
    if isinstance(outcome, InstallFailed):
        raise TargetError(f"the target could not be installed{_why(outcome)}", remedy=_REMEDY)
    return outcome


async def _run(
    sandbox: Sandbox, plan: InstallPlan, options: RunOptions, bundle: BundleWriter, record: bool
) -> InstalledTarget | InstallFailed:
    outcome = await sandbox.install(plan, timeout=options.install_timeout, limits=options.limits, record=record)
    cached = isinstance(outcome, InstalledTarget) and outcome.cached
    for step in outcome.steps:
        bundle.record(
            InstallStepEvent(
                phase=Phase.INSTALL,
                session="install",
                argv=step.argv,
                code=step.code,
                output=step.output,
                cached=cached,
            )
        )
    if outcome.record is not None:
        bundle.record_kernel(list(outcome.record.events))
        bundle.record(outcome.record.end)
    return outcome


#: What makes install scripts fail that a server can often do without: an add-on to build, a download.
_SCRIPTS = (Obstacle.NATIVE_ADDON, Obstacle.NETWORK)
#: What npm says when a script of a package ended with an error (`@npmcli/promise-spawn`).
_SCRIPT_FAILED = "npm error command failed"
_REMEDY = "see the install steps in the recording"


def _why(failed: InstallFailed) -> str:
    if failed.timed_out:
        return ": it took too long"
    from harness.probing.starting.obstacles import obstacle_of

    found = obstacle_of(failed.steps[-1].output) if failed.steps else None
    if found is None:
        return ""
    return f": {found[0].value}{f' {found[1]}' if found[1] else ''} can't be supplied in the sandbox"


def launch_spec(
    acquired: Acquired,
    entry: EntryPoint,
    installed: InstalledTarget,
    options: RunOptions,
    secrets: dict[str, str],
    token: Callable[..., str],
) -> LaunchSpec:
    """How to start it: entry, then `--arg`s with placeholders filled; `secrets` are the real values of `--env`.

    `token` makes a value for `{canary}`, given the name of the variable that is one as a whole.
    """
    extra = tuple(fill(argument, token) for argument in options.arguments)
    argv = entry.argv
    if entry.planted or acquired.ref.kind is TargetKind.COMMAND:
        argv = tuple(fill(part, token) for part in argv)
    environment = {
        name: token(name) if value == CANARY else fill(value, token)
        for name, value in {**acquired.environment, **secrets}.items()
    }
    given = {f"{PLACE}/{file.path}": file for file in options.files}
    return LaunchSpec(
        image=acquired.install.image,
        foreign=acquired.image,
        workdir=acquired.image.workdir if acquired.image is not None else WORKSPACE,
        volume=installed.volume,
        argv=argv + extra,
        environment=environment,
        seed={**planted_files(), **{path: file.data for path, file in given.items() if file.link is None}},
        executables=frozenset(path for path, file in given.items() if file.executable),
        links={path: fill(file.link, token) for path, file in given.items() if file.link is not None},
        limits=options.limits,
        runtime=options.runtime,
        deadline_seconds=options.timeout,
    )
