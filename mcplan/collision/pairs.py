"""Self-collision pairs of a robot, without neighbours, ignored and always touching pairs; protruding patches."""

from functools import lru_cache

import numpy as np

from mcplan.core.distance.many import fill_distances
from mcplan.core.distance.pair import PAIR_SIZE
from mcplan.robot.description import Sphere
from mcplan.robot.link_solids import candidate_pairs, link_solids, new_scratch
from mcplan.robot.robot import Robot
from mcplan.robot.robot_file import robot_identity
from mcplan.robot.solid import pack, solid
from mcplan.util.arrays import read_only

SAMPLES = 300
"""Number of random configurations; a pair that touches in all of them counts as always touching."""

PROTRUSION_M = 0.004
"""A patch farther than this from all shapes of its link protrudes: it touches a support without the link."""

POINT_RADIUS_M = 1e-6
"""Radius of the sphere that represents a point."""


def always_touching(robot: Robot) -> frozenset[frozenset[str]]:
    """Return the candidate pairs of links that touch in all of `SAMPLES` random configurations."""
    return _always_touching(_ByIdentity(robot))


class _ByIdentity:
    """Cache key of a robot, equal for robots of the same files, including meshes."""

    def __init__(self, robot: Robot):
        self.robot = robot
        self.key = robot_identity(robot) or id(robot)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@lru_cache(maxsize=32)
def _always_touching(key: _ByIdentity) -> frozenset[frozenset[str]]:
    robot = key.robot
    links, solids, bodies = link_solids(robot)
    pairs = candidate_pairs(robot)
    names = [frozenset((links[i], links[j])) for i, j in pairs]
    touching = set(names)
    shapes, space = pack(solids, bodies), new_scratch(robot, len(solids), len(pairs))
    margins, indices, values = np.zeros(len(pairs)), np.zeros(len(pairs), np.int64), np.zeros((len(pairs), PAIR_SIZE))
    random = np.random.default_rng(0)
    for _ in range(SAMPLES):
        if not touching:
            break
        q = robot.random_configuration(random)
        count = fill_distances(robot.tree, shapes, read_only(pairs), margins, q, space, indices, values)
        touching &= {names[p] for p in indices[:count]}
    return frozenset(touching)


def self_pairs(robot: Robot) -> np.ndarray:
    """Return the self-collision pairs (P,2) as indices of the shapes of ``link_solids``."""
    links, _, _ = link_solids(robot)
    always_touching_pairs = always_touching(robot)
    pairs = candidate_pairs(robot)
    is_valid = [frozenset((links[i], links[j])) not in always_touching_pairs for i, j in pairs]
    return pairs[np.array(is_valid, bool)]


def protruding_patches(robot: Robot) -> frozenset[str]:
    """Return the patches (not grasps) that protrude from the shapes of their link by more than `PROTRUSION_M`.

    Such a patch touches a support alone. A patch does not protrude if any point of it is near its link's shape; its
    corners do not suffice, because none of those around a rounded sole is near the sole.
    """
    return _protruding_patches(_ByIdentity(robot))


@lru_cache(maxsize=32)
def _protruding_patches(key: _ByIdentity) -> frozenset[str]:
    robot = key.robot
    links, solids, bodies = link_solids(robot)
    points_of_patches = [
        (patch.name, robot.frame(patch.link), point)
        for patch in robot.patches.values()
        if patch.kind != "grasp" and robot.frame(patch.link)[0] in bodies
        for point in patch.p + _sample_points(patch.points) @ patch.R.T
    ]
    for _, (body, offset), point in points_of_patches:
        solids.append(solid(Sphere(POINT_RADIUS_M), np.eye(3), offset[:9].reshape(3, 3) @ point + offset[9:]))
        bodies.append(body)
    point_shapes = range(len(links), len(bodies))
    pairs = [(i, j) for j in point_shapes for i in range(len(links)) if bodies[i] == bodies[j]]
    if not pairs:
        return frozenset()
    indices, values = np.zeros(len(pairs), np.int64), np.zeros((len(pairs), PAIR_SIZE))
    space, margins = new_scratch(robot, len(solids), len(pairs)), np.full(len(pairs), PROTRUSION_M - POINT_RADIUS_M)
    count = fill_distances(
        robot.tree, pack(solids, bodies), read_only(np.array(pairs)), margins, robot.neutral(), space, indices, values
    )
    flush_patches = {points_of_patches[pairs[p][1] - len(links)][0] for p in indices[:count]}
    return frozenset(name for name, _, _ in points_of_patches) - flush_patches


def _sample_points(corners: np.ndarray) -> np.ndarray:
    """Return sample points of a polygon (k,3): corners, midpoints of edges, centre, points halfway to the centre."""
    outline = np.vstack([corners, 0.5 * (corners + np.roll(corners, -1, axis=0))])
    centre = corners.mean(axis=0)
    return np.vstack([outline, 0.5 * (outline + centre), centre])
