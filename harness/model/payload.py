"""Payloads, the effects that are predicted of them, and the boundaries that an effect crosses (verdict.md)."""

from __future__ import annotations

from enum import StrEnum

from harness.model.base import Record


class PayloadClass(StrEnum):
    """The classes of fault that payloads look for; a folder of that name in payloads/ holds each one's files."""

    COMMAND_INJECTION = "command-injection"
    ARGUMENT_INJECTION = "argument-injection"
    ALLOWLIST_BYPASS = "allowlist-bypass"
    TRAVERSAL_READ = "traversal-read"
    TRAVERSAL_WRITE = "traversal-write"
    SYMLINK_ESCAPE = "symlink-escape"
    SSRF = "ssrf"
    SQL = "sql"
    CODE_EVALUATION = "code-evaluation"
    TEMPLATE_INJECTION = "template-injection"
    DESERIALISATION = "deserialisation"
    ATTRIBUTE_ACCESS = "attribute-access"
    XXE = "xxe"
    ARCHIVE_SLIP = "archive-slip"
    HEADER_INJECTION = "header-injection"
    MISSING_AUTHENTICATION = "missing-authentication"
    DNS_REBINDING = "dns-rebinding"
    SECRET_DISCLOSURE = "secret-disclosure"  # noqa: S105 - a class of fault
    RETURNED_INSTRUCTIONS = "returned-instructions"
    EXHAUSTION = "exhaustion"


class BoundaryKind(StrEnum):
    """What an effect has to cross to be a fault. NONE: what it shows is a capability."""

    ROOT = "root"
    ALLOWLIST = "allowlist"
    READ_ONLY = "read-only"
    DATA_NOT_CODE = "data-not-code"
    INTERNAL_ADDRESS = "internal-address"
    CREDENTIAL_SERVICES = "credential-services"
    SESSION = "session"
    SECRETS = "secrets"
    NONE = "none"


class Boundary(Record):
    """A boundary of this target, found before the calls. `source`: where it is said (arguments, roots,
    configuration, description, annotation, documentation, convention), `text`: the words, `value`: the root, the
    command …

    `tool`: the only tool that it binds; empty for all.
    """

    kind: BoundaryKind
    source: str
    value: str = ""
    text: str = ""
    tool: str = ""


class EffectKind(StrEnum):
    """An effect and the independent channel in which it shows."""

    CREATED = "created"  # a file at `path` was created by the target's process (kernel record)
    CHANGED = "changed"  # the planted file at `path` was written, truncated, renamed or deleted (kernel record)
    OPENED = "opened"  # the planted file at `path` was opened (kernel record)
    EXECUTED = "executed"  # a program was executed whose argument vector holds `text` as an element (kernel record)
    STUB_CALLED = "stub-called"  # a planted stub program was executed with `text` in its arguments (kernel record)
    CONNECTED = "connected"  # a connection to `address` (host:port; a nonce host or a decoy) (egress record)
    DISCLOSED = "disclosed"  # `text`, planted and never sent, occurs in the result
    COMPUTED = "computed"  # `text`, which only an evaluation yields, occurs in the result
    ACCEPTED = "accepted"  # what had to be refused was served (protocol)
    EXHAUSTED = "exhausted"  # no answer in time, or memory or output over a bound


class Effect(Record):
    """A predicted effect, complete: nothing in it is left to fill in. Which fields are set depends on the kind."""

    kind: EffectKind
    path: str = ""
    text: str = ""
    address: str = ""

    @property
    def proves(self) -> bool:
        """Whether seeing it twice can make a finding CONFIRMED; the rest stays DYNAMIC or PROTOCOL."""
        return self.kind in _PROVING


_PROVING = frozenset(
    {
        EffectKind.CREATED,
        EffectKind.CHANGED,
        EffectKind.CONNECTED,
        EffectKind.DISCLOSED,
        EffectKind.COMPUTED,
        EffectKind.STUB_CALLED,
    }
)


class Applies(Record):
    """Where a payload may be tried. Each list that is not empty must match; an argument that matches `observed`
    comes first.

    `types`: JSON Schema types; `formats`: the schema's format; `names` and `descriptions`: words of the argument's
    name and description (lower case, whole words); `observed`: what the argument was seen to do in the baseline call
    (opened-path, written-path, in-argv, in-shell, resolved-host, connected-host, in-query, echoed); `places`:
    argument, element, key, resource-uri, prompt-argument, header; sampling-answer and elicitation-answer, which take
    what an argument takes.
    """

    types: tuple[str, ...] = ("string",)
    formats: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    descriptions: tuple[str, ...] = ()
    observed: tuple[str, ...] = ()
    places: tuple[str, ...] = ("argument", "element", "key", "resource-uri", "prompt-argument")


class EffectTemplate(Record):
    """An effect with placeholders still in it (see payloads/README.md)."""

    kind: EffectKind
    path: str = ""
    text: str = ""
    address: str = ""


class Payload(Record):
    """One payload as its file in payloads/ says. `id` is `<class>/<file name>`.

    `template` replaces the argument's value; `elements`, where given, replaces a list argument's elements.
    `companions` set other arguments of the same call by the words of their names (first match). `steps` are
    templates for further calls of the same kind, in order, after the first. `control` is inert and of the same
    shape: the same boundary is not crossed by it, and no effect may show. `network`: the mode in which it is tried,
    empty for any. `source`: where the technique is described. `encoding`: what is done to each filled-in value as a
    whole, in order. `order`: smaller ones of a class are tried first. Any one of the effects is enough.
    `step_elements` are the steps of a list argument. Where there are steps the control has as many. `documented`:
    the same effect asked for plainly, of a tool that is made for it: if that works, nothing was crossed.
    """

    id: str
    payload_class: PayloadClass
    title: str
    cwe: int
    boundary: BoundaryKind
    template: str
    control: str
    effects: tuple[EffectTemplate, ...]
    applies: Applies = Applies()
    elements: tuple[str, ...] = ()
    control_elements: tuple[str, ...] = ()
    companions: dict[str, str] = {}
    steps: tuple[str, ...] = ()
    network: str = ""
    source: str = ""
    encoding: tuple[str, ...] = ()
    order: int = 50
    step_elements: tuple[tuple[str, ...], ...] = ()
    control_steps: tuple[str, ...] = ()
    control_step_elements: tuple[tuple[str, ...], ...] = ()
    documented: str = ""
    documented_elements: tuple[str, ...] = ()
