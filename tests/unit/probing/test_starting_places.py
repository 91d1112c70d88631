"""Where a server says that it listens, and what is made of it."""

from __future__ import annotations

import dataclasses

import pytest

from harness.model.plan import Adjustment, Observation
from harness.probing.starting.case import StartFacts, case_of
from harness.probing.starting.material import Material
from harness.probing.starting.signs import likely_places, named_places
from harness.probing.starting.transport import propose

FACTS = StartFacts(argv=("server",), home="/home/user", workspace="/home/user/workspace", seed="00")


@pytest.mark.parametrize(
    ("text", "named", "likely"),
    [
        ("StreamableHTTP endpoint available at http://127.0.0.1:3333/mcp\n", [(3333, "/mcp")], (3333, "/sse")),
        ("Server listening on http://localhost:8080/api/mcp.\n", [(8080, "/api/mcp")], (8080, "/mcp")),
        ("INFO: Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)\n", [], (8000, "/mcp")),
        ("Server listening on port 3001\nhealth: http://localhost:3001/health\n", [], (3001, "/mcp")),
        ("SSE server listening: http://[::1]:9/sse http://x:99999/sse\n", [], None),
        ("see https://example.com:443/docs for help\n", [], None),
    ],
)
def test_addresses_and_ports_are_read(text: str, named: list[tuple[int, str]], likely: tuple[int, str] | None) -> None:
    assert named_places(text) == named
    assert likely is None or likely in likely_places(text)
    assert len(likely_places(text)) <= 4


def proposals(text: str, adjustment: Adjustment, *, gateway: bool) -> list[Adjustment]:
    facts = dataclasses.replace(FACTS, gateway=gateway)
    seen = Observation(number=1, usable=False, stderr=text, silent=True)
    return [proposal.adjustment for proposal in propose(case_of(facts, adjustment, seen, Material("00")))]


def test_an_address_comes_first_and_a_port_last_and_neither_without_a_gateway() -> None:
    text = "HTTP server listening at http://127.0.0.1:3333/mcp\n"
    found = proposals(text, Adjustment(), gateway=True)
    assert (found[0].port, found[0].path, found[0].arguments) == (3333, "/mcp", ())
    assert found[1].port is None and found[1].arguments == ("--stdio",)
    assert found[-1].port == 3333 and not found[-1].arguments
    assert all(change.port is None for change in proposals(text, Adjustment(), gateway=False))
    assert [change.port for change in proposals("listening on port 3333\n", Adjustment(), gateway=True)][:1] == [None]


def test_what_names_its_own_way_is_asked_for_that_first() -> None:
    text = "HTTP server listening at http://127.0.0.1:3333/mcp\nuse --stdio for standard streams\n"
    found = proposals(text, Adjustment(), gateway=True)
    assert found[0].arguments == ("--stdio",) and found[1].port == 3333


def test_after_a_try_over_http_the_standard_streams_are_asked_for_without_a_port() -> None:
    found = proposals("listening at http://127.0.0.1:3333/mcp\n", Adjustment(port=3333, path="/mcp"), gateway=True)
    assert {change.port for change in found if change.arguments} == {None}
