"""How far a posture with its forces is from what would end it. One name per margin, the same in plans and reports.

equilibrium         largest push at the centre of mass that is balanced (N), least over 16 directions
equilibrium_torque  the same within the torque limits (N)
friction            smallest mu fn - |ft| over contact points that carry more than 1 N (N)
friction_ratio      largest |ft| / (mu fn) there
torque              largest share of a torque limit in use
position            smallest distance to a joint limit (rad or m)
"""

from collections.abc import Sequence

import numpy as np

from mcplan.model.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.statics.equilibrium import Equilibrium, equilibrium_margin, equilibrium_torque_margin

LEAST_FORCE = 1.0
"""N: points that carry less say nothing about friction."""


def margins(
    robot: Robot, q: np.ndarray, loaded: Sequence[Contact], equilibrium: Equilibrium, still: bool = True
) -> dict[str, float | None]:
    """Return the margins of the module's docstring; None for one that has no finite value.

    Where the robot is not ``still``, what pushes it might bear says nothing, and is None.
    """
    friction, ratio = friction_margin(loaded, equilibrium.point_forces)
    limits = robot.limits
    distance = np.minimum(q[7:] - limits.lower, limits.upper - q[7:])
    share = np.abs(equilibrium.tau) / limits.torque
    values = {
        "equilibrium": equilibrium_margin(robot.com(q), loaded, robot.mass) if still else np.inf,
        "equilibrium_torque": equilibrium_torque_margin(robot, q, loaded) if still else np.inf,
        "friction": friction,
        "friction_ratio": ratio,
        "torque": float(share.max(initial=0.0)),
        "position": float(distance.min(initial=np.inf)),
    }
    return {name: value if np.isfinite(value) else None for name, value in values.items()}


def friction_margin(contacts: Sequence[Contact], point_forces: dict[str, np.ndarray]) -> tuple[float, float]:
    """Return the friction margin (N) and the friction ratio; (inf, 0) when no point with friction carries load."""
    margin, ratio = np.inf, 0.0
    for contact in contacts:
        if contact.kind == "grasp":
            continue
        for force in point_forces[contact.patch] @ contact.axes:
            tangent, most = float(np.hypot(force[0], force[1])), contact.friction * float(force[2])
            if force[2] > LEAST_FORCE:
                margin = min(margin, most - tangent)
                ratio = max(ratio, tangent / most if most > 0.0 else np.inf)
    return margin, ratio
