"""The seccomp profile of a target that strace watches: what is taken away from it, and which answers are its own.

Pure. strace sees every call before the filter does, and its result, but not who gave it: the profile tells.
"""

from __future__ import annotations

import errno
import json
from typing import Any

from harness.model.base import JsonObject
from harness.sandbox.seccomp import FAMILIES

#: From <linux/sched.h>: a child made with it is born without its parent's tracer, so nobody would see what it does.
CLONE_UNTRACED = 0x00800000
#: "No such call": C libraries then fall back to clone, whose flags a filter can look at.
_ENOSYS = 38


def watched_profile(profile: str) -> str:
    """The profile (JSON text, Docker's format) with the ways out of a trace taken away.

    `clone` with CLONE_UNTRACED is denied, and `clone3` answered as unknown: its flags lie in memory, out of a filter's
    sight. No known program uses the flag: it is the kernel's own.
    """
    made: JsonObject = json.loads(profile)
    rules: list[JsonObject] = []
    for rule in made.get("syscalls", []):
        names = [name for name in rule["names"] if name not in ("clone", "clone3")]
        if names:
            rules.append({**rule, "names": names})
        if "clone" in rule["names"] and rule["action"] == "SCMP_ACT_ALLOW":
            rules.append({**rule, "names": ["clone"], "args": _traced_only(rule.get("args") or [])})
    rules.append({"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": _ENOSYS})
    return json.dumps({**made, "syscalls": rules}, separators=(",", ":"))


def tracer_profile(shipped: str) -> str:
    """The profile of the tracer itself: that of targets, and what watching others takes."""
    made: JsonObject = json.loads(shipped)
    watching = {"names": ["ptrace", "process_vm_readv"], "action": "SCMP_ACT_ALLOW"}
    return json.dumps({**made, "syscalls": [*made["syscalls"], watching]}, separators=(",", ":"))


def _traced_only(args: list[Any]) -> list[Any]:
    """Conditions on clone's flags (argument 0), CLONE_UNTRACED among those that must not be set."""
    kept = [arg for arg in args if arg["index"] != 0]
    mask = CLONE_UNTRACED
    for arg in args:
        if arg["index"] == 0 and arg["op"] == "SCMP_CMP_MASKED_EQ" and not arg.get("valueTwo"):
            mask |= int(arg["value"])
        elif arg["index"] == 0:
            raise ValueError("the profile's rule for clone is not one that can be narrowed")
    return [*kept, {"index": 0, "value": mask, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}]


class Filter:
    """Which results of calls are the filter's answers. `profile`: the JSON text that the target runs under."""

    def __init__(self, profile: str) -> None:
        made = json.loads(profile)
        default = int(made.get("defaultErrnoRet") or errno.EPERM)
        self._default = default
        self._answers: dict[str, set[int]] = {}
        #: Calls that the filter never answers.
        self.free: set[str] = set()
        conditional: set[str] = set()
        for rule in made.get("syscalls", []):
            for name in rule["names"]:
                if rule["action"] != "SCMP_ACT_ALLOW":
                    self._answers.setdefault(name, set()).add(int(rule.get("errnoRet") or default))
                elif rule.get("args"):
                    conditional.add(name)
                elif not rule.get("includes"):
                    self.free.add(name)
        for name in conditional - self.free:
            self._answers.setdefault(name, set()).add(default)
        self.free -= set(self._answers)

    def answered(self, call: str, result: int | None, flags: tuple[str, ...] = ()) -> bool:
        """Whether this result of that call is the filter's answer, as far as name, error and flags tell."""
        if result is None or result >= 0 or call in self.free:
            return False
        if call in ("socket", "socketpair") and flags[:1] and flags[0] in FAMILIES and call == "socket":
            return False  # the kernel itself refuses raw sockets with the same error
        return -result in self._answers.get(call, {self._default})
