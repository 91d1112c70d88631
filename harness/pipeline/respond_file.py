"""Reading `--respond FILE.toml`: what the fake internet is to answer, so that tools that need an API can finish.

```toml
[[answer]]
host = "api.vendor.com"      # shell patterns; what is left out fits everything
path = "/v1/*"
status = 200
headers = { "content-type" = "application/json" }
body = '{"items": []}'       # or body_file = "items.json", beside the TOML file

[[answer]]
port = 6379
greeting = "+OK\\r\\n"         # sent to whoever connects, before anything else
```
"""

from __future__ import annotations

import base64
import tomllib
from pathlib import Path

from pydantic import ValidationError

from harness.model.errors import UsageError
from harness.model.network import CannedAnswer

MOST_RULES = 1000
MOST_BODY_BYTES = 1 << 20
#: All rules go to a gateway in one message.
MOST_BYTES = 2 << 20


def read_answers(path: Path) -> tuple[CannedAnswer, ...]:
    """Read the rules in their order. Blocking. Raises UsageError with what is wrong."""
    shown = ascii(path.name[:80])
    try:
        given = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"{shown} can't be read: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{shown} is no TOML: {error}", remedy="see docs/egress.md") from error
    rules = given.get("answer")
    if not isinstance(rules, list) or set(given) != {"answer"} or len(rules) > MOST_RULES:
        raise UsageError(f"{shown} holds no list of answers", remedy="write [[answer]] tables, as docs/egress.md shows")
    answers = tuple(_answer(rule, number, path) for number, rule in enumerate(rules, 1))
    if sum(len(answer.body) for answer in answers) > MOST_BYTES:
        raise UsageError(f"the bodies in {shown} are more than {MOST_BYTES >> 20} MiB together")
    return answers


def _answer(rule: object, number: int, path: Path) -> CannedAnswer:
    if not isinstance(rule, dict):
        raise UsageError(f"answer {number} is no table", remedy="write [[answer]]")
    fields = dict(rule)
    body_file = fields.pop("body_file", None)
    if body_file is not None:
        try:
            data = (path.parent / str(body_file)).read_bytes()
        except OSError as error:
            raise UsageError(f"answer {number}: its body_file can't be read: {error.strerror}") from error
        if len(data) > MOST_BODY_BYTES:
            raise UsageError(f"answer {number}: its body_file is larger than {MOST_BODY_BYTES >> 20} MiB")
        fields |= {"body": base64.b64encode(data).decode(), "encoded": True}
    try:
        answer = CannedAnswer.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"answer {number}: {place}: {first['msg']}", remedy="see docs/egress.md") from error
    if not 100 < answer.status < 600 or not 0 <= answer.port < 65536:
        raise UsageError(f"answer {number}: its status or port is none")
    return answer
