"""Where canaries are planted: one entry a place. `<<kind>>` in a text becomes a secret of that kind (see `tokens`).

What is here is what a developer's machine has and what thieves are known to look for. `<<kind:name>>` tells two of
one kind in one place apart; the same kind and name are the same value wherever they occur in one place.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.model.canary import CanaryPlace


@dataclass(frozen=True)
class FilePlace:
    """A text file below the home directory."""

    path: str
    text: str
    place: CanaryPlace = CanaryPlace.HOME


@dataclass(frozen=True)
class VariablePlace:
    """An environment variable."""

    name: str
    text: str


def _mcp(server: str, package: str, variable: str, token: str, key: str = "mcpServers") -> str:
    """A client's configuration with one server that has a secret."""
    return (
        "{\n"
        f'  "{key}": {{\n    "{server}": {{\n      "command": "npx",\n      "args": ["-y", "{package}"],\n'
        f'      "env": {{"{variable}": "<<{token}>>"}}\n    }}\n  }}\n}}\n'
    )


_GITHUB = ("github", "@modelcontextprotocol/server-github", "GITHUB_PERSONAL_ACCESS_TOKEN", "github")

FILES: tuple[FilePlace, ...] = (
    # Keys and accounts
    FilePlace(".ssh/id_ed25519", "<<ssh-key>>"),
    FilePlace(".ssh/id_ed25519.pub", "ssh-ed25519 <<ssh-public>> dev@workstation\n"),
    FilePlace(
        ".aws/credentials", "[default]\naws_access_key_id = <<aws-id>>\naws_secret_access_key = <<aws-secret>>\n"
    ),
    FilePlace(".aws/config", "[default]\nregion = us-east-1\noutput = json\n"),
    FilePlace(
        ".config/gh/hosts.yml",
        "github.com:\n    oauth_token: <<github-oauth>>\n    git_protocol: https\n    user: <<user>>\n",
    ),
    FilePlace(".git-credentials", "https://<<user>>:<<github>>@github.com\n"),
    FilePlace(".npmrc", "//packages.corp.example/:_authToken=<<npm>>\n"),
    FilePlace(".pypirc", "[pypi]\nusername = __token__\npassword = <<pypi>>\n"),
    FilePlace(".netrc", "machine api.heroku.com\n  login <<user>>@mail.com\n  password <<heroku>>\n"),
    FilePlace(".pgpass", "db.internal:5432:app:<<user>>:<<password>>\n"),
    FilePlace(".vault-token", "<<vault>>"),
    FilePlace(
        ".kube/config",
        "apiVersion: v1\nkind: Config\ncurrent-context: main\n"
        "clusters:\n- name: main\n  cluster:\n    server: https://localhost:6443\n"
        "contexts:\n- name: main\n  context:\n    cluster: main\n    user: main\n"
        "users:\n- name: main\n  user:\n    token: <<kubernetes>>\n",
    ),
    FilePlace(
        ".docker/config.json",
        '{"auths": {"https://index.docker.io/v1/": {"username": "<<user>>", "password": "<<docker>>"}}}\n',
    ),
    FilePlace(
        ".config/gcloud/application_default_credentials.json",
        '{"client_id": "<<number>>.apps.googleusercontent.com", "client_secret": "d-FL95Q19q7MQmFpd7hHD0Ty", '
        '"refresh_token": "<<google-refresh>>", "type": "authorized_user"}\n',
    ),
    FilePlace(".config/solana/id.json", "<<wallet>>"),
    # What was typed
    FilePlace(
        ".bash_history",
        "git status\ncd workspace\nexport SLACK_BOT_TOKEN=<<slack>>\nmysql -h db.internal -u app -p<<password>>\n",
    ),
    FilePlace(
        ".zsh_history",
        ": 1735690000:0;git pull\n: 1735690042:0;curl -H 'Authorization: Bearer <<jwt>>' localhost:8080\n",
    ),
    # Agents and their clients
    FilePlace(".config/Claude/claude_desktop_config.json", _mcp(*_GITHUB)),
    FilePlace(".cursor/mcp.json", _mcp("notes", "notes-of-the-team-mcp", "NOTION_TOKEN", "notion")),
    FilePlace(".codeium/windsurf/mcp_config.json", _mcp("linear", "linear-mcp", "LINEAR_API_KEY", "linear")),
    FilePlace(".config/Code/User/mcp.json", _mcp("stripe", "@stripe/mcp", "STRIPE_SECRET_KEY", "stripe", "servers")),
    FilePlace(".claude.json", _mcp("sentry", "@sentry/mcp-server", "SENTRY_ACCESS_TOKEN", "sentry")),
    FilePlace(
        ".claude/.credentials.json",
        '{"claudeAiOauth": {"accessToken": "<<claude-oauth>>", "expiresAt": 4102444800000}}\n',
    ),
    FilePlace(".gemini/settings.json", _mcp("slack", "slack-mcp-server", "SLACK_BOT_TOKEN", "slack")),
    FilePlace(".codex/auth.json", '{"OPENAI_API_KEY": "<<openai>>"}\n'),
    # The project at hand
    FilePlace(
        "workspace/.env",
        "# local settings, not committed\nPAYMENTS_API_KEY=<<stripe>>\nSESSION_SECRET=<<hex-secret>>\n"
        "APP_DB_PASSWORD=<<password>>\n",
        CanaryPlace.WORKSPACE,
    ),
)

#: What a developer's shell has: few, because a variable can change what a server offers.
VARIABLES: tuple[VariablePlace, ...] = (
    VariablePlace("GITHUB_TOKEN", "<<github>>"),
    VariablePlace("AWS_ACCESS_KEY_ID", "<<aws-id>>"),
    VariablePlace("AWS_SECRET_ACCESS_KEY", "<<aws-secret>>"),
    VariablePlace("OPENAI_API_KEY", "<<openai>>"),
    VariablePlace("ANTHROPIC_API_KEY", "<<anthropic>>"),
)

#: Variables by parts of their names, and who they are for: first match. What matches none is for a host of its name.
SERVICES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"^AWS_", ("amazonaws.com", "aws.amazon.com")),
    (r"GITHUB|^GH_", ("github.com", "githubusercontent.com", "githubcopilot.com")),
    (r"GITLAB", ("gitlab.com",)),
    (r"ANTHROPIC|CLAUDE", ("anthropic.com", "claude.ai")),
    (r"OPENROUTER", ("openrouter.ai",)),
    (r"OPENAI", ("openai.com",)),
    (r"SLACK", ("slack.com",)),
    (r"STRIPE", ("stripe.com",)),
    (r"NOTION", ("notion.com", "notion.so")),
    (r"AIRTABLE", ("airtable.com",)),
    (r"FIGMA", ("figma.com",)),
    (r"LINEAR", ("linear.app",)),
    (r"SENTRY", ("sentry.io",)),
    (r"HUGGING_?FACE|^HF_", ("huggingface.co", "hf.co")),
    (r"TAVILY", ("tavily.com",)),
    (r"FIRECRAWL", ("firecrawl.dev",)),
    (r"BRAVE", ("brave.com",)),
    (r"GOOGLE|GEMINI|GCP|MAPS|YOUTUBE", ("googleapis.com", "google.com")),
    (r"SUPABASE", ("supabase.co", "supabase.com")),
    (r"PERPLEXITY", ("perplexity.ai",)),
    (r"GROQ", ("groq.com",)),
    (r"REPLICATE", ("replicate.com",)),
    (r"AZURE|MICROSOFT", ("azure.com", "microsoft.com", "microsoftonline.com", "windows.net")),
    (r"ATLASSIAN|JIRA|CONFLUENCE|BITBUCKET", ("atlassian.net", "atlassian.com", "bitbucket.org")),
    (r"DATADOG|^DD_", ("datadoghq.com", "datadoghq.eu")),
    (r"CLOUDFLARE", ("cloudflare.com",)),
    (r"DIGITALOCEAN", ("digitalocean.com",)),
    (r"TELEGRAM", ("telegram.org",)),
    (r"DISCORD", ("discord.com",)),
    (r"TWILIO", ("twilio.com",)),
    (r"SENDGRID", ("sendgrid.com",)),
    (r"HUBSPOT", ("hubapi.com", "hubspot.com")),
    (r"SHOPIFY", ("myshopify.com", "shopify.com")),
    (r"SALESFORCE", ("salesforce.com", "force.com")),
    (r"SNOWFLAKE", ("snowflakecomputing.com",)),
    (r"DATABRICKS", ("databricks.com", "azuredatabricks.net")),
    (r"DYNATRACE|^DT_", ("dynatrace.com",)),
    (r"NEW_?RELIC", ("newrelic.com",)),
    (r"GRAFANA", ("grafana.net", "grafana.com")),
    (r"OKTA", ("okta.com",)),
    (r"NPM", ("npmjs.org", "npmjs.com")),
)
