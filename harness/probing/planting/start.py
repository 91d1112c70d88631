"""The canaries that a start's own values are: variables and files that a target asked for, made up by the planner."""

from __future__ import annotations

import re

from harness.model.canary import Canary, CanaryPlace
from harness.model.plan import Adjustment
from harness.probing.planting.table import SERVICES
from harness.probing.starting.material import Made, Material

_SERVICES = tuple((re.compile(pattern), hosts) for pattern, hosts in SERVICES)


def services_of(variable: str) -> tuple[str, ...]:
    """The hosts that a variable's secret is for, by its name; empty where the name says nothing."""
    return next((hosts for pattern, hosts in _SERVICES if pattern.search(variable.upper())), ())


def asked(adjustment: Adjustment, material: Material, session: str = "main") -> tuple[Canary, ...]:
    """The canaries in what a start was given beyond its metadata. `material` made those values."""
    found: dict[str, Canary] = {}
    for place, name, text, services in _texts(adjustment):
        for made in _secrets(material):
            if made.text in text and made.text not in found:
                found[made.text] = Canary(
                    value=made.text,
                    name=f"{name} {made.label}" if place is not CanaryPlace.ENVIRONMENT else name,
                    place=place,
                    kind="credential",
                    services=services,
                    asked=True,
                    session=session,
                )
    return tuple(found.values())


def _texts(adjustment: Adjustment) -> list[tuple[CanaryPlace, str, str, tuple[str, ...]]]:
    texts = [
        (CanaryPlace.ENVIRONMENT, f"environment {name}", text, services_of(name))
        for name, text in sorted(adjustment.environment.items())
    ]
    texts += [(CanaryPlace.ARGUMENT, "arguments", text, ()) for text in adjustment.arguments]
    texts += [(CanaryPlace.ARGUMENT, f"header {n}", t, services_of(n)) for n, t in sorted(adjustment.headers.items())]
    for path, text in sorted(adjustment.files.items()):
        place = CanaryPlace.WORKSPACE if path.startswith("workspace/") else CanaryPlace.HOME
        texts.append((place, f"~/{path}", text, services_of(path)))
    return texts


def _secrets(material: Material) -> list[Made]:
    """What is random enough, the longest first: one may hold another."""
    return sorted((made for made in material.made.values() if made.secret), key=lambda m: (-len(m.text), m.text))


def retold(adjustment: Adjustment, old: Material, new: Material) -> Adjustment:
    """The same adjustment with other secrets: a value that `old` made is what `new` makes of the same label."""
    pairs = [(made.text, new.again(made)) for made in _secrets(old)]

    def tell(text: str) -> str:
        for before, after in pairs:
            text = text.replace(before, after)
        return text

    return adjustment.model_copy(
        update={
            "arguments": tuple(map(tell, adjustment.arguments)),
            "environment": {name: tell(text) for name, text in adjustment.environment.items()},
            "headers": {name: tell(text) for name, text in adjustment.headers.items()},
            "files": {path: tell(text) for path, text in adjustment.files.items()},
        }
    )
