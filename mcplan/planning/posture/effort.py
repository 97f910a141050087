"""What it costs to move a joint: it grows with the mass beyond, so that arms move before legs and trunk."""

import numpy as np

from mcplan.core.tree import MASS, PARENT, V
from mcplan.model.robot import Robot

HEAVY = 40.0
"""Price of moving all of the mass by a joint, against moving none."""


def effort(robot: Robot) -> np.ndarray:
    """Return the relative price (nv,) of moving each joint; 1 for the base."""
    topology, mass = robot.tree.topology, robot.tree.inertia[:, MASS].copy()
    price = np.ones(robot.nv)
    for body in range(len(topology) - 1, 0, -1):
        share = mass[body] / robot.mass
        index = topology[body, V]
        price[index] = max(price[index], 1.0 + HEAVY * share**2)
        mass[topology[body, PARENT]] += mass[body]
    return price
