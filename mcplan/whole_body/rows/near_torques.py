"""``|tau - tau_0| <= step``: torques that stay close to given ones, such as those of the last tick."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mcplan.model.robot import Robot
from mcplan.whole_body.rows.block import Array, Block, Gradient, Rows, Values
from mcplan.whole_body.settings import UNBOUNDED

if TYPE_CHECKING:
    from mcplan.whole_body.declaration import Declaration

LOWER, UPPER = "torque_min", "torque_max"

LEVER = 0.2
"""m, of a robot of the size of HRP-2: the force of a prismatic joint counts as a torque over so much. It is about a
third of the length of its limbs: so far from their axes its other joints push."""


class Near(NamedTuple):
    """Torques (n,), and how far from each of them those of the program may be (n,): N m, of prismatic joints N."""

    torque: Array
    step: Array


class NearTorques(Block):
    """The rows ``|tau - tau_0| <= step``; none where torques may be any.

    They never give way: where they are in the way of a solution the program is filled without them.
    """

    def __init__(self, d: "Declaration"):
        if d.structure.settings.near_torques:
            lower, upper = (d.parameter(name, d.structure.n) for name in (LOWER, UPPER))
            self.rows = [Rows(LOWER, lower - d.tau, False), Rows(UPPER, d.tau - upper, False)]

    def add_gradient(self, data: Values, y: Values, gradient: Gradient) -> None:
        """Add the multipliers where the torques are."""
        if self.rows:
            gradient.tau.append(y[UPPER] - y[LOWER])


def steps_of(robot: Robot, most: float) -> Array:
    """Return by how much what joints exert may change (n,): ``most``, N m, of prismatic ones ``most / LEVER``, N."""
    prismatic = [robot.description.joints[name].type == "prismatic" for name in robot.joint_names]
    return np.where(prismatic, most / (LEVER * robot.scale.leg), most)


def fill_near(data: Values, near: Near | None) -> None:
    """Fill the bounds of the torques; without ``near`` there are none."""
    if LOWER in data:
        data[LOWER][:] = -UNBOUNDED if near is None else near.torque - near.step
        data[UPPER][:] = UNBOUNDED if near is None else near.torque + near.step
