"""The whole-body program of HRP-2, compiled, has the solution that CVXPY finds, and much sooner."""

import time

import cvxpy as cp
import numpy as np
import pytest

from mcplan.core.optimize import (
    condense,
    least_distance as condense_factor,
    recover as condense_check,
    warm_start,
)
from mcplan.optimize.compiled import compile_problem
from mcplan.scene.contact import Contact
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.settings import QPSettings
from mcplan.whole_body.tasks.com import ComTask
from mcplan.whole_body.tasks.posture import PostureTask
from mcplan.whole_body.whole_body import WholeBodyQP

SETTINGS = QPSettings(torque_weight=1e-8, wrench_weight=(1e-5, 1e-5, 1e-8, 2e-5, 2e-5, 2e-5), compiled=False)


def declare(standing, patches, settings=SETTINGS):
    """Return the program with contacts of the patches where they are, its contacts and its tasks."""
    contacts = []
    for patch in patches:
        frame = standing.terms.frame(patch)
        n = -frame.R[:, 2]
        axes = np.column_stack([frame.R[:, 0], np.cross(n, frame.R[:, 0]), n])
        place = Contact(
            patch, "here", "surface", frame.R.copy(), frame.p.copy(), standing.robot.patches[patch].points, axes, 0.7,
            max_force=np.inf, max_moment=np.inf, selection=np.eye(6),
        )  # fmt: skip
        contacts.append(ContactConstraint(place))
    com = ComTask()
    com.position[:] = standing.terms.com + np.array([0.0, 0.02, 0.0])
    tasks = [com, PostureTask(standing.q[7:])]
    return WholeBodyQP(standing.robot, contacts, tasks, settings), contacts, tasks


@pytest.mark.parametrize("patches", [(), ("left_sole",), ("left_sole", "right_sole"), ("left_sole", "left_hand")])
def test_random_states_agree_with_cvxpy(standing, patches):
    program, contacts, tasks = declare(standing, patches)
    compiled = compile_problem(program.problem)
    solved = 0
    for _ in range(12):
        q = standing.q.copy()
        q[7:] += standing.rng.uniform(-0.1, 0.1, standing.robot.n)
        standing.terms.update(q, 0.3 * standing.rng.standard_normal(standing.robot.nv))
        program.update(standing.terms, contacts, tasks)
        compiled.load()
        status = compiled.solve()
        objective = compiled.objective
        ours = [compiled.value(variable) for variable in program.problem.variables()]
        program.problem.solve(solver=cp.DAQP, eps_prox=-1e-5)
        assert status == program.problem.status
        if status == cp.OPTIMAL:
            solved += 1
            assert compiled.residuals.largest < 1e-8
            assert objective == pytest.approx(program.problem.value, rel=1e-6, abs=1e-6)
            for value, variable in zip(ours, program.problem.variables(), strict=True):
                np.testing.assert_allclose(value, variable.value, rtol=1e-6, atol=1e-6)
    assert solved >= 6
    assert compiled.fallbacks == 12 - solved


def test_compiled_double_support_is_much_faster_than_cvxpy(standing):
    program, contacts, tasks = declare(standing, ("left_sole", "right_sole"))
    compiled = compile_problem(program.problem)
    program.update(standing.terms, contacts, tasks)
    compiled.load()

    def median(function, count):
        times = []
        for _ in range(count):
            start = time.perf_counter()
            function()
            times.append(time.perf_counter() - start)
        return np.median(times)

    assert compiled.solve() == cp.OPTIMAL
    plain = median(lambda: program.problem.solve(solver=cp.DAQP, eps_prox=-1e-5), 20)
    assert median(compiled.solve, 200) < plain / 5


def test_one_signature_per_kernel(standing):
    program, contacts, tasks = declare(standing, ("left_sole",))
    compiled = compile_problem(program.problem)
    program.update(standing.terms, contacts, tasks)
    compiled.load()
    compiled.solve()
    compiled.warm = True
    compiled.solve()
    for kernel in (
        warm_start.solve_with_active_set, warm_start.factor_kkt, condense.gather, condense.substitute,
        condense.condense_cost,
        condense.row_limits, condense.condense_rows, condense_factor.prepare,
        condense_factor.condense, condense_check.finish, condense_check.recover, condense_check.check,
    ):  # fmt: skip
        assert len(getattr(kernel, "signatures", [None])) <= 1, kernel
