"""Links that overlap: at rest by a little, since a hull is larger than the mesh for which it stands, or always."""

from collections.abc import Iterable

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

SAMPLES = 60
"""Random configurations in which links that overlap in all of them are taken to overlap always."""

Pairs = dict[frozenset[str], float]
"""Pairs of links, and how deep they overlap (m)."""


def overlaps(robot: Robot, postures: Iterable[np.ndarray], hulls_only: bool = False) -> list[Pairs]:
    """Return the pairs that overlap in each posture (nq,), of those that could collide.

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
    answer = []
    for q in postures:
        count = fill_distances(robot.tree, shapes, frozen(pairs), margins, q, space, found, values)
        deep: Pairs = {}
        for p, distance in zip(found[:count].tolist(), values[:count, DISTANCE].tolist(), strict=True):
            if distance < 0.0:
                pair = frozenset(links[i] for i in pairs[p])
                deep[pair] = max(deep.get(pair, 0.0), -distance)
        answer.append(deep)
    return answer


def rest_overlaps(robot: Robot) -> Pairs:
    """Return the pairs that overlap by hulls of meshes in a named posture, or without any in the neutral one."""
    depth: Pairs = {}
    postures = [robot.posture(name) for name in robot.postures] or [robot.neutral()]
    for found in overlaps(robot, postures, hulls_only=True):
        for pair, value in found.items():
            depth[pair] = max(depth.get(pair, 0.0), value)
    return depth


def without_what_always_overlaps(robot: Robot, pairs: Pairs) -> Pairs:
    """Return the pairs that are apart in some configuration: the others never collide, as nothing could prevent it."""
    if not pairs:
        return pairs
    random = np.random.default_rng(0)
    always = set(pairs)
    for found in overlaps(robot, [robot.random_configuration(random) for _ in range(SAMPLES)]):
        always &= set(found)
    return {pair: depth for pair, depth in pairs.items() if pair not in always}


def described(pairs: Pairs) -> str:
    """Return the pairs as they stand in a message, deepest first: ``[a, b] 12 mm, ...``."""
    deepest = sorted(pairs.items(), key=lambda item: -item[1])
    return ", ".join(f"[{', '.join(sorted(pair))}] {1000 * depth:.1f} mm" for pair, depth in deepest)
