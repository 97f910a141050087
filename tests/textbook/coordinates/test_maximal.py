"""Generalized and maximal coordinates: poses, velocities and forces both ways (S3 section 6)."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.core.rigid_body.tree import COM, INERTIA
from mcplan.errors import InputError
from mcplan.robot.robot_file import load_robot
from mcplan.textbook.coordinates import BodyPoses, Maximal
from tests.core.random_trees import random_state
from tests.robot.conftest import GRIPPER
from tests.textbook.coordinates.random_robots import random_robot

STEP = 1e-6


@pytest.fixture(scope="module")
def hrp2():
    return load_robot("hrp2")


@pytest.fixture(params=range(6))
def case(request):
    rng = np.random.default_rng(request.param)
    robot = random_robot(rng, int(rng.integers(3, 12)), hinges_only=request.param % 2 == 0)
    q, v, _ = random_state(rng, robot.nv)
    q[7:] = rng.uniform(-3, 3, robot.n)
    return Maximal(robot), q, v, rng


def test_poses_and_back(case):
    bodies, q, _, _ = case
    found = bodies.configuration(bodies.poses(q))
    np.testing.assert_allclose(bodies.robot.difference(q, found), 0.0, atol=1e-12)


def test_velocities_are_those_of_moving_bodies(case):
    """Each body's centre and rotation differenced along the motion."""
    bodies, q, v, _ = case
    ahead, back = (bodies.poses(bodies.robot.integrate(q, v, s * STEP)) for s in (1, -1))
    linear = (ahead.position - back.position) / (2 * STEP)
    angular = Rotation.from_matrix(ahead.rotation @ back.rotation.transpose(0, 2, 1)).as_rotvec() / (2 * STEP)
    V = bodies.velocity(q, v)
    scale = max(1.0, np.abs(V).max())
    np.testing.assert_allclose(V, np.concatenate([linear.ravel(), angular.ravel()]), atol=1e-8 * scale)
    np.testing.assert_allclose(bodies.generalized_velocity(q, V), v, atol=1e-10)


def test_kinetic_energy_of_the_bodies_is_the_robots(case):
    """Newton and Euler body by body, without the armature, which no body carries."""
    bodies, q, v, _ = case
    linear, angular = bodies.velocity(q, v).reshape(2, -1, 3)
    rotation = bodies.poses(q).rotation
    energy = -0.5 * bodies.robot.armature @ v[6:] ** 2 * -1.0
    for k, row in enumerate(bodies.robot.tree.inertia):
        xx, yy, zz, xy, xz, yz = row[INERTIA : INERTIA + 6]
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        w = rotation[k].T @ angular[k]
        energy += 0.5 * (bodies.mass[k] * linear[k] @ linear[k] + w @ inertia @ w)
    assert energy == pytest.approx(0.5 * v @ bodies.robot.mass_matrix(q) @ v)
    np.testing.assert_array_equal(bodies.com, bodies.robot.tree.inertia[:, COM : COM + 3])


def test_hinge_rates_body_by_body(case):
    """S3 eq. 66 gives what the large least-squares system gives, from angular velocities alone."""
    bodies, q, v, _ = case
    rates = bodies.joint_rates(q, bodies.velocity(q, v))
    hinges = ~np.isnan(rates)
    np.testing.assert_allclose(rates[hinges], v[hinges], atol=1e-11)
    slides = sum(bodies.robot.tree.topology[1:, 1] == 2)
    assert (~hinges).sum() == slides


def test_forces_have_the_power_of_the_generalized_force(case):
    bodies, q, v, rng = case
    force, torque = rng.normal(size=(2, len(bodies.bodies), 3))
    Q = bodies.generalized_force(q, force, torque)
    V = bodies.velocity(q, v)
    assert Q @ v == pytest.approx(np.concatenate([force.ravel(), torque.ravel()]) @ V)
    back = bodies.body_forces(q, Q)
    np.testing.assert_allclose(bodies.generalized_force(q, *back), Q, atol=1e-10)
    assert sum(np.sum(x**2) for x in back) <= np.sum(force**2) + np.sum(torque**2) + 1e-12


def test_gravity_on_the_bodies_is_gravity_in_the_equations(case):
    bodies, q, _, _ = case
    weight = np.outer(bodies.mass, [0.0, 0.0, -9.81])
    Q = bodies.generalized_force(q, weight, np.zeros_like(weight))
    np.testing.assert_allclose(-Q, bodies.robot.nonlinear_effects(q, np.zeros(bodies.robot.nv)), atol=1e-10)


def test_joint_torques_as_vectors_in_the_hinges(case):
    """Eq. 68 and 71: action and reaction between bodies, and nothing on the base but reaction."""
    bodies, q, _, rng = case
    tau = rng.normal(size=bodies.robot.n)
    if (bodies.robot.tree.topology[1:, 1] == 2).any():
        with pytest.raises(InputError, match="expected revolute ones only"):
            bodies.hinge_torques(tau)
        return
    torque = bodies.body_torques(q, bodies.hinge_torques(tau))
    np.testing.assert_allclose(torque.sum(axis=0), 0.0, atol=1e-12)
    Q = bodies.generalized_force(q, np.zeros_like(torque), torque)
    np.testing.assert_allclose(Q, np.r_[np.zeros(6), tau], atol=1e-12)


def test_what_the_joints_do_not_allow_is_refused(case):
    bodies, q, v, rng = case
    poses = bodies.poses(q)
    apart = BodyPoses(poses.position + np.eye(len(poses.position), 3, k=-1) * 0.1, poses.rotation)
    with pytest.raises(InputError, match="no configuration has these poses: the pose of 'link"):
        bodies.configuration(apart)
    V = bodies.velocity(q, v)
    V[3] += 5.0
    with pytest.raises(InputError, match="V violates the joints: the velocity of 'link"):
        bodies.generalized_velocity(q, V)
    nearest = bodies.generalized_velocity(q, V, strict=False)
    for step in 0.01 * rng.normal(size=(20, bodies.robot.nv)):
        assert np.linalg.norm(bodies.velocity(q, nearest + step) - V) > np.linalg.norm(bodies.velocity(q, nearest) - V)


def test_joints_that_follow_others(tmp_path):
    (tmp_path / "gripper.urdf").write_text(GRIPPER)
    robot = load_robot(tmp_path / "gripper.urdf")
    bodies, q = Maximal(robot), robot.random_configuration(2)
    v = np.random.default_rng(0).normal(size=robot.nv)
    assert bodies.bodies[0] == "palm"
    np.testing.assert_allclose(robot.difference(q, bodies.configuration(bodies.poses(q))), 0.0, atol=1e-12)
    np.testing.assert_allclose(bodies.joint_rates(q, bodies.velocity(q, v)), v, atol=1e-12)
    np.testing.assert_allclose(bodies.generalized_velocity(q, bodies.velocity(q, v)), v, atol=1e-12)


def test_the_bundled_robot(hrp2):
    bodies, q = Maximal(hrp2), hrp2.random_configuration(4)
    assert bodies.bodies[0] == "BODY"
    assert bodies.mass.sum() == pytest.approx(hrp2.mass)
    np.testing.assert_allclose(hrp2.difference(q, bodies.configuration(bodies.poses(q))), 0.0, atol=1e-11)
