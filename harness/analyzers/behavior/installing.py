"""`behavior.install`: what an installation did beyond installing. The same rules hold in each of its steps."""

from __future__ import annotations

from typing import Any

from harness.analyzers.behavior.addresses import Reach, destination
from harness.analyzers.behavior.baseline import usual_call, usual_install_path
from harness.analyzers.behavior.effects import FILE_CALLS, What, effects_of
from harness.analyzers.behavior.fold import BehaviorAnalyzer, BehaviorFold
from harness.analyzers.behavior.ledger import Kind
from harness.analyzers.behavior.places import Area, PlaceKind, PlaceTable, area_of
from harness.analyzers.behavior.privilege import PrivilegeFold, attempt_of, attempt_words
from harness.analyzers.behavior.programs import NETWORK_TOOLS, started
from harness.analyzers.behavior.sign_in import BECOMERS, signing_in
from harness.model.finding import Severity, Threat
from harness.model.recording import ProcessEvent, SyscallEvent

_REMEDY = "Do not install it before its author has said why; install with scripts turned off."

CONNECTS = Kind(
    "behavior.install.connects",
    "The installation connected elsewhere",
    Severity.MEDIUM,
    "While it was installed, code of the package or of what it needs tried to reach another machine.",
    threat=Threat.EXFILTRATION,
    cwe=829,
    remediation=_REMEDY,
)
FETCHES = Kind(
    "behavior.install.network-tool",
    "The installation started a network tool",
    Severity.HIGH,
    "While it was installed, a program that moves data to or from elsewhere was started.",
    cwe=494,
    remediation=_REMEDY,
)
DECODES = Kind(
    "behavior.install.hidden-command",
    "The installation fed decoded or fetched text to a shell",
    Severity.HIGH,
    "While it was installed, a shell was told to run what another command would print.",
    cwe=506,
    remediation=_REMEDY,
)
SECRETS = Kind(
    "behavior.install.secret-read",
    "The installation reached for credentials",
    Severity.HIGH,
    "While it was installed, a place that holds credentials of the user was opened, or tried.",
    threat=Threat.EXFILTRATION,
    cwe=522,
    remediation=_REMEDY,
)
PERSISTS = Kind(
    "behavior.install.persistence",
    "The installation wrote where code is started later",
    Severity.HIGH,
    "While it was installed, a place whose content is run or obeyed later was changed, or tried.",
    cwe=506,
    remediation=_REMEDY,
)
OUTSIDE = Kind(
    "behavior.install.outside-write",
    "The installation wrote outside of its own folder",
    Severity.MEDIUM,
    "While it was installed, files outside of the installation's own and temporary folders were changed, or tried.",
    remediation=_REMEDY,
)
SHELL = Kind(
    "behavior.install.scripts",
    "The installation ran scripts",
    Severity.INFO,
    "Packages ran commands of their own while they were installed.",
    threat=Threat.UNCATEGORIZED,
    remediation="A fact to know; many packages with native parts do.",
)

PRIVILEGE = Kind(
    "behavior.install.privilege",
    "The installation tried to get more rights",
    Severity.MEDIUM,
    "While it was installed, calls were tried that make namespaces, mount, reach into other processes or the kernel.",
    threat=Threat.SANDBOX_EVASION,
    cwe=250,
    remediation=_REMEDY,
)
BECOMES = Kind(
    "behavior.install.privilege",
    "The installation asked to become another user",
    Severity.LOW,
    "While it was installed, a program was started that runs commands as another user, mostly root, if it is let.",
    threat=Threat.SANDBOX_EVASION,
    cwe=250,
    remediation="Read what it wanted to run with more rights; install with scripts turned off.",
)

_OWN = frozenset({Area.APP, Area.SCRATCH, Area.STATE, Area.DEVICE, Area.KERNEL})
#: Where the sandbox hands over what is to be installed.
_INPUT = "/input"
_SENDS = frozenset({"connect", "sendto", "sendmsg", "sendmmsg"})


class InstallFold(BehaviorFold):
    """No memory beyond what all behaviour analyzers have."""

    install = True
    calls = FILE_CALLS | _SENDS | PrivilegeFold.calls

    def __init__(self, analyzer: BehaviorAnalyzer, facts: Any) -> None:
        super().__init__(analyzer, facts)
        self._reads = PlaceTable(PlaceKind.SECRET, PlaceKind.ACCOUNT, PlaceKind.AGENT)
        self._writes = PlaceTable(PlaceKind.PERSISTENCE, PlaceKind.AGENT, PlaceKind.SECRET, PlaceKind.ACCOUNT)

    def syscall(self, event: SyscallEvent) -> None:
        """Judge one call."""
        if event.call in FILE_CALLS:
            for effect in effects_of(event, self.attribution):
                if effect.what is What.READ:
                    self._read(event, effect.path, done=effect.done)
                else:
                    self._write(event, effect.path, done=effect.done)
        elif event.call in _SENDS:
            for address in event.addresses:
                to = destination(address)
                if to.reach not in (Reach.NOWHERE, Reach.LOCAL, Reach.SOCKET_FILE):
                    text = f"{event.call} to {address}"
                    self.ledger.note(CONNECTS, to.reach.value, event, self.attribution.where(event), text)
        elif attempt_of(event) is not None:
            where = self.attribution.where(event)
            if not usual_call(event.call, where.process.name):
                self.ledger.note(PRIVILEGE, event.call, event, where, attempt_words(event))

    def process(self, event: ProcessEvent) -> None:
        """Judge what the installing program started; the installing program itself is ours."""
        if event.what != "exec" or event.parent == 0:
            return
        program = started(event)
        where = self.attribution.where(event)
        shown = " ".join(event.argv)
        if program.into_shell:
            self.ledger.note(DECODES, f"hidden:{program.name}", event, where, shown)
        elif program.name in NETWORK_TOOLS or (program.shell and program.fetches):
            self.ledger.note(FETCHES, f"tool:{program.name}", event, where, shown)
        elif program.name in BECOMERS:
            self.ledger.note(BECOMES, f"become:{program.name}", event, where, shown)
        elif program.shell:
            self.ledger.note(SHELL, "scripts", event, where, shown)

    def _read(self, event: SyscallEvent, path: str, *, done: bool) -> None:
        """A try counts as much as a read: where things are installed there is no home with credentials in it."""
        place = self._reads.find(path)
        if place is None:
            return
        where = self.attribution.where(event)
        usual = usual_install_path(path, where.process.name, writing=False)
        if not usual and not signing_in(path, where.process, done=done):
            self.ledger.note(SECRETS, place.pattern, event, where, f"{event.call}: {path}", extra=place.reason)

    def _write(self, event: SyscallEvent, path: str, *, done: bool) -> None:
        area = area_of(path)
        if area is Area.APP or area is Area.SCRATCH or path.startswith(_INPUT):
            return
        place = self._writes.find(path)
        if place is None and (area in _OWN or not path.startswith("/")):
            return
        where = self.attribution.where(event)
        if usual_install_path(path, where.process.name, writing=True) or signing_in(path, where.process, done=done):
            return
        text = f"{event.call}{'' if done else ' tried'}: {path}"
        if place is not None:
            self.ledger.note(PERSISTS, place.pattern, event, where, text, extra=place.reason)
        else:
            self.ledger.note(OUTSIDE, f"outside:{area}", event, where, text)


class InstallAnalyzer(BehaviorAnalyzer):
    """Judges the phase `install` alone."""

    name = "behavior.install"
    description = "what the installation did beyond installing: connections, network tools, credentials, other folders"
    fold = InstallFold
    kinds = (CONNECTS, FETCHES, DECODES, SECRETS, PERSISTS, OUTSIDE, PRIVILEGE, BECOMES, SHELL)
