"""Collision avoidance of the controller: the pairs that are near, as rows of the whole-body program."""

import numpy as np

from mcplan.collision.distances import ALLOWED_PENETRATION
from mcplan.collision.model import CollisionModel
from mcplan.control.motion import Motion
from mcplan.model.robot import Robot
from mcplan.qp.collision_avoidance import CollisionAvoidance
from mcplan.scene.environment import Environment
from mcplan.scene.settings import ControlSettings

PASSING = 0.75 * ALLOWED_PENETRATION
"""How much less a link may overlap a support that it passes than one that it rests on (m)."""

PARTING = 0.02
"""Speed at which a link that has left its support is asked to gain its clearance (m/s)."""

RESPONSE = 0.02
"""Time within which the speed of approach follows its bound (s); one control period would mean a blow."""


class Avoidance:
    """Keeps links from each other and from the environment, whatever the references ask for.

    A link may touch the support that it rests on, comes from or goes to; it stays ``avoid_clearance`` off all else.
    While it only passes that support, it is held closer to the surface than the overlap which a link at rest is
    allowed (``ALLOWED_PENETRATION``), because the rows are linear and a moving link goes a little beyond them. What is
    asked of a pair never rises faster than ``PARTING``, so that leaving a support is no blow either.

    Parameters
    ----------
    robot, environment : what must not collide.
    settings : ``avoid_*``.
    dt : control period (s).
    """

    def __init__(self, robot: Robot, environment: Environment, settings: ControlSettings, dt: float):
        self._robot = robot
        self._clearance, self._distance = settings.avoid_clearance, settings.avoid_distance
        self._model = CollisionModel(robot, environment)
        self._rise = PARTING * dt
        self._asked: dict[tuple[str, str], float] = {}
        self._limit = CollisionAvoidance(
            settings.avoid_pairs, safe=0.0, influence=self._distance, ceiling=20.0, dt=max(dt, RESPONSE)
        )

    def limit(self, q: np.ndarray, motion: Motion) -> CollisionAvoidance:
        """Return the rows for the configuration ``q`` (7+n,); to be called once per control period."""
        closed = [loaded.contact for loaded in motion.contacts.values()]
        passing = [*motion.released.values(), *motion.targets.values()]
        margin = self._distance + self._clearance
        near = self._model.constraint_rows(q, margin, [*closed, *passing])
        at_rest = {(self._body(self._robot.patches[c.patch].link), c.support) for c in closed}
        asked: dict[tuple[str, str], float] = {}
        room = np.empty(len(near.pairs))
        for i, pair in enumerate(near.pairs):
            resting = pair.in_contact and (self._body(pair.a), pair.b) in at_rest
            distance = near.distance[i] - ALLOWED_PENETRATION * pair.in_contact
            goal = -ALLOWED_PENETRATION if resting else PASSING - ALLOWED_PENETRATION
            goal = goal if pair.in_contact else self._clearance
            name = (pair.a, pair.b)
            before = self._asked.get(name, distance)
            asked[name] = min(goal, max(before + self._rise, asked.get(name, -np.inf)))
            room[i] = distance - asked[name]
        self._asked = asked
        self._limit.set_pairs(room, near.rows, names=[str(pair) for pair in near.pairs])
        return self._limit

    def _body(self, link: str) -> int:
        return self._robot.frame(link)[0]
