"""Largest touchdown speed of a patch, with respect to joint speeds, balance, and the impact load of contacts.

A plastic impact of a patch with the normal speed v changes the velocity of the whole robot at once,

    M dv = J' P + J_o' p,    J dv = 0,    J_o dv = v n

with the Jacobians J of the closed contacts and J_o of the patch's origin, their impulses P and p, and the normal n. If
p is outside the friction cone, the patch slides in the direction -t: ``p = p_n (n + mu t)`` with ``n' J_o dv = v``.
Without friction the computed load of a grip would be up to three times too small. The impulses are proportional to v.
Their limits:

- A grip carries its impulse, spread over the duration of the impact, in addition to its holding force.
- The impulse of a landing patch, averaged over the impact, may reach only a share of its ``max_force``.
- A patch that lands on a corner turns about it; a light patch turns fast, e.g. the hand of a small robot by 20 rad/s
  per m/s, before the controller can hold it flat.
- Without grips the horizontal velocity of the centre of mass changes by dc', which moves the capture point (Pratt et
  al. 2006) by ``|dc'| / w``, ``w² = g / height``, while the robot has to track the next motion. Feet come down
  vertically and seldom cause this; a hand that meets a wall pushes the whole robot back.
"""

from collections.abc import Sequence

import numpy as np

from mcplan.motion.pendulum import frequency
from mcplan.planning.timing.path_dynamics import joint_speeds
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.settings.pace import Pace

IMPACT_TIME_S = 0.01
"""Duration of an impact; the certificate of a run averages forces over the same time."""

GRIP_IMPACT_SHARE = 0.2
"""Share of a grip's largest force and moment available for impacts, if the motion keeps its full reserve (see
`touchdown_speed`). The peak of an impact is more than twice its mean, and is added to the holding force."""

MIN_GRIP_IMPACT_SHARE = 0.08
"""The same for a motion without reserve."""

LANDING_IMPACT_SHARE = 0.35
"""Share of the largest force of the landing patch for its impact; the controller presses it down at the same time."""

CAPTURE_POINT_SWAY_M = 4e-3
"""Largest shift of the capture point by an impact, if the motion keeps its full reserve: less than half of the default
``pressure_margin``."""

MIN_CAPTURE_POINT_SWAY_M = 1e-3
"""The same for a motion without reserve."""

MAX_SPIN_RAD_S = 0.8
"""Largest angular speed of a patch after touchdown on one corner, before joints turn it back."""

CONTACT_REGULARISATION = 1e-8
"""Added to the diagonal of the contact matrix ``J M^-1 J'``, relative to its mean, because closed chains make the
constraint rows redundant."""

MAX_SPEED_SCALE = 10.0
"""Scale (m/s, rad/s) of the base velocity in the least-squares solution, and largest scale of a joint velocity."""

RANK_TOLERANCE = 1e-6
"""Singular values smaller than this share of the largest count as zero."""


def touchdown_speed(
    robot: Robot,
    q: np.ndarray,
    closed: Sequence[Contact],
    contact: Contact,
    pace: Pace,
    speed: float,
    reserve: float = 1.0,
) -> float:
    """Return the allowed normal speed (m/s) of a patch at touchdown: ``speed``, or less if joints or impacts limit it.

    Parameters
    ----------
    robot, q : Robot, and its posture (nq,) at touchdown.
    closed : closed contacts.
    contact : the new contact.
    pace : pace with the usable share of joint velocities.
    speed : upper bound of the result (m/s).
    reserve : from 1, the motion keeps within the limits of its pace, to 0, it may use those of the controller (see
        `mcplan.planning.timing.retiming`).
    """
    closed_rows = [_contact_rows(robot, q, closed_contact) for closed_contact in closed]
    patch_jacobian = robot.frame_jacobian(q, contact.patch)
    speed = min(speed, _joint_limited_speed(robot, closed_rows, patch_jacobian, contact, pace))
    rows = np.vstack([*closed_rows, patch_jacobian])
    velocity_per_impulse = np.linalg.solve(robot.mass_matrix(q), rows.T)
    W = rows @ velocity_per_impulse
    n = len(rows) - 6
    compliance = W[:n, :n] + CONTACT_REGULARISATION * np.trace(W[:n, :n]) / max(n, 1) * np.eye(n)
    reactions = np.linalg.solve(compliance, W[:n, n:])  # impulses of closed contacts per unit of p
    mobility = W[n:, n:] - W[n:, :n] @ reactions
    for arm in np.vstack([np.zeros(3), contact.points]) @ contact.turned(robot.frame_pose(q, contact.patch)[:3, :3]).T:
        wrench = np.append(contact.normal, np.cross(arm, contact.normal))
        twist = mobility @ wrench / (wrench @ mobility @ wrench)  # per m/s
        spin = float(np.linalg.norm(twist[3:]))
        if spin * speed > MAX_SPIN_RAD_S:
            speed = MAX_SPIN_RAD_S / spin
    p = np.append(_stopping_impulse(mobility[:3, :3], contact), np.zeros(3))
    P = np.append(-reactions @ p, p)  # impulses per m/s
    if np.isfinite(contact.max_force):
        speed = min(speed, LANDING_IMPACT_SHARE * contact.max_force * IMPACT_TIME_S / float(np.linalg.norm(p[:3])))
    grips = [grip for grip in closed if grip.kind == "grasp" and np.isfinite([grip.max_force, grip.max_moment]).any()]
    if not grips:
        com_speed = float(np.linalg.norm((robot.com_jacobian(q) @ velocity_per_impulse @ P)[:2]))
        sway = MIN_CAPTURE_POINT_SWAY_M + reserve * (CAPTURE_POINT_SWAY_M - MIN_CAPTURE_POINT_SWAY_M)
        return (
            min(speed, sway * frequency(robot.com(q), closed, robot.scale.leg) / com_speed)
            if com_speed > 0.0
            else speed
        )
    first, share = 0, MIN_GRIP_IMPACT_SHARE + reserve * (GRIP_IMPACT_SHARE - MIN_GRIP_IMPACT_SHARE)
    for closed_contact, J in zip(closed, closed_rows, strict=True):
        impulse = closed_contact.selection.T @ P[first : first + len(J)]
        first += len(J)
        if closed_contact in grips:
            for load, limit in ((impulse[:3], closed_contact.max_force), (impulse[3:], closed_contact.max_moment)):
                size = float(np.linalg.norm(load))
                if np.isfinite(limit) and size > 0.0:
                    speed = min(speed, share * limit * IMPACT_TIME_S / size)
    return speed


def _stopping_impulse(mobility: np.ndarray, contact: Contact) -> np.ndarray:
    """Return the impulse (3,), within the friction cone, that stops a point which lands at 1 m/s; mobility (3, 3)."""
    normal = contact.normal
    impulse = np.linalg.solve(mobility, normal)
    normal_impulse = impulse @ normal
    tangential = impulse - normal_impulse * normal
    if (size := float(np.linalg.norm(tangential))) > contact.friction * normal_impulse:
        edge = normal + contact.friction / size * tangential
        impulse = edge / (normal @ mobility @ edge)
    return np.asarray(impulse)


def _contact_rows(robot: Robot, q: np.ndarray, contact: Contact) -> np.ndarray:
    """Return the Jacobian rows (k, nv) of the velocities that a closed contact constrains to zero."""
    R = contact.turned(robot.frame_pose(q, contact.patch)[:3, :3])
    J = robot.frame_jacobian(q, contact.patch)
    return contact.selection @ np.vstack([R.T @ J[:3], R.T @ J[3:]])


def _joint_limited_speed(
    robot: Robot, closed_rows: Sequence[np.ndarray], patch_jacobian: np.ndarray, contact: Contact, pace: Pace
) -> float:
    """Return the normal speed (m/s) of a patch, without rotation, that joints reach within their velocity limits.

    The joint velocities are the least-squares solution, each scaled by its limit.
    """
    speeds = joint_speeds(robot, pace.velocity)
    scale = np.append(np.full(6, MAX_SPEED_SCALE), np.minimum(speeds, MAX_SPEED_SCALE))
    A = np.vstack([*closed_rows, patch_jacobian]) * scale
    velocity = np.linalg.pinv(A, rcond=RANK_TOLERANCE) @ np.concatenate(
        [np.zeros(len(A) - 6), contact.normal, np.zeros(3)]
    )
    limit_share = float(np.max(np.abs(velocity[6:]), initial=0.0))
    return 1.0 / limit_share if limit_share > 0.0 else np.inf
