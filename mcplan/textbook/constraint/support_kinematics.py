"""Support-consistent inverse kinematics: limbs and centre of mass move, contacts stay in place.

    u = N_c (J_t N_c)^+ w_t,      N_c = 1 - J_c^+ J_c

Source: S1, sec. 2.10.5, eq. 2.257-2.260; iterated as in sec. 2.9.3, correcting the drift of the contacts first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from mcplan.errors import InputError
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.textbook.constraint.contact_rows import contact_rows
from mcplan.textbook.kinematics.differential import pseudo_inverse
from mcplan.util.arguments import each, instance, vector, whole
from mcplan.util.text import summary

MAX_STEP = 0.2
"""m, rad: largest step, for which the linearisation is accurate enough."""

CORRECTION_STEPS = 15
"""If a target is out of reach, the last steps only correct the drift of the contacts: so many, or half of all steps."""

DAMPING = 1e-6
"""Damping of the targets' squared singular values: bounds the steps if a target is out of reach or blocked."""

ROUNDING = 1e-9
"""rad, m: distance to a limit within which a joint counts as at the limit."""

DEPENDENT = 1e-7
"""Relative tolerance for dependent contact rows."""


def support_velocity(robot: Robot, q: ArrayLike, contacts: Sequence[Contact], J: ArrayLike, w: ArrayLike) -> np.ndarray:
    """Return the velocity (nv,) consistent with the contacts that is nearest to ``J v = w`` (eq. 2.260).

    Parameters
    ----------
    robot, q : the robot, and its posture (nq,) with the contacts in place.
    contacts : the closed contacts.
    J, w : (k, nv), (k,) Jacobian and desired velocity of a task, m/s or rad/s.
    """
    instance("support_velocity", "robot", robot, Robot)
    contacts = each("support_velocity", "contacts", contacts, Contact)
    Jc = contact_rows(robot, q, np.zeros(robot.nv), contacts).J
    N, J = np.eye(robot.nv) - np.linalg.pinv(Jc, DEPENDENT) @ Jc, np.asarray(J, float)
    # tolerance by the size of J: for a task blocked by contacts J N is rounding, and must not be inverted
    return N @ pseudo_inverse(J @ N, float(np.linalg.norm(J, 2))) @ np.asarray(w, float)


@dataclass(frozen=True)
class SupportPosture:
    """Result of support-consistent inverse kinematics.

    Attributes
    ----------
    q : (nq,).
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
    tolerance, iterations : m and rad; largest number of steps.

    Raises
    ------
    InputError
        A target is neither a pose nor a position, or its name is unknown.
    """
    where = "support_inverse_kinematics"
    instance(where, "robot", robot, Robot)
    contacts, iterations = each(where, "contacts", contacts, Contact), whole(where, "iterations", iterations)
    q = vector(where, "q", q, robot.nq)
    lower, upper = robot.limits.lower, robot.limits.upper
    start_poses = {contact.patch: robot.frame_pose(q, contact.patch) for contact in contacts}
    best, k, correction_steps = np.inf, 0, min(CORRECTION_STEPS, iterations // 2)
    for k in range(iterations + 1):
        w, J = _task(robot, q, targets)
        rows = contact_rows(robot, q, np.zeros(robot.nv), contacts)
        correction = _drift(robot, q, contacts, start_poses)
        best = float(np.abs(w).max(initial=0.0))
        if (best <= tolerance and np.abs(correction).max(initial=0.0) <= tolerance) or k == iterations:
            break
        free = np.ones(robot.nv, bool)
        step = np.zeros(robot.nv)
        while True:
            Jc, Jt = rows.J * free, J * free
            pinv_c = np.linalg.pinv(Jc, DEPENDENT)
            N = np.diag(free.astype(float)) - pinv_c @ Jc
            first = pinv_c @ correction
            A = Jt @ N
            S = A @ A.T
            # tolerance by the size of J, not of J N, which is rounding for a task blocked by contacts
            damped = S + DAMPING * np.trace(J @ J.T) / max(len(S), 1) * np.eye(len(S))
            desired = (
                np.clip(w - Jt @ first, -MAX_STEP, MAX_STEP) if k < iterations - correction_steps else np.zeros(len(w))
            )
            step = first + N @ A.T @ np.linalg.solve(damped, desired)
            step *= min(1.0, MAX_STEP / max(float(np.abs(step).max()), 1e-12))
            after = q[7:] + step[6:]
            low, high = (after < lower) & (q[7:] <= lower + ROUNDING), (after > upper) & (q[7:] >= upper - ROUNDING)
            stopped = (low | high) & free[6:]
            if not stopped.any():
                break
            free[6:][stopped] = False
        q = robot.integrate(q, step, 1.0)
        q[7:] = np.clip(q[7:], lower, upper)
    slip = float(np.abs(_drift(robot, q, contacts, start_poses)).max(initial=0.0))
    return SupportPosture(q, best, slip, k)


def _task(robot: Robot, q: np.ndarray, targets: Mapping[str, ArrayLike]) -> tuple[np.ndarray, np.ndarray]:
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


def _drift(
    robot: Robot, q: np.ndarray, contacts: Sequence[Contact], start_poses: Mapping[str, np.ndarray]
) -> np.ndarray:
    """Return the errors of all contacts in their constrained directions."""
    errors = [np.zeros(0)]
    for contact in contacts:
        X, start = robot.frame_pose(q, contact.patch), start_poses[contact.patch]
        R = contact.turned(X[:3, :3])
        error = np.concatenate([R.T @ (start[:3, 3] - X[:3, 3]), R.T @ _rotation(X[:3, :3], start[:3, :3])])
        errors.append(contact.selection @ error)
    return np.concatenate(errors)


def _rotation(R: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """Return the rotation vector (3,), world axes, from R to the goal."""
    return np.asarray(Rotation.from_matrix(goal @ R.T).as_rotvec())
