"""Postures of a task with bodies kept apart, found round by round."""

import numpy as np

from mcplan.core.posture import apart as core
from mcplan.core.posture.rows import Task
from mcplan.errors import SolverFailed
from mcplan.planning.posture.task import PostureSearch
from mcplan.planning.transition.nearness import Nearness, Wish
from mcplan.planning.transition.steps import Steps

PLACED = 1e-3
"""m, rad: a posture on the way keeps its contacts within this; the controller holds them to the rest."""

FIT = 1e-3
"""m, rad: a posture that misses its contacts and wanted distances by no more will do without a search."""

ROUNDS, STEPS = 10, 8
"""Times that distances are taken anew at a posture, and steps of the inverse kinematics in between."""

GAIN, IDLE = 2e-4, 2
"""m, rad: so many times in a row that gain no more than this are the last: the nearest points of a pair take turns."""

STRETCH = 0.02
"""m: the most that a pair is pushed apart before its distance is taken anew, for a robot of the size of HRP-2."""

TRUST = 0.2
"""m, rad: bound of a step in each coordinate: distances are linear in so much."""

TOLERANCE, STEP_TOLERANCE = 1e-6, 1e-4
"""m, rad: of the rows, and of a step below which the cost no longer matters."""


class Apart:
    """Finds postures in one scene whose bodies keep apart.

    Parameters
    ----------
    nearness : of the scene.
    search : of postures, with its prices and margins.
    """

    def __init__(self, nearness: Nearness, search: PostureSearch):
        self.nearness, self.search, self._tree = nearness, search, nearness.robot.tree
        self._rule = search.rule(STEPS, TOLERANCE, STEP_TOLERANCE, TRUST)
        self._measures, self._stretch = np.zeros(core.MEASURES), nearness.robot.scale.leg * STRETCH

    def settle(self, task: Task, start: np.ndarray, wish: Wish, watched: np.ndarray) -> Steps[tuple[np.ndarray, float]]:
        """Search for a posture of the task with distances of the watched pairs, from ``start``.

        Returns
        -------
        The posture that misses least, and by how much (m, rad).
        """
        around, measures = self.nearness.around_at(wish.objects), self._measures
        scratch = self.search.room_for(task, len(watched))
        q, report = np.array(start, dtype=float), self.search.report
        best, least, most, idle = start, np.inf, -np.inf, 0
        near = core.find_near(self._tree, around, q, watched)
        for _ in range(ROUNDS):
            near = core.keep_apart(
                self._tree, around, near, task, self._rule, q, wish.need, wish.content, watched, self._stretch, scratch,
                report, measures,
            )  # fmt: skip
            if near == core.NOT_FINITE:
                raise SolverFailed("the search for a posture on the way ended in numbers that are not finite")
            amount, left = max(measures[core.OFF] - PLACED, measures[core.SHORT]), measures[core.LEFT]
            idle = 0 if amount < least - GAIN or left > most + GAIN else idle + 1
            if amount < least:
                best, least = q.copy(), float(amount)
            most = max(most, left)
            done = measures[core.OFF] <= PLACED / 10 and left > -FIT
            yield
            if done or idle == IDLE:
                break
        return best, least

    def fits(self, task: Task, q: np.ndarray, wish: Wish, watched: np.ndarray) -> bool:
        """Say whether a posture will do as it is."""
        scratch = self.search.room_for(task, 0)
        around = self.nearness.around_at(wish.objects)
        return bool(core.fits(self._tree, around, task, q, wish.need, watched, FIT, scratch))
