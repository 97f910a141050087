"""Reachability of a posture from another one on closed contacts, and search for a reachable posture.

Each stance is checked separately, so neighbouring postures may have an elbow or a knee bent to different sides. Then no
motion on the shared contacts connects them.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mcplan.planning.posture.freedom import contact_rows
from mcplan.planning.posture.generator import PostureGenerator
from mcplan.planning.posture.result import PostureResult, Violation
from mcplan.planning.posture.task import PostureSearch, Weights
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment

PATH_STEPS = 8
"""Number of steps in which a path is followed."""

SEARCH_STEPS = 15
"""Maximum number of steps of the posture search in each of them."""

CONTACT_TOLERANCE_M = 1e-5
"""Tolerance of held contacts along the path (m, rad)."""

ARRIVAL_TOLERANCE = 0.05
"""A path reaches a posture if it ends with at most this deviation in each coordinate (rad, m)."""


class Continuity:
    """Follows straight paths between postures on closed contacts, as a controller would.

    Parameters
    ----------
    robot, environment : the scene.
    generator : finds reachable postures instead of unreachable ones.
    """

    def __init__(self, robot: Robot, environment: Environment, generator: PostureGenerator):
        self.robot, self.environment, self.generator = robot, environment, generator
        weights, weight = Weights(), np.ones(robot.nv)
        weight[:3], weight[3:6], weight[6:] = weights.base_position, weights.base_orientation, weights.joints
        self._search = PostureSearch(robot, weight, 0.0)

    def follow(self, held: Sequence[Contact], start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Return the posture (nq,) at the end of the path from ``start`` towards ``end``.

        The straight path is followed in steps, each from the previous posture, with the held contacts in place.
        """
        rows = [contact_rows(self.robot, self.environment, contact, None) for contact in held]
        shares = np.arange(1, PATH_STEPS + 1) / PATH_STEPS
        guides = self.robot.integrate(start, shares[:, None] * self.robot.difference(start, end), 1.0)
        task, q = self._search.task(rows, start), start
        for guide in guides:
            q = self._search.run(task._replace(guide=guide), q, SEARCH_STEPS, CONTACT_TOLERANCE_M, 1e-3).q
        return q

    def reaches(self, held: Sequence[Contact], start: np.ndarray, end: np.ndarray) -> bool:
        """Whether the path from ``start`` (nq,) leads to ``end`` (nq,)."""
        return self._is_close(self.follow(held, start, end), end)

    def make_reachable(self, held: Sequence[Contact], result: PostureResult, start: np.ndarray) -> PostureResult:
        """Return the posture if it is reachable, else a reachable one of the same stance, or the violation.

        Parameters
        ----------
        held : contacts that stay closed.
        result : a feasible posture.
        start : (nq,) start of the path.
        """
        end = self.follow(held, start, result.q)
        if self._is_close(end, result.q):
            return result
        for guide in (result.q, end, start):
            other = self.generator.generate(result.contacts, result.loaded, guide, [end, start])
            if other.found and self.reaches(held, start, other.q):
                return other
        deviation = np.abs(self.robot.difference(end, result.q))
        worst = int(np.argmax(deviation))
        name = self.robot.joint_names[worst - 6] if worst >= 6 else "the base"
        return replace(result, stage="continuity", violations=(Violation("continuity", name, float(deviation[worst])),))

    def _is_close(self, a: np.ndarray, b: np.ndarray) -> bool:
        return bool(np.max(np.abs(self.robot.difference(a, b))) <= ARRIVAL_TOLERANCE)


def shared_contacts(before: Sequence[Contact], after: Sequence[Contact]) -> list[Contact]:
    """Return the contacts of one stance that are at the same place in another."""
    return [contact for contact in after if any(contact.same_place(other) for other in before)]
