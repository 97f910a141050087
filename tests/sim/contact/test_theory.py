"""Bodies in contact against what mechanics says about them."""

import numpy as np
import pytest

from mcplan.robot.description import Box, Cylinder, Sphere
from tests.sim.contact.worlds import G, World, plane, rotation, solid


def on_slope(angle, mu, velocity=0.0):
    R = rotation((0, 1, 0), angle)
    world = World([plane(angle, mu)], [solid(R=R, p=R @ [0, 0, 0.1])])
    world.v[:3] = velocity * R[:, 0]
    return world, R[:, 0]


@pytest.mark.parametrize("mu", [0.2, 0.5, 0.8])
def test_a_block_on_a_slope_slips_beyond_the_friction_angle_and_only_there(mu):
    limit = np.arctan(mu)
    world, down = on_slope(limit - 1e-4, mu)
    world.run(1.0)
    assert abs(world.q[:3] @ down) < 1e-6
    assert np.linalg.norm(world.v) < 1e-6
    world, down = on_slope(limit + 1e-3, mu)
    world.run(1.0)
    a = G * (np.sin(limit + 1e-3) - mu * np.cos(limit + 1e-3))
    # the distance after n steps of semi-implicit Euler is a t (t + dt) / 2
    np.testing.assert_allclose(world.q[:3] @ down, a * 1.0 * 1.001 / 2, rtol=1e-3)


@pytest.mark.parametrize("mu", [0.1, 0.4])
def test_a_sliding_block_stops_where_its_energy_ends(mu):
    world, _ = on_slope(0.0, mu, velocity=2.0)
    world.run(2.0 / (mu * G) + 0.2)
    # the sum over steps is short of the integral by half a step at the first speed
    np.testing.assert_allclose(world.q[0], 2.0**2 / (2 * mu * G), atol=2.0 * 1e-3)
    assert abs(world.q[1]) < 1e-9
    assert np.linalg.norm(world.v) < 1e-6


@pytest.mark.parametrize("mu", [0.4, 0.75])
def test_coulombs_law_settles_whichever_corners_press(mu):
    """A tall box slides, turns, and comes to rest: with the larger friction its rear corners press little."""
    world = World([plane(0.0, mu)], [solid(Box((0.8, 0.6, 1.0)), p=(0, 0, 0.5), mass=20.0)])
    world.v[:] = [1.0, 0.3, 0.0, 0.0, 0.0, 2.0]
    settled, steps = [], []

    def watch(world, _):
        settled.append(world.physics.converged)
        steps.append(world.physics.iterations)

    world.run(1.0, watch=watch)
    assert np.mean(settled) >= 0.999
    assert np.mean(steps) < 15
    assert np.linalg.norm(world.v) < 1e-6


@pytest.mark.parametrize(("over", "falls"), [(-0.01, False), (0.01, True)])
def test_a_box_tips_when_its_weight_passes_the_edge(over, falls):
    shape = Box((0.2, 0.2, 0.6))
    angle = np.arctan(0.2 / 0.6) + over
    R = rotation((0, 1, 0), angle)
    world = World([plane(angle, 2.0)], [solid(shape, R, R @ [0, 0, 0.3])])
    world.run(2.0)
    w, _, y, _ = world.q[3:]
    tilt = 2 * np.arctan2(y, w) - angle
    assert (abs(tilt) > 1.0) == falls
    if not falls:
        assert abs(tilt) < 1e-6


@pytest.mark.parametrize("e", [0.0, 0.5, 0.8])
def test_a_ball_bounces_with_the_stated_restitution(e):
    world = World([plane()], [solid(Sphere(0.1), p=(0, 0, 0.6))], restitution=e)
    speeds = []

    def watch(world, _):
        speeds.append(world.v[2])

    world.run(1.0, watch=watch)
    speeds = np.array(speeds)
    hits = np.flatnonzero(np.diff(speeds) > 0.05)
    assert len(hits)
    before, after = speeds[hits[0]], speeds[hits[0] + 1]
    if e > 0:
        np.testing.assert_allclose(after, -e * before, rtol=5e-4)  # the compliance is 1e-4
    else:
        # the rest of the gap is closed within the step, then it rests
        assert abs(speeds[-1]) < 1e-9
    np.testing.assert_allclose(before, -np.sqrt(2 * G * 0.5), atol=2 * G * 1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_an_impact_takes_the_energy_that_the_inertia_at_the_point_says(seed):
    """``dE = -1/2 rdot' Lambda rdot``, ``Lambda = (J M^-1 J')^-1`` (S1 eq. 3.67, 3.71), of a corner that sticks."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0.3, 0.6, 2)
    R = rotation((0, 1, 0), angle[0]) @ rotation((1, 0, 0), angle[1])
    shape = Box((0.3, 0.2, 0.1))
    corners = R @ (np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1) * [[0.15], [0.1], [0.05]])
    arm = corners[:, np.argmin(corners[2])]
    world = World([plane(0.0, 10.0)], [solid(shape, R, [0, 0, -arm[2]])])
    v = world.v
    v[:] = [*rng.uniform(-0.3, 0.3, 2), -1.0, *rng.uniform(-1, 1, 3)]
    mass, inertia = 2.0, R @ np.diag(world.physics.scene.body[-1, 6:9]) @ R.T
    M = np.block([[mass * np.eye(3), np.zeros((3, 3))], [np.zeros((3, 3)), inertia]])
    x, y, z = arm
    J = np.hstack([np.eye(3), -np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])])
    speed = J @ v
    expected = -0.5 * speed @ np.linalg.solve(J @ np.linalg.solve(M, J.T), speed)
    before = 0.5 * v @ M @ v
    world.run(1e-5, dt=1e-5)  # so short that gravity and turning do not count
    np.testing.assert_allclose(0.5 * world.v @ M @ world.v - before, expected, rtol=1e-3)


@pytest.mark.parametrize(("shape", "inertia"), [(Sphere(0.1), 0.4), (Cylinder(0.1, 0.3), 0.5)])
def test_what_is_round_rolls_without_slip_down_a_slope(shape, inertia):
    angle = 0.2
    R = rotation((0, 1, 0), angle)
    # a cylinder lies across the slope
    axis = R @ rotation((1, 0, 0), np.pi / 2)
    world = World([plane(angle, 0.5)], [solid(shape, axis, R @ [0, 0, 0.1])])
    world.run(1.0)
    a = G * np.sin(angle) / (1 + inertia)
    np.testing.assert_allclose(world.q[:3] @ R[:, 0], a * 1.001 / 2, rtol=2e-3)
    np.testing.assert_allclose(world.v[4] * 0.1, world.v[:3] @ R[:, 0], rtol=1e-5)


def test_a_ball_thrown_with_spin_slides_until_it_rolls():
    mu = 0.3
    world = World([plane(0.0, mu)], [solid(Sphere(0.1), p=(0, 0, 0.1))])
    world.v[0] = 2.0
    world.run(1.5)
    # m v0 = m v + I w / r and v = w r: v = 5/7 v0, whatever the friction
    np.testing.assert_allclose(world.v[0], 10 / 7, rtol=1e-3)
    np.testing.assert_allclose(world.v[4] * 0.1, world.v[0], rtol=1e-5)


@pytest.mark.parametrize("seed", range(6))
def test_a_thrown_box_never_gains_energy_and_comes_to_rest_on_the_plane(seed):
    rng = np.random.default_rng(seed)
    quat = rng.normal(size=4)
    world = World([plane(0.0, 0.6)], [solid(Box((0.3, 0.2, 0.1)), p=(0, 0, 0.8))], restitution=0.3 * (seed % 2))
    world.q[3:] = quat / np.linalg.norm(quat)
    world.v[:] = rng.normal(size=6) * [1, 1, 1, 6, 6, 6]
    energies = [world.energy()]

    def watch(world, outcome):
        energies.append(world.energy())

    world.run(4.0, watch=watch)
    scale = energies[0]
    assert np.max(np.diff(energies)) < 1e-3 * scale
    assert np.max(np.maximum.accumulate(energies) - energies[0]) < 1e-3 * scale
    np.testing.assert_allclose(world.v, 0.0, atol=1e-6)
    w, x, y, z = world.q[3:]
    up = np.abs([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)])
    resting = up @ [0.15, 0.1, 0.05]
    assert abs(world.q[2] - resting) < 1e-4


def test_a_tumbling_body_keeps_energy_and_angular_momentum():
    world = World([], [solid(Box((0.3, 0.2, 0.1)), p=(0, 0, 100))])
    world.v[3:] = [0.3, 12.0, 0.2]
    spin = []

    def watch(world, _):
        spin.append(world.energy() - 2.0 * G * world.q[2] - world.v[:3] @ world.v[:3])

    world.run(3.0, watch=watch)
    np.testing.assert_allclose(spin, spin[0], rtol=1e-3)


def test_soft_contact_sinks_by_weight_over_stiffness_and_damps_out():
    world = World([plane()], [solid(p=(0, 0, 0.12))], soft=True, stiffness=2e4, damping=200.0)
    world.run(3.0)
    np.testing.assert_allclose(0.1 - world.q[2], 2.0 * G / (4 * 2e4), rtol=1e-3)
    np.testing.assert_allclose(world.v, 0.0, atol=1e-6)


def test_a_soft_contact_holds_a_slope_without_creep():
    R = rotation((0, 1, 0), 0.3)
    world = World([plane(0.3, 0.5)], [solid(R=R, p=R @ [0, 0, 0.1])], soft=True, stiffness=2e4, damping=200.0)
    world.run(1.0)
    before = world.q[:3].copy()
    world.run(2.0)
    assert np.linalg.norm(world.q[:3] - before) < 1e-6


def test_two_runs_are_the_same_to_the_bit():
    def one():
        world = World([plane(0.0, 0.6)], [solid(Box((0.3, 0.2, 0.1)), p=(0, 0, 0.4))], restitution=0.2)
        world.v[:] = [0.4, -0.3, 0.0, 3.0, -2.0, 5.0]
        world.run(1.0)
        return np.concatenate([world.q, world.v])

    assert np.array_equal(one(), one())
