"""The reference tick is the problem of the definition, whichever form solves it."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from mcplan.bench.peers import Agreement, compare, world_acceleration
from mcplan.bench.reference_tick import ReferenceTick, TickDefinition, along_edges, without_armature
from mcplan.robot.robot_file import load_robot


@pytest.fixture(scope="module")
def robot():
    return without_armature(load_robot("hrp2"))


@pytest.fixture(scope="module")
def ticks(robot):
    return {compiled: ReferenceTick(robot, compiled=compiled) for compiled in (True, False)}


def test_compiled_and_plain_agree_along_the_motion(ticks):
    compiled, plain = ticks[True], ticks[False]
    for i in range(4):
        ours, theirs = compiled(1e-3 * i), plain(1e-3 * i)
        for a, b in zip(ours[:3], theirs[:3], strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6 * max(1.0, np.max(np.abs(b))))
        for tick in (compiled, plain):
            tick.v = tick.v + 1e-3 * ours[0]
            tick.q = tick.robot.integrate(tick.q, tick.v, 1e-3)


def test_the_answer_moves_the_robot_as_the_equation_of_motion_says(robot):
    tick = ReferenceTick(robot)
    q, v = tick.q.copy(), tick.v.copy()
    vd, tau, f, parts = tick(0.0)
    force = np.concatenate([np.zeros(6), tau])
    for k, contact in enumerate(tick.program.contacts):
        force += contact.force_map(tick.terms) @ f[12 * k : 12 * k + 12]
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, vd), force, atol=1e-5)
    weight = f.reshape(-1, 3)[:, 2].sum()
    assert weight == pytest.approx(robot.mass * 9.81, rel=0.01)
    assert np.all(np.abs(f.reshape(-1, 3)[:, :2]) <= 0.5 * f.reshape(-1, 3)[:, 2:] + 1e-9)
    assert np.all(np.abs(tau) <= robot.limits.torque)
    assert all(part > 0 for part in parts)


def test_the_centre_of_mass_sways_to_the_left(robot):
    tick = ReferenceTick(robot)
    start = tick.terms.com.copy()
    times = tick.run(250)
    assert times.total.shape == (250,)
    np.testing.assert_allclose(sum(times.parts.values()), times.total)
    assert 0.002 < tick.terms.com[1] - start[1] < 0.02 * np.sin(np.pi * 0.25)  # from rest, it lags behind
    np.testing.assert_allclose(tick.terms.com[[0, 2]], start[[0, 2]], atol=1e-3)


def test_the_references_are_derivatives_of_each_other():
    d, t, h = TickDefinition(), 0.3, 1e-5
    _, velocity, acceleration = d.reference(t)
    (before, slower, _), (after, faster, _) = d.reference(t - h), d.reference(t + h)
    np.testing.assert_allclose((after - before) / (2 * h), velocity, atol=1e-9)
    np.testing.assert_allclose((faster - slower) / (2 * h), acceleration, atol=1e-9)


def test_points_on_edges_start_at_the_corners_and_are_evenly_spread():
    corners = np.array([[0.0, 0, 0], [4, 0, 0], [4, 2, 0], [0, 2, 0]])
    points = along_edges(corners, 16)
    np.testing.assert_array_equal(points[::4], corners)
    np.testing.assert_allclose(points[1], [1, 0, 0])
    np.testing.assert_allclose(points[13], [0, 1.5, 0])
    with pytest.raises(ValueError, match="6 points on 4 edges"):
        along_edges(corners, 6)


def test_the_peers_base_acceleration_is_that_of_pinocchio(robot, tmp_path):
    """The same accelerations in both conventions give the same joint accelerations of a free fall with rotation."""
    rng = np.random.default_rng(6)
    from mcplan.bench.growth import plain_urdf

    path = tmp_path / "robot.urdf"
    path.write_text(plain_urdf(robot.description, robot.locked))
    model = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    q, v, tau = robot.random_configuration(rng), rng.standard_normal(robot.nv), rng.standard_normal(robot.nv)
    tau[:6] = 0
    order = [model.idx_vs[model.getJointId(name)] for name in robot.joint_names]
    Q, V, force = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
    R = pin.Quaternion(*q[3:7]).matrix()
    Q[:7] = [*q[:3], *q[4:7], q[3]]
    Q[np.array(order) + 1], V[:3], V[3:6] = q[7:], R.T @ v[:3], R.T @ v[3:6]
    V[order], force[order] = v[6:], tau[6:]
    theirs = pin.aba(model, model.createData(), Q, V, force)
    ours = robot.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(world_acceleration(q, v, theirs[:6]), ours[:6], rtol=1e-8, atol=1e-7)
    peer = {
        "base_local": theirs[:6].tolist(),
        "joints": dict(zip(robot.joint_names, theirs[order], strict=True)),
        "tau": dict(zip(robot.joint_names, tau[6:], strict=True)),
    }
    found = compare(robot.joint_names, q, v, ours, tau[6:], peer)
    assert found.holds
    assert found.torque == 0
    assert not compare(robot.joint_names, q, v, 1.001 * ours, tau[6:], peer).holds
    assert not Agreement(float("nan"), 0.0).holds


def test_the_definition_changes_the_problem(robot):
    heavy = ReferenceTick(robot, replace(TickDefinition(), force_weight=1e-2))
    assert not np.allclose(heavy(0.0)[0], ReferenceTick(robot)(0.0)[0], rtol=1e-3)
