"""Strict priorities against the sequence of constrained least-squares problems that defines them."""

import cvxpy as cp
import numpy as np
import pytest

from mcplan.errors import InputError
from mcplan.optimize.compiled import compile_problem
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.pool import ProblemPool
from mcplan.whole_body.priorities import ACCELERATION_WEIGHT, FORCE_WEIGHT, PrioritisedQP
from mcplan.whole_body.tasks.com import AngularMomentumTask, ComTask
from mcplan.whole_body.tasks.forces import TorqueTask
from mcplan.whole_body.tasks.pose import LinkPoseTask
from mcplan.whole_body.tasks.posture import PostureTask
from mcplan.whole_body.tasks.task import weights
from mcplan.whole_body.whole_body import WholeBodyQP
from tests.whole_body.conftest import contact_at, random_state, standing_tasks

SOLES = ("left_sole", "right_sole")


def soles(state):
    return [ContactConstraint(contact_at(state.robot, patch, state.q)) for patch in SOLES]


def hand_task(state, offset, priority, **options):
    task = LinkPoseTask("left_hand", orientation=False, **options)
    task.p, task.priority = state.terms.frame("left_hand").p + np.array(offset), priority
    return task


def three_levels(state):
    """A hand beyond reach, then the CoM where the feet cannot bring it at once, then the posture."""
    hand = hand_task(state, [0.3, 0.1, -0.2], 1, kp=30.0)
    com = ComTask(weight=np.array([10.0, 5.0, 1.0]))
    com.position, com.priority = state.terms.com + np.array([0.05, -0.05, 0.1]), 2
    momentum = AngularMomentumTask(weight=0.1)
    momentum.priority = 2
    posture = PostureTask(state.q[7:], weight=0.1)
    posture.priority = 3
    return [posture, momentum, hand, com]


def full(task, terms):
    """Return A and b with a matrix for diagonal tasks too."""
    A, b = task.rows(terms)
    return (np.eye(len(terms.v))[A], b) if task.diagonal else (A, b)


def reference(state, contacts, tasks, settings=None):
    """Solve the sequence in CVXPY with an interior-point solver; return vd and the cost of each level."""
    qp = WholeBodyQP(state.robot, contacts, [])
    qp.update(state.terms, contacts, [])
    rows, costs = list(qp.problem.constraints), []
    levels = sorted({task.priority for task in tasks})
    for level in levels:
        group = [(weights(t), *full(t, state.terms)) for t in tasks if t.priority == level]
        cost = sum(cp.sum_squares(cp.multiply(np.sqrt(w), A @ qp.vd - b)) for w, A, b in group)
        on_vd, on_force = (1e-3, 1e-5) if level == levels[-1] else (ACCELERATION_WEIGHT, FORCE_WEIGHT)
        pressures = np.concatenate([np.tile([1 / c.friction, 1 / c.friction, 1.0], len(c.points)) for c in contacts])
        regular = on_vd * cp.sum_squares(qp.vd) + on_force * cp.sum_squares(cp.multiply(pressures, qp.force))
        cp.Problem(cp.Minimize(cost + regular), rows).solve(
            solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10
        )
        costs.append(float(cost.value))
        rows = rows + [A @ qp.vd == A @ qp.vd.value for _, A, _ in group]
    return qp.vd.value, costs


def costs_of(tasks, terms, vd):
    return [
        sum(float(weights(t) @ (A @ vd - b) ** 2) for t in tasks if t.priority == level for A, b in [full(t, terms)])
        for level in sorted({task.priority for task in tasks})
    ]


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("seed", range(4))
def test_levels_reach_what_the_reference_sequence_reaches(standing, seed):
    standing.rng = np.random.default_rng(seed)
    random_state(standing, 0.5)
    contacts, tasks = soles(standing), three_levels(standing)
    qp = PrioritisedQP(standing.robot, contacts, tasks)
    qp.update(standing.terms, contacts, tasks)
    s = qp.solve()
    assert s.ok, s.message
    vd, costs = reference(standing, contacts, tasks)
    np.testing.assert_allclose(costs_of(tasks, standing.terms, s.vd), costs, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(s.vd, vd, atol=1e-3)


def test_a_lower_level_takes_nothing_from_the_one_above(standing):
    """What the hand reaches is the same with any task below it, however heavy; with weights alone it is not."""
    contacts = soles(standing)
    hand = hand_task(standing, [0.3, 0.1, -0.2], 1, weight=1.0, kp=30.0)
    acceleration = {}
    for priority, heavy in ((2, 1.0), (2, 1e3), (1, 1e3)):
        posture = PostureTask(standing.q[7:], weight=heavy)
        posture.priority = priority
        tasks = [hand, posture]
        qp = PrioritisedQP(standing.robot, contacts, tasks)
        qp.update(standing.terms, contacts, tasks)
        s = qp.solve()
        assert s.ok, s.message
        acceleration[priority, heavy] = standing.terms.frame("left_hand").J[:3] @ s.vd
    np.testing.assert_allclose(acceleration[2, 1.0], acceleration[2, 1e3], atol=1e-6)
    assert np.linalg.norm(acceleration[1, 1e3] - acceleration[2, 1e3]) > 1.0


def test_the_pool_hands_out_levels_by_their_sizes(standing):
    contacts, tasks = soles(standing), three_levels(standing)
    pool = ProblemPool(standing.robot)
    qp = pool.get(contacts, tasks)
    assert isinstance(qp, PrioritisedQP)
    assert pool.get(contacts[::-1], tasks[::-1]) is qp
    tasks[2].priority = 2
    other = pool.get(contacts, tasks)
    assert isinstance(other, PrioritisedQP)
    assert other.levels == [2, 3]
    assert isinstance(pool.get(contacts, tasks[1:]), WholeBodyQP)
    assert len(pool) == 3


def test_one_level_is_the_plain_program(standing):
    random_state(standing, 0.5)
    contacts, tasks = soles(standing), standing_tasks(standing, (0.02, 0.02, 0))
    solutions = []
    for kind in (WholeBodyQP, PrioritisedQP):
        qp = kind(standing.robot, contacts, tasks)
        qp.update(standing.terms, contacts, tasks)
        solutions.append(qp.solve())
    assert qp.levels == [1]
    np.testing.assert_array_equal(solutions[0].vd, solutions[1].vd)


def test_a_task_on_a_foot_in_contact_repeats_rows_and_does_no_harm(standing):
    """The kept rows of a foot that cannot move are those of its contact once more."""
    contacts = soles(standing)
    foot = LinkPoseTask("left_sole")
    frame = standing.terms.frame("left_sole")
    foot.R, foot.p, foot.priority = frame.R.copy(), frame.p + np.array([0, 0, 0.02]), 1
    again = LinkPoseTask("left_sole")
    again.R, again.p, again.priority = foot.R, frame.p - np.array([0, 0, 0.02]), 2
    com = ComTask()
    com.position, com.priority = standing.terms.com + np.array([0, 0.02, 0]), 3
    tasks = [foot, again, com]
    qp = PrioritisedQP(standing.robot, contacts, tasks)
    qp.update(standing.terms, contacts, tasks)
    s = qp.solve()
    assert s.ok, s.message
    assert s.residuals.contact < 1e-6
    assert standing.terms.com_jacobian[1] @ s.vd == pytest.approx(60 * 0.02, abs=0.02)


def test_each_level_compiles(standing):
    """The levels are declared programs like any other: compiled, they give the same answers."""
    random_state(standing, 0.3)
    contacts, tasks = soles(standing), three_levels(standing)
    qp = PrioritisedQP(standing.robot, contacts, tasks)
    qp.update(standing.terms, contacts, tasks)
    s = qp.solve()
    assert s.ok, s.message
    for problem, solution in zip(qp.problems, qp.solutions, strict=True):
        compiled = compile_problem(problem.problem)
        assert compiled.solve() == cp.OPTIMAL
        assert compiled.residuals.largest < 1e-8
        # the plain solver's proximal steps end early where only the small damping gives curvature
        assert compiled.objective + problem._constant == pytest.approx(solution.objective, rel=1e-4, abs=1e-4)


def test_a_level_that_fails_leaves_the_answer_of_the_one_above(standing, monkeypatch):
    contacts, tasks = soles(standing), three_levels(standing)
    qp = PrioritisedQP(standing.robot, contacts, tasks)
    qp.update(standing.terms, contacts, tasks)
    np.testing.assert_allclose(qp.attempt().vd, qp.solve().vd, atol=1e-9)
    last = qp.problems[-1]
    monkeypatch.setattr(last, "_solve_declared", lambda *_, **__: ("made to fail", None))
    assert qp.attempt() is None
    s = qp.solve()
    assert s.status == 1
    assert s.message.startswith("priority 3: made to fail")
    np.testing.assert_array_equal(s.vd, qp.solutions[1].vd)


def test_priorities_that_mean_nothing_are_refused(standing):
    contacts, tasks = soles(standing), three_levels(standing)
    torque = TorqueTask(standing.robot.n)
    with pytest.raises(InputError, match="belong to the last priority"):
        PrioritisedQP(standing.robot, contacts, [*tasks, torque])
    qp = PrioritisedQP(standing.robot, contacts, tasks)
    tasks[0].priority = 2
    with pytest.raises(InputError, match=r"priorities \[1, 2\], the declared program \[1, 2, 3\]"):
        qp.update(standing.terms, contacts, tasks)
    tasks[0].priority = 0
    with pytest.raises(InputError, match="1 or more"):
        PrioritisedQP(standing.robot, contacts, tasks)
