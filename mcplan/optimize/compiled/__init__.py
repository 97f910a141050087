"""Compiler of DPP-compliant CVXPY QPs: once per structure, into kernels and a condensed QP for a direct solver.

compiled = compile_problem(problem)
compiled.parameter_view(p)[...] = value        # or compiled.set(p, value), compiled.load()
status = compiled.solve()                      # variables are written; compiled.residuals say how well
compiled.write_back()                          # multipliers, problem.status and problem.value too
"""

import cvxpy as cp

from mcplan.optimize.compiled.compiled import CompiledProblem
from mcplan.optimize.compiled.data_map import CannotCompile
from mcplan.optimize.compiled.self_test import self_test

__all__ = ["CannotCompile", "CompiledProblem", "compile_problem"]


def compile_problem(problem: cp.Problem) -> CompiledProblem:
    """Compile a DPP-compliant QP; parameters may still be without values.

    Raises
    ------
    CannotCompile
        With the reason: integer variables, second-order cones, a term that is not DPP, …, or a failed self-test.
    """
    compiled = CompiledProblem(problem)
    self_test(compiled)
    return compiled
