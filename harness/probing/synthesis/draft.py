"""What synthesis makes: candidates, the leaves that they are made of, and the places for payloads."""

from __future__ import annotations

from harness.model.base import JsonObject, JsonValue, Record
from harness.model.world import World


class Context(Record):
    """What arguments are made from.

    `seed` chooses between equals. `commands`: programs that the start's environment allows. `found`: values from
    earlier results by the words of their names (`id` → …), newest first.
    """

    world: World
    seed: int = 0
    commands: tuple[str, ...] = ()
    found: dict[str, tuple[JsonValue, ...]] = {}


class Leaf(Record):
    """One value in the arguments: where, what it seems to be (`role`), and values for it, best first.

    `required`: all of its parents are. `name` is the nearest property's. `description`: bounded. `spare`: for a name
    that says nothing, an address and files, which are tried when a refusal speaks of such.
    """

    pointer: str
    name: str
    role: str
    values: tuple[JsonValue, ...]
    required: bool
    description: str = ""
    spare: tuple[str, ...] = ()


class InjectionPoint(Record):
    """A place for a payload: JSON pointer into the arguments, what it is (`Applies.places`), and what its schema says.

    `value` is the benign value there: the text that a payload continues (for a key, the key). `optional`: the place is
    not in the first candidate; `inject` makes it. `closed`: the schema leaves no choice (enum, const), so that what
    is sent there is invalid by the schema and a server that checks refuses it. `numeric`: a string of digits fits.
    `siblings`: whether it is a list argument whose elements as a whole can be replaced (place `argument`).
    """

    pointer: str
    place: str
    name: str
    value: JsonValue
    type: str = "string"
    format: str = ""
    description: str = ""
    role: str = ""
    pattern: str = ""
    max_length: int | None = None
    closed: bool = False
    optional: bool = False
    numeric: bool = False
    siblings: bool = False


class Draft(Record):
    """Everything about the arguments of one item. `candidates` are valid by the schema as far as `checked` says.

    `full` holds every optional property too, and is what pointers of leaves and points lead into. `problem`: why there
    are no candidates, or none that is valid.
    """

    item: str
    candidates: tuple[JsonObject, ...] = ()
    full: JsonObject = {}
    leaves: tuple[Leaf, ...] = ()
    points: tuple[InjectionPoint, ...] = ()
    checked: bool = False
    problem: str = ""
    unmet: tuple[str, ...] = ()


class Attempt(Record):
    """Arguments that were tried, and the words of the refusal."""

    arguments: JsonObject
    text: str = ""
