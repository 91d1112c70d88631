# ruff: noqa: E501  # expressions of error texts are not broken
"""What keeps a server from starting in this sandbox and can't be supplied: named as the reason, not held against it."""

from __future__ import annotations

import re

from harness.model.plan import Obstacle

#: A word of the error → what is missing. Programs that are part of every image don't count.
_SIGNS: tuple[tuple[Obstacle, re.Pattern[str]], ...] = tuple(
    (obstacle, re.compile(pattern, re.IGNORECASE | re.MULTILINE))
    for obstacle, pattern in (
        (
            Obstacle.NATIVE_ADDON,
            r"npm error path /app/node_modules/(\S+)\nnpm error command failed\nnpm error command .*(?:node-gyp|prebuild|cmake)|could not locate the bindings file|was compiled against a different Node\.js|invalid ELF header"
            r"|(?:no native build was found|cannot find (?:native binding|module '[^']*\.node'))|node-gyp|prebuild-install",
        ),
        (
            Obstacle.LIBRARY,
            r"error while loading shared libraries: ([\w.+-]+)|([\w.+-]+\.so(?:\.\d+)*): cannot open shared object"
            r"|GLIBC(?:XX)?_[\d.]+' not found|no pq wrapper available|libpq library not found",
        ),
        (Obstacle.PROGRAM, r"executable doesn't exist at \S*|browsers? (?:is|are|was) not (?:installed|found)|chrome not found"),
        (
            Obstacle.PROGRAM,
            r"spawn ([\w./-]+) ENOENT|no such file or directory: '((?!/)[\w-]+)'|(?:^|: )([\w.-]+): (?:command )?not found$"
            r"|bad git executable|executable (?:file )?[\"'`]?([\w.-]+)[\"'`]? (?:was )?not found|([\w.-]+) (?:CLI|binary|executable)"
            r" (?:is )?not (?:installed|found)|([\w-]+) is not installed or (?:is )?not (?:in|on)",
        ),
        (Obstacle.PLATFORM, r"unsupported (?:platform|operating system|architecture)|only (?:supported|works|available) on (?:macos|windows|darwin)"),
        (Obstacle.SEALED, r"(?:read-only file system|EROFS)[^\n]{0,80}['\"](/app/[^'\"\n]{1,300})['\"]"),
        (
            Obstacle.NETWORK,
            r"ENOTFOUND ([\w.-]+)|EAI_AGAIN ([\w.-]+)|ECONNREFUSED ?([\w.:]*)|name or service not known|fetch failed|network is unreachable"
            r"|temporary failure in name resolution|connection refused|all connection attempts failed|no such host|dial tcp",
        ),
    )
)  # fmt: skip

#: Of what a tool says, so much is looked through.
SEALED_CHARACTERS = 2_000


def obstacle_of(text: str) -> tuple[Obstacle, str] | None:
    """The reason in the output of a failed start, with the name of what is missing where the text tells it."""
    for obstacle, pattern in _SIGNS:
        found = pattern.search(text)
        if found is not None:
            return obstacle, next((group for group in found.groups() if group), "")[:80]
    return None


def is_sealed(text: str) -> bool:
    """Whether it says that it could not write into its installation."""
    met = obstacle_of(text[:SEALED_CHARACTERS])
    return met is not None and met[0] is Obstacle.SEALED
