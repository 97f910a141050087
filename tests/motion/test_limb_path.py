import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.motion.limb_path import UNLIMITED_TIMING, LimbPath, Timing

NORMAL_A, NORMAL_B = np.array([0.0, 0.0, 1.0]), np.array([-0.6, 0.0, 0.8])


@pytest.fixture(params=[0.0, 0.4], ids=["sharp", "round"])
def path(request):
    start = np.eye(3), np.array([0.1, 0.2, 0.3])
    end = Rotation.from_rotvec([0.2, -0.4, 0.3]).as_matrix(), np.array([0.5, 0.25, 0.42])
    return LimbPath(start, end, 0.06 * NORMAL_A, 0.05 * NORMAL_B, Timing(share=request.param), start_time=1.0)


def test_it_begins_and_ends_at_rest_at_the_places_given(path):
    for t, (R, p) in ((1.0, (np.eye(3), [0.1, 0.2, 0.3])), (path.end_time, path.end)):
        sample = path.sample(t)
        np.testing.assert_allclose(sample.R, R, atol=1e-12)
        np.testing.assert_allclose(sample.p, p, atol=1e-12)
        np.testing.assert_allclose(sample.velocity, 0.0, atol=1e-12)
        np.testing.assert_allclose(sample.acceleration, 0.0, atol=1e-9)


def test_it_leaves_and_arrives_along_the_normals_without_turning(path):
    first = path.sample(1.0 + 0.5 * (path.swing_time - 1.0))
    assert first.velocity[:3] @ NORMAL_A == pytest.approx(np.linalg.norm(first.velocity))
    last = path.sample(path.approach_time + 0.2 * (path.end_time - path.approach_time))
    assert -(last.velocity[:3] @ NORMAL_B) == pytest.approx(np.linalg.norm(last.velocity))
    assert np.linalg.norm(last.velocity) > 1e-3


def test_it_is_smooth_and_its_derivatives_are_those_of_its_pose(path):
    step = 1e-5
    for t in np.linspace(1.01, path.end_time - 0.01, 40):
        before, here, after = (path.sample(t + k * step) for k in (-1, 0, 1))
        np.testing.assert_allclose((after.p - before.p) / (2 * step), here.velocity[:3], atol=1e-6)
        np.testing.assert_allclose((after.velocity - before.velocity) / (2 * step), here.acceleration, atol=2e-3)


def test_it_stays_on_the_outer_side_of_both_places(path):
    for t in np.linspace(1.0, path.end_time, 200):
        p = path.sample(t).p
        assert (p - [0.1, 0.2, 0.3]) @ NORMAL_A >= -1e-12


def test_speeds_keep_the_bounds():
    timing = Timing(speed=0.4, angular_speed=0.8)
    end = Rotation.from_rotvec([0.0, 0.0, 1.0]).as_matrix(), np.array([0.3, 0.0, 0.0])
    path = LimbPath((np.eye(3), np.zeros(3)), end, 0.05 * NORMAL_A, 0.05 * NORMAL_A, timing)
    samples = [path.sample(t) for t in np.linspace(0, path.duration, 400)]
    assert max(np.linalg.norm(s.velocity[:2]) for s in samples) <= 0.4 + 1e-9
    assert max(np.linalg.norm(s.velocity[3:]) for s in samples) <= 0.8 + 1e-9


@pytest.mark.parametrize("way", [-1.0, 1.0])
def test_a_limb_that_only_turns_does_so_as_fast_as_it_may(way):
    """Whatever it may do in metres per second."""
    end = Rotation.from_rotvec([0.0, 0.0, way]).as_matrix(), np.zeros(3)
    for speed in (0.1, 5.0):
        timing = Timing(speed=speed, angular_speed=0.8)
        path = LimbPath((np.eye(3), np.zeros(3)), end, np.zeros(3), np.zeros(3), timing)
        samples = [path.sample(t) for t in np.linspace(0, path.duration, 401)]
        assert max(np.linalg.norm(s.velocity[3:]) for s in samples) == pytest.approx(0.8)


def test_a_path_can_be_slowed_down_as_a_whole(path):
    slow = LimbPath((np.eye(3), np.zeros(3)), (np.eye(3), np.array([0.2, 0.0, 0.0])), 0.05 * NORMAL_A,
                    0.05 * NORMAL_A, least_duration=7.0)  # fmt: skip
    assert slow.duration == pytest.approx(7.0)
    np.testing.assert_allclose(slow.sample(7.0).p, [0.2, 0.0, 0.0], atol=1e-12)


def test_a_path_to_where_the_limb_is_takes_no_time_and_stays():
    path = LimbPath((np.eye(3), np.ones(3)), (np.eye(3), np.ones(3)), np.zeros(3), np.zeros(3), start_time=2.0)
    assert path.duration == 0.0
    for t in (1.0, 2.0, 3.0):
        np.testing.assert_array_equal(path.sample(t).p, np.ones(3))
        np.testing.assert_array_equal(path.sample(t).acceleration, np.zeros(6))


def test_corners_of_a_long_swing_are_round_where_lift_and_approach_take_a_share_of_it():
    """By how far along it is when it is up; a third of the lift, and of the approach, is along the normal alone."""
    ends = (np.eye(3), np.zeros(3)), (np.eye(3), np.array([1.0, 0.0, 0.0]))
    along = []
    for share in (0.0, 0.4):
        path = LimbPath(*ends, 0.05 * NORMAL_A, 0.05 * NORMAL_A, Timing(share=share), least_duration=4.0)
        assert path.duration >= 4.0
        samples = [path.sample(t).p for t in np.linspace(0.0, path.duration, 2001)]
        along.append(next(p[0] for p in samples if p[2] > 0.0499))
        for first, way in ((samples, 0.0), (samples[::-1], 1.0)):
            alone = max(p[2] for p in first if abs(p[0] - way) < 1e-9)
            assert alone > 0.05 / 3
    assert along[0] < 1e-3
    assert along[1] > 0.02


def test_what_is_moved_with_the_body_takes_as_long_as_that():
    start, end, none = (np.eye(3), np.zeros(3)), (np.eye(3), np.array([0.3, 0.0, 0.0])), np.zeros(3)
    path = LimbPath(start, end, none, none, UNLIMITED_TIMING, 1.0, 2.8)
    assert path.duration == 2.8
    np.testing.assert_allclose(path.sample(1.0 + 1.4).p, [0.15, 0.0, 0.0], atol=1e-12)
    assert LimbPath(start, end, none, none, UNLIMITED_TIMING, 0.0, 0.1).duration == 0.1
