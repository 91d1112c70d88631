"""The seal of a bundle: the SHA-256 of every file, written last, checked before anything is believed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from harness.model.errors import BundleError

SEAL = "seal.json"


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 by file name relative to `folder`, the seal itself left out. Raises OSError."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            raise BundleError(f"the bundle holds a link: {path.name}", remedy="a bundle has plain files only")
        if path.is_file() and path.name != SEAL:
            with path.open("rb") as file:
                found[path.relative_to(folder).as_posix()] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def write_seal(folder: Path) -> None:
    """Write seal.json over everything that lies in `folder` now."""
    text = json.dumps({"format": 1, "sha256": digests(folder)}, indent=1, sort_keys=True)
    (folder / SEAL).write_text(text + "\n", encoding="utf-8")


def check_seal(folder: Path) -> bool:
    """True when sealed and whole, False when there is no seal.

    Raises BundleError with the name of the first file that differs, is missing, or was added.
    """
    path = folder / SEAL
    if not path.is_file():
        return False
    try:
        said = json.loads(path.read_text("utf-8"))["sha256"]
        expected = {str(name): str(digest) for name, digest in said.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BundleError("seal.json can't be read", remedy="the bundle is damaged; record it again") from error
    actual = digests(folder)
    for name in sorted(expected.keys() | actual.keys()):
        if expected.get(name) != actual.get(name):
            what = "differs" if name in expected and name in actual else "is missing" if name in expected else "is new"
            raise BundleError(
                f"the bundle's seal is broken: {name} {what}", remedy="don't trust this bundle; record it again"
            )
    return True
