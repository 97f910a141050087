"""Every dynamics method of Robot agrees with Pinocchio on the same URDF, to rounding."""

import numpy as np
import pytest

from mcplan.errors import InputError

ROBOTS = ("hrp2", "arm", "gripper")
TIGHT = {"rtol": 1e-9, "atol": 1e-9}


def states(robot, count=3):
    random = np.random.default_rng(7)
    for seed in range(count):
        yield robot.random_configuration(seed), *random.normal(size=(2, robot.nv))


@pytest.mark.parametrize("name", ROBOTS)
def test_dynamics(robots, oracles, name):
    robot, oracle = robots[name], oracles[name]
    for q, v, vd in states(robot):
        np.testing.assert_allclose(robot.mass_matrix(q), oracle.mass_matrix(q), **TIGHT)
        np.testing.assert_allclose(robot.nonlinear_effects(q, v), oracle.inverse_dynamics(q, v, 0 * v), **TIGHT)
        force = oracle.inverse_dynamics(q, v, vd)
        np.testing.assert_allclose(robot.inverse_dynamics(q, v, vd), force, rtol=1e-9, atol=1e-8)
        # the solve amplifies rounding by the condition number of M
        tolerance = 1e-15 * np.linalg.cond(robot.mass_matrix(q)) * 100
        np.testing.assert_allclose(robot.forward_dynamics(q, v, force), vd, atol=max(tolerance, 1e-9))


@pytest.mark.parametrize("name", ["hrp2", "arm"])
def test_forward_dynamics_against_articulated_bodies(robots, oracles, name):
    robot, oracle = robots[name], oracles[name]
    for q, v, force in states(robot):
        expected = oracle.forward_dynamics(q, v, force)
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(robot.forward_dynamics(q, v, force) / scale, expected / scale, atol=1e-9)


@pytest.mark.parametrize("name", ROBOTS)
def test_centre_of_mass_and_momentum(robots, oracles, name):
    robot, oracle = robots[name], oracles[name]
    for q, _, _ in states(robot):
        np.testing.assert_allclose(robot.com(q), oracle.com(q), **TIGHT)
        np.testing.assert_allclose(robot.com_jacobian(q), oracle.com_jacobian(q), **TIGHT)
        weight = oracle.inverse_dynamics(q, np.zeros(robot.nv), np.zeros(robot.nv))
        np.testing.assert_allclose(robot.gravity_torque(q), weight, **TIGHT)
        expected = oracle.centroidal_momentum_matrix(q)
        np.testing.assert_allclose(robot.centroidal_momentum_matrix(q), expected, **TIGHT)


@pytest.mark.parametrize("name", ROBOTS)
def test_every_link_frame(robots, oracles, name):
    robot, oracle = robots[name], oracles[name]
    for q, v, _ in states(robot, 2):
        for link in robot.link_names:
            np.testing.assert_allclose(robot.frame_pose(q, link), oracle.frame_pose(q, link), **TIGHT)
            np.testing.assert_allclose(robot.frame_jacobian(q, link), oracle.frame_jacobian(q, link), **TIGHT)
            bias = oracle.frame_bias_acceleration(q, v, link)
            np.testing.assert_allclose(robot.frame_bias_acceleration(q, v, link), bias, **TIGHT)


def test_patch_frames_sit_on_their_links(robots):
    robot = robots["hrp2"]
    q = robot.random_configuration(3)
    for name, patch in robot.patches.items():
        X = np.eye(4)
        X[:3, :3], X[:3, 3] = patch.R, patch.p
        np.testing.assert_allclose(robot.frame_pose(q, name), robot.frame_pose(q, patch.link) @ X, atol=1e-12)


def test_mimic_kinetic_energy_by_finite_differences(robots):
    """``v' M v / 2`` is the energy of the links' own motion, each link's velocity taken from two poses."""
    robot = robots["gripper"]
    assert robot.joint_names == ("left", "thumb")
    step = 1e-6
    for q, v, _ in states(robot):
        energy = 0.0
        before, after = robot.integrate(q, v, -step), robot.integrate(q, v, step)
        for name, link in robot.description.links.items():
            X0, X1 = robot.frame_pose(before, name), robot.frame_pose(after, name)
            R = robot.frame_pose(q, name)[:3, :3]
            com = np.append(link.inertia.com, 1)
            velocity = ((X1 - X0) @ com)[:3] / (2 * step)
            spin = R.T @ (X1 - X0)[:3, :3] / (2 * step)  # [w]x in the link's axes
            w = np.array([spin[2, 1] - spin[1, 2], spin[0, 2] - spin[2, 0], spin[1, 0] - spin[0, 1]]) / 2
            energy += (link.inertia.mass * velocity @ velocity + w @ link.inertia.matrix @ w) / 2
        # central differences: truncation of about step² |v|³, rounding of about 1e-16 / step
        assert v @ robot.mass_matrix(q) @ v / 2 == pytest.approx(energy, rel=1e-8)


def test_mimic_joints_bound_their_master(robots):
    # left within [-1, 1]; right = -1.5 left + 0.2 within [-2, 2]; pad = -0.15 left + 0.01 within [-0.3, 0.3]
    limits = robots["gripper"].limits
    assert limits.lower[0] == -1.0
    assert limits.upper[0] == 1.0
    assert limits.velocity[0] == pytest.approx(4 / 1.5)


def test_limits_of_a_continuous_joint_are_absent(robots):
    robot = robots["arm"]
    assert robot.joint_names == ("turn", "slide", "elbow")
    assert [limit[0] for limit in (robot.limits.lower, robot.limits.upper)] == [-np.inf, np.inf]
    assert robot.limits.velocity[0] == robot.limits.torque[0] == np.inf
    assert robot.limits.torque[1] == 50
    assert robot.patches == {}
    assert robot.postures == ()


def test_neutral_and_random_configurations_are_within_limits(robots):
    for robot in robots.values():
        for q in (robot.neutral(), *(robot.random_configuration(seed) for seed in range(20))):
            assert q.shape == (robot.nq,)
            assert np.linalg.norm(q[3:7]) == pytest.approx(1)
            assert (q[7:] >= robot.limits.lower).all()
            assert (q[7:] <= robot.limits.upper).all()
        np.testing.assert_array_equal(robot.random_configuration(5), robot.random_configuration(5))


def test_a_batch_is_its_items(robots):
    robot = robots["hrp2"]
    items = list(states(robot, 4))
    q, v, vd = (np.array(column) for column in zip(*items, strict=True))
    one_by_one = np.array([robot.inverse_dynamics(*item) for item in items])
    np.testing.assert_array_equal(robot.inverse_dynamics(q, v, vd), one_by_one)
    np.testing.assert_array_equal(robot.mass_matrix(q)[2], robot.mass_matrix(q[2]))
    np.testing.assert_array_equal(robot.nonlinear_effects(q[0], v)[3], robot.nonlinear_effects(q[0], v[3]))
    np.testing.assert_array_equal(robot.frame_jacobian(q, "left_sole")[1], robot.frame_jacobian(q[1], "left_sole"))
    assert robot.com(q[:0]).shape == (0, 3)


def test_integrate_undoes_difference(robots):
    robot = robots["hrp2"]
    q0, q1 = robot.random_configuration(1), robot.random_configuration(2)
    reached = robot.integrate(q0, robot.difference(q0, q1), 1.0)
    reached[3:7] *= np.sign(reached[3:7] @ q1[3:7])
    np.testing.assert_allclose(reached, q1, atol=1e-12)


def test_wrong_arguments_are_named(robots):
    robot = robots["hrp2"]
    q, v = robot.posture("half_sitting"), np.zeros(robot.nv)
    with pytest.raises(InputError, match=r"q has the shape \(34,\); expected \(35,\)"):
        robot.mass_matrix(q[:-1])
    with pytest.raises(InputError, match=r"v\[2\] = nan is not finite"):
        robot.nonlinear_effects(q, np.where(np.arange(robot.nv) == 2, np.nan, v))
    with pytest.raises(InputError, match=r"base quaternion.* length 2"):
        robot.com(np.where((np.arange(35) >= 3) & (np.arange(35) < 7), 2 * q, q))
    with pytest.raises(InputError, match="did you mean `left_sole`"):
        robot.frame_pose(q, "left_sol")
    with pytest.raises(InputError, match="did you mean `half_sitting`"):
        robot.posture("halfsitting")
    with pytest.raises(InputError, match="leading axes differ"):
        robot.nonlinear_effects(np.array([q, q]), np.array([v, v, v]))
    with pytest.raises(InputError, match="array of 35 numbers"):
        robot.com("zero")
    with pytest.raises(InputError, match="dt = 'a'; expected a number of seconds"):
        robot.integrate(q, v, "a")


def test_results_belong_to_the_caller_and_the_model_is_read_only(robots):
    robot = robots["hrp2"]
    robot.posture("half_sitting")[:] = 0
    assert robot.posture("half_sitting")[2] == 0.648702
    for array in (*robot.tree, robot.limits.lower, robot.frame("left_sole")[1]):
        assert not array.flags.writeable
        assert array.flags.c_contiguous


def test_a_robot_can_be_pickled(robots):
    import pickle

    robot = robots["hrp2"]
    copy = pickle.loads(pickle.dumps(robot))
    q = robot.random_configuration(4)
    np.testing.assert_array_equal(copy.mass_matrix(q), robot.mass_matrix(q))
    assert not copy.tree.joint.flags.writeable
    assert copy.digest == robot.digest


def test_joint_torques_are_a_generalized_force_without_a_part_on_the_base(robots):
    rng = np.random.default_rng(5)
    for robot in robots.values():
        q, v, tau = robot.random_configuration(5), rng.standard_normal(robot.nv), rng.standard_normal(robot.n)
        whole = np.concatenate([np.zeros(6), tau])
        assert np.array_equal(robot.forward_dynamics(q, v, tau), robot.forward_dynamics(q, v, whole))
        batch = robot.forward_dynamics(np.tile(q, (3, 1)), v, np.tile(tau, (3, 1)))
        assert np.allclose(batch, robot.forward_dynamics(q, v, tau), rtol=1e-12)
