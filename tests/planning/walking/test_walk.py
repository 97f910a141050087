"""Dynamic walking: quicker than steps from rest to rest, certified, written and read, carried out."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import mcplan as mc
from mcplan.collision.model import CollisionModel
from mcplan.control.motion import Motion, blended_curves
from mcplan.control.phases import MAX_START_OFFSET, phases_of
from mcplan.errors import ScenarioError
from mcplan.motion.time_parameterization import TimedPath
from mcplan.planning.transition.transition import BoundaryState
from mcplan.planning.walking.gait import ACCELERATION_SHARE, swing_share
from mcplan.scenario.load import load_scenario
from tests import shared

PACE = {"pace": "fast", "walking": "dynamic"}


@pytest.fixture(scope="module")
def scenario():
    return load_scenario("walk", {"parameters.distance": 0.6})


@pytest.fixture(scope="module")
def walk(scenario):
    """HRP-2 walks 0.6 m without coming to rest."""
    return mc.plan(scenario.replace(control=PACE))


def seconds(plan):
    return sum(transition.duration for transition in plan.transitions)


def failures(plan):
    return {check.name: check.failure for check in mc.verify(plan).checks if not check.passed}


@pytest.mark.slow
def test_it_is_faster_than_steps_from_rest_to_rest_and_certified(scenario, walk):
    assert seconds(walk) < 0.8 * seconds(shared.planned("walk", parameters__distance=0.6, control__pace="fast"))
    report = mc.verify(walk)
    assert report.success, report
    assert {"transition: dynamic balance", "transition: pace"} <= {check.name for check in report.checks}
    passed = [stance.passing is not None for stance in walk.stances]
    assert passed == [False, *[True] * (len(passed) - 2), False]
    assert walk.scenario.planner.step == scenario.planner.step


def test_each_motion_knows_where_bodies_come_nearest_along_it(walk):
    """The nearest of all its postures, in which feet touch what they leave and come to."""
    scenario = walk.scenario
    model = CollisionModel(scenario.robot, scenario.environment)
    for before, stance in itertools.pairwise(walk.stances[:-1]):
        (segment,) = stance.transition.segments
        found = [model.smallest(q, contacts=(*before.contacts, *stance.contacts)) for q in segment.q]
        assert segment.near.distance == pytest.approx(min(one.distance for one in found), abs=1e-9)


def test_it_cannot_stand_still_on_one_foot(walk):
    """The centre of mass is outside of the sole that stands alone: at rest no forces hold the robot there."""
    robot = walk.scenario.robot
    outside = 0
    for stance in walk.stances:
        if stance.change == "remove":
            (contact,) = stance.contacts
            outside += np.abs((robot.com(stance.q) - contact.p) @ contact.R)[1] > contact.points[:, 1].max()
    assert outside >= 2


def test_a_motion_goes_on_where_the_one_before_has_ended(walk):
    segments = walk.segments
    assert segments[0].begin is None
    assert segments[-1].finish is None
    for before, after in itertools.pairwise(segments):
        ends = before.posture.sample(before.duration - 1e-9), after.posture.sample(1e-9)
        for x, y in zip(*ends, strict=True):
            np.testing.assert_allclose(x, y, atol=1e-5)
        centres = before.centre.sample(before.duration), after.centre.sample(0.0)
        np.testing.assert_allclose(centres[0].velocity, centres[1].velocity, atol=1e-9)
        assert np.linalg.norm(centres[0].velocity) > 0.1


def test_the_rates_of_its_centre_of_mass_are_those_of_its_postures(walk):
    robot = walk.scenario.robot
    segment, h = walk.segments[2], 1e-4
    com = [robot.com(segment.posture.sample(t).q) for t in (0.0, h, 2.0 * h)]
    np.testing.assert_allclose((-3 * com[0] + 4 * com[1] - com[2]) / (2 * h), segment.begin.velocity, atol=1e-5)
    np.testing.assert_allclose((com[0] - 2 * com[1] + com[2]) / h**2, segment.begin.acceleration, atol=0.02)


def test_a_file_brings_it_back(walk, tmp_path):
    mc.save_plan(walk, tmp_path / "walk.yaml")
    again = mc.load_plan(tmp_path / "walk.yaml")
    for before, after in zip(walk.segments, again.segments, strict=True):
        for end, other in ((before.begin, after.begin), (before.finish, after.finish)):
            assert (end is None) == (other is None)
            if end is not None:
                np.testing.assert_allclose(np.concatenate(end), np.concatenate(other), rtol=1e-12, atol=1e-12)
    assert not failures(again)
    mc.save_plan(again, tmp_path / "again.yaml")
    assert (tmp_path / "again.yaml").read_bytes() == (tmp_path / "walk.yaml").read_bytes()


@pytest.mark.parametrize(("key", "value"), [("pace", "fastest"), ("timing", {"com_speed": 0.3}), ("walking", "static")])
def test_it_cannot_be_retimed(walk, tmp_path, key, value):
    mc.save_plan(walk, tmp_path / "walk.yaml")
    with pytest.raises(ScenarioError, match=r"passed in motion.*plan the scenario again"):
        mc.load_plan(tmp_path / "walk.yaml", {f"control.{key}": value})


def test_a_plan_from_rest_to_rest_becomes_no_walk_when_it_is_read(tmp_path):
    mc.save_plan(shared.planned("walk", parameters__distance=0.6, control__pace="fast"), tmp_path / "steps.yaml")
    with pytest.raises(ScenarioError, match=r"control.walking: the plan comes to rest on each foot; plan the scenario"):
        mc.load_plan(tmp_path / "steps.yaml", {"control.walking": "dynamic"})


def test_how_high_the_floor_is_does_not_matter(scenario, walk):
    up, floor, base = 2.0, scenario.environment.surfaces[0], scenario.document.data["start"]["base"]["xyz"]
    raised = {
        "environment.surfaces[floor].pose.xyz": [*floor.p[:2].tolist(), up],
        "start.base.xyz": [*base[:2], base[2] + up],
        "control": PACE, "parameters.distance": 0.6,
    }  # fmt: skip
    higher = mc.plan(load_scenario("walk", raised))
    assert seconds(higher) == pytest.approx(seconds(walk), rel=1e-3)
    for one, other in zip(walk.segments, higher.segments, strict=True):
        np.testing.assert_allclose(other.com, np.add(one.com, [0, 0, up]), atol=1e-3)


def test_its_first_motion_is_not_replanned(walk):
    robot, start = walk.scenario.robot, walk.stances[0].q.copy()
    start[7 + robot.joint_names.index("HEAD_JOINT0")] += 0.5
    motion = Motion(robot, walk.scenario.environment, walk.scenario.control_in("contact"), start)
    shift = phases_of(walk)[1]
    segment = shift.segment
    assert motion.distance_to(segment, 0.0) > MAX_START_OFFSET
    shift.replan(motion, 0.0, SimpleNamespace(q=start, joint_rates=np.zeros(robot.n)))
    assert shift.segment is segment
    assert not motion.notices


@pytest.mark.parametrize(("rates", "message"), [("v: [0.0, 1.0]", "2 numbers, expected 34 finite"), ("", "v: missing")])
def test_invalid_rates_are_an_error(walk, tmp_path, rates, message):
    mc.save_plan(walk, tmp_path / "walk.yaml")
    lines = (tmp_path / "walk.yaml").read_text().splitlines()
    (k, *_) = [i for i, line in enumerate(lines) if line.startswith("    v: ")]
    last = next(i for i in range(k + 1, len(lines)) if lines[i].startswith("    vd"))
    lines[k:last] = [f"    {rates}"] if rates else []
    (tmp_path / "walk.yaml").write_text("\n".join(lines))
    with pytest.raises(ScenarioError, match=message):
        mc.load_plan(tmp_path / "walk.yaml")


def test_it_needs_a_pace_that_is_not_slow():
    with pytest.raises(ScenarioError, match=r"walking: dynamic. needs a pace other than"):
        load_scenario("walk", {"control.walking": "dynamic", "control.pace": "slow"})


# -- what the certificate says of plans that are wrong -----------------------------------------------------------------


def changed(plan, k, **changes):
    stances = list(plan.stances)
    stances[k] = replace(stances[k], **changes)
    return replace(plan, stances=tuple(stances))


def with_segment(plan, k, **changes):
    transition = plan.stances[k].transition
    segment = replace(transition.segments[0], **changes)
    return changed(plan, k, transition=replace(transition, segments=(segment,)))


def test_a_stance_passed_faster_than_its_motions_fails_the_certificate(walk):
    robot, stance = walk.scenario.robot, walk.stances[3]
    faster = BoundaryState.at(robot, stance.q, 1.2 * stance.passing.v, stance.passing.vd)
    found = failures(changed(walk, 3, passing=faster))
    assert "differs from that of its stance" in found["transition: stances"]
    found = failures(
        changed(walk, 3, passing=BoundaryState.at(robot, stance.q, stance.passing.v, 2.0 * stance.passing.vd))
    )
    assert "stance 3: forces do not balance" in found["force balance"]


def test_a_walk_that_stops_on_one_foot_falls(walk):
    found = failures(changed(walk, 3, passing=None))
    assert "stance 3" in found["force balance"]
    assert "transition: stances" in found


def test_a_plan_that_ends_in_motion_is_found(walk):
    ends = replace(walk, stances=walk.stances[:-1])
    assert "the plan ends in motion" in failures(ends)["transition: stances"]


def test_a_walk_that_is_too_fast_fails_the_certificate(walk):
    k = 4
    segment = walk.stances[k].transition.segments[0]
    law = segment.law
    quick = type(law)(law.times / 1.6, law.path, 1.6 * law.rate, law.change, law.kept)
    found = failures(with_segment(walk, k, law=quick))
    assert "velocity of" in found["transition: pace"] or "acceleration of" in found["transition: pace"]
    slow = type(law)(law.times * 1.6, law.path, law.rate / 1.6, law.change, law.kept)
    found = failures(with_segment(walk, k, law=slow))
    assert "cannot give the motion" in found["transition: dynamic balance"]


def test_what_begins_late_goes_on_where_it_would_be_by_then(walk):
    """The references do not go back to its beginning: the body would have to catch up with them at once."""
    scenario = walk.scenario
    settings = scenario.control.under("mujoco", scenario.robot.scale)
    swing, both = walk.segments[1:3]
    late, t = 0.02, swing.time + 0.02
    motion = Motion(scenario.robot, scenario.environment, settings, walk.stances[0].q)
    motion.posture, motion.com = TimedPath(swing.posture, swing.law, 0.0), TimedPath(swing.centre, swing.law, 0.0)
    before = motion.com.sample(t)
    motion.follow(both, t, None)
    after = motion.com.sample(t)
    np.testing.assert_allclose(after.value, before.value, atol=1e-12)
    np.testing.assert_allclose(after.velocity, before.velocity, atol=1e-9)
    assert motion.posture.end_time == pytest.approx(swing.time + both.time)
    end = motion.com.sample(swing.time + both.time)
    np.testing.assert_allclose(end.value, both.com[-1], atol=1e-9)
    np.testing.assert_allclose(end.velocity, both.finish.velocity, atol=1e-9)
    gone = motion.com.sample(t + 0.04).value - both.centre.sample(late + 0.04).value
    assert np.linalg.norm(gone) < 1e-3


def test_what_starts_from_the_references_follows_the_curves_made_before_the_run(walk):
    """A first tick of a motion has no time to make them; from elsewhere they begin elsewhere."""
    scenario, segment = walk.scenario, walk.segments[0]
    for offset, is_kept in ((0.0, True), (0.01, False)):
        q = walk.stances[0].q.copy()
        q[7] += offset
        motion = Motion(scenario.robot, scenario.environment, scenario.control_in("qp"), q)
        motion.rehearse(segment)
        prepared = motion.curves(segment)
        motion.follow(segment, 0.0, lambda patch: (np.eye(3), np.zeros(3)))
        assert (motion.posture.path is prepared[0]) == (motion.com.path is prepared[1]) == is_kept
        np.testing.assert_allclose(motion.posture.sample(0.0).q, q, atol=1e-9)


@pytest.mark.parametrize("off", [-1e-12, 0.0, 1e-12, 1e-3])
def test_what_begins_late_at_a_knot_is_as_smooth_as_elsewhere(walk, off):
    """Through a knot that would follow within a picosecond the curve would lead with any speed."""
    segment = walk.segments[1]
    late = float(segment.times[1]) - off
    begin, com = segment.posture.sample(late), segment.centre.sample(late)
    pushed = com._replace(value=com.value + 0.01)
    posture, centre = blended_curves(segment, (segment.posture, segment.centre), begin, pushed, 0.0, late)
    t = np.linspace(late, segment.duration, 200)
    assert max(np.abs(posture.sample(at).v).max() for at in t) < 2.0 * np.abs(segment.posture.sample(0.3).v).max()
    assert max(np.linalg.norm(centre.sample(at).velocity) for at in t) < 1.0
    np.testing.assert_allclose(centre.sample(segment.duration).value, segment.com[-1], atol=1e-9)


# -- carrying it out ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("physics", ["qp", "contact", pytest.param("mujoco", marks=pytest.mark.slow)])
def test_it_is_carried_out_without_coming_to_rest(walk, physics):
    run = mc.simulate(walk, physics=physics)
    report = mc.verify(run)
    assert report.success, report
    speed = np.linalg.norm(run.v[:, :2], axis=1)
    walking = (run.t > 1.2) & (run.t < run.t[-1] - 1.8)
    assert speed[walking].min() > 0.05
    assert run.t[-1] < seconds(walk) + 1.2


def test_a_foot_speeds_up_goes_evenly_and_slows_down():
    r = np.linspace(0.0, 1.0, 1001)
    s = np.array([swing_share(x) for x in r])
    assert s[0] == 0.0
    assert s[-1] == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(s + s[::-1], 1.0, atol=1e-12)
    speed = np.diff(s) / np.diff(r)
    assert np.all(speed > 0.0)
    middle = (r[:-1] > ACCELERATION_SHARE) & (r[1:] < 1.0 - ACCELERATION_SHARE)
    np.testing.assert_allclose(speed[middle], 1.0 / (1.0 - ACCELERATION_SHARE), rtol=1e-9)
    assert speed.max() <= 1.0 / (1.0 - ACCELERATION_SHARE) + 1e-9
