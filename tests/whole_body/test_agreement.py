"""The compiled whole-body program has the solution that CVXPY finds, whatever the robot, contacts, state and limits.

A seeded part of it; all of it, and a report of the differences: ``python -m tests.whole_body.agreement 10000``.
"""

import hashlib
import subprocess
import sys
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

from mcplan.errors import SimulationFailed
from mcplan.optimize.compiled import compile_problem
from mcplan.planning.sequence import complete_sequence
from mcplan.robot.terms import Terms
from mcplan.scenario.load import load_scenario
from mcplan.sim.simulate import simulate
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.settings import QPSettings
from mcplan.whole_body.whole_body import WholeBodyQP
from tests.whole_body import agreement
from tests.whole_body.comparison import DAQP, TOLERANCE, compare
from tests.whole_body.conftest import contact_at, standing_tasks
from tests.whole_body.random_programs import draw_case, fill

ROOT = Path(__file__).resolve().parents[2]


def quiet(_):
    """No report."""


def test_random_programs_agree_with_cvxpy():
    result = agreement.run(300, seed=11, per_case=20, report=quiet)
    assert not result.wrong, result.wrong[0]
    assert max(result.worst["cost"], result.worst["primal"], result.worst["residual"]) < TOLERANCE
    active = {key[1]: number for key, number in result.counts.items() if key[0] == "active"}
    assert {"torque", "friction", "acceleration_min", "acceleration_max", "limit", "normal_max"} <= set(active)
    assert result.counts["fallback", True] == 0
    assert {key[1] for key in result.counts if key[0] == "contacts"} == {0, 1, 2, 3, 4}


@pytest.mark.slow
def test_programs_without_solution_are_classified_as_linear_programs_say():
    result = agreement.run_hard(140, seed=5, per_case=5, report=quiet)
    assert not result.wrong, result.wrong[0]
    found = {key[1].split(",")[0] for key in result.counts}
    assert found == {"compiled optimal", "compiled infeasible", "compiled unbounded"}


def held_up(standing, compiled):
    """A robot that may not move, with a pull upwards on its trunk as the parameter: which pull is too much?"""
    contacts = [ContactConstraint(contact_at(standing.robot, p, standing.q)) for p in ("left_sole", "right_sole")]
    tasks = standing_tasks(standing)
    qp = WholeBodyQP(
        standing.robot, contacts, tasks, QPSettings(compiled=compiled, explain="never"), lambda qp: ([], [qp.vd == 0])
    )
    lift = standing.terms.frame("BODY").J.T @ np.r_[0, 0, 1.0, 0, 0, 0]

    def status(pull):
        qp.update(standing.terms, contacts, tasks, pull * lift)
        if compiled:
            return qp.fast.solve()
        qp.problem.solve(**DAQP)
        return qp.problem.status

    low, high = 0.0, 2000.0
    assert (status(low), status(high)) == (cp.OPTIMAL, cp.INFEASIBLE)
    while high - low > 1e-5:
        middle = 0.5 * (low + high)
        if status(middle) == cp.OPTIMAL:
            low = middle
        else:
            high = middle
    return low


def test_the_pull_from_which_on_there_is_no_solution_is_the_same(standing):
    ours, theirs = held_up(standing, True), held_up(standing, False)
    assert ours == pytest.approx(theirs, rel=1e-6)
    assert 9.81 * standing.robot.mass * 0.8 < ours < 9.81 * standing.robot.mass


def test_solves_in_a_row_do_not_depend_on_each_other(standing):
    """From the rows that were active in another state, near or far, or in a program without solution."""
    rng = np.random.default_rng(3)
    for contacts in (1, 2, 4):
        case = draw_case(standing.robot, "hrp2", rng, contacts=contacts)
        thetas = []
        for _ in range(12):
            fill(case, rng)
            thetas.append(case.qp.fast.theta.copy())
        cold = compile_problem(case.qp.problem)
        assert case.qp.fast.compiled.warm
        assert not cold.warm
        broken = thetas[0].copy()
        broken[:-1] = rng.normal(size=len(broken) - 1)
        for theta in (*thetas, broken, *thetas[::-1], *(thetas[0] + 1e-6 * k * np.abs(thetas[0]) for k in range(5))):
            case.qp.fast.theta[:], cold.theta[:] = theta, theta
            case.qp.fast.theta[-1] = cold.theta[-1] = 1.0
            status = case.qp.fast.compiled.solve()
            assert status == cold.solve()
            if status == cp.OPTIMAL and theta is not broken:
                scale = max(1.0, np.abs(cold.x).max())
                assert np.abs(case.qp.fast.compiled.x - cold.x).max() < 1e-9 * scale
                assert case.qp.fast.compiled.objective == pytest.approx(cold.objective, rel=1e-9, abs=1e-9)


def simulated(path):
    """Simulate a small scenario; return the digest of its run file and its length."""
    run = simulate(complete_sequence(load_scenario("sway", overrides={"simulation.dt": 0.004})))
    return hashlib.sha256(run.save(path).read_bytes()).hexdigest(), len(run)


@pytest.mark.slow
def test_a_fresh_process_writes_the_same_bytes(tmp_path):
    """As one that has solved other programs before; warm starts must leave no trace."""
    code = f"from tests.whole_body.test_agreement import simulated; print(*simulated({str(tmp_path / 'a.npz')!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    digest, samples = simulated(tmp_path / "b.npz")
    assert done.stdout.split() == [digest, str(samples)]
    assert samples > 100


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("what", ["q", "v", "reference", "friction", "push"])
def test_what_is_not_a_number_is_refused_and_the_next_tick_is_as_if_nothing_had_been(standing, what, compiled):
    contacts = [ContactConstraint(contact_at(standing.robot, p, standing.q)) for p in ("left_sole", "right_sole")]
    tasks = standing_tasks(standing)
    qp = WholeBodyQP(standing.robot, contacts, tasks, QPSettings(compiled=compiled))
    qp.update(standing.terms, contacts, tasks)
    before = qp.solve()
    q, v, push = standing.q.copy(), standing.v.copy(), np.zeros(standing.robot.nv)
    {"q": q, "v": v, "push": push}.get(what, np.zeros(9))[8] = np.nan
    position, friction = tasks[0].position.copy(), contacts[0].friction
    if what == "reference":
        tasks[0].position[0] = np.nan
    if what == "friction":
        contacts[0].friction = np.nan
    standing.terms.update(q, v)
    with pytest.raises(SimulationFailed):
        qp.update(standing.terms, contacts, tasks, push)
    tasks[0].position, contacts[0].friction = position, friction
    standing.terms.update(standing.q, standing.v)
    qp.update(standing.terms, contacts, tasks)
    after = qp.solve()
    assert after.ok
    np.testing.assert_allclose(after.vd, before.vd, atol=1e-9)
    np.testing.assert_allclose(after.tau, before.tau, atol=1e-7)


def test_two_patches_of_one_foot(standing):
    """The rows of the toe's edge follow from those of the sole: the equalities have not full rank."""
    robot = standing.robot
    patches = ("left_sole", "left_toe", "right_sole")
    contacts = []
    for patch in patches:
        selection = np.delete(np.eye(6), 4, axis=0) if patch == "left_toe" else None
        contacts.append(ContactConstraint(contact_at(robot, patch, standing.q, selection=selection)))
    tasks = standing_tasks(standing)
    standing.terms = Terms(robot, [*patches, "BODY"])
    standing.terms.update(standing.q, standing.v)
    qp = WholeBodyQP(robot, contacts, tasks)
    rng = np.random.default_rng(0)
    for tick in range(10):
        tasks[0].acceleration = (0.0 if tick == 0 else 1.0) * rng.normal(size=3)
        qp.update(standing.terms, contacts, tasks)
        assert np.linalg.matrix_rank(qp.data["contact_jacobian"]) == 12
        solution = qp.solve()
        assert solution.ok, solution.message
        out = compare(qp.problem, qp.fast.compiled)
        assert out.solved
        assert max(out.cost, out.primal, out.residual) < TOLERANCE
        np.testing.assert_allclose(qp.data["contact_jacobian"] @ solution.vd, 0, atol=1e-8)
