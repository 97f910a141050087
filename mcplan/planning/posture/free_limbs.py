"""Limbs that touch nothing: they stay on the side of a rail, a wall or a pole on which they are.

A posture is found near a reference without a thought of the one before. What bodies overlap is pushed apart the nearer
way out, and so an arm may end above a rail that it hung beside, with no way from the one to the other.
"""

from collections.abc import Collection

import numpy as np

from mcplan.collision.model import CollisionModel
from mcplan.model.robot import Robot
from mcplan.planning.posture.limbs import links_of, rates_of

DEEP = 0.01
"""m: bodies that overlap by less than this on the straight way between two postures are got around easily."""

SAMPLES = 7
"""Postures between two that are looked at."""


class FreeLimbs:
    """Tells which limbs would have to go through something, and keeps them where they were.

    Parameters
    ----------
    robot, collisions : the scene.
    """

    def __init__(self, robot: Robot, collisions: CollisionModel):
        self.robot, self.collisions = robot, collisions
        names = dict.fromkeys(patch.limb for patch in robot.patches.values())
        own = {name: links_of(robot, name) for name in names}
        links = set(robot.link_names)
        self._rates = {name: rates_of(robot, name) for name in names}
        deep = -robot.scale.arm * DEEP
        of = {name: [pair.a in own[name] and pair.b not in links for pair in collisions.pairs] for name in names}
        self._margins = {name: np.where(mine, deep, -np.inf) for name, mine in of.items() if any(mine)}

    def crossing(self, touching: Collection[str], q0: np.ndarray, q1: np.ndarray) -> tuple[str, ...]:
        """Return the limbs that go through something on the straight way from one posture to another, by name.

        Parameters
        ----------
        touching : patches in contact; their limbs are left out, for their way is planned.
        q0, q1 : (nq,) postures.
        """
        held = {self.robot.patches[patch].limb for patch in touching}
        found = [name for name in self._margins if name not in held]
        way = self.robot.difference(q0, q1)
        between = [self.robot.integrate(q0, way, share) for share in np.arange(1, SAMPLES + 1) / (SAMPLES + 1)]
        least, margins = self.collisions.least, self._margins
        return tuple(name for name in found if any(least(q, margins[name]) is not None for q in between))

    def kept(self, limbs: Collection[str], q: np.ndarray, guide: np.ndarray) -> np.ndarray:
        """Return ``guide`` (nq,) with the joints of some limbs as they are in ``q``."""
        way = self.robot.difference(guide, q)
        mine = np.zeros(self.robot.nv, bool)
        for limb in limbs:
            mine[self._rates[limb]] = True
        return np.asarray(self.robot.integrate(guide, np.where(mine, way, 0.0), 1.0))
