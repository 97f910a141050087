"""Strict priorities: tasks of a level count only where those above leave the accelerations free.

The levels are whole-body programs solved one after the other. DAQP's own hierarchical mode (``break_points``) is not
used: with active inequalities, version 0.11 keeps more of them active for the levels below than optimality asks for,
and its second level came out up to 15 % worse than the constrained least-squares problem that defines it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcplan.errors import InputError
from mcplan.robot.terms import Terms
from mcplan.util.qp_status import SLACK
from mcplan.whole_body.answer import Solution
from mcplan.whole_body.collision_avoidance import AccelerationLimit
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.declaration import Extra
from mcplan.whole_body.rows.forces import TorqueBand
from mcplan.whole_body.settings import HasLimits, QPSettings
from mcplan.whole_body.tasks.effort_terms import row_counts
from mcplan.whole_body.tasks.task import Task, priority_of, unknown_of, weights
from mcplan.whole_body.whole_body import WholeBodyQP

Array = NDArray[np.float64]

BAND = 1e-9
"""m/s², rad/s²: what a level reached is kept to this, relative beyond 1: rows that repeat others never contradict."""

RANK = 1e-7
"""Singular values below this do not count, relative beyond 1."""

ACCELERATION_WEIGHT, FORCE_WEIGHT = 1e-5, 1e-8
"""``delta`` and ``delta_f``: they damp a level that is singular, so that it does not leave the levels below a sliver of
wild accelerations, and make its minimiser unique. With a hundredth of them some saturated programs of HRP-2 were lost
to rounding."""


def levels_of(tasks: Sequence[Task]) -> list[int]:
    """Return the priorities that occur, the first in rank first."""
    return sorted({priority_of(task) for task in tasks})


def sizes_of(tasks: Sequence[Task]) -> tuple:
    """Return the priorities with their numbers of rows: what makes the levels of two sets of tasks interchangeable."""
    groups = [(level, [task for task in tasks if priority_of(task) == level]) for level in levels_of(tasks)]
    return tuple(
        (level, row_counts(group, ()), sum(task.dimension for task in group if task.diagonal))
        for level, group in groups
    )


class Kept:
    """``|V' (vd - vd*)| <= band``: the rows of the levels above stay as they came out.

    With ``Z`` a basis of what the contacts leave free, ``V'`` are orthonormal rows that span those of ``A Z Z'``, so
    that none repeats another or a contact's.

    Parameters
    ----------
    count : largest number of rows.
    """

    frames: tuple[str, ...] = ()

    def __init__(self, count: int, nv: int):
        self.count = count
        self._A, self._lower = np.zeros((2 * count, nv)), np.full(2 * count, -1.0)
        self.names = [f"priority of the tasks above, row {row % count}" for row in range(2 * count)]

    @property
    def dimension(self) -> int:
        """Both sides of each row."""
        return 2 * self.count

    def hold(self, tasks: Sequence[Task], terms: Terms, vd: Array, contacts: Array) -> None:
        """Keep what the tasks reached with ``vd``; a row without weight was no wish and is left free.

        Parameters
        ----------
        contacts : (rows, nv) contact Jacobian.
        """
        A = np.vstack([_matrix(task, terms)[weights(task) > 0.0] for task in tasks])
        A /= np.maximum(np.linalg.norm(A, axis=1), 1e-12)[:, None]
        held = _row_space(contacts)
        V = _row_space(A - (A @ held.T) @ held)[: self.count]
        k, n = len(V), self.count
        self._A[:], self._lower[:] = 0.0, -1.0
        self._A[:k], self._A[n : n + k] = V, -V
        reached = V @ vd
        band = BAND * max(1.0, float(np.max(np.abs(reached), initial=0.0)))
        self._lower[:k], self._lower[n : n + k] = reached - band, -reached - band

    def rows(self, terms: Terms) -> tuple[Array, Array]:
        """Return ``A`` and ``b`` of ``A vd >= b``."""
        return self._A, self._lower


def _matrix(task: Task, terms: Terms) -> Array:
    A, _ = task.rows(terms)
    return np.eye(len(terms.v))[A] if task.diagonal else np.asarray(A)


def _row_space(A: Array) -> Array:
    """Return orthonormal rows that span those of ``A``."""
    if not len(A):
        return A
    _, s, Vt = np.linalg.svd(A, full_matrices=False)
    return np.asarray(Vt[s > RANK * max(1.0, float(s[0]))])


class PrioritisedQP:
    """The whole-body program with levels of tasks, in the order of ``task.priority`` (1 where a task says nothing).

    The rows of the program, contacts, limits and the user's constraints, come before all levels. Then::

        level 1   vd_1 = argmin |A_1 vd - b_1|² + delta |vd|² + delta_f |f|²    subject to the rows
        level k   vd_k = argmin |A_k vd - b_k|² + ...     subject to them and to A_j vd = A_j vd_j, j < k

    Within a level the weights count as ever. The last level has, instead of ``delta`` and ``delta_f``, the settings'
    costs of accelerations, forces and torques; the user's terms of the cost and tasks on forces and torques belong to
    it. It is used like ``WholeBodyQP``.

    Parameters
    ----------
    robot, contacts, tasks, settings, extra, limits : as of ``WholeBodyQP``.

    Attributes
    ----------
    levels : the priorities.
    problems : the declared ``WholeBodyQP`` of each.
    solutions : of each level, from the last ``solve``.

    Raises
    ------
    InputError : a priority below 1, or a task on forces or torques above the last level.
    """

    def __init__(
        self,
        robot: HasLimits,
        contacts: Sequence[ContactConstraint],
        tasks: Sequence[Task],
        settings: QPSettings | None = None,
        extra: Extra | None = None,
        limits: Sequence[AccelerationLimit] = (),
    ):
        self.settings = settings or QPSettings()
        self.levels = levels_of(tasks) or [1]
        groups = self._groups(tasks)
        upper = replace(
            self.settings,
            acceleration_weight=ACCELERATION_WEIGHT,
            force_weight=FORCE_WEIGHT,
            force_rate_weight=0.0,
            torque_weight=0.0,
            wrench_weight=None,
        )
        self.problems: list[WholeBodyQP] = []
        self.solutions: list[Solution] = []
        self._kept: list[Kept | None] = []
        above = 0
        for level, group in zip(self.levels, groups, strict=True):
            last = level == self.levels[-1]
            kept = Kept(above, robot.nv) if above else None
            self._kept.append(kept)
            self.problems.append(
                WholeBodyQP(
                    robot,
                    contacts,
                    group,
                    self.settings if last else upper,
                    extra if last or extra is None else _constraints_of(extra),
                    _with(limits, kept),
                )
            )
            above += sum(task.dimension for task in group)

    def _groups(self, tasks: Sequence[Task]) -> list[list[Task]]:
        if levels_of(tasks) not in ([], self.levels):
            raise InputError(f"tasks have the priorities {levels_of(tasks)}, the declared program {self.levels}")
        for task in tasks:
            if priority_of(task) < 1:
                raise InputError(f"task {task.key[0]}: priority {priority_of(task)}, expected 1 or more")
            if unknown_of(task) != "vd" and priority_of(task) != self.levels[-1]:
                raise InputError(f"task {task.key[0]}: tasks on forces and torques belong to the last priority")
        return [[task for task in tasks if priority_of(task) == level] for level in self.levels]

    def update(
        self,
        terms: Terms,
        contacts: Sequence[ContactConstraint],
        tasks: Sequence[Task],
        tau_ext: Array | None = None,
        previous: Mapping[str, Array] | None = None,
        limits: Sequence[AccelerationLimit] = (),
        planned: Mapping[str, Array] | None = None,
        near: TorqueBand | None = None,
    ) -> None:
        """Take the state and the tasks, see ``WholeBodyQP.update``."""
        groups = self._groups(tasks)
        self._inputs: tuple[Any, ...] = (terms, contacts, groups, tau_ext, previous, limits, planned, near)
        self._update(0)

    def _update(self, k: int) -> None:
        terms, contacts, groups, tau_ext, previous, limits, *drawn = self._inputs
        kept = self._kept[k]
        if kept is not None:
            jacobian = self.problems[0].data.get("contact_jacobian", np.zeros((0, len(terms.v))))
            kept.hold([task for group in groups[:k] for task in group], terms, self.solutions[-1].vd, jacobian)
        self.problems[k].update(terms, contacts, groups[k], tau_ext, previous, _with(limits, kept), *drawn)

    def attempt(self) -> Solution | None:
        """Solve level after level; return None where one has no solution, see ``WholeBodyQP.attempt``."""
        for _, problem in self._filled():
            if (solution := problem.attempt()) is None:
                return None
            self.solutions.append(solution)
        return self._of_all()

    def solve(self) -> Solution:
        """Solve level after level; a level that cannot be solved ends it with the answer of the one above.

        The answer then has status 1 (slack form) and says which level failed; when already the first level has no
        solution it is that of ``WholeBodyQP.solve``.
        """
        for k, problem in self._filled():
            solution = problem.solve()
            if not solution.ok and k:
                message = f"priority {self.levels[k]}: {solution.message}"
                return self.solutions[-1]._replace(status=SLACK, message=message, conflicts=solution.conflicts)
            self.solutions.append(solution)
            if not solution.ok:
                return solution
        return self._of_all()

    def _filled(self) -> Iterator[tuple[int, WholeBodyQP]]:
        """Yield each level with its program, filled with what those above have reached."""
        self.solutions = []
        for k, problem in enumerate(self.problems):
            if k:
                self._update(k)
            yield k, problem

    def preload_price(self) -> float:
        """Return what the first level would cost less without preloads, see ``WholeBodyQP.preload_price``."""
        return self.problems[0].preload_price()

    def rehearse(self) -> None:
        """Solve each level by every method of its compiled form, see ``WholeBodyQP.rehearse``."""
        for problem in self.problems:
            problem.rehearse()

    def _of_all(self) -> Solution:
        return self.solutions[-1]._replace(solve_time=sum(solution.solve_time for solution in self.solutions))


def _with(limits: Sequence[AccelerationLimit], kept: Kept | None) -> list[AccelerationLimit]:
    return [*limits] if kept is None else [*limits, kept]


def _constraints_of(extra: Extra) -> Extra:
    """Return the user's part without its terms of the cost."""
    return lambda qp: ((), extra(qp)[1])
