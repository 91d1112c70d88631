"""The canaries of a target's lives: made from the run's randomness, put into launches, and told to the manifest."""

from __future__ import annotations

from collections.abc import Mapping

from harness.model.canary import Canary, CanaryPlace
from harness.model.plan import Adjustment
from harness.pipeline.entropy import Entropy
from harness.probing.planting import asked, plant, retold
from harness.probing.planting.start import services_of
from harness.probing.starting.material import Material
from harness.probing.starting.shapes import value_for
from harness.sandbox.base import HOME, WORKSPACE, LaunchSpec

#: Suffixes of the hosts that a machine's own credentials are for: the clouds whose metadata services hand them out.
METADATA_SERVICES = ("amazonaws.com", "googleapis.com", "azure.com", "azure.net", "windows.net", "microsoftonline.com")


class Garden:
    """One planting and what was added to it by arguments and attempts. `session`: as `Canary.session` has it.

    `material` is what the planner makes its values from.
    """

    def __init__(self, entropy: Entropy, session: str = "main") -> None:
        self.session = session
        self.material = Material(entropy.nonce() + entropy.nonce())
        self._seed = entropy.nonce() + entropy.nonce()
        self._entropy = entropy
        self._tokens: list[str] = []
        self._canaries: dict[str, Canary] = {}
        self._metadata = ""
        self._typed = ""

    def metadata(self) -> str:
        """The nonce in the machine's credentials, as the fake metadata service tells them; a canary from now on."""
        if not self._metadata:
            self._metadata = value = self._entropy.nonce()
            self._canaries[value] = Canary(
                value=value,
                name="the metadata service's credentials",
                place=CanaryPlace.DECOY,
                kind="machine-credentials",
                services=METADATA_SERVICES,
                session=self.session,
            )
        return self._metadata

    def typed(self) -> str:
        """What is entered where a form asks for a secret: in the shape of a key; a canary from now on."""
        if not self._typed:
            self._typed = value = f"{self._entropy.nonce()}{self._entropy.nonce()}"[:32]
            self._canaries[value] = Canary(
                value=value,
                name="what was typed into a form",
                place=CanaryPlace.FORM,
                kind="secret",
                asked=True,
                session=self.session,
            )
        return self._typed

    @property
    def canaries(self) -> tuple[Canary, ...]:
        """All that was planted so far."""
        return tuple(self._canaries.values())

    def token(self, variable: str = "") -> str:
        """The value of one `{canary}`: for a whole variable in the shape that its name tells, which some look for."""
        if variable:
            material = Material(self._entropy.nonce() + self._entropy.nonce())
            shaped = value_for(variable, "", HOME, WORKSPACE, material)
            secrets = [made.text for made in material.made.values() if made.secret and made.text in shaped.text]
            if secrets and not shaped.files:
                self._tokens.append(max(secrets, key=len))
                return shaped.text
        self._tokens.append(self._entropy.nonce())
        return self._tokens[-1]

    def apply(self, spec: LaunchSpec, adjustment: Adjustment) -> LaunchSpec:
        """The launch with everything planted. What the operator gave stays, then what the attempt gives."""
        planting = plant(self._seed, without={*spec.environment, *adjustment.environment}, session=self.session)
        files = {path: text.encode() for path, text in adjustment.files.items()}
        kept = tuple(c for c in planting.canaries if not _replaced(c, files, spec.seed))
        made = (*kept, *asked(adjustment, self.material, self.session), *self._sent(spec))
        seed = {**planting.files, **files, **spec.seed}
        environment = {**planting.environment, **adjustment.environment, **spec.environment}
        for canary in made:
            self._canaries.setdefault(canary.value, canary)
        return spec.model_copy(update={"seed": seed, "environment": environment})

    def retold(self, adjustment: Adjustment, earlier: Garden) -> Adjustment:
        """An adjustment whose values an earlier garden made, with values of this one's."""
        return retold(adjustment, earlier.material, self.material)

    def _sent(self, spec: LaunchSpec) -> list[Canary]:
        """The tokens in what the operator gave, by where they stand."""
        found: list[Canary] = []
        given = "\0".join([*spec.argv, *spec.environment.values(), *spec.links.values()])
        number = 0
        for token in self._tokens:
            if token not in given:
                continue
            name, place = _where(token, spec.environment)
            number += place is CanaryPlace.ARGUMENT
            services = services_of(name) if place is CanaryPlace.ENVIRONMENT else ()
            found.append(
                Canary(
                    value=token,
                    name=f"environment {name}" if name else f"argument {number}",
                    place=place,
                    kind="text",
                    services=services,
                    asked=True,
                    session=self.session,
                )
            )
        return found


def _replaced(canary: Canary, *others: Mapping[str, bytes]) -> bool:
    """True when the file that a canary lies in was given by somebody else."""
    return any(canary.name.startswith(f"~/{path} ") for files in others for path in files)


def _where(token: str, environment: Mapping[str, str]) -> tuple[str, CanaryPlace]:
    for name, value in environment.items():
        if token in value:
            return name, CanaryPlace.ENVIRONMENT
    return "", CanaryPlace.ARGUMENT
