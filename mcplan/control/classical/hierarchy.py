"""Least squares with strict priorities, in two ways that give the same answer.

    for i = 1 .. n:   x_i = (A_i N_i)^+ (b_i - A_i x),   x += N_i x_i,   N_{i+1} = null space of A_1 .. A_i

is algorithm 2; with ``A_i = J_i`` and ``b_i = w_i - Jdot_i v`` it is the multi-task decomposition of accelerations
(3.81 for one level, 3.82 for several). As a sequence of programs

    min |A_i x - b_i|²    subject to    A_k x = A_k x_k*  for all k < i            (3.107)

which may have inequalities ``G x <= g`` besides: limits of torques and friction, which the first way cannot keep.

Source: S1, sec. 3.10.1-3.10.3.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from mcplan.errors import InputError, SolverFailed
from mcplan.optimize.dense import solve_dense

RANK = 1e-9
"""Singular values below this share of the largest of their matrix do not count."""

UNSEEN = 1e-9
"""Curvature of what a level does not see, beside 1 of what it does: its answer is then unique."""

Level = tuple[ArrayLike, ArrayLike]
"""``A`` (m, n) and ``b`` (m,) of a level."""


def hierarchical_least_squares(levels: Sequence[Level]) -> np.ndarray:
    """Return the ``x`` (n,) that meets each level as well as those before it allow, the least of these (algorithm 2).

    Parameters
    ----------
    levels : the first one goes first.

    Raises
    ------
    InputError
        There is no level, or shapes do not fit.
    """
    parts = _checked(levels)
    n = parts[0][0].shape[1]
    x, N = np.zeros(n), np.eye(n)
    for A, b in parts:
        # N has orthonormal columns that span the null space: N_i x_i of the document is N z here
        if not N.shape[1]:
            break
        U, s, Vt = np.linalg.svd(A @ N, full_matrices=True)
        rank = int(np.count_nonzero(s > RANK * max(float(np.linalg.norm(A, 2)), np.finfo(float).tiny)))
        x = x + N @ (Vt[:rank].T @ ((U[:, :rank].T @ (b - A @ x)) / s[:rank]))
        N = N @ Vt[rank:].T
    return x


def sequence_of_programs(levels: Sequence[Level], G: ArrayLike | None = None, g: ArrayLike | None = None) -> np.ndarray:
    """Return the same ``x`` (n,) by one quadratic program per level (3.107), within ``G x <= g`` if that is given.

    The last program takes, among the answers, the least.

    Parameters
    ----------
    levels : the first one goes first.
    G, g : (k, n), (k,) inequalities that hold at all levels.

    Raises
    ------
    SolverFailed
        A program was not solved: the inequalities contradict each other.
    """
    parts = _checked(levels)
    n = parts[0][0].shape[1]
    bounds = np.zeros((0, n)) if G is None else np.asarray(G, float)
    upper = np.zeros(0) if g is None else np.asarray(g, float)
    if bounds.shape != (len(upper), n):
        raise InputError(f"G has the shape {bounds.shape} and g {upper.shape}; expected (k, {n}) and (k,)")
    x, V = np.zeros(n), np.zeros((0, n))
    for k, (A, b) in enumerate([*parts, (np.eye(n), np.zeros(n))]):
        x = _program(A, b, V, x, bounds, upper, f"level {k + 1} of {len(parts)}")
        V = _row_space(np.vstack([V, A]))
        if len(V) == n:
            break
    return x


def _program(
    A: np.ndarray, b: np.ndarray, V: np.ndarray, x: np.ndarray, G: np.ndarray, g: np.ndarray, name: str
) -> np.ndarray:
    """Return a ``y`` of ``min |A y - b|²`` subject to ``V y = V x`` and ``G y <= g``; V has orthonormal rows."""
    if not len(G):
        n = len(A.T)
        kkt = np.block([[A.T @ A, V.T], [V, np.zeros((len(V), len(V)))]])
        return np.asarray(np.linalg.lstsq(kkt, np.concatenate([A.T @ b, V @ x]), rcond=RANK**1.5)[0][:n])
    # in coordinates in which the rows left to the level are orthonormal: solved as it stands, the program loses digits
    N = np.linalg.svd(V)[2][len(V) :].T if len(V) else np.eye(len(x))
    U, s, Vt = np.linalg.svd(A @ N)
    rank = int(np.count_nonzero(s > RANK * max(float(np.linalg.norm(A, 2)), np.finfo(float).tiny)))
    unseen = len(N.T) - rank
    T = N @ Vt.T @ np.diag(np.concatenate([1.0 / s[:rank], np.ones(unseen)]))
    H = np.diag(np.concatenate([np.ones(rank), np.full(unseen, UNSEEN)]))
    pull = np.concatenate([-U[:, :rank].T @ (b - A @ x), np.zeros(unseen)])
    size = max(1.0, float(np.abs(g - G @ x).max()))
    answer = solve_dense(H, pull / size, G @ T, np.full(len(g), -np.inf), (g - G @ x) / size, tolerance=1e-10)
    if not answer.ok:
        raise SolverFailed(f"{name}: {answer.status}")
    return np.asarray(x + size * (T @ answer.x))


def _row_space(A: np.ndarray) -> np.ndarray:
    """Return orthonormal rows that span those of A."""
    _, s, Vt = np.linalg.svd(A, full_matrices=False)
    return np.asarray(Vt[s > RANK * max(float(s[0]), np.finfo(float).tiny)]) if len(A) else A


def _checked(levels: Sequence[Level]) -> list[tuple[np.ndarray, np.ndarray]]:
    parts = [(np.atleast_2d(np.asarray(A, float)), np.atleast_1d(np.asarray(b, float))) for A, b in levels]
    if not parts:
        raise InputError("expected at least one level")
    for k, (A, b) in enumerate(parts):
        if A.shape != (len(b), parts[0][0].shape[1]):
            expected = f"({len(b)}, {parts[0][0].shape[1]})"
            raise InputError(f"level {k + 1}: A has the shape {A.shape}, expected {expected}")
    return parts
