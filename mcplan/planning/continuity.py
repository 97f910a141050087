"""Whether a robot gets from one posture to the next without letting go, and the posture that it gets to instead.

Each stance is proven on its own, so that two neighbours may hold the same contacts with an elbow or a knee bent the
other way: no motion on those contacts joins them.
"""

from collections.abc import Sequence

import numpy as np

from mcplan.model.robot import Robot
from mcplan.planning.freedom import contact_rows
from mcplan.planning.generator import PostureGenerator
from mcplan.planning.posture import Weights
from mcplan.planning.posture_task import PostureSearch
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment

PIECES = 8
"""Intermediate postures on the way."""

STEPS = 15
"""Steps of the posture search for each of them."""

TOLERANCE = 1e-5
"""m, rad: of held contacts on the way."""

ARRIVED = 0.05
"""rad, m: a way that ends this near to a posture leads there."""


class Continuity:
    """Follows postures on held contacts, as a controller would.

    Parameters
    ----------
    robot, environment : the scene.
    generator : proves the postures that take the place of those out of reach.
    """

    def __init__(self, robot: Robot, environment: Environment, generator: PostureGenerator):
        self.robot, self.environment, self.generator = robot, environment, generator
        weights, W = Weights(), np.ones(robot.nv)
        W[:3], W[3:6], W[6:] = weights.base_position, weights.base_orientation, weights.joints
        self._search = PostureSearch(robot, W, 0.0)

    def follow(self, held: Sequence[Contact], start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Return the posture (nq,) that the way from ``start`` towards ``end`` leads to.

        The straight way between the two is gone through in pieces, each from the last; the contacts stay in place.
        """
        rows = [contact_rows(self.robot, self.environment, contact, None) for contact in held]
        way = self.robot.difference(start, end)
        q = start
        for piece in range(1, PIECES + 1):
            guide = self.robot.integrate(start, way, piece / PIECES)
            q = self._search.run(self._search.task(rows, guide), q, STEPS, TOLERANCE, 1e-3).q
        return q

    def linked(
        self,
        held: Sequence[Contact],
        touching: Sequence[Contact],
        loaded: Sequence[str],
        start: np.ndarray,
        end: np.ndarray,
    ) -> np.ndarray:
        """Return ``end`` (nq,) where it can be reached, else the posture of the same stance that can, if there is one.

        Parameters
        ----------
        held : contacts that stay closed on the way.
        touching, loaded : contacts in place at its end, and the names of those that carry load.
        """
        q = self.follow(held, start, end)
        if self._same(q, end):
            return end
        for guide in (end, q, start):
            result = self.generator.generate(touching, loaded, guide, [q, start])
            if result.found and self._same(self.follow(held, start, result.q), result.q):
                return np.asarray(result.q)
        return end

    def _same(self, a: np.ndarray, b: np.ndarray) -> bool:
        return bool(np.max(np.abs(self.robot.difference(a, b))) <= ARRIVED)
