import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.core.algebra.minimum_jerk import turn
from mcplan.motion.limb_path import PatchOrientation, RotationTrajectory
from mcplan.motion.rotation import rotation_vector, vector_rates
from mcplan.motion.spline import PostureSpline


@pytest.mark.parametrize("size", [0.0, 1e-5, 0.3, 2.0])
def test_the_rates_of_a_rotation_vector_are_those_that_turn_it_so(size):
    rng = np.random.default_rng(8)
    phi, rate, bend = rng.normal(size=(3, 3))
    phi *= size / np.linalg.norm(phi)
    E, w, wd = np.empty((3, 3)), np.empty(3), np.empty(3)
    turn(np.array([phi, rate, bend]), np.eye(3), E, w, wd)
    found = vector_rates(phi, w, wd)
    np.testing.assert_allclose(found, [rate, bend], atol=1e-8)


def turn_rate(R_before, R_after, step):
    return rotation_vector(R_after @ R_before.T) / step


@pytest.mark.parametrize("size", [0.0, 1e-6, 5e-3, 1.2e-2, 0.3, 2.0, 3.1])
def test_angular_motion_of_the_exponential_is_that_of_its_rotation(size):
    rng = np.random.default_rng(7)
    axis = rng.normal(size=3)
    phi, rate, bend = size * axis / np.linalg.norm(axis), *rng.normal(size=(2, 3))

    def motion(t):
        E, w, wd = np.empty((3, 3)), np.empty(3), np.empty(3)
        turn(np.array([phi + t * rate + t * t / 2 * bend, rate + t * bend, bend]), np.eye(3), E, w, wd)
        return E, w, wd

    step = 1e-4  # truncation O(step²) of the central differences
    E, w, wd = motion(0.0)
    np.testing.assert_allclose(E, Rotation.from_rotvec(phi).as_matrix(), atol=1e-14)
    np.testing.assert_allclose(turn_rate(motion(-step)[0], motion(step)[0], 2 * step), w, atol=1e-7)
    np.testing.assert_allclose((motion(step)[1] - motion(-step)[1]) / (2 * step), wd, atol=1e-7)


def test_a_turn_leaves_with_the_given_motion_and_ends_at_rest():
    rng = np.random.default_rng(3)
    R0, R1 = Rotation.random(2, rng).as_matrix()
    w0, wd0 = rng.normal(size=(2, 3))
    turn = RotationTrajectory(R0, R1, 1.5, w0, wd0, start_time=2.0)
    for got, want in zip(turn.sample(2.0), (R0, w0, wd0), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-12)
    for got, want in zip(turn.sample(3.5 - 1e-9), (R1, 0 * w0, 0 * w0), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-6)


def test_from_rest_it_is_the_shortest_turn():
    R1 = Rotation.from_rotvec([0.0, 0.0, 2.0]).as_matrix()
    turn = RotationTrajectory(np.eye(3), R1, 1.0)
    assert np.linalg.norm(turn.phi.end) == pytest.approx(2.0)
    for t in np.linspace(0, 1, 9):
        vector = rotation_vector(turn.sample(t).value)
        np.testing.assert_allclose(vector[:2], 0.0, atol=1e-12)
        assert -1e-12 <= vector[2] <= 2.0 + 1e-12


def test_posture_velocities_move_the_posture():
    rng = np.random.default_rng(11)
    start, end = rng.normal(size=(2, 12))
    start[3:7] /= np.linalg.norm(start[3:7])
    end[3:7] /= np.linalg.norm(end[3:7])
    trajectory = PostureSpline.to_rest(start, end, 2.0, rng.normal(size=11), rng.normal(size=11), start_time=1.0)
    step = 1e-5
    for t in np.linspace(1.1, 2.9, 5):
        before, here, after = (trajectory.sample(t + k * step) for k in (-1, 0, 1))
        np.testing.assert_allclose((after.q[:3] - before.q[:3]) / (2 * step), here.v[:3], atol=1e-6)
        np.testing.assert_allclose((after.q[7:] - before.q[7:]) / (2 * step), here.v[6:], atol=1e-6)
        R0, R1 = (Rotation.from_quat(s.q[[4, 5, 6, 3]]).as_matrix() for s in (before, after))
        np.testing.assert_allclose(turn_rate(R0, R1, 2 * step), here.v[3:6], atol=1e-6)
        np.testing.assert_allclose((after.v - before.v) / (2 * step), here.vd, atol=1e-5)
        assert np.linalg.norm(here.q[3:7]) == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_allclose(trajectory.sample(9.0).q, end, atol=1e-15)


def test_the_orientation_of_a_patch_goes_from_any_start_to_that_of_its_posture(hrp2):
    """Its angular velocity and acceleration are those of its rotation; both turn, the rest of the start and the arm."""
    ends = [hrp2.random_configuration(seed) for seed in (1, 2)]
    posture = PostureSpline.to_rest(*ends, 2.0, start_time=1.0)
    start = Rotation.from_rotvec([0.6, -0.9, 0.4]).as_matrix() @ hrp2.frame_pose(ends[0], "left_hand")[:3, :3]
    turn = PatchOrientation(hrp2, "left_hand", posture).start_from(start)
    np.testing.assert_allclose(turn.sample(1.0).value, start, atol=1e-9)
    for t in (3.0 - 1e-9, 3.0, 4.0):
        np.testing.assert_allclose(turn.sample(t).value, hrp2.frame_pose(ends[1], "left_hand")[:3, :3], atol=1e-6)
    step = 1e-4
    for t in np.linspace(1.2, 2.8, 5):
        before, here, after = (turn.sample(t + k * step) for k in (-1, 0, 1))
        np.testing.assert_allclose(turn_rate(before.value, after.value, 2 * step), here.velocity, atol=1e-5)
        np.testing.assert_allclose((after.velocity - before.velocity) / (2 * step), here.acceleration, atol=1e-4)
