"""Trajectory tracking of a frame: inverse differential kinematics with feedback (S1 section 2.9.4).

::

    import numpy as np
    import mcplan as mc

    robot = mc.load_robot("hrp2")
    q = robot.posture("half_sitting")
    p, v = robot.frame_pose(q, "right_hand")[:3, 3], np.array([0.0, 0.0, 0.1])
    result = mc.kinematics.track(robot, q, "right_hand", lambda t: (p + t * v, [*v, 0.0, 0.0, 0.0]), 0.5, 0.01)
    assert result.error[-1, 0] < 1e-3

S1: `docs/sources.md`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from mcplan.errors import InputError
from mcplan.robot.robot import Robot
from mcplan.textbook.coordinates.chart import Array, RotationChart, numbers
from mcplan.textbook.kinematics.differential import damped_inverse, pseudo_inverse
from mcplan.textbook.kinematics.frame_error import frame_target
from mcplan.util.text import summary

Reference = Callable[[float], tuple[ArrayLike, ArrayLike]]
"""Desired pose (4, 4) and velocity (6,), linear then angular, world axes, as a function of time."""


@dataclass(frozen=True, eq=False)
class Tracked:
    """Result of trajectory tracking.

    Attributes
    ----------
    t : (N,) times, s.
    q : (N, nq) configurations.
    error : (N, 2) distance in m and angle of the shortest rotation in rad from the reference.
    """

    t: Array
    q: Array
    error: Array

    __repr__ = summary


def tracking_velocity(
    robot: Robot,
    q: ArrayLike,
    frame: str,
    pose: ArrayLike,
    velocity: ArrayLike,
    gain: float,
    *,
    rotation: RotationChart | None = None,
    fixed_base: bool = True,
    damping: float = 0.0,
) -> Array:
    """Return the robot's velocity (nv,) with which a frame tracks its reference.

    ``J+ [r_rate* + k dr; omega* + k dphi]``, with the reference * and the errors dr, dphi    (S1 eq. 2.241 and 2.242)

    Parameters
    ----------
    robot, q : the robot, and its configuration (nq,).
    frame : the link or patch.
    pose, velocity : (4, 4) and (6,) reference; a position (3,) or a rotation (3, 3) may replace the pose.
    gain : feedback gain k, 1/s.
    rotation : chart in whose parameters the orientation is tracked, ``J_A+ (theta_rate* + k (theta* - theta))``; by
        default along the shortest rotation.
    fixed_base : whether only the joints move.
    damping : damping of the inverse, for references near singularities.
    """
    q = numbers(q, (robot.nq,), "q")
    target = replace(frame_target(robot, frame, pose, rotation), near=True)
    task, desired = target.task(robot, q), numbers(velocity, (6,), "velocity")
    parts = [] if target.position is None else [desired[:3]]
    if target.rotation is not None and rotation is None:
        parts.append(desired[3:])
    elif target.rotation is not None and rotation is not None:
        theta = rotation.parameters(robot.frame_pose(q, frame)[:3, :3])
        parts.append(rotation.E_inverse(rotation.parameters_near(target.rotation, theta)) @ desired[3:])
    J = task.J.copy()
    if fixed_base:
        J[:, :6] = 0.0
    inverse = damped_inverse(J, damping) if damping else pseudo_inverse(J)
    v = inverse @ (np.concatenate(parts) + gain * task.w)
    return np.concatenate([np.zeros(6), v[6:]]) if fixed_base else np.asarray(v)


def track(
    robot: Robot,
    start: ArrayLike,
    frame: str,
    reference: Reference,
    duration: float,
    dt: float = 1e-3,
    gain: float = 20.0,
    *,
    rotation: RotationChart | None = None,
    fixed_base: bool = True,
    damping: float = 0.0,
) -> Tracked:
    """Track a reference from a configuration (nq,) on, in steps of constant velocity.

    Parameters
    ----------
    robot : the robot.
    start : (nq,) configuration at t = 0.
    frame : the link or patch.
    reference : desired pose and velocity as a function of time.
    duration, dt : s. ``gain * dt`` must stay below 2, otherwise the feedback diverges.
    gain, rotation, fixed_base, damping : see ``tracking_velocity``.

    Raises
    ------
    InputError
        ``dt`` is longer than the duration, or the feedback overshoots.
    """
    duration, dt, gain = numbers([duration, dt, gain], (3,), "duration, dt and gain").tolist()
    if not (0.0 < dt <= duration and 0.0 <= gain * dt < 2.0):
        raise InputError(f"duration = {duration} s, dt = {dt} s, gain = {gain} 1/s; expected 0 <= gain dt < 2")
    steps = int(np.ceil(duration / dt - 1e-9))
    q = np.empty((steps + 1, robot.nq))
    q[0], error = numbers(start, (robot.nq,), "start"), np.empty((steps + 1, 2))
    for k in range(steps + 1):
        pose, velocity = reference(k * dt)
        error[k] = frame_target(robot, frame, pose).errors(robot.frame_pose(q[k], frame))
        if k < steps:
            v = tracking_velocity(
                robot, q[k], frame, pose, velocity, gain, rotation=rotation, fixed_base=fixed_base, damping=damping
            )
            q[k + 1] = robot.integrate(q[k], v, dt)
    return Tracked(np.arange(steps + 1) * np.float64(dt), q, error)
