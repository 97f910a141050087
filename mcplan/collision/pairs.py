"""Which links of a robot may collide with each other: not neighbours, not ignored ones, not those that always touch."""

from functools import lru_cache

import numpy as np

from mcplan.collision.shape import Solid, frozen, pack, solid
from mcplan.core.distance.many import Scratch, fill_distances
from mcplan.core.distance.pair import PAIR_SIZE
from mcplan.core.distance.shape import scratch
from mcplan.core.rigid_body.tree import PARENT, workspace
from mcplan.model.geometry import Sphere
from mcplan.model.robot import Robot

SAMPLES = 300
"""Random configurations in which a pair must touch, without exception, to count as always touching."""

STANDS_OUT = 0.004
"""m: a patch farther than this from all shapes of its link bears alone."""

POINT = 1e-6
"""m: radius of the ball that stands for a point."""


def link_solids(robot: Robot) -> tuple[list[str], list[Solid], list[int]]:
    """Return the shapes of all links that collide: link, shape in the body's frame, body."""
    links, solids, bodies = [], [], []
    for link, geometries in robot.geometry.items():
        body, offset = robot.frame(link)
        R, p = offset[:9].reshape(3, 3), offset[9:]
        for geometry in geometries:
            if geometry.role != "visual":
                links.append(link)
                bodies.append(body)
                solids.append(solid(geometry.shape, R @ geometry.R, R @ geometry.p + p))
    return links, solids, bodies


def candidate_pairs(robot: Robot) -> np.ndarray:
    """Return pairs (P,2) of the shapes of ``link_solids`` on links that a joint or more than one keeps apart.

    Left out are links of one body, links that one joint connects (fixed and locked joints do not count as joints), and
    the pairs that the robot ignores.
    """
    links, _, bodies = link_solids(robot)
    parent = robot.tree.topology[:, PARENT]
    found = []
    for i in range(len(links)):
        for j in range(i + 1, len(links)):
            a, b = bodies[i], bodies[j]
            if a == b or parent[a] == b or parent[b] == a or frozenset((links[i], links[j])) in robot.collision_ignore:
                continue
            found.append((i, j))
    return np.array(found, np.int64).reshape(-1, 2)


def always_touching(robot: Robot) -> frozenset[frozenset[str]]:
    """Return the pairs of links, among the candidates, that touch in every one of ``SAMPLES`` random configurations."""
    return _always_touching(_ByDigest(robot))


class _ByDigest:
    """A robot that equals another one of the same files."""

    def __init__(self, robot: Robot):
        self.robot = robot
        self.key = robot.digest or id(robot)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByDigest) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@lru_cache(maxsize=32)
def _always_touching(key: _ByDigest) -> frozenset[frozenset[str]]:
    robot = key.robot
    links, solids, bodies = link_solids(robot)
    pairs = candidate_pairs(robot)
    names = [frozenset((links[i], links[j])) for i, j in pairs]
    touching = set(names)
    shapes, space = pack(solids, bodies), new_scratch(robot, len(solids), len(pairs))
    margins, found, values = np.zeros(len(pairs)), np.zeros(len(pairs), np.int64), np.zeros((len(pairs), PAIR_SIZE))
    random = np.random.default_rng(0)
    for _ in range(SAMPLES):
        if not touching:
            break
        q = robot.random_configuration(random)
        count = fill_distances(robot.tree, shapes, frozen(pairs), margins, q, space, found, values)
        touching &= {names[p] for p in found[:count]}
    return frozenset(touching)


def self_pairs(robot: Robot) -> np.ndarray:
    """Return the pairs (P,2) of the shapes of ``link_solids`` that are worth a look."""
    links, _, _ = link_solids(robot)
    always = always_touching(robot)
    pairs = candidate_pairs(robot)
    kept = [frozenset((links[i], links[j])) not in always for i, j in pairs]
    return pairs[np.array(kept, bool)]


def standing_out(robot: Robot) -> frozenset[str]:
    """Return the patches that stand out from the shapes of their link by more than ``STANDS_OUT``: grasps do not count.

    Only such a patch touches; a link whose shape ends at its patch, anywhere on it, touches with it: of a polygon
    around a rounded sole no corner is near the sole.
    """
    return _standing_out(_ByDigest(robot))


@lru_cache(maxsize=32)
def _standing_out(key: _ByDigest) -> frozenset[str]:
    robot = key.robot
    links, solids, bodies = link_solids(robot)
    places = [
        (patch.name, robot.frame(patch.link), point)
        for patch in robot.patches.values()
        if patch.kind != "grasp" and robot.frame(patch.link)[0] in bodies
        for point in patch.p + _spread(patch.points) @ patch.R.T
    ]
    for _, (body, offset), point in places:
        solids.append(solid(Sphere(POINT), np.eye(3), offset[:9].reshape(3, 3) @ point + offset[9:]))
        bodies.append(body)
    points = range(len(links), len(bodies))
    pairs = [(i, j) for j in points for i in range(len(links)) if bodies[i] == bodies[j]]
    if not pairs:
        return frozenset()
    found, values = np.zeros(len(pairs), np.int64), np.zeros((len(pairs), PAIR_SIZE))
    space, margins = new_scratch(robot, len(solids), len(pairs)), np.full(len(pairs), STANDS_OUT - POINT)
    count = fill_distances(
        robot.tree, pack(solids, bodies), frozen(np.array(pairs)), margins, robot.neutral(), space, found, values
    )
    flush = {places[pairs[p][1] - len(links)][0] for p in found[:count]}
    return frozenset(name for name, _, _ in places) - flush


def _spread(corners: np.ndarray) -> np.ndarray:
    """Return points all over a polygon (k,3): its corners, the middles of its edges, its own, and halfway there."""
    outline = np.vstack([corners, 0.5 * (corners + np.roll(corners, -1, axis=0))])
    middle = corners.mean(axis=0)
    return np.vstack([outline, 0.5 * (outline + middle), middle])


def new_scratch(robot: Robot, shapes: int, pairs: int) -> Scratch:
    """Allocate the scratch space for a robot and numbers of shapes and pairs."""
    return Scratch(workspace(robot.tree), np.zeros((shapes, 12)), np.zeros(pairs), scratch())
