"""Any frame as the base: the state, the velocity and the equations of motion in it (S2 section 4, lemma 3, eq. 17-28).

The robot's own base B gives way to the frame D of a link or patch, or to a frame E[F] with the origin of one and the
orientation of another. The joints stay as they are, and so does their order. ::

    import numpy as np
    import mcplan as mc
    from mcplan.coordinates import equations_of_motion, to_frame

    robot = mc.load_robot("hrp2")
    q, v = robot.posture("half_sitting"), np.ones(robot.nv)
    waist = equations_of_motion(robot, q, v)
    foot = to_frame(robot, q, v, "left_sole").equations(waist)
    assert np.isclose(foot.kinetic_energy, waist.kinetic_energy)
"""

import numpy as np
from numpy.typing import ArrayLike

from mcplan.coordinates.chart import Array, numbers
from mcplan.coordinates.equations import VelocityChange
from mcplan.coordinates.jacobian import frame_jacobian_rate
from mcplan.coordinates.quaternion import UNIT_QUATERNION
from mcplan.coordinates.transform import inverse, pose
from mcplan.model.robot import Robot


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
    """Return the robot's own q (nq,) from the pose of another frame and the joints: the inverse of S2 eq. 17a.

    Parameters
    ----------
    robot : the robot.
    q_D : (nq,) position and quaternion w x y z of the frame, then the joints.
    frame : link or patch that it is of.
    """
    q_D = numbers(q_D, (robot.nq,), "q_D")
    shape = q_D.copy()
    shape[:7] = 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0
    X_BD = robot.frame_pose(shape, frame)
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
    origin, orientation : links or patches: whose linear and whose angular velocity it is.
    origin : frame E, whose origin's velocity comes first.
    orientation : frame F, whose angular velocity comes next.
    """
    q = numbers(q, (robot.nq,), "q")
    J = np.vstack([robot.frame_jacobian(q, origin)[:3], robot.frame_jacobian(q, orientation)[3:]])
    rates = [frame_jacobian_rate(robot, q, v, frame) for frame in (origin, orientation)]
    return change_of_first_six(J, np.vstack([rates[0][:3], rates[1][3:]]))


def change_of_first_six(J: Array, J_rate: Array) -> VelocityChange:
    """Return ``T = [J; 0 1]`` and its rate from those of the first six rows (6, nv)."""
    T, T_rate = np.eye(J.shape[1]), np.zeros((J.shape[1], J.shape[1]))
    T[:6], T_rate[:6] = J, J_rate
    return VelocityChange(T, T_rate)
