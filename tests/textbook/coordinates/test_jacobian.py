"""Jacobians at any point and in any axes: finite differences, Pinocchio's rates, and the planar arm of S1."""

import numpy as np
import pinocchio as pin
import pytest

from mcplan.errors import InputError
from mcplan.textbook.coordinates import (
    ANGLE_AXIS,
    CYLINDRICAL,
    ROLL_PITCH_YAW,
    ROTATION_MATRIX,
    ROTATION_VECTOR,
    SPHERICAL,
    UNIT_QUATERNION,
    ZYZ,
    analytic_jacobian,
    frame_jacobian_rate,
    geometric_jacobian,
    point_jacobian,
    relative_jacobian,
    transported,
)
from tests.core.random_trees import (
    build_pinocchio,
    pinocchio_acceleration,
    pinocchio_q,
    random_bodies,
    random_state,
    to_body_axes,
)
from tests.textbook.coordinates.random_robots import random_robot

STEP = 1e-6
POINT = np.array([0.3, -0.2, 0.5])


@pytest.fixture(params=range(4))
def case(request):
    rng = np.random.default_rng(request.param)
    robot = random_robot(rng, int(rng.integers(3, 12)))
    q, v, _ = random_state(rng, robot.nv)
    return robot, q, v


def place(robot, q, point=POINT):
    X = robot.frame_pose(q, "tool")
    return X[:3, :3] @ point + X[:3, 3]


def test_a_point_moves_by_its_jacobian(case):
    robot, q, v = case
    there = [place(robot, robot.integrate(q, v, sign * STEP)) for sign in (1, -1)]
    J, R = point_jacobian(robot, q, "tool", POINT), robot.frame_pose(q, "tool")[:3, :3]
    np.testing.assert_allclose(J[:3] @ v, (there[0] - there[1]) / (2 * STEP), atol=1e-7)
    local = point_jacobian(robot, q, "tool", POINT, "local")
    np.testing.assert_allclose(local, np.vstack([R.T @ J[:3], R.T @ J[3:]]), atol=1e-13)


def test_transport_between_points_of_a_link(case):
    """S0 eq. 19 in world axes and eq. 20 in the base's."""
    robot, q, _ = case
    a, b = POINT, np.array([-1.0, 0.4, 0.1])
    R = robot.frame_pose(q, "tool")[:3, :3]
    moved = transported(point_jacobian(robot, q, "tool", b), R @ (a - b))
    np.testing.assert_allclose(moved, point_jacobian(robot, q, "tool", a), atol=1e-12)
    in_base = robot.frame_pose(q, "link0")[:3, :3].T @ R
    moved = transported(relative_jacobian(robot, q, "tool", b), in_base @ (a - b))
    np.testing.assert_allclose(moved, relative_jacobian(robot, q, "tool", a), atol=1e-12)


def test_motion_relative_to_the_base(case):
    """The place seen from the base moves by the hatted Jacobian, and the angular velocities add up (S0 eq. 18)."""
    robot, q, v = case

    def seen(q):
        X = robot.frame_pose(q, "link0")
        return X[:3, :3].T @ (place(robot, q) - X[:3, 3])

    rate = (seen(robot.integrate(q, v, STEP)) - seen(robot.integrate(q, v, -STEP))) / (2 * STEP)
    hat = relative_jacobian(robot, q, "tool", POINT)
    np.testing.assert_allclose(hat[:3] @ v[6:], rate, atol=1e-7)
    R0, R = robot.frame_pose(q, "link0")[:3, :3], robot.frame_pose(q, "tool")[:3, :3]
    total = v[3:6] + R0 @ hat[3:] @ v[6:]
    np.testing.assert_allclose(robot.frame_jacobian(q, "tool")[3:] @ v, total, atol=1e-12)
    local = relative_jacobian(robot, q, "tool", POINT, "local")
    np.testing.assert_allclose(R @ local[3:], R0 @ hat[3:], atol=1e-12)


def test_the_rate_of_a_jacobian(case):
    robot, q, v = case
    moved = [robot.frame_jacobian(robot.integrate(q, v, sign * STEP), "tool") for sign in (1, -1)]
    rate = frame_jacobian_rate(robot, q, v, "tool")
    scale = max(1.0, np.abs(rate).max())
    np.testing.assert_allclose(rate, (moved[0] - moved[1]) / (2 * STEP), atol=1e-8 * scale)
    np.testing.assert_allclose(rate @ v, robot.frame_bias_acceleration(q, v, "tool"), atol=1e-12 * scale**2)


def test_the_rate_is_pinocchios():
    """``J vd + J_rate v`` is Pinocchio's classical acceleration, for velocities of the joints one by one too."""
    rng = np.random.default_rng(7)
    bodies = random_bodies(rng, 7)
    model = build_pinocchio(bodies)
    data = model.createData()
    robot = random_robot(np.random.default_rng(7), 7)
    q, v, vd = random_state(rng, robot.nv)
    pin.forwardKinematics(
        model, data, pinocchio_q(bodies, q), to_body_axes(q, robot.nv) @ v, pinocchio_acceleration(q, v, vd)
    )
    joint = model.njoints - 1
    expected = pin.getClassicalAcceleration(model, data, joint, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED).vector
    found = robot.frame_jacobian(q, "link7") @ vd + frame_jacobian_rate(robot, q, v, "link7") @ v
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("position", [CYLINDRICAL, SPHERICAL], ids=["cylindrical", "spherical"])
@pytest.mark.parametrize(
    "rotation",
    [ROLL_PITCH_YAW, ZYZ, UNIT_QUATERNION, ROTATION_MATRIX, ROTATION_VECTOR, ANGLE_AXIS],
    ids=lambda c: c.name,
)
def test_the_analytic_jacobian_differentiates_the_coordinates(case, position, rotation):
    robot, q, v = case

    def chi(q):
        X = robot.frame_pose(q, "tool")
        return np.concatenate([position.parameters(X[:3, 3]), rotation.parameters(X[:3, :3])])

    rate = (chi(robot.integrate(q, v, STEP)) - chi(robot.integrate(q, v, -STEP))) / (2 * STEP)
    J_A = analytic_jacobian(robot, q, "tool", position, rotation)
    scale = max(1.0, np.abs(rate).max() ** 2)
    np.testing.assert_allclose(J_A @ v, rate, atol=1e-6 * scale)
    back = geometric_jacobian(J_A, robot.frame_pose(q, "tool"), position, rotation)
    np.testing.assert_allclose(back, robot.frame_jacobian(q, "tool"), atol=1e-11 * scale)


def test_unknown_axes_are_refused(case):
    robot, q, _ = case
    with pytest.raises(InputError, match="axes = 'base'; expected 'world' or 'local'"):
        point_jacobian(robot, q, "tool", axes="base")
