"""`behavior.privilege`: attempts at what no server needs: namespaces, mounts, other processes, the kernel itself.

Almost all of these end at the sandbox's system-call filter; that they were tried is the finding.
"""

from __future__ import annotations

from harness.analyzers.behavior.baseline import usual_call
from harness.analyzers.behavior.fold import BehaviorAnalyzer, BehaviorFold
from harness.analyzers.behavior.ledger import Kind
from harness.model.finding import Severity, Threat
from harness.model.recording import SyscallEvent

_ESCAPE = Threat.SANDBOX_EVASION

KERNEL = Kind(
    "behavior.privilege.kernel",
    "Tried to change the kernel",
    Severity.HIGH,
    "The server tried to load a kernel module, another kernel, or a program into the kernel.",
    threat=_ESCAPE,
    cwe=250,
)
PROCESSES = Kind(
    "behavior.privilege.processes",
    "Tried to reach into another process",
    Severity.HIGH,
    "The server tried to trace another process, or to read or change its memory or files.",
    threat=_ESCAPE,
    cwe=250,
)
NAMESPACES = Kind(
    "behavior.privilege.namespaces",
    "Tried to make or join namespaces",
    Severity.MEDIUM,
    "The server tried to make or join namespaces, the first step of many ways out of a container.",
    threat=_ESCAPE,
    cwe=250,
    remediation="Browsers do it for their own sandbox; for another server ask its author.",
)
MOUNTS = Kind(
    "behavior.privilege.mounts",
    "Tried to mount or change the root",
    Severity.MEDIUM,
    "The server tried to mount a file system or to change its root.",
    threat=_ESCAPE,
    cwe=250,
)
IDENTITY = Kind(
    "behavior.privilege.identity",
    "Tried to become root",
    Severity.MEDIUM,
    "The server tried to become root or to gain capabilities.",
    threat=_ESCAPE,
    cwe=250,
)
EXPLOIT = Kind(
    "behavior.privilege.attack-surface",
    "Tried calls that exploits use",
    Severity.MEDIUM,
    "The server tried system calls that exploits of the kernel use and servers do not.",
    threat=_ESCAPE,
    cwe=250,
)
KEYS = Kind(
    "behavior.privilege.key-rings",
    "Tried the kernel's key rings",
    Severity.MEDIUM,
    "The server tried to reach the kernel's key rings, which containers share.",
    threat=_ESCAPE,
)
SOCKETS = Kind(
    "behavior.privilege.sockets",
    "Tried sockets past the network",
    Severity.MEDIUM,
    "The server tried a socket that reaches the hypervisor or raw packets.",
    threat=_ESCAPE,
)
RINGS = Kind(
    "behavior.privilege.io-uring",
    "Tried input and output that is not recorded",
    Severity.LOW,
    "The server tried io_uring, which works past the recording of system calls; the filter refused it.",
    threat=_ESCAPE,
    remediation="Some runtimes try it at every start; nothing came of it here.",
)
COMPAT = Kind(
    "behavior.privilege.32-bit",
    "Made 32-bit system calls",
    Severity.MEDIUM,
    "The server made 32-bit system calls, which walk around filters made for the machine's own ones.",
    threat=_ESCAPE,
)
MACHINE = Kind(
    "behavior.privilege.machine",
    "Tried to change the machine",
    Severity.MEDIUM,
    "The server tried to change the machine's clock, name, swap, accounting or power state.",
    threat=_ESCAPE,
)

#: Which attempt is of which kind. ptrace, socket, clone, the setuid family and prctl are told apart by arguments.
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(
        ("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "bpf", "iopl", "ioperm"),
        KERNEL,
    ),
    **dict.fromkeys(("process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp"), PROCESSES),
    **dict.fromkeys(("unshare", "setns"), NAMESPACES),
    **dict.fromkeys(
        ("mount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen", "fsmount", "mount_setattr",
         "open_by_handle_at"),
        MOUNTS,
    ),
    **dict.fromkeys(("userfaultfd", "perf_event_open", "modify_ldt", "uselib"), EXPLOIT),
    **dict.fromkeys(("keyctl", "add_key", "request_key"), KEYS),
    **dict.fromkeys(("io_uring_setup", "io_uring_enter", "io_uring_register", "io_submit"), RINGS),
    **dict.fromkeys(
        ("reboot", "swapon", "acct", "sethostname", "settimeofday", "clock_settime", "syslog"), MACHINE
    ),
}  # fmt: skip
_IDENTITIES = frozenset({"setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "capset", "setgroups"})
_BEYOND = frozenset({"AF_VSOCK", "AF_PACKET", "AF_ALG", "SOCK_RAW"})


class PrivilegeFold(BehaviorFold):
    """No memory beyond what all behaviour analyzers have."""

    calls = frozenset(_KINDS) | _IDENTITIES | {"ptrace", "socket", "clone", "clone3", "prctl"}

    def syscall(self, event: SyscallEvent) -> None:
        """Judge one attempt."""
        kind = attempt_of(event)
        if kind is None:
            return
        where = self.attribution.where(event)
        if not usual_call(event.call, where.process.name):
            fact = "32-bit" if kind is COMPAT else event.call
            self.ledger.note(kind, fact, event, where, attempt_words(event))


def attempt_words(event: SyscallEvent) -> str:
    """The call with what it asked for, and what came of it."""
    asked = ", ".join(event.flags) or ", ".join(str(number) for number in event.args[:3])
    outcome = "refused by the filter" if event.denied else _outcome(event.result)
    return f"{event.call}({asked}): {outcome}"


def attempt_of(event: SyscallEvent) -> Kind | None:
    """Which kind of attempt a call is; None for most calls."""
    if "compat32" in event.notes or "x32" in event.notes:
        return COMPAT
    call, first = event.call, event.args[0] if event.args else -1
    if call == "ptrace":
        # Asking to be traced is a trick against debuggers, and told by `behavior.evasion`.
        return None if "PTRACE_TRACEME" in event.flags else PROCESSES
    if call == "socket":
        raw = "SOCK_RAW" in event.flags and "AF_NETLINK" in event.flags
        return SOCKETS if not raw and not _BEYOND.isdisjoint(event.flags) else None
    if call in ("clone", "clone3"):
        return NAMESPACES if any(flag.startswith("CLONE_NEW") for flag in event.flags) else None
    if call in _IDENTITIES:
        to_root = call not in ("capset", "setgroups") and 0 in event.args[:3]
        return IDENTITY if to_root or (call == "capset" and (event.denied or (event.result or 0) < 0)) else None
    if call == "prctl":
        return IDENTITY if "PR_CAP_AMBIENT" in event.flags and (event.result or 0) < 0 and first == 47 else None
    return _KINDS.get(call)


def _outcome(result: int | None) -> str:
    if result is None:
        return "had not returned"
    return "succeeded" if result >= 0 else f"error {-result}"


class PrivilegeAnalyzer(BehaviorAnalyzer):
    """Judges attempts at more rights than a server has."""

    name = "behavior.privilege"
    description = "attempts at namespaces, mounts, other processes, root, the kernel, 32-bit calls"
    fold = PrivilegeFold
    kinds = (
        KERNEL, PROCESSES, NAMESPACES, MOUNTS, IDENTITY, EXPLOIT, KEYS, SOCKETS, RINGS, COMPAT, MACHINE,
    )  # fmt: skip
