"""Ways in which an oracle could take something for an effect that is none, and the effects that it must not miss."""

from __future__ import annotations

import base64

import pytest

from harness.model.call import Call, Connection, Execution, OpenedFile, Outcome, Purpose
from harness.model.payload import Boundary, BoundaryKind, Effect, EffectKind, PayloadClass
from harness.probing.oracle import hits, late, sightings
from harness.probing.oracle.crossing import internal, within
from harness.probing.oracle.sent import echoes, joins
from tests.unit.probing.oracle.tape import (
    DATA,
    INNER,
    NONCES,
    OUTSIDE,
    ROOT,
    ROOTED,
    computed,
    created,
    disclosed,
    reached,
    world,
)
from tests.unit.probing.oracle.tape import call as a_call

NONCE = NONCES[0]
HERE = world("w1")
MADE = f"{OUTSIDE}/made-{NONCE}"
SECRET = "outsecretw1"


def injected(*effects: Effect, value: object = f"x; touch {MADE}", **more: object) -> Call:
    return a_call("c1", Purpose.PAYLOAD, {"name": value}, *effects, nonce=NONCE, here=HERE, **more)  # type: ignore[arg-type]


def came(text: str = "", state: str = "answered", **lists: object) -> Outcome:
    return Outcome.model_validate({"call": "c1", "state": state, "text": text, **lists})


def file(path: str, how: str = "create", **more: object) -> OpenedFile:
    return OpenedFile.model_validate({"path": path, "how": how, "seq": 7, **more})


def proven(call: Call, outcome: Outcome) -> bool:
    return any(sighting.proof for sighting in sightings(call, outcome, HERE))


# What is no effect


@pytest.mark.parametrize(
    ("effect", "outcome"),
    [
        pytest.param(created(MADE), came(f"no such file: x; touch {MADE}", "tool-error"), id="echo in an error"),
        pytest.param(created(MADE), came(f"done: {MADE}"), id="the target says that it made it"),
        pytest.param(
            created(MADE),
            came(executions=(Execution(path="/bin/echo", argv=("echo", f"x; touch {MADE}")),)),
            id="echo in an argument vector",
        ),
        pytest.param(created(MADE), came(files=(file(f"{ROOT}/x; touch {MADE}"),)), id="a file of that odd name"),
        pytest.param(created(MADE), came(files=(file(f"{MADE}x"),)), id="a file whose name only begins so"),
        pytest.param(created(MADE), came(files=(file(MADE, ok=False),)), id="creating it was refused"),
        pytest.param(created(MADE), came(files=(file(MADE, "access"),)), id="it was only looked for"),
        pytest.param(
            Effect(kind=EffectKind.OPENED, path=f"{OUTSIDE}/account.txt"),
            came("outside of the workspace", "tool-error", files=(file(f"{OUTSIDE}/account.txt", "access"),)),
            id="a guard asked whether it is there",
        ),
        pytest.param(created(MADE), came(files=(file(MADE, "read", ok=False),)), id="it could not be read"),
        pytest.param(created(MADE), came(files=(file(MADE, "delete"),)), id="it was only deleted"),
        pytest.param(created("made"), came(files=(file("made"),)), id="a prediction that is no path"),
        pytest.param(
            created(MADE), came(files=(file(f"/var/log/server-{NONCE}.log"),)), id="a log named after the nonce"
        ),
        pytest.param(computed("123456789"), came("x; touch 12345"), id="a part of the value"),
        pytest.param(computed("987654"), came("order 1987654321"), id="digits inside of a longer number"),
        pytest.param(computed("49"), came("49"), id="too short to be told from chance"),
        pytest.param(disclosed(""), came("anything"), id="nothing is disclosed everywhere"),
        pytest.param(disclosed("insidesecretw1"), came("insidesecretw1"), id="content of the root, over no root"),
        pytest.param(
            Effect(kind=EffectKind.EXECUTED, text=f"x; touch {MADE}"),
            came(executions=(Execution(path="/bin/ls", argv=("ls", f"x; touch {MADE}")),)),
            id="the payload as one argument of a program",
        ),
        pytest.param(
            Effect(kind=EffectKind.EXECUTED, text="touch"),
            came(executions=(Execution(path="/bin/sh", argv=("sh", "-c", f"x; touch {MADE}")),)),
            id="a word within an argument",
        ),
        pytest.param(
            Effect(kind=EffectKind.EXECUTED, text="touch"),
            came(executions=(Execution(path="/bin/touch", argv=("touch", MADE), ok=False),)),
            id="a program that did not start",
        ),
        pytest.param(
            Effect(kind=EffectKind.STUB_CALLED, text=NONCE),
            came(executions=(Execution(path="/usr/bin/kubectl", argv=("kubectl", NONCE)),)),
            id="a program that was not planted",
        ),
        pytest.param(reached("127.0.0.1:8899"), came(names=("127.0.0.1", "localhost")), id="only resolved"),
        pytest.param(reached("127.0.0.1:8899"), came("ECONNREFUSED 127.0.0.1:8899", "error"), id="only said"),
        pytest.param(
            reached("127.0.0.1:8899"), came(connections=(Connection(address="127.0.0.1:53"),)), id="another port"
        ),
        pytest.param(
            reached("127.0.0.1:8899", NONCE),
            came(connections=(Connection(address="127.0.0.1:8899", text="GET /health"),)),
            id="a connection of its own to the same address",
        ),
        pytest.param(
            reached("db.internal:5432"),
            came(connections=(Connection(address="203.0.113.9:5432", names=("notdb.internal",)),)),
            id="a name that only ends so",
        ),
        pytest.param(Effect(kind=EffectKind.ACCEPTED), came("denied", "error"), id="refused with an error"),
        pytest.param(Effect(kind=EffectKind.ACCEPTED), came("denied", "tool-error"), id="refused with a result"),
        pytest.param(Effect(kind=EffectKind.EXHAUSTED), came("big", size=1 << 20), id="a large answer"),
    ],
)
def test_this_is_no_effect(effect: Effect, outcome: Outcome) -> None:
    assert hits(injected(effect), outcome, HERE) == ()


def test_a_path_inside_of_its_root_is_no_effect() -> None:
    inside = created(f"{ROOT}/made-{NONCE}")
    call = injected(inside, kind=PayloadClass.TRAVERSAL_WRITE, boundary=ROOTED)
    assert hits(call, came(files=(file(f"{ROOT}/made-{NONCE}"),)), HERE) == ()


def test_a_path_inside_of_another_root_is_no_effect() -> None:
    other = Boundary(kind=BoundaryKind.ROOT, source="roots", value=OUTSIDE)
    call = injected(created(MADE), kind=PayloadClass.TRAVERSAL_WRITE, boundary=ROOTED)
    outcome = came(files=(file(MADE),))
    assert sightings(call, outcome, HERE)
    assert not sightings(call, outcome, HERE, boundaries=(other,))
    elsewhere = other.model_copy(update={"tool": "another"})
    assert sightings(call, outcome, HERE, boundaries=(elsewhere,))


def test_a_dotted_path_counts_for_where_it_leads() -> None:
    dotted = created(f"{ROOT}/../private/../workspace/made-{NONCE}")
    call = injected(dotted, kind=PayloadClass.TRAVERSAL_WRITE, boundary=ROOTED)
    assert hits(call, came(files=(file(f"{ROOT}/made-{NONCE}"),)), HERE) == ()


def test_a_file_whose_name_was_an_argument_is_no_proof_of_code() -> None:
    call = injected(created(MADE), value=MADE)
    assert not proven(call, came(files=(file(MADE),)))
    (sighting,) = sightings(call, came(files=(file(MADE),)), HERE)
    assert "name was an argument" in sighting.doubt


def test_a_path_that_only_the_target_tells_is_no_proof() -> None:
    assert not proven(injected(created(MADE)), came(files=(file(MADE, "mkdir", claimed=True),)))
    assert proven(
        injected(created(MADE)), came(files=(file(MADE, "mkdir", claimed=True), file(f"{MADE}/HEAD", "create")))
    )


@pytest.mark.parametrize(
    "sent",
    [
        SECRET,
        SECRET.upper(),
        base64.b64encode(f"see {SECRET}".encode()).decode(),
        f"see {SECRET}".encode().hex(),
        SECRET.replace("s", "%73"),
        SECRET.replace("s", "%2573"),
        SECRET.replace("s", "\\u0073"),
        SECRET.replace("s", "\\x73"),
    ],
)
def test_what_was_sent_in_whatever_form_is_not_disclosed_or_computed(sent: str) -> None:
    assert hits(injected(disclosed(SECRET), value=sent), came(f"you said {SECRET}"), HERE) == ()
    assert hits(injected(computed(SECRET), value=sent), came(f"you said {SECRET}"), HERE) == ()


def test_pieces_that_a_target_only_joins_are_marked() -> None:
    """They count beside a control with pieces of its own (see the proofs); what is disclosed never comes in pieces."""
    joined = computed("alphabravo99")
    call = a_call("c1", Purpose.PAYLOAD, {"name": "alpha", "more": ["bravo", 99]}, joined, nonce=NONCE, here=HERE)
    for one in (call, injected(joined, value="{{'alpha'~'bravo'~99}}")):
        (sighting,) = sightings(one, came("alphabravo99"), HERE)
        assert sighting.joined
    (sighting,) = sightings(injected(computed("7006652"), value="{{1234*5678}}"), came("7006652"), HERE)
    assert not sighting.joined
    assert hits(injected(disclosed(SECRET), value="-".join(SECRET)), came(SECRET), HERE) == ()


def test_what_was_sent_in_a_key_or_a_header_counts_as_sent() -> None:
    assert hits(injected(computed("alphabravo"), value={"alphabravo": 1}), came("alphabravo"), HERE) == ()
    headers = {"X-Name": "alphabravo"}
    assert hits(injected(computed("alphabravo"), headers=headers), came("alphabravo"), HERE) == ()


def test_what_an_earlier_step_sent_is_not_disclosed() -> None:
    call = injected(disclosed(SECRET))
    assert sightings(call, came(SECRET), HERE, sent=("look", SECRET)) == ()


def test_a_secret_of_another_world_is_no_proof() -> None:
    call = injected(disclosed("outsecretw2"), kind=PayloadClass.TRAVERSAL_READ, boundary=ROOTED)
    assert not proven(call, came("outsecretw2"))


def test_content_inside_of_the_root_is_not_disclosed_and_a_link_counts_for_its_target() -> None:
    reading = {"kind": PayloadClass.TRAVERSAL_READ, "boundary": ROOTED}
    assert hits(injected(disclosed("insidesecretw1"), **reading), came("insidesecretw1"), HERE) == ()
    assert hits(injected(disclosed("linksecretw1"), **reading), came("linksecretw1"), HERE)
    narrow = Boundary(kind=BoundaryKind.ROOT, source="arguments", value=f"{ROOT}/sub")
    reading["boundary"] = narrow
    assert proven(injected(disclosed("insidesecretw1"), **reading), came("insidesecretw1"))


def test_everything_is_inside_of_the_whole_disk() -> None:
    whole = Boundary(kind=BoundaryKind.ROOT, source="arguments", value="/")
    call = injected(disclosed(SECRET), kind=PayloadClass.TRAVERSAL_READ, boundary=whole)
    assert hits(call, came(SECRET), HERE) == ()


def test_a_public_page_is_no_internal_address() -> None:
    call = injected(reached("www.w1.example.net:80"), kind=PayloadClass.SSRF, boundary=INNER)
    connection = Connection(address="203.0.113.7:80", names=("www.w1.example.net",), flow=1)
    assert hits(call, came(connections=(connection,)), HERE) == ()


def test_an_unknown_public_address_is_no_proof_of_reaching_inside() -> None:
    call = injected(reached("203.0.113.7:80"), kind=PayloadClass.SSRF, boundary=INNER)
    assert not proven(call, came(connections=(Connection(address="203.0.113.7:80", flow=1),)))


def test_a_key_that_goes_to_its_vendor_is_no_effect() -> None:
    services = Boundary(kind=BoundaryKind.CREDENTIAL_SERVICES, source="variable", value="api.vendor.example")
    for host in ("api.vendor.example", "eu.api.vendor.example"):
        call = injected(reached(f"{host}:443"), kind=PayloadClass.SECRET_DISCLOSURE, boundary=services)
        connection = Connection(address="203.0.113.7:443", names=(host,), flow=1)
        assert hits(call, came(connections=(connection,)), HERE) == ()
    call = injected(reached("api.vendor.example.evil:443"), kind=PayloadClass.SECRET_DISCLOSURE, boundary=services)
    connection = Connection(address="203.0.113.7:443", names=("api.vendor.example.evil",), flow=1)
    assert hits(call, came(connections=(connection,)), HERE)


def stub(*words: str) -> Outcome:
    return came(executions=(Execution(path="/home/user/tools/bin/kubectl", argv=words, seq=3),))


def test_a_stub_that_gets_the_value_that_was_sent_proves_nothing() -> None:
    effect = Effect(kind=EffectKind.STUB_CALLED, text=NONCE)
    assert not proven(injected(effect, value=f"pods {NONCE}"), stub("kubectl", "get", f"pods {NONCE}"))


def test_a_stub_that_gets_what_was_worked_out_proves_it() -> None:
    effect = Effect(kind=EffectKind.STUB_CALLED, text="7006652")
    assert proven(injected(effect, value="pods; kubectl $((1234*5678))"), stub("kubectl", "7006652"))


def test_a_stub_that_is_not_on_the_list_proves_a_bypass() -> None:
    effect = Effect(kind=EffectKind.STUB_CALLED, text=NONCE)
    listed = {"kind": PayloadClass.ALLOWLIST_BYPASS, "value": f"ls -x kubectl {NONCE}"}
    outside = Boundary(kind=BoundaryKind.ALLOWLIST, source="environment", value="ls,cat")
    within_it = Boundary(kind=BoundaryKind.ALLOWLIST, source="environment", value="ls,kubectl")
    assert proven(injected(effect, boundary=outside, **listed), stub("kubectl", NONCE))
    assert not proven(injected(effect, boundary=within_it, **listed), stub("kubectl", NONCE))


def test_a_late_effect_belongs_to_the_call_whose_nonce_it_carries() -> None:
    first = injected(created(MADE))
    second = a_call("c2", Purpose.CONTROL, {"name": "y"}, created(MADE + "2"), nonce=NONCES[1], here=HERE)
    outcome = Outcome.model_validate({"call": "c2", "state": "answered", "files": (file(MADE),)})
    assert hits(second, outcome, HERE) == ()
    ((owner, sighting),) = late([first, second], outcome, HERE)
    assert owner is first and sighting.proof


def test_an_effect_without_a_nonce_is_given_to_nobody_later() -> None:
    call = injected(reached("127.0.0.1:8899"), created(f"{OUTSIDE}/account.txt"), disclosed(SECRET))
    outcome = Outcome.model_validate(
        {
            "call": "c2",
            "state": "answered",
            "text": SECRET,
            "connections": (Connection(address="127.0.0.1:8899"),),
            "files": (file(f"{OUTSIDE}/account.txt"),),
        }
    )
    assert late([call], outcome, HERE) == ()
    assert late([injected(created(MADE), argument="/x").model_copy(update={"world": "w0"})], outcome, HERE) == ()


# What is one


def test_effects_are_seen_and_proven() -> None:
    assert proven(injected(created(MADE)), came(files=(file(MADE),)))
    changed = Effect(kind=EffectKind.CHANGED, path=f"{OUTSIDE}/account.txt")
    assert proven(injected(changed), came(files=(file(f"{OUTSIDE}/account.txt", "write"),)))
    assert proven(injected(computed("7006652"), value="{{1234*5678}}"), came("= 7006652."))
    reading = {"kind": PayloadClass.TRAVERSAL_READ, "boundary": ROOTED}
    assert proven(injected(disclosed(SECRET), **reading), came(f"1: {SECRET}"))
    assert proven(injected(disclosed(SECRET), **reading), came(f"bad line {SECRET}", "tool-error"))


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
def test_a_secret_in_base64_or_hex_is_a_secret(before: str) -> None:
    reading = {"kind": PayloadClass.TRAVERSAL_READ, "boundary": ROOTED}
    secret = "outsidesecretoutside"
    item = HERE.items[1].model_copy(update={"secret": secret})
    here = HERE.model_copy(update={"items": (item,)})
    for coded in (base64.b64encode(f"{before}{secret} tail".encode()).decode(), secret.encode().hex()):
        assert hits(injected(disclosed(secret), **reading), came(f"data: {coded}"), here)


@pytest.mark.parametrize(
    ("predicted", "seen"),
    [
        ("127.0.0.1:8899", "127.0.0.1:8899"),
        ("127.0.0.1:8899", "[::ffff:127.0.0.1]:8899"),
        ("[::1]:8899", "[0:0:0:0:0:0:0:1]:8899"),
        ("169.254.169.254", "169.254.169.254:80"),
    ],
)
def test_an_address_is_the_same_in_every_spelling(predicted: str, seen: str) -> None:
    call = injected(reached(predicted), kind=PayloadClass.SSRF, boundary=INNER)
    assert proven(call, came(connections=(Connection(address=seen, seq=4),)))


def test_opened_and_executed_are_seen_and_prove_nothing() -> None:
    opened = Effect(kind=EffectKind.OPENED, path=f"{OUTSIDE}/account.txt")
    assert hits(injected(opened), came(files=(file(f"{OUTSIDE}/account.txt", "read"),)), HERE)
    assert not proven(injected(opened), came(files=(file(f"{OUTSIDE}/account.txt", "read"),)))
    ran = Effect(kind=EffectKind.EXECUTED, text=MADE)
    outcome = came(executions=(Execution(path="/bin/touch", argv=("touch", MADE)),))
    assert hits(injected(ran), outcome, HERE) and not proven(injected(ran), outcome)


def test_status_is_seen_and_proves_nothing() -> None:
    assert hits(injected(Effect(kind=EffectKind.ACCEPTED)), came("ok"), HERE)
    assert not proven(injected(Effect(kind=EffectKind.ACCEPTED)), came("ok"))
    assert hits(injected(Effect(kind=EffectKind.EXHAUSTED)), came(state="timeout"), HERE)
    assert not proven(injected(Effect(kind=EffectKind.EXHAUSTED)), came(state="timeout"))


def test_small_parts() -> None:
    assert within("/a/b", "/a") and within("/a", "/a") and within("/a/../c", "/c") and within("/x", "/")
    assert not within("/ab", "/a") and not within("/a/../b", "/a")
    assert internal("10.0.0.1:80") and internal("[::1]:1") and internal("0.0.0.0:8")
    assert not internal("93.184.216.34:80") and not internal("name.example:80")
    assert echoes("", ()) and not echoes("abc", ("xyz",)) and DATA.source
    assert joins("abc", ("a-b", "c")) and not echoes("abc", ("a-b", "c"))
