"""Actions of a run, the predictions that go with them, and what was observed of each.

The planner (`harness.probing`) makes actions from observations; the driver in `harness.pipeline` writes each to
`plan.jsonl` before it executes it. A prediction that is not written before its effect proves nothing.
"""

from __future__ import annotations

from enum import StrEnum

from harness.model.base import Record
from harness.model.call import Call, CallBooks, Outcome
from harness.model.options import NetworkChoice
from harness.model.payload import Boundary
from harness.model.probe import LookRequest, Probe, ProbeBooks, Probed
from harness.model.surface import Surface
from harness.model.world import World


class ActionKind(StrEnum):
    """What the driver can be told to do."""

    STOCK_CLIENT = "stock-client"
    START = "start"
    DISCOVER = "discover"
    READ_SOURCE = "read-source"
    PROBE = "probe"
    CALL = "call"
    LOOK = "look"
    RESTART = "restart"
    STOP = "stop"
    CONCLUDE = "conclude"


class Obstacle(StrEnum):
    """What keeps a target from starting and is no fault of its own: it can't be supplied in this sandbox."""

    NATIVE_ADDON = "native add-on"
    PROGRAM = "system program"
    LIBRARY = "shared library"
    NETWORK = "network"
    PLATFORM = "platform"
    SEALED = "write into its sealed installation"


class Adjustment(Record):
    """How an attempt differs from what the target's metadata says. Empty: it does not.

    The argument vector becomes entry + `subcommand` + the operator's arguments + `arguments`. `environment` never
    holds a name that the operator gave. `files`: text by path below the home directory. `of_its_time`: dependencies
    as of the release. `patience`: seconds to wait for the first answer instead of the option's, if smaller. `port`, and
    `path` beside it: it is spoken to over HTTP there, not over its standard streams. `headers`: sent with each request
    then. `unsealed`: it can write to its own installation, which is a copy.
    """

    subcommand: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    files: dict[str, str] = {}
    of_its_time: bool = False
    patience: float | None = None
    port: int | None = None
    path: str = ""
    headers: dict[str, str] = {}
    unsealed: bool = False


class Action(Record):
    """One step. `background`: the driver goes on without waiting for its end.

    `adjustment`, `attempt`, `why` and `guess` go with START (and the first with STOCK_CLIENT): `guess` when nothing
    the target said asks for the change. `obstacle` and `notes` go with CONCLUDE: they are recorded as they are.
    `call` goes with CALL, and `patience`: seconds to wait for its answer instead of the option's, if fewer and not 0.
    READ_SOURCE reads the names of variables, or with `what` "headers" those of headers of requests.
    LOOK reads the surface again; RESTART ends the session and starts a clean one with a fresh world, as the last START
    said; `days` ahead is the clock then, where the image can set it. `probe` goes with PROBE, `look` with LOOK, `books`
    with the CONCLUDE that ends the probes, `boundaries` with the one before the calls, `call_books` with the one that
    ends them.
    """

    number: int
    kind: ActionKind
    session: str = "main"
    background: bool = False
    prediction: str = ""
    adjustment: Adjustment = Adjustment()
    attempt: int = 1
    why: str = ""
    guess: bool = False
    obstacle: Obstacle | None = None
    what: str = ""
    notes: tuple[str, ...] = ()
    boundaries: tuple[Boundary, ...] = ()
    network: NetworkChoice | None = None
    days: int = 0
    call: Call | None = None
    patience: float = 0.0
    probe: Probe | None = None
    look: LookRequest | None = None
    books: ProbeBooks | None = None
    call_books: CallBooks | None = None


class Observation(Record):
    """What came of the action with this number: whether the session can go on, and why not.

    The rest tells what an attempt showed, each text bounded by the driver: `stderr` (head and tail), `output` (lines
    on stdout that were no messages), `refusal` (the error that answered the handshake), `silent` (alive, and no
    answer came), `tools` (number declared), `failed_lists` (lists that ended with an error), how it ended.
    `variables`, or `headers`: what READ_SOURCE found. `outcome` of a CALL, `probed` of a PROBE, `surface` of DISCOVER
    and LOOK, `world` of a session's start. `credential`: the header of the one that the server asks for, or was started
    with. `left`: seconds that are left of the run's time.
    """

    number: int
    usable: bool
    detail: str = ""
    stderr: str = ""
    output: tuple[str, ...] = ()
    refusal: str = ""
    silent: bool = False
    tools: int | None = None
    failed_lists: int = 0
    exit_code: int | None = None
    exit_signal: int | None = None
    variables: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    credential: str = ""
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    left: float | None = None
    outcome: Outcome | None = None
    probed: Probed | None = None
    surface: Surface | None = None
    world: World | None = None
