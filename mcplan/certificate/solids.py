"""Collision solids of robot and scene, candidate pairs, and a monitor of their minimum distances.

Only for the certificate, from the robot's record and description, with the distances of
`mcplan.certificate.separation`. Planner and controller use other shapes and algorithms.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from mcplan.certificate.independent import Mechanism
from mcplan.certificate.recomputed_run import NONE
from mcplan.certificate.separation import GAP, Convex, Placed, signed_distances
from mcplan.certificate.tolerances import SUPPORT_PENETRATION
from mcplan.errors import InputError
from mcplan.record.records import RobotRecord
from mcplan.robot.description import Box, Capsule, Cylinder, MeshShape, Shape, Sphere
from mcplan.robot.robot import Robot
from mcplan.robot.robot_file import robot_identity
from mcplan.scene.environment import Bar, Environment, Surface, coplanar_surfaces

POSTURE_SAMPLES, FIRST_SAMPLES = 300, 5
"""Random postures for finding pairs of links that always touch; all pairs are tested in the first few only."""

WORLD = -1
"""Owner of fixed solids."""


class Solids(NamedTuple):
    """Solids, their owners, and candidate pairs.

    Parameters
    ----------
    solids : in the frame of their owner.
    owner : (S,) index of a link; the number of links and more for objects; WORLD.
    names : of the link, surface, bar, obstacle or object.
    pairs : (P, 2) indices of solids; the first is on the robot.
    bodies : (L,) for every link, the first link that it is rigidly connected to.
    supports : by the name of a support, the names of the solids in contact with a patch on it: all surfaces in its
        plane; for a surface of an object, the object.
    patches : by the name of a patch, the index of its link.
    objects : number of objects.
    """

    solids: list[Convex]
    owner: np.ndarray
    names: list[str]
    pairs: np.ndarray
    bodies: np.ndarray
    supports: dict[str, frozenset[str]]
    patches: dict[str, int]
    objects: int

    @property
    def reach(self) -> np.ndarray:
        """Distance of the farthest point of each link and object, and of the world (0), from its origin, (O,) m."""
        reach = np.zeros(len(self.bodies) + self.objects + 1)
        for who, solid in zip(self.owner, self.solids, strict=True):
            if who != WORLD:
                reach[who] = max(reach[who], solid.reach)
        return reach

    @property
    def between_links(self) -> np.ndarray:
        """Mask (P,) of the pairs of two links."""
        other = self.owner[self.pairs[:, 1]]
        return np.asarray((other >= 0) & (other < len(self.bodies)))


def convex(shape: Shape) -> Convex:
    """Return a shape as a convex solid in its own frame; a mesh as its convex hull.

    Raises
    ------
    InputError
        The kind of the shape is unknown.
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
    raise InputError(f"{type(shape).__name__} is not a collision shape")


def gather_solids(robot: Robot, record: RobotRecord, environment: Environment) -> Solids:
    """Return the solids of a robot and of its environment."""
    link_parts, owner = link_solids(robot, record)
    scene_parts = list(environment_solids(environment, len(record.links)))
    bodies = rigid_bodies(record)
    touching = _always_touching(_RobotKey(robot, record))
    pairs = [
        pair for pair in _candidate_pairs(robot, record, owner, bodies) if _names(record, owner, pair) not in touching
    ]
    fixed_links = bodies == 0 if robot.fixed else np.zeros(len(bodies), bool)  # to the world
    pairs += [
        (i, len(link_parts) + j)
        for i in range(len(link_parts))
        for j, (_, body, _) in enumerate(scene_parts)
        if not (fixed_links[owner[i]] and body == WORLD)
    ]
    supports = {name: frozenset({name}) for name, _, _ in scene_parts} | coplanar_surfaces(environment)
    supports |= {surface.name: frozenset({thing.name}) for thing in environment.objects for surface in thing.surfaces}
    return Solids(
        [*link_parts, *(solid for _, _, solid in scene_parts)],
        np.array([*owner, *(body for _, body, _ in scene_parts)], int),
        [*(record.links[i].name for i in owner), *(name for name, _, _ in scene_parts)],
        np.array(pairs, int).reshape(-1, 2),
        bodies,
        supports,
        {patch.name: patch.link for patch in record.patches},
        len(environment.objects),
    )


def link_solids(robot: Robot, record: RobotRecord) -> tuple[list[Convex], list[int]]:
    """Return the collision solids of all links, in the frame of their link, and the index of their link."""
    solids, owner = [], []
    for i, link in enumerate(record.links):
        for geometry in robot.geometry.get(link.name, ()):
            if geometry.role != "visual":
                solids.append(convex(geometry.shape).at(np.asarray(geometry.R), np.asarray(geometry.p)))
                owner.append(i)
    return solids, owner


def rigid_bodies(record: RobotRecord) -> np.ndarray:
    """Return for every link (L,) the first link that fixed and locked joints connect it to."""
    bodies = np.arange(len(record.links))
    for joint in record.joints:
        if joint.kind == "fixed" or joint.coordinate < 0:
            bodies[joint.child] = bodies[joint.parent]
    return bodies


def _candidate_pairs(robot: Robot, record: RobotRecord, owner: list[int], bodies: np.ndarray) -> list[tuple[int, int]]:
    """Return the pairs of solids of the robot with more than one joint between them, without ignored pairs."""
    parents = _parent_links(record)
    neighbours = {frozenset((int(bodies[parents[j.child]]), int(bodies[j.child]))) for j in record.joints}
    return [
        (i, k)
        for i in range(len(owner))
        for k in range(i + 1, len(owner))
        if bodies[owner[i]] != bodies[owner[k]]
        and frozenset((int(bodies[owner[i]]), int(bodies[owner[k]]))) not in neighbours
        and _names(record, owner, (i, k)) not in robot.collision_ignore
    ]


def _parent_links(record: RobotRecord) -> dict[int, int]:
    """Return the parent of each link; the three parts of a ball joint count as one joint."""
    parents: dict[int, int] = {}
    for joint in record.joints:
        parents[joint.child] = parents[joint.parent] if joint.part in (1, 2) else joint.parent
    return parents


def _names(record: RobotRecord, owner: list[int], pair: tuple[int, int]) -> frozenset[str]:
    return frozenset(record.links[owner[i]].name for i in pair)


class _RobotKey:
    """Cache key of a robot: two robots read from the same files are equal."""

    def __init__(self, robot: Robot, record: RobotRecord):
        self.robot, self.record, self.key = robot, record, (robot_identity(robot) or id(robot), robot.collision_ignore)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _RobotKey) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@lru_cache(maxsize=32)
def _always_touching(key: _RobotKey) -> frozenset[frozenset[str]]:
    """Return the pairs of links that touch in every one of ``SAMPLES`` random postures."""
    robot, record = key.robot, key.record
    solids, owner = link_solids(robot, record)
    pairs = np.array(_candidate_pairs(robot, record, owner, rigid_bodies(record)), int).reshape(-1, 2)
    if not len(pairs):
        return frozenset()
    n = len(record.coordinates)
    q = np.zeros((POSTURE_SAMPLES, 7 + n))
    q[:, 3] = 1.0
    low, high = np.maximum(record.limit("lower"), -np.pi), np.minimum(record.limit("upper"), np.pi)
    q[:, 7:] = np.random.default_rng(0).uniform(low, high, (POSTURE_SAMPLES, n))
    R, p = Mechanism(record).poses(q)
    names = [_names(record, owner, (i, j)) for i, j in pairs.tolist()]
    remaining = set(names)
    for rows in (np.arange(FIRST_SAMPLES), np.arange(FIRST_SAMPLES, POSTURE_SAMPLES)):
        selected = np.array([name in remaining for name in names])
        k, selected_pairs = np.repeat(rows, selected.sum()), np.tile(pairs[selected], (len(rows), 1))
        owners = np.array(owner)[selected_pairs]
        a, b = (
            Placed(solids, selected_pairs[:, side], R[k, owners[:, side]], p[k, owners[:, side]]) for side in (0, 1)
        )
        touch = ~(signed_distances(a, b, np.full(len(k), GAP), deep=False).lower > 0.0)
        indices = np.array([i for i, name in enumerate(names) if name in remaining])
        for name in tuple(remaining):
            columns = [c for c, i in enumerate(indices) if names[i] == name]
            if not touch.reshape(len(rows), -1)[:, columns].any(axis=1).all():
                remaining.discard(name)
        if not remaining:
            break
    return frozenset(remaining)


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


Touches = frozenset[tuple[str, str]]
"""Pairs of patch and support, by name, that may touch."""


class Overlap(NamedTuple):
    """An overlapping pair: maximum depth (m), its sample, and the first sample."""

    depth: float
    worst: int
    first: int


class ClearanceMonitor:
    """Monitor of the minimum distance, and of overlaps beyond the tolerance.

    Parameters
    ----------
    solids : with their candidate pairs.
    tolerance : overlap up to which a pair does not count as overlapping, m.

    Attributes
    ----------
    min_distance, closest : smallest distance of a pair that may not touch (m), and its pair and sample.
    overlaps : by pair.
    """

    def __init__(self, solids: Solids, tolerance: float):
        self.solids, self.tolerance = solids, tolerance
        self.min_distance, self.closest = np.inf, (NONE, NONE)
        self.overlaps: dict[int, Overlap] = {}
        i, j = solids.pairs.T if len(solids.pairs) else np.zeros((2, 0), int)
        self._bounds = [solid.bounds for solid in solids.solids]
        self._radius = np.array([radius for _, radius in self._bounds])
        self._sum = self._radius[i] + self._radius[j]
        self._facets, self._rods = _facets(solids), _rods(solids)
        self._allowed_overlaps: dict[Touches, np.ndarray] = {}
        body = solids.bodies[solids.owner[i]]
        self._of_support = [(int(b), solids.names[k]) for b, k in zip(body, j.tolist(), strict=True)]

    def name(self, pair: int) -> str:
        """Return a pair as text."""
        i, j = self.solids.pairs[pair]
        return f"{self.solids.names[i]} and {self.solids.names[j]}"

    def allowed_overlap(self, touches: Touches) -> np.ndarray:
        """Return the allowed overlap (P,) of each pair: links of a rigid body may penetrate the support of its patch.

        The support is the surface's object, or all surfaces in its plane.
        """
        if touches not in self._allowed_overlaps:
            allowed = {
                (int(self.solids.bodies[self.solids.patches[patch]]), support)
                for patch, name in touches
                for support in self.solids.supports.get(name, (name,))
            }
            can_overlap = np.array([key in allowed for key in self._of_support], bool)
            self._allowed_overlaps[touches] = np.where(
                can_overlap & ~self.solids.between_links, SUPPORT_PENETRATION, 0.0
            )
        return self._allowed_overlaps[touches]

    def check_all(
        self, R: np.ndarray, p: np.ndarray, allowed: np.ndarray, slack: np.ndarray, samples: np.ndarray
    ) -> np.ndarray:
        """Check all pairs; return lower bounds of their distances (K, P).

        Parameters
        ----------
        R, p : (K, owners + 1, 3, 3), (K, owners + 1, 3) poses; the last is that of the world.
        allowed : (K, P) allowed overlap of each pair, m.
        slack : (K, P) required lower bound of the distance above ``-allowed``, m.
        samples : (K,) their indices.
        """
        lower = self._lower_bounds(R, p)
        unresolved = lower < slack - allowed
        no_overlap = allowed == 0.0
        if no_overlap.any():
            # nearest first: once the minimum distance is known, most others can be skipped
            distances = np.where(no_overlap, lower, np.inf).ravel()
            nearest = np.argpartition(distances, min(200, distances.size - 1))[:200]
            nearest = nearest[distances[nearest] < self.min_distance]
            self._refine(R, p, allowed, nearest, np.full(len(nearest), np.inf), lower, samples)
            unresolved |= no_overlap & (lower < self.min_distance)
            unresolved[np.unravel_index(nearest, unresolved.shape)] = False
        others = np.flatnonzero(unresolved)
        required = (slack - allowed).ravel()[others]
        required = np.where(no_overlap.ravel()[others], np.maximum(required, self.min_distance), required)
        self._refine(R, p, allowed, others, required, lower, samples)
        return lower

    def check_pairs(
        self,
        R: np.ndarray,
        p: np.ndarray,
        allowed: np.ndarray,
        pair: np.ndarray,
        samples: np.ndarray,
        slack: np.ndarray | float = 0.0,
    ) -> np.ndarray:
        """Check some pairs; return lower bounds of their distances (M,).

        Parameters
        ----------
        R, p : (M, owners + 1, 3, 3), (M, owners + 1, 3) poses.
        allowed, slack : (M,) as in ``check_all``.
        pair, samples : (M,) indices of pairs and samples.
        """
        lower = np.full(len(pair), -np.inf)
        required = np.where(allowed == 0.0, np.maximum(self.min_distance, 0.0), -allowed) + slack
        self._measure(R, p, np.arange(len(pair)), pair, allowed, required, lower, samples)
        return lower

    def distances(self, R: np.ndarray, p: np.ndarray, max_distance: float) -> np.ndarray:
        """Return signed distances (K, P) of all pairs at poses as in ``check_all``, clipped to ``max_distance`` (m)."""
        found = np.full((len(R), len(self.solids.pairs)), max_distance)
        k, pair = np.nonzero(self._lower_bounds(R, p) < max_distance)
        a, b = self._placed(R, p, k, pair)
        found[k, pair] = np.minimum(signed_distances(a, b, np.full(len(k), max_distance)).upper, max_distance)
        return found

    def _placed(self, R: np.ndarray, p: np.ndarray, k: np.ndarray, pair: np.ndarray) -> tuple[Placed, Placed]:
        """Return both solids of some pairs at some samples."""
        indices = self.solids.pairs[pair].T
        owner = self.solids.owner[indices]
        a, b = (Placed(self.solids.solids, w, R[k, o], p[k, o]) for w, o in zip(indices, owner, strict=True))
        return a, b

    def _lower_bounds(self, R: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Return lower bounds of distances (K, P) from bounding balls, and from facets and axes of fixed solids."""
        owner, (i, j) = self.solids.owner, self.solids.pairs.T
        middles = np.stack(
            [R[:, who] @ middle + p[:, who] for who, (middle, _) in zip(owner, self._bounds, strict=True)], axis=1
        )
        lower = np.linalg.norm(middles[:, i] - middles[:, j], axis=2) - self._sum
        for fixed, facets in self._facets.items():
            columns = np.flatnonzero(j == fixed)
            height = (middles[:, i[columns]] @ facets[:, :3].T + facets[:, 3]).max(axis=2)
            lower[:, columns] = np.maximum(lower[:, columns], height - self._radius[i[columns]])
        for fixed, (start, axis, radius) in self._rods.items():
            columns = np.flatnonzero(j == fixed)
            arm = middles[:, i[columns]] - start
            share = np.clip(arm @ axis / (axis @ axis), 0.0, 1.0)
            distance = np.linalg.norm(arm - share[..., None] * axis, axis=2) - radius
            lower[:, columns] = np.maximum(lower[:, columns], distance - self._radius[i[columns]])
        return np.asarray(lower)

    def _refine(
        self,
        R: np.ndarray,
        p: np.ndarray,
        allowed: np.ndarray,
        items: np.ndarray,
        required: np.ndarray,
        lower: np.ndarray,
        samples: np.ndarray,
    ) -> None:
        """Improve bounds of some of (K, P) pairs, flat indices ``items``."""
        if len(items):
            k, pair = np.unravel_index(items, lower.shape)
            flat = lower.ravel()[items]
            self._measure(R, p, k, pair, allowed.ravel()[items], required, flat, samples[k])
            lower[k, pair] = flat

    def _measure(
        self,
        R: np.ndarray,
        p: np.ndarray,
        k: np.ndarray,
        pair: np.ndarray,
        allowed: np.ndarray,
        required: np.ndarray,
        lower: np.ndarray,
        samples: np.ndarray,
    ) -> None:
        found = signed_distances(*self._placed(R, p, k, pair), required)
        lower[:] = np.maximum(lower, found.lower)
        overlapping = found.lower < -allowed - self.tolerance
        relevant = (allowed == 0.0) | overlapping
        value = np.where(relevant, found.upper, np.inf)
        if len(value) and value.min() < self.min_distance:
            best = int(np.argmin(value))
            self.min_distance, self.closest = float(value[best]), (int(pair[best]), int(samples[best]))
        for m in np.flatnonzero(overlapping).tolist():
            earlier = self.overlaps.get(int(pair[m]))
            sample, depth = int(samples[m]), -float(found.upper[m])
            if earlier is None:
                self.overlaps[int(pair[m])] = Overlap(depth, sample, sample)
            else:
                deeper = depth > earlier.depth
                self.overlaps[int(pair[m])] = Overlap(
                    max(depth, earlier.depth), sample if deeper else earlier.worst, min(sample, earlier.first)
                )


def _facets(solids: Solids) -> dict[int, np.ndarray]:
    """Return the facets (F, 4) ``n x + d`` of the fixed polyhedra, by index."""
    found = {}
    for s, (solid, who) in enumerate(zip(solids.solids, solids.owner, strict=True)):
        if who == WORLD and not solid.disc and not solid.ball:
            try:
                found[s] = ConvexHull(solid.corners).equations
            except QhullError:
                continue
    return found


def _rods(solids: Solids) -> dict[int, tuple[np.ndarray, np.ndarray, float]]:
    """Return start, axis (3,) and radius of a capsule around each fixed rod, by index."""
    return {
        s: (solid.corners[0], solid.corners[1] - solid.corners[0], solid.disc + solid.ball)
        for s, (solid, who) in enumerate(zip(solids.solids, solids.owner, strict=True))
        if who == WORLD and len(solid.corners) == 2
    }
