"""The static certificate of a plan."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import mcplan as mc
from mcplan.certificate.stance_checks import _cone_violations, judge_plan
from tests import shared
from tests.certificate.forging import edited, replaced
from tests.sim.waving_box import waving_run


@pytest.fixture(scope="module")
def record():
    return waving_run(samples=60, touch=40).record


def judged(record, stance=1, contact=None, **changes):
    """The report of the plan with other fields of a stance, or of one of its contacts: (number, fields)."""
    plan = record.plan
    if contact is not None:
        plan = edited(plan, stance, contacts=replaced(plan.stances[stance].contacts, contact[0], **contact[1]))
    return judge_plan(record.robot, edited(plan, stance, **changes), "plan")


def failures(record, stance=1, contact=None, **changes):
    return "\n".join(judged(record, stance, contact, **changes).failures)


def test_the_right_plan_passes(record):
    report = judge_plan(record.robot, record.plan, "plan of a box")
    assert report.success, report.text()
    assert report.values["eom_residual"] < 1e-9
    assert report.values["torque_ratio"] < 1
    assert "plan of a box: certificate holds" in report.text()


def test_what_is_wrong_is_named_with_its_stance(record):
    stance = record.plan.stances[1]
    wrench = list(stance.wrenches["sole"])
    assert "stance 1: tip is 0.0003 m away" in failures(
        record, contact=(1, {"p": [stance.contacts[1].p[0] + 3e-4, *stance.contacts[1].p[1:]]})
    )
    assert "stance 1: forces do not balance: 2e-06 on elbow" in failures(
        record, tau=[stance.tau[0], stance.tau[1] + 2e-6]
    )
    assert "stance 1: torque of shoulder is 70 N m, limit 60" in failures(record, tau=[70.0, stance.tau[1]])
    assert "stance 1: forces do not balance: 1 on row 0" in failures(
        record, wrenches={"sole": [wrench[0] + 1, *wrench[1:]]}
    )
    assert "tip carries 1 but is in one stance only" in failures(
        record, wrenches={"sole": wrench, "tip": [-1.0, 0, 0, 0, 0, 0]}
    )
    assert "the wrench on tip is 1 outside" in failures(record, wrenches={"sole": wrench, "tip": [1.0, 0, 0, 0, 0, 0]})
    assert "joint shoulder = 2.5 is 0.5 beyond" in failures(record, q=[*stance.q[:7], 2.5, 0.0])


def test_friction_is_that_of_the_cone(record):
    """A wrench at the sole's centre that leans to just within, and just beyond, the friction angle of 0.7."""
    weight = record.plan.stances[0].wrenches["sole"][2]
    for share, inside in ((0.998, True), (1.01, False)):
        w = {"sole": [0.6 * 0.7 * share * weight, 0.8 * 0.7 * share * weight, weight, 0, 0, 0]}
        assert ("the wrench on sole" not in failures(record, stance=0, wrenches=w)) == inside
    assert "the force on sole is 214.9 N beyond 100" in failures(record, stance=0, contact=(0, {"max_force": 100.0}))


def test_the_cone_of_a_patch_that_rolls_is_where_the_posture_has_it(record):
    """A force just within the cone; the patch has turned away from it by 3 degrees since it was placed."""
    sole = record.plan.stances[0].contacts[0]
    c, s = np.cos(0.05), np.sin(0.05)
    before = (np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]) @ np.array(sole.R)).tolist()
    weight = record.plan.stances[0].wrenches["sole"][2]
    w = {"sole": [0.698 * weight, 0.0, weight, 0, 0, 0]}
    for rolls in (False, True):
        text = failures(record, stance=0, wrenches=w, contact=(0, {"R": before, "rolls": rolls}))
        assert ("the wrench on sole" in text) is rolls


@pytest.mark.slow
def test_links_that_overlap_are_named_with_their_stance():
    """An arm turned into the trunk, in one stance of a plan that holds otherwise."""
    plan = shared.planned("step")
    assert mc.verify(plan).values["clearance"] > 0
    robot, stance = plan.scenario.robot, plan.stances[2]
    q = stance.q.copy()
    q[7 + robot.joint_names.index("LARM_JOINT1")] = -0.16
    q[7 + robot.joint_names.index("LARM_JOINT2")] = 1.2
    q[7 + robot.joint_names.index("LARM_JOINT3")] = -2.0
    crossed = replace(plan, stances=(*plan.stances[:2], replace(stance, q=q), *plan.stances[3:]))
    report = mc.verify(crossed)
    assert report.values["clearance"] < 0
    assert any("in stance 2" in text and "overlap by" in text for text in report.failures), report.failures


def test_the_value_of_a_line_is_that_of_the_worst_stance(record):
    """Whichever stance that is."""
    limit = record.robot.limit("torque")
    for k in range(2):
        plan = edited(edited(record.plan, k, tau=[0.9 * limit[0], 0.1]), 1 - k, tau=[0.2 * limit[0], 0.1])
        report = judge_plan(record.robot, plan, "plan")
        assert report.values["torque_ratio"] == pytest.approx(0.9)
        (line,) = (check for check in report.checks if check.name == "torque")
        assert line.where == f"stance {k}"


def test_a_free_direction_is_one_of_the_contact_and_not_of_the_world(record):
    """The tip may be anywhere along the x axis of its contact, however that is turned, and nowhere else."""
    R = Rotation.from_rotvec([0.3, -0.5, 0.8]).as_matrix()
    p = np.array(record.plan.stances[1].contacts[1].p)
    free = {"R": R.tolist(), "selection": np.eye(6)[1:3].tolist()}
    for axis, passes in ((0, True), (1, False), (2, False)):
        for step in (-0.01, 0.01):
            text = failures(record, contact=(1, {**free, "p": (p + step * R[:, axis]).tolist()}))
            assert ("tip is 0.01 m away" not in text) == passes


def test_forces_act_where_the_points_of_a_turned_patch_are(record):
    """Pressure acts at a corner, and not where the corner would be if turned in the other direction."""
    R = Rotation.from_euler("z", 0.7).as_matrix()
    points = np.array([[0.2, 0.05, 0.0], [0.1, 0.05, 0.0], [0.1, -0.05, 0.0], [0.2, -0.05, 0.0]])
    on_floor = {"points": points.tolist(), "R": R.tolist(), "axes": np.eye(3).tolist(), "friction": 0.5}
    contact = record.plan.stances[0].contacts[0].model_copy(update=on_floor)
    force = np.array([0.0, 0.0, 300.0])
    for corner in points:
        for arm, passes in ((R @ corner, True), (R.T @ corner, False)):
            (line,) = _cone_violations(contact, R, np.concatenate([force, np.cross(arm, force)]))
            assert (line[1] < 1e-6) == passes
