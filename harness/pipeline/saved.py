"""Reading a saved result: a result.json, alone or in a bundle whose seal is checked first."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from harness.model.errors import BundleError, UsageError
from harness.model.result import ScanResult
from harness.pipeline.seal import check_seal

MAX_RESULT_BYTES = 256 << 20


def load_result(source: Path) -> ScanResult:
    """The result in `source`, a file or a bundle.

    Raises UsageError when it is no result of this schema version, BundleError when the bundle's seal is broken.
    """
    if source.is_dir():
        check_seal(source)
        path = source / "result.json"
        if not path.is_file():
            raise BundleError(f"{source.name} holds no result", remedy="its run did not finish; try 'harness replay'")
    else:
        path = source
    if path.stat().st_size > MAX_RESULT_BYTES:
        raise UsageError(f"{path.name} is too large for a result", remedy="give the file that --format json wrote")
    try:
        return ScanResult.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the top"
        raise UsageError(
            f"{path.name} is no result of this version ({where}: {first['msg']})",
            remedy="give the file that --format json wrote",
        ) from error
    except OSError as error:
        raise UsageError(f"{path.name} can't be read: {error.strerror}") from error
