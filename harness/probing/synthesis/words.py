"""Words of names and descriptions."""

from __future__ import annotations

import re

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_WORD = re.compile(r"[a-z0-9]+")

#: Names that are written as one word, and what they consist of.
_JOINED = {
    "filepath": ("file", "path"),
    "filename": ("file", "name"),
    "dirname": ("directory", "name"),
    "dirpath": ("directory", "path"),
    "dir": ("directory",),
    "dirs": ("directories",),
    "repo": ("repository",),
    "repos": ("repositories",),
    "db": ("database",),
    "cwd": ("working", "directory"),
    "workdir": ("working", "directory"),
    "hostname": ("host", "name"),
    "username": ("user", "name"),
    "timezone": ("time", "zone"),
    "tz": ("time", "zone"),
    "datetime": ("date", "time"),
    "cmd": ("command",),
    "cmds": ("commands",),
    "dest": ("destination",),
    "dst": ("destination",),
    "src": ("source",),
    "lat": ("latitude",),
    "lon": ("longitude",),
    "lng": ("longitude",),
    "urls": ("url",),
    "uris": ("uri",),
    "regexp": ("regex",),
    "img": ("image",),
    "msg": ("message",),
    "lang": ("language",),
    "expr": ("expression",),
    "tablename": ("table", "name"),
    "sha": ("commit",),
    "ts": ("timestamp",),
}


def words_of(name: str) -> tuple[str, ...]:
    """The words of a name in any style: `filePath`, `file_path`, `FILE-PATH` and `filepath` are file, path."""
    found: list[str] = []
    for part in _PARTS.findall(name[:200]):
        word = part.lower()
        found += _JOINED.get(word, (word,))
    return tuple(found)


def description_words(text: str) -> frozenset[str]:
    """The words of a description, in lower case."""
    return frozenset(_WORD.findall(text[:4000].lower()))
