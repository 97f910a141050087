"""Least squares with strict priorities, in two ways that give the same answer.

    for i = 1 .. n:   x_i = (A_i N_i)^+ (b_i - A_i x),   x += N_i x_i,   N_{i+1} = null space of A_1 .. A_i

is algorithm 2; with ``A_i = J_i`` and ``b_i = w_i - Jdot_i v`` it is the multi-task decomposition of accelerations
(3.81 for one level, 3.82 for several). As a sequence of programs

    min |A_i x - b_i|²    subject to    A_k x = A_k x_k*  for all k < i            (3.107)

which may have inequalities ``G x <= g`` besides: limits of torques and friction, which the first way cannot keep.

Source: S1, sec. 3.10.1-3.10.3.

Tasks of a robot in strict order, as least squares over accelerations, contact forces and torques.

    x = (vd, f, tau)                                                        (3.108)
    [M  -J'  -S'] x = -h                 equation of motion                 (3.109)
    [J   0    0 ] x = -Jdot v            contacts                           (3.60)
    [A   0    0 ] x = b                  tasks, level by level              (3.110)
    [0   0    1 ] x = 0                  least torques                      (3.112)

``f`` is what the environment exerts on the robot, along the directions that its contacts constrain. By algorithm 2
nothing bounds forces and torques; as a sequence of programs torques keep their limits.

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


Method = Literal["least squares", "programs"]


class TaskHierarchy:
    """Gives the torques that fulfil tasks in strict order, the first level first.

    Parameters
    ----------
    robot : Robot
    contacts : what holds; of a fixed base its ``fixed_base``.
    levels : tasks of the accelerations (`mcplan.Task`), of each level; within one they weigh what their weights say.
    method : ``least squares`` (algorithm 2), or ``programs`` (3.107), which keeps the torque limits.

    Raises
    ------
    InputError
        A task is about forces or torques, or the method is neither.
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
        wrong = [type(task).__name__ for level in levels for task in level if unknown_of(task) != "vd"]
        if wrong:
            raise InputError(f"{wrong[0]} is no task of the accelerations")
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
        """Return ``A`` and ``b`` of every level at a state: motion and contacts, the tasks, least torques."""
        rows = contact_rows(self.robot, terms.q, terms.v, self.contacts)
        nv, k, n = self.robot.nv, len(rows), self.robot.n
        S = np.hstack([np.zeros((n, 6)), np.eye(n)])
        motion = np.hstack([terms.M, -rows.J.T, -S.T])
        still = np.hstack([rows.J, np.zeros((k, k + n))])
        levels: list[Level] = [(np.vstack([motion, still]), np.concatenate([-terms.h, -rows.bias]))]
        for level in self.levels:
            A, b = [np.zeros((0, nv))], [np.zeros(0)]
            for task in level:
                J, wish = task.rows(terms)
                matrix = np.eye(nv)[J] if task.diagonal else np.asarray(J)
                root = np.sqrt(np.broadcast_to(np.asarray(task.weight, float), (len(matrix),)))
                A.append(root[:, None] * matrix)
                b.append(root * wish)
            levels.append((np.hstack([np.vstack(A), np.zeros((sum(map(len, A)), k + n))]), np.concatenate(b)))
        return [*levels, (np.hstack([np.zeros((n, nv + k)), np.eye(n)]), np.zeros(n))]
