"""Which of strace's calls become events, what their arguments are, and how names in arguments are numbers.

Pure data. The list is that of the kernel recorder (docs/recording.md), so that both kinds of record say the same.
"""

from __future__ import annotations

import signal

#: What stands at which place: p a path (against the folder named by a `d` before it, else the working directory),
#: P and D the same for a second path, t text that is not resolved, f an open file, F a second one, o open flags,
#: a an address, m a message header, - anything else.
SIGNATURES: dict[str, str] = {
    "open": "po", "creat": "p", "openat": "dpo", "openat2": "dpo", "open_by_handle_at": "---",
    "name_to_handle_at": "dp", "access": "p", "faccessat": "dp", "faccessat2": "dp",
    "stat": "p", "lstat": "p", "newfstatat": "dp", "statx": "dp", "readlink": "p", "readlinkat": "dp",
    "unlink": "p", "unlinkat": "dp", "rmdir": "p", "rename": "pP", "renameat": "dpDP", "renameat2": "dpDP",
    "link": "pP", "linkat": "dpDP", "symlink": "tP", "symlinkat": "tDP",
    "mkdir": "p", "mkdirat": "dp", "mknod": "p", "mknodat": "dp", "truncate": "p", "ftruncate": "f", "fallocate": "f",
    "chmod": "p", "fchmod": "f", "fchmodat": "dp", "fchmodat2": "dp", "chown": "p", "lchown": "p", "fchown": "f",
    "fchownat": "dp", "setxattr": "p", "lsetxattr": "p", "fsetxattr": "f", "removexattr": "p", "lremovexattr": "p",
    "fremovexattr": "f", "chdir": "p", "fchdir": "f", "mmap": "----f-",
    "socket": "---", "socketpair": "---", "connect": "fa", "bind": "fa", "listen": "f", "sendto": "f---a",
    "sendmsg": "fm", "sendmmsg": "fm", "sendfile": "fF", "splice": "f-F", "copy_file_range": "f-F",
    "execve": "p-", "execveat": "dp-", "clone": "-", "clone3": "-", "fork": "", "vfork": "",
    "kill": "--", "tkill": "--", "tgkill": "---", "pidfd_send_signal": "--", "pidfd_getfd": "---",
    "nanosleep": "-", "clock_nanosleep": "---", "prctl": "--", "ptrace": "--",
    "process_vm_readv": "-", "process_vm_writev": "-", "process_madvise": "-", "kcmp": "---",
    "mount": "tP", "umount2": "p", "pivot_root": "pP", "chroot": "p", "unshare": "-", "setns": "--",
    "open_tree": "dp", "move_mount": "dpDP", "fsopen": "-", "fsmount": "-", "mount_setattr": "dp",
    "setuid": "-", "setgid": "-", "setreuid": "--", "setregid": "--", "setresuid": "---", "setresgid": "---",
    "setgroups": "-", "setfsuid": "-", "setfsgid": "-", "capset": "--", "seccomp": "--", "memfd_create": "-",
    "bpf": "-", "perf_event_open": "-", "userfaultfd": "-", "io_uring_setup": "-", "io_uring_enter": "-",
    "io_uring_register": "-", "io_setup": "-", "io_submit": "-", "init_module": "-", "finit_module": "f",
    "delete_module": "-", "kexec_load": "-", "kexec_file_load": "-", "keyctl": "-", "add_key": "-",
    "request_key": "-", "personality": "-", "modify_ldt": "-", "ioperm": "-", "iopl": "-", "uselib": "p",
    "reboot": "-", "swapon": "p", "acct": "p", "sethostname": "-", "settimeofday": "-", "clock_settime": "-",
    "syslog": "-",
}  # fmt: skip

OPENS = frozenset({"open", "creat", "openat", "openat2"})
EXECS = frozenset({"execve", "execveat"})
CLONES = frozenset({"clone", "clone3", "fork", "vfork"})
SLEEPS = frozenset({"nanosleep", "clock_nanosleep"})
#: Only of tell-tale places, or there would be an event for every import.
STATS = frozenset({"stat", "lstat", "newfstatat", "statx", "readlink", "readlinkat"})
TELLTALES = (b"/proc", b"/sys", b"/.", b"/run/.")
#: prctl has as many uses as options; these are told.
PRCTLS = frozenset(
    {
        "PR_SET_DUMPABLE", "PR_SET_KEEPCAPS", "PR_SET_SECCOMP", "PR_CAPBSET_DROP", "PR_SET_SECUREBITS", "PR_SET_MM",
        "PR_SET_CHILD_SUBREAPER", "PR_SET_NO_NEW_PRIVS", "PR_CAP_AMBIENT", "PR_SET_SYSCALL_USER_DISPATCH",
        "PR_SET_PTRACER", "PR_SET_NAME",
    }
)  # fmt: skip
#: Calls whose return value is a number of bytes written to the first descriptor.
WRITES = frozenset({"write", "pwrite64", "writev", "pwritev", "pwritev2", "sendto", "sendmsg"})
RECEIVES = frozenset({"recvfrom", "recvmsg"})

_OPEN_FLAGS = frozenset(
    {
        "O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE", "O_CREAT", "O_EXCL", "O_TRUNC", "O_APPEND", "O_PATH",
        "O_TMPFILE", "O_DIRECTORY", "O_NOFOLLOW",
    }
)  # fmt: skip

#: Names that strace prints where a judgement needs the number; from <linux/prctl.h> and <linux/fcntl.h>.
NUMBERS: dict[str, int] = {
    "NULL": 0, "AT_FDCWD": -100, "SUID_DUMP_DISABLE": 0, "SUID_DUMP_USER": 1, "PR_SET_DUMPABLE": 4,
    "PR_SET_KEEPCAPS": 8, "PR_SET_SECCOMP": 22, "PR_CAPBSET_DROP": 24, "PR_SET_NO_NEW_PRIVS": 38, "PR_CAP_AMBIENT": 47,
    **{name.name: name.value for name in signal.Signals},
}  # fmt: skip


def flag_names(call: str, args: list[bytes]) -> tuple[str, ...]:
    """The names in the arguments of a call, as the kernel recorder gives them; empty where it has none."""
    if call in OPENS:
        if call == "creat":
            return ("O_WRONLY", "O_CREAT", "O_TRUNC")
        position = SIGNATURES[call].index("o")
        return tuple(name for name in _words(args, position) if name in _OPEN_FLAGS)
    if call in ("socket", "socketpair"):
        kinds = tuple(name for name in _words(args, 1) if name not in ("SOCK_CLOEXEC", "SOCK_NONBLOCK"))
        return (*_words(args, 0)[:1], *kinds[:1])
    if call in ("unshare", "setns", "clone", "clone3"):
        text = b" ".join(args).decode("ascii", "replace").replace("|", " ").replace("=", " ").replace(",", " ")
        return tuple(word for word in text.split() if word.startswith("CLONE_NEW"))
    if call in ("prctl", "ptrace"):
        return _words(args, 0)[:1]
    return ()


def _words(args: list[bytes], position: int) -> tuple[str, ...]:
    """The names in one argument: `O_RDWR|O_CREAT`, or those in `{flags=O_RDONLY, mode=0}`."""
    if position >= len(args):
        return ()
    text = args[position].decode("ascii", "replace").replace("flags=", "|").strip("{}")
    return tuple(word for part in text.split("|") if (word := part.split(",")[0].split("/*")[0].strip()))
