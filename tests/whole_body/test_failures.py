import cvxpy as cp
import numpy as np
import pytest

from mcplan.errors import InputError
from mcplan.optimize.compiled import fallback
from mcplan.whole_body import whole_body as module
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.explain import _into_cone, damped_hold
from mcplan.whole_body.settings import QPSettings
from mcplan.whole_body.tasks.posture import PostureTask
from mcplan.whole_body.whole_body import WholeBodyQP
from tests.whole_body.conftest import contact_at, random_state, standing_tasks

SOLES = ("left_sole", "right_sole")


def soles(state):
    return [ContactConstraint(contact_at(state.robot, patch, state.q)) for patch in SOLES]


def solve(state, contacts, extra=None, tau_ext=None, **settings):
    tasks = standing_tasks(state)
    qp = WholeBodyQP(state.robot, contacts, tasks, QPSettings(**settings), extra)
    qp.update(state.terms, contacts, tasks, tau_ext)
    return qp, qp.solve()


def test_a_robot_pulled_up_names_the_unilateral_forces_and_the_amount(standing):
    """800 N upwards on a robot that weighs 550 N and must not move: the feet have to pull 250 N."""
    lift = standing.terms.frame("BODY").J.T @ np.r_[0, 0, 800.0, 0, 0, 0]
    _, s = solve(standing, soles(standing), lambda qp: ([], [qp.vd == 0]), lift)
    assert s.status == 1
    total = sum(c.amount for c in s.conflicts if c.name.startswith("unilateral force at"))
    weight = 9.81 * standing.robot.mass
    assert total == pytest.approx(800 - weight, rel=0.01)
    assert "unilateral force at" in s.message
    assert s.residuals.motion < 1e-8


def test_an_overloaded_joint_is_named_with_its_excess(standing):
    joint = standing.robot.joint_names.index("RARM_JOINT3")
    push = np.zeros(standing.robot.nv)
    push[6 + joint] = 1000.0
    arm = standing.robot.limits.torque[joint]

    def still(qp):
        return [], [qp.vd == 0]

    _, s = solve(standing, soles(standing), still, push)
    assert s.status == 1
    named = [c for c in s.conflicts if c.name == "torque limit of RARM_JOINT3"]
    _, free = solve(standing, soles(standing), still, push * 0.05)
    needed = free.tau[joint] - 950.0
    assert named[0].amount == pytest.approx(abs(needed) - arm, abs=0.1)


def test_contradicting_contacts_are_named(standing):
    """Both feet are asked to accelerate apart faster than the joint limits allow."""
    contacts = soles(standing)
    contacts[0].p = contacts[0].p + np.array([0, 0, 40.0])
    _, s = solve(standing, contacts)
    assert s.status == 1
    assert any("left_sole" in c.name or "LEG" in c.name for c in s.conflicts)
    assert s.residuals.contact > 1


def test_the_slack_form_gives_the_same_answer_when_the_program_is_feasible(standing, monkeypatch):
    random_state(standing, 0.3)
    _, plain = solve(standing, soles(standing))
    monkeypatch.setattr(WholeBodyQP, "_solve_declared", lambda *_, **__: ("refused", None))
    _, slack = solve(standing, soles(standing), explain="never")
    assert (plain.status, slack.status) == (0, 1)
    np.testing.assert_allclose(slack.vd, plain.vd, atol=1e-2)


def test_the_hold_damps_and_obeys_the_equation_of_motion(standing, monkeypatch):
    random_state(standing, 0.2)
    for attempt in ("_solve_form", "_solve_compiled"):
        monkeypatch.setattr(WholeBodyQP, attempt, lambda *_, **__: ("refused", None))
    contacts = soles(standing)
    _, s = solve(standing, contacts, explain="never")
    assert s.status == 2
    assert "slack form: refused" in s.message
    assert s.residuals.motion < 1e-8
    assert np.all(np.abs(s.tau) <= standing.robot.limits.torque)
    assert standing.v[6:] @ s.vd[6:] < 0
    for c in contacts:
        f = s.forces[c.patch] @ c.axes
        assert np.all(c.friction * f[:, 2] - np.hypot(f[:, 0], f[:, 1]) > -1e-9)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_torques_of_the_hold_are_clipped_at_their_limits_on_both_sides(standing, sign):
    speed = sign * np.r_[np.zeros(6), np.where(np.arange(standing.robot.n) % 2, 3.0, -3.0)]
    standing.terms.update(standing.q, speed)
    most = np.full(standing.robot.n, 2.0)
    contacts = soles(standing)
    vd, tau, forces = damped_hold(standing.terms, standing.terms.h, contacts, most)
    assert (tau.min(), tau.max()) == (-2.0, 2.0)
    pushed = (
        sum(c.force_map(standing.terms) @ f for c, f in zip(contacts, forces, strict=True)) + np.r_[np.zeros(6), tau]
    )
    np.testing.assert_allclose(standing.terms.M @ vd + standing.terms.h, pushed, atol=1e-8)


def test_forces_of_the_hold_are_brought_back_into_what_contacts_bear(standing):
    """Within the limits they stay; beyond, a pull vanishes, friction is cut to the cone, the whole to the limit."""
    sole = ContactConstraint(contact_at(standing.robot, "left_sole", standing.q), max_force=100.0)
    within = np.tile([3.0, -4.0, 20.0], 4)
    np.testing.assert_allclose(_into_cone(sole, within), within)
    wild = np.concatenate([[30.0, -40.0, 20.0], [1.0, 0.0, -5.0], [0.0, 0.0, 200.0], [0.0, 7.0, 10.0]])
    f = _into_cone(sole, wild).reshape(4, 3)
    assert f[:, 2].sum() == pytest.approx(100.0)
    np.testing.assert_allclose(f[1], 0.0)
    np.testing.assert_allclose(f[0], 0.7 * 20.0 * np.array([0.6, -0.8, 1 / 0.7]) * 100.0 / 230.0)
    assert np.all(np.hypot(f[:, 0], f[:, 1]) <= 0.7 * f[:, 2] + 1e-9)
    grip = ContactConstraint(contact_at(standing.robot, "left_grip", standing.q, "grasp", max_force=50, max_moment=4))
    for wrench, share in (
        ([30.0, 0, 40, 0, 4, 0], 1.0),
        ([60.0, 0, 80, 0, 4, 0], 0.5),
        ([30.0, 0, 40, 0, 0, 16], 0.25),
        ([60.0, 0, 80, 0, 0, 16], 0.25),
    ):
        np.testing.assert_allclose(_into_cone(grip, np.array(wrench)), share * np.array(wrench))


def test_optimal_with_a_bad_residual_is_a_failure(standing, monkeypatch):
    """A solver that says optimal at a point that is none: the check does not take its word."""
    save = module.WholeBodyQP._point

    def shifted(self):
        vd, tau, f = save(self)
        return vd + 1e-3, tau, f

    contacts, tasks = soles(standing), standing_tasks(standing)
    qp = WholeBodyQP(standing.robot, contacts, tasks, QPSettings(explain="never", compiled=False))
    qp.update(standing.terms, contacts, tasks)
    assert qp.solve().status == 0
    monkeypatch.setattr(module.WholeBodyQP, "_point", shifted)
    s = qp.solve()
    assert s.status == 2
    assert "optimal, but" in s.message


def test_a_compiled_answer_with_a_bad_residual_is_left_for_that_of_cvxpy(standing, monkeypatch):
    contacts, tasks = soles(standing), standing_tasks(standing)
    qp = WholeBodyQP(standing.robot, contacts, tasks, QPSettings(explain="never"))
    qp.update(standing.terms, contacts, tasks)
    right = qp.solve()
    point = module.FastForm.point

    def shifted(self):
        vd, tau, f = point(self)
        return vd, tau + 1e-2, f

    monkeypatch.setattr(module.FastForm, "point", shifted)
    s = qp.solve()
    assert s.status == 0
    np.testing.assert_allclose(s.tau, right.tau, atol=1e-6)
    monkeypatch.setattr(WholeBodyQP, "_solve_form", lambda *_, **__: ("refused", None))
    assert qp.solve().status == 2


def test_the_compiled_slack_form_answers_as_the_plain_one(standing):
    """Feet that are torn apart: no solution keeps the contacts, and both forms break them alike."""
    contacts = soles(standing)
    contacts[0].p = contacts[0].p + np.array([0, 0, 40.0])
    answers = [solve(standing, contacts, explain="never", compiled=compiled)[1] for compiled in (True, False)]
    assert [s.status for s in answers] == [1, 1]
    np.testing.assert_allclose(answers[0].vd, answers[1].vd, atol=1e-4 * np.abs(answers[1].vd).max())
    np.testing.assert_allclose(answers[0].tau, answers[1].tau, atol=1e-3)


def test_only_the_first_failure_of_an_episode_is_explained(standing):
    contacts, tasks = soles(standing), standing_tasks(standing)
    qp = WholeBodyQP(standing.robot, contacts, tasks, QPSettings())
    places = [contacts[0].p.copy(), contacts[0].p + np.array([0, 0, 40.0])]
    explained = []
    for k in (1, 1, 0, 1, *[0] * module.CALM_TICKS, 1):
        contacts[0].p = places[k]
        qp.update(standing.terms, contacts, tasks)
        s = qp.solve()
        assert s.status == k
        if k:
            explained.append(bool(s.conflicts))
    assert explained == [True, False, False, True]


def test_an_attempt_tells_in_no_time_that_there_is_no_solution(standing, monkeypatch):
    """Neither is it proven or explained, nor is another solver asked, nor the slack form declared."""
    contacts, tasks = soles(standing), standing_tasks(standing)
    qp = WholeBodyQP(standing.robot, contacts, tasks, QPSettings())
    with pytest.raises(InputError, match="after its update"):
        qp.attempt()
    qp.update(standing.terms, contacts, tasks)
    found = qp.attempt()
    assert found.status == 0
    np.testing.assert_allclose(found.vd, qp.solve().vd, atol=1e-9)
    contacts[0].p = contacts[0].p + np.array([0, 0, 40.0])
    qp.update(standing.terms, contacts, tasks)
    with monkeypatch.context() as patch:
        for of, long in ((WholeBodyQP, "_explain"), (WholeBodyQP, "_solve_form"), (fallback, "is_feasible")):
            patch.setattr(of, long, lambda *_, **__: pytest.fail("takes long"))
        assert qp.attempt() is None
    assert qp.solve().status == 1


def test_the_slack_form_lets_go_where_it_costs_least(standing):
    """Feet that may carry 200 N each: 1e4 a² for sinking at a in both contacts, s² for s newtons too many in each."""
    contacts = [ContactConstraint(contact_at(standing.robot, p, standing.q), max_force=200.0) for p in SOLES]
    tasks = [PostureTask(standing.q[7:], weight=1e6)]  # the robot is one rigid body
    qp = WholeBodyQP(standing.robot, contacts, tasks, QPSettings(explain="never"), lambda qp: ([], [qp.vd[6:] == 0]))
    qp.update(standing.terms, contacts, tasks)
    s = qp.solve()
    assert s.status == 1
    mass = standing.robot.mass
    missing = 9.81 * mass - 400.0
    sinking = 0.5 * mass * missing / (2e4 + 0.5 * mass**2)
    excess = 0.5 * (missing - mass * sinking)
    forces = [s.wrenches[p][2] - 200.0 for p in SOLES]
    assert forces == pytest.approx([excess, excess], rel=0.03)
    accelerations = [(standing.terms.frame(p).J @ s.vd + standing.terms.frame(p).bias)[2] for p in SOLES]
    assert accelerations == pytest.approx([-sinking, -sinking], rel=0.05)


def test_the_hold_carries_a_robot_at_rest(standing, monkeypatch):
    for attempt in ("_solve_form", "_solve_compiled"):
        monkeypatch.setattr(WholeBodyQP, attempt, lambda *_, **__: ("refused", None))
    _, s = solve(standing, soles(standing), explain="never")
    assert s.status == 2
    assert sum(s.wrenches[p][2] for p in SOLES) == pytest.approx(9.81 * standing.robot.mass, rel=1e-3)
    np.testing.assert_allclose(s.vd, 0.0, atol=1e-2)


@pytest.mark.parametrize("made", [cp.NonNeg, cp.Zero])
def test_added_constraints_of_one_side_are_refused_before_one_has_no_solution(standing, made):
    """Explanation and slack form take a left side and a right one."""
    contacts = soles(standing)
    with pytest.raises(InputError, match=r"write it with >=, <= or =="):
        WholeBodyQP(standing.robot, contacts, [], extra=lambda qp: ([], [made(qp.vd[:1])]))


def test_a_hold_has_no_cost_where_variables_of_the_users_have_no_value(standing, monkeypatch):
    for attempt in ("_solve_form", "_solve_compiled"):
        monkeypatch.setattr(WholeBodyQP, attempt, lambda *_, **__: ("refused", None))
    mine = cp.Variable()
    _, s = solve(standing, soles(standing), lambda qp: ([cp.square(mine - qp.vd[0])], []), explain="never")
    assert s.status == 2
    assert np.isnan(s.objective)
