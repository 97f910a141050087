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
"""Shorter displacements of a patch on its support: the swing is checked only with the whole path."""

EXTRA_SIDESTEP_M = 1e-3
"""A patch whose link is in collision is displaced by the depth of the overlap plus this."""

FOOTPRINT_GAP_M, SAME_LEVEL_M = 0.012, 0.08
"""Smallest gap between two footprints, and the height difference up to which footprints are on one level."""

MIN_NORMAL_COSINE = 0.7
"""Patches whose normals have a smaller cosine are not checked for overlap."""


class Rejection(NamedTuple):
    """Reason why a move is infeasible.

    Attributes
    ----------
    stage : name of the check that failed, or a message.
    violations : of that check, the worst first.
    count_only : whether the record only counts the rejection, by its stage.
    """

    stage: str
    violations: tuple[Violation, ...] = ()
    count_only: bool = False


@dataclass(eq=False)
class MoveAttempt:
    """A move that is being checked.

    Attributes
    ----------
    common : contacts that stay closed.
    q : (nq,) posture reached so far.
    added : new contacts.
    free : free coordinates of the new contacts, by patch.
    wrenches : wrench (6,) with the largest force of each patch so far.
    steps : steps so far.
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

    def advance_to(self, result: PostureResult) -> None:
        """Continue from a feasible posture, and keep, per patch, the larger of the old and new wrench."""
        self.q = result.q
        wrenches = [*self.wrenches.items(), *result.wrenches.items()]
        # of equal keys the last one counts: the one with the larger force
        self.wrenches = dict(sorted(wrenches, key=lambda item: float(np.linalg.norm(item[1][:3]))))


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
            if rejection.count_only:
                self.tree.skipped[rejection.stage] += 1
            else:
                self.tree.reject(parent.index, str(move), rejection.stage, rejection.violations, attempt.added)
            return None
        requirements_met = parent.requirements_met | satisfied_requirements(
            self.space.require, attempt.wrenches, self.space.feasibility.min_load
        )
        contacts = (*common, *attempt.added)
        return self.node(
            parent, move, contacts, attempt.q, tuple(attempt.steps), requirements_met, str(move), parent.index
        )

    def node(
        self,
        parent: StanceNode | None,
        move: Move | None,
        contacts: Iterable[Contact],
        q: np.ndarray,
        steps: tuple[ContactStep, ...],
        requirements_met: frozenset[int],
        title: str,
        parent_record: int | None,
    ) -> StanceNode:
        """Return a node, and add it to the record with a ``title`` and the index ``parent_record`` of its parent."""
        contacts = tuple(sorted(contacts, key=lambda contact: contact.patch))
        progress_by_patch = {contact.patch: self.space.progress(contact) for contact in contacts}
        g, h = 0.0 if parent is None else parent.g + 1.0, self.space.h(progress_by_patch, requirements_met)
        index = self.tree.add_node(parent_record, title, contacts, q, g, h)
        limb = None if move is None else move.limb
        return StanceNode(contacts, progress_by_patch, q, parent, move, steps, g, h, limb, requirements_met, index)

    # -- checks by numbers and distances ----------------------------------------------------------------------------

    def _check_fit(self, attempt: MoveAttempt) -> Rejection | None:
        for patch, i in attempt.move.added:
            contact = self.space.candidates[patch].contact(i)
            if contact is None:
                return Rejection("the patch does not fit on its support", count_only=True)
            attempt.added.append(contact)
            if (freedom := self.space.candidates[patch].freedom[i]) is not None:
                attempt.free[patch] = freedom
        return None

    def _check_footprint(self, attempt: MoveAttempt) -> Rejection | None:
        if any(footprint_overlap(one, other, self.scale) for one in attempt.added for other in attempt.common):
            return Rejection("too close to another contact", count_only=True)
        return None

    def _check_link(self, attempt: MoveAttempt) -> Rejection | None:
        """Reject a contact whose link is in collision, unless a contact close to it is free.

        A contact of the goal is exact: it is not displaced.
        """
        for k, (patch, i) in enumerate(attempt.move.added):
            sampled = self.space.candidates[patch]
            exact = bool(sampled.goal[i])
            clearance = 0.0 if exact else self.postures.generator.settings.clearance
            overlap = self.occupancy.overlap(attempt.added[k], clearance)
            if overlap is not None and not exact:
                for other in sampled.nearby_contacts(i, overlap[1] + EXTRA_SIDESTEP_M):
                    if self.occupancy.overlap(other, clearance) is None:
                        attempt.added[k], overlap = other, None
                        break
            if overlap is not None:
                attempt.added = [attempt.added[k]]
                return Rejection("link", (Violation("collision", *overlap),))
        return None

    # -- checks by postures and motions -----------------------------------------------------------------------------

    def _check_roll(self, attempt: MoveAttempt) -> Rejection | None:
        """Reject a roll if the load cannot shift between the two patches of the link, both in place."""
        if not attempt.move.rolling:
            return None
        parent, (removed,), (added,) = attempt.parent, attempt.move.removed, attempt.added
        both = _by_patch((*parent.contacts, added))
        for change, idle, after in (("add", added.patch, both), ("remove", removed, (*attempt.common, added))):
            result = self.postures.find(both, [idle], attempt.q, held_contacts=parent.contacts)
            if not result.found:
                return Rejection(f"roll, {result.stage}", result.violations)
            attempt.advance_to(result)
            loaded = tuple(contact.patch for contact in both if contact.patch != idle)
            attempt.steps.append(ContactStep(_by_patch(after), change, idle, both, loaded, attempt.q, both))
        return None

    def _check_lift(self, attempt: MoveAttempt) -> Rejection | None:
        """Reject a lift if the limb cannot be unloaded, or the body motion to that posture is blocked."""
        parent, removed = attempt.parent, attempt.move.removed
        if not removed or attempt.move.rolling:
            return None
        unloaded_posture = self.postures.find(parent.contacts, removed, attempt.q, held_contacts=parent.contacts)
        if not unloaded_posture.found and removed in parent.unliftable:
            return Rejection("its limb could not be lifted", count_only=True)
        if not unloaded_posture.found:
            parent.unliftable.add(removed)
            return Rejection(f"lift, {unloaded_posture.stage}", unloaded_posture.violations)
        leaving = tuple(contact for contact in parent.contacts if contact.patch in removed)
        shift_violations = self.motions.shift(BodyShift(parent.contacts, leaving, attempt.q, unloaded_posture.q))
        if shift_violations:
            alternative = self.postures.find(
                parent.contacts, removed, attempt.q, held_contacts=parent.contacts, near_previous=True
            )
            if alternative.found and not self.motions.shift(
                BodyShift(parent.contacts, leaving, attempt.q, alternative.q)
            ):
                unloaded_posture, shift_violations = alternative, ()
        if shift_violations:
            return Rejection("shift", shift_violations)
        attempt.advance_to(unloaded_posture)
        remaining, touching = parent.contacts, parent.contacts
        for patch in removed:
            before = remaining
            if attempt.steps and (clear_q := self._posture_clear_of(before, patch, removed, attempt.q)) is not None:
                attempt.q, touching = clear_q, before
            remaining = tuple(contact for contact in remaining if contact.patch != patch)
            attempt.steps.append(ContactStep(remaining, "remove", patch, before, attempt.carrying, attempt.q, touching))
        return None

    def _posture_clear_of(
        self, contacts: tuple[Contact, ...], patch: str, unloaded: tuple[str, ...], q: np.ndarray
    ) -> np.ndarray | None:
        """Return a posture (nq,) in which the contact opened before is clear of its support, or None.

        Otherwise errors of a millimetre would close it again. The limb still rests on ``patch``. There is no such
        posture if a joint limit (ankle) prevents it.
        """
        opens = tuple(contact for contact in contacts if contact.patch == patch)
        for near in (True, False):
            result = self.postures.find(contacts, unloaded, q, held_contacts=contacts, near_previous=near)
            if result.found and not self.motions.shift(BodyShift(contacts, opens, q, result.q)):
                return result.q
        return None

    def _check_place(self, attempt: MoveAttempt) -> Rejection | None:
        """Reject a placement if no posture has the new contacts in place, or the swing to that posture is blocked."""
        parent, move, common, added = attempt.parent, attempt.move, attempt.common, attempt.added
        if not added or move.rolling:
            return None
        contacts, unloaded = (*common, *added), [contact.patch for contact in added]
        placed = self.postures.find(contacts, unloaded, attempt.q, attempt.free, common)
        if not placed.found:
            if placed.stage in ("reach", "balance"):
                parent.unreachable.setdefault(move.limb, []).append(offset_from_nominal(self.space, parent, move))
            return Rejection(f"place, {placed.stage}", placed.violations)
        blocked = self._blocked_swing(attempt, placed)
        if blocked:
            alternative = self.postures.find(contacts, unloaded, attempt.q, attempt.free, common, near_previous=True)
            if alternative.found and not self._blocked_swing(attempt, alternative):
                placed, blocked = alternative, ()
        swing = self._swing(attempt, placed)
        attempt.added = [placed.contact(patch) for patch in unloaded]
        if blocked:
            if blocked[0].kind == "passage" and np.isinf(swing.length):  # on one support there are many paths
                self.blocked_swings[swing.kind] += 1
            return Rejection("swing", blocked)
        attempt.advance_to(placed)
        touching, closed = (*common, *attempt.added), common
        for contact in attempt.added:
            closed = (*closed, contact)
            sorted_contacts = _by_patch(closed)
            attempt.steps.append(
                ContactStep(
                    sorted_contacts, "add", contact.patch, sorted_contacts, attempt.carrying, attempt.q, touching
                )
            )
        return None

    def _swing(self, attempt: MoveAttempt, placed: PostureResult) -> SwingMotion:
        new_contacts = tuple(placed.contact(contact.patch) for contact in attempt.added)
        return SwingMotion(
            attempt.common, attempt.parent.touching.get(new_contacts[0].patch), new_contacts, attempt.q, placed.q
        )

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
    MoveCheck("fit", "numbers", MoveChecker._check_fit),
    MoveCheck("footprint", "numbers", MoveChecker._check_footprint),
    MoveCheck("link", "one distance query, cached", MoveChecker._check_link),
    MoveCheck("roll", "two postures", MoveChecker._check_roll),
    MoveCheck(
        "lift", "one posture; a second one and a body motion if the first shift is blocked", MoveChecker._check_lift
    ),
    MoveCheck("place", "one posture and a few points of a swing", MoveChecker._check_place),
)
"""Checks of a move, in order."""


def satisfied_requirements(
    require: Sequence[frozenset[str]], wrenches: Mapping[str, np.ndarray], least: float
) -> frozenset[int]:
    """Return the indices of the requirements that have a patch with a force of more than ``least`` (N)."""
    carrying = {patch for patch, wrench in wrenches.items() if np.linalg.norm(wrench[:3]) > least}
    return frozenset(i for i, patches in enumerate(require) if patches & carrying)


def footprint_overlap(one: Contact, other: Contact, scale: RobotScale = HRP2_SCALE) -> bool:
    """Whether two flat patches on one level are closer than `FOOTPRINT_GAP_M`, by the separating axes of both."""
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
