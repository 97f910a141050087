"""Coordinates of robots: charts of positions and rotations, velocities, bases, bodies, and dynamics in each of them.

::

    import numpy as np
    import mcplan as mc
    from mcplan.textbook.coordinates import ROTATION_MATRIX, ZYX, Lagrangian

    R = ZYX.rotation([0.3, -0.2, 1.0])
    rates = ZYX.E_inverse(ZYX.parameters(R)) @ [0.0, 0.0, 1.0]  # of z, y, x when R turns about the vertical at 1 rad/s
    assert np.allclose(rates, [1.0, 0.0, 0.0])

    robot = mc.load_robot("hrp2")
    dynamics = Lagrangian(robot, ROTATION_MATRIX)
    q = dynamics.coordinates(robot.posture("half_sitting"))
    fall = dynamics.forward_dynamics(q, np.zeros(dynamics.size), np.zeros(dynamics.size))
    assert np.allclose(fall[:3], [0.0, 0.0, -9.81])
"""

from mcplan.textbook.coordinates.base_change import (
    average_velocity,
    configuration_from,
    configuration_in,
    locked_inertia,
    to_centroid,
    to_com,
    to_frame,
    to_mixed_frame,
)
from mcplan.textbook.coordinates.chart import RotationChart
from mcplan.textbook.coordinates.equations import EquationsOfMotion, VelocityChange, equations_of_motion
from mcplan.textbook.coordinates.euler import ROLL_PITCH_YAW, XYZ, ZXZ, ZYX, ZYZ, EulerAngles
from mcplan.textbook.coordinates.fixed_base import FixedBase, fixed_base
from mcplan.textbook.coordinates.jacobian import (
    analytic_jacobian,
    frame_jacobian_rate,
    geometric_jacobian,
    point_jacobian,
    relative_jacobian,
    transported,
)
from mcplan.textbook.coordinates.lagrangian import Lagrangian, Trajectory
from mcplan.textbook.coordinates.maximal import BodyPoses, Maximal
from mcplan.textbook.coordinates.position import CARTESIAN, CYLINDRICAL, SPHERICAL, PositionChart
from mcplan.textbook.coordinates.quaternion import ROTATION_MATRIX, UNIT_QUATERNION, RotationMatrix, UnitQuaternion
from mcplan.textbook.coordinates.rotation_vector import ANGLE_AXIS, ROTATION_VECTOR, AngleAxis, RotationVector
from mcplan.textbook.coordinates.transform import (
    convert_acceleration,
    convert_force,
    convert_velocity,
    force_transform,
    inverse,
    point_acceleration,
    point_velocity,
    pose,
    representation_change,
    transformed,
    velocity_from_moving_axes,
    velocity_transform,
)

__all__ = [
    "ANGLE_AXIS",
    "CARTESIAN",
    "CYLINDRICAL",
    "ROLL_PITCH_YAW",
    "ROTATION_MATRIX",
    "ROTATION_VECTOR",
    "SPHERICAL",
    "UNIT_QUATERNION",
    "XYZ",
    "ZXZ",
    "ZYX",
    "ZYZ",
    "AngleAxis",
    "BodyPoses",
    "EquationsOfMotion",
    "EulerAngles",
    "FixedBase",
    "Lagrangian",
    "Maximal",
    "PositionChart",
    "RotationChart",
    "RotationMatrix",
    "RotationVector",
    "Trajectory",
    "UnitQuaternion",
    "VelocityChange",
    "analytic_jacobian",
    "average_velocity",
    "configuration_from",
    "configuration_in",
    "convert_acceleration",
    "convert_force",
    "convert_velocity",
    "equations_of_motion",
    "fixed_base",
    "force_transform",
    "frame_jacobian_rate",
    "geometric_jacobian",
    "inverse",
    "locked_inertia",
    "point_acceleration",
    "point_jacobian",
    "point_velocity",
    "pose",
    "relative_jacobian",
    "representation_change",
    "to_centroid",
    "to_com",
    "to_frame",
    "to_mixed_frame",
    "transformed",
    "transported",
    "velocity_from_moving_axes",
    "velocity_transform",
]
