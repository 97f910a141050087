"""Collision model: signed distances between the links of a robot and their environment, as functions of q.

Near the face of a surface (`faces_of`), the controller constrains all corners of a link, not only the nearest point.
With almost parallel faces the nearest point jumps from corner to corner: the link would satisfy the constraint of one
corner by rotating about it, until the next corner is too close.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import local
from typing import NamedTuple

import numpy as np

from mcplan.collision.pairs import protruding_patches, self_pairs
from mcplan.core.bundle import SOUND, check
from mcplan.core.distance.many import fill_distance_rows, fill_distances, find_smallest
from mcplan.core.distance.pair import DISTANCE, NORMAL, PAIR_SIZE, POINT_A, POINT_B
from mcplan.core.distance.path import find_close
from mcplan.core.distance.shape import Shapes, move_shape
from mcplan.core.posture.collision_free import PostureSurroundings
from mcplan.core.whole_body.corner_rows import Faces
from mcplan.errors import InputError
from mcplan.robot.description import Box, Cylinder
from mcplan.robot.link_solids import link_solids, new_scratch
from mcplan.robot.patch import MOUNT
from mcplan.robot.robot import Robot
from mcplan.robot.solid import Solid, hull, pack, solid
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Bar, Environment, Surface, coplanar_surfaces
from mcplan.util.arrays import read_only

ALLOWED_PENETRATION = 0.002
"""Allowed penetration (m) of a link into a support on which one of its patches rests."""


class Pair(NamedTuple):
    """Names of two bodies: a link, and another link or a body of the environment.

    ``in_contact``: whether a patch of the link rests on the other body.
    """

    a: str
    b: str
    in_contact: bool = False

    def __str__(self) -> str:
        return f"{self.a} and {self.b}"


class Distance(NamedTuple):
    """Signed distance of a pair (m), unit normal (3,) from b to a, nearest points (3,) of a and b, in the world."""

    pair: Pair
    distance: float
    normal: np.ndarray
    point_a: np.ndarray
    point_b: np.ndarray


@dataclass(frozen=True, eq=False)
class PairDistances:
    """Pairs within a margin, in the order of the model: ``distance = normal' (point_a - point_b)``.

    Parameters
    ----------
    pairs : names of the k pairs; a link with several shapes occurs once per shape.
    distance : (k,) signed, m.
    normal : (k,3) unit vectors from b to a.
    point_a, point_b : (k,3) nearest points, or the deepest ones where the shapes overlap, m.
    """

    pairs: tuple[Pair, ...]
    distance: np.ndarray
    normal: np.ndarray
    point_a: np.ndarray
    point_b: np.ndarray

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, i: int) -> Distance:
        return Distance(self.pairs[i], float(self.distance[i]), self.normal[i], self.point_a[i], self.point_b[i])

    @property
    def clearance(self) -> np.ndarray:
        """Distance minus the smallest allowed one (k,): 0, or ``-ALLOWED_PENETRATION`` for a link and its support."""
        return self.distance + ALLOWED_PENETRATION * np.array([pair.in_contact for pair in self.pairs], float)


class ConstraintRows(NamedTuple):
    """Linearised distance constraints of k pairs: ``distance + rows @ dq >= 0`` for a small displacement dq (nv,).

    ``distance`` (k,) is the distance minus the smallest allowed one: the clearance, or ``-ALLOWED_PENETRATION`` for a
    link and its support. ``rows`` (k, nv) maps v to its rate, ``pairs`` has the names.
    """

    distance: np.ndarray
    rows: np.ndarray
    pairs: tuple[Pair, ...]


def slab(surface: Surface) -> Solid:
    """Return the solid below a surface: a box if the polygon is a rectangle along its axes, else a prism."""
    low, high = surface.polygon.min(axis=0), surface.polygon.max(axis=0)
    thickness = surface.thickness
    is_on_side = np.isclose(surface.polygon, low, atol=1e-12) | np.isclose(surface.polygon, high, atol=1e-12)
    if len(surface.polygon) == 4 and is_on_side.all():
        centre = np.array([*(low + high) / 2, -thickness / 2])
        size = (high[0] - low[0], high[1] - low[1], thickness)
        return solid(Box(size), surface.R, surface.p + surface.R @ centre)
    top = np.column_stack([surface.polygon, np.zeros(len(surface.polygon))])
    return hull(np.concatenate([top, top - [0, 0, thickness]]), surface.R, surface.p)


def bar_solid(bar: Bar) -> Solid:
    """Return the cylinder of a bar."""
    z = bar.direction
    x = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
    x /= np.linalg.norm(x)
    R = np.column_stack([x, np.cross(z, x), z])
    return solid(Cylinder(bar.radius, bar.length), R, bar.ends.mean(axis=0))


AllowedContact = Contact | tuple[str, str]
"""A contact, or the names of a link and of the body that it may touch."""


class CollisionModel:
    """Collision shapes of a robot and its environment, and the pairs that can collide.

    Link pairs are excluded if the links are neighbours, ignored by the robot, or touch in every configuration. Links
    collide with all obstacles, bars, objects and slabs below surfaces; a fixed base only with objects. A mesh is
    represented by its convex hull. Results do not depend on earlier calls.

    Parameters
    ----------
    robot : Robot
    environment : empty by default

    Attributes
    ----------
    pairs : names of the P pairs of shapes; all results have this order
    indices : (P, 2) indices of the shapes of each pair
    shapes : the packed shapes, objects at their initial poses
    shape_index : index of the shape of each body of the environment, by name
    """

    def __init__(self, robot: Robot, environment: Environment | None = None):
        self.robot = robot
        environment = environment or Environment()
        links, solids, bodies = link_solids(robot)
        environment_solids = dict(_environment_solids(environment))
        self._owner = {s.name: thing.name for thing in environment.objects for s in thing.surfaces}
        self._coplanar = coplanar_surfaces(environment)
        self.shape_index = {name: len(links) + i for i, name in enumerate(environment_solids)}
        self._initial = {
            thing.name: (np.array(thing.R, float), np.array(thing.p, float)) for thing in environment.objects
        }
        self._bodies = {link: robot.frame(link)[0] for link in robot.link_names}
        names = [*links, *environment_solids]
        self.shapes = pack([*solids, *environment_solids.values()], [*bodies, *[-1] * len(environment_solids)])
        object_names = {thing.name for thing in environment.objects}
        environment_pairs = [
            (i, j)
            for i in range(len(links))
            for j in range(len(links), len(names))
            if not (robot.fixed and bodies[i] == 0) or names[j] in object_names  # the base was mounted there on purpose
        ]
        indices = np.concatenate([self_pairs(robot), np.array(environment_pairs, np.int64).reshape(-1, 2)])
        self.indices = read_only(indices)
        self._names = tuple(names)
        self.pairs = tuple(Pair(names[i], names[j]) for i, j in indices)
        self._touching = tuple(pair._replace(in_contact=True) for pair in self.pairs)
        self._of_names: dict[frozenset[str], list[int]] = {}
        self._of_support: dict[tuple[int, str], list[int]] = {}
        for p, (i, j) in enumerate(indices):
            self._of_names.setdefault(frozenset((names[i], names[j])), []).append(p)
            if j >= len(links):
                self._of_support.setdefault((bodies[i], names[j]), []).append(p)
        self._touches_without_link = protruding_patches(robot)
        self._scratch = local()

    def distances(
        self, q, margin: float = 0.1, contacts: Iterable[AllowedContact] = (), objects: Mapping | None = None
    ) -> PairDistances:
        """Return the distances of all pairs nearer than ``margin``.

        Parameters
        ----------
        q : (nq,)
        margin : m
        contacts : contacts, or pairs (link, name), whose ``Pair.in_contact`` is set
        objects : pose (R, p) by name of objects that are not at their initial one
        """
        touching, q = self.pairs_of(contacts), self._checked(q)
        space = self._space()
        count = fill_distances(
            self.robot.tree, self.shapes_at(objects), self.indices, space.margins(margin), q, space.scratch,
            space.found, space.values,
        )  # fmt: skip
        return self._distances(q, space.found[:count], space.values[:count], touching)

    def smallest(
        self,
        q,
        ignore: Iterable[tuple[str, str]] = (),
        contacts: Iterable[AllowedContact] = (),
        objects: Mapping | None = None,
    ) -> Distance | None:
        """Return the pair with the smallest distance, or None.

        A link in contact and its support count only if they overlap by more than ``ALLOWED_PENETRATION``.

        Parameters
        ----------
        q : (nq,)
        ignore : pairs of names to exclude
        contacts : allowed contacts, or pairs (link, name)
        objects : pose (R, p) by name of objects that are not at their initial one
        """
        margins = np.full(len(self.pairs), np.inf)
        touching = self.pairs_of(contacts)
        margins[list(touching)] = -ALLOWED_PENETRATION
        for a, b in ignore:
            margins[self.pairs_between(a, b)] = -np.inf
        return self.least(q, margins, objects, touching)

    def least(
        self, q, margins: np.ndarray, objects: Mapping | None = None, touching: Collection[int] = ()
    ) -> Distance | None:
        """Return the pair with the smallest distance among those within their margins, or None.

        Parameters
        ----------
        q : (nq,)
        margins : (P,) of ``pairs``, m; minus infinity excludes a pair
        objects : pose (R, p) by name of objects that are not at their initial one
        touching : indices of the pairs whose ``Pair.in_contact`` is set
        """
        q, space = self._checked(q), self._space()
        count = find_smallest(
            self.robot.tree, self.shapes_at(objects), self.indices, margins, q, space.scratch, space.found, space.values
        )
        return self._distances(q, space.found[:count], space.values[:count], touching)[0] if count else None

    def are_close(self, q: np.ndarray, margins: np.ndarray) -> np.ndarray:
        """Return for each row of ``margins`` (L, P), m, whether a pair is within its margin at a posture of q (m, nq).

        Minus infinity excludes a pair.
        """
        space, is_close = self._space(), np.empty(len(margins), bool)
        find_close(
            self.robot.tree, self.shapes, self.indices, margins, q, space.scratch, space.found, space.values, is_close
        )
        return is_close

    def constraint_rows(
        self,
        q,
        margin: float,
        contacts: Iterable[AllowedContact] = (),
        clearance: float = 0.0,
        objects: Mapping | None = None,
    ) -> ConstraintRows:
        """Return the linearised distance constraints of all pairs nearer than ``margin``.

        ``d(distance)/dt = row v`` with ``row = n' (J_a - J_b)``, n from b to a, J at the nearest points.

        Parameters
        ----------
        q : (nq,)
        margin : m
        contacts : contacts, or pairs (link, name), that may overlap by ``ALLOWED_PENETRATION``
        clearance : least distance of all other pairs, m
        objects : pose (R, p) by name of objects that are not at their initial one
        """
        touching = self.pairs_of(contacts)
        found, distance, rows = self.near_pairs(q, margin, objects)
        min_distance = np.array([-ALLOWED_PENETRATION if p in touching else clearance for p in found])
        pairs = tuple(self._touching[p] if p in touching else self.pairs[p] for p in found)
        return ConstraintRows(distance - min_distance, rows, pairs)

    def near_pairs(self, q, margin: float, objects: Mapping | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the pairs nearer than ``margin`` (m): indices (k,), distances (k,), and their Jacobians (k, nv)."""
        q, space = self._checked(q), self._space()
        count = fill_distance_rows(
            self.robot.tree, self.shapes_at(objects), self.indices, space.margins(margin), q, space.scratch,
            space.found, space.values, space.rows,
        )  # fmt: skip
        return space.found[:count].copy(), space.values[:count, DISTANCE].copy(), space.rows[:count].copy()

    def posture_surroundings(self, margin: float) -> PostureSurroundings:
        """Return the data of the posture solver: pairs nearer than ``margin`` (m), objects at their initial poses."""
        space = _Space(self.robot, len(self.shapes.index), len(self.pairs))
        count, nv = space.rows.shape
        return PostureSurroundings(
            self.shapes, self.indices, space.margins(margin), space.scratch, space.found, space.values, space.rows,
            np.zeros((count, nv + 1)), np.zeros(self.robot.nq),
        )  # fmt: skip

    def pairs_of(self, contacts: Iterable[AllowedContact]) -> set[int]:
        """Return the indices of the pairs of supports with links in contact, or links rigidly connected to those.

        A protruding patch touches its support alone: its link must keep the clearance.
        """
        indices: set[int] = set()
        for contact in contacts:
            if isinstance(contact, Contact):
                if contact.patch in self._touches_without_link or contact.patch == MOUNT:
                    continue
                link, support = self.robot.patches[contact.patch].link, contact.support
            else:
                link, support = contact
            support = self._owner.get(support, support)
            if link not in self._bodies or support not in self.shape_index:
                self.pairs_between(link, support)
            for name in self._coplanar.get(support, (support,)):  # a patch may lie across a seam of coplanar surfaces
                indices.update(self._of_support.get((self._bodies[link], name), ()))
        return indices

    def fixed_by(self, contacts: Iterable[Contact]) -> set[int]:
        """Return the indices of the pairs whose distance contacts fix.

        A contact that constrains all six directions fixes its link to its support: a free object, or the fixed
        environment (which includes objects without contacts). Bodies fixed to the same support have no relative motion.
        """
        bodies, moving_objects, supports = self._bodies, set[str](), dict[int, set[str | None]]()
        for c in contacts:
            carrier = None if c.carrier is None else c.carrier.name
            if carrier is not None:
                moving_objects.add(carrier)
            if len(c.selection) == 6:
                supports.setdefault(bodies[self.robot.patches[c.patch].link], set()).add(carrier)
        fixed = {name: supports[body] for name, body in bodies.items() if body in supports}
        fixed |= {name: {name if name in moving_objects else None} for name in self.shape_index}
        nothing = set[str | None]()
        is_fixed = np.zeros(len(self.pairs), dtype=bool)
        for support_body in {None, *moving_objects}:
            is_held = np.array([support_body in fixed.get(name, nothing) for name in self._names], dtype=bool)
            is_fixed |= is_held[self.indices].all(axis=1)
        return set(np.flatnonzero(is_fixed).tolist())

    def shapes_at(self, objects: Mapping | None) -> Shapes:
        """Return the shapes with objects at given poses (R, p) by name."""
        if not objects:
            return self.shapes
        offset = self.shapes.offset.copy()
        for name, (R, p) in objects.items():
            if name not in self._initial:
                raise InputError(f"there is no object `{name}`; there are: {', '.join(self._initial) or 'none'}")
            place, row = (np.asarray(R, float), np.asarray(p, float)), offset[self.shape_index[name]]
            move_shape(*self._initial[name], *place, row, np.empty((3, 3)), np.empty(12))
        return self.shapes._replace(offset=read_only(offset))

    def pairs_between(self, a: str, b: str) -> list[int]:
        """Return the indices of the pairs of two bodies; empty if they cannot collide."""
        for name in (a, b):
            if name not in self._bodies and name not in self.shape_index:
                raise InputError(f"there is no link or body `{name}` that could collide")
        return self._of_names.get(frozenset((a, b)), [])

    def _distances(
        self, q: np.ndarray, found: np.ndarray, values: np.ndarray, touching: Collection[int]
    ) -> PairDistances:
        """Return the distances of the pairs ``found`` (k,) from the ``values`` of the kernel, relative to the base."""
        pairs = tuple(self._touching[p] if p in touching else self.pairs[p] for p in found)
        base = q[:3]
        return PairDistances(
            pairs,
            values[:, DISTANCE].copy(),
            values[:, NORMAL:POINT_A].copy(),
            values[:, POINT_A:POINT_B] + base,
            values[:, POINT_B:PAIR_SIZE] + base,
        )

    def _checked(self, q) -> np.ndarray:
        """Return a posture as a writeable array of floats, after checking shape and values."""
        q = np.ascontiguousarray(q, dtype=float)
        if q.shape != (self.robot.nq,):
            raise InputError(f"q has the shape {q.shape}; expected ({self.robot.nq},)")
        if check(q, False) != SOUND:
            raise InputError(f"q[{int(np.argmin(np.isfinite(q)))}] is not finite")
        return q if q.flags.writeable else q.copy()

    def _space(self) -> "_Space":
        """Return the scratch space and outputs of this thread."""
        if not hasattr(self._scratch, "space"):
            self._scratch.space = _Space(self.robot, len(self.shapes.index), len(self.pairs))
        return self._scratch.space


class _Space:
    """Scratch space and outputs of one thread."""

    def __init__(self, robot: Robot, shapes: int, pairs: int):
        count, nv = max(pairs, 2), len(robot.tree.armature)
        self.scratch = new_scratch(robot, shapes, count)
        self.found, self.values = np.zeros(count, np.int64), np.zeros((count, PAIR_SIZE))
        self.rows = np.zeros((count, nv))
        self._margins = np.zeros(pairs)

    def margins(self, margin: float) -> np.ndarray:
        """Return an array (P,) with the same margin for all pairs."""
        self._margins.fill(margin)
        return self._margins


def _environment_solids(environment: Environment) -> Iterable[tuple[str, Solid]]:
    """Yield name and solid of all bodies of the environment; the surfaces of an object belong to its solid."""
    for surface in environment.surfaces:
        yield surface.name, slab(surface)
    for bar in environment.bars:
        yield bar.name, bar_solid(bar)
    for obstacle in environment.obstacles:
        yield obstacle.name, solid(obstacle.shape, obstacle.R, obstacle.p)
    for thing in environment.objects:
        yield thing.name, solid(thing.shape, thing.R, thing.p)


def faces_of(model: CollisionModel, surfaces: Sequence[Surface]) -> Faces:
    """Return the faces of fixed surfaces, indexed by the shapes of the model."""
    shapes, sizes = len(model.shapes.index), [len(surface.polygon) for surface in surfaces]
    span, frame = np.zeros((shapes, 2), np.int64), np.zeros((shapes, 12))
    for surface, first, size in zip(surfaces, np.cumsum([0, *sizes]), sizes, strict=False):
        i = model.shape_index[surface.name]
        span[i], frame[i] = (first, size), [*surface.R.ravel(), *surface.p]
    corners = np.concatenate([np.zeros((0, 2)), *(surface.polygon for surface in surfaces)])
    return Faces(read_only(span), read_only(frame), read_only(corners))
