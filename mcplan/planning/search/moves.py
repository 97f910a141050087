"""The moves of a node: where each limb could go, by cheap filters on numbers that are known before the search.

With which sets of its patches a limb may touch.

From one patch of a link to another without leaving the support: a heel that rises onto its toe edge, and comes down.

flat F, edge E on the same link, r = R_LF' (p_LE - p_LF):    p_E = p_F + R_F r,   and back:   p_F = p_E - R_F r
"""

from collections.abc import Iterable, Mapping

import numpy as np

from mcplan.errors import InputError
from mcplan.planning.search.node import Move, Node
from mcplan.planning.search.potential import mean_of
from mcplan.planning.search.space import SearchSpace
from mcplan.robot.anatomy import Limb
from mcplan.robot.pose import rotate_z
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment, Surface
from mcplan.scene.placement import make_contact


def modes_of(
    robot: Robot, limbs: Mapping[str, Limb], stances: Iterable[frozenset[str]]
) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Return the sets of patches with which each limb may touch.

    One at a time; two edges of different links, which only together bear a moment; and those of given stances.

    Parameters
    ----------
    stances : patches of stances that are known to make sense: those of start and goal.
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


LEVEL = 0.01
"""m: an edge that lies this near to the plane of a flat patch can take its place."""


def roll(robot: Robot, environment: Environment, contact: Contact, patch: str) -> Contact | None:
    """Return the contact of ``patch`` that takes over from ``contact`` in place, or None where there is none."""
    now, then = robot.patches[contact.patch], robot.patches[patch]
    edges = [len(now.polygon) == 2, len(then.polygon) == 2]
    support = environment.support(contact.support)
    if now.link != then.link or sum(edges) != 1 or contact.kind != "surface" or not isinstance(support, Surface):
        return None
    flat, edge = (then, now) if edges[0] else (now, then)
    arm = flat.R.T @ (edge.p - flat.p)
    if abs(arm[2]) > robot.scale.sole * LEVEL:
        return None
    spec = {"patch": patch, "surface": contact.support}
    turned = contact.R @ now.R.T @ then.R
    try:
        if edges[0]:
            yaw = round(float(make_contact(robot, environment, spec | {"overhang": True}, (turned, contact.p))
                              .coordinates["yaw"]), 6)  # fmt: skip
            c, s = np.cos(yaw), np.sin(yaw)
            R = support.R @ np.array([[c, s, 0.0], [s, -c, 0.0], [0.0, 0.0, -1.0]])
            p = contact.p - R @ arm
        else:
            R, p = turned, contact.p + contact.R @ arm
            yaw = round(
                float(make_contact(robot, environment, spec | {"overhang": True}, (R, p)).coordinates["yaw"]), 6
            )
        x, y, _ = support.R.T @ (p - support.p)
        return make_contact(robot, environment, spec | {"x": round(float(x), 9), "y": round(float(y), 9), "yaw": yaw})
    except InputError:
        return None


CLOSE = 0.25
"""m: a place that a requirement asks for is close by where it is no farther along the way."""

SINK, BEYOND = 0.35, 0.05
"""m: by how much a robot may sink towards a place below, and how much farther than its limb it reaches."""

PARTNER = 0.12
"""m: how far from where the first patch of a limb puts it a place of the second may be."""


class MoveMaker:
    """Makes moves in a search space."""

    def __init__(self, space: SearchSpace):
        self.space, self.size = space, space.robot.scale.leg

    def moves(self, node: Node, window: float) -> list[Move]:
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
                kept = tuple(patch for patch in own if patch in mode)
                if own and kept == own and set(mode) != set(own):
                    found += self._place(limb, (), tuple(p for p in mode if p not in own), node, mean, window)
                elif kept and set(mode) < set(own):
                    found.append(Move(limb.name, tuple(p for p in own if p not in mode), ()))
                elif not again:
                    found += self._place(limb, own, mode, node, mean, window)
        return found

    def _rolls(self, limb: Limb, contact: Contact) -> list[Move]:
        """Return the moves to another patch of the same link, in place: from a sole to its toe edge and back."""
        moves = []
        for patch in limb.patches:
            other = roll(self.space.robot, self.space.prover.environment, contact, patch)
            if other is not None:
                at = self.space.stand(other)
                i = self.space.candidates[patch].add(other, at.s, at.aside, at.hit)
                moves.append(Move(limb.name, (contact.patch,), ((patch, i),), True))
        return moves

    def _waiting(self, node: Node) -> set[str]:
        """Return limbs that must touch now: a required one is free, and has somewhere to go close by."""
        for i, patches in enumerate(self.space.require):
            if i in node.met or not self.space.due:
                continue
            names = set[str]()
            if any(patch in node.standing for patch in patches):
                continue  # it touches already, and carries when the next limb leaves
            mean = mean_of([standing.s for standing in node.standing.values()])
            for patch in patches:
                s = self.space.candidates[patch].s if patch in self.space.candidates else np.zeros(0)
                if np.abs(s - mean).min(initial=np.inf) < self.size * CLOSE:
                    names.add(self.space.robot.patches[patch].limb)
            if names:
                return names
        return set()

    def _place(
        self, limb: Limb, removed: tuple[str, ...], mode: tuple[str, ...], node: Node, mean: float, window: float
    ) -> list[Move]:
        first = mode[0]
        sampled = self.space.candidates[first]
        if not len(sampled.s):
            return []
        base, yaw = self.space.guide.at(mean)
        root = base + rotate_z(yaw, limb.root)
        arm = sampled.place - root
        arm[:, 2] = np.where(arm[:, 2] < 0.0, np.minimum(arm[:, 2] + self.size * SINK, 0.0), arm[:, 2])
        reach = limb.length + self.size * BEYOND
        near = (np.abs(sampled.s - mean) <= window) & (np.linalg.norm(arm, axis=1) <= reach)
        moves = []
        before = node.touching.get(first)
        for i in np.flatnonzero(near):
            same = before is not None and before.support == sampled.specs[i]["surface"]
            turns = same and sampled.goal[i] and not node.standing[first].hit  # in its place, into its goal
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
        """Return the candidate of a second patch of the limb that lies nearest to where the first one puts it."""
        one, two = self.space.candidates[first], self.space.candidates[patch]
        if not len(two.s):
            return None
        _, yaw = self.space.guide.at(float(one.s[i]))
        d = self.space.prover.between(first, patch)
        d = self.space.offsets[patch] - self.space.offsets[first] if d is None else d
        place = one.place[i] + rotate_z(yaw, d)
        distance = np.linalg.norm(two.place - place, axis=1) - (1e-3 if one.goal[i] else 0.0) * two.goal
        j = int(np.argmin(distance))
        if one.goal[i] and two.goal.any():
            goals = np.flatnonzero(two.goal)
            j = int(goals[np.argmin(distance[goals])])
        return j if distance[j] < self.size * PARTNER else None
