"""What is wrong with a payload that can be told only once it is filled in."""

from __future__ import annotations

from harness.model.payload import EffectKind, Payload
from harness.model.world import World
from harness.probing.payloads.expansion import Expansion, expand

_SHOWN_IN_RESULT = (EffectKind.COMPUTED, EffectKind.DISCLOSED)
_BASES = ("value", "/home/user/workspace/notes.txt", "1")


def faults_of(payload: Payload, world: World, nonces: tuple[str, str]) -> list[str]:
    """The faults, one line each: an effect that the sent text holds, a control that is predicted to do the same …"""
    found: list[str] = []
    for base in _BASES:
        mine = expand(payload, world, base=base, nonce=nonces[0])
        control = expand(payload, world, base=base, nonce=nonces[1], control=True)
        if mine is None or control is None:
            return ["it needs something that the planted world does not have"]
        found += [fault for fault in (*_effects(mine), *_effects(control)) if fault not in found]
        if mine.sent() == control.sent():
            found.append("the control is the payload")
    return found


def _effects(expansion: Expansion) -> list[str]:
    found = []
    for effect in expansion.effects:
        filled = {"path": effect.path, "text": effect.text, "address": effect.address}
        needed = _NEEDED[effect.kind]
        found += [f"the effect {effect.kind} needs its {key}" for key in needed if not filled[key]]
        found += [
            f"the effect {effect.kind} has no {key}"
            for key in filled
            if filled[key] and key not in (*needed, *_OPTIONAL.get(effect.kind, ()))
        ]
        if effect.kind in _SHOWN_IN_RESULT and any(effect.text in text for text in expansion.sent()):
            found.append(f"the predicted text of {effect.kind} is sent, so an echo would show it")
        if effect.path and not effect.path.startswith("/"):
            found.append("a predicted path is absolute")
    return found


_OPTIONAL = {EffectKind.CONNECTED: ("text",), EffectKind.STUB_CALLED: ("path",), EffectKind.ACCEPTED: ("text",)}
_NEEDED: dict[EffectKind, tuple[str, ...]] = {
    EffectKind.CREATED: ("path",),
    EffectKind.CHANGED: ("path",),
    EffectKind.OPENED: ("path",),
    EffectKind.EXECUTED: ("text",),
    EffectKind.STUB_CALLED: ("text",),
    EffectKind.CONNECTED: ("address",),
    EffectKind.DISCLOSED: ("text",),
    EffectKind.COMPUTED: ("text",),
    EffectKind.ACCEPTED: (),
    EffectKind.EXHAUSTED: (),
}
