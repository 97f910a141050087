"""References and loads that phases command: limits that rise and sink, speeds within bounds, ends that are met."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.control.arrival import Arrivals
from mcplan.control.contact_detectors import TOUCH_FRACTION
from mcplan.control.controller import ROTATION_LEVER_M, WholeBodyController
from mcplan.control.criteria import Measurement, criterion_of
from mcplan.control.motion import Motion
from mcplan.control.phases import (
    COM_REST_SPEED_M_S,
    JOINT_REST_SPEED_RAD_S,
    SLIDE_ERROR_M,
    TOUCH_ERROR_M,
    TOUCH_SPEED_M_S,
    TOUCH_TIME_S,
    Approach,
    Lift,
    Load,
    Retract,
    Settle,
    Shift,
    Stand,
    Transport,
    Unload,
    height_over,
)
from mcplan.errors import SimulationFailed
from mcplan.motion.limb_path import HeldPose
from mcplan.motion.spline import PostureSpline
from mcplan.motion.time_parameterization import TimeParameterization
from mcplan.planning.timing.touchdown import touchdown_speed
from mcplan.planning.transition.finder import TransitionFinder
from mcplan.robot.description import Box
from mcplan.robot.patch import MOUNT
from mcplan.robot.robot_file import load_robot
from mcplan.scene.environment import Environment, FreeObject, Surface
from mcplan.scene.placement import make_contact
from mcplan.settings.control import ControlSettings
from tests import shared

SQUARE = np.array([[-2.0, -2], [2, -2], [2, 2], [-2, 2]])
FLOOR = Environment((Surface("floor", np.eye(3), np.zeros(3), SQUARE),))
SETTINGS = ControlSettings(timing={"unload_time": 0.4, "load_time": 0.6})


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2")


def sole(robot, patch, y, **options):
    return make_contact(robot, FLOOR, {"patch": patch, "surface": "floor", "x": 0.01, "y": y, "yaw": 0.0, **options})


@pytest.fixture
def standing(robot):
    motion = Motion(robot, FLOOR, SETTINGS, robot.posture("half_sitting"))
    for patch, y in (("right_sole", -0.095), ("left_sole", 0.095)):
        motion.close(sole(robot, patch, y), 0.0, 0.0)
    return motion


# -- loads ----------------------------------------------------------------------------------------------------------


def test_what_a_new_contact_may_carry_rises_smoothly_from_what_it_carries(robot, standing):
    standing.contacts.clear()
    standing.limbs["left_sole"] = standing.targets["left_sole"] = None
    standing.descending_patches.add("left_sole")
    standing.close(sole(robot, "left_sole", 0.095, max_force=300.0), 2.0, 0.5, 20.0)
    limit = standing.contacts["left_sole"].limit
    assert [limit.value(t) for t in (1.0, 2.0, 2.25, 2.5, 9.0)] == pytest.approx([20, 20, 160, 300, 300])
    assert np.all(np.diff([limit.value(t) for t in np.linspace(2.0, 2.5, 50)]) > 0.0)
    assert not standing.limbs
    assert not standing.targets
    assert not standing.descending_patches


def test_a_contact_may_carry_a_part_of_its_limit_and_no_more_than_twice_the_weight(robot):
    motion = Motion(robot, FLOOR, ControlSettings(contact={"force_fraction": 0.9}), robot.posture("half_sitting"))
    motion.close(sole(robot, "left_sole", 0.095, max_force=300.0), 0.0, 0.0)
    motion.close(sole(robot, "right_sole", -0.095), 0.0, 0.0)
    assert motion.contacts["left_sole"].full == pytest.approx(270.0)
    assert motion.contacts["right_sole"].full == pytest.approx(2 * robot.mass * 9.81)
    assert list(motion.contacts) == [name for name in robot.patches if name in motion.contacts]


def test_with_objects_that_it_handles_it_may_carry_twice_the_weight_of_these_too(robot):
    box = FreeObject("box", Box((0.2, 0.2, 0.2)), np.eye(3), np.array([1.0, 0.0, 0.1]), 300.0, 0.4)
    for handled in (0.0, 30.0):  # what only stands there does not count
        scene = replace(FLOOR, objects=(box,))
        motion = Motion(robot, scene, SETTINGS, robot.posture("half_sitting"), object_mass=handled)
        motion.close(sole(robot, "left_sole", 0.095), 0.0, 0.0)
        assert motion.contacts["left_sole"].full == pytest.approx(2 * (robot.mass + handled) * 9.81)


def test_a_fixed_base_bears_what_its_file_says_however_light_the_robot_is():
    arm = load_robot("arm7")
    motion = Motion(arm, FLOOR, ControlSettings(contact={"force_fraction": 0.9}), arm.posture("ready"))
    mount = SimpleNamespace(patch=MOUNT, max_force=1e4, points=np.zeros((1, 3)), kind="grasp")
    motion.close(mount, 0.0, 0.0)
    assert motion.contacts[MOUNT].full == pytest.approx(9e3)


def test_grips_are_relied_on_as_far_as_a_quick_motion_does_and_a_quarter_of_the_rest(robot):
    """More at once, less gradually."""
    settings = ControlSettings(pace={"force": 0.5}, contact={"force_fraction": 0.9}, timing={"load_time": 0.2})
    motion = Motion(robot, FLOOR, settings, robot.posture("half_sitting"))
    assert motion.grip_share(0.0) == 0.9
    motion.set_force_reserve(1.0, 1.0)
    assert [motion.grip_share(t) for t in (1.0, 1.1, 1.2, 9.0)] == pytest.approx([0.9, 0.75, 0.6, 0.6])
    motion.set_force_reserve(0.5, 10.0)
    assert motion.grip_share(10.0) == pytest.approx(0.7 + 0.25 * 0.2)
    motion.set_force_reserve(None, 11.0)
    assert motion.grip_share(11.0) == 0.9


def test_at_a_slow_pace_grips_are_relied_on_as_settings_say(robot):
    motion = Motion(robot, FLOOR, ControlSettings(contact={"force_fraction": 0.8}), robot.posture("half_sitting"))
    motion.set_force_reserve(None, 1.0)
    assert motion.grip_share(1.0) == motion.grip_share(5.0) == 0.8


def now(**values):
    """The present state as phases ask for it."""
    return SimpleNamespace(**{name: (lambda *_, value=value: value) for name, value in values.items()})


def test_a_contact_that_is_unloaded_sinks_from_its_load_to_nothing_then_opens(robot, standing):
    phase = Unload(1, "left_sole")
    assert phase.enter(standing, 3.0, now(load=250.0)) == SETTINGS.timing.unload_time
    limit = standing.contacts["left_sole"].limit
    assert [limit.value(t) for t in (3.0, 3.2, 3.4, 5.0)] == pytest.approx([250, 125, 0, 0])
    pose = (np.diag([1.0, -1.0, -1.0]), np.array([0.01, 0.095, 0.0]))
    phase.leave(standing, 3.5, now(pose=pose))
    assert list(standing.contacts) == ["right_sole"]
    assert standing.released["left_sole"].patch == "left_sole"
    held = standing.limbs["left_sole"].sample(4.0)
    assert held.p == pytest.approx(pose[1])
    assert held.velocity == pytest.approx(np.zeros(6))


def test_the_toes_of_a_foot_whose_sole_is_down_bear_nothing_until_the_sole_is_unloaded(robot, standing):
    toe = make_contact(robot, FLOOR, {"patch": "left_toe", "surface": "floor", "x": 0.14, "y": 0.095, "yaw": 0.0})

    def limits(*times):
        return [standing.contacts["left_toe"].limit.value(t) for t in times]

    standing.close(toe, 1.0, 0.4)
    full = standing.contacts["left_toe"].full
    assert limits(1.4, 2.0) == [0.0, 0.0]
    standing.unload("left_sole", 3.0, 0.4, 200.0)
    assert limits(3.0, 3.2, 3.4) == pytest.approx([0.0, 0.5 * full, full])
    standing.open("left_sole", 3.5)
    assert limits(4.0) == [full]
    standing.close(sole(robot, "left_sole", 0.095), 5.0, 0.2)
    assert limits(5.0, 5.1, 5.2) == pytest.approx([full, 0.5 * full, 0.0])
    assert standing.contacts["right_sole"].limit.value(9.0) == standing.contacts["right_sole"].full
    standing.unload("left_toe", 6.0, 0.2, 0.0)
    standing.open("left_toe", 6.3)
    standing.close(toe, 7.0, 0.4)
    assert limits(8.0) == [0.0]
    standing.close(toe, 9.0, 0.4)  # again, as it is
    assert limits(9.4) == [0.0]


def test_a_foot_whose_unloading_is_called_off_bears_as_before(robot, standing):
    """Its limit rises from where it is by then, its toes bear nothing again, and later calls leave it alone."""
    place = {"patch": "left_toe", "surface": "floor", "x": 0.14, "y": 0.095, "yaw": 0.0}
    standing.close(make_contact(robot, FLOOR, place), 0.0, 0.0)
    left, toe = standing.contacts["left_sole"], standing.contacts["left_toe"]
    standing.unload("left_sole", 1.0, 0.4, 300.0)
    assert (left.is_unloading, toe.limit.value(2.0)) == (True, toe.full)
    standing.reload(1.2, 0.5)
    assert not any(loaded.is_unloading for loaded in standing.contacts.values())
    assert [left.limit.value(t) for t in (1.2, 9.0)] == pytest.approx([150.0, left.full])
    assert toe.limit.value(9.0) == 0.0
    before = left.limit
    standing.reload(5.0, 0.5)
    assert left.limit is before


def test_a_patch_closes_where_it_touched_only_where_contacts_give(robot, standing):
    contact = sole(robot, "left_sole", 0.095)
    pose = (contact.R, contact.p + 0.004 * np.eye(3)[2])
    approach = Approach(1, contact)
    approach.leave(standing, 1.0, now(pose=pose, normal_force=30.0))
    assert standing.contacts["left_sole"].place is None
    assert standing.contacts["left_sole"].limit.value(1.0) == 0.0
    felt = Motion(robot, FLOOR, SETTINGS.under("contact"), robot.posture("half_sitting"))
    approach.leave(felt, 1.0, now(pose=pose, normal_force=30.0))
    assert felt.contacts["left_sole"].place[1] == pytest.approx(pose[1])
    limit = felt.contacts["left_sole"].limit
    assert [limit.value(t) for t in (1.0, 1.0 + SETTINGS.timing.load_time)] == pytest.approx(
        [30.0, felt.contacts["left_sole"].full]
    )
    most = felt.settings.contact.touch_depth + 0.01
    for off, fails in ((most - 1e-3, False), (most + 1e-3, True)):
        far = now(pose=(contact.R, contact.p - [0.0, 0.0, off]), normal_force=30.0)
        if fails:
            with pytest.raises(SimulationFailed, match="approach left_sole of stance 1 at t = 2 s: no contact"):
                approach.leave(felt, 2.0, far)
        else:
            approach.leave(felt, 2.0, far)


# -- speeds ---------------------------------------------------------------------------------------------------------


def shifted(robot, dx=0.0, dz=0.0, turn=0.0, **joints):
    q = robot.posture("half_sitting").copy()
    q[:3] += [dx, 0.0, dz]
    q[3:7] = (Rotation.from_euler("z", turn) * Rotation.from_quat(q[[4, 5, 6, 3]])).as_quat(scalar_first=True)
    for name, value in joints.items():
        q[7 + robot.joint_names.index(name)] += value
    return q


@pytest.mark.parametrize(
    ("goal", "key", "bound", "speed"),
    [
        ({"dz": -0.05}, "com_speed", 0.03, lambda v: np.linalg.norm(v[:3])),
        ({"turn": 0.3}, "trunk_speed", 0.1, lambda v: np.linalg.norm(v[3:6])),
        ({"RARM_JOINT3": 0.6}, "joint_speed", 0.2, lambda v: np.abs(v[6:]).max()),
    ],
)
def test_the_slowest_bound_sets_the_time_of_a_shift_and_is_reached(robot, standing, goal, key, bound, speed):
    q, contacts = shifted(robot, **goal), [loaded.contact for loaded in standing.contacts.values()]
    model = TransitionFinder(robot, FLOOR, ControlSettings(timing={key: bound})).durations
    duration = model.straight(robot.posture("half_sitting"), q, contacts)
    posture = PostureSpline.to_rest(robot.posture("half_sitting"), q, duration)
    most = max(speed(posture.sample(t).v) for t in np.linspace(0, duration, 801))
    assert most == pytest.approx(bound, rel=1e-3)


@pytest.mark.parametrize("height", [0.0, 0.4])
def test_a_shift_keeps_the_centre_of_pressure_within_a_part_of_its_room(robot, height):
    raised = Environment((Surface("floor", np.eye(3), np.array([0.0, 0.0, height]), SQUARE),))
    begin, q = shifted(robot, dz=height), shifted(robot, dx=0.04, dz=height)
    contacts = [
        make_contact(robot, raised, {"patch": patch, "surface": "floor", "x": 0.01, "y": y, "yaw": 0.0})
        for patch, y in (("right_sole", -0.095), ("left_sole", 0.095))
    ]
    speeds = dict.fromkeys(("timing.com_speed", "timing.joint_speed", "timing.trunk_speed"), 9.0)
    quick = SETTINGS.updated({"timing.min_shift_duration": 0.01, **speeds})
    finder = TransitionFinder(robot, raised, quick)
    duration = finder.durations.straight(begin, q, contacts)
    com, target = robot.com(begin), robot.com(q)
    acceleration = 10 / np.sqrt(3) * np.linalg.norm(target - com) / duration**2  # the largest of minimum jerk
    rooms = [finder.knots.com_inset(contacts, place) for place in (com, target)]
    allowed = min(0.6 * min(rooms), SETTINGS.contact.cop_margin)
    assert acceleration * (com[2] - height) / 9.81 == pytest.approx(allowed, rel=0.01)
    finder.durations.settings = quick.updated({"contact.cop_margin": 0.25 * allowed})
    assert finder.durations.straight(begin, q, contacts) == pytest.approx(2.0 * duration, rel=1e-6)


# -- ends of phases -------------------------------------------------------------------------------------------------

S = ControlSettings(pace="slow", timing={"phase_timeout": 3.0})
SETTLED = {"error": {"com": S.timing.com_tolerance}, "speed": {"com": COM_REST_SPEED_M_S}}
AT_REST = {"error": {"com": 0.0, "box": 0.0, "foot": 0.0}, "speed": {"com": 0.0, "joints": 0.0, "foot": 0.0}}


def ended(phase, settings, elapsed, duration=1.0, **measured):
    """Return what ends a phase whose references take ``duration`` s."""
    seen = {kind: AT_REST.get(kind, {}) | measured.get(kind, {}) for kind in ("error", "speed", "force")}
    return criterion_of(phase.until(settings), duration).evaluate(Measurement(elapsed, **seen))


FOOT = SimpleNamespace(patch="foot", kind="surface")
ENDS = {
    "shift": (Shift(0, None), SETTLED),
    "slide": (
        Transport(0, SimpleNamespace(objects={"box": None}), None, (), "slide"),
        {"error": {"com": S.timing.com_tolerance, "box": SLIDE_ERROR_M["rigid"]}, "speed": {"com": COM_REST_SPEED_M_S}},
    ),
    "unload": (Unload(0, "foot"), {"force": {"foot": S.contact.release_force}}),
    "unload while the body arrives": (
        Unload(0, "foot", ends_shift=True),
        {"force": {"foot": S.contact.release_force}, **SETTLED},
    ),
    "approach": (
        Approach(0, FOOT),
        {"error": {"foot": TOUCH_ERROR_M["rigid"]}, "speed": {"foot": TOUCH_SPEED_M_S["rigid"]}},
    ),
    "settle": (
        Settle(0),
        SETTLED | {"speed": {"com": COM_REST_SPEED_M_S, "joints": JOINT_REST_SPEED_RAD_S}},
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_phase_ends_when_all_that_it_waits_for_is_there_and_else_by_its_patience(name):
    phase, bounds = ENDS[name]
    at = {kind: {thing: 0.999 * bound for thing, bound in of.items()} for kind, of in bounds.items()}
    assert ended(phase, S, 1.0, **at).startswith("time and ")
    assert ended(phase, S, 0.99, **at) == ""
    for kind, of in bounds.items():
        for thing, bound in of.items():
            off = at | {kind: at[kind] | {thing: 1.01 * bound}}
            assert ended(phase, S, 1.0, **off) == ""
            assert ended(phase, S, 3.99, **off) == ""
            assert ended(phase, S, 4.0, **off) == "timeout"


@pytest.mark.parametrize("phase", [Load(0, "foot"), Retract(0, "foot", None), Lift(0, FOOT, None)])
def test_phases_that_only_take_time_end_with_it(phase):
    assert ended(phase, S, 0.99) == ""
    assert ended(phase, S, 1.0) == "time"


def test_the_first_phase_takes_its_own_time():
    settings = ControlSettings(timing={"start_time": 0.7})
    assert ended(Stand(0), settings, 0.69, duration=0.0) == ""
    assert ended(Stand(0), settings, 0.7, duration=0.0) == "time"


def test_where_touch_is_felt_a_force_that_lasts_ends_the_approach_and_the_place_does_not():
    settings = ControlSettings().under("contact")
    criterion = criterion_of(Approach(0, FOOT).until(settings), 1.0)
    force = {"foot": settings.contact.touch_force}
    above = {"foot": 1.01 * TOUCH_ERROR_M["compliant"]}
    less = {"foot": settings.contact.touch_force - 0.1}
    assert criterion.evaluate(Measurement(1.5, force=less, height=above, **AT_REST)) == ""
    assert criterion.evaluate(Measurement(1.6, force=force)) == ""
    assert criterion.evaluate(Measurement(1.6 + TOUCH_TIME_S, force=force)) == "force foot"


@pytest.mark.parametrize("short", ["force", "height", "speed", "time"])
def test_what_lies_at_rest_in_its_place_touches_with_a_part_of_the_force(short):
    settings = ControlSettings().under("contact")
    place = {"height": TOUCH_ERROR_M["compliant"], "speed": TOUCH_SPEED_M_S["compliant"]}
    values = {"force": TOUCH_FRACTION * settings.contact.touch_force, **place}
    at = {kind: (1.01 if kind == "force" else 0.99) * value for kind, value in values.items()}

    def ends(begin, **measured):
        criterion = criterion_of(Approach(0, FOOT).until(settings), 1.0)
        seen = {kind: {"foot": value} for kind, value in (at | measured).items()}
        return [criterion.evaluate(Measurement(begin + t, **seen)) for t in (0.0, TOUCH_TIME_S)]

    assert ends(1.5) == ["", "time and speed foot and above foot and force foot"]
    off = {} if short == "time" else {short: (0.99 if short == "force" else 1.01) * values[short]}
    assert ends(0.9 if short == "time" else 1.5, **off) == ["", ""]


def test_a_patch_comes_down_as_quickly_as_the_reserve_that_its_motion_keeps_lets_it():
    """Where it may be as quick as balance bears: each motion by its own law, whichever was asked about before."""
    planned = shared.planned("step", control__pace="fast")
    scenario = planned.scenario.replace(control={"pace": {"touchdown_speed": 3.0}})
    robot, settings = scenario.robot, scenario.control_in("contact")
    segment = next(s for s in planned.segments if any(c.target and not c.hold for c in s.courses))
    (course,) = (c for c in segment.courses if c.target and not c.hold)
    arrivals, found, old = Arrivals(robot, settings), [], segment.law
    for kept in (1.0, 0.0):
        law = TimeParameterization(old.times, old.path, old.rate, old.change, kept)
        found.append(arrivals.get(replace(course), course.target, replace(segment, law=law)).speed)
        most, q, closed = settings.timing.descent_speed, segment.q[-1], segment.contacts
        assert found[-1] == touchdown_speed(robot, q, closed, course.target, settings.pace, most, kept)
    assert settings.timing.descent_speed == 3.0
    assert 0.0 < 1.5 * found[1] < found[0] < 3.0


# -- measurements --------------------------------------------------------------------------------------------------


def test_a_patch_is_over_its_place_up_to_a_centimetre_beside_it():
    contact = SimpleNamespace(p=np.array([1.0, 2.0, 0.5]), normal=np.array([0.0, 0.6, 0.8]))
    along = np.array([0.0, 0.8, -0.6])
    for height in (0.03, -0.03):
        assert height_over(contact, contact.p + height * contact.normal + 0.009 * along) == pytest.approx(0.03)
    assert height_over(contact, contact.p + 0.011 * along) == np.inf


def test_errors_and_speeds_of_a_patch_count_its_turn_with_an_arm():
    made = WholeBodyController.__new__(WholeBodyController)
    turn = Rotation.from_rotvec([0.0, 0.3, 0.0]).as_matrix()
    frame = SimpleNamespace(velocity=np.array([0.3, 0.0, 0.4, 0.0, 2.0, 0.0]))
    path = HeldPose((turn, np.array([0.0, 0.05, 0.0])), 0.0)
    com = SimpleNamespace(sample=lambda t: SimpleNamespace(value=np.array([0.0, 0.0, 0.3])))
    made.terms = SimpleNamespace(
        frame=lambda name: frame, frame_values=lambda name: np.append(np.eye(3), np.zeros(3)), com=np.zeros(3),
        com_velocity=np.array([0.0, 0.2, 0.0]),
        v=np.r_[np.full(6, 9.0), 0.1, -0.7, 5.0],
    )  # fmt: skip
    made.motion, made._t, made._nv = SimpleNamespace(com=com, limbs={"hand": path}, objects={}), 0.0, 8
    assert made._error("com") == pytest.approx(0.3)
    assert made._error("hand") == pytest.approx(np.hypot(0.05, ROTATION_LEVER_M * 0.3))
    assert made._speed("com") == pytest.approx(0.2)
    assert made._speed("joints") == pytest.approx(0.7)
    assert made._speed("hand") == pytest.approx(np.hypot(0.5, ROTATION_LEVER_M * 2.0))
