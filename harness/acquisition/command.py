"""Acquiring `-- COMMAND ARGS`: nothing is fetched or installed; the image is chosen by the program's name."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from harness.model.base import canonical_json, sha256_hex
from harness.model.target import Acquired, Artifact, Closure, Ecosystem, EntryPoint, InstallPlan, TargetRef

_IMAGES = (
    (re.compile(r"python3\.11"), "python311", Ecosystem.PYTHON),
    (re.compile(r"python[\d.]*|uv|pip\d?"), "python313", Ecosystem.PYTHON),
    (re.compile(r"node|npm|npx"), "node", Ecosystem.NODE),
)


def acquire_command(ref: TargetRef) -> Acquired:
    """Plan a run of a command as given, in an image that has its program. Raises nothing."""
    program = PurePosixPath(ref.command[0]).name
    image, ecosystem = next(
        ((image, world) for pattern, image, world in _IMAGES if pattern.fullmatch(program)), ("base", Ecosystem.NONE)
    )
    line = canonical_json(list(ref.command))
    artifact = Artifact(name=program, version="", filename="command", sha256=sha256_hex(line), size=len(line))
    closure = Closure(artifacts=(artifact,))
    return Acquired(
        ref=ref,
        name=program,
        version="",
        ecosystem=ecosystem,
        closure=closure,
        install=InstallPlan(image=image, closure_digest=closure.digest),
        entry_points=(EntryPoint(name=program, argv=ref.command, source="command"),),
        notes=(f"nothing is installed: the command sees only the {image} image and the planted workspace",),
    )
