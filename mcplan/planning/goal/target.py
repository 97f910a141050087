"""Goal stances: contacts and posture by which a goal item can be met, found before the search.

A reference posture (the one that the item names, else that of the stance now or at the start) is set down near where
the item could be met (`posture_hints`); the patches that rest on something there become contacts, which may still move
a little while the posture generator finds the goal posture.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mcplan.planning.feasibility import moved_onto
from mcplan.planning.goal.ending import GoalPosture, GoalPostureSolver, posture_hints
from mcplan.planning.goal.item import Goal, implied_contacts
from mcplan.planning.posture.freedom import Freedom
from mcplan.planning.posture.reference import ground_patches, guide_posture, perturbed_starts
from mcplan.planning.posture.result import STAGES
from mcplan.scenario.schema import GoalItem
from mcplan.scene.contact import Contact
from mcplan.scene.posture_contacts import Reach, resting_contacts
from mcplan.scene.spec import ContactSpec

NAMED_REACH = Reach(0.03, 0.25)
"""Tolerated distance between the patches of a named posture and their supports."""

STANCE_REACH = Reach(0.35, 0.6)
"""How far those of a stance that is moved elsewhere may be."""

CONTACT_FREEDOM = Freedom(x=0.03, y=0.03, yaw=0.15, along=0.05, offset=0.03, angle=np.inf)
"""How far a contact that the item leaves open may move while its posture is found."""

MAX_BAR_OFFSET_M = 0.06
"""How far from the middle of a patch the bar may be that it stands on."""

MAX_COM_OUTSIDE_M = 0.08
"""How far outside the contacts the centre of mass of a posture may be that is set down on them."""

MAX_TRIED = 150
"""Postures that are tried before no contacts count as found."""

MAX_TARGETS = 3
"""Goal stances that are offered to the search."""

MIN_MISS = 0.01
"""m, rad: contacts that no start brings nearer than this are out of reach."""


class ReferenceStance(NamedTuple):
    """A posture (nq,) to set down, the patches that it stands on, those that may rest, and how near."""

    q: np.ndarray
    ground: tuple[str, ...]
    patches: tuple[str, ...]
    reach: Reach


@dataclass(frozen=True)
class GoalTarget:
    """A stance that meets a goal item."""

    goal: Goal
    end: GoalPosture


class GoalTargets:
    """Finds the contacts of items in one scene.

    Parameters
    ----------
    solver : of goal postures.
    patches : those that may touch.
    contacts : of the start.
    """

    def __init__(self, solver: GoalPostureSolver, patches: Sequence[str], contacts: Sequence[Contact]):
        self.solver, self.feasibility = solver, solver.feasibility
        self.robot, self.environment = self.feasibility.robot, self.feasibility.environment
        self.patches, self.first = tuple(patches), tuple(contacts)
        self.size = self.robot.scale.leg
        self._freedom = CONTACT_FREEDOM.times(self.size)
        self._posed, self._standing = NAMED_REACH.times(self.size), STANCE_REACH.times(self.size)
        self.nearest = ""
        self._rank: tuple[int, float] = (-1, 0.0)

    def find(self, item: GoalItem, contacts: Sequence[Contact], q: np.ndarray) -> list[GoalTarget]:
        """Return stances that meet an item, the nearest first; when there is none ``nearest`` describes the deficit.

        Parameters
        ----------
        contacts, q : the stance now and its posture (nq,).
        """
        self.nearest, self._rank = "", (-1, 0.0)
        found: list[GoalTarget] = []
        tried = set[tuple]()
        if not item.contacts and self._rests_on(item, q) <= {contact.patch for contact in contacts}:
            end = self.solver.find(item, contacts, q)
            self._note(end)
            if end.found:
                return [GoalTarget(Goal.by(item, contacts), end)]
        tried_count = 0
        max_lean = self.size * MAX_COM_OUTSIDE_M
        for reference in self._references(item, contacts, q):
            for hint in posture_hints(item, self.robot, self.environment, reference.q, reference.ground, q):
                placed = resting_contacts(
                    self.robot, self.environment, hint, reference.patches, reference.reach, item.contacts,
                    reference.ground,
                )  # fmt: skip
                if not placed:
                    continue
                if item.posture is not None and not _com_near_contacts(placed, self.robot.com(hint), max_lean):
                    continue
                key = tuple((c.patch, c.support, *np.round(c.p, 3)) for c in placed)
                if key in tried or any(self.feasibility.occupancy.overlap(contact) for contact in placed):
                    continue
                tried.add(key)
                tried_count += 1
                free = _free_coordinates(item, placed, self._freedom)
                end = self.solver.find(item, placed, q, hint, free, held=False)
                self._note(end)
                if end.found:
                    found.append(GoalTarget(Goal.by(item, end.result.contacts), end))
                if len(found) == MAX_TARGETS or tried_count == MAX_TRIED:
                    return found
        if not tried and not self.nearest:
            self.nearest = "none of the patches that may touch finds a support there"
        return found

    def find_near(
        self, item: GoalItem, supports: Goal, contacts: Sequence[Contact], q: np.ndarray
    ) -> Iterator[GoalTarget]:
        """Yield stances near one that has the right supports, in which the robot can take up the posture of an item.

        Parameters
        ----------
        supports : goal that the stance ``contacts`` has reached: patches and their supports.
        """
        self.nearest, self._rank = "", (-1, 0.0)
        asked = self.robot.neutral() if item.posture is None else item.posture.apply(self.robot, self.solver.reference)
        asked = self._upright(item, asked)
        present = [contact for contact in contacts if contact.patch in supports.specs]
        limbs = list(dict.fromkeys(self.robot.patches[contact.patch].limb for contact in present))
        for keep in [[limb] for limb in limbs] + [limbs]:
            remaining = [contact for contact in present if self.robot.patches[contact.patch].limb in keep]
            hint = guide_posture(self.robot, asked, [contact.patch for contact in remaining], remaining)
            hint = moved_onto(self.robot, asked, remaining[0]) if hint is None else hint
            fixed = {contact.patch: contact for contact in remaining} if len(keep) < len(limbs) else {}
            listed = [
                ContactSpec.model_validate(fixed[patch].to_data()) if patch in fixed else spec
                for patch, spec in supports.specs.items()
            ]
            placed = resting_contacts(self.robot, self.environment, hint, (), self._posed, listed)
            if not placed or any(self.feasibility.occupancy.overlap(contact) for contact in placed):
                continue
            free = {p: f for p, f in _free_coordinates(item, placed, self._freedom).items() if p not in fixed}
            end = self.solver.find(item, placed, q, hint, free, held=False)
            self._note(end)
            if end.found:
                yield GoalTarget(Goal.by(item, end.result.contacts), end)

    def check_contacts(self, item: GoalItem, q: np.ndarray) -> str:
        """Return why the contacts whose places an item gives are infeasible; empty if they are not.

        They can be in place; where nothing else may touch, they bear the robot; and the posture on them meets the item.
        """
        fixed = [spec for spec in item.contacts if {"x", "y"} <= set(spec.given) or "along" in spec.given]
        contacts = resting_contacts(self.robot, self.environment, q, (), self._posed, fixed) if fixed else None
        if not contacts:
            return ""
        free = _free_coordinates(item, contacts, Freedom(yaw=np.inf, angle=np.inf, offset=self.size * MAX_BAR_OFFSET_M))
        guide = self.solver.guide(item, contacts, q)
        starts = [guide, q, *perturbed_starts(self.robot, guide)]
        everything = len(fixed) == len(item.contacts)
        self.feasibility.budget.calls += 1
        result = self.feasibility.postures.generator.generate(contacts, None, guide, starts, free)
        first = result.violations[0] if result.violations else None
        if first is not None:
            if result.stage == "reach" and first.amount > self.size * MIN_MISS:
                return f"no posture has all its contacts in place: {result.reason}; bring them closer together"
            if result.stage == "region" and everything and item.only:
                return f"its contacts cannot hold the robot, whatever its posture: {result.reason}"
            return ""
        if not everything or not self.solver.constrains(item):
            return ""
        for start in starts:
            end = self.solver.find(item, contacts, start, None, free, held=False)
            # where it is balance that is missing, further contacts may help
            if end.found or (end.result.stage in ("region", "balance", "forces") and not item.only):
                return ""
        return f"on its contacts, {end.missing}"

    def _rests_on(self, item: GoalItem, q: np.ndarray) -> set[str]:
        """Return the patches that an item's posture rests on: those it stands on, and what rests where it is put."""
        found = set(implied_contacts(item, self.robot))
        if item.posture is not None and item.base is not None:
            reference = next(self._references(item, (), q))
            for hint in posture_hints(item, self.robot, self.environment, reference.q, reference.ground, q):
                there = resting_contacts(
                    self.robot, self.environment, hint, self.patches, self._posed, ground=reference.ground
                )
                return found | {contact.patch for contact in there or ()}
        return found

    def _references(self, item: GoalItem, contacts: Sequence[Contact], q: np.ndarray) -> Iterator[ReferenceStance]:
        listed = {spec.patch for spec in item.contacts}
        if item.posture is not None:
            asked = self._upright(item, item.posture.apply(self.robot, self.solver.reference))
            ground = tuple(sorted(ground_patches(self.robot, asked)))
            may = () if item.only else self.patches
            yield ReferenceStance(asked, ground, may, self._posed)
            if item.base is not None:  # which may be off by its tolerance, and the patches with it
                near = self._posed.distance + min(item.base.tolerance, self._posed.distance)
                yield ReferenceStance(asked, ground, may, Reach(near, NAMED_REACH.angle))
            return
        limbs = {self.robot.patches[patch].limb for patch in listed}
        if listed:  # the named posture that stands on such patches
            guide = self.solver.feasibility.references.guide([c for c in contacts if c.patch in listed] or contacts, q)
            yield ReferenceStance(guide, (), () if item.only else self._others(contacts, limbs), self._standing)
        for stance, posture in ((contacts, q), (self.first, self.solver.reference)):
            may = () if item.only else self._others(stance, limbs)
            yield ReferenceStance(posture, tuple(c.patch for c in stance), may, self._standing)

    def _others(self, contacts: Sequence[Contact], limbs: set[str]) -> tuple[str, ...]:
        """Return the patches of a stance whose limbs are not in the goal."""
        return tuple(c.patch for c in contacts if self.robot.patches[c.patch].limb not in limbs)

    def _upright(self, item: GoalItem, q: np.ndarray) -> np.ndarray:
        """Return a posture with the height and tilt of the base that its name stands for."""
        if item.posture is not None and item.posture.name is not None:
            q = q.copy()
            q[:7] = self.robot.posture(item.posture.name)[:7]
        return q

    def _note(self, end: GoalPosture) -> None:
        """Keep the deficit of the goal posture that came closest."""
        amount = end.result.violations[0].amount if end.result.violations else 0.0
        rank = (STAGES.index(end.result.stage) if end.result.stage in STAGES else 0, -amount)
        if rank > self._rank:
            self._rank, self.nearest = rank, end.missing


def _com_near_contacts(contacts: Sequence[Contact], com: np.ndarray, lean: float) -> bool:
    """Whether the centre of mass of a posture is about over its contacts, or something is held that may carry it."""
    if any(contact.kind == "grasp" or contact.normal[2] < 0.5 for contact in contacts):
        return True
    points = np.vstack([contact.world_points for contact in contacts])[:, :2]
    angle = np.linspace(0.0, 2 * np.pi, 16, endpoint=False)
    directions = np.column_stack([np.cos(angle), np.sin(angle)])
    return bool(np.all((points @ directions.T).max(axis=0) >= directions @ com[:2] - lean))


def _free_coordinates(item: GoalItem, contacts: Sequence[Contact], widths: Freedom) -> dict[str, Freedom]:
    """Return what the posture generator may choose of contacts: the coordinates that the item leaves open."""
    given = {spec.patch: spec.given for spec in item.contacts}
    cells = {}
    for contact in contacts:
        open_ = [n for n in widths.names if n in contact.coordinates and n not in given.get(contact.patch, {})]
        if open_:
            cells[contact.patch] = Freedom(**{name: getattr(widths, name) for name in open_})
    return cells
