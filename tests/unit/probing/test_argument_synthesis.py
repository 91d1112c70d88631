"""Arguments from schemas: valid, benign, the same each time, bounded whatever the schema, and corrected by refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for

from harness.model.base import JsonObject, sha256_hex
from harness.pipeline.entropy import Entropy
from harness.pipeline.workspace import planted_files
from harness.pipeline.world import plant
from harness.probing.synthesis.draft import Attempt, Context, Draft
from harness.probing.synthesis.drafting import companions, draft, inject, retry
from harness.probing.synthesis.hints import hints_of
from harness.probing.synthesis.pointers import KEY, get, put, remove, rename
from harness.probing.synthesis.spoken import spoken_values
from harness.probing.synthesis.words import words_of
from harness.sandbox.base import LaunchSpec

ROOT = "/home/user/workspace"
WORLD = plant(Entropy(), LaunchSpec(image="base", volume=None, argv=("s",), seed=planted_files())).world
CONTEXT = Context(world=WORLD, commands=("ls", "cat"))


def takes(**properties: Any) -> JsonObject:
    return {"type": "object", "properties": properties, "required": list(properties)}


TEXT = {"type": "string"}


def made(tool: str, schema: Any, description: str = "") -> Draft:
    return draft(tool, schema, CONTEXT, description=description)


def first(tool: str, schema: Any, description: str = "") -> JsonObject:
    found = made(tool, schema, description)
    assert found.candidates, found.problem
    return found.candidates[0]


def new(tool: str, argument: str) -> str:
    """The name of what this argument makes: no other tool's, so that none finds another's there already."""
    return f"made-{sha256_hex(f'{WORLD.nonce} {tool} {argument}')[:6]}"


@pytest.mark.parametrize(
    ("tool", "schema", "expected"),
    [
        ("read_file", takes(path=TEXT), {"path": f"{ROOT}/notes.txt"}),
        ("list_directory", takes(path=TEXT), {"path": ROOT}),
        ("create_directory", takes(path=TEXT), {"path": f"{ROOT}/{new('create_directory', 'path')}"}),
        (
            "write_file",
            takes(filePath=TEXT, content=TEXT),
            {"filePath": f"{ROOT}/{new('write_file', 'filePath')}.txt"},
        ),
        ("git_status", takes(repo_path=TEXT), {"repo_path": f"{ROOT}/project"}),
        ("git_add", takes(repo_path=TEXT, files={"type": "array", "items": TEXT}), {"files": ["plan.txt"]}),
        ("git_diff", takes(repo_path=TEXT, target=TEXT), {"target": "HEAD"}),
        ("fetch", takes(url={"type": "string", "format": "uri"}), {"url": f"http://www.{WORLD.domain}/guide"}),
        ("read_query", takes(query=TEXT | {"description": "SELECT SQL query to execute"}), {"query": "SELECT 1"}),
        ("describe_table", takes(table_name=TEXT), {"table_name": "users"}),
        ("web_search", takes(query=TEXT), {"query": "tomato"}),
        ("shell_execute", takes(command={"type": "array", "items": TEXT}), {"command": ["ls"]}),
        ("kubectl", takes(command=TEXT), {"command": "ls"}),
        ("calculate", takes(expression=TEXT), {"expression": "2 + 3"}),
        ("run_code", takes(code=TEXT, languageId=TEXT), {"code": "print(6 * 7)", "languageId": "python"}),
        ("convert_time", takes(tz=TEXT, time=TEXT), {"tz": "Europe/Berlin", "time": "10:00"}),
        ("get_stock_price", takes(ticker=TEXT, start_date=TEXT, end_date=TEXT), {"ticker": "AAPL"}),
        ("open_workbook", takes(filename=TEXT), {"filename": f"{ROOT}/docs/figures.xlsx"}),
        ("read_pdf", takes(x=TEXT | {"description": "Path of the file"}), {"x": f"{ROOT}/docs/notes.pdf"}),
    ],
)
def test_a_baseline_that_should_succeed(tool: str, schema: JsonObject, expected: JsonObject) -> None:
    arguments = first(tool, schema)
    assert {name: arguments[name] for name in expected} == expected


SCHEMAS: dict[str, JsonObject] = {
    "nested": takes(a=takes(b={"type": "array", "items": takes(c={"type": "integer", "minimum": 3}), "minItems": 2})),
    "references": {
        "type": "object",
        "$defs": {"A": {"type": "string", "minLength": 30}, "B": {"allOf": [{"$ref": "#/$defs/A"}, {"maxLength": 31}]}},
        "properties": {"x": {"$ref": "#/$defs/B"}},
        "required": ["x"],
    },
    "draft 7": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "definitions": {"P": takes(x={"type": "number"})},
        "properties": {"p": {"$ref": "#/definitions/P"}, "q": {"type": "array", "items": [TEXT, {"type": "integer"}]}},
        "required": ["p", "q"],
    },
    "choices": takes(
        a={"anyOf": [{"type": "null"}, {"type": "integer", "exclusiveMinimum": 4}]},
        b={"oneOf": [{"const": "x"}, {"const": "y"}]},
        c={"enum": ["m", "n"], "default": "n"},
        d={"type": ["string", "null"], "format": "date"},
    ),
    "numbers": takes(
        a={"type": "integer", "multipleOf": 7, "minimum": 50, "maximum": 60},
        b={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5},
        c={"type": "integer", "minimum": -5, "maximum": -5},
    ),
    "free": takes(m={"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1}),
    "boolean and null": takes(a={"type": "boolean"}, b={"type": "null"}),
    "recursive": {
        "type": "object",
        "$defs": {"N": {"type": "object", "properties": {"v": TEXT, "next": {"$ref": "#/$defs/N"}}, "required": ["v"]}},
        "properties": {"n": {"$ref": "#/$defs/N"}},
        "required": ["n"],
    },
    "tuple": takes(t={"type": "array", "prefixItems": [{"type": "integer"}, TEXT], "minItems": 2, "items": False}),
    "anchor": takes(a={"$ref": "#here"}) | {"$defs": {"q": {"$anchor": "here", "type": "integer"}}},
    "nothing": {"type": "object"},
    "empty": {},
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEMAS)
def test_candidates_are_valid(name: str) -> None:
    schema = SCHEMAS[name]
    found = made("tool", schema)
    assert found.candidates, found.problem
    validator = validator_for(schema, default=Draft202012Validator)(schema)
    assert validator.is_valid(found.candidates[0]), found.candidates[0]
    assert made("tool", schema) == found


HOSTILE: dict[str, Any] = {
    "a text of 1e9": takes(x={"type": "string", "minLength": 10**9}),
    "a million elements": takes(x={"type": "array", "minItems": 10**6, "items": TEXT}),
    "required recursion": {"type": "object", "properties": {"c": {"$ref": "#"}}, "required": ["c"]},
    "a reference to itself": {"type": "object", "$ref": "#"},
    "a bomb of references": {
        "$defs": {**{f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)}, "d40": {}},
        "$ref": "#/$defs/d0",
    },
    "a reference elsewhere": takes(x={"$ref": "file:///etc/passwd"}),
    "a contradiction": takes(x={"type": "integer", "minimum": 5, "maximum": 1}),
    "false": takes(x=False),
    "no values": takes(x={"enum": []}),
    "an array": {"type": "array"},
    "a list": [1, 2],
    "text": "x",
    "odd keywords": {"type": 5, "properties": [], "required": {"a": 1}, "anyOf": {}},
    "odd numbers": takes(x={"type": "number", "minimum": "3", "maximum": 1e400, "multipleOf": 0}),
    "infinite": takes(x={"type": "number", "minimum": float("inf")}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_schemas_are_bounded(name: str) -> None:
    found = made("tool", HOSTILE[name])
    assert found.problem or found.candidates
    assert len(json.dumps(found.candidates)) < 1_000_000


def test_wide_schemas_are_bounded() -> None:
    wide = takes(**{f"p{i}": takes(**{f"q{j}": TEXT for j in range(300)}) for i in range(300)})
    found = made("tool", wide)
    assert found.problem


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([
        "type", "properties", "required", "items", "anyOf", "allOf", "$ref", "enum", "const", "default", "minimum",
        "maxLength", "minItems", "additionalProperties", "patternProperties", "a", "#",
    ]) | st.text(max_size=4), inner, max_size=5),
    max_leaves=25,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(JSON)
def test_any_json_as_a_schema_gives_a_draft(schema: Any) -> None:
    found = made("tool", schema)
    for arguments in found.candidates:
        assert isinstance(arguments, dict)
    for point in found.points:
        if found.candidates:
            inject(found.candidates[0], found, point, "payload")


def test_places_in_nested_values_lists_keys_and_optional_properties() -> None:
    schema = {
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": TEXT},
            "map": {"type": "object", "additionalProperties": TEXT},
            "deep": {"type": "object", "properties": {"er": {"type": "object", "properties": {"est": TEXT}}}},
            "n": {"type": "integer"},
            "closed": {"enum": ["a"]},
            "flag": {"type": "boolean"},
        },
        "required": ["list"],
    }
    found = made("tool", schema)
    places = {(point.pointer, point.place) for point in found.points}
    assert places == {
        ("/list", "argument"),
        ("/list/0", "element"),
        ("/map/name", "argument"),
        (f"/map/name{KEY}", "key"),
        ("/deep/er/est", "argument"),
        ("/n", "argument"),
        ("/closed", "argument"),
    }
    by_pointer = {point.pointer: point for point in found.points}
    assert by_pointer["/n"].numeric and by_pointer["/closed"].closed and by_pointer["/list"].siblings
    assert by_pointer["/deep/er/est"].optional and not by_pointer["/list/0"].optional
    least = found.candidates[0]
    assert set(least) == {"list"}
    assert inject(least, found, by_pointer["/deep/er/est"], "p")["deep"] == {"er": {"est": "p"}}
    assert inject(least, found, by_pointer[f"/map/name{KEY}"], "p")["map"] == {"p": get(found.full, "/map/name")}
    assert inject(least, found, by_pointer["/list/0"], "p") == {"list": ["p"]}
    assert least == found.candidates[0] and set(least) == {"list"}


def refused(tool: str, schema: JsonObject, text: str, arguments: JsonObject | None = None) -> JsonObject | None:
    found = made(tool, schema)
    return retry(found, [Attempt(arguments=arguments if arguments is not None else found.candidates[0], text=text)])


def test_refusals_lead_to_the_next_try() -> None:
    mode = takes(mode=TEXT)
    assert refused("t", mode, "Invalid enum value. Expected 'fast' | 'slow', received 'x'") == {"mode": "fast"}
    assert refused("t", mode, "mode must be one of: fast, slow") == {"mode": "fast"}
    assert (
        refused("t", takes(path=TEXT), "Error: ENOTDIR: not a directory") != made("t", takes(path=TEXT)).candidates[0]
    )
    optional = {"type": "object", "properties": {"path": TEXT, "url": TEXT}}
    assert set(refused("t", optional, "url is required", {}) or {}) == {"url"}
    assert set(refused("t", optional, "1 validation error\npath\n  Field required", {}) or {}) == {"path"}
    full = {"path": "a", "url": "b"}
    assert refused("t", optional, "Unrecognized key(s) in object: 'url'", full) == {"path": "a"}
    command = takes(command=TEXT)
    assert refused("t", command, "Command not allowed. Allowed commands: date, uptime") == {"command": "date"}


def test_tries_end_and_are_never_repeated() -> None:
    found = made("tool", takes(path=TEXT, query=TEXT))
    attempts: list[Attempt] = []
    while (arguments := retry(found, attempts)) is not None:
        assert all(arguments != attempt.arguments for attempt in attempts)
        attempts.append(Attempt(arguments=arguments, text="no such file or directory"))
        assert len(attempts) <= 24
    assert len(attempts) > 5


def test_values_from_earlier_results_come_first_where_only_they_can_be_right() -> None:
    context = Context(world=WORLD, found={"output_id": ("4f2a9c",)})
    found = draft("read_output", takes(outputId=TEXT), context)
    assert found.candidates[0] == {"outputId": "4f2a9c"}


def test_companions_are_found_by_words() -> None:
    found = made("tool", takes(command=TEXT, workingDirectory=TEXT))
    assert companions(found, {"directory": "/x"}) == {"/workingDirectory": "/x"}


@given(st.text(max_size=600))
def test_any_refusal_gives_hints_without_harm(text: str) -> None:
    hints_of(text)


def test_long_refusals_are_quick() -> None:
    assert hints_of("expected one of " + "a or " * 5_000) is not None
    assert hints_of("must be one of: " + "'a', " * 2_000) is not None


@given(st.dictionaries(st.text(min_size=1), st.integers(), min_size=1), st.data())
def test_pointers_reach_every_key(value: dict[str, int], data: st.DataObject) -> None:
    from harness.probing.synthesis.pointers import join

    key = data.draw(st.sampled_from(sorted(value)))
    pointer = join("", key)
    assert get(value, pointer) == value[key]
    assert put(value, pointer, -1)[key] == -1
    assert key not in remove(value, pointer)
    new = f"{key}x"
    assert new in rename(value, pointer, new)
    assert put({}, "/a/b", 1) == {"a": {"b": 1}}


def test_words_of_names_in_every_style() -> None:
    for name in ("filePath", "file_path", "FILE-PATH", "filepath", "FilePath"):
        assert words_of(name) == ("file", "path")
    assert words_of("repoURL") == ("repository", "url")


@pytest.mark.parametrize(
    ("description", "values"),
    [
        ("The table: plants or orders.", ("plants", "orders")),
        ("Sums and products of numbers, for example 2*3+1.", ("2*3+1",)),
        ("Branch, e.g. 'main' or 'dev'", ("main",)),
        ("Must be one of fast, slow or medium.", ("fast", "slow", "medium")),
        ("The command line, for example: git status", ("git status",)),
        ("URL (e.g., https://api.example.com/v1).", ("https://api.example.com/v1",)),
        ("Note: this is deprecated or removed", ()),
        ("The name.", ()),
        ("Local branches ('local'), remote branches ('remote') or all('all').", ("local", "remote", "all")),
        ("'asc' for ascending, 'desc' for descending", ("asc", "desc")),
        ("The user's key ('id') of the thing", ()),
        ("Whether it's for us: 'yes'", ()),
    ],
)
def test_values_that_a_description_gives_are_tried(description: str, values: tuple[str, ...]) -> None:
    assert spoken_values(description) == values


@pytest.mark.parametrize(
    ("refusal", "start"),
    [
        ("failed: unknown url type: 'garden'", "http://"),
        ("TypeError: Failed to parse URL from garden", "http://"),
        ("ENOENT: no such file or directory, open '/home/user/workspace/garden'", "notes.txt"),
    ],
)
def test_a_refusal_tells_what_a_name_did_not(refusal: str, start: str) -> None:
    schema: JsonObject = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
    made = draft("look", schema, Context(world=WORLD))
    again = retry(made, [Attempt(arguments=made.candidates[0], text=refusal)])
    assert again is not None and str(again["q"]).startswith(start)


def test_what_leads_outside_is_no_benign_value() -> None:
    schema: JsonObject = {"type": "object", "properties": {"archive_path": {"type": "string"}}}
    made = draft("unzip_archive", schema, Context(world=WORLD))
    targets = {item.path for item in WORLD.items if item.where == "inside" and item.target}
    assert targets and not targets & {str(value) for leaf in made.leaves for value in leaf.values}


def test_keys_are_what_the_description_of_their_map_says() -> None:
    files: JsonObject = {"type": "object", "additionalProperties": {"type": "string"}}
    files["description"] = "File name to content."
    made = draft("save_all", {"type": "object", "properties": {"files": files}}, Context(world=WORLD))
    (key,) = (point for point in made.points if point.place == "key")
    assert key.role == "new-file"
