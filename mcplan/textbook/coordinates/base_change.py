"""Base change: any frame, the centre of mass or the average velocity as the base of a robot (S2 sections 4 and 5).

The base B of the robot is replaced by the frame D of a link or patch, or by a frame E[F] with the origin of one and the
orientation of another (lemma 3, eq. 17-28). Joints and their order do not change. ::

    import numpy as np
    import mcplan as mc
    from mcplan.textbook.coordinates import equations_of_motion, to_frame

    robot = mc.load_robot("hrp2")
    q, v = robot.posture("half_sitting"), np.ones(robot.nv)
    waist = equations_of_motion(robot, q, v)
    foot = to_frame(robot, q, v, "left_sole").equations(waist)
    assert np.isclose(foot.kinetic_energy, waist.kinetic_energy)

With ``nu_G = [com velocity; average angular velocity; joint rates]`` the mass matrix has three diagonal blocks, and
the first three equations are Newton's law (eq. 29 to 44).

S2: `docs/sources.md`.
"""

import numpy as np
from numpy.typing import ArrayLike

from mcplan.robot.pose import cross_matrix
from mcplan.robot.robot import Robot
from mcplan.textbook.coordinates.chart import Array, numbers
from mcplan.textbook.coordinates.equations import VelocityChange, equations_of_motion
from mcplan.textbook.coordinates.jacobian import frame_jacobian_rate
from mcplan.textbook.coordinates.quaternion import UNIT_QUATERNION
from mcplan.textbook.coordinates.transform import inverse, pose


def configuration_in(robot: Robot, q: ArrayLike, frame: str) -> Array:
    """Return ``q_D`` (nq,): position and quaternion w x y z of the frame, then the joints (S2 eq. 17a).

    Parameters
    ----------
    robot : the robot.
    q : (nq,) configuration.
    frame : link or patch.
    """
    q = numbers(q, (robot.nq,), "q")
    X = robot.frame_pose(q, frame)
    return np.concatenate([X[:3, 3], UNIT_QUATERNION.parameters(X[:3, :3]), q[7:]])


def configuration_from(robot: Robot, q_D: ArrayLike, frame: str) -> Array:
    """Return the robot's q (nq,) from the pose of another frame and the joints: the inverse of S2 eq. 17a.

    Parameters
    ----------
    robot : the robot.
    q_D : (nq,) position and quaternion w x y z of the frame, then the joints.
    frame : the link or patch.
    """
    q_D = numbers(q_D, (robot.nq,), "q_D")
    q_at_origin = q_D.copy()  # with the base at the world frame
    q_at_origin[:7] = 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0
    X_BD = robot.frame_pose(q_at_origin, frame)
    X_WB = pose(UNIT_QUATERNION.rotation(UNIT_QUATERNION.nearest(q_D[3:7])), q_D[:3]) @ inverse(X_BD)
    return np.concatenate([X_WB[:3, 3], UNIT_QUATERNION.parameters(X_WB[:3, :3]), q_D[7:]])


def to_frame(robot: Robot, q: ArrayLike, v: ArrayLike, frame: str) -> VelocityChange:
    """Return the change to the velocity with a link or patch as the base: ``T = [J_D; 0 1]`` (S2 eq. 18).

    Parameters
    ----------
    robot : the robot.
    q, v : (nq,), (nv,) state.
    frame : link or patch.
    """
    return to_mixed_frame(robot, q, v, frame, frame)


def to_mixed_frame(robot: Robot, q: ArrayLike, v: ArrayLike, origin: str, orientation: str) -> VelocityChange:
    """Return the change to the base E[F]: linear velocity of one frame, angular of another (S2 eq. 25 to 28).

    Parameters
    ----------
    robot : the robot.
    q, v : (nq,), (nv,) state.
    origin : link or patch E, whose linear velocity comes first.
    orientation : link or patch F, whose angular velocity follows.
    """
    q = numbers(q, (robot.nq,), "q")
    J = np.vstack([robot.frame_jacobian(q, origin)[:3], robot.frame_jacobian(q, orientation)[3:]])
    rates = [frame_jacobian_rate(robot, q, v, frame) for frame in (origin, orientation)]
    return change_of_first_six(J, np.vstack([rates[0][:3], rates[1][3:]]))


def change_of_first_six(J: Array, J_rate: Array) -> VelocityChange:
    """Return the change ``T = [J; 0 1]`` from its first six rows J (6, nv) and their rate."""
    T, T_rate = np.eye(J.shape[1]), np.zeros((J.shape[1], J.shape[1]))
    T[:6], T_rate[:6] = J, J_rate
    return VelocityChange(T, T_rate)


def locked_inertia(robot: Robot, q: ArrayLike) -> Array:
    """Return ``I_C`` (6, 6) about the centre of mass, as if all joints were locked: S2 eq. 29 and 30; kg, kg m².

    Parameters
    ----------
    robot : the robot.
    q : (nq,) configuration.
    """
    q = numbers(q, (robot.nq,), "q")
    X = _to_com(robot, q)
    return np.asarray(X @ _link_momentum_matrix(robot, robot.mass_matrix(q))[:, :6] @ X.T, dtype=np.float64)


def average_velocity(robot: Robot, q: ArrayLike, v: ArrayLike) -> Array:
    """Return the velocity (6,) of the centre of mass and the average angular velocity, ``I_C^-1 h``: S2 eq. 32.

    The angular part is the angular velocity that the robot would have if all joints locked at once; it is not the rate
    of an orientation.

    Parameters
    ----------
    robot : the robot.
    q, v : (nq,), (nv,) state.
    """
    q, v = numbers(q, (robot.nq,), "q"), numbers(v, (robot.nv,), "v")
    momentum = robot.centroidal_momentum_matrix(q) @ v
    return np.asarray(np.linalg.solve(locked_inertia(robot, q), momentum), dtype=np.float64)


def to_com(robot: Robot, q: ArrayLike, v: ArrayLike) -> VelocityChange:
    """Return the change to G[B]: velocity of the centre of mass, angular velocity of the base (S2 eq. 35 to 37).

    Parameters
    ----------
    robot : the robot.
    q, v : (nq,), (nv,) state.
    """
    eom = equations_of_motion(robot, q, v)
    J, J_rate = np.eye(6, robot.nv), np.zeros((6, robot.nv))
    J[:3], J_rate[:3] = _link_momentum_matrix(robot, eom.M)[:3] / robot.mass, eom.M_rate[:3] / robot.mass
    return change_of_first_six(J, J_rate)


def to_centroid(robot: Robot, q: ArrayLike, v: ArrayLike) -> VelocityChange:
    """Return the change to the average velocity, ``T = [I_C^-1 A; 0 1]`` with the momentum matrix A: S2 eq. 39.

    In it M is ``diag(m 1, L_C, H_G)`` and G is ``[-m g; 0; 0]`` (lemma 4).

    Parameters
    ----------
    robot : the robot.
    q, v : (nq,), (nv,) state.
    """
    eom = equations_of_motion(robot, q, v)
    X, X_rate, M = _to_com(robot, q), np.zeros((6, 6)), _link_momentum_matrix(robot, eom.M)
    X_rate[3:, :3] = -cross_matrix((M[:3] @ eom.nu) / robot.mass - eom.nu[:3])
    A, A_rate = X @ M, X_rate @ M + X @ eom.M_rate[:6]
    I = A[:, :6] @ X.T  # noqa: E741 - the locked inertia
    I_rate = A_rate[:, :6] @ X.T + A[:, :6] @ X_rate.T
    J = np.asarray(np.linalg.solve(I, A), dtype=np.float64)
    J_rate = np.asarray(np.linalg.solve(I, A_rate - I_rate @ J), dtype=np.float64)
    return change_of_first_six(J, J_rate)


def _to_com(robot: Robot, q: ArrayLike) -> Array:
    """Return the matrix (6, 6) that moves a 6D force from the base's origin to the centre of mass."""
    X = np.eye(6)
    X[3:, :3] = -cross_matrix(robot.com(q) - np.asarray(q, dtype=np.float64)[:3])
    return X


def _link_momentum_matrix(robot: Robot, M: Array) -> Array:
    """Return the matrix (6, nv) of the links' momentum about the base's origin: rows of M without base armature."""
    return np.asarray(M[:6] - np.eye(6, robot.nv) * robot.tree.armature, dtype=np.float64)
