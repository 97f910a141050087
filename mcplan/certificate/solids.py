"""What may collide: the solids of a robot's links and of what is around it, and which pairs of them could meet.

Written for the certificate alone, from the robot's record and description: see `mcplan.certificate.separation`.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from mcplan.certificate.independent import Mechanism
from mcplan.certificate.separation import GAP, Convex, Placed, signed_distances
from mcplan.errors import InputError
from mcplan.record.records import RobotRecord
from mcplan.robot.description import Box, Capsule, Cylinder, MeshShape, Shape, Sphere
from mcplan.robot.robot import Robot
from mcplan.robot.robot_file import robot_identity
from mcplan.scene.environment import Bar, Environment, Surface, coplanar_surfaces

SAMPLES, FIRST = 300, 5
"""Random postures in which a pair of links must touch, without exception, to be one that always touches; all pairs are
tried in the first few of them, and those that are left in all."""

WORLD = -1
"""Owner of what stands fast."""


class Solids(NamedTuple):
    """Solids, who carries each, and the pairs that could meet.

    Parameters
    ----------
    solids : in the frame of their owner.
    owner : (S,) index of a link; the number of links and more for objects; WORLD.
    names : of the link, surface, bar, obstacle or object.
    pairs : (P, 2) indices of solids; the first is on the robot.
    bodies : (L,) for every link the first of those that it is rigidly connected to.
    supports : by the name of what is stood on, the names of the solids that this touches: all surfaces in its plane; of
        a surface of an object the object.
    """

    solids: list[Convex]
    owner: np.ndarray
    names: list[str]
    pairs: np.ndarray
    bodies: np.ndarray
    supports: dict[str, frozenset[str]]


def convex(shape: Shape) -> Convex:
    """Return a shape in its own frame; a mesh stands for its convex hull.

    Raises
    ------
    InputError
        The shape is of no known kind.
    """
    ends = np.array([[0.0, 0.0, -0.5], [0.0, 0.0, 0.5]])
    if isinstance(shape, Sphere):
        return Convex(np.zeros((1, 3)), ball=shape.radius)
    if isinstance(shape, Capsule):
        return Convex(ends * shape.length, ball=shape.radius)
    if isinstance(shape, Cylinder):
        return Convex(ends * shape.length, disc=shape.radius)
    if isinstance(shape, Box):
        return Convex(np.array([(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]) * shape.size)
    if isinstance(shape, MeshShape):
        points = np.asarray(shape.vertices, float)
        try:
            return Convex(points[ConvexHull(points).vertices])
        except (QhullError, ValueError):  # flat: all of its points are corners
            return Convex(np.unique(points, axis=0))
    raise InputError(f"{type(shape).__name__} is no shape that can collide")


def gather(robot: Robot, record: RobotRecord, environment: Environment) -> Solids:
    """Return the solids of a robot and of what is around it."""
    own, owner = link_solids(robot, record)
    around = list(environment_solids(environment, len(record.links)))
    bodies = rigid_bodies(record)
    met = _always_touching(_Known(robot, record))
    pairs = [pair for pair in _separate(robot, record, owner, bodies) if _names(record, owner, pair) not in met]
    stands = bodies == 0 if robot.fixed else np.zeros(len(bodies), bool)  # what is fixed to the world, like the world
    pairs += [
        (i, len(own) + j)
        for i in range(len(own))
        for j, (_, who, _) in enumerate(around)
        if not (stands[owner[i]] and who == WORLD)
    ]
    supports = {name: frozenset({name}) for name, _, _ in around} | coplanar_surfaces(environment)
    supports |= {surface.name: frozenset({thing.name}) for thing in environment.objects for surface in thing.surfaces}
    return Solids(
        [*own, *(solid for _, _, solid in around)],
        np.array([*owner, *(who for _, who, _ in around)], int),
        [*(record.links[i].name for i in owner), *(name for name, _, _ in around)],
        np.array(pairs, int).reshape(-1, 2),
        bodies,
        supports,
    )


def link_solids(robot: Robot, record: RobotRecord) -> tuple[list[Convex], list[int]]:
    """Return what collides of every link, in the link's frame, and the index of its link."""
    solids, owner = [], []
    for i, link in enumerate(record.links):
        for geometry in robot.geometry.get(link.name, ()):
            if geometry.role != "visual":
                solids.append(convex(geometry.shape).at(np.asarray(geometry.R), np.asarray(geometry.p)))
                owner.append(i)
    return solids, owner


def rigid_bodies(record: RobotRecord) -> np.ndarray:
    """Return for every link (L,) the first of those that fixed and locked joints connect it to."""
    bodies = np.arange(len(record.links))
    for joint in record.joints:
        if joint.kind == "fixed" or joint.coordinate < 0:
            bodies[joint.child] = bodies[joint.parent]
    return bodies


def _separate(robot: Robot, record: RobotRecord, owner: list[int], bodies: np.ndarray) -> list[tuple[int, int]]:
    """Return the pairs of solids of the robot with more than one joint between them, without those that it ignores."""
    above = _hung_on(record)
    beside = {frozenset((int(bodies[above[j.child]]), int(bodies[j.child]))) for j in record.joints}
    return [
        (i, k)
        for i in range(len(owner))
        for k in range(i + 1, len(owner))
        if bodies[owner[i]] != bodies[owner[k]]
        and frozenset((int(bodies[owner[i]]), int(bodies[owner[k]]))) not in beside
        and _names(record, owner, (i, k)) not in robot.collision_ignore
    ]


def _hung_on(record: RobotRecord) -> dict[int, int]:
    """Return the link that each link's joint hangs it on; the three parts of a ball joint are one joint."""
    above: dict[int, int] = {}
    for joint in record.joints:
        above[joint.child] = above[joint.parent] if joint.part in (1, 2) else joint.parent
    return above


def _names(record: RobotRecord, owner: list[int], pair: tuple[int, int]) -> frozenset[str]:
    return frozenset(record.links[owner[i]].name for i in pair)


class _Known:
    """A robot that equals another one of the same files."""

    def __init__(self, robot: Robot, record: RobotRecord):
        self.robot, self.record, self.key = robot, record, (robot_identity(robot) or id(robot), robot.collision_ignore)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@lru_cache(maxsize=32)
def _always_touching(known: _Known) -> frozenset[frozenset[str]]:
    """Return the pairs of links that touch in every one of ``SAMPLES`` random postures."""
    robot, record = known.robot, known.record
    solids, owner = link_solids(robot, record)
    pairs = np.array(_separate(robot, record, owner, rigid_bodies(record)), int).reshape(-1, 2)
    if not len(pairs):
        return frozenset()
    n = len(record.coordinates)
    q = np.zeros((SAMPLES, 7 + n))
    q[:, 3] = 1.0
    low, high = np.maximum(record.limit("lower"), -np.pi), np.minimum(record.limit("upper"), np.pi)
    q[:, 7:] = np.random.default_rng(0).uniform(low, high, (SAMPLES, n))
    R, p = Mechanism(record).poses(q)
    names = [_names(record, owner, (i, j)) for i, j in pairs.tolist()]
    left = set(names)
    for rows in (np.arange(FIRST), np.arange(FIRST, SAMPLES)):
        tried = np.array([name in left for name in names])
        k, x = np.repeat(rows, tried.sum()), np.tile(pairs[tried], (len(rows), 1))
        of = np.array(owner)[x]
        a, b = (Placed(solids, x[:, side], R[k, of[:, side]], p[k, of[:, side]]) for side in (0, 1))
        touch = ~(signed_distances(a, b, np.full(len(k), GAP), deep=False).lower > 0.0)
        mine = np.array([i for i, name in enumerate(names) if name in left])
        for name in tuple(left):
            columns = [c for c, i in enumerate(mine) if names[i] == name]
            if not touch.reshape(len(rows), -1)[:, columns].any(axis=1).all():
                left.discard(name)
        if not left:
            break
    return frozenset(left)


def environment_solids(environment: Environment, links: int) -> Iterator[tuple[str, int, Convex]]:
    """Yield name, owner and solid of everything in the environment; an object's is in the object's frame."""
    for surface in environment.surfaces:
        yield surface.name, WORLD, _slab(surface)
    for bar in environment.bars:
        yield bar.name, WORLD, _rod(bar)
    for obstacle in environment.obstacles:
        yield obstacle.name, WORLD, convex(obstacle.shape).at(obstacle.R, obstacle.p)
    for i, thing in enumerate(environment.objects):
        yield thing.name, links + i, convex(thing.shape)


def _slab(surface: Surface) -> Convex:
    """Return the prism below a surface, world axes."""
    top = np.column_stack([surface.polygon, np.zeros(len(surface.polygon))])
    return Convex(np.concatenate([top, top - [0.0, 0.0, surface.thickness]])).at(surface.R, surface.p)


def _rod(bar: Bar) -> Convex:
    """Return the cylinder of a bar, world axes."""
    return Convex(np.asarray(bar.ends, float), disc=bar.radius, axis=bar.direction)
