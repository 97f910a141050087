"""What a run records of its robot and its contacts: each number under its own name."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from mcplan.record.recording import _couplings, digest, record_contact, record_plan, record_robot
from mcplan.robot.robot_file import load_robot
from tests import shared
from tests.statics.contacts import grasp_contact, surface_contact


def test_limits_are_recorded_under_their_names():
    robot = load_robot("hrp2")
    record = record_robot(robot)
    for name in ("lower", "upper", "velocity", "torque"):
        np.testing.assert_array_equal(record.limit(name), getattr(robot.limits, name))
    assert record.coordinates == list(robot.joint_names)
    assert record.armature == list(robot.armature)


@pytest.mark.parametrize(
    ("name", "absent"), [("lower", -np.inf), ("upper", np.inf), ("velocity", np.inf), ("torque", np.inf)]
)
def test_a_limit_that_a_joint_does_not_have_is_never_reached(name, absent):
    robot = load_robot("hrp2")
    given = getattr(robot.limits, name).copy()
    given[[0, 5]] = absent
    record = record_robot(replace(robot, limits=replace(robot.limits, **{name: given})))
    np.testing.assert_array_equal(type(record).model_validate_json(record.model_dump_json()).limit(name), given)


def test_what_a_contact_bears_is_recorded_as_it_is():
    grasp = record_contact(grasp_contact("grip", [0.1, 0.2, 0.3], max_force=200.0, max_moment=20.0))
    assert (grasp.max_force, grasp.max_moment) == (200.0, 20.0)
    sole = record_contact(surface_contact("sole", [0.1, 0.2, 0.3], friction=0.4, max_force=900.0))
    assert (sole.friction, sole.max_force, sole.max_moment) == (0.4, 900.0, None)


def test_a_contact_on_an_object_is_recorded_with_where_the_object_is_in_its_stance():
    plan = shared.planned("push")
    environment = plan.scenario.environment
    (box,) = environment.objects
    support = next(name for name, owner in environment.owners.items() if owner == box.name)
    pushed = [box.pose[0] + 0.4, *box.pose[1:3], 0.0, 0.0, 0.0, 1.0]
    hand, sole = (surface_contact(patch, [0, 0, 1]) for patch in ("hand", "sole"))
    contacts = (replace(hand, support=support), sole)
    stances = [replace(plan.stances[0], contacts=contacts, objects=o) for o in ({}, {box.name: np.array(pushed)})]
    found = record_plan(replace(plan, stances=tuple(stances)))
    for stance, pose in zip(found.stances, (box.pose, pushed), strict=True):
        assert stance.contact("hand").carrier == box.name
        np.testing.assert_allclose(stance.contact("hand").carrier_pose, pose, atol=1e-12)
        assert stance.contact("sole").carrier is None


def test_the_digest_of_a_document_is_that_of_what_it_says_in_whatever_order():
    one = digest({"a": 1, "b": {"c": [1, 2], "d": 3}})
    assert digest({"b": {"d": 3, "c": [1, 2]}, "a": 1}) == one
    assert digest({"a": 1, "b": {"c": [2, 1], "d": 3}}) != one


@pytest.mark.parametrize("locked", [False, True])
def test_joints_that_mimic_a_joint_that_mimics_follow_the_first(locked):
    """third = 3 second + 0.3 and second = -2 first + 0.5: third = -6 first + 1.8; or all stand still with the first."""

    def joint(mimic=None):
        return SimpleNamespace(type="revolute", mimic=None if mimic is None else SimpleNamespace(**mimic))

    joints = {
        "first": joint(),
        "second": joint({"joint": "first", "multiplier": -2.0, "offset": 0.5}),
        "third": joint({"joint": "second", "multiplier": 3.0, "offset": 0.3}),
    }
    robot = SimpleNamespace(
        description=SimpleNamespace(joints=joints),
        joint_names=() if locked else ("first",),
        locked={"first": 0.4, "second": -0.3, "third": -0.6} if locked else {},
    )
    found = _couplings(robot)
    at = 0.4
    for name, position in (("first", 0.4), ("second", -0.3), ("third", -0.6)):
        coordinate, multiplier, offset = found[name]
        assert coordinate == (-1 if locked else 0)
        assert (offset if locked else multiplier * at + offset) == pytest.approx(position)
