"""Inverse differential kinematics: joint rates for desired velocities (S1 sections 2.9.1 and 2.9.2).

A task is a Jacobian J (m, k) and a desired velocity w (m,) of ``J rate``. Stacked tasks share the error; prioritised
ones act in the null space of the preceding ones. ::

    import numpy as np
    from mcplan.textbook.kinematics import VelocityTask, prioritised

    tip = VelocityTask([[0.0, -0.866, -0.866], [-2.0, -1.5, -0.5]], [1.0, 1.0])
    rest = VelocityTask(np.eye(3)[:2], [0.0, 0.0])
    assert np.allclose(tip.error(prioritised([tip, rest])), 0.0)

S1: `docs/sources.md`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mcplan.errors import InputError
from mcplan.textbook.coordinates.chart import Array, numbers, real
from mcplan.util.text import summary

SINGULAR_VALUE_TOLERANCE = 1e-9
"""Singular values below this fraction of the largest one count as zero: a task projected into a null space has
rounding errors."""


@dataclass(frozen=True, eq=False)
class VelocityTask:
    """A velocity task: S1 eq. 2.200.

    Attributes
    ----------
    J : (m, k) Jacobian.
    w : (m,) desired velocity.
    """

    J: Array
    w: Array

    __repr__ = summary

    def __post_init__(self) -> None:
        J, w = np.atleast_2d(real(self.J, "J of a task")), np.atleast_1d(real(self.w, "w of a task"))
        if J.ndim != 2 or w.shape != J.shape[:1]:
            raise InputError(f"a task has a Jacobian {J.shape} and a velocity {w.shape}; expected (m, k) and (m,)")
        object.__setattr__(self, "J", J)
        object.__setattr__(self, "w", w)

    def error(self, rate: ArrayLike) -> Array:
        """Return ``w - J rate`` (m,)."""
        return np.asarray(self.w - self.J @ numbers(rate, self.J.shape[1:], "rate"))


def pseudo_inverse(J: ArrayLike, scale: float = 0.0) -> Array:
    """Return the Moore-Penrose pseudoinverse ``J+`` (k, m): minimum rates of minimum error (S1 eq. 2.194 and 2.196).

    Parameters
    ----------
    scale : reference size for small singular values, if J is a part of a larger matrix.
    """
    U, s, Vt = np.linalg.svd(_matrix(J), full_matrices=False)
    keep = s > SINGULAR_VALUE_TOLERANCE * max(scale, float(s.max(initial=0.0)))
    return np.asarray((Vt[keep].T / s[keep]) @ U[:, keep].T, dtype=np.float64)


def damped_inverse(J: ArrayLike, damping: float) -> Array:
    """Return ``J' (J J' + damping^2 1)^-1`` (k, m), which minimises ``|w - J rate|^2 + damping^2 |rate|^2``.

    S1 eq. 2.195 has a minus before the damping, which would not give a minimum.
    """
    J = _matrix(J)
    return np.asarray(np.linalg.solve(J @ J.T + damping**2 * np.eye(len(J)), J).T, dtype=np.float64)


def weighted_inverse(J: ArrayLike, weights: ArrayLike) -> Array:
    """Return ``(J' W J)^-1 J' W`` (k, m) with ``W = diag(weights)``: S1 eq. 2.202.

    If J has fewer rows than columns, the rates have minimum norm among the minimisers of ``|W^(1/2) (w - J rate)|``.
    """
    J = _matrix(J)
    root = _roots(weights, len(J))
    return np.asarray(pseudo_inverse(root[:, None] * J) * root)


def null_space(J: ArrayLike, scale: float = 0.0) -> Array:
    """Return the null-space projector ``N = 1 - J+ J`` (k, k): S1 eq. 2.199.

    Parameters
    ----------
    J : (m, k) Jacobian.
    scale : reference size for small singular values, if J is a part of a larger matrix.
    """
    J = _matrix(J)
    return np.asarray(np.eye(J.shape[1]) - pseudo_inverse(J, scale) @ J)


def with_null_space(task: VelocityTask, rate: ArrayLike) -> Array:
    """Return ``J+ w + N rate`` (k,): the task, and other rates projected into its null space (S1 eq. 2.197)."""
    N = null_space(task.J)
    return np.asarray(pseudo_inverse(task.J) @ task.w + N @ numbers(rate, N.shape[1:], "rate"))


def stacked(tasks: Sequence[VelocityTask], weights: Sequence[float] | None = None, damping: float = 0.0) -> Array:
    """Return the rates (k,) of stacked tasks, equally or individually weighted (S1 eq. 2.201 and 2.202).

    Parameters
    ----------
    weights : weight of the squared error of each task; all one by default.
    damping : root of the weight of the squared rates.
    """
    _require_equal_widths(tasks)
    roots = np.ones(len(tasks)) if weights is None else _roots(weights, len(tasks))
    J = np.vstack([root * task.J for root, task in zip(roots, tasks, strict=True)])
    w = np.concatenate([root * task.w for root, task in zip(roots, tasks, strict=True)])
    inverse = damped_inverse(J, damping) if damping else pseudo_inverse(J)
    return np.asarray(inverse @ w)


def prioritised(tasks: Sequence[VelocityTask], damping: float | Sequence[float] = 0.0) -> Array:
    """Return the rates (k,) of tasks in order of priority (S1 eq. 2.206 and 2.207).

    ``rate_i = rate_(i-1) + N_i (J_i N_i)+ (w_i - J_i rate_(i-1))`` with N_i the null space of all tasks before i.

    Parameters
    ----------
    damping : damping of the inverses, one number or one per task. It relaxes a task near a singularity, and never
        disturbs tasks of higher priority.

    Raises
    ------
    InputError : the Jacobians have different widths, or ``damping`` has a wrong length.
    """
    _require_equal_widths(tasks)
    k = tasks[0].J.shape[1]
    rate, N = np.zeros(k), np.eye(k)
    given = real(damping, "damping")
    if given.shape not in ((), (len(tasks),)):
        raise InputError(f"damping has the shape {given.shape}; expected one number or {len(tasks)}")
    for task, task_damping in zip(tasks, np.broadcast_to(given, len(tasks)), strict=True):
        J_free = task.J @ N
        scale = float(np.linalg.norm(task.J, 2)) if task.J.size else 0.0
        inverse = damped_inverse(J_free, float(task_damping)) if task_damping else pseudo_inverse(J_free, scale)
        rate = rate + N @ (inverse @ task.error(rate))
        # N becomes the null space of the stack including this task
        N = N @ null_space(J_free, scale)
    return rate


def _require_equal_widths(tasks: Sequence[VelocityTask]) -> None:
    """Raise an error if there is no task, or the Jacobians have different widths."""
    if not tasks or len({task.J.shape[1] for task in tasks}) > 1:
        sizes = ", ".join(str(task.J.shape) for task in tasks) or "none"
        raise InputError(f"Jacobians of tasks: {sizes}; expected at least one, all of the same width")


def _matrix(J: ArrayLike) -> Array:
    """Return a Jacobian (m, k) as an array, without changing its memory order."""
    given = real(J, "J")
    if given.ndim != 2:
        raise InputError(f"J has the shape {given.shape}; expected (m, k)")
    return given


def _roots(weights: ArrayLike, count: int) -> Array:
    """Return the roots (count,) of weights."""
    given = numbers(weights, (count,), "weights")
    if (given < 0.0).any():
        raise InputError(f"weights = {given}; expected non-negative")
    return np.sqrt(given)
