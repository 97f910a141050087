"""The compiled form of a QP has the solution that CVXPY finds, for any DPP QP."""

import cvxpy as cp
import numpy as np
import pytest

from mcplan.optimize.compiled import CannotCompile, compile_problem
from mcplan.optimize.compiled.fallback import polish
from tests.whole_body.comparison import compare
from tests.whole_body.kkt import multipliers_are_unique, program_at


def agree(problem, compiled, tolerance=1e-6):
    """Check status, cost, residuals, primals and multipliers against ``problem.solve()``."""
    assert compiled.solve() == cp.OPTIMAL
    assert compiled.residuals.largest < tolerance
    primal = [v.value for v in problem.variables()]
    compiled.write_back()
    dual = [c.dual_value for c in problem.constraints]
    value = problem.value
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    assert value == pytest.approx(problem.value, rel=tolerance, abs=tolerance)
    return primal, dual


@pytest.mark.parametrize("seed", range(200))
def test_random_problems_agree_with_cvxpy(random_problem, seed):
    """Cost, primals, residuals by CVXPY's own data, and the multipliers where they are unique."""
    problem = random_problem(seed)
    compiled = compile_problem(problem)
    out = compare(problem, compiled)
    assert out.solved
    assert max(out.cost, out.primal, out.residual) < 1e-7
    if multipliers_are_unique(program_at(compiled), compiled.x):
        theirs = [np.array(c.dual_value) for c in problem.constraints]
        compiled.write_back()
        for constraint, expected in zip(problem.constraints, theirs, strict=True):
            np.testing.assert_allclose(constraint.dual_value, expected, rtol=1e-7, atol=1e-7)


def test_new_parameter_values_give_the_new_solution(whole_body):
    problem, parameters, fill = whole_body(14, 8, 4, seed=3)
    compiled = compile_problem(problem)
    for _ in range(5):
        fill()
        used = {parameter.id for parameter in problem.parameters()}
        for parameter in parameters.values():
            if parameter.id in used:
                compiled.parameter_view(parameter)[...] = parameter.value
        agree(problem, compiled)
    assert compiled.fallbacks == 0


@pytest.mark.parametrize("seed", range(6))
def test_whole_body_problem_agrees_with_cvxpy_in_all_variables_and_multipliers(whole_body, seed):
    problem, _, _ = whole_body(seed=seed)
    compiled = compile_problem(problem)
    primal, dual = agree(problem, compiled)
    problem.solve(solver=cp.DAQP)
    for ours, variable in zip(primal, problem.variables(), strict=True):
        np.testing.assert_allclose(ours, variable.value, rtol=1e-6, atol=1e-6)
    for ours, constraint in zip(dual, problem.constraints, strict=True):
        np.testing.assert_allclose(ours, constraint.dual_value, rtol=1e-5, atol=1e-6)
    assert compiled.residuals.largest < 1e-10
    assert compiled.fallbacks == 0


def test_structure_removes_the_variables_that_equalities_give(whole_body):
    problem, _, _ = whole_body()
    compiled = compile_problem(problem)
    assert compiled.condensed.variables == 38 + 24
    assert compiled.condensed.equality.sum() == 6 + 12
    one_sided = compiled.data_map.inequalities
    assert compiled.condensed.rows - 18 == one_sided - 32 - 32 - 8  # torque, acceleration and normal force in pairs


@pytest.mark.parametrize("seed", range(8))
def test_infeasible_problems_are_classified_as_cvxpy_does(seed):
    g = np.random.default_rng(seed)
    x = cp.Variable(4)
    a = cp.Parameter(4, value=g.standard_normal(4))
    gap = cp.Parameter(value=0.1)
    constraints = [a @ x >= gap, a @ x <= -gap, x <= 10, x >= -10]
    if seed % 2:
        constraints = [a @ x == gap, a @ x == -gap]
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x[: seed % 4 + 1])), constraints)
    compiled = compile_problem(problem)
    assert compiled.solve() == cp.INFEASIBLE
    assert compiled.objective == np.inf
    compiled.write_back()
    assert problem.status == cp.INFEASIBLE
    problem.solve(solver=cp.CLARABEL)
    assert problem.status == cp.INFEASIBLE
    # DAQP's word, which it does not give on equalities that contradict each other
    assert compiled.solve(prove=False) == (cp.INFEASIBLE if seed % 2 else cp.INFEASIBLE_INACCURATE)
    assert compiled.objective == np.inf
    if seed % 2 == 0:
        compiled.set(gap, -0.1)
        assert compiled.solve() == cp.OPTIMAL


@pytest.mark.parametrize("seed", range(8))
def test_unbounded_problems_are_classified_as_cvxpy_does(seed):
    g = np.random.default_rng(seed)
    x = cp.Variable(4)
    q = cp.Parameter(4, value=-g.uniform(0.1, 1.0, 4))
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x[:2]) + q @ x), [x >= g.standard_normal(4)] if seed % 2 else [])
    compiled = compile_problem(problem)
    assert compiled.solve() == cp.UNBOUNDED
    problem.solve(solver=cp.CLARABEL)
    assert problem.status == cp.UNBOUNDED


def test_a_repeated_equality_and_a_singular_hessian_are_solved():
    x = cp.Variable(5)
    E = cp.Parameter((2, 5), value=np.vstack([np.arange(1.0, 6.0)] * 2))
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x[:2] - 1) + x[2]), [E @ x == 1, x[2:] >= -1, x[2:] <= 1])
    compiled = compile_problem(problem)
    agree(problem, compiled)


def test_a_linear_program_is_solved():
    x = cp.Variable(3)
    c = cp.Parameter(3, value=[1.0, 2.0, 3.0])
    problem = cp.Problem(cp.Minimize(c @ x), [cp.sum(x) == 1, x >= 0])
    compiled = compile_problem(problem)
    agree(problem, compiled)
    np.testing.assert_allclose(x.value, [1.0, 0.0, 0.0], atol=1e-7)


def test_a_problem_without_inequalities_or_parameters_is_solved():
    x = cp.Variable(3)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - 1) + 2 * cp.sum_squares(x)))
    agree(problem, compile_problem(problem))


def test_variables_fixed_by_equalities_alone():
    x, p = cp.Variable(2), cp.Parameter(2, value=[1.0, 2.0])
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x)), [x == p, x[0] <= 3])
    compiled = compile_problem(problem)
    agree(problem, compiled)
    compiled.set(p, [4.0, 0.0])
    assert compiled.solve() == cp.INFEASIBLE


def test_parametric_bounds_of_a_variable():
    upper = cp.Parameter(3, value=[0.1, 0.2, 0.3])
    x = cp.Variable(3, bounds=[-1.0, upper])
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - 1)), [cp.sum(x) <= 0.5])
    compiled = compile_problem(problem)
    agree(problem, compiled)
    upper.value = [0.0, 0.0, -0.5]
    compiled.set(upper, upper.value)
    agree(problem, compiled)
    np.testing.assert_allclose(compiled.value(x), upper.value, atol=1e-9)


def test_parameters_and_variables_that_cvxpy_stores_in_reduced_form():
    K = cp.Parameter((3, 3), symmetric=True, value=np.array([[2.0, 1, 0], [1, 3, 1], [0, 1, 4]]))
    x, D, S = cp.Variable(3), cp.Variable((3, 3), diag=True), cp.Variable((3, 3), symmetric=True)
    cost = cp.sum_squares(x - 1) + cp.sum_squares(D - 2) + cp.sum_squares(S - 1)
    problem = cp.Problem(cp.Minimize(cost), [K @ x <= 0.5, S[0, 1] == D[0, 0], S[2, 1] <= -x[0]])
    compiled = compile_problem(problem)
    for value in (K.value, np.eye(3)):
        compiled.set(K, value)
        primal, _ = agree(problem, compiled)
        for ours, variable in zip(primal, problem.variables(), strict=True):
            ours, theirs = (v.toarray() if hasattr(v, "toarray") else v for v in (ours, variable.value))
            np.testing.assert_allclose(ours, theirs, atol=1e-5)
    with pytest.raises(CannotCompile, match="reduced form"):
        compiled.parameter_view(K)


def test_infinite_limits_are_none():
    x, limit = cp.Variable(2), cp.Parameter(2, value=[np.inf, 0.5])
    compiled = compile_problem(cp.Problem(cp.Minimize(cp.sum_squares(x - 2)), [x <= limit]))
    assert compiled.solve() == cp.OPTIMAL
    np.testing.assert_allclose(x.value, [2.0, 0.5], atol=1e-12)


def test_a_nan_is_never_reported_as_solved(whole_body):
    problem, parameters, _ = whole_body(14, 8, 4)
    compiled = compile_problem(problem)
    for name in ("M", "h", "tau_max", "bcom"):
        view = compiled.parameter_view(parameters[name])
        value = view.copy()
        view.flat[0] = np.nan
        assert compiled.solve() == cp.SOLVER_ERROR, name
        view[...] = value
    assert compiled.solve() == cp.OPTIMAL


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (lambda x, p: cp.Problem(cp.Minimize(cp.norm(x))), "not a QP"),
        (lambda x, p: cp.Problem(cp.Minimize(cp.sum(cp.Variable(2, integer=True)))), "integer"),
        (lambda x, p: cp.Problem(cp.Minimize(cp.quad_form(x, cp.Parameter((3, 3), PSD=True)))), "DPP"),
        (lambda x, p: cp.Problem(cp.Minimize(p * cp.Parameter(nonneg=True) * cp.sum_squares(x))), "DPP"),
        (lambda x, p: cp.Problem(cp.Maximize(cp.sum_squares(x))), "convex"),
        (lambda x, p: cp.Problem(cp.Minimize(p)), "no variables"),
    ],
)
def test_what_cannot_be_compiled_is_refused_with_the_reason(problem, reason):
    with pytest.raises(CannotCompile, match=reason):
        compile_problem(problem(cp.Variable(3), cp.Parameter(nonneg=True)))


def test_the_same_parameters_give_the_same_bits(whole_body):
    problem, _, fill = whole_body(14, 8, 4)
    compiled = compile_problem(problem)
    compiled.solve()
    first = compiled.x.copy()
    fill()
    before = compiled.theta.copy()
    compiled.load()
    compiled.solve()
    compiled.theta[:] = before
    compiled.solve()
    assert np.array_equal(compiled.x, first)


@pytest.mark.parametrize("seed", range(4))
def test_terms_without_curvature_stay_on_the_fast_path(whole_body, seed):
    problem, _, _ = whole_body(14, 8, 4, seed=seed)
    tau = next(v for v in problem.variables() if v.size == 8)
    cost = problem.objective.expr + 0.01 * cp.norm1(tau[:4]) + 0.02 * cp.norm_inf(tau)
    problem = cp.Problem(cp.Minimize(cost), problem.constraints)
    compiled = compile_problem(problem)
    agree(problem, compiled)
    assert compiled.fallbacks == 0


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_rough_answer_is_polished_to_the_one_on_the_sides_that_its_multipliers_say(side):
    """The nearest point of a box to a point beyond it, in one coordinate on either side."""
    far = side * np.array([3.0, -2.0, 0.5])
    upper, equality = np.ones(3), np.zeros(3, bool)
    rough = np.clip(far, -1.0, 1.0) + 0.01, 1.1 * (far - np.clip(far, -1.0, 1.0))
    z, multiplier = polish(np.eye(3), -far, np.eye(3), -upper, upper, equality, *rough)
    np.testing.assert_allclose(z, np.clip(far, -1.0, 1.0), atol=1e-12)
    np.testing.assert_allclose(multiplier, far - np.clip(far, -1.0, 1.0), atol=1e-12)


def test_a_warm_start_finds_the_same_minimum(random_problem):
    """From the rows that were active at other parameters, and back, and after an infeasible problem."""
    for seed in range(20):
        problem = random_problem(seed)
        compiled = compile_problem(problem)
        compiled.load()
        theta, rng = compiled.theta.copy(), np.random.default_rng(seed)
        assert compiled.solve() == cp.OPTIMAL
        cold, objective = compiled.x.copy(), compiled.objective
        compiled.warm = True
        for size in (0.0, 1e-3, 0.1, 3.0):
            compiled.theta[:-1] = theta[:-1] + size * rng.standard_normal(len(theta) - 1)
            compiled.solve()
            compiled.theta[:] = theta
            assert compiled.solve() == cp.OPTIMAL
            assert compiled.objective == pytest.approx(objective, rel=1e-7, abs=1e-7)
            np.testing.assert_allclose(compiled.x, cold, atol=1e-5)
