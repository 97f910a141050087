"""Which contacts are those of a goal: the right patch on the right support, wherever the goal leaves the place open."""

from dataclasses import replace

import numpy as np
import pytest

from mcplan.planning.goal.item import COORDINATE_TOLERANCE, Goal, deviation, measure
from mcplan.robot.robot_file import load_robot
from mcplan.scenario.schema import GoalItem
from mcplan.scene.spec import ContactSpec
from tests.statics.contacts import surface_contact


def on(patch, support, **coordinates):
    """A contact of a patch with a support at these coordinates."""
    return replace(surface_contact(patch, np.zeros(3)), support=support, coordinates=coordinates)


def goal(*specs, **more):
    """A goal of contacts."""
    return Goal.of(GoalItem.model_validate({"contacts": list(specs), **more}))


PLACE = {"x": 0.3, "y": -0.2, "yaw": 0.4}


def test_only_the_support_that_is_asked_for_counts():
    """Whatever the coordinates are: the same place on another step is another place."""
    for given in (PLACE, {}):
        wanted = goal({"patch": "left_sole", "surface": "step", **given})
        assert wanted.is_met_by(on("left_sole", "step", **PLACE))
        assert not wanted.is_met_by(on("left_sole", "floor", **PLACE))
        assert not wanted.is_met_by(on("right_sole", "step", **PLACE))
    spec = ContactSpec.model_validate({"patch": "left_sole", "surface": "step", **PLACE})
    assert deviation(spec, "floor", PLACE) == np.inf
    assert deviation(spec, "step", PLACE) == 0.0


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("name", ["x", "y", "yaw"])
def test_the_deviation_is_that_of_the_worst_coordinate_whichever_way(name, sign):
    spec = ContactSpec.model_validate({"patch": "left_sole", "surface": "step", **PLACE})
    near = {key: value + 1e-3 for key, value in PLACE.items()}
    assert deviation(spec, "step", {**near, name: PLACE[name] + sign * 0.1}) == pytest.approx(0.1)
    wanted = goal({"patch": "left_sole", "surface": "step", **PLACE})
    for share, expected in ((0.9, True), (1.1, False)):
        moved = {**PLACE, name: PLACE[name] + sign * share * COORDINATE_TOLERANCE}
        assert wanted.is_met_by(on("left_sole", "step", **moved)) == expected


def test_a_whole_turn_is_none_and_half_a_turn_is_the_most():
    spec = ContactSpec.model_validate({"patch": "left_sole", "surface": "step", "yaw": 3.0})
    assert deviation(spec, "step", {"yaw": 3.0 - 2 * np.pi}) == pytest.approx(0.0, abs=1e-12)
    assert deviation(spec, "step", {"yaw": -3.0}) == pytest.approx(2 * np.pi - 6.0)
    assert deviation(spec, "step", {"yaw": 3.0 - np.pi + 1e-3}) == pytest.approx(np.pi - 1e-3)


@pytest.mark.parametrize("only", [False, True])
def test_all_contacts_are_needed_and_others_may_remain_where_it_does_not_say_only(only):
    specs = [{"patch": patch, "surface": "step"} for patch in ("left_sole", "right_sole")]
    wanted = goal(*specs, only=only)
    left, right, hand = on("left_sole", "step"), on("right_sole", "step"), on("left_hand", "rail")
    assert wanted.reached((left, right))
    assert not wanted.reached((left,))
    assert not wanted.reached((left, hand))
    assert not wanted.reached((left, on("right_sole", "floor")))
    assert wanted.reached((hand, right, left)) == (not only)


STATED = {"kind": "point", "friction": 0.4, "max_force": 20.0, "slide": ["x", "y"], "hinge": ["z"]}


@pytest.mark.parametrize("name", STATED)
def test_what_the_goal_states_of_a_contact_counts(name):
    spec = {"patch": "left_hand", "surface": "step", name: STATED[name]}
    robot, plain = load_robot("hrp2"), on("left_hand", "step", **PLACE)
    made = {k: v for k, v in STATED.items() if k in ("kind", "friction", "max_force")}
    as_stated = replace(plain, **made, options={k: v[::-1] for k, v in STATED.items() if isinstance(v, list)})
    for contact, met in ((plain, False), (as_stated, True)):
        assert goal(spec).is_met_by(contact) is met
        (reached,) = measure(goal(spec).item, robot, (contact,), robot.neutral(), {})
        assert reached.met is met
    lacking = f"contacts left_hand with {name} {STATED[name]} is not there"
    free = "contacts left_hand is not there"
    for contacts, said in (((plain,), lacking), ((), free), ((on("left_hand", "floor"),), free)):
        assert str(measure(goal(spec).item, robot, contacts, robot.neutral(), {})[0]) == said


def test_what_the_goal_does_not_state_of_a_contact_may_be_anything():
    limited = replace(on("left_hand", "step", **PLACE), kind="point", max_force=20.0, options={"slide": ["x"]})
    assert goal({"patch": "left_hand", "surface": "step"}).is_met_by(limited)
    assert goal({"patch": "left_hand", "surface": "step", "overhang": True}).is_met_by(limited)


@pytest.mark.parametrize(("off", "arrived"), [(0.049, True), (0.051, False)])
def test_a_base_without_a_tolerance_has_arrived_within_five_centimetres(off, arrived):
    robot = load_robot("hrp2")
    q = robot.posture("half_sitting")
    place = q[:3] + off * np.array([0.0, 0.6, -0.8])
    item = GoalItem.model_validate({"base": {"xyz": place.tolist()}})
    (reached,) = measure(item, robot, (), q, {})
    assert reached.met is arrived


def test_a_slide_that_is_off_its_posture_is_so_in_metres(telescopic):
    item = GoalItem.model_validate({"posture": "ready", "posture_tolerance": 0.01})
    for joint, unit in (("port_h_yaw", "m"), ("port_knee", "rad")):
        q = telescopic.posture("ready")
        q[7 + telescopic.joint_names.index(joint)] += 0.05
        (found,) = (one for one in measure(item, telescopic, (), q, {}) if one.thing == joint)
        assert (found.amount, found.unit) == (pytest.approx(0.05), unit)
