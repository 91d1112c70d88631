"""Pieces of bundles that several tests use."""

from harness.model.options import RunOptions
from harness.model.recording import Manifest
from harness.model.target import TargetKind, TargetRef

MANIFEST = Manifest(
    harness_version="0",
    run_id="r",
    target=TargetRef(text="pypi:x", kind=TargetKind.PYPI, name="x"),
    options=RunOptions(),
)
