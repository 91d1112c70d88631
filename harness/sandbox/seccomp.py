"""The seccomp profile of targets: Docker's default one with everything taken away that a target has no use for.

`sandboxes/seccomp/upstream.json` is the vendored base (its origin is told beside it), `target.json` what `derive`
makes of it. `python -m harness.sandbox.seccomp` writes `target.json` anew; a test compares the two. Giving a profile to
the engine replaces its own, so this is a complete allow-list.
"""

from __future__ import annotations

import json

from harness.model.base import JsonObject
from harness.model.errors import HarnessError
from harness.sandbox.image_spec import sandboxes_dir

#: Calls no target gets, and why. Some are not in today's base: named all the same, so that a newer one can't add them.
DENIED: dict[str, tuple[str, ...]] = {
    "file and network operations made by these rings are seen by no syscall recorder": (
        "io_uring_setup", "io_uring_enter", "io_uring_register",
        "io_setup", "io_submit",  # with io_setup gone too, programs fall back instead of failing at the first submit
    ),
    "reaches into other processes": (
        "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp",
    ),
    "stops the kernel at a chosen point, the first step of many exploits": ("userfaultfd",),
    "key rings are not separated by namespaces": ("keyctl", "add_key", "request_key"),
    "programs and counters in the kernel": ("bpf", "perf_event_open"),
    "another kernel, modules": ("kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module"),
    "mounts": (
        "mount", "umount", "umount2", "mount_setattr", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount",
        "fspick", "pivot_root", "chroot", "open_by_handle_at",
    ),
    "new namespaces": ("unshare", "setns"),
    "only for 32-bit code": ("socketcall", "modify_ldt"),
}  # fmt: skip

#: Socket families by number, from <linux/socket.h>. AF_VSOCK (40) reaches the hypervisor past the network namespace,
#: AF_ALG (38) and AF_PACKET (17) are attack surface or raw access.
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}

#: Where the profile is meant to be used, in the engine's names. No 32-bit and no x32 calls: their tables hold calls
#: (socketcall) that walk around a filter on arguments.
ARCHITECTURES = {"amd64": "SCMP_ARCH_X86_64", "arm64": "SCMP_ARCH_AARCH64"}

#: CLONE_NEWNS | NEWCGROUP | NEWUTS | NEWIPC | NEWUSER | NEWPID | NEWNET, from <linux/sched.h>.
NAMESPACE_FLAGS = 0x7E020000


def derive(base: JsonObject) -> JsonObject:
    """Make the profile of targets from the engine's default profile, both in Docker's JSON format.

    Rules that ask for a capability go (targets have none), those that hold unless there is one become unconditional.
    Raises ValueError when the base is not what it is taken for: the result would not be the filter that is promised.
    """
    if base.get("defaultAction") != "SCMP_ACT_ERRNO":
        raise ValueError("the base profile does not deny by default")
    denied = {name for names in DENIED.values() for name in names}
    allowed: set[str] = set()
    rules: list[JsonObject] = []
    for block in base["syscalls"]:
        includes, excludes = block.get("includes") or {}, block.get("excludes") or {}
        if includes.get("caps"):
            continue
        arches = sorted(set(includes.get("arches") or ARCHITECTURES) & set(ARCHITECTURES))
        if not arches or set(ARCHITECTURES) <= set(excludes.get("arches") or ()):
            continue
        names = sorted(set(block["names"]) - denied - {"socket", "socketpair"})
        if not names:
            continue
        if block["action"] == "SCMP_ACT_ALLOW" and not block.get("args"):
            if "clone" in names or "clone3" in names:
                raise ValueError("the base profile allows clone without looking at its flags")
            if len(arches) == len(ARCHITECTURES):
                allowed.update(names)
                continue
        rule = {"names": names, "action": block["action"]}
        rule |= {key: block[key] for key in ("errnoRet", "args") if block.get(key)}
        if len(arches) < len(ARCHITECTURES):
            rule["includes"] = {"arches": arches}
        rules.append(rule)
    flags = [rule["args"][0]["value"] for rule in rules if "clone" in rule["names"]]
    if flags != [NAMESPACE_FLAGS]:
        raise ValueError("the base profile's rule for clone is not the known one")
    rules += [_for_family("socket", number) for number in FAMILIES.values()]
    rules.append(_for_family("socketpair", FAMILIES["AF_UNIX"]))
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": base.get("defaultErrnoRet", 1),
        "archMap": [{"architecture": name, "subArchitectures": []} for name in ARCHITECTURES.values()],
        "syscalls": [{"names": sorted(allowed), "action": "SCMP_ACT_ALLOW"}, *rules],
    }


def _for_family(call: str, family: int) -> JsonObject:
    return {
        "names": [call],
        "action": "SCMP_ACT_ALLOW",
        "args": [{"index": 0, "value": family, "op": "SCMP_CMP_EQ"}],
    }


def render(profile: JsonObject) -> str:
    """The text of `target.json`: indented, so that a new base can be reviewed as a difference."""
    return json.dumps(profile, indent=1) + "\n"


def profile_json() -> str:
    """The targets' profile for `security_opt=["seccomp=" + profile_json()]`, as compact JSON.

    Raises HarnessError when the file is missing or is not JSON.
    """
    path = sandboxes_dir() / "seccomp" / "target.json"
    try:
        return json.dumps(json.loads(path.read_text()), separators=(",", ":"))
    except (OSError, ValueError) as error:
        raise HarnessError(f"the seccomp profile can't be read: {error}", remedy="reinstall harness") from error


def main() -> None:
    """Write `target.json` from `upstream.json`."""
    folder = sandboxes_dir() / "seccomp"
    (folder / "target.json").write_text(render(derive(json.loads((folder / "upstream.json").read_text()))))


if __name__ == "__main__":
    main()
