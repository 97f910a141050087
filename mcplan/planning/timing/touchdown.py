"""Touchdown speed of a patch: within joint speeds, balance, and the strength of grips under the impact.

A plastic impact of a patch with the normal speed v changes the velocity of the whole robot at once,

    M dv = J' P + J_o' p,    J dv = 0,    J_o dv = v n

with the rows J of closed contacts and J_o of the patch's origin. If the impulse p is outside the friction cone the
patch slides: ``p = p_n (n + mu t)`` with ``n' J_o dv = v``. Friction matters: without it the load of a grip would be
up to three times too small. The impulses are proportional to v. Their limits:

- A grip carries its impulse, spread over the duration of the impact, in addition to its holding force.
- A landing patch with a largest force (``max_force``) carries its own impulse.
- A patch that lands on a corner turns about it, a light one with a short lever fast: the hand of a small robot by
  20 rad/s per m/s, before the controller can hold it flat.
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
"""Share of a grip's largest force and moment left for impacts by motions that keep all of their reserve: the peak of an
impact is over twice its mean, and adds to the holding force."""

MIN_GRIP_IMPACT_SHARE = 0.08
"""The same for motions that keep no reserve."""

LANDING_IMPACT_SHARE = 0.35
"""Share of the largest force of the landing patch for its impact; the controller presses it down at the same time."""

CAPTURE_POINT_SWAY_M = 4e-3
"""Shift of the capture point by an impact, for motions that keep all of their reserve: less than half of the default
``pressure_margin``."""

MIN_CAPTURE_POINT_SWAY_M = 1e-3
"""The same for motions that keep no reserve."""

MAX_SPIN_RAD_S = 0.8
"""Angular speed of a patch after touchdown on one corner, before joints turn it back."""

COMPLIANCE = 1e-8
"""Relative regularisation: closed chains have redundant constraint rows."""

MAX_SPEED = 10.0
"""m/s, rad/s: speed limit of the base, and upper bound of joint speeds."""

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
    q : (nq,) posture at touchdown.
    closed : closed contacts.
    pace : contains the usable share of joint velocities.
    reserve : share of the reserve that the motion keeps (see ``kept`` of `mcplan.motion.time_parameterization`).
    """
    closed_rows = [_contact_rows(robot, q, other) for other in closed]
    patch = robot.frame_jacobian(q, contact.patch)
    speed = min(speed, _joint_limited_speed(robot, closed_rows, patch, contact, pace))
    rows = np.vstack([*closed_rows, patch])
    change = np.linalg.solve(robot.mass_matrix(q), rows.T)
    W = rows @ change
    n = len(rows) - 6
    stiff = W[:n, :n] + COMPLIANCE * np.trace(W[:n, :n]) / max(n, 1) * np.eye(n)
    transmitted = np.linalg.solve(stiff, W[:n, n:])  # reaction impulses of closed contacts
    mobility = W[n:, n:] - W[n:, :n] @ transmitted
    for arm in np.vstack([np.zeros(3), contact.points]) @ contact.turned(robot.frame_pose(q, contact.patch)[:3, :3]).T:
        push = np.append(contact.normal, np.cross(arm, contact.normal))
        twist = mobility @ push / (push @ mobility @ push)  # per m/s
        spin = float(np.linalg.norm(twist[3:]))
        if spin * speed > MAX_SPIN_RAD_S:
            speed = MAX_SPIN_RAD_S / spin
    centred = np.append(_stopping_impulse(mobility[:3, :3], contact), np.zeros(3))
    P = np.append(-transmitted @ centred, centred)  # impulses per m/s
    if np.isfinite(contact.max_force):
        speed = min(
            speed, LANDING_IMPACT_SHARE * contact.max_force * IMPACT_TIME_S / float(np.linalg.norm(centred[:3]))
        )
    grips = [grip for grip in closed if grip.kind == "grasp" and np.isfinite([grip.max_force, grip.max_moment]).any()]
    if not grips:
        com_speed = float(np.linalg.norm((robot.com_jacobian(q) @ change @ P)[:2]))
        sway = MIN_CAPTURE_POINT_SWAY_M + reserve * (CAPTURE_POINT_SWAY_M - MIN_CAPTURE_POINT_SWAY_M)
        return (
            min(speed, sway * frequency(robot.com(q), closed, robot.scale.leg) / com_speed)
            if com_speed > 0.0
            else speed
        )
    begin, share = 0, MIN_GRIP_IMPACT_SHARE + reserve * (GRIP_IMPACT_SHARE - MIN_GRIP_IMPACT_SHARE)
    for other, J in zip(closed, closed_rows, strict=True):
        impulse = other.selection.T @ P[begin : begin + len(J)]
        begin += len(J)
        if other in grips:
            for part, limit in ((impulse[:3], other.max_force), (impulse[3:], other.max_moment)):
                size = float(np.linalg.norm(part))
                if np.isfinite(limit) and size > 0.0:
                    speed = min(speed, share * limit * IMPACT_TIME_S / size)
    return speed


def _stopping_impulse(mobility: np.ndarray, contact: Contact) -> np.ndarray:
    """Return the impulse (3,), within the friction cone, that stops a point of a mobility (3, 3) landing at 1 m/s."""
    normal = contact.normal
    impulse = np.linalg.solve(mobility, normal)
    pressing = impulse @ normal
    along = impulse - pressing * normal
    if (size := float(np.linalg.norm(along))) > contact.friction * pressing:
        edge = normal + contact.friction / size * along
        impulse = edge / (normal @ mobility @ edge)
    return np.asarray(impulse)


def _contact_rows(robot: Robot, q: np.ndarray, contact: Contact) -> np.ndarray:
    """Return the Jacobian rows (k, nv) of the velocities that a closed contact constrains to zero."""
    R = contact.turned(robot.frame_pose(q, contact.patch)[:3, :3])
    J = robot.frame_jacobian(q, contact.patch)
    return contact.selection @ np.vstack([R.T @ J[:3], R.T @ J[3:]])


def _joint_limited_speed(
    robot: Robot, closed_rows: Sequence[np.ndarray], patch: np.ndarray, contact: Contact, pace: Pace
) -> float:
    """Return the normal speed of a patch, without rotation, that joints reach within their velocity limits.

    The joint velocities are the least-squares solution, each scaled by its limit.
    """
    speeds = joint_speeds(robot, pace.velocity)
    scale = np.append(np.full(6, MAX_SPEED), np.minimum(speeds, MAX_SPEED))
    A = np.vstack([*closed_rows, patch]) * scale
    velocity = np.linalg.pinv(A, rcond=RANK_TOLERANCE) @ np.concatenate(
        [np.zeros(len(A) - 6), contact.normal, np.zeros(3)]
    )
    share = float(np.max(np.abs(velocity[6:]), initial=0.0))
    return 1.0 / share if share > 0.0 else np.inf
