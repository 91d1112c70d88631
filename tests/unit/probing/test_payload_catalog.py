"""The catalog and its filling-in: mistakes with their lines, effects that no echo fakes, controls that are inert."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness.model.errors import UsageError
from harness.model.payload import EffectKind, PayloadClass
from harness.model.world import World
from harness.pipeline.entropy import Entropy
from harness.pipeline.payloads import check_payloads, read_payloads
from harness.pipeline.workspace import planted_files
from harness.pipeline.world import plant
from harness.probing.payloads.expansion import Expansion, expand
from harness.probing.payloads.headers import header_names, header_points, headers_beside
from harness.probing.payloads.matching import choose
from harness.probing.payloads.parsing import parse_payload
from harness.probing.payloads.placeholders import ENCODINGS, PLACEHOLDERS
from harness.probing.synthesis.draft import InjectionPoint
from harness.sandbox.base import LaunchSpec

SPEC = LaunchSpec(image="base", volume=None, argv=("s", "/home/user/workspace/allowed"), seed=planted_files())
WORLD = plant(Entropy(), SPEC).world
NONCE = "0123456789abcdef0123"
PAYLOADS = {payload.id: payload for payload in read_payloads()}

GOOD = """\
title = "x"
cwe = 78
boundary = "data-not-code"
source = "https://example.com/"
template = "{base}; touch {outside}/$(({a}*{b}))"
control = "{base}, touch"

[[effects]]
kind = "created"
path = "{outside}/{product}"
"""


def filled(name: str, base: str = "value", *, world: World = WORLD, control: bool = False, **more: object) -> Expansion:
    made = expand(PAYLOADS[name], world, base=base, nonce=NONCE, control=control, **more)  # type: ignore[arg-type]
    assert made is not None
    return made


def test_the_catalog_has_no_mistake_and_every_class_that_calls_can_show() -> None:
    good, mistakes = check_payloads()
    assert mistakes == []
    assert {payload.payload_class for payload in good} == set(PayloadClass) - {PayloadClass.RETURNED_INSTRUCTIONS}
    assert len({payload.id for payload in good}) == len(good)


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("cwe = 78", "cwe = 'x'", 2, "cwe"),
        ("{product}", "{produkt}", 10, "there is no placeholder {produkt}"),
        ("{base}; touch", "{base|rot13}; touch", 5, "no encoding rot13"),
        ('boundary = "data-not-code"', 'boundary = "none"', 3, "crosses no boundary"),
        ('kind = "created"', 'kind = "exploded"', 9, "effects.0.kind"),
        ('source = "https://example.com/"\n', "", 1, "source is missing"),
        ('title = "x"', 'title = "x', 1, "not TOML"),
        ('title = "x"', 'title = "x"\nid = "y"', 2, "comes from the file's place"),
        (
            'control = "{base}, touch"',
            'control = "{base}; touch {outside}/$(({a}*{b}))"',
            6,
            "the control is the payload",
        ),
        ('title = "x"', 'title = "x"\nsteps = ["a"]', 2, "control_steps has 0 parts"),
        ("[[effects]]", '[applies]\nplaces = ["argument", "nowhere"]\n\n[[effects]]', 9, "nowhere"),
        ("[[effects]]", '[applies]\nnames = ["Path"]\n\n[[effects]]', 8, "lower case"),
    ],
)
def test_a_mistake_is_named_with_its_line(old: str, new: str, line: int, words: str) -> None:
    assert old in GOOD
    with pytest.raises(UsageError) as error:
        parse_payload(GOOD.replace(old, new, 1), "payloads/command-injection/x.toml")
    assert error.value.message.startswith(f"payloads/command-injection/x.toml:{line}: ")
    assert words in error.value.message


def test_a_file_of_no_class_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no class 'magic'"):
        parse_payload(GOOD, "payloads/magic/x.toml")


def test_an_effect_that_an_echo_fakes_is_a_mistake(tmp_path: Path) -> None:
    folder = tmp_path / "payloads" / "command-injection"
    folder.mkdir(parents=True)
    echoed = GOOD.replace('kind = "created"\npath = "{outside}/{product}"', 'kind = "computed"\ntext = "touch"')
    (folder / "echo.toml").write_text(echoed)
    (folder / "relative.toml").write_text(GOOD.replace('"{outside}/{product}"', '"{product}"'))
    _, mistakes = check_payloads(folder.parent)
    assert (
        "payloads/command-injection/echo.toml:1: the predicted text of computed is sent, so an echo would show it"
        in (mistakes)
    )
    assert "payloads/command-injection/relative.toml:1: a predicted path is absolute" in mistakes


@pytest.mark.parametrize("name", sorted(PAYLOADS))
def test_what_proves_is_never_in_what_is_sent(name: str) -> None:
    payload = PAYLOADS[name]
    for base in ("value", "/home/user/workspace/allowed/notes.txt", "7"):
        mine, control = filled(name, base), filled(name, base, control=True)
        for sent in (*mine.sent(), *control.sent()):
            for effect in mine.effects:
                if effect.kind in (EffectKind.DISCLOSED, EffectKind.COMPUTED):
                    assert effect.text not in sent
            assert not re.search(r"\{[a-z_]+(?::[^}]*)?\}", sent) or payload.payload_class in (
                PayloadClass.ATTRIBUTE_ACCESS,
                PayloadClass.TEMPLATE_INJECTION,
                PayloadClass.EXHAUSTION,
            )
        assert len(mine.steps) == len(control.steps) and len(mine.elements) == len(control.elements)


@pytest.mark.parametrize("name", sorted(PAYLOADS))
def test_the_same_nonce_gives_the_same_and_another_something_else(name: str) -> None:
    assert filled(name) == filled(name)
    other = expand(PAYLOADS[name], WORLD, base="value", nonce="f" * 20)
    assert other is not None
    computed = [e for e in other.effects if e.kind is EffectKind.COMPUTED]
    if computed and PAYLOADS[name].payload_class is not PayloadClass.ATTRIBUTE_ACCESS:
        assert other.effects != filled(name).effects


def test_a_world_without_the_thing_has_no_payload() -> None:
    bare = World(nonce="n", root="/r", outside="/o")
    assert expand(PAYLOADS["traversal-read/sibling"], bare, base="x", nonce=NONCE) is None
    assert expand(PAYLOADS["command-injection/separator"], bare, base="x", nonce=NONCE) is not None


def test_paths_follow_the_root_that_is_the_boundary() -> None:
    allowed = filled("traversal-read/sibling", root="/home/user/workspace/allowed")
    whole = filled("traversal-read/sibling", root="/home/user/workspace")
    assert allowed.value == "/home/user/workspace/allowed_backup/account.txt"
    assert whole.value == "/home/user/workspace_backup/account.txt"
    assert allowed.effects[0].text != whole.effects[0].text
    assert filled("traversal-read/relative-way").value == "../../private/account.txt"
    assert filled("allowlist-bypass/ls-parent-line", root="/home/user/workspace/allowed").value == "ls .."


@pytest.mark.parametrize(
    ("base", "path"),
    [
        ("/home/user/workspace/data/orders.csv", "accounts.csv"),
        ("data/config.json", "account.json"),
        ("/home/user/workspace/project", "project"),
        ("/home/user/workspace/data/", "records"),
        (".", "records"),
        ("data/garden.db", "accounts.db"),
        ("whatever", "account.txt"),
    ],
)
def test_what_is_like_the_benign_value_stands_in_its_place(base: str, path: str) -> None:
    made = filled("traversal-read/absolute", base)
    assert made.value == f"/home/user/private/{path}"
    assert made.effects[0].text


def test_a_command_is_written_as_the_list_of_programs_has_it() -> None:
    listed = ("git", "/usr/bin/tar")
    made = expand(PAYLOADS["allowlist-bypass/tar-checkpoint"], WORLD, base="", nonce=NONCE, programs=listed)
    assert made is not None and made.elements[0] == "/usr/bin/tar"
    line = expand(PAYLOADS["allowlist-bypass/tar-checkpoint-line"], WORLD, base="", nonce=NONCE, programs=listed)
    assert line is not None and line.value.startswith("/usr/bin/tar -cf")
    point = InjectionPoint(pointer="/c", place="argument", name="c", value=["ls"], type="array", siblings=True)
    names = {p.id for p, _ in choose(PAYLOADS.values(), point, ("in-argv",), listed)}
    assert names and all("git" in name or "tar" in name for name in names if name.startswith("allowlist-bypass"))


def test_observation_puts_the_right_class_first_whatever_the_name() -> None:
    point = InjectionPoint(pointer="/x", place="argument", name="x", value="a")
    for use, expected in (
        ("in-shell", PayloadClass.COMMAND_INJECTION),
        ("opened-path", PayloadClass.TRAVERSAL_READ),
        ("written-path", PayloadClass.TRAVERSAL_WRITE),
        ("connected-host", PayloadClass.SSRF),
        ("in-query", PayloadClass.SQL),
    ):
        chosen = choose(PAYLOADS.values(), point, (use,))
        assert expected in {payload.payload_class for payload, seen in chosen[:6] if seen}
    plain = choose(PAYLOADS.values(), point, ())
    assert {payload.payload_class for payload, _ in plain} >= {
        PayloadClass.COMMAND_INJECTION,
        PayloadClass.TRAVERSAL_READ,
        PayloadClass.SSRF,
        PayloadClass.SQL,
        PayloadClass.TEMPLATE_INJECTION,
        PayloadClass.CODE_EVALUATION,
    }
    assert not any(seen for _, seen in plain)


def test_what_is_only_written_is_not_asked_to_read() -> None:
    """A payload that reads would overwrite there what other tools are led to."""
    point = InjectionPoint(pointer="/x", place="argument", name="path", value="a.txt", role="path")
    written = {payload.payload_class for payload, _ in choose(PAYLOADS.values(), point, ("written-path",))}
    assert PayloadClass.TRAVERSAL_READ not in written and PayloadClass.TRAVERSAL_WRITE in written
    both = {payload.payload_class for payload, _ in choose(PAYLOADS.values(), point, ("written-path", "opened-path"))}
    assert {PayloadClass.TRAVERSAL_READ, PayloadClass.TRAVERSAL_WRITE} <= both


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("traversal-write/absolute", r"/home/user/private/[0-9a-f]{20}"),
        ("argument-injection/output", r"--output=/home/user/private/[0-9a-f]{20}"),
        ("command-injection/if-the-network-is-dead", r"\$\(touch /home/user/private/\$\(\(\d+\*\d+\)\)\)"),
        ("ssrf/loopback", r"http://127\.0\.0\.1:8899/.*"),
        ("ssrf/unspecified", r"http://0\.0\.0\.0:8899/.*"),
        ("ssrf/header-base", r"http://127\.0\.0\.1:8899"),
        ("symlink-escape/file", r"/home/user/workspace/allowed/latest\.txt"),
        ("sql/attach", r"ATTACH DATABASE '/home/user/private/[0-9a-f]{20}\.db' AS [a-p]{8}"),
        ("sql/vacuum-into", r"VACUUM INTO '/home/user/private/[0-9a-f]{20}\.db'"),
    ],
)
def test_families_that_known_faults_need_are_there(name: str, shape: str) -> None:
    assert re.fullmatch(shape, filled(name).value)


def test_two_steps_are_carried() -> None:
    made = filled("allowlist-bypass/git-alias-kept")
    assert made.elements[:4] == ("git", "--shallow-file", "x", "config")
    assert made.step_elements == (("git", made.elements[4].removeprefix("alias.")),)


@given(st.text(), st.text(alphabet="0123456789abcdef", min_size=20, max_size=20))
def test_any_benign_value_can_be_continued(base: str, nonce: str) -> None:
    payload = PAYLOADS["command-injection/separator"]
    made = expand(payload, WORLD, base=base, nonce=nonce)
    assert made is not None
    assert made.value.startswith(base)
    numbers = re.findall(r"\$\(\((\d+)\*(\d+)\)\)", made.value.removeprefix(base))
    assert [int(a) * int(b) for a, b in numbers] == [int(made.effects[0].path.rpartition("/")[2])]


def test_the_package_carries_the_catalog() -> None:
    """A link in the package: what is installed from a wheel has the files in its place."""
    package = Path(harness.__file__).parent
    assert (package / "payloads").resolve() == package.parent / "payloads"


def test_every_placeholder_and_encoding_is_said_and_does_something() -> None:
    assert all(meaning for meaning, _ in PLACEHOLDERS.values())
    assert all(encode("../a b.c") for encode in ENCODINGS.values())


def test_headers_are_taken_from_texts_with_the_credentials_that_go_with_them() -> None:
    source = 'h.get("X-Vendor-Wiki-Url"), h["X-Vendor-Wiki-Personal-Token"], "x-forwarded-host", "X-Other-Key"'
    names = header_names([source])
    assert names == ("X-Vendor-Wiki-Url", "X-Vendor-Wiki-Personal-Token", "X-Other-Key")
    (point,) = header_points(names)
    assert (point.pointer, point.place) == ("X-Vendor-Wiki-Url", "header")
    assert headers_beside(point.pointer, names, "t") == {"X-Vendor-Wiki-Personal-Token": "t"}
    chosen = [payload.id for payload, _ in choose(PAYLOADS.values(), point, ())]
    assert "ssrf/header-base" in chosen and "command-injection/separator" not in chosen
