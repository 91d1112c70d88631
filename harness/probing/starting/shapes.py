# ruff: noqa: E501  # the table of shapes reads better a shape a line
"""A value for a setting by what its name means, shaped as its provider hands it out.

Names of variables, flags and arguments meet here in one form (`--db-path` is `DB_PATH`). The shapes of tokens are
those that providers publish for secret scanning; some servers check them and refuse words like a placeholder.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from harness.probing.starting.material import ALNUM, BASE32, DIGITS, HEX, LOWER, Material
from harness.probing.starting.skeletons import skeleton


@dataclass(frozen=True)
class Value:
    """A value, and the files (text by path below the home directory) that it refers to."""

    text: str
    files: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Maker:
    """What a shape is made from. `context`: what the server said around the name."""

    name: str
    context: str
    home: str
    workspace: str
    material: Material

    def chars(self, length: int, alphabet: str = ALNUM, part: str = "") -> str:
        """Made-up characters for this name."""
        return self.material.text(self.name + part, length, alphabet)

    def path(self, relative: str) -> str:
        """An absolute path in the workspace."""
        return posixpath.join(self.workspace, relative)

    def file(self, relative: str, at_home: bool = False) -> Value:
        """A planted file of the kind that its name tells."""
        path = posixpath.join(self.home if at_home else self.workspace, relative)
        return Value(path, {posixpath.relpath(path, self.home): skeleton(path, self.context, self.material)})


_Make = Callable[[Maker], Value | str]

#: Name of the setting (searched for, upper case) → its shape; the first that matches.
_SHAPES: tuple[tuple[str, _Make], ...] = (
    (r"TRANSPORT|MCP_MODE$", lambda m: "stdio"),
    # The clouds
    (r"AWS_ACCESS_KEY_ID|ACCESS_KEY_ID$", lambda m: "AKIA" + m.chars(16, BASE32)),
    (r"AWS_SECRET_ACCESS_KEY|SECRET_ACCESS_KEY$", lambda m: m.chars(40)),
    (r"AWS_PROFILE", lambda m: Value("default", {**m.file(".aws/credentials", True).files, **m.file(".aws/config", True).files})),
    (r"AWS.*REGION", lambda m: "us-east-1"),
    (r"SERVICE_ACCOUNT|APPLICATION_CREDENTIALS", lambda m: m.file("service-account.json")),
    (r"OAUTH.*CREDENTIALS|OAUTH.*(FILE|PATH|KEYS)|CLIENT_SECRETS?_(FILE|PATH|JSON)", lambda m: m.file("gcp-oauth.keys.json")),
    (r"CREDENTIALS?_?(FILE|PATH|JSON)|^GOOGLE\w*CREDENTIALS$", lambda m: m.file("credentials.json")),
    (r"KUBECONFIG", lambda m: m.file(".kube/config", True)),
    (r"OPENAPI|SWAGGER|API_SPEC", lambda m: m.file("openapi.json")),
    # Tokens of providers
    (r"GITHUB\w*(TOKEN|PAT)|^GH_TOKEN", lambda m: "ghp_" + m.chars(36)),
    (r"GITLAB\w*(TOKEN|PAT)", lambda m: "glpat-" + m.chars(20)),
    (r"ANTHROPIC\w*KEY", lambda m: "sk-ant-api03-" + m.chars(95)),
    (r"OPENROUTER\w*KEY", lambda m: "sk-or-v1-" + m.chars(64, HEX)),
    (r"OPENAI\w*KEY", lambda m: "sk-" + m.chars(48)),
    (r"SLACK\w*TEAM", lambda m: "T" + m.chars(10, LOWER.upper() + DIGITS)),
    (r"SLACK\w*CHANNEL", lambda m: "C" + m.chars(10, LOWER.upper() + DIGITS)),
    (r"SLACK\w*APP\w*TOKEN", lambda m: f"xapp-1-A{m.chars(10, BASE32)}-{m.chars(13, DIGITS, 'n')}-{m.chars(64, HEX, 's')}"),
    (r"SLACK\w*XOXC", lambda m: f"xoxc-{m.chars(12, DIGITS)}-{m.chars(12, DIGITS, 'n')}-{m.chars(64, HEX, 's')}"),
    (r"SLACK\w*XOXD", lambda m: "xoxd-" + m.chars(120)),
    (r"SLACK\w*(USER|XOXP)", lambda m: f"xoxp-{m.chars(12, DIGITS)}-{m.chars(12, DIGITS, 'n')}-{m.chars(24, part='s')}"),
    (r"SLACK\w*TOKEN", lambda m: f"xoxb-{m.chars(12, DIGITS)}-{m.chars(12, DIGITS, 'n')}-{m.chars(24, part='s')}"),
    (r"STRIPE\w*(KEY|SECRET|TOKEN)", lambda m: "sk_live_" + m.chars(99)),
    (r"NOTION\w*(TOKEN|KEY)", lambda m: "ntn_" + m.chars(46)),
    (r"AIRTABLE\w*(TOKEN|KEY|PAT)", lambda m: f"pat{m.chars(14)}.{m.chars(64, HEX, 's')}"),
    (r"FIGMA\w*(TOKEN|KEY)", lambda m: "figd_" + m.chars(40)),
    (r"LINEAR\w*(TOKEN|KEY)", lambda m: "lin_api_" + m.chars(40)),
    (r"SENTRY\w*TOKEN", lambda m: "sntryu_" + m.chars(64, HEX)),
    (r"SENTRY_DSN", lambda m: f"https://{m.chars(32, HEX)}@o{m.chars(6, DIGITS[1:])}.ingest.sentry.io/{m.chars(7, DIGITS[1:], 'p')}"),
    (r"HUGGING_?FACE\w*(TOKEN|KEY)|^HF_TOKEN", lambda m: "hf_" + m.chars(34)),
    (r"TAVILY\w*KEY", lambda m: "tvly-" + m.chars(32)),
    (r"FIRECRAWL\w*KEY", lambda m: "fc-" + m.chars(32, HEX)),
    (r"BRAVE\w*KEY", lambda m: "BSA" + m.chars(28)),
    (r"(GOOGLE|GEMINI|MAPS|YOUTUBE)\w*API_?KEY", lambda m: "AIza" + m.chars(35)),
    (r"SUPABASE\w*ACCESS_TOKEN", lambda m: "sbp_" + m.chars(40, HEX)),
    (r"PERPLEXITY\w*KEY", lambda m: "pplx-" + m.chars(48)),
    (r"GROQ\w*KEY", lambda m: "gsk_" + m.chars(52)),
    (r"REPLICATE\w*TOKEN", lambda m: "r8_" + m.chars(37)),
    (r"E2B\w*KEY", lambda m: "e2b_" + m.chars(40, HEX)),
    (r"DATABRICKS\w*TOKEN", lambda m: "dapi" + m.chars(32, HEX)),
    (r"DIGITALOCEAN\w*TOKEN", lambda m: "dop_v1_" + m.chars(64, HEX)),
    (r"^NPM_TOKEN", lambda m: "npm_" + m.chars(36)),
    (r"SENDGRID\w*KEY", lambda m: f"SG.{m.chars(22)}.{m.chars(43, part='s')}"),
    (r"TELEGRAM\w*TOKEN", lambda m: f"{m.chars(10, DIGITS[1:])}:{m.chars(35, part='s')}"),
    (r"TWILIO\w*SID", lambda m: "AC" + m.chars(32, HEX)),
    (r"(ATLASSIAN|JIRA|CONFLUENCE)\w*TOKEN", lambda m: "ATATT3" + m.chars(180)),
    (r"DYNATRACE\w*TOKEN|^DT_\w*TOKEN", lambda m: f"dt0c01.{m.chars(24, BASE32)}.{m.chars(64, BASE32, 's')}"),
    (r"NEW_?RELIC\w*KEY", lambda m: "NRAK-" + m.chars(27, BASE32)),
    (r"HUBSPOT\w*TOKEN", lambda m: "pat-na1-" + m.material.uuid(m.name)),
    (r"SHOPIFY\w*TOKEN", lambda m: "shpat_" + m.chars(32, HEX)),
    (r"POSTMAN\w*KEY", lambda m: f"PMAK-{m.chars(24, HEX)}-{m.chars(34, HEX, 's')}"),
    (r"GRAFANA\w*TOKEN", lambda m: f"glsa_{m.chars(32)}_{m.chars(8, HEX, 's')}"),
    (r"LAUNCHDARKLY\w*|^LD_\w*KEY", lambda m: "api-" + m.material.uuid(m.name)),
    (r"(DATADOG|^DD)\w*API\w*KEY", lambda m: m.chars(32, HEX)),
    (r"(DATADOG|^DD)\w*APP\w*KEY", lambda m: m.chars(40, HEX)),
    (r"(DATADOG|^DD)\w*SITE", lambda m: "datadoghq.com"),
    (r"EXA\w*KEY", lambda m: m.material.uuid(m.name)),
    # Databases and addresses
    (r"(POSTGRES|PG|PSQL)\w*(URL|URI|DSN|STRING)", lambda m: _database(m, "postgresql")),
    (r"MYSQL\w*(URL|URI|DSN|STRING)|MARIADB\w*(URL|URI)", lambda m: _database(m, "mysql")),
    (r"MONGO\w*(URL|URI|STRING)", lambda m: "mongodb://localhost:27017/app"),
    (r"(REDIS|VALKEY)\w*(URL|URI)", lambda m: "redis://localhost:6379/0"),
    (r"(DATABASE|DB|SQL\w*|CONNECTION)_?(URL|URI|DSN|STRING)|^DSN$|CONNECTION_STRING", lambda m: _database(m, "")),
    (r"(SQLITE|DUCKDB|DATABASE|DB)_?(PATH|FILE|NAME_PATH)|SQLITE\w*|DB_?PATH", lambda m: m.file("data/app.db")),
    (r"(ATLASSIAN|JIRA|CONFLUENCE)\w*(URL|HOST|SITE|DOMAIN|INSTANCE)", lambda m: _web(m, "atlassian.net")),
    (r"SUPABASE_URL", lambda m: _web(m, "supabase.co")),
    (r"SALESFORCE\w*URL", lambda m: _web(m, "my.salesforce.com")),
    (r"SERVICENOW\w*URL|INSTANCE_URL", lambda m: _web(m, "service-now.com")),
    (r"(DYNATRACE|^DT)\w*(ENV|URL)", lambda m: _web(m, "live.dynatrace.com")),
    (r"OKTA\w*(URL|DOMAIN)", lambda m: _web(m, "okta.com")),
    (r"SNOWFLAKE\w*ACCOUNT|^ACCOUNT$", lambda m: f"{m.chars(7, LOWER)}-{m.chars(7, LOWER + DIGITS, 'a')}"),
    (r"CALLBACK|REDIRECT", lambda m: "http://localhost:8000/callback"),
    (r"(ELASTIC\w*|OPENSEARCH|QDRANT|CHROMA|CLICKHOUSE|WEAVIATE|MILVUS|NEO4J|^ES)_?\w*(URL|URI|NODE|ENDPOINT)", lambda m: _local(m)),
    (r"URL$|URI$|ENDPOINT|BASE_?URL|WEBHOOK|_URL_|ORIGIN", lambda m: f"https://{_domain(m)}"),
    (r"PORT$", lambda m: _port(m)),
    (r"HOST(NAME|S)?$|SERVER$|ADDRESS$", lambda m: "localhost"),
    (r"DOMAIN|SITE$", lambda m: _domain(m)),
    # Places in the file system
    (r"CONFIG\w*(FILE|PATH)?$|SETTINGS_(FILE|PATH)", lambda m: m.file(_config_name(m))),
    (r"PRIVATE_KEY\w*(FILE|PATH)|(KEY|CERT|PEM)_?(FILE|PATH)", lambda m: m.file("keys/server.pem")),
    (r"TOKENS?_?(FILE|PATH|STORE)", lambda m: Value(m.path("tokens.json"), {"workspace/tokens.json": "{}"})),
    (r"(SECRET|PASSWORD)\w*_?(FILE|PATH)", lambda m: m.file("secret.txt")),
    (r"REPO(SITORY)?(_?(PATH|DIR))?$", lambda m: m.workspace),
    (r"DIR(ECTORY|ECTORIES|S)?$|FOLDER|ROOT|VAULT|HOME$|WORKSPACE(_PATH)?$|PATHS?$|PROJECT_(PATH|DIR)", lambda m: m.workspace),
    (r"CSV", lambda m: m.path("data/sales.csv")),
    (r"FILE(NAME|S)?$", lambda m: m.path("README.md")),
    # Plain facts
    (r"REGION|LOCATION$", lambda m: "us-east-1"),
    (r"ZONE$", lambda m: "us-central1-a"),
    (r"PROJECT\w*(ID|NAME|NUMBER)?$", lambda m: f"{m.chars(6, LOWER)}-{m.chars(6, DIGITS)}"),
    (r"EMAIL|USER_?PRINCIPAL", lambda m: f"{m.chars(7, LOWER)}@{m.chars(8, LOWER, 'd')}.com"),
    (r"PASS(WORD|WD|PHRASE)?$", lambda m: m.chars(20)),
    (r"(TENANT|SUBSCRIPTION|CLIENT|APP(LICATION)?|UUID|GUID|WORKSPACE|ORG(ANIZATION)?|ACCOUNT|COLLECTION|DATABASE)_?ID$|UUID|GUID", lambda m: m.material.uuid(m.name)),
    (r"COLLECTION|DATABASE|DB(_?NAME)?$|SCHEMA|INDEX|BUCKET|TABLE|CATALOG", lambda m: "main"),
    (r"ORG(ANI[SZ]ATION)?$|TEAM$|GROUP$|OWNER$|TENANT$|COMPANY|NAMESPACE|ORG_?(NAME|SLUG)", lambda m: m.chars(9, LOWER)),
    (r"USER(_?NAME)?$|LOGIN$|ROLE$", lambda m: m.chars(8, LOWER)),
    (r"MODEL$", lambda m: "default"),
    (r"TIMEOUT|SECONDS|LIMIT|COUNT|SIZE|NUMBER|RETRIES|MAX|MIN$|TTL", lambda m: "30"),
    (r"(^|_)(USE|ENABLED?|ALLOW|VERIFY|SSL|TLS)(_|$)", lambda m: "true"),
    (r"DEBUG|DISABLED?|INSECURE|READ_?ONLY", lambda m: "false"),
    (r"LOG_?LEVEL", lambda m: "info"),
    (r"JWT|(SERVICE_ROLE|ANON)_KEY|BEARER", lambda m: m.material.jwt(m.name)),
    (r"KEY|TOKEN|SECRET|PAT$|CREDENTIAL|COOKIE|AUTH", lambda m: m.chars(40)),
    (r"URL", lambda m: f"https://{_domain(m)}"),
)  # fmt: skip
_COMPILED = tuple((re.compile(pattern), make) for pattern, make in _SHAPES)

_PORTS = (("POSTGRES|PG", "5432"), ("MYSQL|MARIA", "3306"), ("REDIS|VALKEY", "6379"), ("MONGO", "27017"),
          ("ELASTIC|OPENSEARCH", "9200"), ("CLICKHOUSE", "8123"), ("QDRANT", "6333"), ("CHROMA", "8000"),
          ("NEO4J", "7687"), ("SMTP", "587"), ("IMAP", "993"))  # fmt: skip

_RULES = (
    (re.compile(r"(?:start|begin)(?:s|ning|ing)? with [\"'`“]?([A-Za-z0-9][\w.-]{0,15}[_-])[\"'`”]?"), "prefix"),
    (re.compile(r"valid uuid|invalid_?uuid", re.IGNORECASE), "uuid"),
    (re.compile(r"(?:expected|must be|valid|a) (?:an? )?(?:positive |integer |valid )*(?:number|integer|int)\b", re.I), "number"),
    (re.compile(r"valid (?:http\S* )?ur[li]\b|invalid ur[li]|ur[li] (?:is )?(?:invalid|malformed)", re.IGNORECASE), "url"),
    (re.compile(r"invalid literal for int|could not convert string to float|not a (?:valid )?(?:number|integer)|\bNaN\b|parsing \S+ invalid syntax", re.I), "number"),
    (re.compile(r"valid json|json\.?parse|not valid json|JSONDecodeError", re.IGNORECASE), "json"),
    (re.compile(r"valid e-?mail", re.IGNORECASE), "email"),
    (re.compile(r"(?:one of|expected)[^\n]{0,40}?[:\s\[(]+['\"`]([\w.-]{1,40})['\"`]\s*[,|]"), "choice"),
)  # fmt: skip


def value_for(name: str, context: str, home: str, workspace: str, material: Material) -> Value:
    """A value for the setting `name` (any spelling). Never a word that marks a placeholder."""
    plain = re.sub(r"([a-z])([A-Z])", r"\1_\2", name).upper().replace("-", "_").strip("_")
    maker = Maker(plain, context, home, workspace, material)
    for pattern, make in _COMPILED:
        if pattern.search(plain):
            made = make(maker)
            return made if isinstance(made, Value) else Value(made)
    return Value(maker.chars(16, LOWER + DIGITS))


def reshaped(name: str, complaint: str, material: Material) -> str | None:
    """Another value for a setting that was given and refused, when `complaint` says what it has to be; else None."""
    for pattern, rule in _RULES:
        found = pattern.search(complaint)
        if found is None:
            continue
        match rule:
            case "prefix":
                return found[1] + material.text(name + found[1], 40)
            case "uuid":
                return material.uuid(name)
            case "number":
                return material.text(name, 6, DIGITS[1:])
            case "url":
                return f"https://{material.text(name, 10, LOWER)}.com"
            case "json":
                return "{}"
            case "email":
                return f"{material.text(name, 7, LOWER)}@{material.text(name, 8, LOWER)}.com"
            case _:
                return found[1]
    return None


def _domain(maker: Maker) -> str:
    return f"{maker.chars(10, LOWER, 'domain')}.com"


def _web(maker: Maker, parent: str) -> str:
    host = f"{maker.chars(8, LOWER, 'site')}.{parent}"
    return f"https://{host}" if "URL" in maker.name else host


def _local(maker: Maker) -> str:
    return f"http://localhost:{_port(maker)}"


def _port(maker: Maker) -> str:
    return next((port for pattern, port in _PORTS if re.search(pattern, maker.name)), "8080")


def _database(maker: Maker, scheme: str) -> Value | str:
    around = f"{maker.name} {maker.context}".lower()
    if not scheme:
        scheme = next((s for word, s in _SCHEMES if word in around), "")
    if scheme == "mongodb":
        return "mongodb://localhost:27017/app"
    if scheme:
        port = {"postgresql": 5432, "mysql": 3306, "redis": 6379}[scheme]
        return f"{scheme}://{maker.chars(6, LOWER)}:{maker.chars(16, part='p')}@localhost:{port}/app"
    planted = maker.file("data/app.db")
    return Value(f"sqlite:///{planted.text}", planted.files)


_SCHEMES = (
    ("postgres", "postgresql"),
    ("mysql", "mysql"),
    ("mariadb", "mysql"),
    ("mongo", "mongodb"),
    ("redis", "redis"),
)


def _config_name(maker: Maker) -> str:
    found = re.search(r"[\w-]{1,40}\.(?:ya?ml|json|toml|ini)\b", maker.context)
    return found[0] if found else "config.yaml"
