"""Cache of declared whole-body programs, one per structure."""

from collections.abc import Sequence

from mcplan.whole_body.collision_avoidance import AccelerationLimit
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.declaration import Extra
from mcplan.whole_body.packed import is_unchanged
from mcplan.whole_body.priorities import PrioritisedQP, levels_of, sizes_of
from mcplan.whole_body.settings import HasLimits, QPSettings
from mcplan.whole_body.tasks.effort_terms import row_counts
from mcplan.whole_body.tasks.task import Task, priority_of
from mcplan.whole_body.whole_body import WholeBodyQP, ordered


class ProblemPool:
    """Cache of problems by contacts and tasks.

    Contacts and tasks with the same rows share a problem (standing on the left foot and on the right foot do), except
    with user-defined terms, which may name a patch.

    Parameters
    ----------
    robot, settings, extra : see ``WholeBodyQP``.
    """

    def __init__(self, robot: HasLimits, settings: QPSettings | None = None, extra: Extra | None = None):
        self.robot, self.settings, self.extra = robot, settings or QPSettings(), extra
        self._problems: dict[tuple, WholeBodyQP | PrioritisedQP] = {}
        self._last: tuple[tuple, WholeBodyQP | PrioritisedQP] | None = None

    def __len__(self) -> int:
        return len(self._problems)

    def get(
        self, contacts: Sequence[ContactConstraint], tasks: Sequence[Task], limits: Sequence[AccelerationLimit] = ()
    ) -> WholeBodyQP | PrioritisedQP:
        """Return the problem; declare it if it is the first of its structure.

        With tasks of different ``priority`` it is a ``PrioritisedQP``.
        """
        given = (*contacts, None, *tasks, None, *limits, *map(priority_of, tasks))
        if self._last is not None and is_unchanged(given, self._last[0]):
            return self._last[1]
        shapes = tuple(contact.shape for contact in ordered(contacts))
        key: tuple = (shapes, row_counts(tasks, limits, len(self.robot.limits.torque)))
        several = len(levels_of(tasks)) > 1
        if several:
            key += sizes_of(tasks)
        if self.extra is not None:
            key += (frozenset(contact.patch for contact in contacts), tuple(task.key for task in tasks))
        if key not in self._problems:
            kind = PrioritisedQP if several else WholeBodyQP
            self._problems[key] = kind(self.robot, contacts, tasks, self.settings, self.extra, limits)
        self._last = given, self._problems[key]
        return self._problems[key]

    def rehearse(self) -> None:
        """Solve the last returned problem, filled, by every method, to load their kernels."""
        if self._last is not None:
            self._last[1].rehearse()
