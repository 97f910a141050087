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
    """Return three lists with an entry for each collision shape: its link, the shape in its body's frame, the body."""
    links, solids, bodies = [], [], []
    for link, geometries in robot.geometry.items():
        body, offset = robot.frame(link)
        shapes_of_link = solids_of(geometries, offset)
        links += [link] * len(shapes_of_link)
        bodies += [body] * len(shapes_of_link)
        solids += shapes_of_link
    return links, solids, bodies


def solids_of(geometries: Iterable[Geometry], offset: np.ndarray) -> list[Solid]:
    """Return a link's collision shapes in the frame of its body, with the link at ``offset`` (12,)."""
    R, p = offset[:9].reshape(3, 3), offset[9:]
    return [solid(g.shape, R @ g.R, R @ g.p + p) for g in geometries if g.role != "visual"]


def candidate_pairs(robot: Robot) -> np.ndarray:
    """Return pairs (P,2) of shapes of ``link_solids`` to check for self-collision.

    Pairs are omitted if the links belong to one body, are connected by one joint (fixed and locked joints do not
    count), or are ignored by the robot.
    """
    links, _, bodies = link_solids(robot)
    parent = parents_of(robot.tree)
    index_pairs = []
    for i in range(len(links)):
        for j in range(i + 1, len(links)):
            a, b = bodies[i], bodies[j]
            if a == b or parent[a] == b or parent[b] == a or frozenset((links[i], links[j])) in robot.collision_ignore:
                continue
            index_pairs.append((i, j))
    return np.array(index_pairs, np.int64).reshape(-1, 2)


def new_scratch(robot: Robot, shapes: int, pairs: int) -> DistanceScratch:
    """Allocate the scratch space of distance kernels for a robot and given numbers of shapes and pairs."""
    return DistanceScratch(workspace(robot.tree), np.zeros((shapes, 12)), np.zeros(pairs), scratch())


MAX_IGNORED_OVERLAP_M = 0.015
"""Depth (m) up to which overlaps of convex hulls in a named posture are ignored, because hulls enlarge housings with
hollow sides. A deeper overlap is reported, and remains a collision."""

SAMPLE_COUNT = 60
"""Number of random configurations; links that overlap in all of them are taken to overlap in every configuration."""

OverlapDepths = dict[frozenset[str], float]
"""Depth of overlap (m) by pair of links."""


def overlaps(robot: Robot, postures: Iterable[np.ndarray], hulls_only: bool = False) -> list[OverlapDepths]:
    """Return the candidate pairs that overlap in each posture (nq,).

    Parameters
    ----------
    hulls_only : whether to omit pairs of shapes neither of which is the hull of a mesh.
    """
    links, solids, bodies = link_solids(robot)
    pairs = candidate_pairs(robot)
    if hulls_only:
        is_hull = np.array([s.kind == HULL for s in solids], bool)
        pairs = pairs[is_hull[pairs].any(axis=1)]
    if not len(pairs):
        return [{} for _ in postures]
    shapes, space = pack(solids, bodies), new_scratch(robot, len(solids), len(pairs))
    margins, near_pairs, values = (
        np.zeros(len(pairs)),
        np.zeros(len(pairs), np.int64),
        np.zeros((len(pairs), PAIR_SIZE)),
    )
    results = []
    for q in postures:
        count = fill_distances(robot.tree, shapes, read_only(pairs), margins, q, space, near_pairs, values)
        depths: OverlapDepths = {}
        for p, distance in zip(near_pairs[:count].tolist(), values[:count, DISTANCE].tolist(), strict=True):
            if distance < 0.0:
                pair = frozenset(links[i] for i in pairs[p])
                depths[pair] = max(depths.get(pair, 0.0), -distance)
        results.append(depths)
    return results


def rest_overlaps(robot: Robot) -> OverlapDepths:
    """Return the pairs whose mesh hulls overlap in a named posture, or in the neutral one if there are none."""
    depth: OverlapDepths = {}
    postures = [robot.posture(name) for name in robot.postures] or [robot.neutral()]
    for overlapping in overlaps(robot, postures, hulls_only=True):
        for pair, overlap in overlapping.items():
            depth[pair] = max(depth.get(pair, 0.0), overlap)
    return depth


def without_permanent_overlaps(robot: Robot, pairs: OverlapDepths) -> OverlapDepths:
    """Return the pairs that do not overlap in every configuration; others are never checked for collisions."""
    if not pairs:
        return pairs
    random = np.random.default_rng(0)
    permanent = set(pairs)
    for overlapping in overlaps(robot, [robot.random_configuration(random) for _ in range(SAMPLE_COUNT)]):
        permanent &= set(overlapping)
    return {pair: depth for pair, depth in pairs.items() if pair not in permanent}


def format_pairs(pairs: OverlapDepths) -> str:
    """Format the pairs for a message, deepest first: ``[a, b] 12 mm, ...``."""
    deepest = sorted(pairs.items(), key=lambda item: -item[1])
    return ", ".join(f"[{', '.join(sorted(pair))}] {1000 * depth:.1f} mm" for pair, depth in deepest)
