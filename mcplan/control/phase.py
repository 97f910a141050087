"""What a phase of a plan is, and what it sees of the present state."""

from typing import Protocol

import numpy as np

from mcplan.control.motion import Motion
from mcplan.motion.limb_path import Pose
from mcplan.settings.settings import ControlSettings
from mcplan.settings.states import Until


class Phase(Protocol):
    """A state of the machine. ``stance`` is the index of the stance of the plan that it leads to."""

    stance: int

    @property
    def name(self) -> str:
        """What is shown and recorded: the verb, and the patch that it is about."""
        ...

    def replan(self, motion: Motion, t: float, now: "Now") -> None:
        """Plan what the phase does again, where the robot is too far from the plan."""
        ...

    def enter(self, motion: Motion, t: float, now: "Now") -> float:
        """Start references or ramps, and return how long they take (s)."""
        ...

    def until(self, settings: ControlSettings) -> Until:
        """Return the criterion that ends the phase."""
        ...

    def leave(self, motion: Motion, t: float, now: "Now") -> None:
        """Change the contacts when the phase has ended."""
        ...


class Now(Protocol):
    """What a phase may ask of the present state."""

    @property
    def q(self) -> np.ndarray:
        """Configuration of the robot (7+n,)."""
        ...

    @property
    def joint_rates(self) -> np.ndarray:
        """Velocities of the joints (n,)."""
        ...

    def pose(self, frame: str) -> Pose:
        """Return R (3,3) and p (3,) of a patch frame."""
        ...

    def normal_force(self, patch: str) -> float:
        """Return the normal force that a contact carries (N); a grasp: the magnitude of its force."""
        ...

    def load(self, patch: str) -> float:
        """Return the force limit (N) under which a contact still carries what it carries now."""
        ...
