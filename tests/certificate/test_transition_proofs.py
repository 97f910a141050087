"""What the proofs about transitions rest on: the curve, bounds of accelerations, the paths, the program of forces."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from mcplan.certificate.curve import SegmentCurve
from mcplan.certificate.independent import Mechanism
from mcplan.certificate.solids import ClearanceMonitor, gather_solids
from mcplan.certificate.transition_balance import Balance, balance_times
from mcplan.certificate.transition_checks import expected_path
from mcplan.certificate.transition_clearance import ACCURACY, acceleration_bounds, transition_clearance
from mcplan.certificate.transition_track import tracks_of
from mcplan.motion.limb_path import LimbPath, Timing
from mcplan.planning.transition.transition import SwingSpec
from mcplan.record.recording import record_robot
from mcplan.settings.control import LIMB_ANGULAR_SPEED_RAD_S
from mcplan.statics.feasibility import can_hold
from tests import shared
from tests.certificate.test_transition_forgeries import STEP, bump, joint, knot


@pytest.fixture(scope="module")
def plan():
    return shared.planned("step", control__pace="slow")


@pytest.fixture(scope="module")
def record(plan):
    return record_robot(plan.scenario.robot)


@pytest.fixture(scope="module")
def mechanism(record):
    return Mechanism(record)


@pytest.fixture(scope="module")
def track(plan):
    return next(track for track in tracks_of(plan)[0] if track.stance == STEP)


def same_base(q):
    """Configurations with quaternions on one side."""
    q = q.copy()
    q[:, 3:7] *= np.where(q[:, 3:4] < 0.0, -1.0, 1.0)
    return q


def test_the_curve_is_the_one_that_the_controller_follows(plan):
    for track in tracks_of(plan)[0]:
        times = np.linspace(-0.1, track.duration + 0.1, 57)
        theirs = np.array([track.segment.posture.sample(max(t, track.curve.times[0])).q for t in times])
        assert same_base(track.curve.sample(times)) == pytest.approx(same_base(theirs), abs=1e-12)


def test_bounds_of_the_curve_hold_and_are_not_far_off():
    rng = np.random.default_rng(1)
    times = np.cumsum(rng.uniform(0.05, 0.2, 12))
    q = rng.normal(size=(12, 10))
    q[:, 3:7] = [1.0, 0.0, 0.0, 0.0]
    curve, n = SegmentCurve(times, q), 400
    t = np.concatenate([np.linspace(a, b, n) for a, b in pairwise(times)])
    x = curve.sample(t)[:, 7:].reshape(-1, n, 3)
    lower, upper = curve.joint_range
    assert (x.min(axis=1) >= lower - 1e-12).all()
    assert (x.max(axis=1) <= upper + 1e-12).all()
    h = (np.diff(times) / (n - 1))[:, None]
    v = np.abs(np.diff(x, axis=1)).max(axis=1) / h
    a = np.abs(np.diff(x, n=2, axis=1)).max(axis=1) / h**2
    for found, bound in ((v, curve.max_speed[:, 6:]), (a, curve.max_acceleration[:, 6:])):
        assert (found <= bound * (1 + 1e-6)).all()
        assert (found >= 0.2 * bound).all()


def sweeping(track):
    """All joints turn by 2 rad, most of the time at one speed: what accelerates points is the turning alone."""
    q = np.tile(track.segment.q[0], (len(track.curve.times), 1))
    q[:, 7:] += np.linspace(0.0, 2.0, len(q))[:, None]
    return replace(track, curve=SegmentCurve(track.curve.times, q))


@pytest.mark.parametrize(("motion", "near"), [(lambda track: track, 0.5), (sweeping, 0.2)])
def test_no_point_of_a_link_accelerates_more_than_its_bound(track, record, mechanism, motion, near):
    """In the world and from the base, against finite differences; the bound is not many times too large either."""
    track, rng = motion(track), np.random.default_rng(2)
    reach = np.append(np.full(len(record.links), 0.3), 0.0)
    bounds = acceleration_bounds(record, [track], reach, [])
    times = track.curve.times
    n = 4001
    t = np.linspace(times[0], times[-1], n)
    h = t[1] - t[0]
    R, p = mechanism.poses(track.curve.sample(t))
    back = R[:, :1].transpose(0, 1, 3, 2)
    piece = np.clip(np.searchsorted(times, t[1:-1], side="right") - 1, 0, len(times) - 2)
    largest = []
    for bound, (turned, place) in zip(
        bounds, ((R, p), (back @ R, (back @ (p - p[:, :1])[..., None])[..., 0])), strict=True
    ):
        for link in range(len(record.links)):
            point = rng.normal(size=3)
            x = turned[:, link] @ (0.3 * point / np.linalg.norm(point)) + place[:, link]
            found = np.linalg.norm(x[2:] - 2 * x[1:-1] + x[:-2], axis=1) / h**2
            # differences that reach over a knot see a little of the next piece
            limit = np.maximum(bound[piece, link], bound[np.minimum(piece + 1, len(times) - 2), link])
            limit = np.maximum(limit, bound[np.maximum(piece - 1, 0), link])
            assert (found <= limit * (1 + 1e-3) + 1e-4).all()
            largest.append(float((found / np.maximum(limit, 1e-2)).max()))
    assert max(largest) > near


@pytest.mark.parametrize("bent", [(0.0, 0.0), (0.08, 0.04), (0.1, 0.05), (0.5, 0.0)])
def test_the_least_distance_is_that_of_a_dense_look(plan, record, mechanism, bent):
    """Of an honest motion, and of some in which legs come near each other, or meet, between two knots."""
    forged = plan
    for k, angle in enumerate(bent, start=12):
        forged = knot(forged, STEP, k, joint(plan, "RLEG_JOINT1"), angle)
    tracks = [track for track in tracks_of(forged)[0] if track.stance == STEP]
    found = transition_clearance(forged, record, mechanism, tracks)
    (track,) = tracks
    solids = gather_solids(plan.scenario.robot, record, plan.scenario.environment)
    watch = ClearanceMonitor(solids, 0.0)
    room = watch.allowed_overlap(frozenset((c.patch, c.support) for c in track.allowed_contacts))
    t = np.linspace(0.0, track.duration, 801)
    R, p = mechanism.poses(track.curve.sample(t))
    R = np.concatenate([R, np.broadcast_to(np.eye(3), (len(t), 1, 3, 3))], axis=1)
    p = np.concatenate([p, np.zeros((len(t), 1, 3))], axis=1)
    rooms = np.broadcast_to(room, (len(t), len(room)))
    watch.check_all(R, p, rooms, np.zeros_like(rooms), np.arange(len(t)))
    assert found.value >= watch.min_distance - ACCURACY
    assert found.passed == (watch.min_distance >= -1e-6)
    if found.passed:
        assert found.value <= watch.min_distance + ACCURACY


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_a_path_is_that_which_the_controller_takes(plan, track, mechanism, share):
    """From another code."""
    robot, settings = plan.scenario.robot, plan.scenario.transition_settings.updated({"timing.swing_blend": share})
    timing = Timing(settings.timing.limb_speed, LIMB_ANGULAR_SPEED_RAD_S, share=settings.timing.swing_blend)
    times = np.linspace(0.0, track.duration, 41)
    poses = [(X[:3, :3], X[:3, 3]) for X in (robot.frame_pose(track.segment.q[k], "right_sole") for k in (0, -1))]
    lift, approach = np.array([0, 0, 0.07]), np.array([0, 0, 0.05])
    path = LimbPath(*poses, lift, approach, timing, 0.0, track.duration)
    theirs = np.array([path.sample(t).p for t in times])
    course = SwingSpec("right_sole", "own", lift, approach)
    motion = mechanism.motion(track.curve.sample(times), patches=["right_sole"])
    assert expected_path(track, course, settings, motion, times) == pytest.approx(theirs, abs=1e-9)


def along(balance, track):
    """Times of a segment, and the balance there."""
    t = balance_times(track)
    motion = balance.mechanism.motion(track.curve.sample(t), patches=[contact.patch for contact in track.closed])
    return t, balance.along(track, t, motion)


def test_the_least_share_of_the_torques_is_what_the_planner_needs_too(plan, record, mechanism):
    """Its program, of friction pyramids with 8 faces, finds no forces with a smaller share, and some with a larger."""
    robot, balance, compared = plan.scenario.robot, Balance(record, mechanism), 0
    for track in tracks_of(plan)[0][:4]:
        times, held = along(balance, track)
        for t, here in list(zip(times, held, strict=True))[::5]:
            q = track.curve.sample(np.array([t]))[0]
            assert here.missing == 0.0
            assert not can_hold(robot, q, track.closed, 0.98 * here.share, exact=True)
            assert can_hold(robot, q, track.closed, 1.05 * here.share, exact=True)
            compared += 1
    assert compared == 12


def test_what_is_missing_is_what_a_foot_cannot_bear(plan, record, mechanism):
    """Robots that lean out of their foot: the farther, the more is missing, and where they do not, nothing is."""
    balance, missing = Balance(record, mechanism), []
    for lean in (0.0, 0.2, 0.3):
        (track,) = (x for x in tracks_of(bump(plan, STEP, [0], [lean]))[0] if x.stance == STEP)
        missing.append(max(held.missing for held in along(balance, track)[1]))
    assert missing[0] == 0.0
    assert 1.0 < missing[1] < missing[2]
