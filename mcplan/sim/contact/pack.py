"""Packed scene of the contact kernels: patches, bumps (corners, balls, rims), shapes, and the pairs that can touch."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from mcplan.collision.model import bar_solid, slab
from mcplan.collision.pairs import self_pairs
from mcplan.core.contact.model import BALL, RIM, SURFACE_SIZE, ContactScene
from mcplan.core.distance.many import fill_distances
from mcplan.core.distance.pair import PAIR_SIZE
from mcplan.core.distance.shape import Shapes
from mcplan.core.rigid_body.tree import COM, PARENT, V
from mcplan.record.world import pair_frictions
from mcplan.robot.description import Box, Capsule, Cylinder, MeshShape, Shape, Sphere
from mcplan.robot.link_solids import link_solids, new_scratch
from mcplan.robot.patch import Patch
from mcplan.robot.robot import Robot
from mcplan.robot.solid import hull_corners, pack, shape_inertia, solid
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment, Support, Surface
from mcplan.scene.resting import resting_contact
from mcplan.settings.margins import shrink_points
from mcplan.settings.simulation import SimulationSettings
from mcplan.sim.touching_patch import ball_covers_shape
from mcplan.util.arrays import read_only

Bump = tuple[int, np.ndarray, float, np.ndarray]
"""Kind, centre (3,), radius, axis (3,)."""


def shape_bumps(shape: Shape, R: np.ndarray, p: np.ndarray) -> list[Bump]:
    """Return the bumps of a shape with the pose ``R``, ``p``: its features that can touch a plane first.

    A cylinder touches with the lowest point of each rim; three more points on each rim support an upright one.
    """
    no_axis = np.zeros(3)
    if isinstance(shape, Sphere):
        return [(BALL, p, shape.radius, no_axis)]
    if isinstance(shape, Capsule):
        return [(BALL, p + R[:, 2] * z, shape.radius, no_axis) for z in (-shape.length / 2, shape.length / 2)]
    if isinstance(shape, Box):
        corners = np.array(np.meshgrid(*[(-s / 2, s / 2) for s in shape.size], indexing="ij")).reshape(3, -1).T
        return [(BALL, p + R @ corner, 0.0, no_axis) for corner in corners]
    if isinstance(shape, Cylinder):
        found: list[Bump] = []
        for z in (-shape.length / 2, shape.length / 2):
            centre = p + R[:, 2] * z
            found.append((RIM, centre, shape.radius, R[:, 2]))
            for angle in 2 * np.pi * np.arange(3) / 3:
                arm = shape.radius * (np.cos(angle) * R[:, 0] + np.sin(angle) * R[:, 1])
                found.append((BALL, centre + arm, 0.0, no_axis))
        return found
    if isinstance(shape, MeshShape):
        return [(BALL, p + R @ corner, 0.0, no_axis) for corner in hull_corners(shape.vertices)[0]]
    raise TypeError(f"unknown shape {type(shape).__name__}")


FRICTION = 0.7
"""Friction coefficient of links and obstacles, for unplanned contacts."""

MAX_INITIAL_OVERLAP = 2e-3
"""m: links that overlap by more than this in the initial posture have inaccurate shapes; they do not collide."""


class PackedShapes(NamedTuple):
    """Fields of ``ContactScene`` that concern shapes.

    span : (bodies, 2) first shape and end of the shapes of each body, objects last.
    slabs : index of the shape of each surface of the world; bars are the last shapes.
    """

    shapes: Shapes
    link: np.ndarray
    span: np.ndarray
    pair: np.ndarray
    friction: np.ndarray
    slabs: range


def pack_shapes(robot: Robot, environment: Environment, q: np.ndarray) -> PackedShapes:
    """Pack all shapes, and the pairs that can touch; q (7+n,) is the initial posture."""
    names, solids, bodies = link_solids(robot)
    order = np.argsort(bodies, kind="stable").astype(int)
    place = np.argsort(order, kind="stable")
    solids, bodies = [solids[i] for i in order], [bodies[i] for i in order]
    links = [robot.link_names.index(names[i]) for i in order]
    pairs = place[_separate_pairs(robot, q)]
    robot_count, count, first = len(solids), len(robot.tree.topology), len(robot.link_names)
    friction = [FRICTION] * robot_count
    for i, thing in enumerate(environment.objects):
        solids.append(solid(thing.shape, np.eye(3), -shape_inertia(thing.shape, thing.mass)[0]))
        bodies.append(count + i)
        links.append(first + i)
        friction.append(thing.friction)
    moving = len(solids)
    solids += [solid(obstacle.shape, obstacle.R, obstacle.p) for obstacle in environment.obstacles]
    friction += [FRICTION] * len(environment.obstacles)
    others = range(robot_count, len(solids))
    found = [tuple(pair) for pair in pairs.tolist()]
    found += [(a, b) for a in range(robot_count) for b in others if b < moving or not (robot.fixed and bodies[a] == 0)]
    found += [(a, b) for a, b in combinations(others, 2) if a < moving]
    slabs = range(len(solids), len(solids) + len(environment.surfaces))
    solids += [slab(surface) for surface in environment.surfaces] + [bar_solid(bar) for bar in environment.bars]
    fixed_count = len(solids) - moving
    stops = np.searchsorted(bodies, np.arange(count + len(environment.objects) + 1))
    span = np.column_stack([stops[:-1], stops[1:]])
    if robot.fixed:
        span[0] = 0  # a fixed base does not collide with slabs and bars
    pair = np.array(found, np.int64).reshape(-1, 2)
    bodies += [-1] * fixed_count
    return PackedShapes(
        pack(solids, bodies),
        read_only(np.array([*links, *[-1] * fixed_count], np.int64)),
        span,
        read_only(np.column_stack([pair, np.array(bodies, np.int64)[pair]])),
        read_only(np.array([min(friction[a], friction[b]) for a, b in pair], float)),
        slabs,
    )


def _separate_pairs(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Return the pairs (K,2) of ``link_solids`` that can touch and do not overlap at q."""
    _, solids, bodies = link_solids(robot)
    pairs = self_pairs(robot)
    if not len(pairs):
        return pairs
    found, values = np.zeros(len(pairs), np.int64), np.zeros((len(pairs), PAIR_SIZE))
    space, margins = new_scratch(robot, len(solids), len(pairs)), np.full(len(pairs), -MAX_INITIAL_OVERLAP)
    shapes = pack(solids, bodies)
    count = fill_distances(robot.tree, shapes, read_only(pairs), margins, np.array(q), space, found, values)
    return np.delete(pairs, found[:count], axis=0)


MOUNT_COMPLIANCE = 1e-6
"""Compliance of the mount of a fixed base relative to that of a contact: joints move as with a rigid mount, to nine
digits."""


EDGE_INSET = 1e-3
"""m: distance inside the edge of its support of the extra support points of an overhanging object."""


def pack_scene(
    robot: Robot,
    environment: Environment,
    patches: Sequence[str],
    settings: SimulationSettings,
    q: np.ndarray,
    contacts: Iterable[Contact] = (),
) -> ContactScene:
    """Pack the scene of the contact kernels.

    Parameters
    ----------
    patches : names of the patches in use; elsewhere a link touches with its collision shapes.
    q : (7+n,) initial posture, at which the inertia of the limbs scales the compliance.
    contacts : planned contacts, with their own friction; they also define how objects rest on supports.
    """
    bodies, objects = len(robot.tree.topology), environment.objects
    places = object_places(environment)
    owners = {thing.name: bodies + i for i, thing in enumerate(objects)}
    surfaces = (*environment.surfaces, *(s for thing in objects for s in thing.surfaces))
    polygons = [s.polygon for s in surfaces] + [_corners(robot.patches[name]) for name in patches]
    first = np.cumsum([0, *map(len, polygons)])
    owner = [owners.get(s.owner or "", -1) for s in surfaces]
    surface = [
        _surface_row(s, places[body - bodies] if body >= 0 else None) for s, body in zip(surfaces, owner, strict=True)
    ]
    patch_index = []
    for k, name in enumerate(patches, len(surfaces)):
        patch = robot.patches[name]
        link = robot.link_names.index(patch.link)
        patch_index.append([robot.frame(name)[0], link, first[k], len(polygons[k]), patch.kind == "grasp"])

    shapes = pack_shapes(robot, environment, q)
    bumps = [*_robot_bumps(robot, patches), *_object_bumps(environment, len(robot.link_names), contacts)]
    stops = np.cumsum([0, *map(len, bumps)])
    flat = [(body, *item) for body, group in enumerate(bumps) for item in group]

    chains = [_chain(robot, i) for i in range(bodies)]
    chains += [list(range(robot.nv + 6 * i, robot.nv + 6 * i + 6)) for i in range(len(objects))]
    chain = np.full((len(chains), max(map(len, chains))), -1)
    for i, row in enumerate(chains):
        chain[i, : len(row)] = row

    ease, joint_ease = _inverse_inertias(robot, q)
    if robot.fixed:
        ease[0] *= MOUNT_COMPLIANCE
    body_rows = np.zeros((bodies + len(objects), 9))
    for i, group in enumerate(bumps):
        points = [(bump[1], bump[2]) for _, bump, _, _ in group]
        for name in patches:
            at, offset = robot.frame(name)
            if at == i:
                patch = robot.patches[name]
                points += [(offset[9:] + offset[:9].reshape(3, 3) @ x, patch.radius) for x in patch.points]
        body_rows[i, :4] = _bounding_ball(points)
    body_rows[:bodies, 4] = ease
    for i, thing in enumerate(objects, bodies):
        body_rows[i, 4:] = [1 / thing.mass, thing.mass, *shape_inertia(thing.shape, thing.mass)[1]]

    return ContactScene(
        surface_index=_integers(
            [
                [
                    b,
                    first[k],
                    len(polygons[k]),
                    b - bodies + len(robot.link_names) if b >= 0 else -1,
                    shapes.slabs[k] if b < 0 else -1,
                ]
                for k, b in enumerate(owner)
            ],
            5,
        ),
        surface=_matrix(surface, SURFACE_SIZE),
        bar=_matrix([[*bar.ends.ravel(), bar.radius, bar.friction] for bar in environment.bars], 8),
        friction=read_only(_frictions(patches, (*surfaces, *environment.bars), contacts)),
        patch_index=_integers(patch_index, 5),
        patch=_matrix([robot.frame(name)[1] for name in patches], 12),
        corners=_matrix([corner for polygon in polygons for corner in polygon], 2),
        bump_index=_integers([[body, link, bump[0], patch] for body, link, bump, _, patch in flat], 4),
        bump=_matrix([[*bump[1], bump[2], *bump[3], friction] for _, _, bump, friction, _ in flat], 8),
        body_index=_integers([[stops[i], stops[i + 1], len(row), *shapes.span[i]] for i, row in enumerate(chains)], 5),
        body=read_only(body_rows),
        chain=_integers(list(chain), chain.shape[1]),
        joint=read_only(np.concatenate([_joints(robot, settings, joint_ease), _free_joint_rows(6 * len(objects))])),
        parent=read_only(_parents(robot, len(objects))),
        shapes=shapes.shapes,
        shape_link=shapes.link,
        pair=shapes.pair,
        pair_friction=shapes.friction,
    )


def _corners(patch: Patch) -> np.ndarray:
    """Return the contact corners (k, 2) of a patch; none for a ball, which is a bump."""
    return np.zeros((0, 2)) if patch.radius else patch.polygon


def _frictions(patches: Sequence[str], supports: Sequence[Support], contacts: Iterable[Contact]) -> np.ndarray:
    """Return the friction (P, S + B) of patches on supports: that of their planned contact, else of the support."""
    table = np.tile(np.array([support.friction for support in supports], float), (len(patches), 1))
    names = [support.name for support in supports]
    for (patch, support), friction in pair_frictions(contacts).items():
        table[patches.index(patch), names.index(support)] = friction
    return table


PlacedBump = tuple[int, Bump, float, int]
"""A bump on its body: index of the link or object, the bump, its largest friction, its patch or -1."""


def _robot_bumps(robot: Robot, patches: Sequence[str]) -> list[list[PlacedBump]]:
    """Return the bumps of collision shapes by body, and the balls of patches, which replace those of their links."""
    found: list[list[PlacedBump]] = [[] for _ in robot.tree.topology]
    for i, link in enumerate(robot.link_names):
        body, offset = robot.frame(link)
        if robot.fixed and body == 0:
            continue
        R, p = offset[:9].reshape(3, 3), offset[9:]
        for geometry in robot.geometry[link]:
            if geometry.role != "visual":
                if any(ball_covers_shape(robot.patches[name], link, geometry) for name in patches):
                    continue
                bumps = shape_bumps(geometry.shape, R @ geometry.R, p + R @ geometry.p)
                found[body] += [(i, bump, np.inf, -1) for bump in bumps]
    for k, name in enumerate(patches):
        patch, (body, offset) = robot.patches[name], robot.frame(name)
        if patch.radius:
            bump = (BALL, offset[9:], patch.radius, np.zeros(3))
            found[body].append((robot.link_names.index(patch.link), bump, np.inf, k))
    return found


def _object_bumps(environment: Environment, links: int, contacts: Iterable[Contact]) -> list[list[PlacedBump]]:
    """Return the bumps of free objects relative to their centres of mass, and support points of overhanging ones."""
    carriers = [contact.carrier for contact in contacts if contact.carrier is not None]
    found = []
    for i, thing in enumerate(environment.objects):
        centre = -shape_inertia(thing.shape, thing.mass)[0]
        bumps = shape_bumps(thing.shape, np.eye(3), centre)
        if isinstance(thing.shape, Box | MeshShape):
            rests = [resting_contact(thing, environment)]
            rests += [carrier.rest for carrier in carriers if carrier.name == thing.name]
            corners = np.array([bump[1] for bump in bumps])
            bumps += [(BALL, place, 0.0, np.zeros(3)) for place in _edge_points(rests, corners - centre) + centre]
        found.append([(links + i, bump, thing.friction, -1) for bump in bumps])
    return found


def _edge_points(rests: Iterable[Contact | None], corners: np.ndarray) -> np.ndarray:
    """Return the support points (k,3) of an object, in its axes, that are not corners (c,3) of it.

    They are moved slightly inwards, onto the support.
    """
    found = [np.zeros((0, 3))]
    for rest in rests:
        if rest is not None:
            away = np.linalg.norm(rest.points[:, None] - corners, axis=2).min(axis=1)
            found.append(shrink_points(rest.points, EDGE_INSET)[away > EDGE_INSET])
    return np.unique(np.concatenate(found).round(6), axis=0)


def object_places(environment: Environment) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the initial pose ``R``, ``p`` of the centre-of-mass frame of each object."""
    return [(o.R, o.p + o.R @ shape_inertia(o.shape, o.mass)[0]) for o in environment.objects]


def _surface_row(s: Surface, place: tuple[np.ndarray, np.ndarray] | None) -> list[float]:
    R, p = s.R, s.p
    if place is not None:
        R, p = place[0].T @ s.R, place[0].T @ (s.p - place[1])
    low, high = s.polygon.min(axis=0), s.polygon.max(axis=0)
    return [*R.ravel(), *p, s.friction, s.thickness, *(low + high) / 2, *(high - low) / 2]


def _chain(robot: Robot, body: int) -> list[int]:
    """Return the velocity indices that move a body, ascending."""
    topology = robot.tree.topology
    found = set(range(6))
    while body > 0:
        found.add(int(topology[body, V]))
        body = topology[body, PARENT]
    return sorted(found)


def _parents(robot: Robot, objects: int) -> np.ndarray:
    """Return the next velocity index towards the root; with mimic joints, that of a dense matrix."""
    topology, nv = robot.tree.topology, robot.nv
    parent = np.arange(nv + 6 * objects) - 1
    if len(topology) + 5 == nv:
        for i in range(1, len(topology)):
            above = topology[i, PARENT]
            parent[topology[i, V]] = topology[above, V] if above > 0 else 5
    parent[nv::6] = -1
    return parent.astype(np.int64)


def _inverse_inertias(robot: Robot, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the effective inverse mass at each body's CoM, averaged over directions, and of each velocity."""
    tree = robot.tree
    inverse = np.linalg.inv(robot.mass_matrix(q))
    ease = np.zeros(len(tree.topology))
    frames = {body: name for name, (body, _) in reversed(list(robot.frames.items()))}
    for body in range(len(tree.topology)):
        name = frames[body]
        X, J = robot.frame_pose(q, name), robot.frame_jacobian(q, name)
        _, offset = robot.frame(name)
        R = X[:3, :3] @ offset[:9].reshape(3, 3).T
        x, y, z = R @ (tree.inertia[body, COM : COM + 3] - offset[9:])
        cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        linear = J[:3] - cross @ J[3:]
        ease[body] = np.trace(linear @ inverse @ linear.T) / 3
    return ease, np.diag(inverse)


def _joints(robot: Robot, settings: SimulationSettings, ease: np.ndarray) -> np.ndarray:
    """Return the rows of ``ContactScene.joint`` of the robot; the base has neither limits nor friction."""
    rows = _free_joint_rows(robot.nv)
    limits = robot.limits
    rows[6:, 0], rows[6:, 1] = limits.lower, limits.upper
    limit = np.where(np.isfinite(limits.torque), limits.torque, 0.0)
    rows[6:, 2] = settings.joint_damping + robot.joint_damping
    rows[6:, 3] = settings.joint_friction * limit + robot.joint_friction
    rows[:, 4] = ease
    rows[6:, 5] = limits.torque if settings.torque_limits else np.inf
    return rows


def _free_joint_rows(count: int) -> np.ndarray:
    rows = np.zeros((count, 6))
    rows[:, 0], rows[:, 1], rows[:, 4], rows[:, 5] = -np.inf, np.inf, 1.0, np.inf
    return rows


def _bounding_ball(points: list[tuple[np.ndarray, float]]) -> np.ndarray:
    """Return the centre (3) and radius of a ball around balls."""
    if not points:
        return np.array([0.0, 0.0, 0.0, 0.0])
    centres = np.array([p for p, _ in points])
    middle = (centres.min(axis=0) + centres.max(axis=0)) / 2
    radius = max(np.linalg.norm(p - middle) + r for p, r in points)
    return np.array([*middle, radius])


def _matrix(rows: list, columns: int) -> np.ndarray:
    return read_only(np.array([np.asarray(row, float) for row in rows], float).reshape(-1, columns))


def _integers(rows: list, columns: int) -> np.ndarray:
    return read_only(np.array(rows, np.int64).reshape(-1, columns))
