"""Hulls that overlap a little where the robot rests: a hull is larger than the mesh for which it stands."""

import numpy as np

from mcplan.core.distance.many import fill_distances
from mcplan.core.distance.pair import DISTANCE, PAIR_SIZE
from mcplan.core.distance.shape import HULL
from mcplan.model.link_solids import candidate_pairs, link_solids, new_scratch
from mcplan.model.robot import Robot
from mcplan.model.solid import frozen, pack

SHALLOW = 0.015
"""m: hulls that overlap by no more than this in a posture at rest are taken for links that do not: what convex hulls
add to housings of a hand's width with rounded or hollowed sides. A deeper overlap is named, and stays a collision."""


def rest_overlaps(robot: Robot, hulls_only: bool = True) -> dict[frozenset[str], float]:
    """Return the pairs of links that overlap in a posture at rest, and by how much at most (m).

    At rest is every named posture; without any, the neutral one.

    Parameters
    ----------
    hulls_only : leave out pairs of shapes neither of which is the hull of a mesh.
    """
    links, solids, bodies = link_solids(robot)
    hull = np.array([s.kind == HULL for s in solids], bool)
    if hulls_only and not hull.any():
        return {}
    pairs = candidate_pairs(robot)
    if hulls_only:
        pairs = pairs[hull[pairs].any(axis=1)]
    shapes, space = pack(solids, bodies), new_scratch(robot, len(solids), len(pairs))
    margins, found, values = np.zeros(len(pairs)), np.zeros(len(pairs), np.int64), np.zeros((len(pairs), PAIR_SIZE))
    postures = [robot.posture(name) for name in robot.postures] or [robot.neutral()]
    depth: dict[frozenset[str], float] = {}
    for q in postures if len(pairs) else []:
        count = fill_distances(robot.tree, shapes, frozen(pairs), margins, q, space, found, values)
        for p, distance in zip(found[:count].tolist(), values[:count, DISTANCE].tolist(), strict=True):
            if distance < 0.0:
                pair = frozenset(links[i] for i in pairs[p])
                depth[pair] = max(depth.get(pair, 0.0), -distance)
    return depth


def described(pairs: dict[frozenset[str], float]) -> str:
    """Return the pairs as they stand in a message, deepest first: ``[a, b] 12 mm, ...``."""
    deepest = sorted(pairs.items(), key=lambda item: -item[1])
    return ", ".join(f"[{', '.join(sorted(pair))}] {1000 * depth:.1f} mm" for pair, depth in deepest)
