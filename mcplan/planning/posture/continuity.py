"""Reachability between two postures on contacts that stay closed, and a reachable posture instead.

Each stance is checked separately, so neighbouring postures may have an elbow or a knee bent to different sides: no
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

PATH_PIECES = 8
"""Intermediate postures of the path."""

STEPS_PER_PIECE = 15
"""Steps of the posture search for each of them."""

CONTACT_TOLERANCE_M = 1e-5
"""m, rad: of held contacts along the path."""

ARRIVAL_TOLERANCE = 0.05
"""rad, m: a path that ends within this distance of a posture reaches it."""


class Continuity:
    """Follows straight paths between postures on closed contacts, as a controller would.

    Parameters
    ----------
    robot, environment : the scene.
    generator : finds reachable postures instead of unreachable ones.
    """

    def __init__(self, robot: Robot, environment: Environment, generator: PostureGenerator):
        self.robot, self.environment, self.generator = robot, environment, generator
        weights, W = Weights(), np.ones(robot.nv)
        W[:3], W[3:6], W[6:] = weights.base_position, weights.base_orientation, weights.joints
        self._search = PostureSearch(robot, W, 0.0)

    def follow(self, held: Sequence[Contact], start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Return the posture (nq,) where the path from ``start`` towards ``end`` arrives.

        The straight path is followed in pieces, each from the last; the contacts stay in place.
        """
        rows = [contact_rows(self.robot, self.environment, contact, None) for contact in held]
        step = self.robot.difference(start, end)
        q = start
        for piece in range(1, PATH_PIECES + 1):
            guide = self.robot.integrate(start, step, piece / PATH_PIECES)
            q = self._search.run(self._search.task(rows, guide), q, STEPS_PER_PIECE, CONTACT_TOLERANCE_M, 1e-3).q
        return q

    def reaches(self, held: Sequence[Contact], start: np.ndarray, end: np.ndarray) -> bool:
        """Say whether the path from ``start`` (nq,) leads to ``end``."""
        return self._same(self.follow(held, start, end), end)

    def linked(self, held: Sequence[Contact], result: PostureResult, start: np.ndarray) -> PostureResult:
        """Return the posture if it is reachable, else a reachable one of the same stance, or the violation.

        Parameters
        ----------
        held : contacts that stay closed.
        result : a feasible posture.
        start : (nq,) start of the path.
        """
        end = self.follow(held, start, result.q)
        if self._same(end, result.q):
            return result
        for guide in (result.q, end, start):
            other = self.generator.generate(result.contacts, result.loaded, guide, [end, start])
            if other.found and self.reaches(held, start, other.q):
                return other
        off = np.abs(self.robot.difference(end, result.q))
        worst = int(np.argmax(off))
        thing = self.robot.joint_names[worst - 6] if worst >= 6 else "the base"
        return replace(result, stage="continuity", violations=(Violation("continuity", thing, float(off[worst])),))

    def _same(self, a: np.ndarray, b: np.ndarray) -> bool:
        return bool(np.max(np.abs(self.robot.difference(a, b))) <= ARRIVAL_TOLERANCE)


def shared_contacts(before: Sequence[Contact], after: Sequence[Contact]) -> list[Contact]:
    """Return the contacts of one stance that are at the same place in another."""
    return [contact for contact in after if any(contact.same_place(other) for other in before)]
