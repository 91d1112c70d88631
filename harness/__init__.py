"""harness: vet an MCP server in a sandbox before anybody connects to it."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("harness")
except PackageNotFoundError:  # run from a tree that was never installed
    __version__ = "0+unknown"
