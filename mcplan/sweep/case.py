"""One case of an experiment."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mcplan.document import Document
from mcplan.errors import ScenarioError
from mcplan.scene.parameters import resolve
from mcplan.scene.variant import variant_document
from mcplan.sweep.identity import code_version, digest
from mcplan.sweep.meshes import mesh_digests


@dataclass(frozen=True)
class Case:
    """A scenario with values of its own.

    Parameters
    ----------
    scenario : name, as the table shows it.
    source : the scenario's document, before overrides.
    overrides : from the path of a field to its value, those of all cases included.
    swept : the overrides that differ between cases.
    seed : of the simulation; of the planner where there is no variant.
    variant : seed of the scenario's variant, or None.
    steps : ``plan`` or ``simulate``.
    robot : identity of the robot, its meshes included.
    """

    scenario: str
    source: Document = field(repr=False, compare=False)
    overrides: dict[str, Any]
    swept: tuple[str, ...]
    seed: int
    variant: int | None
    steps: str
    robot: str

    def document(self) -> Document:
        """Return the scenario's document with plain numbers only; it is made anew at each call.

        Raises
        ------
        ScenarioError
            An override that cannot be, or a variant that is not sound.
        """
        document = self.source.with_overrides(self.overrides, ScenarioError) if self.overrides else self.source
        resolved, problems = resolve(document) if self.variant is None else variant_document(document, self.variant)
        if problems:
            raise ScenarioError(*problems)
        return resolved

    @cached_property
    def configuration(self) -> str:
        """Hash (hex) of everything that was asked for: the same before and after a change of the code."""
        document = self.document()
        data = {key: value for key, value in document.data.items() if key not in ("name", "description")}
        asked = {"scenario": data, "robot": self.robot, "seed": self.seed, "steps": self.steps}
        meshes = mesh_digests(document)
        return digest(asked | {"meshes": meshes} if meshes else asked)

    @cached_property
    def id(self) -> str:
        """Hash (hex) of the configuration and of the code that runs it."""
        return digest([self.configuration, code_version()])

    @property
    def physics(self) -> str:
        """Name of the physics back end."""
        section = self.source.data.get("simulation") or {}
        return str(self.overrides.get("simulation.physics", section.get("physics", "qp")))

    @property
    def fields(self) -> dict[str, Any]:
        """What the case is given, as columns of the table."""
        values = {name: self.overrides[name] for name in self.swept if name in self.overrides}
        return {"scenario": self.scenario, **values, "seed": self.seed}
