"""Strict task priorities: each level acts in the null space of the levels above it.

The levels are whole-body programs solved in sequence. DAQP's hierarchical mode (``break_points``) is not used: with
active inequalities, version 0.11 keeps more of them active for the levels below than optimality requires, and the cost
of its second level was up to 15 % above that of the constrained least-squares problem that defines it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcplan.errors import InputError
from mcplan.robot.terms import Terms
from mcplan.util.qp_status import SLACK
from mcplan.whole_body.collision_avoidance import AccelerationLimit
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.declaration import Extra
from mcplan.whole_body.rows.forces import TorqueBand
from mcplan.whole_body.settings import HasLimits, QPSettings
from mcplan.whole_body.solution import Solution
from mcplan.whole_body.tasks.effort_terms import row_counts
from mcplan.whole_body.tasks.task import Task, priority_of, unknown_of, weights
from mcplan.whole_body.whole_body import WholeBodyQP

Array = NDArray[np.float64]

RESULT_TOLERANCE = 1e-9
"""Tolerance with which lower levels keep the task accelerations of a level, so that redundant rows do not conflict
(m/s², rad/s²; relative above 1)."""

RANK_TOLERANCE = 1e-7
"""Singular values count for the rank above this fraction of the largest one, or of 1 if that is larger."""

ACCELERATION_WEIGHT, FORCE_WEIGHT = 1e-5, 1e-8
"""``delta`` and ``delta_f``: regularization of a level, which makes its minimiser unique and avoids large accelerations
near singularities. With a hundredth of them some saturated programs of HRP-2 failed by rounding."""


def priorities_of(tasks: Sequence[Task]) -> list[int]:
    """Return the priorities of the tasks, in ascending order."""
    return sorted({priority_of(task) for task in tasks})


def level_sizes(tasks: Sequence[Task]) -> tuple:
    """Return the priorities with their numbers of rows: task sets with equal ones share the declared problems."""
    groups = [(level, [task for task in tasks if priority_of(task) == level]) for level in priorities_of(tasks)]
    return tuple(
        (level, row_counts(group, ()), sum(task.dimension for task in group if task.diagonal))
        for level, group in groups
    )


class HigherLevelRows:
    """Rows ``|V' (vd - vd*)| <= tolerance``, which keep the results vd* of the levels above.

    With ``Z`` a basis of the null space of the contacts, ``V'`` is an orthonormal basis of the rows of ``A Z Z'``: no
    row depends on others or on contact rows.

    Parameters
    ----------
    count : largest number of task rows that are kept.
    nv : dimension of the velocity.
    """

    frames: tuple[str, ...] = ()

    def __init__(self, count: int, nv: int):
        self.count = count
        self._A, self._lower = np.zeros((2 * count, nv)), np.full(2 * count, -1.0)
        self.names = [f"priority of the tasks above, row {row % count}" for row in range(2 * count)]

    @property
    def dimension(self) -> int:
        """Number of rows: two per task row."""
        return 2 * self.count

    def keep_results(self, tasks: Sequence[Task], terms: Terms, vd: Array, contacts: Array) -> None:
        """Keep the task accelerations reached with ``vd``, except of rows with zero weight.

        Parameters
        ----------
        contacts : (rows, nv) contact Jacobian.
        """
        A = np.vstack([_matrix(task, terms)[weights(task) > 0.0] for task in tasks])
        A /= np.maximum(np.linalg.norm(A, axis=1), 1e-12)[:, None]
        contact_basis = _row_space(contacts)
        V = _row_space(A - (A @ contact_basis.T) @ contact_basis)[: self.count]
        k, n = len(V), self.count
        self._A[:], self._lower[:] = 0.0, -1.0
        self._A[:k], self._A[n : n + k] = V, -V
        result = V @ vd
        tolerance = RESULT_TOLERANCE * max(1.0, float(np.max(np.abs(result), initial=0.0)))
        self._lower[:k], self._lower[n : n + k] = result - tolerance, -result - tolerance

    def rows(self, terms: Terms) -> tuple[Array, Array]:
        """Return ``A`` and ``b`` of ``A vd >= b``."""
        return self._A, self._lower


def _matrix(task: Task, terms: Terms) -> Array:
    """Return the matrix (m, nv) of a task, also if it is diagonal."""
    A, _ = task.rows(terms)
    return np.eye(len(terms.v))[A] if task.diagonal else np.asarray(A)


def _row_space(A: Array) -> Array:
    """Return an orthonormal basis of the row space of ``A``."""
    if not len(A):
        return A
    _, s, Vt = np.linalg.svd(A, full_matrices=False)
    return np.asarray(Vt[s > RANK_TOLERANCE * max(1.0, float(s[0]))])


class PrioritisedQP:
    """The whole-body program with levels of tasks, in the order of ``task.priority`` (default 1).

    The rows of the program (contacts, limits, user-defined constraints) take precedence over all levels. Then::

        level 1   vd_1 = argmin |A_1 vd - b_1|² + delta |vd|² + delta_f |f|²    subject to the rows
        level k   vd_k = argmin |A_k vd - b_k|² + ...     subject to the rows and A_j vd = A_j vd_j, j < k

    Within a level the weights count as usual. The last level has the costs of accelerations, forces and torques of the
    settings instead of ``delta`` and ``delta_f``; user-defined cost terms, and tasks on forces and torques, belong to
    it. The interface is that of ``WholeBodyQP``.

    Parameters
    ----------
    robot, contacts, tasks, settings, extra, limits : see ``WholeBodyQP``.

    Attributes
    ----------
    levels : the priorities, in ascending order.
    problems : the declared ``WholeBodyQP`` of each level.
    solutions : the solution of each level, from the last ``solve``.

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
        self.levels = priorities_of(tasks) or [1]
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
        self._higher_rows: list[HigherLevelRows | None] = []
        rows_above = 0
        for level, group in zip(self.levels, groups, strict=True):
            last = level == self.levels[-1]
            higher_rows = HigherLevelRows(rows_above, robot.nv) if rows_above else None
            self._higher_rows.append(higher_rows)
            self.problems.append(
                WholeBodyQP(
                    robot,
                    contacts,
                    group,
                    self.settings if last else upper,
                    extra if last or extra is None else _without_cost(extra),
                    _add_rows(limits, higher_rows),
                )
            )
            rows_above += sum(task.dimension for task in group)

    def _groups(self, tasks: Sequence[Task]) -> list[list[Task]]:
        """Return the tasks of each level; ``InputError`` if their priorities differ from the declared ones."""
        if priorities_of(tasks) not in ([], self.levels):
            raise InputError(f"tasks have the priorities {priorities_of(tasks)}, the declared program {self.levels}")
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
        previous: Mapping[str, Array] | Solution | None = None,
        limits: Sequence[AccelerationLimit] = (),
        planned: Mapping[str, Array] | None = None,
        torque_band: TorqueBand | None = None,
    ) -> None:
        """Set state and tasks, see ``WholeBodyQP.update``."""
        groups = self._groups(tasks)
        self._inputs: tuple[Any, ...] = (terms, contacts, groups, tau_ext, previous, limits, planned, torque_band)
        self._update(0)

    def _update(self, k: int) -> None:
        """Fill the program of level k with the inputs of the tick and the results of the levels above."""
        terms, contacts, groups, tau_ext, previous, limits, *references = self._inputs
        higher_rows = self._higher_rows[k]
        if higher_rows is not None:
            J_c = self.problems[0].data.get("contact_jacobian", np.zeros((0, len(terms.v))))
            higher_rows.keep_results(
                [task for group in groups[:k] for task in group], terms, self.solutions[-1].vd, J_c
            )
        self.problems[k].update(
            terms, contacts, groups[k], tau_ext, previous, _add_rows(limits, higher_rows), *references
        )

    def update_and_attempt(
        self,
        terms: Terms,
        contacts: Sequence[ContactConstraint],
        tasks: Sequence[Task],
        previous: Mapping[str, Array] | Solution | None = None,
        limits: Sequence[AccelerationLimit] = (),
        planned: Mapping[str, Array] | None = None,
        torque_band: TorqueBand | None = None,
    ) -> Solution | None:
        """Set state and tasks, and solve all levels, see `update` and `attempt`."""
        self.update(terms, contacts, tasks, None, previous, limits, planned, torque_band)
        return self.attempt()

    def attempt(self) -> Solution | None:
        """Solve all levels; return None if one has no solution, see ``WholeBodyQP.attempt``."""
        for _, problem in self._filled():
            if (solution := problem.attempt()) is None:
                return None
            self.solutions.append(solution)
        return self._complete()

    def solve(self) -> Solution:
        """Solve all levels; if one has no solution, return that of the level above.

        It then has status 1 (slack form), with a message that names the failed level. If the first level fails, it is
        the result of ``WholeBodyQP.solve``.
        """
        for k, problem in self._filled():
            solution = problem.solve()
            if not solution.ok and k:
                message = f"priority {self.levels[k]}: {solution.message}"
                higher = self.solutions[-1]
                higher.status, higher.message, higher.conflicts = (
                    SLACK,
                    message,
                    solution.conflicts,
                )
                return higher
            self.solutions.append(solution)
            if not solution.ok:
                return solution
        return self._complete()

    def _filled(self) -> Iterator[tuple[int, WholeBodyQP]]:
        """Yield each level with its program, filled with the results of the levels above."""
        self.solutions = []
        for k, problem in enumerate(self.problems):
            if k:
                self._update(k)
            yield k, problem

    def preload_price(self) -> float:
        """Return the cost of the preloads in the first level, see ``WholeBodyQP.preload_price``."""
        return self.problems[0].preload_price()

    def rehearse(self) -> None:
        """Solve each level by every method of its compiled form, see ``WholeBodyQP.rehearse``."""
        for problem in self.problems:
            problem.rehearse()

    def _complete(self) -> Solution:
        """Return the solution of the last level, with the time of all levels."""
        last = self.solutions[-1]
        last.solve_time = sum(solution.solve_time for solution in self.solutions)
        return last


def _add_rows(limits: Sequence[AccelerationLimit], higher_rows: HigherLevelRows | None) -> list[AccelerationLimit]:
    """Return the limits together with the rows of the higher levels."""
    return [*limits] if higher_rows is None else [*limits, higher_rows]


def _without_cost(extra: Extra) -> Extra:
    """Return the user-defined part without its cost terms."""
    return lambda qp: ((), extra(qp)[1])
