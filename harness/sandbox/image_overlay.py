"""What goes into an image on top of the distribution's packages: user, directories, the gate, files from wheels.

All of it is a tar archive, appended to a bootstrapped root or copied into a container, so both ways of making an image
give the same. `FINISH` is the part that needs a shell in the root.
"""

from __future__ import annotations

import fnmatch
import io
import json
import shlex
import stat
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from harness.sandbox.image_spec import (
    HOME,
    PROGRAMS,
    UID,
    USER,
    ImageSpec,
    WheelSpec,
    folder_files,
    sandboxes_dir,
)

#: Every file gets this time (2024-01-01), so that equal inputs give equal layers.
EPOCH = 1704067200

#: Directories of target images, owned by the user and closed to others.
DIRECTORIES = ("app", "input", HOME.lstrip("/"))

#: Taken out of every root (shell globs): nobody reads documentation in a sandbox, and the sources name the mirror.
STRIPPED = (
    "usr/share/doc/*", "usr/share/man/*", "usr/share/info/*", "usr/share/locale/*", "usr/share/lintian",
    "usr/share/bash-completion", "usr/share/gitweb", "var/lib/apt/lists/*", "var/cache/apt/*",
    "var/cache/debconf/*-old", "var/log/*", "etc/apt/sources.list", "etc/apt/sources.list.d/*", "tmp/*", "var/tmp/*",
)  # fmt: skip


def finish_script(spec: ImageSpec) -> str:
    """A shell script that takes the root directory as `$1` and strips it; in target images it adds the user too.

    Without that argument it does nothing: it may run as root on the machine itself.
    """
    lines = ["set -e", ': "${1:?}"', *(f'rm -rf "$1"/{path}' for path in STRIPPED)]
    if spec.target:
        lines += [
            f'printf "%s\\n" {shlex.quote(entry)} >> "$1"/etc/{file}'
            for file, entry in (
                ("passwd", f"{USER}:x:{UID}:{UID}::{HOME}:/bin/sh"),
                ("group", f"{USER}:x:{UID}:"),
                ("shadow", f"{USER}:!::0:99999:7:::"),
            )
        ]
    return "\n".join(lines) + "\n"


def changes(spec: ImageSpec) -> list[str]:
    """The image's configuration, as Dockerfile lines for the engine's import and commit."""
    lines = ["LABEL " + " ".join(f"{key}={json.dumps(value)}" for key, value in spec.labels.items())]
    if spec.program:
        return [*lines, f"ENTRYPOINT {json.dumps([PROGRAMS[spec.program]])}"]
    environment = {"LANG": "C.UTF-8", **({"HOME": HOME} if spec.target else {}), **spec.environment}
    environment.setdefault("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    lines += [f"ENV {key}={json.dumps(value)}" for key, value in sorted(environment.items())]
    if spec.target:
        lines += [f"USER {UID}:{UID}", f"WORKDIR {HOME}"]
    return [*lines, 'CMD ["/bin/sh"]']


def append_overlay(archive: Path, spec: ImageSpec, programs: Mapping[str, bytes], wheels: Mapping[str, Path]) -> None:
    """Append the overlay to a tar archive that exists, or make a new one.

    `programs` maps names of static programs to their bytes, `wheels` requirements to wheel files. Raises ValueError
    when a wheel does not hold what the image folder expects, OSError when the archive can't be written.
    """
    with tarfile.open(archive, "a:", format=tarfile.PAX_FORMAT) as tar:
        writer = _Writer(tar)
        if spec.target:
            for path in DIRECTORIES:
                writer.directory(path, mode=0o700, owner=UID)
        for name in spec.programs:
            writer.file(PROGRAMS[name], programs[name], 0o755)
        for source, place in spec.files.items():
            for path, file in _own_files(sandboxes_dir() / spec.name / source, place).items():
                writer.file(path, file.read_bytes(), 0o644)
        for wheel in spec.wheels:
            _unpack_wheel(writer, wheel, wheels[wheel.requirement])


class _Writer:
    """Writes into an archive, with the parent directories it lacks. The engine refuses an archive with a path twice."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._made = {PurePosixPath(name).as_posix() for name in tar.getnames()}

    def _info(self, path: str, mode: int, owner: int = 0) -> tarfile.TarInfo:
        info = tarfile.TarInfo(path.lstrip("/"))
        if ".." in PurePosixPath(info.name).parts:
            raise ValueError(f"a path that leads outside: {path}")
        info.mode, info.mtime, info.uid, info.gid = mode, EPOCH, owner, owner
        for parent in reversed(PurePosixPath(info.name).parents[:-1]):
            if str(parent) not in self._made:
                self.directory(str(parent))
        return info

    def directory(self, path: str, *, mode: int = 0o755, owner: int = 0) -> None:
        info = self._info(path, mode, owner)
        info.type = tarfile.DIRTYPE
        self._add(info)

    def file(self, path: str, data: bytes, mode: int) -> None:
        info = self._info(path, mode)
        info.size = len(data)
        self._add(info, data)

    def link(self, path: str, target: str) -> None:
        info = self._info(path, 0o777)
        info.type, info.linkname = tarfile.SYMTYPE, target
        self._add(info)

    def _add(self, info: tarfile.TarInfo, data: bytes = b"") -> None:
        if info.name in self._made:
            raise ValueError(f"/{info.name} is there already")
        self._made.add(info.name)
        self._tar.addfile(info, io.BytesIO(data))


def _own_files(source: Path, place: str) -> dict[str, Path]:
    """Where each file of the image folder goes. Raises ValueError for one that is not there."""
    if source.is_file():
        return {place: source}
    if not source.is_dir():
        raise ValueError(f"the image folder holds no {source.name}")
    return {f"{place}/{name}": file for name, file in folder_files(source).items()}


def _unpack_wheel(writer: _Writer, spec: WheelSpec, path: Path) -> None:
    with zipfile.ZipFile(path) as wheel:
        members = [member for member in wheel.infolist() if not member.is_dir()]
        for rule in spec.copy_rules:
            matching = [member for member in members if fnmatch.fnmatchcase(member.filename, rule.pattern)]
            if not matching:
                raise ValueError(f"{path.name} holds no {rule.pattern}")
            prefix = rule.pattern.partition("*")[0]
            for member in matching:
                below = member.filename.removeprefix(prefix) if rule.to.endswith("/") else ""
                executable = member.external_attr >> 16 & stat.S_IXUSR
                writer.file(rule.to + below, wheel.read(member), 0o755 if executable else 0o644)
    for link, target in spec.links.items():
        writer.link(link, target)
