"""Contact Jacobians, ``J v = 0`` and ``J vd + Jdot v = 0``, and the rank of a stance.

    point      J = J_p                                  3 rows, velocity of a point of a link, world axes
    surface    J = [J_p; J_w]                           6 rows, velocity of a frame, linear and angular, world axes
    contact    J = S R' [J_p; J_w]                      directions S that a contact constrains, in the axes of its patch

    d/dt (R' V) = R' (Vdot - w x V)                    R, w, V: rotation, angular velocity and velocity of the patch

A point without rotation constrains three directions, a sole six (S1 eq. 2.253-2.255; S4, contact constraints).

The ranks of the Jacobian show how far contacts determine the motion of a robot:

    J_c = [J_cb  J_cj]            rank J_c            independent constraints (columns of the base, of the joints)
                                  rank J_cb           constraints of the base; 6: the joints control its pose
                                  rank J_c - rank J_cb   internal constraints: limbs that cannot move against each other

Source: S1, sec. 2.10.4, eq. 2.255-2.256 and figures 2.16-2.17.

S1 and S4: `docs/sources.md`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mcplan.errors import InputError
from mcplan.robot.pose import cross, cross_matrix
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.util.arguments import check_each, check_instance, check_vector
from mcplan.util.text import summary


@dataclass(frozen=True)
class ContactRows:
    """Constraints on the motion of a robot at one state.

    Attributes
    ----------
    J : (k, nv) ``J v = 0`` while they are active; m/s or rad/s per unit of ``v``.
    bias : (k,) ``Jdot v``: ``J vd + bias = 0`` while they are active; m/s² or rad/s².
    owner : (k,) index of the constraint of each row.
    """

    J: np.ndarray
    bias: np.ndarray
    owner: np.ndarray

    __repr__ = summary

    def __len__(self) -> int:
        return len(self.J)


def point_rows(robot: Robot, q: ArrayLike, v: ArrayLike, frame: str, point: ArrayLike = (0.0, 0.0, 0.0)) -> ContactRows:
    """Return the three rows of a fixed point of a link or patch, world axes.

        J_p = J_o - [R r]x J_w,        Jdot v = b_o + b_w x R r + w x (w x R r)

    with J_o, J_w the linear and angular Jacobian of the frame, b_o, b_w their bias accelerations, and r the point.

    Parameters
    ----------
    robot : the robot.
    q, v : (nq,), (nv,) state.
    frame : link or patch.
    point : (3,) in the frame's axes, m.
    """
    q, v = np.asarray(q, float), np.asarray(v, float)
    J, bias = robot.frame_jacobian(q, frame), robot.frame_bias_acceleration(q, v, frame)
    r = robot.frame_pose(q, frame)[:3, :3] @ np.asarray(point, float)
    w = J[3:] @ v
    rate = bias[:3] + cross(bias[3:], r) + cross(w, cross(w, r))
    return ContactRows(J[:3] - cross_matrix(r) @ J[3:], rate, np.zeros(3, int))


def surface_rows(robot: Robot, q: ArrayLike, v: ArrayLike, frame: str) -> ContactRows:
    """Return the six rows of a link or patch at rest, linear then angular, world axes.

    Parameters
    ----------
    robot : the robot.
    q, v : (nq,), (nv,) state.
    frame : link or patch.
    """
    J = robot.frame_jacobian(q, frame)
    return ContactRows(J, robot.frame_bias_acceleration(q, v, frame), np.zeros(6, int))


def contact_rows(robot: Robot, q: ArrayLike, v: ArrayLike, contacts: Sequence[Contact]) -> ContactRows:
    """Return the stacked rows of contacts: the directions that each constrains, in its patch's axes.

    For a robot with a fixed base, the contact of its patch ``fixed_base`` must be among them.

    Parameters
    ----------
    q, v : (nq,), (nv,) state.
    contacts : contacts; only the directions that they constrain matter, not their planned poses.

    Raises
    ------
    InputError
        The robot has a fixed base, and the contact ``fixed_base`` is missing.
    """
    check_instance("contact_rows", "robot", robot, Robot)
    contacts = check_each("contact_rows", "contacts", contacts, Contact)
    q, v = check_vector("contact_rows", "q", q, robot.nq), check_vector("contact_rows", "v", v, robot.nv)
    names = {contact.patch for contact in contacts}
    if robot.fixed and "fixed_base" not in names:
        raise InputError(f"{robot.name} has a fixed base: its contact `fixed_base` is missing")
    J, bias, owner = [np.zeros((0, robot.nv))], [np.zeros(0)], [np.zeros(0, int)]
    for k, contact in enumerate(contacts):
        R, ball = robot.frame_pose(q, contact.patch)[:3, :3], contact.radius > 0.0
        R = contact.turned(R)  # axes of the contact, which for a ball do not rotate with the patch
        J_patch = robot.frame_jacobian(q, contact.patch)
        velocity, rate = J_patch @ v, robot.frame_bias_acceleration(q, v, contact.patch)
        if not ball:  # the contact axes of a ball do not rotate with it
            rate[:3] -= cross(velocity[3:], velocity[:3])
        selection_world = contact.selection @ np.kron(np.eye(2), R.T)
        J.append(selection_world @ J_patch)
        bias.append(selection_world @ rate)
        owner.append(np.full(len(selection_world), k))
    return ContactRows(np.vstack(J), np.concatenate(bias), np.concatenate(owner))


RANK_TOLERANCE = 1e-7
"""Singular values below this fraction of the largest one count as zero; entries of the Jacobian are of order 1."""


@dataclass(frozen=True)
class StanceRank:
    """Ranks of the contact Jacobian of a stance at a posture.

    Attributes
    ----------
    rows : number of constraints, dependent ones included.
    constraints : number of independent constraints, ``rank J_c``.
    base : number of constraints of the base, ``rank J_cb``, 6 at most.
    freedom : number of directions in which the robot can still move, ``nv - rank J_c``.
    """

    rows: int
    constraints: int
    base: int
    freedom: int

    @property
    def base_controllable(self) -> bool:
        """Whether the joints alone can move the base in all directions."""
        return self.base == 6

    @property
    def internal(self) -> int:
        """Number of constraints between limbs, ``rank J_c - rank J_cb``, and of independent internal forces."""
        return self.constraints - self.base

    def __str__(self) -> str:
        controlled = "controllable" if self.base_controllable else f"controllable in {self.base} of 6 directions"
        return (
            f"{self.constraints} independent constraints, base {controlled}, {self.internal} internal, "
            f"{self.freedom} directions free"
        )


def stance_rank(robot: Robot, q: ArrayLike, contacts: Sequence[Contact]) -> StanceRank:
    """Return the ranks of a stance: numbers of constraints and of free directions.

    Parameters
    ----------
    robot, q : Robot, and its posture (nq,).
    contacts : contacts of the stance.
    """
    check_instance("stance_rank", "robot", robot, Robot)
    contacts = check_each("stance_rank", "contacts", contacts, Contact)
    J = contact_rows(robot, q, np.zeros(robot.nv), contacts).J
    constraints = _rank(J)
    return StanceRank(len(J), constraints, _rank(J[:, :6]), robot.nv - constraints)


def _rank(J: np.ndarray) -> int:
    if not J.size:
        return 0
    values = np.linalg.svd(J, compute_uv=False)
    return int(np.count_nonzero(values > RANK_TOLERANCE * max(values[0], np.finfo(float).tiny)))
