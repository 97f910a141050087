"""Pushes that are planned from start and goal alone."""

from dataclasses import replace

import numpy as np
import pytest

from mcplan.certificate.verify import verify
from mcplan.errors import InputError, PlanningFailed
from mcplan.planning import pushing
from mcplan.planning.planner import plan
from mcplan.planning.pushing import _displaced
from mcplan.robot.description import Box
from mcplan.scenario.load import load_scenario
from mcplan.scenario.schema import GoalItem
from mcplan.scene.environment import FreeObject, Surface


def asked(x, y=0.0, z=0.5, parameters=None, rpy=(0.0, 0.0, 0.0), **further):
    """The push without its hand-written sequence, with the box wanted elsewhere."""
    pose = {"xyz": [f"={x}+0*distance", y, z], "rpy": list(rpy)}  # a parameter has to be used
    goal = {"objects": {"box": pose}, **further}
    return load_scenario("push", {"stances": [], "goal": goal, **(parameters or {})})


@pytest.mark.slow
def test_a_push_is_planned_from_its_goal_alone():
    made = plan(load_scenario("push", {"stances": []}))
    report = verify(made)
    assert report.success, report.text()
    assert made.goal_reached
    strokes = [stance for stance in made.stances if stance.objects]
    x = [stance.objects["box"][0] for stance in strokes]
    assert x[-1] == pytest.approx(1.35)
    assert (np.diff(x) >= 0.0).all()
    # hands stay where they are on the box, and the feet follow it
    on_box = [s.contact(hand).p - s.objects["box"][:3] for s in strokes for hand in ("left_hand", "right_hand")]
    np.testing.assert_allclose(on_box, on_box[:2] * len(strokes), atol=1e-9)
    assert made.stances[-1].contact("left_sole").p[0] > made.stances[0].contact("left_sole").p[0] + 0.1


@pytest.mark.slow
def test_pushes_follow_each_other_from_where_the_object_is():
    items = [{"objects": {"box": {"xyz": [f"={x}+0*distance", 0, 0.5]}}} for x in (1.0, 1.15)]
    made = plan(load_scenario("push", {"stances": [], "goal": items}))
    report = verify(made)
    assert report.success, report.text()
    x = [stance.objects["box"][0] for stance in made.stances if stance.objects]
    assert (np.diff(x) >= 0.0).all()
    assert {1.0, 1.15} <= {round(value, 6) for value in x}
    assert [s.title for s in made.stances].count("add left_hand") == 2


def test_a_pose_with_the_other_sign_of_its_quaternion_moves_nothing():
    scene = load_scenario("push").environment
    (box,) = scene.objects
    for quaternion, moves in ((box.pose[3:], False), (-box.pose[3:], False), ([0.8, 0.0, 0.0, 0.6], True)):
        pose = {"xyz": box.p.tolist(), "quat_wxyz": list(map(float, quaternion))}
        assert bool(list(_displaced(scene, GoalItem.model_validate({"objects": {"box": pose}})))) == moves


def test_a_box_that_carries_another_one_is_not_pushed():
    box = load_scenario("push").environment.objects[0]
    crate = FreeObject("crate", Box((0.2, 0.2, 0.2)), xyz=np.add(box.p, [0.0, 0.0, 0.6]))
    lid = Surface("lid", size=(0.4, 0.4), xyz=np.add(box.p, [0.0, 0.0, 0.5]))
    scenario = load_scenario("push", {"stances": []})
    lower = replace(box, surfaces=(*box.surfaces, lid))
    stacked = scenario.replace(environment=replace(scenario.environment, objects=(lower, crate)))
    with pytest.raises(InputError, match="the object crate lies on the object box"):
        plan(stacked)


@pytest.mark.parametrize("order", [1, -1])
def test_a_goal_beside_pushes_is_refused_before_anything_is_searched(order, monkeypatch):
    items = [{"objects": {"box": {"xyz": ["=1.0+0*distance", 0, 0.5]}}}, {"base": {"xyz": [0.1, 0, 0.7]}}][::order]
    monkeypatch.setattr(pushing, "StanceSequence", None)
    with pytest.raises(PlanningFailed, match="asks for base: a goal that moves objects is planned as pushes alone"):
        plan(load_scenario("push", {"stances": [], "goal": items}))


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"x": 0.85, "z": 0.8}, "lifts none. Write the sequence"),
        ({"x": 0.85, "rpy": (0, 0, 0.4)}, "cannot slide to its goal"),
        ({"x": 0.85, "y": 0.4}, "no surface that faces against the push"),
        ({"x": 1.2, "com": [0.1, 0]}, "asks for com: a goal that moves objects"),
        ({"x": 1.6, "parameters": {"parameters.face": 0.9}}, "do not reach box_face from the start"),
    ],
)
def test_what_cannot_be_pushed_is_refused_with_the_reason(wanted, message):
    with pytest.raises(PlanningFailed, match=message):
        plan(asked(**wanted))
