"""Archives made to harm: each is refused with a word, and leaves nothing outside the folder it was given."""

from __future__ import annotations

import gzip
import io
import os
import resource
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.acquisition.archive import unpack_zip, zip_names
from harness.acquisition.python.metadata import parse_core_metadata
from harness.acquisition.python.sdist import sdist_facts
from harness.acquisition.store import Store
from harness.acquisition.tarball import read_tarball
from harness.model.errors import TargetError


def member(
    name: str, kind: bytes = tarfile.REGTYPE, link: str = "", data: bytes = b""
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(data)
    return info, data


def tar(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as out:
        for info, data in members:
            out.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def read(tmp_path: Path, data: bytes) -> dict[str, bytes]:
    path = tmp_path / "a.tgz"
    path.write_bytes(data)
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    try:
        return read_tarball(path, work, lambda name: name.endswith("package.json"))
    finally:
        assert not list(work.iterdir())


def test_the_benign_twin(tmp_path: Path) -> None:
    data = tar(
        member("./"),
        member("package", tarfile.DIRTYPE),
        member("package/package.json", data=b"{}"),
        member("package/inner", tarfile.SYMTYPE, "package.json"),
        member("package/hard", tarfile.LNKTYPE, "package/package.json"),
    )
    assert read(tmp_path, data) == {"package/package.json": b"{}"}


@pytest.mark.parametrize(
    ("hostile", "said"),
    [
        (member("../x"), "leads out"),
        (member("a/../../x"), "leads out"),
        (member("/etc/x"), "leads out"),
        (member("a\\..\\x"), "leads out"),
        (member("a/l", tarfile.SYMTYPE, "../../x"), "leads out"),
        (member("a/l", tarfile.SYMTYPE, "/etc/passwd"), "leads out"),
        (member("a/l", tarfile.LNKTYPE, "../x"), "leads out"),
        (member("a/l", tarfile.LNKTYPE, "/etc/passwd"), "leads out"),
        (member("a/d", tarfile.CHRTYPE), "device"),
        (member("a/d", tarfile.BLKTYPE), "device"),
        (member("a/d", tarfile.FIFOTYPE), "device"),
        (member("a/package.json", data=b" " * (5 << 20)), "larger than"),
    ],
)
def test_members_that_lead_out_and_devices(tmp_path: Path, hostile: tuple[tarfile.TarInfo, bytes], said: str) -> None:
    with pytest.raises(TargetError, match=said) as caught:
        read(tmp_path, tar(member("a/package.json", data=b"{}"), hostile))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a/\x1b[31m\n::error::x", "a/\u202egnp.exe", "a/" + "n" * 5000, "a/\x7f"])
def test_names_with_control_characters_reach_no_message_raw(tmp_path: Path, name: str) -> None:
    assert read(tmp_path, tar(member(name), member("a/package.json", data=b"{}"))) == {"a/package.json": b"{}"}
    with pytest.raises(TargetError) as caught:
        read(tmp_path, tar(member(f"../{name}")))
    assert str(caught.value).isprintable()


def test_bombs(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="times its size"):
        read(tmp_path, gzip.compress(bytes(64 << 20)))
    once = gzip.compress(bytes(1 << 20))
    with pytest.raises(TargetError, match="times its size"):
        read(tmp_path, once * 2000)  # many small streams in one file


@contextmanager
def bounded_memory(extra: int) -> Iterator[None]:
    """Fail allocations beyond `extra` bytes more than are in use now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGESIZE") + extra, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_a_header_that_is_a_bomb_is_not_read_into_memory(tmp_path: Path) -> None:
    # An attribute header (pax) that says it has 200 MB, with as many spaces behind it.
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 200 << 20
    engine = zlib.compressobj(9, zlib.DEFLATED, 31)
    data = engine.compress(info.tobuf(tarfile.USTAR_FORMAT))
    noise = os.urandom(1 << 16)  # keeps the ratio below its bound
    for _ in range(200):
        data += engine.compress(b" " * ((1 << 20) - len(noise)) + noise)
    data += engine.flush()
    with bounded_memory(64 << 20), pytest.raises(TargetError, match="header"):
        read(tmp_path, data)


def test_half_a_million_files(tmp_path: Path) -> None:
    header = tarfile.TarInfo("package/x").tobuf()
    engine = zlib.compressobj(1, zlib.DEFLATED, 31)
    data = b"".join(engine.compress(header * 1000) for _ in range(500)) + engine.flush()
    with pytest.raises(TargetError, match=r"files|times its size"):
        read(tmp_path, data)
    many = io.BytesIO()
    with zipfile.ZipFile(many, "w") as out:
        for number in range(60_000):
            out.writestr(zipfile.ZipInfo(f"{number}"), b"")
    (tmp_path / "z.zip").write_bytes(many.getvalue())
    (tmp_path / "out").mkdir()
    with pytest.raises(TargetError, match="files"):
        zip_names(tmp_path / "z.zip")
    with pytest.raises(TargetError, match="files"):
        unpack_zip(tmp_path / "z.zip", tmp_path / "out")


def test_a_table_of_contents_that_is_a_bomb(tmp_path: Path) -> None:
    path = tmp_path / "z.zip"
    path.write_bytes(b"PK\x05\x06" + struct.pack("<4H2LH", 0, 0, 0, 0, 1 << 30, 0, 0))
    with pytest.raises(TargetError):
        zip_names(path)


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "a\\..\\..\\x", "C:\\x", ""])
def test_zip_members_that_lead_out(tmp_path: Path, name: str) -> None:
    path = tmp_path / "z.zip"
    with zipfile.ZipFile(path, "w") as out:
        out.writestr(zipfile.ZipInfo(name or "/"), b"x")
    into = tmp_path / "inner" / "out"
    into.mkdir(parents=True)
    with pytest.raises(TargetError):
        unpack_zip(path, into)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["inner", "out", "z.zip"]


def test_zip_links_and_devices(tmp_path: Path) -> None:
    for mode in (0o120777, 0o020666, 0o060666, 0o010666):
        path = tmp_path / f"{mode:o}.zip"
        info = zipfile.ZipInfo("l")
        info.external_attr = mode << 16
        with zipfile.ZipFile(path, "w") as out:
            out.writestr(info, b"/etc/passwd")
        (tmp_path / f"{mode:o}").mkdir()
        with pytest.raises(TargetError, match="link or a device"):
            unpack_zip(path, tmp_path / f"{mode:o}")


def test_a_file_that_is_a_folder_too(tmp_path: Path) -> None:
    path = tmp_path / "z.zip"
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("a", b"x")
        out.writestr("a/b", b"x")
    (tmp_path / "out").mkdir()
    with pytest.raises(TargetError):
        unpack_zip(path, tmp_path / "out")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.binary(max_size=2000), st.integers(0, 1500), st.binary(max_size=20))
def test_whatever_the_bytes_are(tmp_path: Path, noise: bytes, place: int, patch: bytes) -> None:
    whole = bytearray(gzip.decompress(tar(member("p/package.json", data=b"{}"), member("p/x", data=b"y" * 600))))
    whole[place : place + len(patch)] = patch
    for data in (noise, gzip.compress(noise), gzip.compress(bytes(whole)), gzip.compress(bytes(whole))[:-9]):
        try:
            read(tmp_path, data)
        except TargetError as error:
            assert str(error).isprintable()


@settings(max_examples=100)
@given(st.binary(max_size=500))
def test_whatever_the_metadata_is(data: bytes) -> None:
    for text in (data, b"Metadata-Version: 2.1\nName: x\nRequires-Dist: " + data):
        try:
            parse_core_metadata(text)
        except TargetError as error:
            assert str(error).isprintable()


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"x-1.0/setup.py": b""}, "no PKG-INFO"),
        ({"x-1.0/PKG-INFO": b"Metadata-Version: 2.1\n"}, "names no package"),
        ({"x-1.0/PKG-INFO": b"Name: x\nVersion: 1\nRequires-Dist: y @ file:///etc\n"}, "direct reference"),
        ({"x-1.0/PKG-INFO": b"Name: x\nVersion: 1\n", "x-1.0/pyproject.toml": b"["}, "can't be read"),
        (
            {
                "x-1.0/PKG-INFO": b"Name: x\nVersion: 1\n",
                "x-1.0/pyproject.toml": b'[build-system]\nrequires = ["y @ git+https://x"]\n',
            },
            "direct reference",
        ),
        ({"x-1.0/PKG-INFO": b"Name: x\nVersion: 1\n", "x-1.0/x.egg-info/requires.txt": b"y @ git+x\n"}, "direct"),
    ],
)
def test_sdists_that_are_refused(tmp_path: Path, files: dict[str, bytes], said: str) -> None:
    path = tmp_path / "x-1.0.tar.gz"
    path.write_bytes(tar(*(member(name, data=data) for name, data in files.items())))
    with pytest.raises(TargetError, match=said):
        sdist_facts(path, path.name, tmp_path)


def test_what_an_older_sdist_tells(tmp_path: Path) -> None:
    requires = b"a>=1\n\n[:python_version < '3.12']\nb\n\n[dev]\nc @ https://x\n"
    path = tmp_path / "x-1.0.tar.gz"
    files = {"PKG-INFO": b"Name: X_y\nVersion: 1\n", "src/x.egg-info/requires.txt": requires}
    path.write_bytes(tar(*(member(f"x-1.0/{name}", data=data) for name, data in files.items())))
    facts = sdist_facts(path, path.name, tmp_path)
    assert (facts.name, facts.requires) == ("x-y", ("a>=1", 'b; python_version < "3.12"'))
    assert facts.build == ("setuptools", "wheel")


def test_the_cache_is_bounded_and_keeps_what_is_in_use(tmp_path: Path) -> None:
    store = Store(tmp_path)
    digests = []
    for number in range(5):
        sha256, size = store.add_bytes(bytes([number]) * 1000)
        store.link("sha512", f"{number}", sha256, size)
        os.utime(store.path(sha256), (0, 10_000 + number))
        digests.append(sha256)
    assert store.linked("sha512", "0") is not None  # used now
    assert store.trim(10_000) == 0
    assert store.trim(3_000) == 2
    assert [store.path(digest).exists() for digest in digests] == [True, False, False, True, True]
    assert store.linked("sha512", "1") is None
    assert sorted(path.name for path in (tmp_path / "links").iterdir()) == ["sha512-0", "sha512-3", "sha512-4"]
    store.trim(0)
    assert store.path(digests[0]).exists()  # within its hour
