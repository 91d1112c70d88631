"""The bounds of acquisition. Sizes in bytes, times in seconds; from the design notes where not said otherwise."""

from __future__ import annotations

#: A source tree, and an unpacked archive.
TREE_BYTES = 500 << 20
TREE_FILES = 50_000
#: Unpacked size over packed size of one archive.
ARCHIVE_RATIO = 100
#: One metadata file that is read into memory (METADATA, entry_points.txt, package.json, pyproject.toml).
METADATA_BYTES = 4 << 20
#: One text that a parser of ours works on; parsers may take more than linear time.
TEXT_BYTES = 256 << 10
#: The table of contents of a zip archive: 50,000 entries with long names.
ZIP_DIRECTORY_BYTES = 16 << 20
#: One fetched package file, and all of a closure; a closure with a large model runtime stays below.
FILE_BYTES = 500 << 20
CLOSURE_BYTES = 2 << 30
CLOSURE_FILES = 5_000
#: What a tool may print: a lock of a large closure has some megabytes.
TOOL_OUTPUT_BYTES = 64 << 20
TOOL_ERROR_BYTES = 1 << 20
#: How long one call of a package manager may take (slow registries answered within 10 s for 100 packages).
TOOL_SECONDS = 180.0
#: How long a resolution is believed before the registry is asked again.
RESOLUTION_SECONDS = 3600.0
#: All fetched files together, and how long after its last use a file is taken for one that is needed.
CACHE_BYTES = 8 << 30
IN_USE_SECONDS = 3600.0
