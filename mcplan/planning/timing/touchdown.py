"""Touchdown speed of a patch: within joint speeds, and such that balance and grips bear the impact.

A patch that meets its support with the normal speed v and stays there changes the velocity of the whole robot at once,

    M dv = J' P + J_o' p,    J dv = 0,    J_o dv = v n

with the rows J of contacts that stay closed and J_o of the patch's origin, as far as friction holds it: where that
takes an impulse p outside the cone it slides, ``p = p_n (n + mu t)`` with ``n' J_o dv = v``. Without friction a grip
would bear as little as a third of what it does. The impulses are proportional to v. Contacts that press bear them; a
grip has to bear its own, spread over the time of an impact, beside what it holds, and a patch with a largest force
(``max_force``) the one with which it lands.

A patch that comes down on a corner turns about it, a light one on a short lever quickly: the hand of a small robot by
20 rad/s per m/s, before it can be held flat. Where no grip holds, the horizontal velocity of the centre of mass changes
by dc' and moves the point where the pressure has to be to stop it (the capture point, Pratt et al. 2006) by
``|dc'| / w``, ``w² = g / height``, and the next motion has to be followed all the same. Feet come down from above and
seldom do so; a hand that meets a wall pushes the whole robot back.
"""

from collections.abc import Sequence

import numpy as np

from mcplan.motion.pendulum import frequency
from mcplan.planning.timing.path_dynamics import joint_speeds
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.settings.pace import Pace

IMPACT_TIME_S = 0.01
"""s: over which an impulse is spread; the certificate of a run averages forces over as much."""

GRIP_IMPACT_SHARE = 0.2
"""Share of a grip's largest force and moment left for impacts by motions that keep all of their reserve: the peak of an
impact is over twice its mean, and comes on top of the holding force."""

MIN_GRIP_IMPACT_SHARE = 0.08
"""The same for motions that keep no reserve."""

LANDING_IMPACT_SHARE = 0.35
"""Share of the largest force of the landing patch for its impact; the controller presses it down at the same time."""

CAPTURE_POINT_SWAY_M = 4e-3
"""m: shift of the capture point by an impact, for motions that keep all of their reserve: less than half the default
inset of the pressure."""

MIN_CAPTURE_POINT_SWAY_M = 1e-3
"""The same for motions that keep no reserve."""

MAX_SPIN = 0.8
"""rad/s: how fast a patch may turn after it has touched with one corner only, before joints turn it back."""

COMPLIANCE = 1e-8
"""Relative: closed chains have more rows than directions."""

FREE_SPEED = 10.0
"""m/s, rad/s: the base, and joints that are not slower, move as fast."""

RANK_TOLERANCE = 1e-6
"""Singular values smaller than this part of the largest are none."""


def touchdown_speed(
    robot: Robot,
    q: np.ndarray,
    closed: Sequence[Contact],
    contact: Contact,
    pace: Pace,
    most: float,
    kept: float = 1.0,
) -> float:
    """Return the normal speed (m/s) at which a patch may meet its support: ``most``, or what joints and impacts allow.

    Parameters
    ----------
    q : (nq,) the posture then.
    closed : contacts that stay closed.
    pace : what of the joints' velocities is used.
    kept : part of its reserve that the motion keeps (see `mcplan.motion.time_parameterization.TimeParameterization`).
    """
    held = [_held(robot, q, other) for other in closed]
    patch = robot.frame_jacobian(q, contact.patch)
    most = min(most, _with_joints(robot, held, patch, contact, pace))
    rows = np.vstack([*held, patch])
    change = np.linalg.solve(robot.mass_matrix(q), rows.T)
    W = rows @ change
    n = len(rows) - 6
    stiff = W[:n, :n] + COMPLIANCE * np.trace(W[:n, :n]) / max(n, 1) * np.eye(n)
    passed = np.linalg.solve(stiff, W[:n, n:])  # impulses of the closed contacts, against those at the patch
    mobility = W[n:, n:] - W[n:, :n] @ passed
    for arm in np.vstack([np.zeros(3), contact.points]) @ contact.turned(robot.frame_pose(q, contact.patch)[:3, :3]).T:
        push = np.append(contact.normal, np.cross(arm, contact.normal))
        moved = mobility @ push / (push @ mobility @ push)  # twist per m/s
        spin = float(np.linalg.norm(moved[3:]))
        if spin * most > MAX_SPIN:
            most = MAX_SPIN / spin
    centred = np.append(_stopping(mobility[:3, :3], contact), np.zeros(3))
    P = np.append(-passed @ centred, centred)  # impulses per m/s
    if np.isfinite(contact.max_force):
        most = min(most, LANDING_IMPACT_SHARE * contact.max_force * IMPACT_TIME_S / float(np.linalg.norm(centred[:3])))
    grips = [grip for grip in closed if grip.kind == "grasp" and np.isfinite([grip.max_force, grip.max_moment]).any()]
    if not grips:
        away = float(np.linalg.norm((robot.com_jacobian(q) @ change @ P)[:2]))
        sway = MIN_CAPTURE_POINT_SWAY_M + kept * (CAPTURE_POINT_SWAY_M - MIN_CAPTURE_POINT_SWAY_M)
        return min(most, sway * frequency(robot.com(q), closed, robot.scale.leg) / away) if away > 0.0 else most
    begin, left = 0, MIN_GRIP_IMPACT_SHARE + kept * (GRIP_IMPACT_SHARE - MIN_GRIP_IMPACT_SHARE)
    for other, J in zip(closed, held, strict=True):
        impulse = other.selection.T @ P[begin : begin + len(J)]
        begin += len(J)
        if other in grips:
            for part, limit in ((impulse[:3], other.max_force), (impulse[3:], other.max_moment)):
                size = float(np.linalg.norm(part))
                if np.isfinite(limit) and size > 0.0:
                    most = min(most, left * limit * IMPACT_TIME_S / size)
    return most


def _stopping(mobility: np.ndarray, contact: Contact) -> np.ndarray:
    """Return the impulse (3,) that stops a point of a mobility (3,3) which comes down with 1 m/s, within its cone."""
    normal = contact.normal
    impulse = np.linalg.solve(mobility, normal)
    pressing = impulse @ normal
    along = impulse - pressing * normal
    if (size := float(np.linalg.norm(along))) > contact.friction * pressing:
        edge = normal + contact.friction / size * along
        impulse = edge / (normal @ mobility @ edge)
    return np.asarray(impulse)


def _held(robot: Robot, q: np.ndarray, contact: Contact) -> np.ndarray:
    """Return the rows (k, nv) of the velocities that a closed contact forbids."""
    R = contact.turned(robot.frame_pose(q, contact.patch)[:3, :3])
    J = robot.frame_jacobian(q, contact.patch)
    return contact.selection @ np.vstack([R.T @ J[:3], R.T @ J[3:]])


def _with_joints(robot: Robot, held: Sequence[np.ndarray], patch: np.ndarray, contact: Contact, pace: Pace) -> float:
    """Return the speed along the normal at which joints move a patch, its axes kept, no faster than they may.

    Of all velocities that do so it is that with the least sum of squares, each relative to what its joint may.
    """
    speeds = joint_speeds(robot, pace.velocity)
    scale = np.append(np.full(6, FREE_SPEED), np.minimum(speeds, FREE_SPEED))
    A = np.vstack([*held, patch]) * scale
    velocity = np.linalg.pinv(A, rcond=RANK_TOLERANCE) @ np.concatenate(
        [np.zeros(len(A) - 6), contact.normal, np.zeros(3)]
    )
    share = float(np.max(np.abs(velocity[6:]), initial=0.0))
    return 1.0 / share if share > 0.0 else np.inf
