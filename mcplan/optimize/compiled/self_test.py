"""Self-test of every compilation: guards against wrong solutions after changes of CVXPY's internals."""

import numpy as np

from mcplan.core.optimize import layout as lay, least_distance
from mcplan.optimize.compiled.compiled import CompiledProblem
from mcplan.optimize.compiled.data_map import CannotCompile

RELATIVE_TOLERANCE = 1e-9
"""Largest difference, relative to the largest number."""


def self_test(compiled: CompiledProblem, seed: int = 0) -> None:
    """Compare the data map with CVXPY's data, and the condensed QP with the full one, at random parameter values.

    Raises
    ------
    CannotCompile
        If a number differs: the compiled form must not be used.
    """
    generator = np.random.default_rng(seed)
    before = compiled.theta.copy()
    try:
        compiled.theta[:-1] = generator.standard_normal(compiled.theta.size - 1)
        values = _compare_data(compiled)
        _compare_condensed(compiled, values, generator)
    finally:
        compiled.theta[:] = before


def _compare_data(compiled: CompiledProblem):
    """Return CVXPY's (P, q, d, A, b, lower, upper) after comparing it with the gathered numbers."""
    program, data = compiled._program, compiled.data_map
    values = {p.id: compiled.parameter_view(p).copy() for p in program.parameters}
    P, q, d, A, b = program.apply_parameters(id_to_param_value=values, quad_obj=True)
    least_distance.condense(compiled.condensed.program, compiled.condensed.work, compiled.theta)
    numbers = compiled.condensed.part(lay.VALUES)
    n = data.size
    dense_A, dense_P = np.zeros((data.rows, n)), np.zeros((n, n))
    for j in range(n):
        for k in range(data.A_indptr[j], data.A_indptr[j + 1]):
            dense_A[data.A_indices[k], j] = numbers[k]
        for k in range(data.P_indptr[j], data.P_indptr[j + 1]):
            dense_P[data.P_indices[k], j] = numbers[data.P + k]
    P = P.toarray()
    lower = np.full(n, -np.inf) if program.lower_bounds is None else program.lower_bounds
    upper = np.full(n, np.inf) if program.upper_bounds is None else program.upper_bounds
    for name, ours, theirs in (
        ("A", dense_A, A.toarray()),
        ("b", numbers[data.b : data.b + data.rows], b),
        ("P", dense_P, 0.5 * (P + P.T)),
        ("q", numbers[data.q : data.q + n], q),
        ("d", numbers[data.d], d),
        ("lower bounds", numbers[data.lower : data.lower + n], lower),
        ("upper bounds", numbers[data.upper : data.upper + n], upper),
    ):
        _compare(name, ours, theirs)
    return dense_P, q, float(np.squeeze(d)), dense_A, np.asarray(b)


def _compare_condensed(compiled: CompiledProblem, values, generator) -> None:
    """Compare cost and equalities of the full and the condensed QP at a random z."""
    P, q, d, A, b = values
    c, equalities = compiled.condensed, compiled.data_map.equalities
    H, g, G, lower, _ = compiled.dense()
    z, z_other = generator.standard_normal((2, c.variables))

    def evaluate_full(point):
        compiled._accept(point, np.zeros(c.rows))
        x = compiled.x.copy()
        return 0.5 * x @ P @ x + q @ x + d, A[:equalities] @ x + b[:equalities]

    f0, r0 = evaluate_full(z)
    f1, _ = evaluate_full(z_other)
    scale = 1.0 + abs(f0) + abs(f1)
    expected = (0.5 * z @ H @ z + g @ z) - (0.5 * z_other @ H @ z_other + g @ z_other)
    _compare("condensed cost", (f0 - f1) / scale, expected / scale)
    magnitude = np.abs(A[:equalities]) @ np.abs(compiled.x) + np.abs(b[:equalities]) + 1.0
    substituted = np.setdiff1d(np.arange(equalities), compiled.elimination.remaining_rows)
    _compare("substituted equalities", (r0 / magnitude)[substituted], np.zeros(len(substituted)))
    residuals = np.sort((G @ z - lower)[c.equality])
    _compare("remaining equalities", residuals, np.sort(r0[compiled.elimination.remaining_rows]))


def _compare(name: str, ours, theirs) -> None:
    ours, theirs = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    scale = 1.0 + np.max(np.abs(theirs[np.isfinite(theirs)]), initial=0.0)
    if ours.shape != np.squeeze(theirs).shape and ours.shape != theirs.shape:
        raise CannotCompile(f"self-test: {name} has shape {ours.shape}, CVXPY's has {theirs.shape}")
    if not np.allclose(ours / scale, theirs / scale, rtol=0.0, atol=RELATIVE_TOLERANCE):
        raise CannotCompile(f"self-test: {name} differs from CVXPY's; the installed CVXPY is not supported")
