import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.motion.limb_path import PatchOrientation
from mcplan.motion.spline import PostureSpline, Spline
from mcplan.robot.robot_file import load_robot

STEP = 1e-5


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2")


@pytest.fixture(scope="module")
def posture(robot):
    rng = np.random.default_rng(3)
    start = robot.posture("half_sitting")
    end = robot.integrate(start, 0.3 * rng.uniform(-1, 1, robot.nv), 1.0)
    straight, times = PostureSpline.to_rest(start, end, 1.5, start_time=0.5), np.linspace(0.5, 2.0, 13)
    knots = np.array([straight.sample(t).q for t in times])
    for q in knots[1:-1]:
        q[7:] += 0.05 * rng.normal(size=robot.n)
    return PostureSpline(times, knots)


def test_a_spline_passes_through_its_values_from_any_state_of_motion_to_rest():
    rng = np.random.default_rng(1)
    times, values = np.sort(rng.uniform(0, 3, 9)), rng.normal(size=(9, 4))
    velocity, acceleration = rng.normal(size=(2, 4))
    spline = Spline(times, values, (velocity, acceleration))
    np.testing.assert_allclose([spline.sample(t).value for t in times], values, atol=1e-9)
    first, last = spline.sample(times[0] + 1e-9), spline.sample(times[-1] - 1e-9)
    np.testing.assert_allclose((first.velocity, first.acceleration), (velocity, acceleration), atol=1e-4)
    np.testing.assert_allclose(last.velocity, 0.0, atol=1e-4)
    np.testing.assert_array_equal(spline.sample(times[-1] + 1.0).value, values[-1])


def test_a_spline_that_ends_in_motion_goes_on_at_its_last_velocity():
    rng = np.random.default_rng(4)
    times, values, finish = np.linspace(0.0, 1.0, 7), rng.normal(size=(7, 3)), rng.normal(size=(2, 3))
    spline = Spline(times, values, None, finish)
    last = spline.sample(1.0 - 1e-9)
    np.testing.assert_allclose((last.velocity, last.acceleration), finish, atol=1e-3)
    after = spline.sample(1.25)
    np.testing.assert_allclose(after.value, values[-1] + 0.25 * finish[0])
    np.testing.assert_array_equal(after.velocity, finish[0])
    np.testing.assert_array_equal(after.acceleration, 0.0)


def test_its_derivatives_are_continuous_across_the_pieces():
    rng = np.random.default_rng(2)
    spline = Spline(np.arange(8.0), rng.normal(size=(8, 3)))
    for knot in range(1, 7):
        before, after = spline.sample(knot - 1e-9), spline.sample(knot + 1e-9)
        for x, y in zip(before, after, strict=True):
            np.testing.assert_allclose(x, y, atol=1e-6)


def test_many_samples_are_those_of_one_time_after_the_other(posture):
    times = np.linspace(posture.start_time, posture.end_time, 30)[:-1]
    spline = Spline(np.linspace(0.5, 2.0, 9), np.random.default_rng(6).normal(size=(9, 3)), np.ones((2, 3)))
    for curve in (posture, spline):
        for many, single in zip(curve.samples(times), zip(*map(curve.sample, times), strict=True), strict=True):
            np.testing.assert_allclose(many, single, rtol=0.0, atol=1e-12)


def test_a_posture_spline_keeps_its_knots_and_its_velocity_is_that_of_its_postures(robot, posture):
    for t, q in zip(np.linspace(0.5, 2.0, 13), posture.knots, strict=True):
        np.testing.assert_allclose(robot.difference(posture.sample(t).q, q), 0.0, atol=1e-9)
    for t in np.linspace(0.6, 1.9, 7):
        before, here, after = (posture.sample(t + k * STEP) for k in (-1, 0, 1))
        np.testing.assert_allclose(robot.difference(before.q, after.q) / (2 * STEP), here.v, atol=1e-5)
        np.testing.assert_allclose((after.v - before.v) / (2 * STEP), here.vd, atol=1e-3)


def test_a_part_of_a_posture_spline_with_the_rates_at_its_ends_is_that_part(robot, posture):
    """Its base turns by a good deal from its first knot, so that rates of the rotation vector are others."""
    times = np.linspace(0.8, 1.7, 19)
    samples = [posture.sample(t) for t in times]
    ends = [(sample.v, sample.vd) for sample in (samples[0], samples[-1])]
    part = PostureSpline(times, np.array([sample.q for sample in samples]), *ends)
    for t in np.linspace(0.8, 1.7 - 1e-9, 40):
        here, there = part.sample(t), posture.sample(t)
        off = robot.difference(here.q, there.q)
        np.testing.assert_allclose(off[:6], 0.0, atol=1e-6)
        np.testing.assert_allclose(off[6:], 0.0, atol=1e-3)  # its knots are elsewhere, and joints go to and fro
        np.testing.assert_allclose(here.v[:6], there.v[:6], atol=1e-4)
    on = part.sample(1.9)
    np.testing.assert_allclose(on.q, robot.integrate(samples[-1].q, samples[-1].v, 0.2), atol=1e-12)
    np.testing.assert_array_equal(on.v, samples[-1].v)


def test_a_posture_spline_of_a_turned_robot_is_the_turned_spline(robot, posture):
    """Which way the robot faces in the world changes nothing about how it moves."""
    turn = Rotation.from_rotvec([0.0, 0.0, 1.3])

    def turned(q):
        base = turn * Rotation.from_quat(q[3:7], scalar_first=True)
        return np.r_[turn.apply(q[:3]), base.as_quat(scalar_first=True), q[7:]]

    other = PostureSpline(np.linspace(0.5, 2.0, 13), np.array([turned(q) for q in posture.knots]))
    for t in np.linspace(0.5, 2.0, 14):
        here, there = posture.sample(t), other.sample(t)
        np.testing.assert_allclose(robot.difference(turned(here.q), there.q), 0.0, atol=1e-9)
        np.testing.assert_allclose(turn.apply(here.v[3:6]), there.v[3:6], atol=1e-9)


def test_a_patch_turns_from_where_it_is_to_where_its_posture_has_it(robot, posture):
    X0, X1 = (robot.frame_pose(q, "left_sole")[:3, :3] for q in (posture.start, posture.end))
    tilted = robot.frame_pose(robot.integrate(posture.start, 0.02 * np.ones(robot.nv), 1.0), "left_sole")[:3, :3]
    turn = PatchOrientation(robot, "left_sole", posture).start_from(tilted)
    assert np.linalg.norm(tilted - X0) > 0.01
    np.testing.assert_allclose(turn.sample(0.5).value, tilted, atol=1e-12)
    np.testing.assert_allclose(turn.sample(2.0).value, X1, atol=1e-12)
    for t in np.linspace(0.6, 1.9, 7):
        before, here, after = (turn.sample(t + k * STEP) for k in (-1, 0, 1))
        spin = (after.value - before.value) / (2 * STEP) @ here.value.T
        np.testing.assert_allclose([spin[2, 1], spin[0, 2], spin[1, 0]], here.velocity, atol=1e-6)
        np.testing.assert_allclose((after.velocity - before.velocity) / (2 * STEP), here.acceleration, atol=1e-3)
