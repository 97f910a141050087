"""One program solved compiled and by ``problem.solve``: how far the answers are apart, and who is right."""

import time
import warnings
from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from tests.whole_body.kkt import classify, program_at, residuals_of_compiled, residuals_of_daqp

TOLERANCE = 1e-6
"""Largest relative difference of cost, residuals and primals."""

DAQP = {"solver": cp.DAQP, "eps_prox": -1e-5, "iter_limit": 2000, "primal_tol": 1e-10}
CLARABEL = {"solver": cp.CLARABEL, "tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}


@dataclass
class Outcome:
    """Results of both solution methods, and their relative difference."""

    ours: str
    theirs: str
    arbiter: str = ""
    cost: float = 0.0
    primal: float = 0.0
    residual: float = 0.0
    residual_of_plain: float = 0.0
    fallback: bool = False
    active: tuple = ()
    seconds: tuple = (0.0, 0.0)
    note: str = ""

    @property
    def solved(self) -> bool:
        """Whether both found a solution."""
        return self.ours == self.theirs == cp.OPTIMAL


def compare(problem, compiled, unique=True) -> Outcome:
    """Solve compiled at its ``theta`` and by CVXPY at the parameters' values, which are the same."""
    before, start = compiled.fallbacks, time.perf_counter()
    ours = compiled.solve()
    middle = time.perf_counter()
    x, dual, objective = compiled.x.copy(), compiled.dual.copy(), compiled.objective
    mine = {v.id: np.array(compiled.value(v)) for v in problem.variables()} if ours == cp.OPTIMAL else {}
    theirs, raw, value = _plain(problem)
    out = Outcome(ours, theirs, seconds=(middle - start, time.perf_counter() - middle))
    out.fallback = compiled.fallbacks > before
    data = program_at(compiled)
    if ours == cp.OPTIMAL:
        out.residual, out.active = residuals_of_compiled(data, x, dual)
    if theirs == cp.OPTIMAL:
        out.residual_of_plain = residuals_of_daqp(data, raw)
    if out.solved:
        out.cost = abs(objective - value) / max(1.0, abs(value))
        if unique:
            out.primal = _distance(mine, {v.id: v.value for v in problem.variables()})
    disagree = ours != theirs or max(out.cost, out.primal, out.residual_of_plain) > TOLERANCE
    if not out.solved:
        out.arbiter = classify(data)
    if disagree and cp.OPTIMAL in (ours, theirs):
        _arbitrate(problem, out, mine, objective, unique)
    return out


def _plain(problem):
    """``problem.solve`` with DAQP in its parts, so that what DAQP itself returned is at hand."""
    options = {key: value for key, value in DAQP.items() if key != "solver"}
    data, chain, inverse = problem.get_problem_data(cp.DAQP, solver_opts=options)
    raw = chain.solve_via_data(problem, data, solver_opts=dict(options))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            problem.unpack_results(raw, chain, inverse)
    except cp.SolverError:
        return cp.SOLVER_ERROR, raw, np.nan
    return problem.status, raw, problem.value


def _arbitrate(problem, out: Outcome, mine, objective, unique) -> None:
    """Let CLARABEL's answer, where it has one, take the place of DAQP's."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            problem.solve(**CLARABEL)
    except cp.SolverError:
        return
    if mine and problem.status == cp.OPTIMAL:  # an inaccurate one is none; then the residual alone must prove ours
        out.arbiter = cp.OPTIMAL
        cost = abs(objective - problem.value) / max(1.0, abs(problem.value))
        primal = _distance(mine, {v.id: v.value for v in problem.variables()}) if unique else 0.0
        out.note = (
            f"ours {out.ours}, DAQP {out.theirs}; from DAQP: cost {out.cost:.1e} primal {out.primal:.1e} residual "
            f"{out.residual_of_plain:.1e}; from CLARABEL: cost {cost:.1e} primal {primal:.1e}"
        )
        out.cost, out.primal = cost, primal


def _distance(mine, theirs) -> float:
    """Largest difference over the largest entry, by variable."""
    worst = 0.0
    for key, value in mine.items():
        a, b = np.asarray(value, dtype=float), np.asarray(theirs[key], dtype=float)
        worst = max(worst, float(np.max(np.abs(a - b), initial=0.0)) / max(1.0, float(np.max(np.abs(b), initial=0.0))))
    return worst
