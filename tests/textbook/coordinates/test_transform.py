"""Homogeneous transformations, points of moving bodies, and velocities in three representations, against Pinocchio."""

import itertools

import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

from mcplan.errors import InputError
from mcplan.robot.pose import cross_matrix
from mcplan.textbook.coordinates import (
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

STEP = 1e-6


def random_pose(rng):
    return pose(Rotation.random(random_state=rng).as_matrix(), rng.normal(size=3))


def test_the_example_of_a_transformation():
    """S1 example 2.6.1, eq. 2.113 and 2.114."""
    T_AB = pose([[1, 0, 0], [0, 0, -1], [0, 1, 0]], [0, 3, 1])
    np.testing.assert_array_equal(T_AB, [[1, 0, 0, 0], [0, 0, -1, 3], [0, 1, 0, 1], [0, 0, 0, 1]])
    np.testing.assert_array_equal(transformed(T_AB, [0, 1, 1]), [0, 2, 2])
    np.testing.assert_array_equal(transformed(inverse(T_AB), [0, 2, 2]), [0, 1, 1])


def test_transforms_are_those_of_pinocchio():
    rng = np.random.default_rng(0)
    for _ in range(10):
        X = random_pose(rng)
        oracle = pin.SE3(X[:3, :3], X[:3, 3])
        np.testing.assert_allclose(inverse(X), oracle.inverse().homogeneous, atol=1e-15)
        np.testing.assert_allclose(velocity_transform(X), oracle.toActionMatrix(), atol=1e-15)
        np.testing.assert_allclose(force_transform(X), oracle.toDualActionMatrix(), atol=1e-15)
        np.testing.assert_allclose(force_transform(X), np.linalg.inv(velocity_transform(X)).T, atol=1e-14)


def moving(t):
    """A frame in motion, its mixed velocity and that one's rate."""
    spin, phase = np.array([0.3, -0.9, 0.5]), np.array([0.2, 0.1, -0.4])
    R = Rotation.from_rotvec(spin * t).as_matrix() @ Rotation.from_rotvec(phase * t * t).as_matrix()
    p = np.array([np.sin(t), t * t, np.cos(2 * t)])
    omega = spin + Rotation.from_rotvec(spin * t).as_matrix() @ (2 * phase * t)
    psi = np.cross(spin, omega - spin) + Rotation.from_rotvec(spin * t).as_matrix() @ (2 * phase)
    v = np.array([np.cos(t), 2 * t, -2 * np.sin(2 * t)])
    a = np.array([-np.sin(t), 2.0, -4 * np.cos(2 * t)])
    return pose(R, p), np.r_[v, omega], np.r_[a, psi]


def test_a_point_of_a_moving_body():
    """Velocity and acceleration of a point fixed to a body, differenced along the body's motion (eq. 2.121, 2.122)."""
    t, local = 0.7, np.array([0.4, -0.2, 0.6])
    X, twist, acceleration = moving(t)
    where = [transformed(moving(t + k * 1e-4)[0], local) for k in (-1, 0, 1)]
    arm = X[:3, :3] @ local
    np.testing.assert_allclose(point_velocity(twist, arm), (where[2] - where[0]) / 2e-4, atol=1e-7)
    expected = (where[2] - 2 * where[1] + where[0]) / 1e-8
    np.testing.assert_allclose(point_acceleration(twist, acceleration, arm), expected, atol=1e-6)


def test_the_rate_of_coordinates_in_moving_axes_is_not_the_velocity():
    """Eq. 2.129: a point at rest in the world, seen from a body that moves."""
    t, r = 0.7, np.array([1.0, 2.0, 3.0])
    X, twist, _ = moving(t)
    seen = [moving(t + s * STEP)[0][:3, :3].T @ r for s in (-1, 1)]
    rate = (seen[1] - seen[0]) / (2 * STEP)
    assert np.linalg.norm(rate) > 1
    v = velocity_from_moving_axes(X[:3, :3], twist[3:], X[:3, :3].T @ r, rate)
    np.testing.assert_allclose(v, 0.0, atol=1e-8)


@pytest.mark.parametrize("representation", ["inertial", "body", "mixed"])
def test_representations_are_those_of_pinocchio(representation):
    """The twist from the rate of the pose, left- and right-trivialised (S2 section 2.4), and Pinocchio's own words."""
    t = 0.7
    X, twist, _ = moving(t)
    rate = (moving(t + STEP)[0] - moving(t - STEP)[0]) / (2 * STEP)
    hat = {"inertial": rate @ inverse(X), "body": inverse(X) @ rate}.get(representation)
    given = convert_velocity(twist, X, "mixed", representation)
    if hat is not None:
        np.testing.assert_allclose(cross_matrix(given[3:]), hat[:3, :3], atol=1e-8)
        np.testing.assert_allclose(given[:3], hat[:3, 3], atol=1e-8)
    body = pin.Motion(convert_velocity(twist, X, "mixed", "body"))
    placed = pin.SE3(X[:3, :3], X[:3, 3])
    expected = {"body": body, "inertial": placed.act(body), "mixed": pin.SE3(X[:3, :3], np.zeros(3)).act(body)}
    np.testing.assert_allclose(given, expected[representation].vector, atol=1e-14)


@pytest.mark.parametrize(("source", "target"), list(itertools.product(("inertial", "body", "mixed"), repeat=2)))
def test_conversions_keep_the_power_and_the_motion(source, target):
    rng, t = np.random.default_rng(1), 0.7
    X, twist, acceleration = moving(t)
    v = convert_velocity(twist, X, "mixed", source)
    f = rng.normal(size=6)
    there = convert_force(f, X, source, target)
    assert there @ convert_velocity(v, X, source, target) == pytest.approx(f @ v)
    change = representation_change(X, source, target) @ representation_change(X, target, source)
    np.testing.assert_allclose(change, np.eye(6), atol=1e-14)
    vd = convert_acceleration(acceleration, twist, X, "mixed", source)
    found = convert_acceleration(vd, v, X, source, target)
    later, before = (
        convert_velocity(moving(t + s * STEP)[1], moving(t + s * STEP)[0], "mixed", target) for s in (1, -1)
    )
    np.testing.assert_allclose(found, (later - before) / (2 * STEP), atol=1e-8)


def test_an_unknown_representation_is_refused():
    with pytest.raises(InputError, match="'hybrid'; expected one of inertial, body, mixed"):
        representation_change(np.eye(4), "hybrid", "mixed")
