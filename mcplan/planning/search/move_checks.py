"""Checks of a move, the cheapest first: the first that fails rejects the move and is recorded.

A move that passes all of them gives a node: a stance with a posture, and the steps that lead there.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from mcplan.planning.posture.freedom import Freedom
from mcplan.planning.posture.result import PostureResult, Violation
from mcplan.planning.search.moves import SearchSpace, offset_from_nominal
from mcplan.planning.search.node import ContactStep, Move, StanceNode
from mcplan.planning.search.tree import SearchTree
from mcplan.planning.transition.segments import BodyShift, SwingMotion
from mcplan.robot.anatomy import HRP2_SCALE, RobotScale
from mcplan.scene.contact import Contact

MIN_SWING_M = 0.05
"""Swings of a patch that moves less on its support are checked only with the whole path."""

EXTRA_SIDESTEP_M = 1e-3
"""Added to the overlap of a link in collision when its patch is moved aside."""

FOOTPRINT_GAP_M, SAME_LEVEL_M = 0.012, 0.08
"""Smallest gap between two footprints, and the height difference up to which footprints are on one level."""

MIN_NORMAL_COSINE = 0.7
"""Patches whose normals have a smaller cosine are not checked for overlap."""


class Rejection(NamedTuple):
    """Why a move is infeasible: stage, and violations; without violations it is only ``counted``."""

    stage: str
    violations: tuple[Violation, ...] = ()
    counted: bool = False


@dataclass(eq=False)
class MoveAttempt:
    """A move that is being checked.

    Attributes
    ----------
    common : contacts that stay closed.
    added : new contacts; ``free``: their free coordinates.
    q : (nq,) posture so far; ``wrenches`` the largest of each patch; ``steps`` so far.
    """

    parent: StanceNode
    move: Move
    common: tuple[Contact, ...]
    q: np.ndarray
    added: list[Contact] = field(default_factory=list)
    free: dict[str, Freedom] = field(default_factory=dict)
    wrenches: dict[str, np.ndarray] = field(default_factory=dict)
    steps: list[ContactStep] = field(default_factory=list)

    @property
    def carrying(self) -> tuple[str, ...]:
        """Patches that carry the robot while the limb moves."""
        return tuple(contact.patch for contact in self.common)

    def reach(self, result: PostureResult) -> None:
        """Continue from a feasible posture."""
        self.q = result.q
        both = [*self.wrenches.items(), *result.wrenches.items()]
        self.wrenches = dict(sorted(both, key=lambda item: float(np.linalg.norm(item[1][:3]))))


class MoveChecker:
    """Checks moves in a search space.

    Attributes
    ----------
    blocked_swings : how often swings of a patch from one support to another were blocked.
    """

    def __init__(self, space: SearchSpace, tree: SearchTree):
        self.space, self.tree = space, tree
        self.postures, self.motions = space.feasibility.postures, space.feasibility.motions
        self.occupancy, self.scale = space.feasibility.occupancy, space.robot.scale
        self.blocked_swings: Counter[tuple] = Counter()

    def child(self, parent: StanceNode, move: Move) -> StanceNode | None:
        """Return the node that a move leads to, or None with the reason in the record."""
        common = tuple(contact for contact in parent.contacts if contact.patch not in move.removed)
        attempt = MoveAttempt(parent, move, common, parent.q)
        for check in CHECKS:
            if (rejection := check.find_rejection(self, attempt)) is None:
                continue
            if rejection.counted:
                self.tree.skipped[rejection.stage] += 1
            else:
                self.tree.reject(parent.index, str(move), rejection.stage, rejection.violations, attempt.added)
            return None
        met = parent.met | satisfied_requirements(self.space.require, attempt.wrenches, self.space.feasibility.min_load)
        contacts = (*common, *attempt.added)
        return self.node(parent, move, contacts, attempt.q, tuple(attempt.steps), met, str(move), parent.index)

    def node(
        self,
        parent: StanceNode | None,
        move: Move | None,
        contacts: Iterable[Contact],
        q: np.ndarray,
        steps: tuple[ContactStep, ...],
        met: frozenset[int],
        title: str,
        recorded: int | None,
    ) -> StanceNode:
        """Return a node; ``title`` and ``recorded`` are its move and the index of its parent in the record."""
        contacts = tuple(sorted(contacts, key=lambda contact: contact.patch))
        standing = {contact.patch: self.space.progress(contact) for contact in contacts}
        g, h = 0.0 if parent is None else parent.g + 1.0, self.space.h(standing, met)
        index = self.tree.add_node(recorded, title, contacts, q, g, h)
        limb = None if move is None else move.limb
        return StanceNode(contacts, standing, q, parent, move, steps, g, h, limb, met, index)

    # -- checks by numbers and distances ----------------------------------------------------------------------------

    def _fit(self, attempt: MoveAttempt) -> Rejection | None:
        for patch, i in attempt.move.added:
            contact = self.space.candidates[patch].contact(i)
            if contact is None:
                return Rejection("the patch does not fit on its support", counted=True)
            attempt.added.append(contact)
            if (freedom := self.space.candidates[patch].freedom[i]) is not None:
                attempt.free[patch] = freedom
        return None

    def _footprint(self, attempt: MoveAttempt) -> Rejection | None:
        if any(footprint_overlap(one, other, self.scale) for one in attempt.added for other in attempt.common):
            return Rejection("too close to another contact", counted=True)
        return None

    def _link(self, attempt: MoveAttempt) -> Rejection | None:
        """Reject a link in collision at its contact; if the place is not exact, also at places a little aside."""
        for k, (patch, i) in enumerate(attempt.move.added):
            sampled = self.space.candidates[patch]
            exact = bool(sampled.goal[i])
            clearance = 0.0 if exact else self.postures.generator.settings.clearance
            hit = self.occupancy.overlap(attempt.added[k], clearance)
            if hit is not None and not exact:
                for other in sampled.beside(i, hit[1] + EXTRA_SIDESTEP_M):
                    if self.occupancy.overlap(other, clearance) is None:
                        attempt.added[k], hit = other, None
                        break
            if hit is not None:
                attempt.added = [attempt.added[k]]
                return Rejection("link", (Violation("collision", *hit),))
        return None

    # -- checks by postures and motions -----------------------------------------------------------------------------

    def _roll(self, attempt: MoveAttempt) -> Rejection | None:
        """Reject a roll if the load cannot shift between the two patches of the link, both in place."""
        if not attempt.move.rolling:
            return None
        parent, (removed,), (added,) = attempt.parent, attempt.move.removed, attempt.added
        both = _by_patch((*parent.contacts, added))
        for change, idle, after in (("add", added.patch, both), ("remove", removed, (*attempt.common, added))):
            result = self.postures.find(both, [idle], attempt.q, held=parent.contacts)
            if not result.found:
                return Rejection(f"roll, {result.stage}", result.violations)
            attempt.reach(result)
            loaded = tuple(contact.patch for contact in both if contact.patch != idle)
            attempt.steps.append(ContactStep(_by_patch(after), change, idle, both, loaded, attempt.q, both))
        return None

    def _lift(self, attempt: MoveAttempt) -> Rejection | None:
        """Reject a lift if the limb cannot be unloaded, or the body motion to that posture is blocked."""
        parent, removed = attempt.parent, attempt.move.removed
        if not removed or attempt.move.rolling:
            return None
        lifted = self.postures.find(parent.contacts, removed, attempt.q, held=parent.contacts)
        if not lifted.found and removed in parent.stuck:
            return Rejection("its limb could not be lifted", counted=True)
        if not lifted.found:
            parent.stuck.add(removed)
            return Rejection(f"lift, {lifted.stage}", lifted.violations)
        leaving = tuple(contact for contact in parent.contacts if contact.patch in removed)
        shifted = self.motions.shift(BodyShift(parent.contacts, leaving, attempt.q, lifted.q))
        if shifted:
            near = self.postures.find(parent.contacts, removed, attempt.q, held=parent.contacts, near=True)
            if near.found and not self.motions.shift(BodyShift(parent.contacts, leaving, attempt.q, near.q)):
                lifted, shifted = near, ()
        if shifted:
            return Rejection("shift", shifted)
        attempt.reach(lifted)
        left, touching = parent.contacts, parent.contacts
        for patch in removed:
            before = left
            if attempt.steps and (opened := self._opened(before, patch, removed, attempt.q)) is not None:
                attempt.q, touching = opened, before
            left = tuple(contact for contact in left if contact.patch != patch)
            attempt.steps.append(ContactStep(left, "remove", patch, before, attempt.carrying, attempt.q, touching))
        return None

    def _opened(
        self, contacts: tuple[Contact, ...], patch: str, unloaded: tuple[str, ...], q: np.ndarray
    ) -> np.ndarray | None:
        """Return a posture (nq,) with the opened contact clear of its support, while its limb still rests on ``patch``.

        Otherwise errors of a millimetre would close it again. None if a joint limit (ankle) prevents this.
        """
        opens = tuple(contact for contact in contacts if contact.patch == patch)
        for near in (True, False):
            result = self.postures.find(contacts, unloaded, q, held=contacts, near=near)
            if result.found and not self.motions.shift(BodyShift(contacts, opens, q, result.q)):
                return result.q
        return None

    def _place(self, attempt: MoveAttempt) -> Rejection | None:
        """Reject a placement if no posture has the new contacts in place, or the swing to it is blocked."""
        parent, move, common, added = attempt.parent, attempt.move, attempt.common, attempt.added
        if not added or move.rolling:
            return None
        contacts, unloaded = (*common, *added), [contact.patch for contact in added]
        placed = self.postures.find(contacts, unloaded, attempt.q, attempt.free, common)
        if not placed.found:
            if placed.stage in ("reach", "balance"):
                parent.failed.setdefault(move.limb, []).append(offset_from_nominal(self.space, parent, move))
            return Rejection(f"place, {placed.stage}", placed.violations)
        blocked = self._blocked_swing(attempt, placed)
        if blocked:
            near = self.postures.find(contacts, unloaded, attempt.q, attempt.free, common, near=True)
            if near.found and not self._blocked_swing(attempt, near):
                placed, blocked = near, ()
        swing = self._swing(attempt, placed)
        attempt.added = [placed.contact(patch) for patch in unloaded]
        if blocked:
            if blocked[0].kind == "passage" and np.isinf(swing.length):  # on one support there are many paths
                self.blocked_swings[swing.kind] += 1
            return Rejection("swing", blocked)
        attempt.reach(placed)
        touching, here = (*common, *attempt.added), common
        for contact in attempt.added:
            here = (*here, contact)
            now = _by_patch(here)
            attempt.steps.append(ContactStep(now, "add", contact.patch, now, attempt.carrying, attempt.q, touching))
        return None

    def _swing(self, attempt: MoveAttempt, placed: PostureResult) -> SwingMotion:
        there = tuple(placed.contact(contact.patch) for contact in attempt.added)
        return SwingMotion(attempt.common, attempt.parent.touching.get(there[0].patch), there, attempt.q, placed.q)

    def _blocked_swing(self, attempt: MoveAttempt, placed: PostureResult) -> tuple[Violation, ...]:
        """Return the violations of the swing to a posture; none for a short swing."""
        swing = self._swing(attempt, placed)
        return self.motions.swing(swing) if swing.length >= MIN_SWING_M * self.scale.leg else ()


class MoveCheck(NamedTuple):
    """A check of a move: its name, its cost, and the function that returns a reason to reject the move."""

    name: str
    cost: str
    find_rejection: Callable[[MoveChecker, MoveAttempt], Rejection | None]


CHECKS = (
    MoveCheck("fit", "numbers", MoveChecker._fit),
    MoveCheck("footprint", "numbers", MoveChecker._footprint),
    MoveCheck("link", "one query of distances, cached", MoveChecker._link),
    MoveCheck("roll", "two postures", MoveChecker._roll),
    MoveCheck("lift", "one posture, or two and a motion of a doubted kind", MoveChecker._lift),
    MoveCheck("place", "one posture and some of a swing", MoveChecker._place),
)
"""Checks in order."""


def satisfied_requirements(
    require: Sequence[frozenset[str]], wrenches: Mapping[str, np.ndarray], least: float
) -> frozenset[int]:
    """Return the indices of the requirements of which a patch carries more than ``least`` (N)."""
    carrying = {patch for patch, wrench in wrenches.items() if np.linalg.norm(wrench[:3]) > least}
    return frozenset(i for i, patches in enumerate(require) if patches & carrying)


def footprint_overlap(one: Contact, other: Contact, scale: RobotScale = HRP2_SCALE) -> bool:
    """Whether two flat patches on one level are closer than the gap (separating axes of both patches)."""
    if one.kind != "surface" or other.kind != "surface":
        return False
    if abs(one.normal @ (one.p - other.p)) > scale.leg * SAME_LEVEL_M or one.normal @ other.normal < MIN_NORMAL_COSINE:
        return False
    a, b, gap = one.world_points, other.world_points, scale.sole * FOOTPRINT_GAP_M
    for axis in (one.R[:, 0], one.R[:, 1], other.R[:, 0], other.R[:, 1]):
        u, v = a @ axis, b @ axis
        if u.min() - v.max() > gap or v.min() - u.max() > gap:
            return False
    return True


def _by_patch(contacts: Iterable[Contact]) -> tuple[Contact, ...]:
    return tuple(sorted(contacts, key=lambda contact: contact.patch))
