"""Support-consistent inverse kinematics: limbs and centre of mass move, contacts stay in place.

    u = N_c (J_t N_c)^+ w_t,      N_c = 1 - J_c^+ J_c

with the robot's velocity u, the Jacobian J_t and desired velocity w_t of the targets, and the contact Jacobian J_c.

Source: S1, sec. 2.10.5, eq. 2.257-2.260; iterated as in sec. 2.9.3, correcting the drift of the contacts first.

S1: `docs/sources.md`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mcplan.errors import InputError
from mcplan.robot.pose import rotation_vector
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.textbook.constraint.contact_rows import contact_rows
from mcplan.textbook.kinematics.differential import pseudo_inverse
from mcplan.util.arguments import check_each, check_instance, check_integer, check_vector
from mcplan.util.text import summary

MAX_STEP = 0.2
"""Largest change of a coordinate in one step (m, rad), for which the linearisation is accurate enough."""

CORRECTION_STEPS = 15
"""Number of last steps that only correct the drift of the contacts, at most half of all; used if a target is out of
reach."""

DAMPING = 1e-6
"""Damping of the squared singular values of the targets' Jacobian, as a fraction of its squared norm: it bounds the
steps if a target is out of reach or blocked."""

LIMIT_TOLERANCE = 1e-9
"""Distance to a limit within which a joint counts as at the limit (rad, m)."""

ROW_TOLERANCE = 1e-7
"""Singular values of the contact rows below this fraction of the largest one count as zero."""


def support_velocity(robot: Robot, q: ArrayLike, contacts: Sequence[Contact], J: ArrayLike, w: ArrayLike) -> np.ndarray:
    """Return the velocity (nv,) consistent with the contacts that is nearest to ``J v = w`` (eq. 2.260).

    Parameters
    ----------
    robot, q : the robot, and its posture (nq,) with the contacts in place.
    contacts : the closed contacts.
    J, w : (k, nv), (k,) Jacobian and desired velocity of a task, m/s or rad/s.
    """
    check_instance("support_velocity", "robot", robot, Robot)
    contacts = check_each("support_velocity", "contacts", contacts, Contact)
    Jc = contact_rows(robot, q, np.zeros(robot.nv), contacts).J
    N, J = np.eye(robot.nv) - np.linalg.pinv(Jc, ROW_TOLERANCE) @ Jc, np.asarray(J, float)
    # tolerance by the size of J: for a task blocked by contacts J N is rounding, and must not be inverted
    return N @ pseudo_inverse(J @ N, float(np.linalg.norm(J, 2))) @ np.asarray(w, float)


@dataclass(frozen=True)
class SupportPosture:
    """Result of support-consistent inverse kinematics.

    Attributes
    ----------
    q : (nq,) configuration.
    error : largest distance to a target, m or rad.
    slip : largest drift of a contact in its constrained directions, m or rad.
    iterations : number of steps.
    """

    q: np.ndarray
    error: float
    slip: float
    iterations: int

    __repr__ = summary


def support_inverse_kinematics(
    robot: Robot,
    q: ArrayLike,
    contacts: Sequence[Contact],
    targets: Mapping[str, ArrayLike],
    tolerance: float = 1e-6,
    iterations: int = 200,
) -> SupportPosture:
    """Move links, patches or the centre of mass to targets while the contacts stay in place.

    Joints stop at their limits.

    Parameters
    ----------
    robot, q : Robot, and the initial posture (nq,), with the contacts in place.
    contacts : the closed contacts.
    targets : by link or patch a pose (4, 4) or a position (3,); by ``com`` a position (3,), m.
    tolerance : largest error of a target or contact, m and rad.
    iterations : largest number of steps.

    Raises
    ------
    InputError
        A target is neither a pose nor a position, or its name is unknown.
    """
    where = "support_inverse_kinematics"
    check_instance(where, "robot", robot, Robot)
    contacts = check_each(where, "contacts", contacts, Contact)
    iterations = check_integer(where, "iterations", iterations)
    q = check_vector(where, "q", q, robot.nq)
    lower, upper = robot.limits.lower, robot.limits.upper
    start_poses = {contact.patch: robot.frame_pose(q, contact.patch) for contact in contacts}
    error, k, final_steps = np.inf, 0, min(CORRECTION_STEPS, iterations // 2)
    for k in range(iterations + 1):
        w, J = _target_rows(robot, q, targets)
        rows = contact_rows(robot, q, np.zeros(robot.nv), contacts)
        correction = _contact_errors(robot, q, contacts, start_poses)
        error = float(np.abs(w).max(initial=0.0))
        if (error <= tolerance and np.abs(correction).max(initial=0.0) <= tolerance) or k == iterations:
            break
        free = np.ones(robot.nv, bool)
        step = np.zeros(robot.nv)
        while True:
            Jc, Jt = rows.J * free, J * free
            pinv_c = np.linalg.pinv(Jc, ROW_TOLERANCE)
            N = np.diag(free.astype(float)) - pinv_c @ Jc
            correction_step = pinv_c @ correction
            A = Jt @ N
            S = A @ A.T
            # tolerance by the size of J, not of J N, which is rounding for a task blocked by contacts
            damped = S + DAMPING * np.trace(J @ J.T) / max(len(S), 1) * np.eye(len(S))
            moves_targets = k < iterations - final_steps
            desired = np.clip(w - Jt @ correction_step, -MAX_STEP, MAX_STEP) if moves_targets else np.zeros(len(w))
            step = correction_step + N @ A.T @ np.linalg.solve(damped, desired)
            step *= min(1.0, MAX_STEP / max(float(np.abs(step).max()), 1e-12))
            q_next = q[7:] + step[6:]
            is_below = (q_next < lower) & (q[7:] <= lower + LIMIT_TOLERANCE)
            is_above = (q_next > upper) & (q[7:] >= upper - LIMIT_TOLERANCE)
            at_limit = (is_below | is_above) & free[6:]
            if not at_limit.any():
                break
            free[6:][at_limit] = False
        q = robot.integrate(q, step, 1.0)
        q[7:] = np.clip(q[7:], lower, upper)
    slip = float(np.abs(_contact_errors(robot, q, contacts, start_poses)).max(initial=0.0))
    return SupportPosture(q, error, slip, k)


def _target_rows(robot: Robot, q: np.ndarray, targets: Mapping[str, ArrayLike]) -> tuple[np.ndarray, np.ndarray]:
    """Return the errors and the Jacobian of all targets."""
    errors, jacobians = [np.zeros(0)], [np.zeros((0, robot.nv))]
    for name, target in targets.items():
        goal = np.asarray(target, float)
        if name == "com" and goal.shape == (3,):
            errors.append(goal - robot.com(q))
            jacobians.append(robot.com_jacobian(q))
            continue
        X, J = robot.frame_pose(q, name), robot.frame_jacobian(q, name)
        if goal.shape == (3,):
            errors.append(goal - X[:3, 3])
            jacobians.append(J[:3])
        elif goal.shape == (4, 4):
            errors.append(np.concatenate([goal[:3, 3] - X[:3, 3], _rotation(X[:3, :3], goal[:3, :3])]))
            jacobians.append(J)
        else:
            raise InputError(f"target {name!r} has the shape {goal.shape}; expected a pose (4, 4) or a position (3,)")
    return np.concatenate(errors), np.vstack(jacobians)


def _contact_errors(
    robot: Robot, q: np.ndarray, contacts: Sequence[Contact], start_poses: Mapping[str, np.ndarray]
) -> np.ndarray:
    """Return the errors of all contacts in their constrained directions, m and rad."""
    errors = [np.zeros(0)]
    for contact in contacts:
        X, start = robot.frame_pose(q, contact.patch), start_poses[contact.patch]
        R = contact.turned(X[:3, :3])
        error = np.concatenate([R.T @ (start[:3, 3] - X[:3, 3]), R.T @ _rotation(X[:3, :3], start[:3, :3])])
        errors.append(contact.selection @ error)
    return np.concatenate(errors)


def _rotation(R: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """Return the rotation vector (3,), world axes, from R to the goal."""
    return rotation_vector(goal @ R.T)
