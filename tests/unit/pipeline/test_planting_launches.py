"""Canaries in launches: what the operator and an attempt give stays, and everything planted is told."""

from __future__ import annotations

from harness.model.canary import SECOND_LIFE, CanaryPlace
from harness.model.plan import Adjustment
from harness.pipeline.entropy import Entropy
from harness.pipeline.planting import Garden
from harness.probing.starting.shapes import value_for
from harness.sandbox.base import LaunchSpec


class Counted(Entropy):
    """The same bits in every test."""

    def __init__(self) -> None:
        self.count = 0

    def nonce(self) -> str:
        self.count += 1
        return f"{self.count:020x}"


def spec(garden: Garden) -> LaunchSpec:
    environment = {"GITHUB_TOKEN": "mine", "ACME_KEY": garden.token()}
    argv = ("server", "--key", garden.token())
    return LaunchSpec(image="x", volume=None, argv=argv, environment=environment, seed={".npmrc": b"mine"})


def test_what_was_given_stays_and_what_is_planted_is_told() -> None:
    garden = Garden(Counted())
    adjustment = Adjustment(environment={"OPENAI_API_KEY": "given"}, files={"workspace/.env": ""})
    launch = garden.apply(spec(garden), adjustment)
    assert launch.environment["GITHUB_TOKEN"] == "mine"
    assert launch.environment["OPENAI_API_KEY"] == "given"
    assert (launch.seed[".npmrc"], launch.seed["workspace/.env"]) == (b"mine", b"")
    names = {canary.name: canary for canary in garden.canaries}
    assert names["environment ACME_KEY"].value == launch.environment["ACME_KEY"]
    assert names["argument 1"].value == launch.argv[2] and names["argument 1"].place is CanaryPlace.ARGUMENT
    assert names["argument 1"].asked and not names["environment AWS_ACCESS_KEY_ID"].asked
    assert not {name for name in names if name.startswith(("~/.npmrc", "~/workspace/.env", "environment GITHUB"))}
    values = (*launch.environment.values(), *launch.argv)
    shown = b"\n".join((*launch.seed.values(), *(value.encode() for value in values)))
    assert all(canary.value.encode() in shown for canary in garden.canaries)


def test_applying_again_plants_the_same_and_another_life_has_others() -> None:
    entropy = Counted()
    garden = Garden(entropy)
    launch = spec(garden)
    first = garden.apply(launch, Adjustment())
    assert garden.apply(launch, Adjustment()) == first
    other = Garden(entropy, SECOND_LIFE)
    second = other.apply(spec(other), Adjustment())
    assert {*second.environment} == {*first.environment}
    assert not {c.value for c in other.canaries} & {c.value for c in garden.canaries}
    assert {c.session for c in other.canaries} == {SECOND_LIFE}
    assert [c.name for c in other.canaries] == [c.name for c in garden.canaries]


def test_the_machines_credentials_are_a_canary_of_each_life() -> None:
    entropy = Counted()
    garden, other = Garden(entropy), Garden(entropy, SECOND_LIFE)
    values = (garden.metadata(), garden.metadata(), other.metadata())
    assert values[0] == values[1] != values[2]
    told = [canary for canary in (*garden.canaries, *other.canaries) if canary.place is CanaryPlace.DECOY]
    assert [(canary.value, canary.session) for canary in told] == [(values[0], "main"), (values[2], SECOND_LIFE)]
    assert all(canary.services and not canary.asked for canary in told)


def test_an_attempts_values_are_told_anew_in_another_life() -> None:
    entropy = Counted()
    garden, other = Garden(entropy), Garden(entropy, SECOND_LIFE)
    value = value_for("ACME_TOKEN", "", "/home/user", "/home/user/workspace", garden.material).text
    adjustment = Adjustment(environment={"ACME_TOKEN": value})
    garden.apply(spec(garden), adjustment)
    told = other.retold(adjustment, garden)
    other.apply(spec(other), told)
    assert told.environment["ACME_TOKEN"] != value
    by_name = [{c.name: c.value for c in g.canaries}["environment ACME_TOKEN"] for g in (garden, other)]
    assert by_name == [value, told.environment["ACME_TOKEN"]]


def test_a_variable_that_is_a_canary_has_the_shape_that_its_name_tells() -> None:
    garden = Garden(Entropy())
    value = garden.token("GITHUB_TOKEN")
    assert value.startswith("ghp_") and len(value) == 40
    launch = LaunchSpec(image="x", volume=None, argv=("server",), environment={"GITHUB_TOKEN": value})
    garden.apply(launch, Adjustment())
    (canary,) = [canary for canary in garden.canaries if canary.name == "environment GITHUB_TOKEN"]
    assert canary.value in value and canary.asked and "github.com" in canary.services
    assert len(garden.token("PORT")) == len(garden.token())
