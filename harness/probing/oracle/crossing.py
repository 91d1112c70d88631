"""Boundaries and what crosses them: which class of fault needs which, and which effects lie on the allowed side."""

from __future__ import annotations

import ipaddress
import posixpath
import re
from collections.abc import Iterable, Iterator

from harness.model.call import Call
from harness.model.payload import Boundary, BoundaryKind, Effect, EffectKind, PayloadClass
from harness.model.world import PlantedHost, PlantedItem, World

_DATA = frozenset({BoundaryKind.DATA_NOT_CODE, BoundaryKind.ALLOWLIST})
_FILES = frozenset({BoundaryKind.ROOT})
#: The boundaries that a fault of a class can cross. An effect over any other proves something else than its class says.
ADMISSIBLE: dict[PayloadClass, frozenset[BoundaryKind]] = {
    PayloadClass.COMMAND_INJECTION: _DATA,
    PayloadClass.ARGUMENT_INJECTION: _DATA | _FILES,
    PayloadClass.ALLOWLIST_BYPASS: frozenset({BoundaryKind.ALLOWLIST, BoundaryKind.ROOT, BoundaryKind.READ_ONLY}),
    PayloadClass.TRAVERSAL_READ: _FILES,
    PayloadClass.TRAVERSAL_WRITE: _FILES | {BoundaryKind.READ_ONLY},
    PayloadClass.SYMLINK_ESCAPE: _FILES,
    PayloadClass.SSRF: frozenset({BoundaryKind.INTERNAL_ADDRESS, BoundaryKind.ALLOWLIST}),
    PayloadClass.SQL: _DATA | _FILES | {BoundaryKind.READ_ONLY},
    PayloadClass.CODE_EVALUATION: _DATA,
    PayloadClass.TEMPLATE_INJECTION: _DATA,
    PayloadClass.DESERIALISATION: _DATA,
    PayloadClass.ATTRIBUTE_ACCESS: _DATA,
    PayloadClass.XXE: _DATA | _FILES | {BoundaryKind.INTERNAL_ADDRESS},
    PayloadClass.ARCHIVE_SLIP: _FILES | {BoundaryKind.DATA_NOT_CODE},
    PayloadClass.HEADER_INJECTION: _DATA,
    PayloadClass.MISSING_AUTHENTICATION: frozenset({BoundaryKind.SESSION}),
    PayloadClass.DNS_REBINDING: frozenset({BoundaryKind.SESSION}),
    PayloadClass.SECRET_DISCLOSURE: frozenset({BoundaryKind.CREDENTIAL_SERVICES, BoundaryKind.SECRETS}),
    PayloadClass.RETURNED_INSTRUCTIONS: frozenset(),
    PayloadClass.EXHAUSTION: frozenset(),
}


#: Classes whose effects cross nothing and are told all the same, as far as DYNAMIC goes.
UNBOUND = frozenset(fault for fault, kinds in ADMISSIBLE.items() if not kinds)


def admissible(call: Call) -> bool:
    """Whether the call's boundary is one that its class can cross, is said somewhere, and binds this item."""
    boundary = call.boundary
    if boundary is None or call.payload_class is None:
        return False
    return (
        boundary.kind in ADMISSIBLE[call.payload_class]
        and bool(boundary.source)
        and boundary.tool in ("", call.item)
        and (boundary.kind is not BoundaryKind.ROOT or boundary.value.startswith("/"))
    )


#: Words of a setting that says where a server that runs commands has to stay.
_CONFINED = re.compile(r"(?<![a-z])(?:allow|permit|restrict|confin|sandbox|jail|safe|only)", re.IGNORECASE)
_UNCONFINED = re.compile(r"(?<![a-z])(?:no|not|without|disable)(?![a-z])", re.IGNORECASE)


def bounded(call: Call, boundaries: Iterable[Boundary]) -> bool:
    """Whether the call's boundary is one at all for its class; what crosses nothing shows a capability.

    A tool that runs any command may leave the folder that it works in. Its folder binds it only where the target says
    so of this tool, in a setting that says that it is confined there, or where it has a list of allowed commands.
    """
    boundary, fault = call.boundary, call.payload_class
    if fault in UNBOUND:
        return True
    if boundary is None or fault is None or boundary.kind not in ADMISSIBLE[fault]:
        return False
    if fault is not PayloadClass.ALLOWLIST_BYPASS or boundary.kind is not BoundaryKind.ROOT:
        return True
    listed = any(b.kind is BoundaryKind.ALLOWLIST and b.tool in ("", call.item) for b in boundaries)
    return listed or boundary.tool == call.item or _confines(boundary.text)


def _confines(setting: str) -> bool:
    """Whether a setting (`NAME=value`, `--option=value`) says by its name that its value is to stay in."""
    name, equals, _ = setting.partition("=")
    named = name if equals or name.startswith("-") else ""
    return _CONFINED.search(named) is not None and _UNCONFINED.search(named) is None


def within(path: str, root: str) -> bool:
    """Whether an absolute path is `root` or lies below it, by its text."""
    path, root = posixpath.normpath(path), posixpath.normpath(root)
    return root == "/" or path == root or path.startswith(f"{root}/")


def allowed(effect: Effect, call: Call, world: World, others: tuple[Boundary, ...] = ()) -> bool:
    """Whether the effect lies on the allowed side of the call's boundary, so that seeing it means nothing.

    `others`: further boundaries of the target, for a server with several roots.
    """
    boundary = call.boundary
    if effect.kind is EffectKind.DISCLOSED and (item := item_with(world, effect.text)) is not None:
        rooted = boundary is not None and boundary.kind is BoundaryKind.ROOT
        if item.where == "inside" and not rooted:
            return True
        return _in_roots(item.target if item.where == "linked" and item.target else item.path, call, others)
    if effect.path and effect.kind in (EffectKind.CREATED, EffectKind.CHANGED, EffectKind.OPENED):
        if boundary is not None and boundary.kind is BoundaryKind.READ_ONLY and effect.kind is not EffectKind.OPENED:
            return False  # it is not to write anywhere
        return _in_roots(effect.path, call, others)
    if boundary is None:
        return False
    if boundary.kind is BoundaryKind.INTERNAL_ADDRESS:
        host = host_of(world, effect)
        return host is not None and host.where == "public"
    if boundary.kind is BoundaryKind.CREDENTIAL_SERVICES and effect.kind is EffectKind.CONNECTED:
        name = split(effect.address)[0].casefold()
        return any(name == suffix or name.endswith(f".{suffix}") for suffix in _hosts(boundary.value))
    return False


def _hosts(value: str) -> Iterator[str]:
    """The host names of a list: without scheme, port, path and what stands for any name below."""
    for word in value.casefold().split():
        host = word.partition("://")[2] or word
        host = host.partition("/")[0].partition(":")[0].removeprefix("*").strip(".")
        if host:
            yield host


def _in_roots(path: str, call: Call, others: tuple[Boundary, ...]) -> bool:
    roots = [b for b in others if b.tool in ("", call.item)]
    if call.boundary is not None:
        roots.append(call.boundary)  # also where the call is a further step, of another item than it binds
    return any(b.kind is BoundaryKind.ROOT and bool(b.value) and within(path, b.value) for b in roots)


def item_with(world: World, secret: str) -> PlantedItem | None:
    """The planted thing whose never-sent content is `secret`, or holds it."""
    return next((item for item in world.items if secret and item.secret and secret in item.secret), None)


def host_with(world: World, secret: str) -> PlantedHost | None:
    """The planted host whose page is `secret`."""
    return next((host for host in world.hosts if secret and host.secret and secret in host.secret), None)


def host_of(world: World, effect: Effect) -> PlantedHost | None:
    """The planted host that an effect is about."""
    if effect.kind is EffectKind.DISCLOSED:
        return host_with(world, effect.text)
    wanted = split(effect.address)
    return next((host for host in world.hosts if effect.address and split(host.address) == wanted), None)


def split(address: str) -> tuple[str, str]:
    """Host and port of `host:port`, an IP address in its shortest form; the port is empty where there is none."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit() or (":" in host and not host.startswith("[")):
        host, port = address, ""
    host = host.strip("[]").rstrip(".").casefold()
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return host, port
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return str(mapped or ip), port


#: Loopback, unspecified, private (RFC 1918), shared (RFC 6598), link-local (RFC 3927), unique local (RFC 4193).
_INTERNAL = tuple(
    ipaddress.ip_network(block)
    for block in (
        "127.0.0.0/8",
        "0.0.0.0/32",
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",
        "169.254.0.0/16",
        "::1/128",
        "::/128",
        "fe80::/10",
        "fc00::/7",
    )
)


def internal(address: str) -> bool:
    """Whether an IP address is one that no stranger's input should reach.

    Names are not: what they lead to is in the records.
    """
    try:
        ip = ipaddress.ip_address(split(address)[0])
    except ValueError:
        return False
    return any(ip in block for block in _INTERNAL)
