"""Collision solids of robot and scene, candidate pairs, and a monitor of their minimum distances.

Only the certificate uses them. The solids come from the robot's record and description, the distances from
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
"""Number of random postures in which pairs of links are tested for permanent contact. All pairs are tested in the first
few only; pairs that touch in all of these are tested in the others too."""

WORLD = -1
"""Owner of the fixed solids of the environment."""


class Solids(NamedTuple):
    """Solids, their owners, and candidate pairs.

    Parameters
    ----------
    solids : S solids, each in the frame of its owner.
    owner : (S,) index of the link; of an object, the number of links plus its index; otherwise WORLD.
    names : names of the link, surface, bar, obstacle or object of each solid.
    pairs : (P, 2) indices of the solids of each pair; the first solid is on the robot.
    bodies : (L,) first link to which each link is rigidly connected.
    supports : names of the solids that a patch on a support touches, by the name of the support: all surfaces in its
        plane, or, for a surface of an object, the object.
    patches : index of the link of each patch, by the name of the patch.
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
        """Distance (O,) of the farthest point of each link and object from its origin, m; 0 for the world (last)."""
        reach = np.zeros(len(self.bodies) + self.objects + 1)
        for owner, solid in zip(self.owner, self.solids, strict=True):
            if owner != WORLD:
                reach[owner] = max(reach[owner], solid.reach)
        return reach

    @property
    def between_links(self) -> np.ndarray:
        """Mask (P,) of the pairs of two links."""
        other = self.owner[self.pairs[:, 1]]
        return np.asarray((other >= 0) & (other < len(self.bodies)))


def convex_solid(shape: Shape) -> Convex:
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
    supports |= {surface.name: frozenset({item.name}) for item in environment.objects for surface in item.surfaces}
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
    """Return the collision solids of all links in the frames of the links, and the index of the link of each solid."""
    solids, owner = [], []
    for i, link in enumerate(record.links):
        for geometry in robot.geometry.get(link.name, ()):
            if geometry.role != "visual":
                solids.append(convex_solid(geometry.shape).at(np.asarray(geometry.R), np.asarray(geometry.p)))
                owner.append(i)
    return solids, owner


def rigid_bodies(record: RobotRecord) -> np.ndarray:
    """Return the first link to which fixed and locked joints connect each link, (L,)."""
    bodies = np.arange(len(record.links))
    for joint in record.joints:
        if joint.kind == "fixed" or joint.coordinate < 0:
            bodies[joint.child] = bodies[joint.parent]
    return bodies


def _candidate_pairs(robot: Robot, record: RobotRecord, owner: list[int], bodies: np.ndarray) -> list[tuple[int, int]]:
    """Return the pairs of solids of links with more than one joint between them, without ignored pairs."""
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
    """Return the names of the links of a pair of solids."""
    return frozenset(record.links[owner[i]].name for i in pair)


class _RobotKey:
    """Cache key of a robot: robots read from the same files, with the same ignored pairs, are equal."""

    def __init__(self, robot: Robot, record: RobotRecord):
        self.robot, self.record, self.key = robot, record, (robot_identity(robot) or id(robot), robot.collision_ignore)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _RobotKey) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@lru_cache(maxsize=32)
def _always_touching(key: _RobotKey) -> frozenset[frozenset[str]]:
    """Return the names of the pairs of links that touch in every one of ``POSTURE_SAMPLES`` random postures."""
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
        is_touching = ~(signed_distances(a, b, np.full(len(k), GAP), compute_depth=False).lower > 0.0)
        indices = np.array([i for i, name in enumerate(names) if name in remaining])
        for name in tuple(remaining):
            columns = [c for c, i in enumerate(indices) if names[i] == name]
            if not is_touching.reshape(len(rows), -1)[:, columns].any(axis=1).all():
                remaining.discard(name)
        if not remaining:
            break
    return frozenset(remaining)


def environment_solids(environment: Environment, links: int) -> Iterator[tuple[str, int, Convex]]:
    """Yield name, owner and solid of every surface, bar, obstacle and object; that of an object is in its own frame."""
    for surface in environment.surfaces:
        yield surface.name, WORLD, _surface_solid(surface)
    for bar in environment.bars:
        yield bar.name, WORLD, _bar_solid(bar)
    for obstacle in environment.obstacles:
        yield obstacle.name, WORLD, convex_solid(obstacle.shape).at(obstacle.R, obstacle.p)
    for i, item in enumerate(environment.objects):
        yield item.name, links + i, convex_solid(item.shape)


def _surface_solid(surface: Surface) -> Convex:
    """Return the prism below a surface, world axes."""
    top = np.column_stack([surface.polygon, np.zeros(len(surface.polygon))])
    return Convex(np.concatenate([top, top - [0.0, 0.0, surface.thickness]])).at(surface.R, surface.p)


def _bar_solid(bar: Bar) -> Convex:
    """Return the cylinder of a bar, world axes."""
    return Convex(np.asarray(bar.ends, float), disc=bar.radius, axis=bar.direction)


AllowedContacts = frozenset[tuple[str, str]]
"""Names (patch, support) of the contacts in which a link may touch a support."""


class Overlap(NamedTuple):
    """An overlapping pair: maximum depth (m), its sample, and the first sample."""

    depth: float
    worst: int
    first: int


class ClearanceMonitor:
    """Monitor of the minimum distance, and of overlaps beyond the tolerance.

    Parameters
    ----------
    solids : solids and their candidate pairs.
    tolerance : a pair counts as overlapping if it overlaps by more than is allowed plus this tolerance, m.

    Attributes
    ----------
    min_distance, closest : smallest distance between solids that must not touch (m); its pair and sample.
    overlaps : the overlaps found, by pair.
    """

    def __init__(self, solids: Solids, tolerance: float):
        self.solids, self.tolerance = solids, tolerance
        self.min_distance, self.closest = np.inf, (NONE, NONE)
        self.overlaps: dict[int, Overlap] = {}
        i, j = solids.pairs.T if len(solids.pairs) else np.zeros((2, 0), int)
        self._bounds = [solid.bounds for solid in solids.solids]
        self._radius = np.array([radius for _, radius in self._bounds])
        self._radius_sum = self._radius[i] + self._radius[j]
        self._facets, self._rods = _facets(solids), _rods(solids)
        self._allowed_overlaps: dict[AllowedContacts, np.ndarray] = {}
        body = solids.bodies[solids.owner[i]]
        self._body_and_support = [(int(b), solids.names[k]) for b, k in zip(body, j.tolist(), strict=True)]

    def name(self, pair: int) -> str:
        """Return the names of a pair as text."""
        i, j = self.solids.pairs[pair]
        return f"{self.solids.names[i]} and {self.solids.names[j]}"

    def allowed_overlap(self, contacts: AllowedContacts) -> np.ndarray:
        """Return the allowed overlap (P,) of each pair, m.

        All links of a rigid body may penetrate the supports of its patches: all surfaces in the plane of the support,
        or the object that the surface belongs to.
        """
        if contacts not in self._allowed_overlaps:
            allowed = {
                (int(self.solids.bodies[self.solids.patches[patch]]), support)
                for patch, name in contacts
                for support in self.solids.supports.get(name, (name,))
            }
            can_overlap = np.array([key in allowed for key in self._body_and_support], bool)
            self._allowed_overlaps[contacts] = np.where(
                can_overlap & ~self.solids.between_links, SUPPORT_PENETRATION, 0.0
            )
        return self._allowed_overlaps[contacts]

    def check_all(
        self, R: np.ndarray, p: np.ndarray, allowed: np.ndarray, slack: np.ndarray, samples: np.ndarray
    ) -> np.ndarray:
        """Check all pairs at K samples; return lower bounds of their distances (K, P), m.

        Parameters
        ----------
        R, p : (K, owners + 1, 3, 3), (K, owners + 1, 3) poses of links, objects, and the world (last).
        allowed : (K, P) allowed overlap of each pair, m.
        slack : (K, P) bounds are refined until the distance exceeds ``slack - allowed``, m.
        samples : (K,) indices of the samples.
        """
        lower = self._lower_bounds(R, p)
        unresolved = lower < slack - allowed
        no_overlap = allowed == 0.0
        if no_overlap.any():
            # nearest pairs first: with a small minimum distance most of the others need no refinement
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
        """Check M pairs, each at its own sample; return lower bounds of their distances (M,), m.

        Parameters
        ----------
        R, p : (M, owners + 1, 3, 3), (M, owners + 1, 3) poses as in ``check_all``.
        allowed, slack : (M,) as in ``check_all``.
        pair, samples : (M,) index of the pair, and of the sample.
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
        """Return the placed solids of pairs ``pair`` (M,) at the poses ``k`` (M,)."""
        indices = self.solids.pairs[pair].T
        owner = self.solids.owner[indices]
        a, b = (Placed(self.solids.solids, w, R[k, o], p[k, o]) for w, o in zip(indices, owner, strict=True))
        return a, b

    def _lower_bounds(self, R: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Return lower bounds (K, P) of distances: from bounding balls, and from facets and axes of fixed solids."""
        owner, (i, j) = self.solids.owner, self.solids.pairs.T
        centres = np.stack(
            [R[:, index] @ centre + p[:, index] for index, (centre, _) in zip(owner, self._bounds, strict=True)], axis=1
        )
        between = centres.take(i, axis=1) - centres.take(j, axis=1)  # several times as fast as an index, and a norm
        lower = np.sqrt(np.einsum("kpi,kpi->kp", between, between)) - self._radius_sum
        for fixed, facets in self._facets.items():
            columns = np.flatnonzero(j == fixed)
            height = (centres[:, i[columns]] @ facets[:, :3].T + facets[:, 3]).max(axis=2)
            lower[:, columns] = np.maximum(lower[:, columns], height - self._radius[i[columns]])
        for fixed, (start, axis, radius) in self._rods.items():
            columns = np.flatnonzero(j == fixed)
            arm = centres[:, i[columns]] - start
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
        """Improve the bounds ``lower`` (K, P) of some pairs in place; ``items`` are flat indices into it."""
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
        """Measure the distances of pairs ``pair`` at poses ``k``; update ``lower``, minimum distance and overlaps.

        All arrays are (M,); ``required`` is the distance at which the iteration of a pair may stop.
        """
        allowed_distance = np.where(allowed > 0.0, -allowed, np.inf)
        bounds = signed_distances(*self._placed(R, p, k, pair), required, sufficient_overlap=allowed_distance)
        lower[:] = np.maximum(lower, bounds.lower)
        overlapping = bounds.lower < -allowed - self.tolerance
        relevant = (allowed == 0.0) | overlapping
        value = np.where(relevant, bounds.upper, np.inf)
        if len(value) and value.min() < self.min_distance:
            best = int(np.argmin(value))
            self.min_distance, self.closest = float(value[best]), (int(pair[best]), int(samples[best]))
        for m in np.flatnonzero(overlapping).tolist():
            earlier = self.overlaps.get(int(pair[m]))
            sample, depth = int(samples[m]), -float(bounds.upper[m])
            if earlier is None:
                self.overlaps[int(pair[m])] = Overlap(depth, sample, sample)
            else:
                is_deeper = depth > earlier.depth
                self.overlaps[int(pair[m])] = Overlap(
                    max(depth, earlier.depth), sample if is_deeper else earlier.worst, min(sample, earlier.first)
                )


def _facets(solids: Solids) -> dict[int, np.ndarray]:
    """Return the facets (F, 4) of fixed polyhedra, by index of the solid: rows (n, d) with ``n x + d > 0`` outside."""
    found = {}
    for s, (solid, owner) in enumerate(zip(solids.solids, solids.owner, strict=True)):
        if owner == WORLD and not solid.disc and not solid.ball:
            try:
                found[s] = ConvexHull(solid.corners).equations
            except QhullError:
                continue
    return found


def _rods(solids: Solids) -> dict[int, tuple[np.ndarray, np.ndarray, float]]:
    """Return start (3,), axis (3,) and radius of a capsule around each fixed solid with two corners, by index."""
    return {
        s: (solid.corners[0], solid.corners[1] - solid.corners[0], solid.disc + solid.ball)
        for s, (solid, owner) in enumerate(zip(solids.solids, solids.owner, strict=True))
        if owner == WORLD and len(solid.corners) == 2
    }
