"""Jacobians of points and frames: geometric and analytic, in world or local axes, relative to the base.

S0 eq. 14 to 20, S1 section 2.8. Linear rows are above angular ones.

S0 and S1: `docs/sources.md`.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from mcplan.core.rigid_body.ball import screw_rate
from mcplan.core.rigid_body.inverse_dynamics import newton_euler
from mcplan.core.rigid_body.tree import BALL, DEGREE, PARENT, SCREW, TYPE, VELOCITY, V, workspace
from mcplan.errors import InputError
from mcplan.robot.pose import cross_matrix
from mcplan.robot.robot import Robot
from mcplan.textbook.coordinates.chart import Array, RotationChart, numbers
from mcplan.textbook.coordinates.euler import ROLL_PITCH_YAW
from mcplan.textbook.coordinates.position import CARTESIAN, PositionChart

ORIGIN = (0.0, 0.0, 0.0)


def transported(J: ArrayLike, arm: ArrayLike) -> Array:
    """Return the Jacobian at another point of the same body: ``J_t(a) = J_t(b) - [(a - b) x] J_r``, S0 eq. 19 and 20.

    Parameters
    ----------
    J : (6, k) Jacobian at the point b.
    arm : (3,) vector from b to a, in the axes of J, m.
    """
    J = numbers(J, (6, None), "J").copy()
    J[:3] -= cross_matrix(numbers(arm, (3,), "arm")) @ J[3:]
    return J


def point_jacobian(
    robot: Robot, q: ArrayLike, frame: str, point: ArrayLike = ORIGIN, axes: Literal["world", "local"] = "world"
) -> Array:
    """Return J (6, nv) of a point fixed to a link or patch: its velocity and the frame's angular one are ``J v``.

    Parameters
    ----------
    robot, q : the robot, and its configuration (nq,).
    point : (3,) coordinates in the frame, m.
    axes : axes of the velocities: those of the world, or of the frame.
    """
    q = numbers(q, (robot.nq,), "q")
    R = robot.frame_pose(q, frame)[:3, :3]
    J = transported(robot.frame_jacobian(q, frame), R @ numbers(point, (3,), "point"))
    return _in_axes(J, R, axes, "world")


def relative_jacobian(
    robot: Robot, q: ArrayLike, frame: str, point: ArrayLike = ORIGIN, axes: Literal["base", "local"] = "base"
) -> Array:
    """Return the Jacobian (6, n) of a point relative to the base, with respect to joint rates (with a hat in S0).

    It depends on the joints only.

    Parameters
    ----------
    robot, q : the robot, and its configuration (nq,).
    point : (3,) coordinates in the frame, m.
    axes : axes of the velocities: those of the base, or of the frame.
    """
    shape = _with_base_at_rest(robot, q)
    J = point_jacobian(robot, shape, frame, point)[:, 6:]
    return _in_axes(J, robot.frame_pose(shape, frame)[:3, :3], axes, "base")


def frame_jacobian_rate(robot: Robot, q: ArrayLike, v: ArrayLike, frame: str) -> Array:
    """Return the rate of ``robot.frame_jacobian`` (6, nv) at the velocity v (nv,); times v it is the bias acceleration.

    A joint's column ``[s_lin + s_ang x r; s_ang]`` changes because its screw s moves with the body that carries it,
    ``s_rate = V x s``, and because the point r moves.

    Parameters
    ----------
    robot : the robot.
    q, v : (nq,), (nv,) state.
    frame : link or patch.
    """
    body, _ = robot.frame(frame)
    q, v = numbers(q, (robot.nq,), "q"), numbers(v, (robot.nv,), "v")
    J, r = robot.frame_jacobian(q, frame), robot.frame_pose(q, frame)[:3, 3] - q[:3]
    velocity = J @ v
    tree, work = robot.tree, workspace(robot.tree)
    newton_euler(tree, q, v, v, 0.0, 0.0, work)  # for the velocities and screws; accelerations are not used
    out = np.zeros((6, robot.nv))
    out[:3, 3:6] = -cross_matrix(velocity[:3] - v[:3])
    while body > 0:
        row = tree.topology[body]
        s, V_body = work[row[DEGREE], SCREW : SCREW + 6], work[body, VELOCITY : VELOCITY + 6]
        if row[TYPE] >= BALL:
            rate = np.array(screw_rate(tree, v, work, body))
            linear, angular = rate[:3], rate[3:]
        else:
            W = cross_matrix(V_body[3:])
            linear, angular = W @ s[:3] + cross_matrix(V_body[:3]) @ s[3:], W @ s[3:]
        # the screws refer to the base origin as a fixed point, relative to which the frame's origin moves
        out[:3, row[V]] += linear + np.cross(angular, r) + np.cross(s[3:], velocity[:3])
        out[3:, row[V]] += angular
        body = int(row[PARENT])
    return out


def analytic_jacobian(
    robot: Robot,
    q: ArrayLike,
    frame: str,
    position: PositionChart = CARTESIAN,
    rotation: RotationChart = ROLL_PITCH_YAW,
) -> Array:
    """Return ``J_A = E^-1 J`` (3 + d, nv): rates of the coordinates of a frame's pose, S1 eq. 2.192.

    ``E = diag(E_P, E_R)`` of the charts of position and rotation, J the geometric Jacobian.

    Parameters
    ----------
    robot, q : the robot, and its configuration (nq,).
    frame : link or patch.
    position, rotation : charts of the frame's position and orientation.

    Raises
    ------
    InputError : one of the charts is singular at this pose.
    """
    q = numbers(q, (robot.nq,), "q")
    X, J = robot.frame_pose(q, frame), robot.frame_jacobian(q, frame)
    E_P = position.E_inverse(position.parameters(X[:3, 3]))
    E_R = rotation.E_inverse(rotation.parameters(X[:3, :3]))
    return np.vstack([E_P @ J[:3], E_R @ J[3:]])


def geometric_jacobian(
    J_A: ArrayLike, X: ArrayLike, position: PositionChart = CARTESIAN, rotation: RotationChart = ROLL_PITCH_YAW
) -> Array:
    """Return ``J = E J_A`` (6, k) from the analytic Jacobian (3 + d, k) of a frame with the pose X (4, 4).

    Parameters
    ----------
    J_A : (3 + d, k) analytic Jacobian.
    X : (4, 4) pose of the frame in the world.
    position, rotation : charts of the analytic Jacobian.
    """
    J_A, X = numbers(J_A, (3 + rotation.size, None), "J_A"), numbers(X, (4, 4), "pose")
    E_P, E_R = position.E(position.parameters(X[:3, 3])), rotation.E(rotation.parameters(X[:3, :3]))
    return np.vstack([E_P @ J_A[:3], E_R @ J_A[3:]])


def _with_base_at_rest(robot: Robot, q: ArrayLike) -> Array:
    """Return q with the base at the world frame, for quantities that depend on the joints only."""
    shape = numbers(q, (robot.nq,), "q").copy()
    shape[:7] = 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0
    return shape


def _in_axes(J: Array, R: Array, axes: str, default: str) -> Array:
    """Return J in the axes of the frame with rotation R if ``axes`` is ``local``; unchanged if they are the default."""
    if axes == default:
        return J
    if axes != "local":
        raise InputError(f"axes = {axes!r}; expected {default!r} or 'local'")
    return np.vstack([R.T @ J[:3], R.T @ J[3:]])
