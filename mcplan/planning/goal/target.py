"""Contacts by which an item can be met, found before the search: the stance and posture at its end.

A reference posture (the one that the item names, else that of the stance now or at the start) is set down near where
the item could be met (`hints`); the patches that rest on something there become contacts, which may still move a little
while the posture generator looks for the end.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mcplan.planning.feasibility import moved_onto
from mcplan.planning.goal.ending import End, Ending, hints
from mcplan.planning.goal.item import Goal, stands_on
from mcplan.planning.posture.freedom import Freedom
from mcplan.planning.posture.reference import ground_patches, guide_posture, perturbed_starts
from mcplan.planning.posture.result import STAGES
from mcplan.scenario.schema import GoalItem
from mcplan.scene.contact import Contact
from mcplan.scene.posture_contacts import Reach, resting_contacts
from mcplan.scene.spec import ContactSpec

POSED = Reach(0.03, 0.25)
"""How far the patches of a named posture may be from what they rest on."""

STANDING = Reach(0.35, 0.6)
"""How far those of a stance that is moved elsewhere may be."""

CELL = Freedom(x=0.03, y=0.03, yaw=0.15, along=0.05, offset=0.03, angle=np.inf)
"""Within which a contact that the item leaves open may move while its posture is looked for."""

RUNG = 0.06
"""m: how far from the middle of a patch the bar may be that it stands on."""

LEAN = 0.08
"""m: how far outside the contacts the centre of mass of a posture may be that is set down on them."""

LOOKED_AT = 150
"""Postures that are tried before the contacts of an item are given up."""

OFFERED = 3
"""Ends that are offered to the search."""

PLAIN = 0.01
"""m, rad: contacts that stay this far off from all starts are out of reach."""


class Reference(NamedTuple):
    """A posture (nq,) to set down, the patches that it stands on, those that may rest, and how near."""

    q: np.ndarray
    ground: tuple[str, ...]
    patches: tuple[str, ...]
    reach: Reach


@dataclass(frozen=True)
class Target:
    """A stance that meets an item."""

    goal: Goal
    end: End


class Targets:
    """Finds the contacts of items in one scene.

    Parameters
    ----------
    ending : finds postures.
    patches : those that may touch.
    contacts : of the start.
    """

    def __init__(self, ending: Ending, patches: Sequence[str], contacts: Sequence[Contact]):
        self.ending, self.prover = ending, ending.prover
        self.robot, self.environment = self.prover.robot, self.prover.environment
        self.patches, self.first = tuple(patches), tuple(contacts)
        self.size = self.robot.scale.leg
        self._cell = CELL.times(self.size)
        self._posed, self._standing = POSED.times(self.size), STANDING.times(self.size)
        self.nearest = ""
        self._rank: tuple[int, float] = (-1, 0.0)

    def chosen(self, item: GoalItem, contacts: Sequence[Contact], q: np.ndarray) -> list[Target]:
        """Return stances that meet an item, the nearest first; when there is none ``nearest`` says what is missing.

        Parameters
        ----------
        contacts, q : the stance now and its posture (nq,).
        """
        self.nearest, self._rank = "", (-1, 0.0)
        found: list[Target] = []
        tried = set[tuple]()
        if not item.contacts and self._rests_on(item, q) <= {contact.patch for contact in contacts}:
            end = self.ending.find(item, contacts, q)
            self._note(end)
            if end.found:
                return [Target(Goal.by(item, contacts), end)]
        looks = 0
        for reference in self._references(item, contacts, q):
            for hint in hints(item, self.robot, self.environment, reference.q, reference.ground, q):
                placed = resting_contacts(
                    self.robot, self.environment, hint, reference.patches, reference.reach, item.contacts,
                    reference.ground,
                )  # fmt: skip
                if not placed:
                    continue
                if item.posture is not None and not _carries(placed, self.robot.com(hint), self.size * LEAN):
                    continue
                key = tuple((c.patch, c.support, *np.round(c.p, 3)) for c in placed)
                if key in tried or any(self.prover.blocked(contact) for contact in placed):
                    continue
                tried.add(key)
                looks += 1
                end = self.ending.find(item, placed, q, hint, _cells(item, placed, self._cell), held=False)
                self._note(end)
                if end.found:
                    found.append(Target(Goal.by(item, end.result.contacts), end))
                if len(found) == OFFERED or looks == LOOKED_AT:
                    return found
        if not tried and not self.nearest:
            self.nearest = "none of the patches that may touch finds a support there"
        return found

    def placed(self, item: GoalItem, supports: Goal, contacts: Sequence[Contact], q: np.ndarray) -> Iterator[Target]:
        """Yield stances near one that has the right supports, in which the posture of an item can be taken up.

        Parameters
        ----------
        supports : goal that the stance ``contacts`` has reached: patches and their supports.
        """
        self.nearest, self._rank = "", (-1, 0.0)
        asked = self.robot.neutral() if item.posture is None else item.posture.apply(self.robot, self.ending.reference)
        asked = self._upright(item, asked)
        present = [contact for contact in contacts if contact.patch in supports.specs]
        limbs = list(dict.fromkeys(self.robot.patches[contact.patch].limb for contact in present))
        for keep in [[limb] for limb in limbs] + [limbs]:
            kept = [contact for contact in present if self.robot.patches[contact.patch].limb in keep]
            hint = guide_posture(self.robot, asked, [contact.patch for contact in kept], kept)
            hint = moved_onto(self.robot, asked, kept[0]) if hint is None else hint
            fixed = {contact.patch: contact for contact in kept} if len(keep) < len(limbs) else {}
            listed = [
                ContactSpec.model_validate(fixed[patch].to_data()) if patch in fixed else spec
                for patch, spec in supports.specs.items()
            ]
            placed = resting_contacts(self.robot, self.environment, hint, (), self._posed, listed)
            if not placed or any(self.prover.blocked(contact) for contact in placed):
                continue
            free = {p: f for p, f in _cells(item, placed, self._cell).items() if p not in fixed}
            end = self.ending.find(item, placed, q, hint, free, held=False)
            self._note(end)
            if end.found:
                yield Target(Goal.by(item, end.result.contacts), end)

    def impossible(self, item: GoalItem, q: np.ndarray) -> str:
        """Say why the contacts whose places an item gives cannot be, as far as it gives them; empty where they might.

        They can be in place; where nothing else may touch, they bear the robot; and the posture on them meets the item.
        """
        fixed = [spec for spec in item.contacts if {"x", "y"} <= set(spec.given) or "along" in spec.given]
        contacts = resting_contacts(self.robot, self.environment, q, (), self._posed, fixed) if fixed else None
        if not contacts:
            return ""
        free = _cells(item, contacts, Freedom(yaw=np.inf, angle=np.inf, offset=self.size * RUNG))
        guide = self.ending.guide(item, contacts, q)
        starts = [guide, q, *perturbed_starts(self.robot, guide)]
        everything = len(fixed) == len(item.contacts)
        self.prover.calls += 1
        result = self.prover.generator.generate(contacts, None, guide, starts, free)
        first = result.violations[0] if result.violations else None
        if first is not None:
            if result.stage == "reach" and first.amount > self.size * PLAIN:
                return f"no posture has all its contacts in place: {result.reason}; bring them closer together"
            if result.stage == "region" and everything and item.only:
                return f"its contacts cannot hold the robot, whatever its posture: {result.reason}"
            return ""
        if not everything or not self.ending.asks(item):
            return ""
        for start in starts:
            end = self.ending.find(item, contacts, start, None, free, held=False)
            # where it is balance that is missing, further contacts may help
            if end.found or (end.result.stage in ("region", "balance", "forces") and not item.only):
                return ""
        return f"on its contacts, {end.missing}"

    def _rests_on(self, item: GoalItem, q: np.ndarray) -> set[str]:
        """Return the patches that an item's posture rests on: those it stands on, and what rests where it is put."""
        found = set(stands_on(item, self.robot))
        if item.posture is not None and item.base is not None:
            reference = next(self._references(item, (), q))
            for hint in hints(item, self.robot, self.environment, reference.q, reference.ground, q):
                there = resting_contacts(
                    self.robot, self.environment, hint, self.patches, self._posed, ground=reference.ground
                )
                return found | {contact.patch for contact in there or ()}
        return found

    def _references(self, item: GoalItem, contacts: Sequence[Contact], q: np.ndarray) -> Iterator[Reference]:
        listed = {spec.patch for spec in item.contacts}
        if item.posture is not None:
            asked = self._upright(item, item.posture.apply(self.robot, self.ending.reference))
            ground = tuple(sorted(ground_patches(self.robot, asked)))
            may = () if item.only else self.patches
            yield Reference(asked, ground, may, self._posed)
            if item.base is not None:  # which may be off by its tolerance, and the patches with it
                near = self._posed.distance + min(item.base.tolerance, self._posed.distance)
                yield Reference(asked, ground, may, Reach(near, POSED.angle))
            return
        limbs = {self.robot.patches[patch].limb for patch in listed}
        if listed:  # the named posture that stands on such patches
            guide = self.ending.prover.guide([c for c in contacts if c.patch in listed] or contacts, q)
            yield Reference(guide, (), () if item.only else self._others(contacts, limbs), self._standing)
        for stance, posture in ((contacts, q), (self.first, self.ending.reference)):
            may = () if item.only else self._others(stance, limbs)
            yield Reference(posture, tuple(c.patch for c in stance), may, self._standing)

    def _others(self, contacts: Sequence[Contact], limbs: set[str]) -> tuple[str, ...]:
        """Return the patches of a stance whose limbs have nothing else to do."""
        return tuple(c.patch for c in contacts if self.robot.patches[c.patch].limb not in limbs)

    def _upright(self, item: GoalItem, q: np.ndarray) -> np.ndarray:
        """Return a posture with the height and tilt of the base that its name stands for."""
        if item.posture is not None and item.posture.name is not None:
            q = q.copy()
            q[:7] = self.robot.posture(item.posture.name)[:7]
        return q

    def _note(self, end: End) -> None:
        """Keep what is missing in the end that came farthest."""
        amount = end.result.violations[0].amount if end.result.violations else 0.0
        rank = (STAGES.index(end.result.stage) if end.result.stage in STAGES else 0, -amount)
        if rank > self._rank:
            self._rank, self.nearest = rank, end.missing


def _carries(contacts: Sequence[Contact], com: np.ndarray, lean: float) -> bool:
    """Whether the centre of mass of a posture is about over its contacts, or something is held that may carry it."""
    if any(contact.kind == "grasp" or contact.normal[2] < 0.5 for contact in contacts):
        return True
    points = np.vstack([contact.world_points for contact in contacts])[:, :2]
    angle = np.linspace(0.0, 2 * np.pi, 16, endpoint=False)
    way = np.column_stack([np.cos(angle), np.sin(angle)])
    return bool(np.all((points @ way.T).max(axis=0) >= way @ com[:2] - lean))


def _cells(item: GoalItem, contacts: Sequence[Contact], widths: Freedom) -> dict[str, Freedom]:
    """Return what the posture generator may choose of contacts: the coordinates that the item leaves open."""
    given = {spec.patch: spec.given for spec in item.contacts}
    cells = {}
    for contact in contacts:
        open_ = [n for n in widths.names if n in contact.coordinates and n not in given.get(contact.patch, {})]
        if open_:
            cells[contact.patch] = Freedom(**{name: getattr(widths, name) for name in open_})
    return cells
