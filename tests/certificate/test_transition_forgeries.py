"""Forged transitions: a line of the certificate says which stance and segment, what and by how much."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.certificate.independent import Mechanism
from mcplan.certificate.recomputed_run import RecomputedRun
from mcplan.certificate.transition_balance import Balance
from mcplan.certificate.transition_checks import transition_checks
from mcplan.certificate.transition_dynamics import dynamics
from mcplan.certificate.transition_track import tracks_of
from mcplan.motion.time_parameterization import TimeParameterization
from mcplan.planning.chain import with_timing
from mcplan.planning.transition.transition import SwingSpec
from mcplan.record.recording import record_robot
from tests import shared
from tests.sim.waving_box import waving_run

GO, STEP = 1, 2
"""The stance in which a foot lets go, and the one in which it comes down."""


@pytest.fixture(scope="module")
def step():
    """HRP-2 stands on two feet, on one, and on two again."""
    plan = shared.planned("step", control__pace="slow")
    return replace(plan, stances=plan.stances[:3])


@pytest.fixture(scope="module")
def box():
    """A box puts a finger on a wall."""
    return RecomputedRun(waving_run(40, touch=30)).plan


@pytest.fixture(scope="module")
def pushing():
    """HRP-2 up to the stance in which it has pushed a box."""
    plan = shared.planned("push")
    k = next(k for k, stance in enumerate(plan.stances) if stance.objects)
    return replace(plan, stances=plan.stances[: k + 1])


def found(plan):
    """Checks by the name of their line."""
    return {
        check.name.removeprefix("transition: "): check
        for check in transition_checks(plan, record_robot(plan.scenario.robot))
    }


def broken(plan):
    return {name for name, check in found(plan).items() if not check.passed}


def forged(plan, k, part=0, **changes):
    """The plan with other fields of a segment."""
    stance = plan.stances[k]
    segments = list(stance.transition.segments)
    segments[part] = replace(segments[part], **changes)
    return with_transition(plan, k, segments=tuple(segments))


def with_transition(plan, k, **changes):
    stances = list(plan.stances)
    stances[k] = replace(stances[k], transition=replace(stances[k].transition, **changes))
    return replace(plan, stances=tuple(stances))


def segment(plan, k, part=0):
    return plan.stances[k].transition.segments[part]


def bump(plan, k, at, by):
    """Knots of which some numbers are moved: most in the middle, not at the ends."""
    q = segment(plan, k).q.copy()
    share = np.linspace(0.0, 1.0, len(q))
    q[:, at] += np.outer(np.sin(np.pi * share) ** 4, np.atleast_1d(by)).reshape(q[:, at].shape)
    return with_knots(plan, k, q)


def with_knots(plan, k, q):
    return forged(plan, k, q=q, com=plan.scenario.robot.com(q))


def knot(plan, k, which, at, by):
    """One knot moved."""
    q = segment(plan, k).q.copy()
    q[which, at] += by
    return with_knots(plan, k, q)


def joint(plan, name):
    return 7 + plan.scenario.robot.joint_names.index(name)


def turning(plan, k, angle):
    """Knots whose base is turned about the vertical, most in the middle."""
    q = segment(plan, k).q.copy()
    for row, share in zip(q, np.linspace(0.0, 1.0, len(q)), strict=True):
        turn = Rotation.from_rotvec([0, 0, angle * np.sin(np.pi * share) ** 4])
        row[3:7] = (turn * Rotation.from_quat(row[3:7], scalar_first=True)).as_quat(scalar_first=True)
    return with_knots(plan, k, q)


def timed(plan, k, factor):
    return forged(plan, k, times=factor * segment(plan, k).times)


def course(plan, k, **changes):
    (first, *others) = segment(plan, k).courses
    return forged(plan, k, courses=(replace(first, **changes), *others))


def lifted(plan, factor):
    return course(plan, STEP, lift=factor * segment(plan, STEP).courses[0].lift)


def dragged(plan):
    """The foot follows the straight joint path, and its course has no lift."""
    old = segment(plan, STEP).q
    robot, shares = plan.scenario.robot, np.linspace(0.0, 1.0, len(old)) ** 2
    q = np.array([robot.integrate(old[0], robot.difference(old[0], old[-1]), share) for share in shares])
    q[:, joint(plan, "RLEG_JOINT3")] += 0.02 * np.sin(np.pi * np.linspace(0.0, 1.0, len(old)))
    contact = plan.stances[STEP].contact("right_sole")
    courses = (SwingSpec("right_sole", "body", np.zeros(3), np.zeros(3), True, contact),)
    return forged(plan, STEP, q=q, com=plan.scenario.robot.com(q), courses=courses)


def beyond(plan, name, side):
    """One joint beyond a limit between the ends."""
    at, robot = joint(plan, name), plan.scenario.robot
    limit = (robot.limits.lower if side < 0 else robot.limits.upper)[at - 7]
    middle = len(segment(plan, GO).q) // 2
    return bump(plan, GO, [at], [limit + side * 0.01 - segment(plan, GO).q[middle, at]])


def stances_but(plan, k, **changes):
    stances = list(plan.stances)
    stances[k] = replace(stances[k], **changes)
    return replace(plan, stances=tuple(stances))


def weak(plan, most):
    """The foot that stays bears no more than ``most`` (N): in the stances and in the motion between them."""
    for k in (GO, STEP):
        contacts = tuple(replace(c, max_force=most) if c.patch == "left_sole" else c for c in plan.stances[k].contacts)
        plan = stances_but(plan, k, contacts=contacts)
    return forged(plan, STEP, contacts=plan.stances[GO].contacts)


FORGERIES = {
    "no transition": (lambda p: stances_but(p, STEP, transition=None), "stances"),
    "swapped patch": (lambda p: with_transition(p, STEP, patch="left_sole"), "stances"),
    "course of another patch": (lambda p: course(p, STEP, patch="left_sole"), "stances"),
    "course of no patch": (lambda p: course(p, STEP, patch="tail"), "stances"),
    "no course": (lambda p: forged(p, STEP, courses=()), "stances"),
    "comes to no support": (lambda p: course(p, STEP, target=None), "stances"),
    "comes to another place": (
        lambda p: course(p, STEP, target=replace(p.stances[STEP].contact("right_sole"), p=np.array([1.0, 0, 0]))),
        "stances"),
    "only waits above it": (lambda p: course(p, STEP, hold=True), "stances"),
    "lifted sideways": (lambda p: course(p, STEP, lift=np.array([0.05, 0.0, 0.05])), "stances"),
    "approach from below": (lambda p: course(p, STEP, approach=np.array([0.0, 0.0, -0.05])), "stances"),
    "stands on nothing": (lambda p: forged(p, STEP, contacts=()), "stances"),
    "stands elsewhere": (
        lambda p: forged(p, STEP, contacts=(replace(p.stances[GO].contacts[0], p=np.array([0.0, 0.2, 0.0])),)),
        "stances"),
    "moves an object that there is not": (lambda p: forged(p, STEP, objects={"crate": np.zeros(7)}), "stances"),
    "no ramp": (lambda p: with_transition(p, STEP, ramp=0.0), "stances"),
    "a segment too many": (
        lambda p: with_transition(p, STEP, segments=2 * p.stances[STEP].transition.segments), "stances"),
    "times that fall": (lambda p: forged(p, STEP, times=segment(p, STEP).times[::-1]), "stances"),
    "times before the beginning": (lambda p: forged(p, STEP, times=segment(p, STEP).times - 0.1), "stances"),
    "not a number": (lambda p: forged(p, STEP, q=np.nan * segment(p, STEP).q), "stances"),
    "a knot too few": (lambda p: forged(p, STEP, q=segment(p, STEP).q[1:]), "stances"),
    "begins elsewhere": (lambda p: knot(p, STEP, 0, 7, 2e-4), "ends"),
    "begins elsewhere, the other direction": (lambda p: knot(p, STEP, 0, 0, -2e-4), "ends"),
    "ends elsewhere": (lambda p: knot(p, STEP, -1, 12, -2e-4), "ends"),
    "ends elsewhere, the other direction": (lambda p: knot(p, GO, -1, 12, 2e-4), "ends"),
    "centre of mass": (lambda p: forged(p, STEP, com=segment(p, STEP).com + np.array([0, 2e-6, 0])), "centre of mass"),
    "centre of mass, the other direction": (
        lambda p: forged(p, STEP, com=segment(p, STEP).com - [2e-6, 0, 0]), "centre of mass"),
    "moved knots": (lambda p: bump(p, STEP, [0], [0.008]), "contact place"),
    "moved knots, the other direction": (lambda p: bump(p, STEP, [1], [-0.008]), "contact place"),
    "one moved knot": (lambda p: knot(p, GO, 11, 0, 0.006), "contact place"),
    "turned knots": (lambda p: turning(p, GO, np.deg2rad(0.7)), "contact angle"),
    "turned knots, the other direction": (lambda p: turning(p, STEP, -np.deg2rad(0.7)), "contact angle"),
    "a lower lift": (lambda p: lifted(p, 0.5), "path"),
    "a higher lift": (lambda p: lifted(p, 1.5), "path"),
    "a lower approach": (
        lambda p: course(p, STEP, approach=0.5 * segment(p, STEP).courses[0].approach), "path"),
    "bent knee": (lambda p: bump(p, STEP, [joint(p, "RLEG_JOINT3")], [0.08]), "path"),
    "stretched knee": (lambda p: bump(p, STEP, [joint(p, "RLEG_JOINT3")], [-0.08]), "path"),
    "dragged": (dragged, "lift"),
    "dragged on its toes": (lambda p: bump(dragged(p), STEP, [joint(p, "RLEG_JOINT4")], [0.3]), "lift"),
    "dragged on its heel": (lambda p: bump(dragged(p), STEP, [joint(p, "RLEG_JOINT4")], [-0.3]), "lift"),
    "beyond the upper limit": (lambda p: beyond(p, "RARM_JOINT3", 1), "joint position"),
    "beyond the lower limit": (lambda p: beyond(p, "LARM_JOINT3", -1), "joint position"),
    "too fast": (lambda p: timed(p, STEP, 0.1), "velocity"),
    "leaning out": (lambda p: bump(p, STEP, [1], [-0.12]), "balance"),
    "leaning out, the other direction": (lambda p: bump(p, STEP, [0], [0.25]), "balance"),
    "more weight than the foot bears": (lambda p: weak(p, 500.0), "balance"),
    "an arm in the chest": (lambda p: bump(p, STEP, [joint(p, "RARM_JOINT1")], [0.9]), "clearance"),
    "legs crossed for a moment": (lambda p: knot(p, STEP, 12, joint(p, "RLEG_JOINT1"), 0.4), "clearance"),
    "down into the floor": (lambda p: bump(p, GO, [2], [-0.01]), "clearance"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_transition_is_caught_by_name(step, name):
    forge, line = FORGERIES[name]
    assert line in broken(forge(step))


WITHIN = {
    "ends": (lambda p: knot(p, STEP, -1, 12, 2e-5), "ends"),
    "centre of mass": (lambda p: forged(p, STEP, com=segment(p, STEP).com + np.array([0, 5e-7, 0])), "centre of mass"),
    "knots": (lambda p: bump(p, STEP, [0], [-0.003]), "contact place"),
    "turned": (lambda p: turning(p, GO, np.deg2rad(0.4)), "contact angle"),
    "lift": (lambda p: lifted(p, 1.05), "path"),
    "faster": (lambda p: timed(p, STEP, 0.8), "velocity"),
    "slower": (lambda p: timed(p, STEP, 3.0), "path"),
    "a foot that bears enough": (lambda p: weak(p, 700.0), "balance"),
    "an arm to the side": (lambda p: bump(p, STEP, [joint(p, "RARM_JOINT1")], [-0.3]), "clearance"),
}


@pytest.mark.parametrize("name", WITHIN)
def test_what_is_within_its_bound_passes(step, name):
    change, line = WITHIN[name]
    assert line not in broken(change(step))


def test_honest_transitions_pass(step, box):
    """And each line says where its worst value is."""
    for plan in (step, box):
        lines = found(plan)
        assert [name for name, check in lines.items() if not check.passed] == []
        assert "stance" in lines["contact place"].where
    assert 0.0 < found(step)["torque"].value < 1.0
    assert 0.0 < found(step)["clearance"].value < 0.1


@pytest.mark.parametrize(("limit", "line"), [("torque", "torque"), ("velocity", "velocity")])
def test_joints_that_are_too_weak_or_slow_are_caught_by_name(step, limit, line):
    """Those of a robot with a part of the limits: just less than what the worst joint needs, and just more."""
    record = record_robot(step.scenario.robot)
    need = found(step)[line].value
    for share, passes in ((0.97 * need, False), (1.03 * need, True)):
        weak = record.model_copy(update={limit: [share * value for value in getattr(record, limit)]})
        (check,) = (c for c in transition_checks(step, weak) if c.name == f"transition: {line}")
        assert check.passed == passes
        assert passes or "stance" in check.failure


def test_a_plan_of_one_stance_has_no_transitions(step):
    assert found(replace(step, stances=step.stances[:1])) == {}


@pytest.mark.slow
def test_hands_go_along_with_what_they_push(pushing):
    lines = found(pushing)
    assert lines["stances"].passed
    assert lines["contact place"].passed


def slide(plan):
    return len(plan.stances) - 1


SLIDES = {
    "moves no object": (lambda p: forged(p, slide(p), objects=None), "stances"),
    "moves it farther": (
        lambda p: forged(p, slide(p), objects={n: x + 1e-3 for n, x in segment(p, slide(p)).objects.items()}),
        "stances"),
    "hands that stay behind": (lambda p: late(p, 0.1), "contact place"),
    "hands that are ahead": (lambda p: late(p, -0.1), "contact place"),
}  # fmt: skip


def late(plan, share):
    """The robot goes a share of the time after the object, or before it."""
    k = slide(plan)
    times, q = segment(plan, k).times, segment(plan, k).q
    s = np.linspace(0.0, 1.0, len(times))
    at = s + share * np.sin(np.pi * s) ** 2
    moved = np.array([np.interp(at, s, column) for column in q.T]).T
    moved[:, 3:7] /= np.linalg.norm(moved[:, 3:7], axis=1, keepdims=True)
    return with_knots(plan, k, moved)


def test_what_moves_is_moved_by_a_contact_on_it(pushing):
    stances = [replace(s, contacts=tuple(replace(c, carrier=None) for c in s.contacts)) for s in pushing.stances]
    lines = found(replace(pushing, stances=tuple(stances)))
    assert "box moves, but no closed contact carries it" in lines["stances"].failure


@pytest.mark.parametrize("name", SLIDES)
def test_a_forged_slide_is_caught_by_name(pushing, name):
    forge, line = SLIDES[name]
    assert line in broken(forge(pushing))


@pytest.fixture(scope="module")
def fast(step):
    """The same plan, its motions with laws."""
    scenario = step.scenario.replace(control={"pace": "fast"})
    return replace(step, scenario=scenario, stances=with_timing(scenario, step.stances))


def replace_law(old, **changes):
    """Another law."""
    named = {name: getattr(old, name) for name in ("times", "path", "rate", "change", "kept")}
    return TimeParameterization(**(named | changes))


def law(plan, k, **changes):
    """The plan with another law of a segment."""
    return forged(plan, k, law=replace_law(segment(plan, k).law, **changes))


def quicker(plan, k, factor):
    """The same law in a part of its time."""
    old = segment(plan, k).law
    return law(plan, k, times=old.times / factor, rate=factor * old.rate, change=factor**2 * old.change)


def jerked(plan, k):
    """The middle of the law is gone in half its time."""
    old = segment(plan, k).law
    rate = np.where(np.abs(old.path / old.path[-1] - 0.5) < 0.3, 2.0, 1.0) * old.rate
    s = old.path
    times = np.append(0.0, np.cumsum(2.0 * np.diff(s) / (rate[1:] + rate[:-1])))
    return law(plan, k, times=times, rate=rate, change=0.0 * old.change)


LAWS = {
    "gone in two thirds of the time": (lambda p: quicker(p, STEP, 1.5), {"pace"}),
    "a shift gone in two thirds of the time": (lambda p: quicker(p, GO, 1.5), {"dynamic balance"}),
    "three times as quick": (lambda p: quicker(p, STEP, 3.0), {"dynamic balance", "pace"}),
    "quick in the middle": (lambda p: jerked(p, GO), {"dynamic balance"}),
    "a law of a path that is longer": (lambda p: law(p, GO, path=1.1 * segment(p, GO).law.path), {"stances"}),
    "a law that stands still": (lambda p: law(p, GO, rate=0.0 * segment(p, GO).law.rate), {"stances"}),
    "a law that goes back": (lambda p: law(p, GO, times=segment(p, GO).law.times[::-1]), {"stances"}),
    "not a number": (lambda p: law(p, GO, change=np.nan * segment(p, GO).law.change), {"stances"}),
    "more than all of the reserve": (lambda p: law(p, GO, kept=-0.5), {"stances"}),
    "more of the reserve than there is": (lambda p: law(p, GO, kept=1.5), {"stances"}),
}  # fmt: skip


@pytest.mark.parametrize("name", LAWS)
def test_a_forged_law_is_caught_by_name(fast, name):
    forge, lines = LAWS[name]
    assert lines <= broken(forge(fast))


def test_a_law_is_held_to_the_reserve_that_it_says_it_keeps(fast):
    """The less of it a motion keeps, the more it may take of torques, and of contacts on ice."""
    robot, settings = fast.scenario.robot, fast.scenario.transition_settings
    record = record_robot(robot)
    balance, given = Balance(record, Mechanism(record)), next(t for t in tracks_of(fast)[0] if t.stance == GO)
    icy = replace(given, closed=tuple(replace(contact, friction=0.03) for contact in given.closed))
    shares, lacks = [], []
    for kept in (1.0, 0.0):
        law = replace_law(given.segment.law, kept=kept)
        dry, slippery = (replace(t, segment=replace(t.segment, law=law)) for t in (given, icy))
        shares.append(max(sample.share for sample in dynamics(dry, balance, settings)))
        lacks.append(max(sample.missing for sample in dynamics(slippery, balance, settings)))
    assert shares[1] == pytest.approx(settings.pace.torque * shares[0])
    assert 0.0 < lacks[1] < 0.99 * lacks[0]


def test_honest_laws_pass_and_slower_ones_too(fast):
    assert broken(fast) == set()
    assert broken(quicker(quicker(fast, GO, 0.8), STEP, 0.8)) == set()
    assert {"dynamic balance", "dynamic torque", "pace"} <= found(fast).keys()


@pytest.mark.parametrize(("share", "holds"), [(1.0, True), (0.8, False)])
def test_near_its_support_a_foot_is_as_slow_as_it_may_touch_and_farther_off_it_need_not_be(fast, share, holds):
    course, law = segment(fast, STEP).courses[0], segment(fast, STEP).law
    t = np.linspace(0.0, law.duration, 4001)
    q = np.array([segment(fast, STEP).posture.sample(law.at(each)[0]).q for each in t])
    places = fast.scenario.robot.frame_pose(q, course.patch)[:, :3, 3]
    height = (places - course.target.p) @ course.target.normal
    speed = -np.diff(height) / np.diff(t)
    near = speed[height[:-1] < 0.01].max()
    assert speed.max() > 2.0 * near
    scenario = fast.scenario.replace(control={"pace": {"touchdown_speed": share * near}})
    assert ("pace" in broken(replace(fast, scenario=scenario))) != holds


def test_a_law_of_a_plan_that_is_to_be_slow_is_caught(fast, step):
    assert "stances" in broken(replace(fast, scenario=step.scenario))
