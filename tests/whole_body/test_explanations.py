"""Explanations name every kind of row that has to be relaxed, at the right contact or joint, by the right amount.

Added equalities force the motion; violating them costs more than the rows in conflict.
"""

import cvxpy as cp
import numpy as np
import pytest

from mcplan.optimize.polytope import ball_polytope
from mcplan.robot.terms import Terms
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.settings import QPSettings
from mcplan.whole_body.whole_body import WholeBodyQP
from tests.whole_body.conftest import FRAMES, contact_at, standing_tasks


def explained(state, contacts, constraints, q=None, v=None, **settings):
    """Return {(what, unit): amount} of the conflicts of a program with added constraints."""
    if v is not None:
        state.terms.update(state.q if q is None else q, v)
    tasks = standing_tasks(state)
    qp = WholeBodyQP(state.robot, contacts, tasks, QPSettings(**settings), lambda qp: ([], constraints(qp)))
    qp.update(state.terms, contacts, tasks)
    s = qp.solve()
    assert s.status != 0
    for conflict in s.conflicts:
        assert f"{conflict.name} by {conflict.amount:.3g} {conflict.unit}" == str(conflict)
    assert [c.amount for c in s.conflicts] == sorted((c.amount for c in s.conflicts), reverse=True)
    return {(c.name, c.unit): c.amount for c in s.conflicts}


def held(state, patch, kind="surface", **options):
    return contact_at(state.robot, patch, state.q, kind, **options)


@pytest.fixture
def contacts(standing):
    """Both soles, both grips and a hand, each with separate limits."""
    standing.terms = Terms(standing.robot, (*FRAMES, "right_grip"))
    standing.terms.update(standing.q, standing.v)
    return [
        ContactConstraint(held(standing, "left_sole", friction=0.7)),
        ContactConstraint(held(standing, "right_sole", friction=0.5), max_force=150.0),
        ContactConstraint(held(standing, "left_grip", "grasp", max_force=200.0, max_moment=8.0)),
        ContactConstraint(held(standing, "right_hand", "point", friction=0.6), min_force=40.0),
        ContactConstraint(held(standing, "right_grip", "grasp", max_force=100.0, max_moment=5.0)),
    ]


def test_forces_beyond_what_contacts_bear(standing, contacts):
    left = np.tile([30.0, 0.0, 10.0], 4)  # 23 N beyond the cone at each of four points
    right = np.tile([0.0, 0.0, 60.0], 4)  # 90 N too much
    grip = np.array([0.0, 250.0, 0.0, 0.0, 0.0, 11.0])
    hand = np.array([0.0, 0.0, 25.0])  # 15 N too little
    other = np.array([0.0, 140.0, 0.0, 0.0, 0.0, 1.0])

    def forced(qp):
        given = {"left_sole": left, "right_sole": right, "left_grip": grip, "right_hand": hand, "right_grip": other}
        return [qp.force_of(patch) == value for patch, value in given.items()]

    found = explained(standing, contacts, forced)
    assert found["friction at left_sole", "N"] == pytest.approx(4 * 23.0, rel=1e-3)
    assert found["largest force at right_sole", "N"] == pytest.approx(90.0, rel=1e-3)
    assert found["smallest force at right_hand", "N"] == pytest.approx(15.0, rel=1e-3)
    D = ball_polytope()
    assert found["grasping force at left_grip", "N"] == pytest.approx((D @ grip[:3]).max() - 200.0, rel=1e-3)
    assert found["grasping moment at left_grip", "N m"] == pytest.approx((D @ grip[3:]).max() - 8.0, rel=1e-3)
    assert found["grasping force at right_grip", "N"] == pytest.approx((D @ other[:3]).max() - 100.0, rel=1e-3)
    wrong = (
        "grasping moment at right",
        "friction at right",
        "largest force at left",
        "smallest force at left",
        "unilateral",
    )
    assert not [what for what, _ in found if what.startswith(wrong)]


def test_a_contact_that_would_have_to_pull(standing, contacts):
    pull = np.tile([0.0, 0.0, -12.0], 4)
    found = explained(standing, contacts, lambda qp: [qp.force_of("left_sole") == pull])
    assert found["unilateral force at left_sole", "N"] == pytest.approx(48.0, rel=1e-3)
    assert not [what for what, _ in found if what.startswith("unilateral force at right")]


def test_contacts_that_would_have_to_move_and_free_directions_that_would_have_to_bear(standing):
    slide = np.delete(np.eye(6), 0, axis=0)
    contacts = [
        ContactConstraint(held(standing, "left_sole", selection=slide)),
        ContactConstraint(held(standing, "right_sole")),
        ContactConstraint(held(standing, "left_grip", "grasp", max_force=1e4, max_moment=1e4)),
    ]
    # each contact's drift asks for kp times it; that nothing moves is written so that it costs more to break
    contacts[1].p = contacts[1].p + np.array([0.0, 0.004, 0.003])
    grip = contacts[2]
    grip.R = np.array([[1.0, -0.02, 0.0], [0.02, 1.0, 0.0], [0.0, 0.0, 1.0]]) @ grip.R
    along = standing.terms.frame("left_sole").R[:, 0]

    def still(qp):
        f = cp.reshape(qp.force_of("left_sole"), (4, 3), order="C") @ contacts[0].axes.T
        return [1e3 * qp.vd == 0, cp.sum(f, axis=0) @ along == 10.0]

    found = explained(standing, contacts, still)
    assert found["contact acceleration at right_sole", "m/s²"] == pytest.approx(100 * 0.005, rel=1e-3)
    assert found["contact acceleration at left_grip", "rad/s²"] == pytest.approx(100 * 0.02, rel=1e-2)
    assert found["free direction of left_sole", "N"] == pytest.approx(10.0, rel=1e-3)
    assert not [what for what, _ in found if what == "contact acceleration at left_sole"]


def test_joints_that_would_overrun_are_named_with_the_side(standing):
    names = standing.robot.joint_names
    up, down = names.index("RARM_JOINT3"), names.index("LARM_JOINT1")
    q = standing.q.copy()
    v = np.zeros(standing.robot.nv)
    v[6 + up] = 0.9 * standing.robot.limits.velocity[up]
    v[6 + down] = -0.9 * standing.robot.limits.velocity[down]
    dt = 0.01
    room = {j: 0.1 * standing.robot.limits.velocity[j] / dt for j in (up, down)}
    found = explained(
        standing, [], lambda qp: [qp.vd[6 + up] == room[up] + 7.0, qp.vd[6 + down] == -room[down] - 9.0], q, v, dt=dt
    )
    what = "{} acceleration bound of {} (position and velocity limits)"
    assert found[what.format("upper", "RARM_JOINT3"), "rad/s²"] == pytest.approx(7.0, rel=1e-2)
    assert found[what.format("lower", "LARM_JOINT1"), "rad/s²"] == pytest.approx(9.0, rel=1e-2)
    assert not [
        key for key, _ in found if "acceleration bound" in key and "JOINT3" not in key and "LARM_JOINT1" not in key
    ]


def test_added_constraints_that_contradict_are_named_by_their_label(standing):
    def contradicting(qp):
        lift, stay = qp.vd[2] == 0.5, qp.vd[2] <= 0.2
        lift.set_label("lift")
        stay.set_label("stay")
        return [lift, stay]

    found = explained(standing, [], contradicting)
    amounts = [found.get((f"added constraint {name}", ""), 0.0) for name in ("lift", "stay")]
    assert sum(amounts) == pytest.approx(0.3, rel=1e-3)
    assert len(found) == sum(amount > 0.0 for amount in amounts)
