# ruff: noqa: E501  # error texts are kept as they were printed
"""Further attempts to start a server, as conversations: its real error texts in, the next attempt out."""

from __future__ import annotations

import re

import pytest
from conversations import HOME, STARTED, WORKSPACE, Shown, Talk, needs, talk

from harness.model.plan import ActionKind, Adjustment, Obstacle
from harness.probing.starting.planner import MAX_ATTEMPTS


def has_variables(*names: str):  # type: ignore[no-untyped-def]
    return lambda adjustment: all(name in adjustment.environment for name in names)


def test_a_server_that_starts_costs_nothing_more() -> None:
    found = talk(lambda adjustment: STARTED, stock_client=True, source=("API_KEY",))
    assert found.kinds == ["stock-client", "start", "discover", "stop"]
    assert found.attempts[0].adjustment == Adjustment() and found.attempts[0].why == ""


def test_a_server_that_says_nothing_of_use_is_not_started_again() -> None:
    assert talk(lambda adjustment: Shown("boom\n")).kinds == ["start", "discover", "stop"]


#: What popular servers print on stderr when a variable is missing (November 2026), and what they then want.
VARIABLES = [
    ("Please set SLACK_BOT_TOKEN and SLACK_TEAM_ID environment variables\n", ["SLACK_BOT_TOKEN", "SLACK_TEAM_ID"]),
    ("GOOGLE_MAPS_API_KEY environment variable is not set\n", ["GOOGLE_MAPS_API_KEY"]),
    (
        "Error: A Brave API key is required via --brave-api-key, BRAVE_API_KEY, --brave-api-key-file, or "
        "BRAVE_API_KEY_FILE. You can get one at https://brave.com/search/api/.\nInvalid configuration\n",
        ["BRAVE_API_KEY"],
    ),
    (
        "\x1b[31mERROR\x1b[39m [19:11:24.885] (6): \x1b[36mGITLAB_PERSONAL_ACCESS_TOKEN environment variable is not "
        "set\x1b[39m\n\x1b[32mINFO\x1b[39m [19:11:24.885] (6): \x1b[36mEither set GITLAB_PERSONAL_ACCESS_TOKEN or enable "
        "OAuth with GITLAB_USE_OAUTH=true\x1b[39m\n",
        ["GITLAB_PERSONAL_ACCESS_TOKEN"],
    ),
    (
        "Error: airtable-mcp-server: No API key provided. Set it in the `AIRTABLE_API_KEY` environment variable\n"
        "    at new AirtableService (file:///app/node_modules/airtable-mcp-server/dist/airtableService.js:11:19)\n",
        ["AIRTABLE_API_KEY"],
    ),
    (
        "ValueError: Errors found in configuration:\n\n"
        "DBT_HOST environment variable is required when semantic layer, discovery, or remote tools are enabled.\n"
        "DBT_PROD_ENV_ID environment variable is required when semantic layer, discovery, or remote tools are enabled.\n"
        "DBT_TOKEN environment variable is required when semantic layer, discovery, or remote tools are enabled.\n"
        "DBT_PROJECT_DIR environment variable is required when dbt CLI tools are enabled.\n",
        ["DBT_HOST", "DBT_PROD_ENV_ID", "DBT_TOKEN", "DBT_PROJECT_DIR"],
    ),
    (
        "  1. HOMEASSISTANT_URL - Your Home Assistant instance URL\n     Example: http://homeassistant.local:8123\n\n"
        "To fix this, you need to provide your Home Assistant connection details:\n\n"
        "  1. HOMEASSISTANT_URL - Your Home Assistant instance URL\n"
        "     Example: http://homeassistant.local:8123\n\n"
        "  2. HOMEASSISTANT_TOKEN - A long-lived access token (an administrator's is recommended)\n"
        "     export HOMEASSISTANT_TOKEN=your_token_here\n",
        ["HOMEASSISTANT_URL", "HOMEASSISTANT_TOKEN"],
    ),
    (
        "Server error: ServiceNow instance URL is required (--instance-url or SERVICENOW_INSTANCE_URL env var)\n",
        ["SERVICENOW_INSTANCE_URL"],
    ),
    ("Traceback (most recent call last):\n  File \"server.py\", line 3\nKeyError: 'TOKEN'\n", ["TOKEN"]),
    (
        "Process terminated.\nCouldn't find a valid ICU package installed on the system. Please install libicu (or icu-libs) "
        "using your package manager and try again. Alternatively you can set the configuration flag "
        "System.Globalization.Invariant to true if you want to run with no globalization support.\n",
        ["DOTNET_SYSTEM_GLOBALIZATION_INVARIANT"],
    ),
    ("botocore.exceptions.NoRegionError: You must specify a region.\n", ["AWS_REGION", "AWS_DEFAULT_REGION"]),
]


@pytest.mark.parametrize(("text", "names"), VARIABLES, ids=[names[0] for _, names in VARIABLES])
def test_a_variable_that_is_named_is_planted_and_said_by_name(text: str, names: list[str]) -> None:
    found = talk(needs(text, has_variables(*names)))
    assert len(found.attempts) == 2 and set(found.last.environment) == set(names)
    assert not found.attempts[1].guess
    assert all(name in found.notes for name in names)
    assert not any(value in found.notes for value in found.last.environment.values() if len(value) > 12)


#: Shapes that providers document, and some servers check.
SHAPES = {
    "GITHUB_TOKEN": r"ghp_[A-Za-z0-9]{36}",
    "OPENAI_API_KEY": r"sk-[A-Za-z0-9]{48}",
    "SLACK_BOT_TOKEN": r"xoxb-\d{12}-\d{12}-[A-Za-z0-9]{24}",
    "AWS_ACCESS_KEY_ID": r"AKIA[A-Z2-7]{16}",
    "AWS_SECRET_ACCESS_KEY": r"[A-Za-z0-9]{40}",
    "AWS_REGION": r"[a-z]{2}-[a-z]+-\d",
    "POSTGRES_URL": r"postgresql://\w+:\w+@localhost:5432/\w+",
    "DATABASE_URL": rf"sqlite:///{WORKSPACE}/data/app\.db",
    "MYSQL_PORT": r"3306",
    "PGHOST_HOST": r"localhost",
    "JIRA_URL": r"https://[a-z]+\.atlassian\.net",
    "SERVICE_BASE_URL": r"https://[a-z]+\.com",
    "TENANT_ID": r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}",
    "SUPABASE_SERVICE_ROLE_KEY": r"eyJ[\w-]+\.eyJ[\w-]+\.[\w-]{43}",
    "GOOGLE_CLOUD_PROJECT": r"[a-z]{6}-\d{6}",
    "USER_EMAIL": r"[a-z]+@[a-z]+\.com",
    "NOTES_VAULT": re.escape(WORKSPACE),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_value_has_the_shape_of_its_provider(name: str) -> None:
    found = talk(needs(f"{name} is required\n", has_variables(name)))
    value = found.last.environment[name]
    assert re.fullmatch(SHAPES[name], value), value
    assert not re.search(r"dummy|test|example|your|fake|placeholder", value, re.IGNORECASE)


def test_values_come_from_the_seed_alone() -> None:
    server = needs("API_TOKEN is required\n", has_variables("API_TOKEN"))
    first, again, other = (talk(server, seed=seed).last for seed in ("a" * 20, "a" * 20, "b" * 20))
    assert first == again != other


def test_a_refused_value_is_tried_in_the_shape_that_the_complaint_names() -> None:
    def server(adjustment: Adjustment) -> Shown:
        value = adjustment.environment.get("ACME_TOKEN", "")
        if value.startswith("acme_"):
            return STARTED
        return Shown('ACME_TOKEN must start with "acme_"\n' if value else "ACME_TOKEN is not set\n")

    assert len(talk(server).attempts) == 3


def test_a_value_that_is_shown_as_no_number_becomes_one() -> None:
    def server(adjustment: Adjustment) -> Shown:
        value = adjustment.environment.get("DBT_PROD_ENV_ID")
        if value is None:
            return Shown("DBT_PROD_ENV_ID environment variable is required when remote tools are enabled.\n")
        return STARTED if value.isdigit() else Shown(f"ValueError: invalid literal for int() with base 10: '{value}'\n")

    assert len(talk(server).attempts) == 3


def test_what_the_operator_gave_is_never_touched() -> None:
    text = "error: API_KEY is invalid; required: --url <url>, --name NAME\nUsage: server [options] <directory>\n"
    found = talk(
        lambda adjustment: Shown(text),
        environment=frozenset({"API_KEY"}),
        arguments=("--url=https://a.b", "--name", "x"),
    )
    for attempt in found.attempts:
        assert "API_KEY" not in attempt.adjustment.environment
        assert not {"--url", "--name"} & {part.partition("=")[0] for part in attempt.adjustment.arguments}
        assert not attempt.adjustment.subcommand


#: Usages of real programs, and the subcommand that serves.
SUBCOMMANDS = [
    (
        "index.js <command>\n\nCommands:\n  index.js stdio  Start ArgoCD MCP server using stdio.\n"
        "  index.js sse    Start ArgoCD MCP server using SSE.\n  index.js http   Start ArgoCD MCP server using Http Stream.\n"
        "\nOptions:\n  --help     Show help                                                 [boolean]\n\n"
        "Not enough non-option arguments: got 0, need at least 1\n",
        ("stdio",),
    ),
    (
        "usage: tool [-h] {index,serve,clean} ...\ntool: error: the following arguments are required: command\n",
        ("serve",),
    ),
    ("Usage: acme [OPTIONS] COMMAND [ARGS]...\n\nCommands:\n  login   Log in.\n  mcp     Run the server.\n", ("mcp",)),
    ("Usage: thing <command>\n\nRun thing help for more.\n", ("start",)),
    ("usage: sample <command> [options]\n", ("serve",)),
    (
        "Description:\n  Azure MCP Server\nUsage:\n  azmcp [command] [options]\nExamples:\n"
        '  azmcp storage account get --subscription "my-sub"\n  azmcp server start\nCLI:\n'
        "  tools                          CLI tools operations - no key is required.\n\nRequired command was not provided.\n",
        ("server", "start"),
    ),
]


@pytest.mark.parametrize(("text", "command"), SUBCOMMANDS, ids=[" ".join(command) for _, command in SUBCOMMANDS])
@pytest.mark.parametrize("where", ["stderr", "stdout"])
def test_a_program_of_commands_gets_the_one_that_serves(text: str, command: tuple[str, ...], where: str) -> None:
    def server(adjustment: Adjustment) -> Shown:
        if adjustment.subcommand == command:
            return STARTED
        return Shown(text, code=0) if where == "stderr" else Shown(output=tuple(text.splitlines()), code=0)

    assert talk(server).last.subcommand == command


def test_an_argument_that_is_refused_is_taken_back() -> None:
    usage = "usage: sheets [-h] [--version] {stdio,streamable-http} ...\nsheets: error: "

    def server(adjustment: Adjustment) -> Shown:
        if adjustment.arguments:
            return Shown(f"{usage}unrecognized arguments: {' '.join(adjustment.arguments)}\n", code=2)
        if adjustment.subcommand == ("stdio",):
            return STARTED
        return Shown(f"{usage}the following arguments are required: kind\n", code=2)

    assert talk(server).notes


def test_a_command_of_a_command_is_found() -> None:
    def server(adjustment: Adjustment) -> Shown:
        match adjustment.subcommand:
            case ("mcp", "start"):
                return STARTED
            case ("mcp",):
                return Shown(
                    "Usage: acme mcp [OPTIONS] COMMAND [ARGS]...\n\nCommands:\n  start  Start it.\n  list\n", code=2
                )
            case _:
                return Shown("Usage: acme [OPTIONS] COMMAND [ARGS]...\n\nCommands:\n  login\n  mcp    MCP.\n", code=2)

    assert talk(server).last.subcommand == ("mcp", "start")


#: Missing flags and arguments in the words of the usual parsers and of real servers, and how they must be given.
ARGUMENTS = [
    ("Please provide a database URL as a command-line argument\n", r"sqlite:///.*"),
    (
        "Usage: mcp-server-sentry [OPTIONS]\nTry 'mcp-server-sentry --help' for help.\n\nError: Missing option '--auth-token'.\n",
        r"--auth-token \w{40}",
    ),
    (
        "usage: x [-h] --db-path DB_PATH\nx: error: the following arguments are required: --db-path\n",
        rf"--db-path {HOME}/\S+\.db",
    ),
    ("error: required option '-u, --base-url <url>' not specified\n", r"--base-url https://\w+\.com"),
    ("error: missing required argument 'directory'\n", re.escape(WORKSPACE)),
    ("Usage: mcp-server-filesystem <allowed-directory> [additional-directories...]\n", re.escape(WORKSPACE)),
    ("Missing required argument: token\n", r"\w{40}"),
    (
        "Error: The following required arguments are missing:\n  - token: Monday API token\n"
        "    You can provide it using:\n     --token or -t command line argument\n",
        r"--token \w{40}",
    ),
    (
        "Failed to start server: Error: OpenAPI spec is required. Use one of: --openapi-spec, --spec-from-stdin, or "
        "--spec-inline\n    at loadConfig (file:///app/node_modules/x/dist/cli.js:25185:11)\n",
        rf"--openapi-spec {WORKSPACE}/openapi\.json",
    ),
    (
        "Usage: mcp-server-motherduck [OPTIONS]\n\nError: In-memory databases require the --read-write flag.\n",
        r"--read-write",
    ),
    (
        "ValueError: service_config_file cannot be None. Please provide a path to the service configuration file.\n",
        rf"--service-config-file {WORKSPACE}/config\.yaml",
    ),
]


@pytest.mark.parametrize(("text", "pattern"), ARGUMENTS, ids=[text[:40] for text, _ in ARGUMENTS])
def test_a_required_argument_is_filled_by_its_meaning(text: str, pattern: str) -> None:
    found = talk(needs(text, lambda adjustment: bool(re.fullmatch(pattern, " ".join(adjustment.arguments))), code=2))
    assert found.notes and found.attempts[-1].attempt <= 4, [a.adjustment.arguments for a in found.attempts]
    assert re.fullmatch(pattern, " ".join(found.last.arguments))


def test_several_things_are_found_one_after_the_other() -> None:
    def server(adjustment: Adjustment) -> Shown:
        if "API_TOKEN" not in adjustment.environment:
            return Shown("API_TOKEN is required\n")
        if not adjustment.arguments:
            return Shown("error: the following arguments are required: --site\n", code=2)
        return STARTED

    found = talk(server)
    assert len(found.attempts) == 3 and "API_TOKEN" in found.notes and "--site" in found.notes


HTTP = (
    "[INFO] HTTP server listening on port 3333\n[INFO] StreamableHTTP endpoint available at http://127.0.0.1:3333/mcp\n"
)


@pytest.mark.parametrize(
    "satisfied",
    [
        lambda a: a.arguments == ("--stdio",),
        lambda a: a.arguments == ("--transport", "stdio"),
        lambda a: a.arguments == ("stdio",),
        lambda a: not a.arguments and a.environment.get("MCP_TRANSPORT") == "stdio",
    ],
    ids=["--stdio", "--transport stdio", "stdio", "variable"],
)
def test_a_server_on_a_port_is_asked_to_use_its_standard_streams(satisfied) -> None:  # type: ignore[no-untyped-def]
    assert talk(needs(HTTP, satisfied, silent=True, code=None)).notes


def test_plain_silence_gets_one_guess_that_does_not_count() -> None:
    found = talk(lambda adjustment: Shown(silent=True, code=None))
    assert [attempt.guess for attempt in found.attempts] == [False, True]
    assert "with nothing added it gave no answer" in found.notes


#: Files that real servers look for, and where one must be planted.
FILES = [
    (
        "Error: OAuth keys file not found. Please place gcp-oauth.keys.json in current directory or /home/user/.gmail-mcp\n",
        "workspace/gcp-oauth.keys.json",
        '"installed"',
    ),
    (
        "Error: ENOENT: no such file or directory, open '/home/user/.config/x/settings.yaml'\n",
        ".config/x/settings.yaml",
        "{}",
    ),
    ("FileNotFoundError: [Errno 2] No such file or directory: 'conf/app.json'\n", "workspace/conf/app.json", "{}"),
    ("Error: database /home/user/data/app.sqlite not found\n", "data/app.sqlite", ""),
    (
        "Cannot find config file `panda.config.{ts,js,mjs,mts}`. Did you forget to run `panda init`?\n",
        "workspace/panda.config.mjs",
        "export default",
    ),
    ("ENOENT: no such file or directory, scandir '/home/user/notes'\n", "notes/.keep", ""),
]


@pytest.mark.parametrize(("text", "path", "holds"), FILES, ids=[path for _, path, _ in FILES])
def test_a_missing_file_is_planted_where_it_is_looked_for(text: str, path: str, holds: str) -> None:
    found = talk(needs(text, lambda adjustment: path in adjustment.files))
    assert holds in found.last.files[path] and f"~/{path}" in found.notes


def test_settings_of_others_are_taken_out_of_the_workspace() -> None:
    refused = (
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings\npayments_api_key\n"
        "  Extra inputs are not permitted [type=extra_forbidden, input_value='sk_live_x', input_type=str]"
    )
    said = talk(lambda a: STARTED if a.files.get("workspace/.env") == "" else Shown(refused))
    assert len(said.attempts) == 2
    assert "an empty ~/workspace/.env" in said.attempts[1].why


def test_a_server_that_writes_beside_its_code_gets_a_copy_that_it_can_write_to() -> None:
    found = talk(needs("OSError: [Errno 30] Read-only file system: '/app/lib/x.log'\n", lambda a: a.unsealed))
    assert len(found.attempts) == 2 and found.last == Adjustment(unsealed=True)
    assert "a copy of its installation that it can write to" in found.notes
    never = talk(needs("OSError: [Errno 30] Read-only file system: '/app/lib/x.log'\n", lambda a: False))
    assert len(never.attempts) == 2


def test_nothing_is_planted_outside_of_the_home() -> None:
    text = (
        "ENOENT: no such file or directory, open '/app/x/keys.json'\nNo such file or directory: '../../../etc/a.conf'\n"
    )
    assert all(not attempt.adjustment.files for attempt in talk(lambda adjustment: Shown(text)).attempts)


DRIFT = (
    'Traceback (most recent call last):\n  File "/app/bin/chroma-mcp", line 4, in <module>\n'
    "ImportError: cannot import name 'eval_type_backport' from 'pydantic._internal._typing_extra'\n"
)


def test_an_import_error_gets_the_dependencies_of_the_release() -> None:
    found = talk(needs(DRIFT, lambda adjustment: adjustment.of_its_time), renewable=True)
    assert len(found.attempts) == 2 and "dependencies as of the release" in found.notes


def test_dependencies_that_can_not_be_had_are_no_attempt() -> None:
    found = talk(lambda adjustment: Shown(DRIFT), renewable=True, can=False)
    assert found.kinds == ["start", "discover", "stop", "start"]
    assert len(talk(lambda adjustment: Shown(DRIFT), renewable=False).attempts) == 1


def test_zero_tools_get_one_more_try_with_credentials() -> None:
    def server(adjustment: Adjustment) -> Shown:
        if "ACME_API_KEY" in adjustment.environment:
            return Shown("ready\n", code=None, tools=98)
        return Shown("ACME_API_KEY not set, no tools are registered\n", code=None, tools=0)

    found = talk(server, stock_client=True)
    assert [attempt.attempt for attempt in found.attempts] == [1, 2]
    assert found.kinds.count("stock-client") == 2 and "ACME_API_KEY" in found.notes


def test_a_list_that_ends_with_an_error_gets_one_more_try() -> None:
    text = "2026-11-30 19:21:10,691 - ERROR - Missing required database configuration: MYSQL_USER is required\n"
    found = talk(
        lambda adjustment: Shown(
            text, code=None, tools=3, failed_lists=0 if "MYSQL_USER" in adjustment.environment else 1
        )
    )
    assert len(found.attempts) == 2 and "answered a list with an error" in found.notes
    plain = talk(lambda adjustment: Shown("oops\n", code=None, tools=3, failed_lists=1), source=("A_KEY",))
    assert len(plain.attempts) == 1


def test_zero_tools_that_stay_zero_end_soon() -> None:
    found = talk(lambda adjustment: Shown("API_KEY_ONE missing\n", code=None, tools=0), source=("B_TOKEN",))
    assert len(found.attempts) <= 3


def test_the_source_is_read_when_the_output_names_nothing() -> None:
    text = 'Server error: [ { "message": "Elasticsearch URL cannot be empty", "path": [ "url" ] } ]\n'
    found = talk(needs(text, has_variables("ES_URL")), source=("ES_URL", "ES_API_KEY", "NODE_ENV", "DEBUG"))
    assert found.kinds[:4] == ["start", "discover", "stop", "read-source"]
    assert set(found.last.environment) == {"ES_URL", "ES_API_KEY"} and found.attempts[-1].guess


def test_settings_fields_are_completed_from_the_source() -> None:
    text = "pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings\napi_token\n  Field required [type=missing]\n"
    found = talk(needs(text, has_variables("ACME_API_TOKEN")), source=("ACME_API_TOKEN", "ACME_API_TOKEN_FILE"))
    assert found.notes
    assert "DB_API_TOKEN" in talk(lambda adjustment: Shown(text), source=("DB_",)).attempts[1].adjustment.environment


#: What can't be supplied, in the words of the systems that say it.
OBSTACLES = [
    ("Error: Could not locate the bindings file. Tried:\n", Obstacle.NATIVE_ADDON, ""),
    ("Error: spawn git ENOENT\n", Obstacle.PROGRAM, "git"),
    ("FileNotFoundError: [Errno 2] No such file or directory: 'psql'\n", Obstacle.PROGRAM, "psql"),
    (
        "ImportError: libpq.so.5: cannot open shared object file: No such file or directory\n",
        Obstacle.LIBRARY,
        "libpq.so.5",
    ),
    ("OSError: [Errno 30] Read-only file system: '/app/lib/x/logs'\n", Obstacle.SEALED, "/app/lib/x/logs"),
    ("Error: getaddrinfo ENOTFOUND api.acme.com\n", Obstacle.NETWORK, "api.acme.com"),
    ("httpx.ConnectError: [Errno -3] Temporary failure in name resolution\n", Obstacle.NETWORK, ""),
]


@pytest.mark.parametrize(("text", "obstacle", "what"), OBSTACLES, ids=[text[:30] for text, _, _ in OBSTACLES])
def test_what_can_not_be_supplied_is_named(text: str, obstacle: Obstacle, what: str) -> None:
    last = talk(lambda adjustment: Shown(text)).actions[-1]
    assert last.kind is ActionKind.CONCLUDE and (last.obstacle, last.what) == (obstacle, what)


HOSTILE = [
    "A_" * 40_000,
    "".join(f"VAR_{n} is required\n" for n in range(5000)),
    "usage: x " + "<" * 60_000,
    "the following arguments are required: " + ", ".join(f"--flag{n}" for n in range(5000)),
    "ENOENT: no such file or directory, open '" + "../" * 5000 + "x'\n",
    "Commands:\n" + "".join(f"  cmd{n}  x\n" for n in range(5000)),
    "must start with '" * 5000,
    "{" + "a," * 30_000,
    "please provide " * 5000,
    "\x1b]" * 30_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=[text[:16] for text in HOSTILE])
@pytest.mark.parametrize("silent", [False, True])
def test_hostile_output_leads_to_a_bounded_conversation(text: str, silent: bool) -> None:
    found = talk(
        lambda adjustment: Shown(text, output=(text[:1000],) * 200, silent=silent), source=("X_KEY",), renewable=True
    )
    assert len(found.attempts) <= MAX_ATTEMPTS
    adjustments = [attempt.adjustment.model_dump_json(exclude={"patience"}) for attempt in found.attempts]
    assert len(adjustments) == len(set(adjustments))
    assert all(len(adjustment) < 100_000 for adjustment in adjustments)
    assert isinstance(found, Talk)
