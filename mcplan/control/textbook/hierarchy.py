"""Hierarchical least squares (strict task priorities), by null-space projection or a sequence of quadratic programs.

Null-space projection (algorithm 2):

    for i = 1 .. n:   x_i = (A_i N_i)^+ (b_i - A_i x),   x += N_i x_i,   N_{i+1} = null space of A_1 .. A_i

With ``A_i = J_i`` and ``b_i = w_i - Jdot_i v`` it is the multi-task decomposition of accelerations (3.81 for one level,
3.82 for several). The sequence of programs

    min |A_i x - b_i|²    subject to    A_k x = A_k x_k*  for all k < i            (3.107)

gives the same solution, and admits inequalities ``G x <= g``: limits of torques and friction.

Source: S1 (docs/sources.md), sec. 3.10.1-3.10.3.

Task hierarchy of a robot over accelerations, contact forces and torques:

    x = (vd, f, tau)                                                        (3.108)
    [M  -J'  -S'] x = -h                 equation of motion                 (3.109)
    [J   0    0 ] x = -Jdot v            contacts                           (3.60)
    [A   0    0 ] x = b                  tasks, level by level              (3.110)
    [0   0    1 ] x = 0                  least torques                      (3.112)

``f`` are the forces of the environment on the robot along the constrained directions. Algorithm 2 bounds neither forces
nor torques; the sequence of programs keeps the torque limits.

Source: S1, sec. 3.10.4.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from mcplan.errors import InputError, SolverFailed
from mcplan.optimize.dense import solve_dense
from mcplan.robot.robot import Robot
from mcplan.robot.terms import Terms
from mcplan.scene.contact import Contact
from mcplan.textbook.constraint.contact_rows import contact_rows
from mcplan.util.text import summary
from mcplan.whole_body.tasks.task import Task, unknown_of

RANK_TOLERANCE = 1e-9
"""Relative tolerance of singular values for the rank."""

NULL_SPACE_CURVATURE = 1e-9
"""Curvature of the cost in the null space of a level, relative to other directions; it makes the solution unique."""

Level = tuple[ArrayLike, ArrayLike]
"""``A`` (m, n) and ``b`` (m,) of a level."""


def hierarchical_least_squares(levels: Sequence[Level]) -> np.ndarray:
    """Return the hierarchical least-squares solution ``x`` (n,) of minimum norm (algorithm 2).

    Parameters
    ----------
    levels : ``A`` and ``b`` of each level, in decreasing order of priority.

    Raises
    ------
    InputError
        There is no level, or shapes do not fit.
    """
    parts = _as_arrays(levels)
    n = parts[0][0].shape[1]
    x, N = np.zeros(n), np.eye(n)
    for A, b in parts:
        # N has orthonormal columns that span the null space: N_i x_i of the document is N z here
        if not N.shape[1]:
            break
        U, s, Vt = np.linalg.svd(A @ N, full_matrices=True)
        rank = int(np.count_nonzero(s > RANK_TOLERANCE * max(float(np.linalg.norm(A, 2)), np.finfo(float).tiny)))
        x = x + N @ (Vt[:rank].T @ ((U[:, :rank].T @ (b - A @ x)) / s[:rank]))
        N = N @ Vt[rank:].T
    return x


def sequence_of_programs(levels: Sequence[Level], G: ArrayLike | None = None, g: ArrayLike | None = None) -> np.ndarray:
    """Return the hierarchical solution ``x`` (n,) by one quadratic program per level (3.107), within ``G x <= g``.

    A last program selects the solution of minimum norm.

    Parameters
    ----------
    levels : ``A`` and ``b`` of each level, in decreasing order of priority.
    G, g : (k, n), (k,) inequalities that hold at all levels.

    Raises
    ------
    SolverFailed
        A program was not solved: the inequalities contradict each other.
    """
    parts = _as_arrays(levels)
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
        return np.asarray(np.linalg.lstsq(kkt, np.concatenate([A.T @ b, V @ x]), rcond=RANK_TOLERANCE**1.5)[0][:n])
    # in coordinates in which the rows of the level are orthonormal: better conditioned
    N = np.linalg.svd(V)[2][len(V) :].T if len(V) else np.eye(len(x))
    U, s, Vt = np.linalg.svd(A @ N)
    rank = int(np.count_nonzero(s > RANK_TOLERANCE * max(float(np.linalg.norm(A, 2)), np.finfo(float).tiny)))
    nullity = len(N.T) - rank
    T = N @ Vt.T @ np.diag(np.concatenate([1.0 / s[:rank], np.ones(nullity)]))
    H = np.diag(np.concatenate([np.ones(rank), np.full(nullity, NULL_SPACE_CURVATURE)]))
    linear = np.concatenate([-U[:, :rank].T @ (b - A @ x), np.zeros(nullity)])
    scale = max(1.0, float(np.abs(g - G @ x).max()))
    answer = solve_dense(H, linear / scale, G @ T, np.full(len(g), -np.inf), (g - G @ x) / scale, tolerance=1e-10)
    if not answer.ok:
        raise SolverFailed(f"{name}: {answer.status}")
    return np.asarray(x + scale * (T @ answer.x))


def _row_space(A: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the row space of A."""
    _, s, Vt = np.linalg.svd(A, full_matrices=False)
    return np.asarray(Vt[s > RANK_TOLERANCE * max(float(s[0]), np.finfo(float).tiny)]) if len(A) else A


def _as_arrays(levels: Sequence[Level]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the levels as arrays, with their shapes checked."""
    parts = [(np.atleast_2d(np.asarray(A, float)), np.atleast_1d(np.asarray(b, float))) for A, b in levels]
    if not parts:
        raise InputError("expected at least one level")
    for k, (A, b) in enumerate(parts):
        if A.shape != (len(b), parts[0][0].shape[1]):
            expected = f"({len(b)}, {parts[0][0].shape[1]})"
            raise InputError(f"level {k + 1}: A has the shape {A.shape}, expected {expected}")
    return parts


Method = Literal["least squares", "programs"]


class TaskHierarchy:
    """Task hierarchy control: torques that fulfil tasks with strict priorities.

    Parameters
    ----------
    robot : Robot
    contacts : closed contacts; for a robot with a fixed base its contact ``fixed_base``.
    levels : acceleration tasks (`mcplan.Task`) of each level, the first one first; weights count within a level.
    method : ``least squares`` (algorithm 2), or ``programs`` (3.107), which keeps the torque limits.

    Raises
    ------
    InputError
        A task is about forces or torques, or the method is unknown.
    """

    __repr__ = summary

    def __init__(
        self,
        robot: Robot,
        contacts: Sequence[Contact],
        levels: Sequence[Sequence[Task]],
        method: Method = "least squares",
    ):
        if method not in ("least squares", "programs"):
            raise InputError(f"method {method!r}: expected 'least squares' or 'programs'")
        wrong_tasks = [type(task).__name__ for level in levels for task in level if unknown_of(task) != "vd"]
        if wrong_tasks:
            raise InputError(f"{wrong_tasks[0]} is not an acceleration task")
        self.robot, self.contacts, self.levels, self.method = robot, tuple(contacts), [list(x) for x in levels], method
        self.frames = tuple(dict.fromkeys(frame for level in levels for task in level for frame in task.frames))

    def torque(self, t: float, terms: Terms, wrenches: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the torques (n,)."""
        for level in self.levels:
            for task in level:
                if (follow := getattr(task, "follow", None)) is not None:
                    follow(t)
        levels, n = self.programs(terms), self.robot.n
        if self.method == "least squares":
            return hierarchical_least_squares(levels)[-n:]
        limit = self.robot.limits.torque
        bounded = np.flatnonzero(np.isfinite(limit))
        G = np.zeros((len(bounded), np.shape(levels[0][0])[1]))
        G[np.arange(len(bounded)), G.shape[1] - n + bounded] = 1.0
        return sequence_of_programs(levels, np.vstack([G, -G]), np.tile(limit[bounded], 2))[-n:]

    def programs(self, terms: Terms) -> list[Level]:
        """Return ``A`` and ``b`` of every level: equation of motion and contacts, the tasks, minimum torques."""
        rows = contact_rows(self.robot, terms.q, terms.v, self.contacts)
        nv, k, n = self.robot.nv, len(rows), self.robot.n
        S = np.hstack([np.zeros((n, 6)), np.eye(n)])
        dynamics = np.hstack([terms.M, -rows.J.T, -S.T])
        no_motion = np.hstack([rows.J, np.zeros((k, k + n))])
        levels: list[Level] = [(np.vstack([dynamics, no_motion]), np.concatenate([-terms.h, -rows.bias]))]
        for level in self.levels:
            A, b = [np.zeros((0, nv))], [np.zeros(0)]
            for task in level:
                J, target = task.rows(terms)
                matrix = np.eye(nv)[J] if task.diagonal else np.asarray(J)
                root = np.sqrt(np.broadcast_to(np.asarray(task.weight, float), (len(matrix),)))
                A.append(root[:, None] * matrix)
                b.append(root * target)
            levels.append((np.hstack([np.vstack(A), np.zeros((sum(map(len, A)), k + n))]), np.concatenate(b)))
        return [*levels, (np.hstack([np.zeros((n, nv + k)), np.eye(n)]), np.zeros(n))]
