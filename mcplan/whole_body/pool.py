"""Cache of declared whole-body programs, one per structure."""

from collections.abc import Sequence

from mcplan.whole_body.collision_avoidance import AccelerationLimit
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.declaration import Extra
from mcplan.whole_body.priorities import PrioritisedQP, level_sizes, priorities_of
from mcplan.whole_body.settings import HasLimits, QPSettings
from mcplan.whole_body.tasks.effort_terms import row_counts
from mcplan.whole_body.tasks.task import Task, priority_of
from mcplan.whole_body.whole_body import MAX_BINDINGS, WholeBodyQP, sort_contacts


class ProblemPool:
    """Cache of declared problems by contacts and tasks.

    Contacts and tasks with the same structure share a problem, for example standing on the left and on the right foot.
    With user-defined terms, which may name a patch, contacts have to be the same.

    Parameters
    ----------
    robot, settings, extra : see ``WholeBodyQP``.
    """

    def __init__(self, robot: HasLimits, settings: QPSettings | None = None, extra: Extra | None = None):
        self.robot, self.settings, self.extra = robot, settings or QPSettings(), extra
        self._problems: dict[tuple, WholeBodyQP | PrioritisedQP] = {}
        self._found: dict[tuple[int, ...], tuple[tuple, WholeBodyQP | PrioritisedQP]] = {}
        self._last: WholeBodyQP | PrioritisedQP | None = None

    def __len__(self) -> int:
        return len(self._problems)

    def get(
        self, contacts: Sequence[ContactConstraint], tasks: Sequence[Task], limits: Sequence[AccelerationLimit] = ()
    ) -> WholeBodyQP | PrioritisedQP:
        """Return the problem of contacts and tasks; declare it if it is the first of its structure.

        With tasks of different ``priority`` it is a ``PrioritisedQP``.
        """
        arguments = (*contacts, None, *tasks, None, *limits, *map(priority_of, tasks))
        identity = tuple(map(id, arguments))
        if identity in self._found:
            self._last = self._found[identity][1]
            return self._last
        shapes = tuple(contact.shape for contact in sort_contacts(contacts))
        key: tuple = (shapes, row_counts(tasks, limits, len(self.robot.limits.torque)))
        has_levels = len(priorities_of(tasks)) > 1
        if has_levels:
            key += level_sizes(tasks)
        if self.extra is not None:
            key += (frozenset(contact.patch for contact in contacts), tuple(task.key for task in tasks))
        if key not in self._problems:
            program_class = PrioritisedQP if has_levels else WholeBodyQP
            self._problems[key] = program_class(self.robot, contacts, tasks, self.settings, self.extra, limits)
        if len(self._found) == MAX_BINDINGS:
            self._found.clear()
        self._last = self._problems[key]
        self._found[identity] = arguments, self._last  # the arguments are kept, so that their identity stays theirs
        return self._last

    def rehearse(self) -> None:
        """Solve the last returned problem by every method of its compiled form, to load their kernels."""
        if self._last is not None:
            self._last.rehearse()
