"""`behavior.files`: credentials read, start-up files and agents' configurations written, files deleted."""

from __future__ import annotations

import re
from typing import Any

from harness.analyzers.behavior.attribution import CALL
from harness.analyzers.behavior.baseline import read_by_library, usual_path
from harness.analyzers.behavior.effects import FILE_CALLS, OPENS, Effect, What, effects_of
from harness.analyzers.behavior.fold import BehaviorAnalyzer, BehaviorFold
from harness.analyzers.behavior.ledger import Kind
from harness.analyzers.behavior.made import PathMemory
from harness.analyzers.behavior.places import Area, Place, PlaceKind, PlaceTable, area_of
from harness.analyzers.behavior.repositories import Repositories
from harness.analyzers.behavior.sign_in import signing_in
from harness.model.finding import Severity, Threat
from harness.model.recording import AttemptEvent, Event, SyscallEvent, TransferEvent

_SECRET = "behavior.files.secret-read"  # noqa: S105 - the name of a rule
_ACCOUNT = "behavior.files.account-read"
_AGENT = "behavior.files.agent-config-read"
_PERSISTENCE = "behavior.files.persistence"
_OUTSIDE = "behavior.files.outside-write"
_DELETED = "behavior.files.deleted"

SECRET_READ = Kind(
    _SECRET,
    "Read private keys or passwords",
    Severity.HIGH,
    "The server opened a place that holds private keys, passwords or sessions of its user.",
    threat=Threat.EXFILTRATION,
    cwe=522,
)
SECRET_TRIED = Kind(
    _SECRET,
    "Looked for private keys or passwords",
    Severity.MEDIUM,
    "The server tried to open a place where private keys, passwords or sessions are kept; it was not there, or denied.",
    threat=Threat.EXFILTRATION,
    cwe=522,
)
ACCOUNT_READ = Kind(
    _ACCOUNT,
    "Read the credentials of a service",
    Severity.MEDIUM,
    "The server opened a file that holds the user's credentials for a service.",
    threat=Threat.EXFILTRATION,
    cwe=522,
    remediation="Fine where the server is for that service; otherwise ask its author.",
)
ACCOUNT_OWN = Kind(
    _ACCOUNT,
    "Read the credentials of its service",
    Severity.LOW,
    "The server opened a file that holds the user's credentials for the service that it is named after.",
    threat=Threat.UNCATEGORIZED,
    cwe=522,
    remediation="A fact to know: its client library looks there. What leaves is another matter.",
)
ACCOUNT_LIBRARY = Kind(
    _ACCOUNT,
    "Read credentials, as a library does",
    Severity.LOW,
    "The server opened a file that holds credentials, which a widely used library opens whoever uses it.",
    threat=Threat.UNCATEGORIZED,
    cwe=522,
    remediation="A fact to know. What leaves is another matter.",
)
ACCOUNT_TRIED = Kind(
    _ACCOUNT,
    "Looked for the credentials of a service",
    Severity.LOW,
    "The server tried to open a file where credentials for a service are kept.",
    threat=Threat.EXFILTRATION,
    remediation="Fine where the server is for that service: its client library looks there.",
)
AGENT_READ = Kind(
    _AGENT,
    "Read an agent's configuration",
    Severity.MEDIUM,
    "The server opened the configuration of an agent, which names other servers and holds their tokens.",
    threat=Threat.EXFILTRATION,
)
AGENT_TRIED = Kind(
    _AGENT,
    "Looked for an agent's configuration",
    Severity.LOW,
    "The server tried to open the configuration of an agent.",
    threat=Threat.EXFILTRATION,
)
AGENT_WRITE = Kind(
    "behavior.files.agent-config-write",
    "Wrote an agent's configuration",
    Severity.HIGH,
    "The server changed, or tried to change, what decides which servers an agent starts or which orders it follows.",
    threat=Threat.TOOL_POISONING,
    cwe=829,
)
PERSISTENCE = Kind(
    _PERSISTENCE,
    "Wrote where code is started later",
    Severity.HIGH,
    "The server changed, or tried to change, a place whose content is run or obeyed later, outside of the server.",
    cwe=506,
)
CREDENTIAL_WRITE = Kind(
    "behavior.files.credential-write",
    "Changed stored credentials",
    Severity.HIGH,
    "The server changed, or tried to change, a place where credentials are kept.",
    cwe=522,
)
OUTSIDE_HOME = Kind(
    _OUTSIDE,
    "Wrote into the user's home folder",
    Severity.LOW,
    "The server wrote into the user's home, outside of the workspace and of the folders meant for programs' own state.",
    threat=Threat.UNCATEGORIZED,
    remediation="See whether what the server is for explains it.",
)
OUTSIDE_SYSTEM = Kind(
    _OUTSIDE,
    "Tried to write into the system",
    Severity.MEDIUM,
    "The server tried to change files of the system.",
)
OUTSIDE_OTHER = Kind(
    _OUTSIDE,
    "Tried to write outside of the workspace",
    Severity.LOW,
    "The server tried to make or change files at the top of the file system.",
    threat=Threat.UNCATEGORIZED,
    remediation="See whether a setting moves them elsewhere.",
)
DELETED_GIVEN = Kind(
    _DELETED,
    "Deleted the user's files",
    Severity.HIGH,
    "The server deleted or moved away files that were there before it, without being asked for anything.",
    cwe=1188,
)
DELETED = Kind(
    _DELETED,
    "Deleted files that it had not made",
    Severity.MEDIUM,
    "The server deleted or moved away files of the user that it was not seen to have made, without being asked.",
)
PLANTED_READ = Kind(
    "behavior.files.planted-read",
    "Read the user's files unasked",
    Severity.LOW,
    "The server opened files in the user's home that have nothing to do with it, before it was asked for anything.",
    threat=Threat.EXFILTRATION,
)
OTHER_PROCESS = Kind(
    "behavior.files.other-process",
    "Read another process's environment or memory",
    Severity.MEDIUM,
    "The server opened the environment or the memory of a process that is not its own.",
    threat=Threat.EXFILTRATION,
    cwe=200,
)

_PROCESS_FILE = re.compile(r"/proc/(\d+)(?:/task/\d+)?/(environ|mem)")
#: Folders that belong to the system's packages and its administrator.
_SYSTEM = frozenset({"/etc", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/boot", "/root"})
#: Words of the reasons of places that name no service.
_NO_SERVICE = frozenset({"and", "the", "hosts", "services", "storage", "image", "registries", "git", "server"})
_OF_THE_USER = frozenset({Area.WORKSPACE, Area.HOME, Area.STATE})


class FilesFold(BehaviorFold):
    """Memory: planted, asked-for and self-made paths, all bounded."""

    calls = FILE_CALLS

    def __init__(self, analyzer: BehaviorAnalyzer, facts: Any) -> None:
        super().__init__(analyzer, facts)
        self._reads = PlaceTable(PlaceKind.SECRET, PlaceKind.ACCOUNT, PlaceKind.AGENT)
        self._writes = PlaceTable(PlaceKind.PERSISTENCE, PlaceKind.AGENT, PlaceKind.SECRET, PlaceKind.ACCOUNT)
        self._start_files = PlaceTable(PlaceKind.PERSISTENCE)
        self._planted = PathMemory()
        self._asked = PathMemory()
        self._made = PathMemory()
        self._repositories = Repositories()

    def other(self, event: Event) -> None:
        """Files that were planted because it looked for them are not the user's: it reads what it asked for."""
        if isinstance(event, AttemptEvent):
            for path in event.files:
                self._asked.add(path)

    def noise(self, event: SyscallEvent) -> None:
        """What the gate writes before the target begins is planted: it was there before it."""
        if event.call in OPENS and event.result is not None and event.result >= 0:
            for effect in effects_of(event, self.attribution):
                if effect.what is What.WRITE and area_of(effect.path) in _OF_THE_USER:
                    self._planted.add(effect.path)
                    self._made.discard(effect.path)

    def syscall(self, event: SyscallEvent) -> None:
        """Judge the effects of one call."""
        for effect in effects_of(event, self.attribution):
            if effect.what is What.READ:
                self._read(event, effect)
            elif effect.what is What.WRITE:
                self._write(event, effect)
            else:
                self._delete(event, effect)

    def transfer(self, event: TransferEvent) -> None:
        """Bytes written prove a write whose open did not say that it was one."""
        if event.written and event.path is not None and event.path.startswith("/"):
            place = self._writes.find(event.path)
            if place is not None:
                where = self.attribution.where(event, event.path)
                if self._repositories.usual(event.path, where.process.name):
                    return
                text = f"wrote {event.written} bytes to {event.path}"
                self.ledger.note(_write_kind(place), place.pattern, event, where, text, extra=_because(place))

    def _read(self, event: SyscallEvent, effect: Effect) -> None:
        path = effect.path
        place = self._reads.find(path)
        if place is not None:
            self._read_place(event, effect, place)
        elif path.startswith("/proc/"):
            match = _PROCESS_FILE.fullmatch(path)
            if match is not None and int(match[1]) not in (event.pid, event.tid, 1):
                where = self.attribution.where(event, path)
                self.ledger.note(OTHER_PROCESS, match[2], event, where, f"opened {path}")
        elif effect.done and (event.decoy or path in self._planted) and area_of(path) is not Area.WORKSPACE:
            if path in self._asked:
                return
            where = self.attribution.where(event, path)
            if where.phase != CALL and not usual_path(path, where.process.name, writing=False):
                self.ledger.note(PLANTED_READ, "planted", event, where, f"opened {path}")

    def _read_place(self, event: SyscallEvent, effect: Effect, place: Place) -> None:
        where = self.attribution.where(event, effect.path)
        if usual_path(effect.path, where.process.name, writing=False) or "O_DIRECTORY" in event.flags:
            return
        if signing_in(effect.path, where.process, done=effect.done):
            return
        done, tried = {
            PlaceKind.SECRET: (SECRET_READ, SECRET_TRIED),
            PlaceKind.ACCOUNT: (ACCOUNT_READ, ACCOUNT_TRIED),
        }.get(place.kind, (AGENT_READ, AGENT_TRIED))
        verb = "opened" if effect.done else "tried to open"
        text = f"{verb} {effect.path}"
        kind = done if effect.done else tried
        if kind is ACCOUNT_READ and self._own(place):
            kind = ACCOUNT_OWN
        extra = _because(place)
        library = read_by_library(effect.path, where.process.name) if kind is ACCOUNT_READ else None
        if library is not None:
            kind, extra = ACCOUNT_LIBRARY, f"{extra} {library[0].upper()}{library[1:]}."
        self.ledger.note(kind, place.pattern, event, where, text, extra=extra)

    def _own(self, place: Place) -> bool:
        """True for credentials of the service that the target is named after (`keys of AWS`, an AWS server)."""
        manifest = self.facts.manifest
        name = f"{manifest.name} {manifest.target.name or ''}".lower() if manifest is not None else ""
        words = set(re.split(r"[^a-z0-9]+", name))
        service = place.reason.partition(" of ")[2].lower().replace("kubernetes", "kubernetes k8s")
        return any(
            word in words or (len(word) > 4 and word in name)
            for word in re.split(r"[^a-z0-9]+", service)
            if len(word) > 2 and word not in _NO_SERVICE
        )

    def _write(self, event: SyscallEvent, effect: Effect) -> None:
        path = effect.path
        if effect.done and path not in self._planted:
            self._made.add(path)
            self._repositories.wrote(event.call, path)
        place = self._writes.find(path)
        if place is not None and place.kind is PlaceKind.ACCOUNT:
            place = self._start_files.find(path) or place
        area = None if place is not None else area_of(path)
        if place is None and area not in (Area.HOME, Area.SYSTEM):
            return
        where = self.attribution.where(event, path)
        if usual_path(path, where.process.name, writing=True) or signing_in(path, where.process, done=effect.done):
            return
        if self._repositories.usual(path, where.process.name):
            return
        of_a_project = place is not None and place.pattern.startswith("**/") and where.phase == CALL
        if of_a_project and (where.attacked or area_of(path) is Area.WORKSPACE):
            return  # it was asked to work on one, in the workspace or where a payload led it
        text = f"{event.call}{'' if effect.done else ' tried'}: {path}"
        if place is not None:
            self.ledger.note(_write_kind(place), place.pattern, event, where, text, extra=_because(place))
        elif area is Area.HOME:
            if effect.done and where.phase != CALL:
                self.ledger.note(OUTSIDE_HOME, "home", event, where, text)
        elif path.startswith("/"):
            top = "/" + path[1:].partition("/")[0]
            kind = OUTSIDE_SYSTEM if top in _SYSTEM else OUTSIDE_OTHER
            self.ledger.note(kind, f"system:{top}", event, where, text)

    def _delete(self, event: SyscallEvent, effect: Effect) -> None:
        path = effect.path
        made, planted = path in self._made, path in self._planted
        if effect.done:
            self._made.discard(path)
        place = self._writes.find(path)
        if not effect.done and place is None:
            return
        if made or (place is None and area_of(path) not in _OF_THE_USER):
            return
        where = self.attribution.where(event, path)
        text = f"{event.call}{'' if effect.done else ' tried'}: {path}"
        if place is not None and place.kind is not PlaceKind.SECRET:
            if effect.done and not self._repositories.usual(path, where.process.name):
                self.ledger.note(_write_kind(place), place.pattern, event, where, text, extra=_because(place))
        elif where.phase == CALL or not effect.done:
            return
        elif planted:
            self.ledger.note(DELETED_GIVEN, "given", event, where, text)
        elif not self._made.forgot and event.call != "rmdir" and area_of(path) is not Area.STATE:
            self.ledger.note(DELETED, "not-made", event, where, text)


def _write_kind(place: Place) -> Kind:
    kinds = {PlaceKind.PERSISTENCE: PERSISTENCE, PlaceKind.AGENT: AGENT_WRITE}
    return kinds.get(place.kind, CREDENTIAL_WRITE)


def _because(place: Place) -> str:
    return f"{place.pattern}: {place.reason}."


class FilesAnalyzer(BehaviorAnalyzer):
    """Judges what was done to files."""

    name = "behavior.files"
    description = "credentials read, start-up files and agents' configurations written, files deleted"
    fold = FilesFold
    kinds = (
        SECRET_READ, SECRET_TRIED, ACCOUNT_READ, ACCOUNT_OWN, ACCOUNT_LIBRARY, ACCOUNT_TRIED, AGENT_READ, AGENT_TRIED,
        AGENT_WRITE, PERSISTENCE, CREDENTIAL_WRITE, OUTSIDE_HOME, OUTSIDE_SYSTEM, OUTSIDE_OTHER, DELETED_GIVEN, DELETED,
        PLANTED_READ, OTHER_PROCESS,
    )  # fmt: skip
