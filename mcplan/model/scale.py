"""How large a robot is, against the one that the figures of planner and controller are written for.

Lengths of the planner and of the controller are multiples of one of these ratios, so that a robot twice as large plans
steps twice as long:

    leg    lengths of the way: steps, lattices, clearances, heights of a swing        l / l_0
    sole   room of the centre of mass and of pressure, gaps between feet              sqrt(A / A_0), of the soles
    arm    reach of hands, what they hold                                              l / l_0
    mass   forces: to the third power                                                  (m / m_0)^(1/3)

Motions under gravity are alike where speeds grow with the root of the length and stiffnesses with its inverse (Froude;
Alexander 1989). Tolerances do not scale: how exactly contacts are in place, and what a solver works to, is a matter of
accuracy, not of size.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mcplan.model.sizes import measured

if TYPE_CHECKING:
    from mcplan.model.robot import Robot

LEG, SOLE, ARM, MASS = 0.70703477, 0.17357995, 0.60750000, 56.03717
"""m, m, m, kg: of HRP-2, whose scale is 1."""

DIGITS = 6
"""Of a ratio: the last digits of a robot's file are not its size."""


@dataclass(frozen=True)
class RobotScale:
    """Sizes of a robot as multiples of those of HRP-2.

    Attributes
    ----------
    leg, sole, arm : of its lengths; one that a robot does not have, points for feet, no arms, is that of its legs; that
        of legs, where it stands in no posture, that of its mass.
    mass : cube root of the ratio of the masses.
    """

    leg: float = 1.0
    sole: float = 1.0
    arm: float = 1.0
    mass: float = 1.0

    @classmethod
    def of(cls, robot: "Robot") -> "RobotScale":
        """Measure a robot."""
        mass = (robot.mass / MASS) ** (1 / 3)
        found = measured(robot)
        leg = found["leg"] / LEG if "leg" in found else mass
        areas = [float(np.ptp(robot.patches[name].polygon, axis=0).prod()) for name in robot.feet]
        sole = np.sqrt(max(areas)) / SOLE if max(areas, default=0.0) > 0.0 else leg
        arm = found["reach"] / ARM if "reach" in found else leg
        return cls(*(round(float(ratio), DIGITS) for ratio in (leg, sole, arm, mass)))


ONE = RobotScale()
"""Of the robot that the figures are written for."""
