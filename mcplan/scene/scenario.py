"""A scenario: robot, environment, start, goal, and the settings of everything that follows."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mcplan.document import Document
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.scene.schema import GoalItem, StanceItem
from mcplan.scene.settings import ControlSettings, PlannerSettings, SimulationSettings

if TYPE_CHECKING:
    from mcplan.model.robot import Robot


FULL_MASS = 50.0
"""kg: the defaults of the control are those of a robot of this mass or more."""


@dataclass(frozen=True, eq=False)
class Start:
    """Where the motion begins.

    Parameters
    ----------
    q : (nq,) guess: the given posture at the given base. Contacts outrank the base, which outranks the joints.
    contacts : exact; coordinates that the file leaves out are those nearest to the patch at ``q``.
    posture_given, base_given : whether the file says so, or a default was taken.
    """

    q: np.ndarray
    contacts: tuple[Contact, ...]
    posture_given: bool
    base_given: bool


@dataclass(frozen=True, eq=False)
class Scenario:
    """A scenario that was read and checked.

    Parameters
    ----------
    name, description : from the file.
    robot, environment : loaded.
    start : where the motion begins.
    goal : items reached in order; within an item everything given must hold.
    planner, control, simulation : settings with their defaults filled in.
    stances : the hand-written (or planned) sequence; empty if the planner is to find it. Item 0 stands for the start.
    path : of the file.
    document : what it says, overrides included and expressions replaced by their values.
    source : the document before that, with its ``parameters`` and ``variants``.
    digest : sha256 (hex) of the resolved values and the robot.
    """

    name: str
    description: str
    robot: "Robot"
    environment: Environment
    start: Start
    goal: tuple[GoalItem, ...]
    planner: PlannerSettings
    control: ControlSettings
    simulation: SimulationSettings
    stances: tuple[StanceItem, ...]
    path: str
    document: Document
    source: Document
    digest: str

    def control_in(self, physics: str) -> ControlSettings:
        """Return the settings of the control in a back end; a robot below ``FULL_MASS`` is taken for a smaller one."""
        return self.control.under(physics, min(1.0, (self.robot.mass / FULL_MASS) ** (1 / 3)))

    def variant(self, seed: int) -> "Scenario":
        """Return the variant of a seed; the same seed gives the same scenario.

        Raises
        ------
        ScenarioError
            When the file has no ``variants``, or the variant is not sound.
        """
        from mcplan.scene.load import assemble

        return assemble(self.source, seed, self.robot)
