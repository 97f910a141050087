"""Torque limits as rows of a linear program over contact forces.

tau = h(q) - sum J_i' f_i,   |tau| <= share limit
as   -J' f / limit + s = share - h / limit,   0 <= s <= 2 share
"""

from dataclasses import dataclass

import numpy as np

from mcplan.model.pose import cross_matrix
from mcplan.model.robot import Robot
from mcplan.statics.contact_forces import ContactForces


@dataclass(frozen=True)
class TorqueRows:
    """The rows of the joints whose torque is limited; torques in units of their limits.

    Attributes
    ----------
    map : (k, size) ``-J' / limit``.
    rhs : (k,) ``share - h / limit``; the slack of each row lies between 0 and ``2 share``.
    share : part of the limits that may be used.
    joints : (k,) indices of the joints.
    """

    map: np.ndarray
    rhs: np.ndarray
    share: float
    joints: np.ndarray

    @classmethod
    def at(cls, robot: Robot, q: np.ndarray, forces: ContactForces, share: float = 1.0) -> "TorqueRows":
        """Return the rows of a posture."""
        joints = np.flatnonzero(np.isfinite(robot.limits.torque))
        limit = robot.usable_torque[joints]
        hold = robot.nonlinear_effects(q, np.zeros(robot.nv))[6:][joints] / limit
        force_map = -joint_torque_map(robot, q, forces)[joints] / limit[:, None]
        return cls(force_map, share - hold, share, joints)

    def push(self, robot: Robot, q: np.ndarray) -> np.ndarray:
        """Return what a force at the centre of mass (N) adds to the rows (k, 3).

        The links share it in proportion to their mass, like a tilt of gravity.
        """
        return -robot.com_jacobian(q)[:, 6:].T[self.joints] / robot.usable_torque[self.joints][:, None]


def joint_torque_map(robot: Robot, q: np.ndarray, forces: ContactForces) -> np.ndarray:
    """Return ``J'`` (n, size): joint torques that the contact forces exert by themselves."""
    result = np.zeros((robot.n, forces.size))
    for block in forces.blocks:
        J = robot.frame_jacobian(q, block.contact.patch)
        p = robot.frame_pose(q, block.contact.patch)[:3, 3]
        about_world = J.copy()
        about_world[:3] += cross_matrix(p) @ J[3:]
        result[:, block.place] = about_world[:, 6:].T @ block.map
    return result
