"""Boundaries: found where a target's start and words draw them, and nowhere else."""

from __future__ import annotations

import pytest

from harness.model.base import JsonValue
from harness.model.payload import Boundary, BoundaryKind, PayloadClass
from harness.model.surface import Item, ItemKind, Surface
from harness.model.world import World
from harness.probing.boundaries import CROSSES, boundary_for, find_boundaries
from harness.probing.oracle.crossing import ADMISSIBLE

ROOT = "/home/user/workspace"
WORLD = World(nonce="0" * 20, root=ROOT, outside="/home/user/private", roots=(ROOT,))


def surface(name: str = "t", description: str = "", **more: JsonValue) -> Surface:
    value: dict[str, JsonValue] = {"name": name, "description": description, **more}
    return Surface(items=(Item(kind=ItemKind.TOOL, name=name, value=value, frame=1),))


def found(kind: BoundaryKind, *arguments: str, of: Surface | None = None, **environment: str) -> list[Boundary]:
    return [b for b in find_boundaries(of or surface(), WORLD, arguments, environment) if b.kind is kind]


def test_folders_and_files_of_the_workspace_in_arguments_are_roots_the_narrowest_first() -> None:
    roots = found(BoundaryKind.ROOT, ROOT, f"--db={ROOT}/data/x.db", "/usr/share", "relative")
    assert [(b.value, b.source) for b in roots] == [(f"{ROOT}/data/x.db", "arguments"), (ROOT, "arguments")]


def test_folders_in_the_environment_are_configuration() -> None:
    (root,) = found(BoundaryKind.ROOT, ALLOWED_DIR=f"{ROOT}/notes", HOME="/home/user")
    assert (root.value, root.source, root.text) == (f"{ROOT}/notes", "configuration", f"ALLOWED_DIR={ROOT}/notes")


@pytest.mark.parametrize(
    "words",
    [
        "Read a file. Only works within allowed directories.",
        "Path relative to the project root",
        "Paths outside the workspace are rejected.",
    ],
)
def test_words_that_draw_a_root_bind_their_tool_only(words: str) -> None:
    (root,) = found(BoundaryKind.ROOT, of=surface("read", words))
    assert (root.source, root.value, root.tool) == ("description", ROOT, "read")


def test_words_draw_no_wider_root_than_the_start_does() -> None:
    allowed = f"{ROOT}/allowed"
    of = surface("read", "Only works within allowed directories.")
    world = WORLD.model_copy(update={"roots": (allowed, ROOT)})
    roots = [b for b in find_boundaries(of, world, [allowed]) if b.kind is BoundaryKind.ROOT]
    assert [b.value for b in roots] == [allowed]


@pytest.mark.parametrize("words", ["Read any file of this machine.", "Lists the workspace.", "Give a path."])
def test_other_words_draw_none(words: str) -> None:
    assert not found(BoundaryKind.ROOT, of=surface("read", words))


def test_lists_of_commands() -> None:
    (listed,) = found(BoundaryKind.ALLOWLIST, ALLOW_COMMANDS="git, ls", OTHER="x")
    assert (listed.value, listed.source) == ("git ls", "configuration")
    assert [b.value for b in found(BoundaryKind.ALLOWLIST, "--allowed-commands", "cat")] == ["cat"]
    assert [b.tool for b in found(BoundaryKind.ALLOWLIST, of=surface("run", "Run one of the allowed commands"))] == [
        "run"
    ]


def test_read_only_modes_annotations_and_words() -> None:
    assert found(BoundaryKind.READ_ONLY, "--read-only")[0].source == "arguments"
    assert found(BoundaryKind.READ_ONLY, "--disable-write")[0].source == "arguments"
    assert found(BoundaryKind.READ_ONLY, READ_ONLY="true")[0].source == "configuration"
    assert not found(BoundaryKind.READ_ONLY, READ_ONLY="false")
    hinted = surface("q", annotations={"readOnlyHint": True})
    assert [(b.source, b.tool) for b in found(BoundaryKind.READ_ONLY, of=hinted)] == [("annotation", "q")]
    assert found(BoundaryKind.READ_ONLY, of=surface("q", "Execute a SELECT query on the database"))


def crossing(payload_class: PayloadClass, tool: str, argument: str, *boundaries: Boundary) -> Boundary | None:
    wanted = CROSSES[payload_class][-1]
    return boundary_for(payload_class, wanted, "t", tool, argument, "", boundaries)


def test_a_tool_that_runs_code_is_not_injected_by_code_and_one_that_takes_a_name_is() -> None:
    data = Boundary(kind=BoundaryKind.DATA_NOT_CODE, source="convention")
    runs = "run_command\nRun a shell command"
    assert crossing(PayloadClass.COMMAND_INJECTION, runs, "command", data) is None
    assert crossing(PayloadClass.COMMAND_INJECTION, runs, "working_name", data) is data
    assert crossing(PayloadClass.COMMAND_INJECTION, "convert\nConvert a file", "command", data) is data
    assert crossing(PayloadClass.TEMPLATE_INJECTION, "render\nFill in", "template", data) is None
    assert crossing(PayloadClass.SQL, "look up", "sql", data) is None
    assert crossing(PayloadClass.SQL, "look up", "user_name", data) is data


def test_a_list_of_commands_is_a_boundary_also_for_a_tool_that_runs_them() -> None:
    listed = Boundary(kind=BoundaryKind.ALLOWLIST, source="configuration", value="ls")
    assert crossing(PayloadClass.COMMAND_INJECTION, "run\nRun a command", "command", listed) is listed


@pytest.mark.parametrize(
    ("name", "words", "program"),
    [
        ("kubectl", "Pass a line on.", "kubectl"),
        ("cluster", "Run a kubectl command and return the output", "kubectl"),
        ("cloud", "Executes any AWS CLI command", "aws"),
        ("run", "Run a shell command", None),
        ("build", "Run npm commands, or run git commands", None),
        ("look", "Read a file", None),
    ],
)
def test_a_tool_for_commands_of_one_program_is_for_no_others(name: str, words: str, program: str | None) -> None:
    listed = found(BoundaryKind.ALLOWLIST, of=surface(name, words))
    assert [(b.value, b.tool) for b in listed] == ([(program, name)] if program else [])


def test_variables_for_programs_and_their_settings_are_no_roots() -> None:
    given = {"PATH": f"{ROOT}/bin:/bin", "KUBECONFIG": f"{ROOT}/.kube/config", "APP_CONFIG_FILE": f"{ROOT}/a.toml"}
    assert not found(BoundaryKind.ROOT, **given)
    assert found(BoundaryKind.ROOT, DATA_PATH=f"{ROOT}/data")


def test_what_a_listed_program_reads_or_writes_itself_crosses_no_list() -> None:
    listed = Boundary(kind=BoundaryKind.ALLOWLIST, source="configuration", value="git")
    root = Boundary(kind=BoundaryKind.ROOT, source="arguments", value=ROOT)
    data = Boundary(kind=BoundaryKind.DATA_NOT_CODE, source="convention")
    runs = "run_command\nRun a command"
    for payload_class in (PayloadClass.ALLOWLIST_BYPASS, PayloadClass.ARGUMENT_INJECTION):
        asked = (payload_class, BoundaryKind.ROOT, "t", runs, "command", "")
        assert boundary_for(*asked, [listed, data]) is None
        assert boundary_for(*asked, [listed, data, root]) is root
    plain = (PayloadClass.ARGUMENT_INJECTION, BoundaryKind.ROOT, "t", "show\nShow a revision", "revision", "")
    assert boundary_for(*plain, [data]) is data


def test_who_says_that_it_keeps_secrets_back_says_it_for_all_of_its_tools() -> None:
    words = "Read a file. Security validation prevents access to files containing sensitive information."
    (kept,) = found(BoundaryKind.SECRETS, of=surface("read", words))
    assert (kept.tool, kept.source) == ("", "description")
    assert not found(BoundaryKind.SECRETS, of=surface("read", "Read a file with passwords"))
    services = Boundary(kind=BoundaryKind.CREDENTIAL_SERVICES, source="convention")
    disclosure = PayloadClass.SECRET_DISCLOSURE
    assert boundary_for(disclosure, BoundaryKind.SECRETS, "t", "", "path", "", [services]) is None
    assert boundary_for(disclosure, BoundaryKind.SECRETS, "t", "", "path", "", [services, kept]) is kept
    assert boundary_for(disclosure, BoundaryKind.ROOT, "t", "", "path", "", [kept]) is None


def test_who_says_that_it_reaches_localhost_may() -> None:
    internal = Boundary(kind=BoundaryKind.INTERNAL_ADDRESS, source="convention")
    assert crossing(PayloadClass.SSRF, "fetch\nFetch a page", "url", internal) is internal
    assert crossing(PayloadClass.SSRF, "open\nOpen a page, localhost too", "url", internal) is None


def test_without_a_root_a_traversal_has_nothing_to_cross() -> None:
    assert crossing(PayloadClass.TRAVERSAL_READ, "read", "path") is None
    other = Boundary(kind=BoundaryKind.ROOT, source="description", value=ROOT, tool="another")
    assert crossing(PayloadClass.TRAVERSAL_READ, "read", "path", other) is None


def test_only_what_the_oracle_admits_is_crossed() -> None:
    for payload_class, kinds in CROSSES.items():
        if payload_class is PayloadClass.EXHAUSTION:
            continue  # it proves nothing, and is told as seen
        assert set(kinds) <= ADMISSIBLE[payload_class], payload_class


def test_who_may_run_anything_may_ask_for_the_environment_and_others_may_not() -> None:
    services = Boundary(kind=BoundaryKind.CREDENTIAL_SERVICES, source="convention")
    asked = (PayloadClass.SECRET_DISCLOSURE, BoundaryKind.CREDENTIAL_SERVICES, "t")
    assert boundary_for(*asked, "run_command\nRun a command", "command", "", [services]) is None
    assert boundary_for(*asked, "git_status\nShow a repository's state", "repo_path", "", [services]) is services


@pytest.mark.parametrize(
    "words",
    [
        "Absolute path, or relative to the project root",
        "Paths outside the workspace are not restricted.",
        "Writing is not limited to files in the workspace folder.",
        "Works inside the working directory, or anywhere else.",
    ],
)
def test_words_that_allow_every_path_draw_no_root(words: str) -> None:
    assert not found(BoundaryKind.ROOT, of=surface("read", words))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("store", "Fails if the file is read-only."),
        ("store", "Not read-only by default."),
        ("store", "It does not modify the file's mode."),
        ("store", "Stores a row; for a read-only variant see query."),
        ("write_query", "Runs a statement. Read-only replicas are skipped."),
    ],
)
def test_words_about_something_else_are_no_read_only_mode(name: str, words: str) -> None:
    assert not found(BoundaryKind.READ_ONLY, of=surface(name, words))
    assert found(BoundaryKind.READ_ONLY, of=surface("look", "Shows a row. It does not modify any data."))


def test_what_is_denied_is_no_promise_and_no_permission() -> None:
    assert not found(BoundaryKind.SECRETS, of=surface("read", "It does not redact secrets."))
    assert not found(BoundaryKind.ALLOWLIST, of=surface("run", "Runs a command. There is no allowlist."))
    assert not found(BoundaryKind.READ_ONLY, "--read-only", "false")
    assert not found(BoundaryKind.ALLOWLIST, ALLOW_COMMAND_EXECUTION="true")
    (listed,) = found(BoundaryKind.ALLOWLIST, ALLOWED_COMMANDS='["ls", "cat"]')
    assert listed.value == "ls cat"
    internal = Boundary(kind=BoundaryKind.INTERNAL_ADDRESS, source="convention")
    refuses = "fetch\nFetch a page. Requests to localhost are rejected."
    assert crossing(PayloadClass.SSRF, refuses, "url", internal) is internal
    designed = "fetch\nFetch any URL, loopback and private addresses included."
    assert crossing(PayloadClass.SSRF, designed, "url", internal) is None


@pytest.mark.parametrize(
    ("tool", "argument", "words", "code"),
    [
        ("python_eval\nEvaluate a Python expression", "expression", "", True),
        ("run_cell\nRun code in a notebook", "cell", "", True),
        ("helper\nA tool", "input", "The Python code to run", True),
        ("calculate\nEvaluate an arithmetic expression", "expression", "", False),
        ("launch\nStart something", "path", "Path of the script to run", False),
        ("search\nSearch in files", "query", "What to look for", False),
    ],
)
def test_code_is_told_by_what_is_said_of_it(tool: str, argument: str, words: str, code: bool) -> None:
    data = Boundary(kind=BoundaryKind.DATA_NOT_CODE, source="convention")
    evaluation = PayloadClass.CODE_EVALUATION
    drawn = boundary_for(evaluation, BoundaryKind.DATA_NOT_CODE, "t", tool, argument, words, [data])
    assert drawn is (None if code else data)


def test_who_shows_the_environment_or_fills_in_templates_says_so() -> None:
    services = Boundary(kind=BoundaryKind.CREDENTIAL_SERVICES, source="convention")
    shows = "get_env\nReturn the value of any environment variable"
    assert crossing(PayloadClass.SECRET_DISCLOSURE, shows, "key", services) is None
    data = Boundary(kind=BoundaryKind.DATA_NOT_CODE, source="convention")
    assert crossing(PayloadClass.TEMPLATE_INJECTION, "show\nRender a Jinja2 template", "source", data) is None
    assert crossing(PayloadClass.TEMPLATE_INJECTION, "greet\nSay hello", "name", data) is data
