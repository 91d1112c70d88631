"""The planted world: what lies where, that its secrets are fresh, and that its special files are what they say."""

from __future__ import annotations

import sqlite3
import subprocess
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

from harness.model.world import World
from harness.pipeline.entropy import Entropy
from harness.pipeline.fixtures import FOLDER
from harness.pipeline.workspace import WORKSPACE, planted_files
from harness.pipeline.world import OUTSIDE, Planted, decoys_of, plant, roots_of
from harness.sandbox.base import HOME, LaunchSpec
from harness.sandbox.gate import seed_bytes

PLAIN = LaunchSpec(image="base", volume=None, argv=("server",), seed=planted_files())


def laid_out(planted: Planted, spec: LaunchSpec, folder: Path) -> Path:
    """The seed as the gate would unpack it; returns the home directory."""
    whole = planted.into(spec)
    seed_bytes(whole.seed, executables=whole.executables, links=whole.links)  # the gate would take it
    for path, data in whole.seed.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return folder


def item(world: World, name: str) -> str:
    found = world.item(name)
    assert found is not None, name
    return found.path


def test_secrets_are_fresh_distinct_and_nowhere_inside() -> None:
    first, second = plant(Entropy(), PLAIN), plant(Entropy(), PLAIN)
    secrets = [i.secret for i in first.world.items if i.secret and i.where != "linked"]
    assert len(secrets) == len(set(secrets)) > 15
    assert not set(secrets) & {i.secret for i in second.world.items}
    inside = b"".join(
        path.encode() + data
        for path, data in first.seed.items()
        if path.startswith("workspace/") and not path.startswith("workspace/project/.git")
    )
    assert not any(secret.encode() in inside for secret in secrets)
    assert first.world.nonce != second.world.nonce
    assert [i.name for i in first.world.items] == [i.name for i in second.world.items]


def test_each_thing_is_where_the_world_says(tmp_path: Path) -> None:
    planted = plant(Entropy(), PLAIN)
    home = laid_out(planted, PLAIN, tmp_path)
    whole = planted.into(PLAIN)
    for thing in planted.world.items:
        if thing.name == "home/environment":
            assert whole.environment and thing.secret in whole.environment.values()
        elif thing.where == "linked":
            assert any(
                thing.path == f"{HOME}/{link}" or thing.path.startswith(f"{HOME}/{link}/") for link in whole.links
            )
            assert (home / thing.target.removeprefix(f"{HOME}/")).exists()
        else:
            path = home / thing.path.removeprefix(f"{HOME}/")
            assert path.exists(), thing
            if thing.secret and thing.kind == "file":
                assert thing.secret in path.name or thing.secret.encode() in path.read_bytes()
    assert all(
        not str(thing.path).startswith(f"{OUTSIDE}/") for thing in planted.world.items if thing.where == "inside"
    )
    assert item(planted.world, "sibling/account.txt").startswith(f"{WORKSPACE}_")


def test_what_the_operator_planted_stays_as_it_is() -> None:
    spec = PLAIN.model_copy(update={"seed": {**PLAIN.seed, "workspace/notes.txt": b"mine"}})
    whole = plant(Entropy(), spec).into(spec)
    assert whole.seed["workspace/notes.txt"] == b"mine"
    linked = PLAIN.model_copy(update={"links": {"workspace/data": "elsewhere"}, "seed": {}})
    whole = plant(Entropy(), linked).into(linked)
    assert whole.links["workspace/data"] == "elsewhere"
    assert not any(path.startswith("workspace/data/") for path in whole.seed)


def test_roots_are_told_from_arguments_and_environment() -> None:
    spec = LaunchSpec(
        image="base",
        volume=None,
        argv=("server", "--root", f"{WORKSPACE}/allowed", f"--db={WORKSPACE}/x.db", f"{WORKSPACE}/../up"),
        environment={"DIRS": f"{WORKSPACE}/a,{WORKSPACE}/b.d", "PATH": f"{WORKSPACE}/bin:/bin", "K": f"{WORKSPACE}/k"},
        seed={"workspace/k": b"a file", "workspace/b.d/x": b"in a folder"},
    )
    assert roots_of(spec) == (f"{WORKSPACE}/a", f"{WORKSPACE}/allowed", f"{WORKSPACE}/b.d", WORKSPACE)
    world = plant(Entropy(), spec).world
    assert item(world, "inside@allowed/notes.txt") == f"{WORKSPACE}/allowed/notes.txt"
    assert item(world, "sibling@allowed/account.txt") == f"{WORKSPACE}/allowed_backup/account.txt"
    assert PurePosixPath(item(world, "beside@allowed/statement.txt")).parent == PurePosixPath(WORKSPACE)


def test_repositories_are_whole(tmp_path: Path) -> None:
    planted = plant(Entropy(), PLAIN)
    home = laid_out(planted, PLAIN, tmp_path)

    def git(folder: Path, *words: str) -> str:
        done = subprocess.run(
            ["git", "-c", "safe.directory=*", *words],
            cwd=folder,
            capture_output=True,
            check=True,
            text=True,
            env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin:/usr/local/bin", "GIT_CONFIG_NOSYSTEM": "1"},
        )
        return done.stdout

    outside = planted.world.item("outside/project")
    assert outside is not None
    assert outside.secret in git(home / "private/project", "log", "--format=%s")
    inside = home / "workspace/project"
    assert git(inside, "fsck", "--strict") == ""
    assert git(inside, "status", "--porcelain") == " M plan.txt\nA  tools.txt\n"
    assert git(inside, "log", "--format=%s") == "Harvest too\nAdd the plan\n"
    assert git(inside, "tag") == "first\n"
    # The same fixture gives the same objects in every world.
    commit = git(inside, "rev-parse", "HEAD")
    again = laid_out(plant(Entropy(), PLAIN), PLAIN, tmp_path / "again")
    assert git(again / "workspace/project", "rev-parse", "HEAD") == commit


def test_databases_and_archives_are_what_they_say(tmp_path: Path) -> None:
    planted = plant(Entropy(), PLAIN)
    home = laid_out(planted, PLAIN, tmp_path)
    outside = planted.world.item("outside/accounts.db")
    assert outside is not None
    with sqlite3.connect(home / "private/accounts.db") as database:
        assert database.execute("SELECT reference FROM accounts").fetchall() == [(outside.secret,)]
    database.close()
    slip = planted.world.item("inside/bundle.zip")
    assert slip is not None and slip.target.startswith(f"{OUTSIDE}/")
    with zipfile.ZipFile(home / "workspace/bundle.zip") as packed:
        names = packed.namelist()
    assert names[0] == "notes/readme.txt" and names[1].startswith("../") and names[1].endswith(slip.target)
    for name in ("bundle.tar", "bundle.tar.gz"):
        with tarfile.open(home / "workspace" / name) as tape:
            assert len(tape.getnames()) == 2


def test_every_stub_is_a_program_of_the_shell() -> None:
    stubs = sorted((FOLDER / "stubs").iterdir())
    assert {"kubectl", "docker", "aws", "gcloud", "az", "psql", "ffmpeg", "adb"} <= {path.name for path in stubs}
    for path in stubs:
        assert path.read_text().startswith("#!/bin/sh\n"), path
        subprocess.run(["sh", "-n", str(path)], check=True)
    planted = plant(Entropy(), PLAIN)
    assert {f"{HOME}/{path}" for path in planted.executables} == {
        i.path for i in planted.world.items if i.kind == "stub"
    }
    assert planted.path_after and all(
        i.path.startswith(planted.path_after[0]) for i in planted.world.items if i.kind == "stub"
    )


def test_the_network_has_a_secret_for_each_kind_of_address_and_redirects_to_them() -> None:
    world = plant(Entropy(), PLAIN).world
    decoys = decoys_of(world)
    assert set(decoys) == {"loopback", "private", "metadata", "link-local"}
    assert len(set(decoys.values())) == 4
    spec = PLAIN.model_copy(update={"decoys": {"loopback": "older", "host": "kept"}})
    planted = plant(Entropy(), spec)
    assert planted.into(spec).decoys == {"host": "kept", **decoys_of(planted.world)}
    redirects = {host.redirect for host in world.hosts if host.redirect}
    assert redirects == {host.url for host in world.hosts if host.secret}


def test_a_level_without_calls_is_left_alone() -> None:
    """The world costs nothing where nothing is called: the plain workspace is still a handful of small files."""
    assert sum(len(data) for data in planted_files().values()) < 2_000
