"""A run that is right passes; whatever is changed in it is found, and named with its place, time and amount."""

import json
from dataclasses import replace

import numpy as np
import pytest

from mcplan.certificate.report import KEYS, Check, Report
from mcplan.certificate.verify import verify
from mcplan.util.qp_status import HOLD, NO_QP, SLACK, SOLVED
from tests.certificate.forging import add, broken, line, put, tampered, with_contact, with_record
from tests.sim.waving_box import waving_run

SOLE, TIP = 0, 1


@pytest.fixture(scope="module")
def run():
    return waving_run()


def limited(run, **changes):
    """Copy of the run in which the sole's contact differs in both stances."""
    return with_contact(with_contact(run, 0, SOLE, **changes), 1, SOLE, **changes)


EDITED = {"record: stances are the plan's"}
"""Lines that are broken because a test edited a planned contact."""


def failures(run):
    report = verify(run)
    assert report.success == (not report.failures)
    assert report.to_json()["failures"] == report.failures
    return "\n".join(report.failures)


def test_the_right_run_passes(run):
    report = verify(run)
    assert report.success, report.text()
    assert report.values["eom_residual"] < 1e-10
    assert report.values["integration_residual"] < 1e-12
    assert report.values["goal_reached"]
    assert report.values["fell"] is False
    assert report.values["friction_ratio"] == pytest.approx(np.sqrt(2) / (0.7 * 5))
    assert report.values["friction_margin"] == pytest.approx(0.7 * 5 - np.sqrt(2))


def test_report_is_json_with_the_agreed_keys(run):
    content = verify(run).to_json()
    assert set(content) == {"success", "goals", "failures", "notices", *KEYS}
    assert json.loads(json.dumps(content, allow_nan=False)) == content


def test_text_has_a_line_per_check_and_says_what_is_broken(run):
    text = verify(tampered(run, tau=put((100, 0), 75.0))).text()
    assert "CERTIFICATE BROKEN" in text
    assert "FAIL  torque" in text
    assert "broken: torque of shoulder is 75" in text


def test_from_the_file_alone(run, tmp_path):
    run.save(tmp_path)
    assert verify(tmp_path).to_json() == verify(run).to_json()


def test_torque_beyond_its_limit(run):
    text = failures(tampered(run, tau=put((100, 0), 75.0)))
    assert "torque of shoulder is 75 N m at t = 0.100 s, limit 60: beyond it by 15" in text
    assert "equation of motion off by" in text
    assert "as if the torque of shoulder should change by" in text


def test_small_torque_error_breaks_the_equation_of_motion(run):
    text = failures(tampered(run, tau=add((50, 1), 1e-5)))
    assert "equation of motion off by 1e-05 N m at elbow, t = 0.050 s (1 of 600 samples)" in text
    assert "as if the torque of elbow should change by -1e-05 N m" in text


def test_removed_wrench(run):
    text = failures(tampered(run, wrench=put((slice(450, 460), TIP), 0.0)))
    assert "equation of motion off by" in text
    assert "as if the force on tip lacked [-5, 1, 1] N" in text
    assert "point forces of tip at t = 0.450 s differ from its wrench by 5 N (10 samples)" in text


def test_removed_wrench_and_points(run):
    points = np.flatnonzero(run.point_sample() == 300)
    text = failures(tampered(run, wrench=put((300, SOLE), 0.0), point_force=put(points, 0.0)))
    assert "as if the force on sole lacked" in text
    assert "differ" not in text


def test_edited_trajectory_sample(run):
    text = failures(tampered(run, q=add((200, 8), 1e-6)))
    assert "position of elbow at t = 0.200 s (sample 200) is off by 1e-06" in text
    text = failures(tampered(run, v=add((200, 6), 1e-6)))
    assert "of shoulder at t = 0.200 s (sample 200) is off by 1e-06" in text


def test_shifted_trajectory_moves_the_foot_from_its_place(run):
    aside = add((slice(None), 1), 0.02)
    shifted = tampered(run, q=aside, com=aside, point_xyz=aside)
    for name, where in (("contact place", "sole at t = 0.000 s"), ("last stance, place", "sole on floor")):
        found = line(shifted, name)
        assert (found.value, found.where, found.passed) == (pytest.approx(0.02), where, False)
    assert line(shifted, "equation of motion").passed


def test_sliding_foot(run):
    slide = np.linspace(0, 0.005, len(run))
    slid = tampered(run, q=lambda q: np.add(q[:, 0], slide, out=q[:, 0]))
    found, text = line(slid, "slip"), failures(slid)
    assert (found.value, found.where, found.passed) == (pytest.approx(0.005), "sole at t = 0.599 s", False)
    assert "away from where it touched at t = 0.000 s" in found.failure
    assert "does not follow" in text
    assert "recorded centre of mass is off by 0.005 m at t = 0.599 s" in text


def test_moved_plan(run):
    found = line(limited(run, p=[0.15, -0.2, 0.0]), "contact place")
    assert (found.value, found.passed) == (pytest.approx(0.05), False)


def test_last_contact_missed(run):
    text = failures(tampered(run, active=put((slice(590, 600), TIP), False)))
    assert "tip is not in contact with wall at the end" in text
    assert "item 2 of 2: contacts is not reached" in text
    assert "tip at t = 0.590 s carries 5 N (N m) although it is not in contact" in text


def test_changed_contact_point(run):
    i = int(run.point_start[120]) + 2
    text = failures(tampered(run, point_xyz=add((i, 0), 0.03)))
    assert "point 2 of sole at t = 0.120 s is 0.03 m away from the contact points of its patch" in text
    assert "point forces of sole at t = 0.120 s differ from its wrench" in text


def test_changed_contact_normal_and_link(run):
    i = int(run.point_start[120]) + 1
    assert "the normal at point 1 of sole at t = 0.120 s" in failures(tampered(run, point_normal=put(i, [0, 1.0, 0])))
    assert "point 1 of sole at t = 0.120 s is recorded on another link" in failures(tampered(run, point_link=put(i, 2)))


def test_friction_cone_and_pulling(run):
    i = int(run.point_start[500]) + 4
    text = failures(
        tampered(run, point_force=put(i, [-5.0, 3.0, 4.0]), wrench=put((500, TIP, slice(0, 3)), [-5.0, 3.0, 4.0]))
    )
    assert (
        "friction at point 0 of tip at t = 0.500 s: tangential force 5 N, cone allows 3.5 N: beyond it by 1.5" in text
    )
    text = failures(tampered(run, point_force=put(i, [2.0, 0, 0]), wrench=put((500, TIP, slice(0, 3)), [2.0, 0, 0])))
    assert "the support pulls at point 0 of tip at t = 0.500 s with 2 N" in text


@pytest.mark.parametrize(("excess", "passes"), [(1e-6, True), (1e-5, False)])
def test_friction_just_inside_and_just_outside(run, excess, passes):
    force, where = [-5.0, 0.7 * 5 + excess, 0.0], (slice(400, 600), TIP, slice(0, 3))
    rubbing = tampered(run, wrench=put(where, force), point_force=put(run.point_patch == TIP, force))
    assert line(rubbing, "friction margin").passed is passes


def in_contact(run):
    return with_record(run, physics="contact")


def test_the_cone_stands_on_the_normal_that_two_faces_have(run):
    """A force at the edge of a cone about a normal that is a little off that of the support, as crossing edges have."""
    skew, tip, where = 5e-5, run.point_patch == TIP, (slice(400, 600), TIP, slice(3))
    force = 5.0 * np.array([-1.0, skew, 0.0]) + 0.7 * 5.0 * np.array([skew, 1.0, 0.0])
    off = in_contact(tampered(run, point_force=put(tip, force), wrench=put(where, force)))
    assert "friction at point 0 of tip" in failures(off)
    right = failures(tampered(off, point_normal=put(tip, [-1.0, skew, 0.0])))
    assert "friction" not in right
    assert "the normal" not in right


@pytest.mark.parametrize("rolls", [False, True])
def test_a_patch_that_rolls_touches_anywhere_on_its_plane(run, rolls):
    """A sole that is planned to bear along its front edge bears at all corners."""
    edge = run.record.plan.stances[0].contacts[0].points[:2]
    moved = in_contact(limited(run, points=edge, rolls=rolls))
    assert ("away from the contact points of its patch" in failures(moved)) is not rolls


def test_a_normal_that_flat_faces_cannot_have(run):
    i = int(run.point_start[120]) + 1
    text = failures(in_contact(tampered(run, point_normal=put(i, [0.01, 0.0, 1.0]))))
    assert "the normal at point 1 of sole at t = 0.120 s is not that of its support (0.01 rad off)" in text


def test_normal_force_beyond_the_contact_limit(run):
    text = failures(limited(run, max_force=100.0))
    assert "normal force of sole at t = " in text
    assert "limit 100: beyond it by" in text
    assert broken(limited(run, max_force=900.0)) == EDITED


@pytest.mark.parametrize(("steps", "fails"), [(1, False), (20, True)])
def test_an_impact_counts_by_its_mean_force_where_contacts_are_rigid(run, steps, fails):
    """Twice the limit for one step is an impulse; for twenty it is a load."""
    hit = tampered(in_contact(limited(run, max_force=900.0)), wrench=put((slice(300, 300 + steps), SOLE, 2), 1800.0))
    assert ("normal force of sole" in failures(hit)) is fails


def test_grasp_limits_and_freedom(run):
    """The tip holds a bar: it may pull, and its limits are those of force and moment."""

    def grasp(**limits):
        return with_contact(run, 1, TIP, kind="grasp", friction=None, **limits)

    assert broken(grasp(max_force=6.0, max_moment=1.0)) == EDITED
    assert "grasp force of tip at t = 0.400 s is 5.19615 N, limit 5" in failures(grasp(max_force=5.0))
    twisted = tampered(grasp(max_force=6.0, max_moment=1.0), wrench=put((slice(400, 600), TIP, 3), 1.5))
    assert "grasp moment of tip at t = 0.400 s is 1.5 N m, limit 1: beyond it by 0.5" in failures(twisted)
    assert "free direction of tip" in failures(twisted)


def test_joint_velocity_and_position_limits(run):
    text = failures(tampered(run, v=put((slice(None), 6), 3.5)))
    assert "velocity of shoulder is 3.5 rad/s at t = 0.000 s, limit 3: beyond it by 0.5 (600 samples)" in text
    text = failures(tampered(run, q=put((10, 7), -2.25)))
    assert "joint shoulder = -2.25 rad at t = 0.010 s, outside [-2, 2] by 0.25" in text


def test_limits_have_the_unit_of_their_joint(run):
    """A shoulder that slides: m, m/s and N."""
    robot = run.record.robot
    slides = [j.model_copy(update={"kind": "prismatic"}) if j.name == "shoulder" else j for j in robot.joints]
    sliding = with_record(run, robot=robot.model_copy(update={"joints": slides}))
    text = failures(tampered(sliding, tau=put((3, 0), 99.0), v=put((3, 6), 200.0), q=put((3, 7), -5.0)))
    assert "torque of shoulder is 99 N at t" in text
    assert "velocity of shoulder is 200 m/s at t" in text
    assert "joint shoulder = -5 m at t" in text
    found = line(sliding, "position")
    assert found.where.startswith("shoulder,")
    assert found.unit == "m from the limit"


def test_force_from_outside(run):
    assert "an external force that the scenario does not have: 3 on base x" in failures(
        tampered(run, tau_ext=put((9, 0), 3.0))
    )


def test_unplanned_contact(run):
    text = failures(tampered(run, point_patch=put(run.point_patch == TIP, -1)))
    assert "unplanned contact of finger from t = 0.400 s for 0.2 s with up to 5.196 N" in text


def test_fall(run):
    text = failures(tampered(run, q=put((slice(550, 600), 2), -0.3)))
    assert "fell: the centre of mass is 0.5" in text
    assert verify(tampered(run, q=put((slice(550, 600), 2), -0.3))).values["fell"] is True


@pytest.mark.parametrize("name", ["q", "v", "vd", "tau", "wrench", "com", "point_force", "t"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_a_number_is_named_and_the_rest_judged(run, name, value):
    i = int(run.point_start[300]) if name.startswith("point") else 300
    report = verify(tampered(run, **{name: put(i, value)}))
    assert report.failures[0].startswith(f"{name} is not a number at t = ")
    assert "(sample 300)" in report.failures[0]
    assert not report.success
    assert report.values["eom_residual"] < 1e-10
    json.dumps(report.to_json(), allow_nan=False)


def test_a_run_that_breaks_off_at_its_goal_has_not_reached_it(run):
    """All samples but the last are sound, and execute the plan: the run is incomplete."""
    report = verify(tampered(run, vd=put(-1, np.nan)))
    lines = [check for check in report.checks if check.name.startswith(("last stance", "carried out"))]
    assert lines
    assert all(check.passed for check in lines)
    assert report.values["goal_reached"] is False


@pytest.mark.parametrize("length", [0.0, 0.45, 1.55, 2.4])
def test_a_quaternion_far_from_unit_length_is_no_orientation(run, length):
    short = put((300, slice(3, 7)), length * run.q[300, 3:7])
    assert verify(tampered(run, q=short)).failures[0].startswith("q is not a number at t = 0.300 s (sample 300)")


def test_nothing_but_noise_still_gives_a_report(run):
    """Any numbers at all: a report, never an exception, and never success."""
    rng = np.random.default_rng(0)
    names = ("q", "v", "vd", "tau", "wrench", "com", "point_xyz", "point_normal", "point_force")
    for scale in (1.0, 1e8, 1e200):
        report = verify(replace(run, **{name: scale * rng.normal(size=getattr(run, name).shape) for name in names}))
        assert not report.success
        json.dumps(report.to_json(), allow_nan=False)
    nothing = verify(tampered(run, q=put(0, 0.0)))
    assert nothing.failures
    json.dumps(nothing.to_json(), allow_nan=False)


def test_stopped_run_has_not_reached_its_goal(run):
    stopped = with_record(run, stopped="not a number at t = 0.6 s")
    assert "the simulation had to stop: not a number" in failures(stopped)
    assert not verify(stopped).values["goal_reached"]


def test_solver_failures_are_counted(run):
    slack = verify(replace(tampered(run, qp_status=put(slice(5, 8), 1)), qp_slack=np.full(len(run), 0.04)))
    assert slack.values["solver_failures"] == 3
    assert slack.success
    both = verify(tampered(run, qp_status=put(slice(5, 12), [SLACK, HOLD, SOLVED, HOLD, NO_QP, SLACK, HOLD])))
    assert both.values["solver_failures"] == 5


@pytest.mark.parametrize("amount", [-5.0, 5.0])
@pytest.mark.parametrize("part", [0, 2, 4])
def test_a_patch_that_is_not_in_contact_carries_nothing_of_either_sign(run, amount, part):
    assert not run.active[100, TIP]
    assert "force only in contact" in broken(tampered(run, wrench=put((100, TIP, part), amount)))


def test_where_the_program_moves_the_robot_no_brush_is_allowed(run):
    """Not even 2 N for one sample at an unplanned place."""
    i = int(np.flatnonzero(run.point_patch == TIP)[0])
    brush = tampered(run, point_patch=put(i, -1), point_force=put(i, [-2.0, 0.0, 0.0]))
    assert "unplanned contact" in broken(brush)


@pytest.mark.parametrize(("most", "passes"), [(4.9, False), (5.1, True)])
def test_the_force_limit_of_a_contact_is_along_its_normal(run, most, passes):
    """The finger presses on the wall with 5 N, sideways and not upwards."""
    assert ("normal force" in broken(with_contact(run, 1, TIP, max_force=most))) == (not passes)


def test_a_certificate_fits_a_terminal_and_loses_nothing():
    checks = (
        Check("integration identity", 6.7e-16, "m, rad, m/s, rad/s", "<= 1e-09", True, "base rotation x, t = 15.340 s"),
        Check("contact normals", 0.5, "of the allowed tilt", "<= 1", True, "point 0 of sole at t = 0.0 s"),
        Check("fall", 0.0, "m", "<= 0.2", True, "t = 1.000 s"),
    )
    report = Report("a run", checks, {})
    narrow = report.text(80).splitlines()
    assert max(map(len, narrow)) <= 80
    assert "".join("".join(narrow).split()) == "".join(report.text().split())
    assert len(report.text().splitlines()) == 1 + len(checks)
