"""Segments of transitions in one scene, each found once."""

from collections.abc import Sequence

import numpy as np

from mcplan.collision.model import CollisionModel
from mcplan.model.robot import Robot
from mcplan.planning.posture.contact_region import contact_key
from mcplan.planning.transition.body_motion import Departure
from mcplan.planning.transition.finder import TransitionFinder
from mcplan.planning.transition.knots import Knots
from mcplan.planning.transition.steps import Found, Steps, run
from mcplan.planning.transition.transition import Segment
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.scene.settings import ControlSettings


class Segments:
    """Segments in one scene, kept by value: what the search has proven is found at once when the plan is made.

    Parameters
    ----------
    robot, environment, settings, collisions : see `TransitionFinder`.
    """

    def __init__(
        self,
        robot: Robot,
        environment: Environment,
        settings: ControlSettings,
        collisions: CollisionModel | None = None,
    ):
        self.finder = TransitionFinder(robot, environment, settings, collisions)
        self._known: dict[tuple, Segment] = {}
        self._looks: dict[tuple, Knots] = {}
        self._retractions: dict[tuple, Segment] = {}

    def shift(self, begin: Departure, q: np.ndarray) -> Segment:
        """Return the motion of the body to posture q (nq,), see `TransitionFinder.shift`."""
        return self._kept(begin, q, (), self.finder.shift(begin, q), self._known)

    def swing(self, begin: Departure, q: np.ndarray, added: Sequence[Contact]) -> Segment:
        """Return the motion of a patch to a new contact, see `TransitionFinder.swing`: no lower than a look shows."""
        above = self.look(begin, q, added).above
        return self._kept(begin, q, added, self.finder.swing(begin, q, added, above), self._known)

    def retraction(self, begin: Departure, patch: str) -> Segment:
        """Return the lift of a patch that has nowhere to go yet, see `TransitionFinder.retraction`."""
        return self._kept(begin, begin.q, (), self.finder.retraction(begin, patch), self._retractions)

    def look(self, begin: Departure, q: np.ndarray, added: Sequence[Contact]) -> Knots:
        """Return knots of a swing, found more quickly, see `TransitionFinder.look`."""
        return self._kept(begin, q, added, self.finder.look(begin, q, added), self._looks)

    def _kept(
        self, begin: Departure, q: np.ndarray, added: Sequence[Contact], steps: Steps[Found], known: dict[tuple, Found]
    ) -> Found:
        key = (
            tuple(sorted(contact_key(contact) for contact in begin.closed)),
            tuple(sorted(contact_key(contact) for contact in begin.rising.values())),
            tuple(contact_key(contact) for contact in added),
            begin.q.tobytes(),
            q.tobytes(),
        )
        if key not in known:
            known[key] = run(steps)
        return known[key]
