"""Goal stances: contacts and posture that meet a goal item, found before the search.

A reference posture (the named one of the item, else that of the current stance or of the start) is placed near the goal
(`posture_hints`). Its patches close to supports become contacts. The posture generator then finds the goal posture; it
may move the contacts within `CONTACT_FREEDOM`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mcplan.planning.feasibility import base_moved_to_contact
from mcplan.planning.goal.ending import GoalPosture, GoalPostureSolver, posture_hints
from mcplan.planning.goal.item import Goal, implied_contacts
from mcplan.planning.posture.freedom import Freedom
from mcplan.planning.posture.reference import ground_patches, guide_posture, perturbed_starts
from mcplan.planning.posture.result import STAGES
from mcplan.scenario.schema import GoalItem
from mcplan.scene.contact import Contact
from mcplan.scene.posture_contacts import PoseTolerance, resting_contacts
from mcplan.scene.spec import ContactSpec

NAMED_POSTURE_REACH = PoseTolerance(0.03, 0.25)
"""Largest distance and angle between the patches of a named posture and their supports."""

STANCE_REACH = PoseTolerance(0.35, 0.6)
"""Largest distance and angle between the patches of a stance that is moved to the goal, and their supports."""

CONTACT_FREEDOM = Freedom(x=0.03, y=0.03, yaw=0.15, along=0.05, offset=0.03, angle=np.inf)
"""Range of the contact coordinates that the item does not specify, in the search for the goal posture."""

MAX_BAR_OFFSET_M = 0.06
"""Largest distance of a bar from the middle of the patch that stands on it."""

MAX_COM_OUTSIDE_M = 0.08
"""Largest horizontal distance of the centre of mass of a placed posture outside its contacts."""

MAX_ATTEMPTS = 150
"""Maximum number of placed postures for which a goal posture is searched."""

MAX_TARGETS = 3
"""Maximum number of goal stances for the stance search."""

MIN_REACH_ERROR = 0.01
"""Contacts with a larger error than this (m, rad) are out of reach."""


class ReferenceStance(NamedTuple):
    """A posture to place near the goal.

    Attributes
    ----------
    q : (nq,) posture.
    ground : patches that it stands on.
    patches : patches that may be in contact.
    reach : largest distance and angle between a patch and its support.
    """

    q: np.ndarray
    ground: tuple[str, ...]
    patches: tuple[str, ...]
    reach: PoseTolerance


@dataclass(frozen=True)
class GoalTarget:
    """A stance that meets a goal item: its contacts as a goal of the search, and its posture."""

    goal: Goal
    end: GoalPosture


class GoalTargets:
    """Finds goal stances in one scene.

    Parameters
    ----------
    solver : solver of goal postures.
    patches : patches that may be in contact.
    contacts : contacts of the start.

    Attributes
    ----------
    nearest : deficit of the best infeasible goal posture of the last call, as text.
    """

    def __init__(self, solver: GoalPostureSolver, patches: Sequence[str], contacts: Sequence[Contact]):
        self.solver, self.feasibility = solver, solver.feasibility
        self.robot, self.environment = self.feasibility.robot, self.feasibility.environment
        self.patches, self.start_contacts = tuple(patches), tuple(contacts)
        self.size = self.robot.scale.leg
        self._freedom = CONTACT_FREEDOM.times(self.size)
        self._named_reach, self._stance_reach = NAMED_POSTURE_REACH.times(self.size), STANCE_REACH.times(self.size)
        self.nearest = ""
        self._rank: tuple[int, float] = (-1, 0.0)

    def find(self, item: GoalItem, contacts: Sequence[Contact], q: np.ndarray) -> list[GoalTarget]:
        """Return stances that meet an item, the nearest first. Without one, ``nearest`` describes the deficit.

        Parameters
        ----------
        contacts, q : the current stance and its posture (nq,).
        """
        self.nearest, self._rank = "", (-1, 0.0)
        found: list[GoalTarget] = []
        tried_keys = set[tuple]()
        if not item.contacts and self._rests_on(item, q) <= {contact.patch for contact in contacts}:
            end = self.solver.find(item, contacts, q)
            self._keep_nearest(end)
            if end.found:
                return [GoalTarget(Goal.with_contacts(item, contacts), end)]
        attempts = 0
        max_outside = self.size * MAX_COM_OUTSIDE_M
        for reference in self._references(item, contacts, q):
            for hint in posture_hints(item, self.robot, self.environment, reference.q, reference.ground, q):
                placed = resting_contacts(
                    self.robot, self.environment, hint, reference.patches, reference.reach, item.contacts,
                    reference.ground,
                )  # fmt: skip
                if not placed:
                    continue
                if item.posture is not None and not _com_near_contacts(placed, self.robot.com(hint), max_outside):
                    continue
                key = tuple((c.patch, c.support, *np.round(c.p, 3)) for c in placed)
                if key in tried_keys or any(self.feasibility.occupancy.overlap(contact) for contact in placed):
                    continue
                tried_keys.add(key)
                attempts += 1
                free = _free_coordinates(item, placed, self._freedom)
                end = self.solver.find(item, placed, q, hint, free, held=False)
                self._keep_nearest(end)
                if end.found:
                    found.append(GoalTarget(Goal.with_contacts(item, end.result.contacts), end))
                if len(found) == MAX_TARGETS or attempts == MAX_ATTEMPTS:
                    return found
        if not tried_keys and not self.nearest:
            self.nearest = "none of the patches that may touch finds a support there"
        return found

    def find_near(
        self, item: GoalItem, supports: Goal, contacts: Sequence[Contact], q: np.ndarray
    ) -> Iterator[GoalTarget]:
        """Yield stances on the supports of the current one, and near it, in which the posture of an item is feasible.

        Parameters
        ----------
        supports : goal that the current stance meets; its patches and supports are kept.
        contacts, q : the current stance and its posture (nq,).
        """
        self.nearest, self._rank = "", (-1, 0.0)
        reference = (
            self.robot.neutral() if item.posture is None else item.posture.apply(self.robot, self.solver.reference)
        )
        reference = self._with_base_orientation(item, reference)
        present = [contact for contact in contacts if contact.patch in supports.specs]
        limbs = list(dict.fromkeys(self.robot.patches[contact.patch].limb for contact in present))
        for fixed_limbs in [[limb] for limb in limbs] + [limbs]:
            remaining = [contact for contact in present if self.robot.patches[contact.patch].limb in fixed_limbs]
            hint = guide_posture(self.robot, reference, [contact.patch for contact in remaining], remaining)
            hint = base_moved_to_contact(self.robot, reference, remaining[0]) if hint is None else hint
            fixed = {contact.patch: contact for contact in remaining} if len(fixed_limbs) < len(limbs) else {}
            listed = [
                ContactSpec.model_validate(fixed[patch].to_data()) if patch in fixed else spec
                for patch, spec in supports.specs.items()
            ]
            placed = resting_contacts(self.robot, self.environment, hint, (), self._named_reach, listed)
            if not placed or any(self.feasibility.occupancy.overlap(contact) for contact in placed):
                continue
            free = {p: f for p, f in _free_coordinates(item, placed, self._freedom).items() if p not in fixed}
            end = self.solver.find(item, placed, q, hint, free, held=False)
            self._keep_nearest(end)
            if end.found:
                yield GoalTarget(Goal.with_contacts(item, end.result.contacts), end)

    def check_contacts(self, item: GoalItem, q: np.ndarray) -> str:
        """Return why the contacts with specified coordinates are infeasible for an item; empty if they are feasible.

        They must be reachable together and allow a posture that meets the item. If no other contact is allowed, they
        must also balance the robot.
        """
        fixed = [spec for spec in item.contacts if {"x", "y"} <= set(spec.given) or "along" in spec.given]
        contacts = resting_contacts(self.robot, self.environment, q, (), self._named_reach, fixed) if fixed else None
        if not contacts:
            return ""
        free = _free_coordinates(item, contacts, Freedom(yaw=np.inf, angle=np.inf, offset=self.size * MAX_BAR_OFFSET_M))
        guide = self.solver.guide(item, contacts, q)
        starts = [guide, q, *perturbed_starts(self.robot, guide)]
        all_fixed = len(fixed) == len(item.contacts)
        self.feasibility.budget.calls += 1
        result = self.feasibility.postures.generator.generate(contacts, None, guide, starts, free)
        worst = result.violations[0] if result.violations else None
        if worst is not None:
            if result.stage == "reach" and worst.amount > self.size * MIN_REACH_ERROR:
                return f"no posture has all its contacts in place: {result.reason}; bring them closer together"
            if result.stage == "region" and all_fixed and item.only:
                return f"its contacts cannot hold the robot, whatever its posture: {result.reason}"
            return ""
        if not all_fixed or not self.solver.constrains(item):
            return ""
        for start in starts:
            end = self.solver.find(item, contacts, start, None, free, held=False)
            # if only balance is missing, further contacts may help
            if end.found or (end.result.stage in ("region", "balance", "forces") and not item.only):
                return ""
        return f"on its contacts, {end.missing}"

    def _rests_on(self, item: GoalItem, q: np.ndarray) -> set[str]:
        """Return the patches in contact in an item's posture: those that it stands on, and others near a support."""
        found = set(implied_contacts(item, self.robot))
        if item.posture is not None and item.base is not None:
            reference = next(self._references(item, (), q))
            for hint in posture_hints(item, self.robot, self.environment, reference.q, reference.ground, q):
                contacts = resting_contacts(
                    self.robot, self.environment, hint, self.patches, self._named_reach, ground=reference.ground
                )
                return found | {contact.patch for contact in contacts or ()}
        return found

    def _references(self, item: GoalItem, contacts: Sequence[Contact], q: np.ndarray) -> Iterator[ReferenceStance]:
        listed = {spec.patch for spec in item.contacts}
        if item.posture is not None:
            reference = self._with_base_orientation(item, item.posture.apply(self.robot, self.solver.reference))
            ground = tuple(sorted(ground_patches(self.robot, reference)))
            allowed = () if item.only else self.patches
            yield ReferenceStance(reference, ground, allowed, self._named_reach)
            if item.base is not None:  # the patches may be off by the tolerance of the base
                distance = self._named_reach.distance + min(item.base.tolerance, self._named_reach.distance)
                yield ReferenceStance(reference, ground, allowed, PoseTolerance(distance, NAMED_POSTURE_REACH.angle))
            return
        limbs = {self.robot.patches[patch].limb for patch in listed}
        if listed:  # a reference posture that stands on the listed patches
            guide = self.solver.feasibility.references.guide([c for c in contacts if c.patch in listed] or contacts, q)
            yield ReferenceStance(
                guide, (), () if item.only else self._other_patches(contacts, limbs), self._stance_reach
            )
        for stance, posture in ((contacts, q), (self.start_contacts, self.solver.reference)):
            allowed = () if item.only else self._other_patches(stance, limbs)
            yield ReferenceStance(posture, tuple(c.patch for c in stance), allowed, self._stance_reach)

    def _other_patches(self, contacts: Sequence[Contact], limbs: set[str]) -> tuple[str, ...]:
        """Return the patches of a stance that belong to none of these limbs."""
        return tuple(c.patch for c in contacts if self.robot.patches[c.patch].limb not in limbs)

    def _with_base_orientation(self, item: GoalItem, q: np.ndarray) -> np.ndarray:
        """Return the posture with the base pose of the item's named posture, if there is one."""
        if item.posture is not None and item.posture.name is not None:
            q = q.copy()
            q[:7] = self.robot.posture(item.posture.name)[:7]
        return q

    def _keep_nearest(self, end: GoalPosture) -> None:
        """Update ``nearest`` if this goal posture reached a later stage, or the same stage with a smaller violation."""
        amount = end.result.violations[0].amount if end.result.violations else 0.0
        rank = (STAGES.index(end.result.stage) if end.result.stage in STAGES else 0, -amount)
        if rank > self._rank:
            self._rank, self.nearest = rank, end.missing


def _com_near_contacts(contacts: Sequence[Contact], com: np.ndarray, max_outside: float) -> bool:
    """Whether the centre of mass is at most ``max_outside`` (m) off the contacts, or a grasp or steep surface helps."""
    if any(contact.kind == "grasp" or contact.normal[2] < 0.5 for contact in contacts):
        return True
    points = np.vstack([contact.world_points for contact in contacts])[:, :2]
    angle = np.linspace(0.0, 2 * np.pi, 16, endpoint=False)
    directions = np.column_stack([np.cos(angle), np.sin(angle)])
    return bool(np.all((points @ directions.T).max(axis=0) >= directions @ com[:2] - max_outside))


def _free_coordinates(item: GoalItem, contacts: Sequence[Contact], widths: Freedom) -> dict[str, Freedom]:
    """Return the contact coordinates that the posture generator may choose: those that the item does not specify."""
    given = {spec.patch: spec.given for spec in item.contacts}
    free = {}
    for contact in contacts:
        unspecified = [n for n in widths.names if n in contact.coordinates and n not in given.get(contact.patch, {})]
        if unspecified:
            free[contact.patch] = Freedom(**{name: getattr(widths, name) for name in unspecified})
    return free
