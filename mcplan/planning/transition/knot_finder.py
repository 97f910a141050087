"""Finds knots of motions in one scene.

Between two postures that are proven, the straight motion of the joints may leave the contacts' reach, the region where
the robot balances, or pass through an obstacle. So postures on the contacts that stay, clear of everything, are found
along it (`KnotSearch`).
"""

from collections.abc import Sequence

import numpy as np

from mcplan.collision.model import CollisionModel
from mcplan.core.posture.rows import PLACE_ROWS
from mcplan.model.robot import Robot
from mcplan.planning.posture.contact_region import ContactRegions, Support
from mcplan.planning.posture.freedom import ContactRows, contact_rows
from mcplan.planning.posture.settings import PostureSettings
from mcplan.planning.posture.task import PostureSearch, prices
from mcplan.planning.transition.apart import FIT, Apart
from mcplan.planning.transition.joint_room import JointRoom
from mcplan.planning.transition.knot_search import KnotSearch, at_knots
from mcplan.planning.transition.knots import BARRED, Knots, Led, ObjectPoses
from mcplan.planning.transition.nearness import APART, Nearness, Wish
from mcplan.planning.transition.steps import Steps
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment

LIFTS = (1.0, 0.5, 0.25, 0.125)
"""Parts of the height to which a patch is lifted that are tried in turn."""


class KnotFinder:
    """Finds knots in one scene.

    Parameters
    ----------
    robot, environment : the scene.
    settings : margins of the postures.
    collisions : of the same scene, where they are known.
    """

    def __init__(
        self,
        robot: Robot,
        environment: Environment,
        settings: PostureSettings | None = None,
        collisions: CollisionModel | None = None,
    ):
        self.robot, self.environment, self.settings = robot, environment, settings or PostureSettings().of(robot.scale)
        self.collisions = collisions or CollisionModel(robot, environment)
        self.nearness = Nearness(robot, self.collisions)
        # where nothing else will do, half of the planner's margin of joints is enough for the way between two postures
        self.search = PostureSearch(robot, prices(robot, self.settings.weights), 0.5 * self.settings.joint_margin)
        self.joints = JointRoom(robot, self.search.limit)
        self.apart = Apart(self.nearness, self.search)
        self._regions = ContactRegions(robot.mass, self.settings.com_inset, self.settings.comfort)
        self._supports = dict[tuple[Contact, ...], Support]()

    def find(
        self,
        guides: np.ndarray,
        contacts: Sequence[Contact] | Sequence[Sequence[Contact]],
        led: Sequence[Led] = (),
        touching: Sequence[Contact] = (),
        modest: bool = False,
        objects: ObjectPoses | None = None,
    ) -> Steps[Knots]:
        """Search for knots near the guides.

        Parameters
        ----------
        guides : (k, nq) the motion that is preferred; its ends are kept.
        contacts : what is in place all along; or, where it moves with an object, what is in place at each knot.
        led : patches that are led along.
        touching : contacts that limbs leave or come to: near them, the limb is close to its support.
        modest : let no pair part more than it does at one of the ends.
        objects : where objects that move along are, by the share of the way that has passed.
        """
        guides = np.asarray(guides, dtype=float)
        asked = contacts, led, touching, modest, objects
        roomy = self.joints.between(guides[[0, -1], 7:], [contact.patch for contact in at_knots(contacts, 1)[0]])
        knots = yield from KnotSearch(self, guides, *asked, roomy).run()
        if knots.missed > BARRED and self.joints.hold_up(roomy, knots.q):
            again = yield from KnotSearch(self, guides, *asked, self.joints.least).run()
            knots = min(knots, again, key=lambda found: found.missed)
        return knots

    def lifted(
        self, guide: np.ndarray, contacts: Sequence[Contact], patch: str, place: np.ndarray, lift: np.ndarray
    ) -> Steps[np.ndarray]:
        """Return a posture near a guide in which a patch is off a place by ``lift`` (3,), or by a part of it.

        Only how far it is off counts: straight up may be no way at all, as for a knee below its hip. Where ``lift`` is
        zero that is the guide.

        Parameters
        ----------
        guide : (nq,) posture.
        contacts : what stays in place.
        place : (3,) what the patch leaves.
        """
        height = float(np.linalg.norm(lift))
        if height == 0.0:
            return guide
        com, (body, offset) = self.robot.com(guide), self.robot.frame(patch)
        held = [contact_rows(self.robot, self.environment, contact, None) for contact in contacts]
        watched = self.nearness.watched(contacts)
        content = self.nearness.content
        need = np.where(self.nearness.own, np.minimum(self.nearness.wanted, self.nearness.distances(guide)), content)
        wish = Wish(need, np.minimum(need, content), np.full(len(need), APART))
        normal = np.concatenate([lift / height, np.zeros(3)])[None]
        best, least = guide, np.inf
        for part in LIFTS:
            frame = np.concatenate([offset, np.eye(3).ravel(), place + part * lift])
            rows = [*held, ContactRows(PLACE_ROWS, body, frame, normal, np.zeros((0, 10)))]
            pull = np.array([*com[:2], self.settings.weights.com, 0.0])
            task = self.search.task(rows, guide, self.support(contacts, com).rows, pull)
            q, missed = yield from self.apart.settle(task, guide, wish, watched)
            if missed < least:
                best, least = q, missed
            if missed <= FIT:
                break
        return best

    def room(self, contacts: Sequence[Contact], com: np.ndarray) -> float:
        """Return how far inside the region that contacts balance a centre of mass (3,) is (m); negative outside."""
        region = self.support(contacts, com).region
        return -np.inf if region.empty else float(region.depth(com))

    def support(self, contacts: Sequence[Contact], com: np.ndarray) -> Support:
        """Return where contacts balance the robot, whatever its height; ``com`` (3,) as for `ContactRegions`."""
        known = self._supports.get(asked := tuple(contacts))
        if known is None:
            spared = [self.settings.spared(contact) for contact in asked]
            known = self._supports[asked] = self._regions.support(spared, com)
        return known
