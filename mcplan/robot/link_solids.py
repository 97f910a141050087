"""Collision solids of links, candidate pairs for self-collision, and overlaps at rest or in all postures."""

from collections.abc import Iterable

import numpy as np

from mcplan.core.distance.many import DistanceScratch, fill_distances
from mcplan.core.distance.pair import DISTANCE, PAIR_SIZE
from mcplan.core.distance.shape import HULL, scratch
from mcplan.core.rigid_body.tree import parents_of, workspace
from mcplan.robot.description import Geometry
from mcplan.robot.robot import Robot
from mcplan.robot.solid import Solid, pack, solid
from mcplan.util.arrays import read_only


def link_solids(robot: Robot) -> tuple[list[str], list[Solid], list[int]]:
    """Return the collision shapes of all links: link, shape in the body's frame, body."""
    links, solids, bodies = [], [], []
    for link, geometries in robot.geometry.items():
        body, offset = robot.frame(link)
        own = solids_of(geometries, offset)
        links += [link] * len(own)
        bodies += [body] * len(own)
        solids += own
    return links, solids, bodies


def solids_of(geometries: Iterable[Geometry], offset: np.ndarray) -> list[Solid]:
    """Return a link's collision shapes in the frame of its body, with the link at ``offset`` (12,)."""
    R, p = offset[:9].reshape(3, 3), offset[9:]
    return [solid(g.shape, R @ g.R, R @ g.p + p) for g in geometries if g.role != "visual"]


def candidate_pairs(robot: Robot) -> np.ndarray:
    """Return pairs (P,2) of shapes of ``link_solids`` to check for self-collision.

    Left out are links of one body, links that one joint connects (fixed and locked joints do not count as joints), and
    the pairs that the robot ignores.
    """
    links, _, bodies = link_solids(robot)
    parent = parents_of(robot.tree)
    found = []
    for i in range(len(links)):
        for j in range(i + 1, len(links)):
            a, b = bodies[i], bodies[j]
            if a == b or parent[a] == b or parent[b] == a or frozenset((links[i], links[j])) in robot.collision_ignore:
                continue
            found.append((i, j))
    return np.array(found, np.int64).reshape(-1, 2)


def new_scratch(robot: Robot, shapes: int, pairs: int) -> DistanceScratch:
    """Allocate the scratch space for a robot and numbers of shapes and pairs."""
    return DistanceScratch(workspace(robot.tree), np.zeros((shapes, 12)), np.zeros(pairs), scratch())


MAX_IGNORED_OVERLAP = 0.015
"""m: overlaps of convex hulls up to this depth in a named posture are ignored: hulls enlarge housings with rounded or
hollow sides. A deeper overlap is reported, and remains a collision."""

SAMPLES = 60
"""Random configurations; links that overlap in all of them are taken to overlap always."""

Pairs = dict[frozenset[str], float]
"""Depth of overlap (m) by pair of links."""


def overlaps(robot: Robot, postures: Iterable[np.ndarray], hulls_only: bool = False) -> list[Pairs]:
    """Return the candidate pairs that overlap in each posture (nq,).

    Parameters
    ----------
    hulls_only : leave out pairs of shapes neither of which is the hull of a mesh.
    """
    links, solids, bodies = link_solids(robot)
    pairs = candidate_pairs(robot)
    if hulls_only:
        hull = np.array([s.kind == HULL for s in solids], bool)
        pairs = pairs[hull[pairs].any(axis=1)]
    if not len(pairs):
        return [{} for _ in postures]
    shapes, space = pack(solids, bodies), new_scratch(robot, len(solids), len(pairs))
    margins, found, values = np.zeros(len(pairs)), np.zeros(len(pairs), np.int64), np.zeros((len(pairs), PAIR_SIZE))
    results = []
    for q in postures:
        count = fill_distances(robot.tree, shapes, read_only(pairs), margins, q, space, found, values)
        depths: Pairs = {}
        for p, distance in zip(found[:count].tolist(), values[:count, DISTANCE].tolist(), strict=True):
            if distance < 0.0:
                pair = frozenset(links[i] for i in pairs[p])
                depths[pair] = max(depths.get(pair, 0.0), -distance)
        results.append(depths)
    return results


def rest_overlaps(robot: Robot) -> Pairs:
    """Return the pairs whose mesh hulls overlap in a named posture, or, without named postures, in the neutral one."""
    depth: Pairs = {}
    postures = [robot.posture(name) for name in robot.postures] or [robot.neutral()]
    for found in overlaps(robot, postures, hulls_only=True):
        for pair, value in found.items():
            depth[pair] = max(depth.get(pair, 0.0), value)
    return depth


def without_permanent_overlaps(robot: Robot, pairs: Pairs) -> Pairs:
    """Return the pairs that are apart in some configuration; pairs that always overlap are not checked."""
    if not pairs:
        return pairs
    random = np.random.default_rng(0)
    always = set(pairs)
    for found in overlaps(robot, [robot.random_configuration(random) for _ in range(SAMPLES)]):
        always &= set(found)
    return {pair: depth for pair, depth in pairs.items() if pair not in always}


def format_pairs(pairs: Pairs) -> str:
    """Format the pairs for a message, deepest first: ``[a, b] 12 mm, ...``."""
    deepest = sorted(pairs.items(), key=lambda item: -item[1])
    return ", ".join(f"[{', '.join(sorted(pair))}] {1000 * depth:.1f} mm" for pair, depth in deepest)
