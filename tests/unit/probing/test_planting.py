"""Canaries: shaped like real secrets, random enough, found again where they lie, and other ones from another seed."""

from __future__ import annotations

import json
import math
import re
import sqlite3
from contextlib import closing

import pytest

from harness.analyzers.canaries.search import Searcher
from harness.model.canary import CanaryPlace
from harness.model.plan import Adjustment
from harness.probing.planting import asked, plant, retold
from harness.probing.planting.start import services_of
from harness.probing.planting.table import FILES, VARIABLES
from harness.probing.planting.tokens import TOKENS
from harness.probing.starting.material import Material
from harness.probing.starting.shapes import value_for

PLANTING = plant("0123456789abcdef" * 2)
OTHER = plant("fedcba9876543210" * 2, session="second-look")

SHAPES = {
    "~/.aws/credentials aws-id": r"AKIA[A-Z2-7]{16}",
    "~/.aws/credentials aws-secret": r"[A-Za-z0-9+/]{40}",
    "~/.npmrc npm": r"npm_[A-Za-z0-9]{36}",
    "environment GITHUB_TOKEN": r"ghp_[A-Za-z0-9]{36}",
    "environment OPENAI_API_KEY": r"sk-[A-Za-z0-9]{48}",
    "~/.netrc heroku": r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}",
}


def test_each_has_the_shape_of_its_place() -> None:
    values = {canary.name: canary.value for canary in PLANTING.canaries}
    for name, shape in SHAPES.items():
        assert re.fullmatch(shape, values[name]), name


def test_the_same_seed_gives_the_same_and_another_gives_none_of_them() -> None:
    assert plant("0123456789abcdef" * 2) == PLANTING
    assert [c.name for c in OTHER.canaries] == [c.name for c in PLANTING.canaries]
    values = [canary.value for canary in (*PLANTING.canaries, *OTHER.canaries)]
    assert len(set(values)) == len(values)
    assert {c.session for c in OTHER.canaries} == {"second-look"}


@pytest.mark.parametrize("kind", TOKENS)
def test_no_kind_has_less_than_64_random_bits_or_a_mark_of_ours(kind: str) -> None:
    """What differs between two seeds is random; every such character is at least a hex digit's worth."""
    first, second = (TOKENS[kind].make(Material(seed * 20), "label")[1] for seed in "ab")
    different = sum(one != other for one, other in zip(first, second, strict=False))
    assert different * math.log2(16) * 16 / 15 >= 64 or kind == "wallet"
    assert not re.search(r"canary|harness|test|fake|example", first, re.IGNORECASE)


def test_every_canary_is_found_in_what_was_planted_and_nowhere_else() -> None:
    searcher = Searcher([canary.value for canary in PLANTING.canaries])
    for path, data in PLANTING.files.items():
        names = {PLANTING.canaries[hit.canary].name for hit in searcher.raw(data)}
        stem = re.sub(r"/\w{8}\.default-release/", "/*.default-release/", path)
        assert names == {c.name for c in PLANTING.canaries if c.name.startswith(f"~/{stem} ")}, path
        assert not searcher.raw(OTHER.files.get(path, b""))
    for name, value in PLANTING.environment.items():
        assert {PLANTING.canaries[hit.canary].name for hit in searcher.raw(value.encode())} == {f"environment {name}"}


def test_files_are_what_their_readers_expect() -> None:
    for path, data in PLANTING.files.items():
        if path.endswith(".json"):
            json.loads(data)
        assert b"<<" not in data
    (chrome,) = [data for path, data in PLANTING.files.items() if path.endswith("Login Data")]
    with closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(chrome)
        (row,) = database.execute("SELECT origin_url, length(password_value) FROM logins").fetchall()
    assert row == ("https://accounts.google.com/", 35)
    key = PLANTING.files[".ssh/id_ed25519"].decode().splitlines()
    assert (key[0], key[-1]) == ("-----BEGIN OPENSSH PRIVATE KEY-----", "-----END OPENSSH PRIVATE KEY-----")


def test_places_are_told_and_given_variables_are_left_alone() -> None:
    places = {canary.name.partition(" ")[0]: canary.place for canary in PLANTING.canaries}
    assert places["~/workspace/.env"] is CanaryPlace.WORKSPACE
    assert places["~/.npmrc"] is CanaryPlace.HOME
    assert places["environment"] is CanaryPlace.ENVIRONMENT
    assert not any(canary.asked for canary in PLANTING.canaries)
    fewer = plant("0123456789abcdef" * 2, without={"GITHUB_TOKEN"})
    assert {*PLANTING.environment} - {*fewer.environment} == {"GITHUB_TOKEN"}


def test_tables_name_each_place_once() -> None:
    assert len({entry.path for entry in FILES}) == len(FILES)
    assert len({entry.name for entry in VARIABLES}) == len(VARIABLES)


def adjusted(material: Material) -> Adjustment:
    names = ("NOTION_API_KEY", "ACME_TOKEN", "EXA_API_KEY", "DATABASE_URL", "REGION", "GOOGLE_APPLICATION_CREDENTIALS")
    made = {name: value_for(name, "postgres", "/home/user", "/home/user/workspace", material) for name in names}
    files = {path: text for value in made.values() for path, text in value.files.items()}
    return Adjustment(environment={name: value.text for name, value in made.items()}, files=files)


def test_what_an_attempt_was_given_is_a_canary_where_it_is_a_secret() -> None:
    material = Material("1" * 40)
    adjustment = adjusted(material)
    found = asked(adjustment, material)
    by_name = {canary.name: canary for canary in found}
    assert by_name["environment NOTION_API_KEY"].services == ("notion.com", "notion.so")
    assert by_name["environment ACME_TOKEN"].value in adjustment.environment["ACME_TOKEN"]
    assert by_name["environment EXA_API_KEY"].value == adjustment.environment["EXA_API_KEY"]
    password = by_name["environment DATABASE_URL"].value
    assert f":{password}@" in adjustment.environment["DATABASE_URL"]
    assert "environment REGION" not in by_name
    assert any(name.startswith("~/workspace/service-account.json ") for name in by_name)
    assert all(canary.asked for canary in found)


def test_an_adjustment_is_retold_with_other_secrets_and_the_same_rest() -> None:
    old, new = Material("1" * 40), Material("2" * 40)
    first = adjusted(old)
    second = retold(first, old, new)
    kept = {c.value for c in asked(first, old)} & {c.value for c in asked(second, new)}
    assert kept == set()
    assert [c.name for c in asked(second, new)] == [c.name for c in asked(first, old)]
    assert second.environment["REGION"] == first.environment["REGION"]
    assert second.environment["ACME_TOKEN"] == adjusted(new).environment["ACME_TOKEN"]


def test_services_follow_names() -> None:
    assert services_of("MY_GITHUB_TOKEN")[0] == "github.com"
    assert services_of("ACME_TOKEN") == ()
