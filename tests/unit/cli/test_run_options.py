"""What does not go together on the command line of `harness run`."""

from __future__ import annotations

from typing import Any

import pytest

from harness.cli.run import command, transport_of
from harness.model.errors import UsageError
from harness.model.options import Transport


def given(**other: Any) -> dict[str, Any]:
    return {"transport": "stdio", "port": None, "path": "/mcp", "network": "answer", "stealth": False, **other}


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"stealth": True, "network": "none"}, "--network none"),
        ({"stealth": True, "transport": "http", "port": 80}, "--stealth"),
        ({"port": 80}, "--transport http"),
        ({"transport": "http"}, "--port"),
        ({"transport": "http", "port": 80, "network": "none"}, "--network"),
    ],
)
def test_what_does_not_go_together_is_refused_with_a_way_out(options: dict[str, Any], word: str) -> None:
    with pytest.raises(UsageError) as caught:
        transport_of(given(**options))
    assert word in str(caught.value.remedy)


def test_what_goes_together_is_taken() -> None:
    assert transport_of(given(stealth=True)) is Transport.STDIO
    assert transport_of(given(stealth=True, network="refuse")) is Transport.STDIO
    assert transport_of(given(transport="http", port=80)) is Transport.HTTP


def test_a_fake_internet_answers_unless_something_else_is_said() -> None:
    (network,) = (option for option in command.params if option.name == "network")
    assert network.default == "answer"
