"""The errors that cross a layer, each naming who is to blame.

`UsageError`: the person at the command line (exit 2). `TargetError`: the candidate (its evidence goes on to the
verdict, which can't be SAFE). `HarnessError`: this program, its engine or its registries (exit 4).
A message is one line and says what to do next.
"""

from __future__ import annotations


class BlamedError(Exception):
    """An error with a one-line message for people and, optionally, the next step.

    `message` may quote bytes of the target; it is escaped where it is printed.
    """

    blame = "harness"
    exit_code = 4

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}; {self.remedy}" if self.remedy else self.message


class UsageError(BlamedError):
    """What was asked for can't be done as asked: a name that doesn't exist, options that contradict."""

    blame = "usage"
    exit_code = 2


class TargetError(BlamedError):
    """The target makes its own analysis impossible: refused dependencies, no way to start, a broken archive."""

    blame = "target"
    exit_code = 3


class TargetProtocolError(TargetError):
    """The target broke the protocol in a way that ends the session (framing lost, answer never came)."""


class HarnessError(BlamedError):
    """We failed, or what we depend on did; it says nothing about the target."""


class EngineError(HarnessError):
    """The container engine is missing, refused, or died."""

    blame = "engine"


class RegistryError(HarnessError):
    """A package registry could not be reached or answered out of order."""

    blame = "registry"


class BundleError(HarnessError):
    """A run bundle is missing, damaged, or its seal does not match."""

    blame = "bundle"
