"""Moves of one limb from a stance: candidates within reach, and candidates with low priority.

A candidate is deprioritized (see `cost`), without computing a posture, if

    feet cross      sign(d_y - d'_y) (p - p')_y < -MIN_CROSSING_OFFSET_M      y to the left of the guide; p, p'
                    positions of two feet whose nominal positions d, d' lie side by side
    obstructed      the link, raised along the normal by half or all of the height of a swing, is in collision
    beyond          |a| > |a'|, a a' > BEYOND_COSINE |a| |a'|      a, a' from the nominal position of the patch to this
                    candidate, and to one that was out of reach from the same stance

A limb also rolls from one patch of a link to another on the support: a heel rises onto its toe edge, and comes down.
With the pose (R_F, p_F) of a flat patch F, the position p_E of an edge E of the same link, and their poses
(R_LF, p_LF), (R_LE, p_LE) in the link L,

    p_E = p_F + R_F r,   and back   p_F = p_E - R_F r,   r = R_LF' (p_LE - p_LF)
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
"""A required contact must be made at once if a candidate for it is within this distance along the guide."""

MAX_LOWERING_M, EXTRA_REACH_M = 0.35, 0.05
"""Largest lowering of the base towards a lower contact, and reach beyond the length of a limb."""

MAX_SECOND_CONTACT_OFFSET_M = 0.12
"""Largest distance of a limb's second contact from its nominal position relative to the first."""

MIN_CROSSING_OFFSET_M = 0.02
"""A foot crosses the other if it is farther than this on its outer side; feet in line (on a beam) are allowed."""

BEYOND_COSINE = 0.8
"""Smallest cosine between the directions to two candidates of which one lies beyond the other."""


@dataclass(frozen=True, eq=False)
class SearchSpace:
    """Data that all nodes of one search share.

    Parameters
    ----------
    feasibility : of stances and motions.
    limbs, modes : limbs by name, and the sets of patches that each may have in contact.
    guide : path of the base.
    offsets : nominal position (3,) of each patch in the base's heading frame.
    candidates : by patch.
    potential : of the goal.
    require : requirements: sets of patches, of each of which one must carry load in this search or before it.
    requirements_apply : whether this search has to meet ``require``; else it only records the requirements met.
    """

    feasibility: Feasibility
    limbs: dict[str, Limb]
    modes: dict[str, tuple[tuple[str, ...], ...]]
    guide: GuidePath
    offsets: dict[str, np.ndarray]
    candidates: dict[str, Candidates]
    potential: Potential
    require: tuple[frozenset[str], ...]
    requirements_apply: bool = True

    @property
    def robot(self) -> Robot:
        """The robot whose limbs move."""
        return self.feasibility.robot

    @property
    def goal(self) -> Goal:
        """The goal of the search."""
        return self.potential.goal

    def is_edge(self, patch: str) -> bool:
        """Whether a patch is an edge."""
        return len(self.robot.patches[patch].polygon) == 2

    def progress(self, contact: Contact) -> ContactProgress:
        """Return the progress of a contact on the guide."""
        s, guide_distance = self.guide.progress(contact.p[None], self.offsets[contact.patch])
        return ContactProgress(
            float(s[0]), float(guide_distance[0]), self.goal.is_met_by(contact), self.is_edge(contact.patch)
        )

    def moves_for_requirements(self, requirements_met: frozenset[int], touching: Collection[str]) -> float:
        """Return the number of moves for the unmet requirements: one for the contact, or half of one for its load."""
        w = self.potential.weights
        open_ = [
            patches for i, patches in enumerate(self.require) if self.requirements_apply and i not in requirements_met
        ]
        return sum(
            w.unloaded_requirement if any(p in touching for p in patches) else w.requirement for patches in open_
        )

    def h(self, progress: Mapping[str, ContactProgress], requirements_met: frozenset[int]) -> float:
        """Return the potential of a stance by the progress of its contacts, and the requirements already met."""
        return self.potential(progress, self.moves_for_requirements(requirements_met, progress))


def contact_modes(
    robot: Robot, limbs: Mapping[str, Limb], stances: Iterable[frozenset[str]]
) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Return the sets of patches that each limb may have in contact.

    These are single patches, pairs of edges on different links (only together do they carry a moment), and the sets of
    the given stances.

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
    old_patch, new_patch = robot.patches[contact.patch], robot.patches[patch]
    are_edges = [len(old_patch.polygon) == 2, len(new_patch.polygon) == 2]
    support = environment.support(contact.support)
    if (
        old_patch.link != new_patch.link
        or sum(are_edges) != 1
        or contact.kind != "surface"
        or not isinstance(support, Surface)
    ):
        return None
    flat, edge = (new_patch, old_patch) if are_edges[0] else (old_patch, new_patch)
    arm = flat.R.T @ (edge.p - flat.p)
    if abs(arm[2]) > robot.scale.sole * MAX_EDGE_OFFSET_M:
        return None
    spec = {"patch": patch, "surface": contact.support}
    R_new = contact.R @ old_patch.R.T @ new_patch.R
    p = contact.p if are_edges[0] else contact.p + contact.R @ arm
    try:
        unconstrained_contact = make_contact(robot, environment, spec | {"overhang": True}, (R_new, p))
        yaw = round(float(unconstrained_contact.coordinates["yaw"]), 6)
        if are_edges[0]:
            c, s = np.cos(yaw), np.sin(yaw)
            # rotation of a flat patch at this yaw in the support frame: its z axis points into the support
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
        """Return the moves of a node, with new contacts within ``window`` (m) of the mean progress of other limbs."""
        found: list[Move] = []
        touching = node.touching
        required_limbs = self._limbs_required_now(node)
        for limb in self.space.limbs.values():
            closed = tuple(patch for patch in limb.patches if patch in touching)
            others = [node.progress[patch].s for patch in touching if patch not in closed]
            if not others:
                continue
            if required_limbs and closed and limb.name not in required_limbs:
                continue
            moved_last = limb.name == node.limb
            mean = mean_of(others)
            if closed and not moved_last:
                found.append(Move(limb.name, closed, ()))
            if len(closed) == 1:
                found += self._rolls(limb, touching[closed[0]])
            for mode in self.space.modes[limb.name]:
                remaining = tuple(patch for patch in closed if patch in mode)
                if closed and remaining == closed and set(mode) != set(closed):
                    found += self._placements(limb, (), tuple(p for p in mode if p not in closed), node, mean, window)
                elif remaining and set(mode) < set(closed):
                    found.append(Move(limb.name, tuple(p for p in closed if p not in mode), ()))
                elif not moved_last:
                    found += self._placements(limb, closed, mode, node, mean, window)
        return found

    def _rolls(self, limb: Limb, contact: Contact) -> list[Move]:
        """Return the moves to another patch of the same link, in place: from a sole to its toe edge and back."""
        moves = []
        for patch in limb.patches:
            other = rolled_contact(self.space.robot, self.space.feasibility.environment, contact, patch)
            if other is not None:
                at = self.space.progress(other)
                i = self.space.candidates[patch].add(other, at.s, at.guide_distance, at.meets_goal)
                moves.append(Move(limb.name, (contact.patch,), ((patch, i),), True))
        return moves

    def _limbs_required_now(self, node: StanceNode) -> set[str]:
        """Return the limbs of a required patch that is not yet in contact and has a candidate nearby."""
        for i, patches in enumerate(self.space.require):
            if i in node.requirements_met or not self.space.requirements_apply:
                continue
            names = set[str]()
            if any(patch in node.progress for patch in patches):
                continue  # it is in contact, and will carry load when the next limb moves
            mean = mean_of([at.s for at in node.progress.values()])
            for patch in patches:
                s = self.space.candidates[patch].s if patch in self.space.candidates else np.zeros(0)
                if np.abs(s - mean).min(initial=np.inf) < self.size * REQUIRED_WINDOW_M:
                    names.add(self.space.robot.patches[patch].limb)
            if names:
                return names
        return set()

    def _placements(
        self, limb: Limb, removed: tuple[str, ...], mode: tuple[str, ...], node: StanceNode, mean: float, window: float
    ) -> list[Move]:
        first = mode[0]
        sampled = self.space.candidates[first]
        if not len(sampled.s):
            return []
        base, yaw = self.space.guide.at(mean)
        root = base + rotate_z(yaw, limb.root)
        arm = sampled.positions - root
        arm[:, 2] = np.where(arm[:, 2] < 0.0, np.minimum(arm[:, 2] + self.size * MAX_LOWERING_M, 0.0), arm[:, 2])
        reach = limb.length + self.size * EXTRA_REACH_M
        within_reach = (np.abs(sampled.s - mean) <= window) & (np.linalg.norm(arm, axis=1) <= reach)
        moves = []
        before = node.touching.get(first)
        for i in np.flatnonzero(within_reach):
            on_same_support = before is not None and before.support == sampled.specs[i]["surface"]
            # a rotation in place may bring the patch into its goal
            rotates_into_goal = on_same_support and sampled.goal[i] and not node.progress[first].meets_goal
            if (
                on_same_support
                and not rotates_into_goal
                and before is not None
                and np.linalg.norm(before.p - sampled.positions[i]) < 1e-3
            ):
                continue
            added = [(first, int(i))]
            for patch in mode[1:]:
                j = self._second_contact(first, int(i), patch)
                if j is None:
                    break
                added.append((patch, j))
            else:
                moves.append(Move(limb.name, removed, tuple(added)))
        return moves

    def _second_contact(self, first: str, i: int, patch: str) -> int | None:
        """Return the candidate of a limb's second patch closest to its nominal offset from the first, or None."""
        one, two = self.space.candidates[first], self.space.candidates[patch]
        if not len(two.s):
            return None
        _, yaw = self.space.guide.at(float(one.s[i]))
        d = self.space.feasibility.references.offset(first, patch)
        d = self.space.offsets[patch] - self.space.offsets[first] if d is None else d
        nominal = one.positions[i] + rotate_z(yaw, d)
        distance = np.linalg.norm(two.positions - nominal, axis=1) - (1e-3 if one.goal[i] else 0.0) * two.goal
        j = int(np.argmin(distance))
        if one.goal[i] and two.goal.any():
            goals = np.flatnonzero(two.goal)
            j = int(goals[np.argmin(distance[goals])])
        return j if distance[j] < self.size * MAX_SECOND_CONTACT_OFFSET_M else None


def feet_crossed(space: SearchSpace, node: StanceNode, move: Move) -> bool:
    """Whether a foot would cross the one beside it. Crossed legs are close to their limits."""
    if not move.added or move.rolling:
        return False
    (patch, i), *_ = move.added
    sampled, feet, least = space.candidates[patch], space.robot.feet, space.robot.scale.leg * MIN_CROSSING_OFFSET_M
    if patch not in feet:
        return False
    _, yaw = space.guide.at(sampled.progress(i))
    left = np.array([-np.sin(yaw), np.cos(yaw), 0.0])
    for other in node.contacts:
        if other.patch not in feet or other.patch in move.removed:
            continue
        longitudinal, lateral, _ = space.offsets[patch] - space.offsets[other.patch]
        if (
            abs(longitudinal) < abs(lateral)
            and np.sign(lateral) * float(left @ (sampled.positions[i] - other.p)) < -least
        ):
            return True
    return False


def beyond_unreachable_position(space: SearchSpace, node: StanceNode, move: Move) -> bool:
    """Whether a candidate lies beyond one that was out of reach from the same stance."""
    unreachable = node.unreachable.get(move.limb)
    if not move.added or not unreachable:
        return False
    direction, distance = offset_from_nominal(space, node, move)
    return any(distance > limit + 1e-9 and direction @ other > BEYOND_COSINE for other, limit in unreachable)


def offset_from_nominal(space: SearchSpace, node: StanceNode, move: Move) -> tuple[np.ndarray, float]:
    """Return direction and distance of a candidate from the nominal position at the mean progress of other patches."""
    patch, i = move.added[0]
    base, yaw = space.guide.at(mean_of([at.s for name, at in node.progress.items() if name not in move.removed]))
    offset = space.candidates[patch].positions[i] - base - rotate_z(yaw, space.offsets[patch])
    length = float(np.linalg.norm(offset))
    return (offset / length if length > 1e-9 else offset), length


def landing_obstructed(space: SearchSpace, move: Move) -> bool:
    """Whether a link cannot come down along the normal of its contact: the toes would hit the step above."""
    added = () if move.rolling else move.added
    contacts = (space.candidates[patch].contact(i) for patch, i in added)
    return any(contact is not None and space.feasibility.occupancy.landing_obstructed(contact) for contact in contacts)
