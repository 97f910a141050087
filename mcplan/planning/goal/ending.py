"""The posture at the end of an item: on given contacts, all of them loaded, with what the item asks of the posture.

Contacts outrank the base and the centre of mass, which are constraints; joints of a posture that is named are kept as
near as the contacts allow. A part of each tolerance is left to the motion.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.planning.goal.measure import measure, unmet
from mcplan.planning.posture.freedom import Freedom
from mcplan.planning.posture.generator import PostureGenerator
from mcplan.planning.posture.result import PostureResult
from mcplan.planning.posture.settings import PostureSettings, Weights
from mcplan.planning.posture.task import BaseTarget
from mcplan.planning.prover import Prover
from mcplan.scene.contact import Contact
from mcplan.scene.schema import GoalItem

POSED = Weights(base_position=0.05, base_orientation=0.1, joints=10.0, com=0.5)
"""Where joints are asked for, the base goes where they take it."""

SHARES = (0.5, 0.9)
"""Parts of the base's tolerances that the plan uses; the rest is for the motion."""


OF_THE_POSTURE = ("base", "posture", "com")
"""Fields of an item that the posture decides; the search sees to the others."""


@dataclass(frozen=True)
class End:
    """The posture at the end of an item, or the nearest miss.

    Attributes
    ----------
    result : with contacts whose free coordinates are settled.
    missing : what the item asks and is not met, in words; empty when the end is found.
    """

    result: PostureResult
    missing: str

    @property
    def found(self) -> bool:
        """Whether the posture exists and meets the item."""
        return not self.missing


class Ending:
    """Finds ends in one scene.

    Parameters
    ----------
    prover : of the scene.
    reference : (nq,) posture of the start: joints that a posture does not name are drawn there.
    """

    def __init__(self, prover: Prover, reference: np.ndarray):
        self.prover, self.reference = prover, reference
        settings = prover.asked(PostureSettings(weights=POSED))
        self._posed = PostureGenerator(prover.robot, prover.environment, settings, prover.collisions)

    def asks(self, item: GoalItem) -> bool:
        """Whether an item asks anything of the posture, beside its contacts."""
        return item.base is not None or item.com is not None or item.posture is not None

    def guide(self, item: GoalItem, contacts: Sequence[Contact], q: np.ndarray) -> np.ndarray:
        """Return the posture (nq,) that an end is drawn to."""
        guide = self.prover.guide(contacts, q).copy()
        if item.posture is not None:
            guide[7:] = item.posture.apply(self.prover.robot, self.reference)[7:]
        if item.base is not None:
            guide[:3] = item.base.xyz
        return guide

    def find(
        self,
        item: GoalItem,
        contacts: Sequence[Contact],
        q: np.ndarray,
        hint: np.ndarray | None = None,
        free: dict[str, Freedom] | None = None,
        held: bool = True,
    ) -> End:
        """Return the end of an item on contacts.

        Parameters
        ----------
        q : (nq,) the posture before; with ``held`` the end can be reached from it on the contacts.
        hint : (nq,) a posture near which to look; by default the reference on the contacts.
        free : coordinates of contacts that may still be chosen.
        """
        contacts = tuple(sorted(contacts, key=lambda contact: contact.patch))
        guide = self.guide(item, contacts, q) if hint is None else hint
        best: End | None = None
        for share in SHARES:
            end = self._end(item, contacts, guide, [q, guide] if held else [guide, q], free, share)
            if held and end.found:
                end = self._reached(item, contacts, q, end, share)
            if best is None or (end.found and not best.found):
                best = end
            if end.found or item.base is None:
                break
        assert best is not None
        return self._loaded(item, q, best) if held and best.found and not self.asks(item) else best

    def _loaded(self, item: GoalItem, q: np.ndarray, end: End) -> End:
        """Return an end in which what the item asks to touch bears more, where some of it bears next to nothing.

        Its centre of mass is drawn to those contacts: what carries nothing is soon no contact.
        """
        asked = {spec.patch for spec in item.contacts}
        least = self.prover.carries
        light = [c for c in end.result.contacts if c.patch in asked and _bears(c, end.result) <= least]
        if not light:
            return end
        near, place = end.result.q, np.mean([contact.p[:2] for contact in light], axis=0)
        self.prover.calls += 1
        other = self.prover.generator.generate(end.result.contacts, None, near, [near], hint=place)
        if not other.found or not self.prover.continuity.reaches(end.result.contacts, q, other.q):
            return end
        now, most = (min(_bears(contact, result) for contact in light) for result in (end.result, other))
        return self._judged(item, other) if most > now else end

    def _end(self, item, contacts, guide, starts, free, share: float) -> End:
        base = None
        if item.base is not None:
            R = None if item.base.rpy is None else Rotation.from_euler("xyz", item.base.rpy).as_matrix()
            angle = None if item.base.angle_tolerance is None else share * item.base.angle_tolerance
            base = BaseTarget(np.array(item.base.xyz), share * item.base.tolerance, R, angle)
        com = None if item.com is None else np.array(item.com)
        generator = self.prover.generator if item.posture is None else self._posed
        self.prover.calls += 1
        result = generator.generate(contacts, None, guide, starts, free, com=com, base=base)
        return self._judged(item, result)

    def _judged(self, item: GoalItem, result: PostureResult) -> End:
        if not result.found:
            return End(result, result.reason)
        measures = measure(item, self.prover.robot, result.contacts, result.q, {})
        return End(result, unmet([one for one in measures if one.field in OF_THE_POSTURE]))

    def _reached(self, item, contacts, q: np.ndarray, end: End, share: float) -> End:
        """Return the end, or one like it that the way from ``q`` on the contacts leads to, or say there is none."""
        continuity = self.prover.continuity
        if continuity.reaches(contacts, q, end.result.q):
            return end
        there = continuity.follow(contacts, q, end.result.q)
        again = self._end(item, contacts, end.result.q, [there], None, share)
        if again.found and continuity.reaches(contacts, q, again.result.q):
            return again
        return End(end.result, "the contacts, which stay, do not let the robot come to the posture that meets it")


def _bears(contact: Contact, result: PostureResult) -> float:
    """Return the size of the force (N) of a contact in a posture that is found."""
    assert result.forces is not None
    return float(np.linalg.norm(result.forces.wrenches[contact.patch][:3]))
