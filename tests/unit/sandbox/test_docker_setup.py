"""Putting an engine on a machine: with a stand-in for dockerd, never the machine's own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from harness.model.errors import EngineError
from harness.sandbox import setup
from harness.sandbox.readiness import checks
from harness.sandbox.setup import Places, is_debian, remove_stale_pid_file, set_up_engine

pytestmark = pytest.mark.anyio

#: Listens like an engine, answers the two questions that connecting asks, and ends after them.
FAKE_ENGINE = """#!{python}
import os, socket, sys
print("fake engine up", flush=True)
server = socket.socket(socket.AF_UNIX)
server.bind({path!r})
server.listen(8)
server.settimeout(20)
body = b'{{"Version": "1", "ApiVersion": "1.41", "MinAPIVersion": "1.24"}}'
for _ in range(2):
    near, _ = server.accept()
    if near.recv(65536):
        near.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nConnection: close\\r\\n"
                     b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body)
    near.close()
"""


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """A machine without an engine; programs are found in `tmp_path/bin` first."""
    host = f"unix://{tmp_path}/engine.sock"
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (tmp_path / "os-release").write_text('ID=fedora\nPRETTY_NAME="Debian look-alike"\n')
    return Places(
        host=host,
        standard_host=host,
        pid_file=tmp_path / "docker.pid",
        log_file=tmp_path / "dockerd.log",
        os_release=tmp_path / "os-release",
        systemd=tmp_path / "no-systemd",
    )


def program(folder: Path, name: str, text: str) -> None:
    (folder / "bin" / name).write_text(text)
    (folder / "bin" / name).chmod(0o755)


async def test_an_engine_is_installed_and_started(places: Places, tmp_path: Path) -> None:
    """apt-get fails until its list is renewed, then it brings a dockerd; a stale pid file is in the way."""
    places.os_release.write_text("ID=debian\n")
    places.pid_file.write_text("999999999")
    (tmp_path / "dockerd").write_text(FAKE_ENGINE.format(python=sys.executable, path=f"{tmp_path}/engine.sock"))
    program(
        tmp_path,
        "apt-get",
        f"""#!/bin/sh
PATH=/usr/bin:/bin
echo "$@" >> {tmp_path}/calls
if [ "$1" = update ]; then touch {tmp_path}/fresh; exit 0; fi
[ -e {tmp_path}/fresh ] || {{ echo "E: 404" >&2; exit 100; }}
cp {tmp_path}/dockerd {tmp_path}/bin/dockerd; chmod 755 {tmp_path}/bin/dockerd
""",
    )
    program(tmp_path, "setsid", '#!/bin/sh\nPATH=$PATH:/usr/bin:/bin exec /usr/bin/setsid "$@"\n')
    said: list[str] = []
    assert await set_up_engine(said.append, places)
    install = "install -y --no-install-recommends docker.io iptables mmdebstrap"
    assert (tmp_path / "calls").read_text().splitlines() == [install, "update", install]
    assert said == [
        "installing docker.io, iptables, mmdebstrap from the distribution's packages",
        "starting the Docker engine",
    ]
    assert places.log_file.read_text() == "fake engine up\n"
    assert not places.pid_file.exists()


async def test_elsewhere_it_says_what_is_missing(places: Places) -> None:
    with pytest.raises(EngineError, match="install Docker Engine"):
        await set_up_engine(print, places)


async def test_without_root_it_says_what_to_do(places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    places.os_release.write_text("ID=ubuntu\n")
    with pytest.raises(EngineError, match="as root: apt-get install -y --no-install-recommends docker.io"):
        await set_up_engine(print, places)
    program(tmp_path, "dockerd", "#!/bin/sh\n")
    with pytest.raises(EngineError, match="start it as root"):
        await set_up_engine(print, places)


async def test_a_failed_install_quotes_the_reason(places: Places, tmp_path: Path) -> None:
    places.os_release.write_text("ID=debian\n")
    program(tmp_path, "apt-get", "#!/bin/sh\necho 'E: no network' >&2\nexit 100\n")
    with pytest.raises(EngineError, match="E: no network; try it by hand"):
        await set_up_engine(print, places)


async def test_an_engine_that_does_not_come_up_is_told_with_its_last_words(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "START_SECONDS", 1.0)
    program(tmp_path, "dockerd", "#!/bin/sh\necho 'failed to start daemon: no overlay'\nexit 1\n")
    program(tmp_path, "setsid", '#!/bin/sh\nPATH=$PATH:/usr/bin:/bin exec /usr/bin/setsid "$@"\n')
    with pytest.raises(EngineError, match="failed to start daemon: no overlay"):
        await set_up_engine(print, places)


async def test_an_engine_elsewhere_is_not_ours_to_start(places: Places) -> None:
    with pytest.raises(EngineError, match="no Docker engine answers at unix:///other"):
        await set_up_engine(print, Places(host="unix:///other", os_release=places.os_release))


def test_a_pid_file_counts_only_while_a_dockerd_has_the_pid(tmp_path: Path) -> None:
    path = tmp_path / "docker.pid"
    assert remove_stale_pid_file(path)
    for text in ("", "nonsense", str(os.getpid()), "999999999", "-1"):
        path.write_text(text)
        assert remove_stale_pid_file(path)
        assert not path.exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ID=debian", True),
        ('ID=linuxmint\nID_LIKE="ubuntu debian"', True),
        ("ID=fedora\nNAME=debian", False),
        ("", False),
    ],
)
def test_debian_and_its_kin_are_known(text: str, expected: bool) -> None:
    assert is_debian(text) is expected


async def test_without_an_engine_the_rest_is_checked_all_the_same() -> None:
    rows = {row.name: row for row in await checks("unix:///nowhere")}
    assert not rows["engine"].ok
    assert "doctor --fix" in rows["engine"].remedy
    assert {"disk", "btf", "mmdebstrap"} <= set(rows)


@pytest.mark.docker
async def test_with_an_engine_every_row_has_a_detail() -> None:
    rows = await checks()
    assert [row.name for row in rows] == [
        "engine",
        "kernel",
        "seccomp",
        "limits",
        "runtimes",
        "disk",
        "btf",
        "mmdebstrap",
    ]
    assert all(row.detail for row in rows)
    assert all(row.remedy for row in rows if not row.ok)
