"""Forged plans: a line of the certificate says which stance, what and by how much."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.certificate.recomputed_run import RecomputedRun
from mcplan.certificate.verify import verify
from mcplan.planning.chain import with_transitions
from mcplan.record.recording import record_robot
from tests.certificate.forging import asking, broken
from tests.sim.waving_box import waving_run

SOLE, TIP = 0, 1
DEG = float(np.deg2rad(1.0))


@pytest.fixture(scope="module")
def runs():
    made = {tip: waving_run(40, touch=30, tip=tip) for tip in ("point", "grasp", "edge")}
    made["overhang"] = waving_run(40, touch=30, overhang=0.05)
    made["crate"] = waving_run(40, touch=30, crate=True)
    return made


@pytest.fixture(scope="module")
def plans(runs):
    return {kind: RecomputedRun(run).plan for kind, run in runs.items()}


@pytest.fixture(scope="module")
def plan(plans):
    return plans["point"]


def test_the_honest_plans_pass(plans):
    assert {kind: broken(plan) for kind, plan in plans.items()} == {kind: set() for kind in plans}
    report = verify(plans["point"])
    assert report.values["goal_reached"]
    assert [item["reached"] for item in report.goals] == [True, True]


def stance(plan, k, **changes):
    stances = list(plan.stances)
    stances[k] = replace(stances[k], **changes)
    return replace(plan, stances=tuple(stances))


def contact(plan, k, which, **changes):
    contacts = list(plan.stances[k].contacts)
    contacts[which] = replace(contacts[which], **changes)
    return stance(plan, k, contacts=tuple(contacts))


def shifted(plan, which, by):
    """A contact of the last stance is recorded elsewhere."""
    return contact(plan, 1, which, p=plan.stances[1].contacts[which].p + np.array(by))


def posture(plan, k, at, by):
    q = plan.stances[k].q.copy()
    q[at] += by
    return stance(plan, k, q=q)


def turned(R, x=0.0, y=0.0, z=0.0):
    return Rotation.from_rotvec([x, y, z]).as_matrix() @ R


def all_moved(plan, by):
    """Robot and contacts together, away from what they were on."""
    for k, s in enumerate(plan.stances):
        plan = posture(plan, k, slice(3), by)
        plan = stance(plan, k, contacts=tuple(replace(c, p=c.p + by) for c in s.contacts))
    return plan


def all_turned(plan, rotation):
    """The sole's contacts, turned with the robot in both stances."""
    R = Rotation.from_rotvec(rotation)
    for k, s in enumerate(plan.stances):
        q = s.q.copy()
        sole = s.contacts[SOLE]
        q[:3] = sole.p + R.apply(q[:3] - sole.p)
        q[3:7] = (R * Rotation.from_quat(q[3:7], scalar_first=True)).as_quat(scalar_first=True)
        plan = stance(contact(plan, k, SOLE, R=R.as_matrix() @ sole.R), k, q=q)
    return plan


def wrench(plan, k, patch, values):
    return stance(plan, k, wrenches=plan.stances[k].wrenches | {patch: np.array(values, float)})


def effort(plan, joint, value):
    tau = plan.stances[1].tau.copy()
    tau[joint] = value
    return stance(plan, 1, tau=tau)


def gripped(plan, values):
    """The grasp carries something, in a stance that both of its neighbours share it with."""
    last = plan.stances[1]
    held = replace(last, change="shift", moved=None, wrenches=last.wrenches | {"tip": np.array(values, float)})
    return replace(plan, stances=(*plan.stances, held))


FORGERIES = {
    "contact moved": ("point", lambda p: shifted(p, TIP, [0, 2e-4, 0]), "contact place"),
    "contact moved back": ("point", lambda p: shifted(p, TIP, [0, -2e-4, 0]), "contact place"),
    "sole moved": ("point", lambda p: posture(p, 0, 0, 2e-4), "contact place"),
    "sole turned": (
        "point", lambda p: contact(p, 0, SOLE, R=turned(p.stances[0].contacts[SOLE].R, z=0.2 * DEG)), "contact angle"),
    "sole turned back": (
        "point", lambda p: contact(p, 0, SOLE, R=turned(p.stances[0].contacts[SOLE].R, z=-0.2 * DEG)), "contact angle"),
    "grasp turned": (
        "grasp", lambda p: contact(p, 1, TIP, R=turned(p.stances[1].contacts[TIP].R, y=0.2 * DEG)), "contact angle"),
    "edge turned": (
        "edge", lambda p: contact(p, 1, TIP, R=turned(p.stances[1].contacts[TIP].R, x=0.2 * DEG)), "contact angle"),
    "all of it in the air": ("point", lambda p: all_moved(p, [0, 0, 2e-4]), "contacts on their supports"),
    "all of it in the ground": ("point", lambda p: all_moved(p, [0, 0, -2e-4]), "contacts on their supports"),
    "beside the floor": ("point", lambda p: all_moved(p, [0, 1.9, 0]), "contacts on their supports"),
    "off the overhang": ("overhang", lambda p: all_moved(p, [0.56, 0, 0]), "contacts on their supports"),
    "grasp off its bar": ("grasp", lambda p: all_moved(p, [2e-4, 0, 0]), "contacts on their supports"),
    "standing askew": ("point", lambda p: all_turned(p, [0.2 * DEG, 0, 0]), "contacts on their supports, angle"),
    "standing askew, the other direction": (
        "point", lambda p: all_turned(p, [0, -0.2 * DEG, 0]), "contacts on their supports, angle"),
    "start moved": ("point", lambda p: all_moved(p, [2e-4, 0, 0]), "start: contacts"),
    "start turned": ("point", lambda p: all_turned(p, [0, 0, 0.2 * DEG]), "start: contacts, angle"),
    "friction out of nowhere": ("point", lambda p: contact(p, 0, SOLE, friction=0.8), "friction of the supports"),
    "friction that is not in the scenario": (
        "point", lambda p: contact(p, 0, SOLE, friction=0.8, options={"friction": 0.8}),
        "contacts as the scenario has them"),
    "less friction than the start has": (
        "point", lambda p: contact(p, 0, SOLE, friction=0.6, options={"friction": 0.6}),
        "contacts as the scenario has them"),
    "a hand that may slide": (
        "point", lambda p: contact(p, 1, TIP, options={"slide": ["x"]}), "contacts as the scenario has them"),
    "an overhang that is not repeated": (
        "overhang", lambda p: contact(p, 0, SOLE, options={}), "contacts as the scenario has them"),
    "a crate elsewhere at the start": (
        "crate", lambda p: stance(p, 0, objects={"crate": np.array([1.6, 1.0, 0.1, 1.0, 0, 0, 0])}),
        "transition: stances"),
    "a crate in the air": (
        "crate", lambda p: stance(p, 1, objects={"crate": np.array([1.5, 1.0, 0.4, 1.0, 0, 0, 0])}), "objects: held"),
    "no such support": ("point", lambda p: contact(p, 0, SOLE, support="carpet"), "contacts on their supports"),
    "sole moved without a step": ("point", lambda p: shifted(p, SOLE, [0, -2e-4, 0]), "kept contacts"),
    "sole turned without a step": (
        "point", lambda p: contact(p, 1, SOLE, R=turned(p.stances[1].contacts[SOLE].R, z=-2e-4)), "kept contacts"),
    "two changes at once": (
        "point", lambda p: stance(p, 1, contacts=p.stances[1].contacts[1:]), "kept contacts"),
    "last stance gone": ("point", lambda p: replace(p, stances=p.stances[:1]), "item 2 of 2: contacts"),
    "first stance gone": ("point", lambda p: replace(p, stances=p.stances[1:]), "start: no other contacts"),
    "backwards": ("point", lambda p: replace(p, stances=p.stances[::-1]), "item 2 of 2: contacts"),
    "torque more": ("point", lambda p: effort(p, 1, p.stances[1].tau[1] + 2e-6), "force balance"),
    "torque less": ("point", lambda p: effort(p, 1, p.stances[1].tau[1] - 2e-6), "force balance"),
    "torque beyond": ("point", lambda p: effort(p, 0, 60.1), "torque"),
    "torque beyond, backwards": ("point", lambda p: effort(p, 0, -60.1), "torque"),
    "upper limit": ("point", lambda p: stance(p, 1, q=np.append(p.stances[1].q[:7], [2.001, 0.0])), "position"),
    "lower limit": ("point", lambda p: stance(p, 1, q=np.append(p.stances[1].q[:7], [0.0, -2.001])), "position"),
    "weightless": ("point", lambda p: wrench(p, 0, "sole", 0.9 * p.stances[0].wrenches["sole"]), "force balance"),
    "turning moment": (
        "point", lambda p: wrench(p, 0, "sole", p.stances[0].wrenches["sole"] + 1e-5 * np.eye(6)[5]), "force balance"),
    "beyond the sole": (
        "point", lambda p: wrench(p, 0, "sole", [0, 0, 300, 0, 95.0, 0]), "friction"),
    "beyond the overhanging sole's edge": (
        "overhang", lambda p: wrench(p, 0, "sole", [0, 0, 300, 0, -80.0, 0]), "friction"),
    "pulling": ("point", lambda p: wrench(p, 0, "sole", [0, 0, -300, 0, 0, 0]), "friction"),
    "load on what is being made": ("point", lambda p: wrench(p, 1, "tip", [-1e-3, 0, 0, 0, 0, 0]),
                                   "force on shared contacts only"),
    "load on what is not there": ("point", lambda p: wrench(p, 0, "tip", [-1e-3, 0, 0, 0, 0, 0]),
                                  "force on shared contacts only"),
    "beyond its force": ("point", lambda p: contact(p, 0, SOLE, max_force=300.0), "contact force"),
    "grip beyond its force": ("grasp", lambda p: gripped(p, [0, 6.01, 0, 0, 0, 0]), "contact force"),
    "grip beyond its moment": ("grasp", lambda p: gripped(p, [0, 0, 0, 0, 0, -1.01]), "grasp moment"),
    "moment about a hinge": (
        "grasp",
        lambda p: contact(gripped(p, [0, 0, 0, 0, 0.1, 0]), 2, TIP, selection=np.delete(np.eye(6), 4, axis=0)),
        "free direction"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_plan_is_caught_by_name(plans, name):
    kind, forge, caught = FORGERIES[name]
    assert caught in broken(forge(plans[kind]))


def test_what_the_scenario_requires_carries_in_some_stance(plan):
    asked = replace(plan, scenario=plan.scenario.replace(planner={"require": ["sole", ["tip", "sole"]]}))
    assert "required contacts" not in broken(asked)
    asked = replace(plan, scenario=plan.scenario.replace(planner={"require": ["sole", "tip"]}))
    assert "required contacts" in broken(asked)
    weight = 5.0 * sum(link.mass for link in record_robot(plan.scenario.robot).links) / 56.03717  # 5 N for HRP-2
    for force, enough in ((1.01 * weight, True), (0.99 * weight, False)):
        report = verify(wrench(asked, 1, "tip", [-force, 0, 0, 0, 0, 0]))
        assert any("carries no more than" in failure for failure in report.failures) is not enough


WITHIN = {
    "contact moved": ("point", lambda p: posture(p, 0, 1, 0.9e-4), "contact place"),
    "sole turned": (
        "point", lambda p: contact(p, 0, SOLE, R=turned(p.stances[0].contacts[SOLE].R, z=0.09 * DEG)), "contact angle"),
    "lifted": ("point", lambda p: all_moved(p, [0, 0, 0.9e-4]), "contacts on their supports"),
    "askew": ("point", lambda p: all_turned(p, [-0.09 * DEG, 0, 0]), "contacts on their supports, angle"),
    "start": ("point", lambda p: all_moved(p, [0, 0.9e-4, 0]), "start: contacts"),
    "kept": ("point", lambda p: shifted(p, SOLE, [0.9e-4, 0, 0]), "kept contacts"),
    "torque": ("point", lambda p: effort(p, 0, -59.9), "torque"),
    "balance": ("point", lambda p: effort(p, 1, p.stances[1].tau[1] + 0.9e-6), "force balance"),
    "upper limit": ("point", lambda p: stance(p, 1, q=np.append(p.stances[1].q[:7], [1.999, 0.0])), "position"),
    "pressure": ("point", lambda p: wrench(p, 0, "sole", [0, 0, 300, 0, 85.0, 0]), "friction"),
    "pressure to the overhanging side": (
        "overhang", lambda p: wrench(p, 0, "sole", [0, 0, 300, 0, -70.0, 0]), "friction"),
    "force": ("point", lambda p: contact(p, 0, SOLE, max_force=330.0), "contact force"),
    "grip": ("grasp", lambda p: gripped(p, [0, 5.99, 0, 0, 0, 0]), "contact force"),
    "grip's moment": ("grasp", lambda p: gripped(p, [0, 0, 0, 0.6, 0.6, 0.5]), "grasp moment"),
    "less friction": ("point", lambda p: contact(p, 0, SOLE, friction=0.6), "friction of the supports"),
}  # fmt: skip


@pytest.mark.parametrize("name", WITHIN)
def test_what_is_within_its_bound_passes(plans, name):
    kind, change, line = WITHIN[name]
    assert line not in broken(change(plans[kind]))


def test_a_contact_that_is_let_go_is_in_its_place_until_then_and_carries_nothing(plan):
    """The posture of a stance links it to the one before: the contacts of the larger one are in place."""
    last = plan.stances[1]
    gone = replace(last, contacts=last.contacts[:1], change="remove", moved="tip")
    stances = with_transitions(plan.scenario, (*plan.stances, gone))
    honest = replace(plan, stances=stances)
    assert broken(honest) == {"item 2 of 2: contacts", "item 2 of 2: contacts, angle"}
    assert "contact place" in broken(posture(honest, 2, 7, 1e-3))
    assert "force on shared contacts only" in broken(wrench(honest, 2, "tip", [-1e-3, 0, 0, 0, 0, 0]))


STATED = {"kind": "point", "friction": 0.4, "max_force": 20.0, "slide": ["x", "y"], "hinge": ["z"]}


@pytest.mark.parametrize("name", STATED)
def test_what_the_last_item_states_of_a_contact_holds_at_the_end(runs, name):
    """Whether the stances were found or written by hand; what one before it states has been."""
    sole, stated = {"patch": "sole", "surface": "floor"}, {name: STATED[name]}
    line = "contacts as the scenario has them"
    plan = RecomputedRun(asking(runs["point"], {"contacts": [sole | stated]})).plan
    assert line in broken(plan)
    given = {name: value[::-1] if isinstance(value, list) else value for name, value in stated.items()}
    assert line not in broken(contact(plan, 1, SOLE, options=given))
    earlier = asking(runs["point"], {"contacts": [sole | stated]}, {"contacts": [sole | {"overhang": True}]})
    assert line not in broken(RecomputedRun(earlier).plan)


@pytest.mark.parametrize("sign", [-1, 1])
def test_goals_of_a_plan_have_tolerances_of_their_own(runs, sign):
    """Tighter than those of a run, where arithmetic decides; those of the scenario where it gives some."""
    sole = {"patch": "sole", "surface": "floor"}
    crate = {"xyz": [1.5, 1.0, 0.1]}
    com = runs["crate"].com[-1].tolist()
    for item, wrong in (
        ({"contacts": [sole | {"x": 0.1 + sign * 0.9e-4}]}, set()),
        ({"contacts": [sole | {"x": 0.1 + sign * 1.1e-4}]}, {"goal: contacts"}),
        ({"contacts": [sole | {"yaw": sign * 0.09 * DEG}]}, set()),
        ({"contacts": [sole | {"yaw": sign * 0.11 * DEG}]}, {"goal: contacts, angle"}),
        ({"objects": {"crate": crate | {"rpy": [0, 0, sign * 0.09 * DEG]}}}, set()),
        ({"objects": {"crate": crate | {"rpy": [0, 0, sign * 0.11 * DEG]}}}, {"goal: objects, angle"}),
        ({"objects": {"crate": {"xyz": [1.5 + sign * 0.9e-3, 1.0, 0.1]}}}, set()),
        ({"objects": {"crate": {"xyz": [1.5 + sign * 1.1e-3, 1.0, 0.1]}}}, {"goal: objects"}),
        ({"com": [com[0] + sign * 0.009, com[1]]}, set()),
        ({"com": [com[0] + sign * 0.011, com[1]]}, {"goal: centre of mass"}),
        ({"base": {"xyz": [0.1, -0.2, 0.2 + sign * 0.049]}}, set()),
        ({"base": {"xyz": [0.1, -0.2, 0.2 + sign * 0.051]}}, {"goal: base"}),
    ):
        assert broken(RecomputedRun(asking(runs["crate"], item)).plan) == wrong, item
