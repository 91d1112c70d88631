"""A server image that the engine has: nothing is fetched, and it is run as it is, behind the gate.

The gate is a static program; it is put into a sealed volume by copying it out of a sandbox image, and mounted beside
the image's own files.
"""

from __future__ import annotations

from harness.model.errors import TargetError
from harness.model.target import (
    Acquired,
    Artifact,
    Closure,
    Ecosystem,
    EntryPoint,
    ImageConfig,
    InstallPlan,
    TargetRef,
)


def acquire_image(ref: TargetRef, image: ImageConfig) -> Acquired:
    """Plan a run of `image`. Raises TargetError for an image that names no way to start it."""
    if not image.argv:
        raise TargetError(f"the image {ref.name} names neither an entry point nor a command")
    digest = image.id.removeprefix("sha256:")
    version = image.labels.get("org.opencontainers.image.version", "")[:100]
    own = Artifact(name=image.reference, version=version, filename="image", sha256=digest, size=image.size)
    closure = Closure(artifacts=(own,))
    return Acquired(
        ref=ref,
        name=image.reference,
        version=version,
        ecosystem=Ecosystem.NONE,
        closure=closure,
        install=InstallPlan(
            image="base",
            steps=(("cp", "/usr/local/bin/entry", "/app/entry"), ("chmod", "755", "/app", "/app/entry")),
            closure_digest="gate",
        ),
        entry_points=(EntryPoint(name="image", argv=image.argv, source="image"),),
        notes=(
            "nothing is installed: the image is run as it is, with a home directory of its own",
            f"it declares the user {(image.user or 'root')[:60]!a} and is run as {image.run_as}",
        ),
        image=image,
    )
