"""Moves of one limb from a stance: candidates within reach, and candidates with low priority.

A candidate is deprioritized (see `cost`), without computing a posture, if

    feet cross      sign(d_y - d'_y) (p - p')_y < -crossing      y to the left of the guide; p, p' places of two feet
                    whose nominal places d, d' lie beside each other
    obstructed      the link, raised along the normal by half or all of the height of a swing, is in collision
    beyond          |a| > |a'|, a a' > 0.8 |a| |a'|      a, a' from the nominal place to this one, and to one that was
                    out of reach from the same stance

A limb also rolls from one patch of a link to another on the support: a heel rises onto its toe edge, and comes down.

flat F, edge E on the same link, r = R_LF' (p_LE - p_LF):    p_E = p_F + R_F r,   and back:   p_F = p_E - R_F r
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from mcplan.errors import InputError
from mcplan.planning.feasibility import Feasibility
from mcplan.planning.goal.item import Goal
from mcplan.planning.guide.path import GuidePath
from mcplan.planning.posture.limbs import Limb
from mcplan.planning.search.candidates import Candidates
from mcplan.planning.search.cost import Potential
from mcplan.planning.search.node import ContactProgress, Move, StanceNode, mean_of
from mcplan.robot.pose import rotate_z
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment, Surface
from mcplan.scene.placement import make_contact

MAX_EDGE_OFFSET_M = 0.01
"""Largest distance of an edge from the plane of a flat patch that it can replace by rolling."""

REQUIRED_WINDOW_M = 0.25
"""A required contact must be made now if a candidate for it is within this distance along the guide."""

MAX_SINK_M, EXTRA_REACH_M = 0.35, 0.05
"""Largest descent of the body towards a lower place, and reach beyond the length of a limb."""

MAX_PARTNER_M = 0.12
"""Largest distance of a limb's second contact from its nominal place relative to the first."""

MIN_CROSSING_M = 0.02
"""Feet cross if one is farther than this beyond the other; on a beam one may be straight ahead of the other."""

BEYOND_COSINE = 0.8
"""Smallest cosine between the directions to two places of which one lies beyond the other."""


@dataclass(frozen=True, eq=False)
class SearchSpace:
    """Data that all nodes of one search share.

    Parameters
    ----------
    feasibility : of stances and motions.
    limbs, modes : limbs by name, and the sets of patches that each may have in contact.
    guide, offsets : the path of the base, nominal places of patches.
    candidates : by patch.
    potential : of the goal.
    require : sets of patches of which one must be used, in this search or before it.
    due : whether this search has to meet ``require``; else it only records the patches used.
    """

    feasibility: Feasibility
    limbs: dict[str, Limb]
    modes: dict[str, tuple[tuple[str, ...], ...]]
    guide: GuidePath
    offsets: dict[str, np.ndarray]
    candidates: dict[str, Candidates]
    potential: Potential
    require: tuple[frozenset[str], ...]
    due: bool = True

    @property
    def robot(self) -> Robot:
        """The robot whose limbs move."""
        return self.feasibility.robot

    @property
    def goal(self) -> Goal:
        """The goal of the search."""
        return self.potential.goal

    def is_line(self, patch: str) -> bool:
        """Whether a patch is an edge."""
        return len(self.robot.patches[patch].polygon) == 2

    def progress(self, contact: Contact) -> ContactProgress:
        """Return the progress of a contact on the guide."""
        s, aside = self.guide.progress(contact.p[None], self.offsets[contact.patch])
        return ContactProgress(float(s[0]), float(aside[0]), self.goal.hit(contact), self.is_line(contact.patch))

    def remaining(self, met: frozenset[int], touching: Collection[str]) -> float:
        """Return the number of moves for the open requirements: one for the contact, half of one for the load."""
        w = self.potential.weights
        open_ = [patches for i, patches in enumerate(self.require) if self.due and i not in met]
        return sum(
            w.unloaded_requirement if any(p in touching for p in patches) else w.requirement for patches in open_
        )

    def h(self, standing: Mapping[str, ContactProgress], met: frozenset[int]) -> float:
        """Return the potential of a stance that has met some requirements."""
        return self.potential(standing, self.remaining(met, standing))


def contact_modes(
    robot: Robot, limbs: Mapping[str, Limb], stances: Iterable[frozenset[str]]
) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Return the sets of patches that each limb may have in contact.

    Single patches; two edges of different links, which carry a moment only together; and those of given stances.

    Parameters
    ----------
    stances : patches of the stances of start and goal.
    """
    modes: dict[str, tuple[tuple[str, ...], ...]] = {}
    stances = list(stances)
    for limb in limbs.values():
        found: list[tuple[str, ...]] = [(patch,) for patch in limb.patches]
        edges = [patch for patch in limb.patches if len(robot.patches[patch].polygon) == 2]
        links = {patch: robot.patches[patch].link for patch in edges}
        found += [(a, b) for a in edges for b in edges if a < b and links[a] != links[b]]
        for stance in stances:
            together = tuple(patch for patch in limb.patches if patch in stance)
            if len(together) > 1 and not any(set(together) == set(known) for known in found):
                found.append(together)
        modes[limb.name] = tuple(found)
    return modes


def rolled_contact(robot: Robot, environment: Environment, contact: Contact, patch: str) -> Contact | None:
    """Return the contact of ``patch`` that replaces ``contact`` by rolling in place, or None."""
    now, then = robot.patches[contact.patch], robot.patches[patch]
    edges = [len(now.polygon) == 2, len(then.polygon) == 2]
    support = environment.support(contact.support)
    if now.link != then.link or sum(edges) != 1 or contact.kind != "surface" or not isinstance(support, Surface):
        return None
    flat, edge = (then, now) if edges[0] else (now, then)
    arm = flat.R.T @ (edge.p - flat.p)
    if abs(arm[2]) > robot.scale.sole * MAX_EDGE_OFFSET_M:
        return None
    spec = {"patch": patch, "surface": contact.support}
    turned = contact.R @ now.R.T @ then.R
    p = contact.p if edges[0] else contact.p + contact.R @ arm
    try:
        over = make_contact(robot, environment, spec | {"overhang": True}, (turned, p))
        yaw = round(float(over.coordinates["yaw"]), 6)
        if edges[0]:
            c, s = np.cos(yaw), np.sin(yaw)
            p = contact.p - support.R @ np.array([[c, s, 0.0], [s, -c, 0.0], [0.0, 0.0, -1.0]]) @ arm
        x, y, _ = support.R.T @ (p - support.p)
        return make_contact(robot, environment, spec | {"x": round(float(x), 9), "y": round(float(y), 9), "yaw": yaw})
    except InputError:
        return None


class MoveGenerator:
    """Makes moves in a search space."""

    def __init__(self, space: SearchSpace):
        self.space, self.size = space, space.robot.scale.leg

    def moves(self, node: StanceNode, window: float) -> list[Move]:
        """Return the moves of a node, contacts within ``window`` (m) of the mean progress of the others."""
        found: list[Move] = []
        touching = node.touching
        waiting = self._waiting(node)
        for limb in self.space.limbs.values():
            own = tuple(patch for patch in limb.patches if patch in touching)
            others = [node.standing[patch].s for patch in touching if patch not in own]
            if not others:
                continue
            if waiting and own and limb.name not in waiting:
                continue
            again = limb.name == node.limb
            mean = mean_of(others)
            if own and not again:
                found.append(Move(limb.name, own, ()))
            if len(own) == 1:
                found += self._rolls(limb, touching[own[0]])
            for mode in self.space.modes[limb.name]:
                remaining = tuple(patch for patch in own if patch in mode)
                if own and remaining == own and set(mode) != set(own):
                    found += self._place(limb, (), tuple(p for p in mode if p not in own), node, mean, window)
                elif remaining and set(mode) < set(own):
                    found.append(Move(limb.name, tuple(p for p in own if p not in mode), ()))
                elif not again:
                    found += self._place(limb, own, mode, node, mean, window)
        return found

    def _rolls(self, limb: Limb, contact: Contact) -> list[Move]:
        """Return the moves to another patch of the same link, in place: from a sole to its toe edge and back."""
        moves = []
        for patch in limb.patches:
            other = rolled_contact(self.space.robot, self.space.feasibility.environment, contact, patch)
            if other is not None:
                at = self.space.progress(other)
                i = self.space.candidates[patch].add(other, at.s, at.aside, at.hit)
                moves.append(Move(limb.name, (contact.patch,), ((patch, i),), True))
        return moves

    def _waiting(self, node: StanceNode) -> set[str]:
        """Return limbs that must make contact now: a required one is free, and has a candidate nearby."""
        for i, patches in enumerate(self.space.require):
            if i in node.met or not self.space.due:
                continue
            names = set[str]()
            if any(patch in node.standing for patch in patches):
                continue  # it is in contact, and carries load when the next limb leaves
            mean = mean_of([at.s for at in node.standing.values()])
            for patch in patches:
                s = self.space.candidates[patch].s if patch in self.space.candidates else np.zeros(0)
                if np.abs(s - mean).min(initial=np.inf) < self.size * REQUIRED_WINDOW_M:
                    names.add(self.space.robot.patches[patch].limb)
            if names:
                return names
        return set()

    def _place(
        self, limb: Limb, removed: tuple[str, ...], mode: tuple[str, ...], node: StanceNode, mean: float, window: float
    ) -> list[Move]:
        first = mode[0]
        sampled = self.space.candidates[first]
        if not len(sampled.s):
            return []
        base, yaw = self.space.guide.at(mean)
        root = base + rotate_z(yaw, limb.root)
        arm = sampled.place - root
        arm[:, 2] = np.where(arm[:, 2] < 0.0, np.minimum(arm[:, 2] + self.size * MAX_SINK_M, 0.0), arm[:, 2])
        reach = limb.length + self.size * EXTRA_REACH_M
        near = (np.abs(sampled.s - mean) <= window) & (np.linalg.norm(arm, axis=1) <= reach)
        moves = []
        before = node.touching.get(first)
        for i in np.flatnonzero(near):
            same = before is not None and before.support == sampled.specs[i]["surface"]
            turns = same and sampled.goal[i] and not node.standing[first].hit  # rotation in place, into its goal
            if same and not turns and before is not None and np.linalg.norm(before.p - sampled.place[i]) < 1e-3:
                continue
            added = [(first, int(i))]
            for patch in mode[1:]:
                j = self._partner(first, int(i), patch)
                if j is None:
                    break
                added.append((patch, j))
            else:
                moves.append(Move(limb.name, removed, tuple(added)))
        return moves

    def _partner(self, first: str, i: int, patch: str) -> int | None:
        """Return the candidate of a limb's second patch that is closest to its nominal place relative to the first."""
        one, two = self.space.candidates[first], self.space.candidates[patch]
        if not len(two.s):
            return None
        _, yaw = self.space.guide.at(float(one.s[i]))
        d = self.space.feasibility.references.offset(first, patch)
        d = self.space.offsets[patch] - self.space.offsets[first] if d is None else d
        place = one.place[i] + rotate_z(yaw, d)
        distance = np.linalg.norm(two.place - place, axis=1) - (1e-3 if one.goal[i] else 0.0) * two.goal
        j = int(np.argmin(distance))
        if one.goal[i] and two.goal.any():
            goals = np.flatnonzero(two.goal)
            j = int(goals[np.argmin(distance[goals])])
        return j if distance[j] < self.size * MAX_PARTNER_M else None


def feet_crossed(space: SearchSpace, node: StanceNode, move: Move) -> bool:
    """Whether a foot would cross the one beside it: crossed legs are close to their limits."""
    if not move.added or move.rolling:
        return False
    (patch, i), *_ = move.added
    sampled, feet, least = space.candidates[patch], space.robot.feet, space.robot.scale.leg * MIN_CROSSING_M
    if patch not in feet:
        return False
    _, yaw = space.guide.at(sampled.progress(i))
    left = np.array([-np.sin(yaw), np.cos(yaw), 0.0])
    for other in node.contacts:
        if other.patch not in feet or other.patch in move.removed:
            continue
        ahead, aside, _ = space.offsets[patch] - space.offsets[other.patch]
        if abs(ahead) < abs(aside) and np.sign(aside) * float(left @ (sampled.place[i] - other.p)) < -least:
            return True
    return False


def beyond_unreachable_place(space: SearchSpace, node: StanceNode, move: Move) -> bool:
    """Whether a place lies beyond one that was out of reach."""
    failed = node.failed.get(move.limb)
    if not move.added or not failed:
        return False
    direction, distance = offset_from_nominal(space, node, move)
    return any(distance > limit + 1e-9 and direction @ other > BEYOND_COSINE for other, limit in failed)


def offset_from_nominal(space: SearchSpace, node: StanceNode, move: Move) -> tuple[np.ndarray, float]:
    """Return direction and distance of a place from the nominal one at the mean progress of the others."""
    patch, i = move.added[0]
    base, yaw = space.guide.at(mean_of([at.s for name, at in node.standing.items() if name not in move.removed]))
    offset = space.candidates[patch].place[i] - base - rotate_z(yaw, space.offsets[patch])
    length = float(np.linalg.norm(offset))
    return (offset / length if length > 1e-9 else offset), length


def landing_obstructed(space: SearchSpace, move: Move) -> bool:
    """Whether a link cannot come down along the normal of its contact: toes below the next step."""
    places = () if move.rolling else move.added
    contacts = (space.candidates[patch].contact(i) for patch, i in places)
    return any(contact is not None and space.feasibility.occupancy.landing_obstructed(contact) for contact in contacts)
