"""The hardened containers: what target, install step, warden and recorder may do, as the engine's create requests.

Everything here is a pure function. The settings and their reasons are those of the threat model: no network
interface, no capability, read-only root, bounded memory, processes, descriptors and writable space.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from harness.model.base import Record
from harness.model.options import Limits
from harness.sandbox.base import APP, HOME, SEALED_APP

#: The unprivileged user of every sandbox image.
USER_ID = 65532
GATE = "/usr/local/bin/entry"
INPUT = "/input"
#: A name as a developer's machine could have it: a target that looks shall not see "sandbox".
HOSTNAME = "workstation"
#: The most that a copy of an installation may take, beside the target's own memory.
UNSEALED_BYTES = 1 << 30
WARDEN_MEMORY_BYTES = 32 << 20
WARDEN_PIDS = 16
#: The rings beside the one whose size is chosen, the loader's buffer, and what the kernel needs to check the program.
RECORDER_MEMORY_BYTES = 64 << 20
RECORDER_PIDS = 16
TRACER_MEMORY_BYTES = 128 << 20
TRACER_PIDS = 16

#: What the gateway itself holds for flows (48 MiB), its capture, Python, and what the kernel charges for sockets.
GATEWAY_MEMORY_BYTES = 320 << 20
GATEWAY_TMPFS_BYTES = 96 << 20
GATEWAY_PIDS = 16
#: The target's own address and its resolver's, as in a home network; the gateway's code has the same.
OWN_ADDRESS, OWN_ADDRESS_6, RESOLVER = "192.168.1.24", "fd5e:8c1a:77b2::24", "192.168.1.1"

LABEL_RUN = "harness.run"
LABEL_LEASE = "harness.lease"
LABEL_OWNER = "harness.owner"
LABEL_ROLE = "harness.role"
LABEL_NONCE = "harness.nonce"
ROLE_APP, ROLE_INPUT = "app", "input"

Role = Literal["target", "warden", "install"]


class VolumeMount(Record):
    """A named volume and where it is mounted."""

    volume: str
    path: str
    read_only: bool


def gated_config(
    *,
    image: str,
    argv: tuple[str, ...],
    workdir: str,
    environment: Mapping[str, str],
    path: str,
    limits: Limits,
    mounts: tuple[VolumeMount, ...],
    warden: str,
    labels: Mapping[str, str],
    seccomp: str,
    runtime: str | None = None,
    unsealed: bool = False,
) -> dict[str, Any]:
    """The create request of a container whose process waits behind the gate, in the warden's pid namespace.

    `unsealed`: the gate copies what is mounted at `SEALED_APP` into memory at `APP` first.

    `image` and `warden` are engine ids or names, `path` is the image's own PATH, `seccomp` the profile's JSON text.

    The warden is the namespace's first process and belongs to root, so a target can neither end nor debug it, and
    the kernel kills every process of the namespace when it ends. Were the target's container the owner, its first
    process would run as the target's user, could be rewritten by the target through /proc/1/mem, and could not be
    killed from inside the namespace at all.
    """
    size = limits.tmpfs_bytes
    # Not noexec: Python and Node packages unpack native code into HOME and /tmp and load it from there, and so does
    # malware; a sandbox where both fail shows less than a developer's machine would.
    scratch = f"rw,exec,nosuid,nodev,size={size}"
    variables = {**environment, "HOME": HOME}  # what is planted is planted there, and nowhere else can be written
    variables.setdefault("PATH", f"{APP}/bin:{path}")
    memory = limits.memory_bytes + (UNSEALED_BYTES if unsealed else 0)
    host = _host_config(
        memory=memory, pids=limits.pids, cpus=limits.cpus, open_files=limits.open_files, seccomp=seccomp
    )
    host["PidMode"] = f"container:{warden}"
    host["Tmpfs"] = {
        "/tmp": f"{scratch},mode=1777",  # noqa: S108 - inside the container
        HOME: f"{scratch},mode=0700,uid={USER_ID},gid={USER_ID}",
    }
    host["Mounts"] = [
        {
            "Type": "volume",
            "Source": mount.volume,
            "Target": mount.path,
            "ReadOnly": mount.read_only,
            # A fresh volume takes the ownership of the image's folder, which is the sandbox user's.
            "VolumeOptions": {"NoCopy": mount.read_only},
        }
        for mount in mounts
    ]
    if unsealed:
        host["Tmpfs"][APP] = f"rw,exec,nosuid,nodev,size={UNSEALED_BYTES},mode=0755,uid={USER_ID},gid={USER_ID}"
    copy = ("--copy", SEALED_APP, APP) if unsealed else ()
    if runtime is not None:
        host["Runtime"] = runtime
    return {
        **_process(image, f"{USER_ID}:{USER_ID}", labels),
        "Hostname": HOSTNAME,
        "WorkingDir": "/",
        "Env": [f"{name}={value}" for name, value in sorted(variables.items())],
        "Entrypoint": [GATE],
        "Cmd": [*copy, workdir, "--", *argv],
        "HostConfig": host,
    }


def warden_config(*, image: str, deadline_seconds: int, labels: Mapping[str, str], seccomp: str) -> dict[str, Any]:
    """The create request of a warden: root with the one capability to kill, and nothing else."""
    host = _host_config(memory=WARDEN_MEMORY_BYTES, pids=WARDEN_PIDS, cpus=1.0, open_files=64, seccomp=seccomp)
    host["CapAdd"] = ["KILL"]
    host["Init"] = False  # the warden itself is the namespace's first process, also where the daemon's default differs
    return {
        **_process(image, "0:0", labels),
        "Hostname": HOSTNAME,
        "Cmd": [str(deadline_seconds)],
        "HostConfig": host,
    }


def recorder_config(
    *, image: str, deadline_seconds: int, ring_kib: int, labels: Mapping[str, str], runtime: str | None = None
) -> dict[str, Any]:
    """The create request of a recorder: root with the one capability to load and attach it, which it then gives up.

    The engine's own seccomp profile stands (it lets the holder of that capability load programs, ours lets nobody).
    It needs neither a mount nor the machine's pid namespace: a container's read-only /sys has the kernel's types.
    """
    memory = RECORDER_MEMORY_BYTES + (ring_kib << 10)
    host = _host_config(memory=memory, pids=RECORDER_PIDS, cpus=1.0, open_files=128, seccomp=None)
    host["CapAdd"] = ["SYS_ADMIN"]
    host["SecurityOpt"].append("label=disable")  # SELinux forbids containers to load programs; elsewhere no effect
    host["Init"] = False
    if runtime is not None:
        host["Runtime"] = runtime
    return {
        **_process(image, "0:0", labels),
        "Hostname": HOSTNAME,
        "Cmd": [str(deadline_seconds), str(ring_kib)],
        "HostConfig": host,
    }


def tracer_config(
    *, image: str, script: str, warden: str, labels: Mapping[str, str], seccomp: str, runtime: str | None = None
) -> dict[str, Any]:
    """The create request of a tracer: root with two capabilities, in the warden's pid namespace. `script` is a shell's.

    SYS_PTRACE is for watching another user's processes; DAC_READ_SEARCH for the kernel's names of their open files
    in /proc (what else it opens, open_by_handle_at, `seccomp` denies). The target's own container is no different for
    it; as another user without capabilities a target can neither end, nor stop, nor read a tracer.
    """
    host = _host_config(memory=TRACER_MEMORY_BYTES, pids=TRACER_PIDS, cpus=1.0, open_files=256, seccomp=seccomp)
    host["CapAdd"] = ["SYS_PTRACE", "DAC_READ_SEARCH"]
    host["PidMode"] = f"container:{warden}"
    host["Init"] = False
    if runtime is not None:
        host["Runtime"] = runtime
    return {
        **_process(image, "0:0", labels),
        "Hostname": HOSTNAME,
        "WorkingDir": "/",
        "Entrypoint": ["/bin/sh", "-c", script],
        "HostConfig": host,
    }


def gateway_config(
    *,
    image: str,
    labels: Mapping[str, str],
    mechanism: str = "auto",
    runtime: str | None = None,
    cable: str | None = None,
) -> dict[str, Any]:
    """The create request of a gateway: no interface but its own loopback, on which it makes the whole world.

    Root with the capabilities to set that up and to become somebody else; it gives up all of them before a target
    runs. Names and resolver are what the joining target sees. `mechanism`: auto, or redirect for the fallback.
    `cable`: the container whose namespace the target joins instead; a gateway is in its pid namespace, by which it
    hands an interface over (no more than NET_ADMIN in both is needed for that).
    """
    config = _namespace_config(image, labels, runtime)
    config["Cmd"] = [mechanism] if cable is None else [mechanism, "apart"]
    host = config["HostConfig"]
    host["CapAdd"].append("NET_RAW")
    if cable is not None:
        host["PidMode"] = f"container:{cable}"
    return config


def cable_config(*, image: str, labels: Mapping[str, str], runtime: str | None = None) -> dict[str, Any]:
    """The create request of the container whose network namespace a target joins, apart from the gateway's.

    Of the gateway's image; it gives up its capabilities as soon as its interface is configured, and runs nothing.
    """
    return {**_namespace_config(image, labels, runtime), "Cmd": ["cable"]}


def _namespace_config(image: str, labels: Mapping[str, str], runtime: str | None) -> dict[str, Any]:
    """What gateway and cable have in common."""
    host = _host_config(memory=GATEWAY_MEMORY_BYTES, pids=GATEWAY_PIDS, cpus=1.0, open_files=8192, seccomp=None)
    host["CapAdd"] = ["NET_ADMIN", "SETUID", "SETGID"]
    host["Init"] = False
    host["Dns"] = [RESOLVER]
    host["ExtraHosts"] = [f"{HOSTNAME}:{OWN_ADDRESS}"]
    host["Sysctls"] = {f"net.ipv6.conf.{which}.disable_ipv6": "0" for which in ("all", "default", "lo")}
    host["Tmpfs"] = {"/tmp": f"rw,noexec,nosuid,nodev,size={GATEWAY_TMPFS_BYTES},mode=1777"}  # noqa: S108
    if runtime is not None:
        host["Runtime"] = runtime
    return {
        **_process(image, "0:0", labels),
        "Hostname": HOSTNAME,
        "NetworkDisabled": False,
        "Entrypoint": ["/usr/bin/python3", "-I", "-S", "/opt/gateway"],
        "HostConfig": host,
    }


def joined_config(config: dict[str, Any], gateway: str) -> dict[str, Any]:
    """A create request changed so that the container shares the network namespace of the named gateway."""
    kept = {name: value for name, value in config.items() if name != "Hostname"}  # the gateway's is taken over
    host = {**config["HostConfig"], "NetworkMode": f"container:{gateway}"}
    return {**kept, "NetworkDisabled": False, "HostConfig": host}


def _process(image: str, user: str, labels: Mapping[str, str]) -> dict[str, Any]:
    return {
        "Image": image,
        "User": user,
        "Labels": dict(labels),
        "Tty": False,
        "OpenStdin": True,
        "StdinOnce": True,  # the end of our connection is the end of the process's stdin
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "NetworkDisabled": True,
        "Healthcheck": {"Test": ["NONE"]},
    }


def _host_config(*, memory: int, pids: int, cpus: float, open_files: int, seccomp: str | None) -> dict[str, Any]:
    return {
        "NetworkMode": "none",
        "ReadonlyRootfs": True,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges:true", *([] if seccomp is None else [f"seccomp={seccomp}"])],
        "PidsLimit": pids,
        "Memory": memory,
        "MemorySwap": memory,  # equal: else as much swap comes on top
        "NanoCpus": int(cpus * 1_000_000_000),
        "Ulimits": [
            {"Name": "nofile", "Soft": open_files, "Hard": open_files},
            {"Name": "core", "Soft": 0, "Hard": 0},
        ],
        "IpcMode": "private",
        "CgroupnsMode": "private",
        "LogConfig": {"Type": "none", "Config": {}},
        "RestartPolicy": {"Name": "no"},
    }
