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
from mcplan.robot.robot import Robot
from mcplan.robot.solid import hull_corners, pack, shape_inertia, solid
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment, Support, Surface
from mcplan.scene.resting import resting_contact
from mcplan.settings.margins import shrink_points
from mcplan.settings.simulation import SimulationSettings
from mcplan.sim.touching_patch import ball_covers_shape, patch_tables
from mcplan.util.arrays import read_only

Bump = tuple[int, np.ndarray, float, np.ndarray]
"""A feature of a shape that can touch a plane first: kind, centre (3,) and radius (m), axis (3,) of a rim."""


def shape_bumps(shape: Shape, R: np.ndarray, p: np.ndarray) -> list[Bump]:
    """Return the bumps of a shape with the pose ``R`` (3,3), ``p`` (3,): its corners, balls and rims.

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
        bumps: list[Bump] = []
        for z in (-shape.length / 2, shape.length / 2):
            centre = p + R[:, 2] * z
            bumps.append((RIM, centre, shape.radius, R[:, 2]))
            for angle in 2 * np.pi * np.arange(3) / 3:
                arm = shape.radius * (np.cos(angle) * R[:, 0] + np.sin(angle) * R[:, 1])
                bumps.append((BALL, centre + arm, 0.0, no_axis))
        return bumps
    if isinstance(shape, MeshShape):
        return [(BALL, p + R @ corner, 0.0, no_axis) for corner in hull_corners(shape.vertices)[0]]
    raise TypeError(f"unknown shape {type(shape).__name__}")


DEFAULT_FRICTION = 0.7
"""Friction coefficient of links and obstacles, for unplanned contacts."""

MAX_INITIAL_OVERLAP_M = 2e-3
"""Overlap (m) of two links in the initial posture beyond which their shapes are taken to be too large.

Such links do not collide in the simulation."""


class PackedShapes(NamedTuple):
    """Shapes of a scene, as stored in ``ContactScene``.

    shapes : collision shapes: those of the robot, the objects, the obstacles, the surfaces and the bars.
    link : (shapes,) index of the link or object of a shape; -1: the world.
    span : (bodies, 2) first shape and end of the shapes of each body, objects last.
    pair : (K, 4) the two shapes of each pair that can touch, and their bodies.
    friction : (K,) friction coefficient of each pair.
    slabs : indices of the shapes of the world's surfaces; bars are the last shapes.
    """

    shapes: Shapes
    link: np.ndarray
    span: np.ndarray
    pair: np.ndarray
    friction: np.ndarray
    slabs: range


def pack_shapes(robot: Robot, environment: Environment, q: np.ndarray) -> PackedShapes:
    """Pack all shapes and the pairs that can touch; ``q`` (7+n,) is the initial posture."""
    names, solids, bodies = link_solids(robot)
    order = np.argsort(bodies, kind="stable").astype(int)
    new_index = np.argsort(order, kind="stable")
    solids, bodies = [solids[i] for i in order], [bodies[i] for i in order]
    links = [robot.link_names.index(names[i]) for i in order]
    self_pairs_of_shapes = new_index[_separate_pairs(robot, q)]
    robot_shapes, body_count, link_count = len(solids), len(robot.tree.topology), len(robot.link_names)
    friction = [DEFAULT_FRICTION] * robot_shapes
    for i, thing in enumerate(environment.objects):
        solids.append(solid(thing.shape, np.eye(3), -shape_inertia(thing.shape, thing.mass)[0]))
        bodies.append(body_count + i)
        links.append(link_count + i)
        friction.append(thing.friction)
    moving_shapes = len(solids)
    solids += [solid(obstacle.shape, obstacle.R, obstacle.p) for obstacle in environment.obstacles]
    friction += [DEFAULT_FRICTION] * len(environment.obstacles)
    other_shapes = range(robot_shapes, len(solids))
    pairs_to_check = [tuple(pair) for pair in self_pairs_of_shapes.tolist()]
    pairs_to_check += [
        (a, b)
        for a in range(robot_shapes)
        for b in other_shapes
        if b < moving_shapes or not (robot.fixed and bodies[a] == 0)
    ]
    pairs_to_check += [(a, b) for a, b in combinations(other_shapes, 2) if a < moving_shapes]
    slabs = range(len(solids), len(solids) + len(environment.surfaces))
    solids += [slab(surface) for surface in environment.surfaces] + [bar_solid(bar) for bar in environment.bars]
    world_shapes = len(solids) - moving_shapes
    span_ends = np.searchsorted(bodies, np.arange(body_count + len(environment.objects) + 1))
    span = np.column_stack([span_ends[:-1], span_ends[1:]])
    if robot.fixed:
        span[0] = 0  # a fixed base does not collide with slabs and bars
    pair_array = np.array(pairs_to_check, np.int64).reshape(-1, 2)
    bodies += [-1] * world_shapes
    return PackedShapes(
        pack(solids, bodies),
        read_only(np.array([*links, *[-1] * world_shapes], np.int64)),
        span,
        read_only(np.column_stack([pair_array, np.array(bodies, np.int64)[pair_array]])),
        read_only(np.array([min(friction[a], friction[b]) for a, b in pair_array], float)),
        slabs,
    )


def _separate_pairs(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Return the pairs (K,2) of indices into ``link_solids`` that can touch and do not overlap at ``q``."""
    _, solids, bodies = link_solids(robot)
    pairs = self_pairs(robot)
    if not len(pairs):
        return pairs
    overlapping, values = np.zeros(len(pairs), np.int64), np.zeros((len(pairs), PAIR_SIZE))
    space, margins = new_scratch(robot, len(solids), len(pairs)), np.full(len(pairs), -MAX_INITIAL_OVERLAP_M)
    shapes = pack(solids, bodies)
    count = fill_distances(robot.tree, shapes, read_only(pairs), margins, np.array(q), space, overlapping, values)
    return np.delete(pairs, overlapping[:count], axis=0)


MOUNT_COMPLIANCE = 1e-6
"""Compliance of the mount of a fixed base, relative to that of a contact: small enough that joint motions agree with
those of a rigid mount to nine digits."""


EDGE_INSET_M = 1e-3
"""Distance (m) by which the support points of an overhanging object lie inside the edge of its support."""


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
    robot, environment : the robot, and its environment with free objects.
    patches : names of the patches in use; elsewhere a link touches with its collision shapes.
    settings : settings of contacts and joints.
    q : (7+n,) initial posture; the inertia of the limbs there scales the compliance of contacts and joints.
    contacts : planned contacts; they give the friction of their patches, and how objects rest on supports.
    """
    bodies, objects = len(robot.tree.topology), environment.objects
    object_poses = object_poses_at_com(environment)
    owners = {thing.name: bodies + i for i, thing in enumerate(objects)}
    surfaces = (*environment.surfaces, *(s for thing in objects for s in thing.surfaces))
    polygons = [s.polygon for s in surfaces]
    first = np.cumsum([0, *map(len, polygons)])
    owner = [owners.get(s.owner or "", -1) for s in surfaces]
    surface = [
        _surface_row(s, object_poses[body - bodies] if body >= 0 else None)
        for s, body in zip(surfaces, owner, strict=True)
    ]
    patch_index, patch_shape, patch_corners = patch_tables(robot, patches, first[-1])

    shapes = pack_shapes(robot, environment, q)
    bumps = [*_robot_bumps(robot, patches), *_object_bumps(environment, len(robot.link_names), contacts)]
    bump_ends = np.cumsum([0, *map(len, bumps)])
    body_bumps = [(body, *bump) for body, group in enumerate(bumps) for bump in group]

    chains = [_chain(robot, i) for i in range(bodies)]
    chains += [list(range(robot.nv + 6 * i, robot.nv + 6 * i + 6)) for i in range(len(objects))]
    chain = np.full((len(chains), max(map(len, chains))), -1)
    for i, row in enumerate(chains):
        chain[i, : len(row)] = row

    inverse_mass, inverse_joint_inertia = _inverse_inertias(robot, q)
    if robot.fixed:
        inverse_mass[0] *= MOUNT_COMPLIANCE
    body_rows = np.zeros((bodies + len(objects), 9))
    for i, group in enumerate(bumps):
        points = [(bump[1], bump[2]) for _, bump, _, _ in group]
        for name in patches:
            at, offset = robot.frame(name)
            if at == i:
                patch = robot.patches[name]
                points += [(offset[9:] + offset[:9].reshape(3, 3) @ x, patch.radius) for x in patch.points]
        body_rows[i, :4] = _bounding_ball(points)
    body_rows[:bodies, 4] = inverse_mass
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
        patch_index=read_only(patch_index),
        patch=read_only(patch_shape),
        corners=read_only(np.concatenate([*polygons, patch_corners])),
        bump_index=_integers([[body, link, bump[0], patch] for body, link, bump, _, patch in body_bumps], 4),
        bump=_matrix([[*bump[1], bump[2], *bump[3], friction] for _, _, bump, friction, _ in body_bumps], 8),
        body_index=_integers(
            [[bump_ends[i], bump_ends[i + 1], len(row), *shapes.span[i]] for i, row in enumerate(chains)], 5
        ),
        body=read_only(body_rows),
        chain=_integers(list(chain), chain.shape[1]),
        joint=read_only(
            np.concatenate([_joints(robot, settings, inverse_joint_inertia), _free_joint_rows(6 * len(objects))])
        ),
        parent=read_only(_parents(robot, len(objects))),
        shapes=shapes.shapes,
        shape_link=shapes.link,
        pair=shapes.pair,
        pair_friction=shapes.friction,
        on_link=read_only(_on_link(robot, patches)),
    )


def _on_link(robot: Robot, patches: Sequence[str]) -> np.ndarray:
    """Return the table (links, P) of the patches of each link that has several."""
    links = [None if robot.patches[name].kind == "grasp" else robot.patches[name].link for name in patches]
    return np.array([[link == name and links.count(name) > 1 for link in links] for name in robot.link_names], np.int64)


def _frictions(patches: Sequence[str], supports: Sequence[Support], contacts: Iterable[Contact]) -> np.ndarray:
    """Return the friction (P, S + B) of each patch on each support: of the contact if planned, else of the support."""
    table = np.tile(np.array([support.friction for support in supports], float), (len(patches), 1))
    names = [support.name for support in supports]
    for (patch, support), friction in pair_frictions(contacts).items():
        table[patches.index(patch), names.index(support)] = friction
    return table


PlacedBump = tuple[int, Bump, float, int]
"""A bump on its body: index of the link or object, the bump, its largest friction, index of its patch (-1: none)."""


def _robot_bumps(robot: Robot, patches: Sequence[str]) -> list[list[PlacedBump]]:
    """Return the bumps of each body of the robot; the ball of a patch replaces the collision shapes that it covers."""
    bumps_by_body: list[list[PlacedBump]] = [[] for _ in robot.tree.topology]
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
                bumps_by_body[body] += [(i, bump, np.inf, -1) for bump in bumps]
    for k, name in enumerate(patches):
        patch, (body, offset) = robot.patches[name], robot.frame(name)
        if patch.radius:
            bump = (BALL, offset[9:], patch.radius, np.zeros(3))
            bumps_by_body[body].append((robot.link_names.index(patch.link), bump, np.inf, k))
    return bumps_by_body


def _object_bumps(environment: Environment, links: int, contacts: Iterable[Contact]) -> list[list[PlacedBump]]:
    """Return the bumps of each free object relative to its centre of mass, with support points if it overhangs."""
    carriers = [contact.carrier for contact in contacts if contact.carrier is not None]
    bumps_by_object = []
    for i, thing in enumerate(environment.objects):
        centre = -shape_inertia(thing.shape, thing.mass)[0]
        bumps = shape_bumps(thing.shape, np.eye(3), centre)
        if isinstance(thing.shape, Box | MeshShape):
            resting_contacts = [resting_contact(thing, environment)]
            resting_contacts += [carrier.rest for carrier in carriers if carrier.name == thing.name]
            corners = np.array([bump[1] for bump in bumps])
            bumps += [
                (BALL, place, 0.0, np.zeros(3)) for place in _edge_points(resting_contacts, corners - centre) + centre
            ]
        bumps_by_object.append([(links + i, bump, thing.friction, -1) for bump in bumps])
    return bumps_by_object


def _edge_points(resting_contacts: Iterable[Contact | None], corners: np.ndarray) -> np.ndarray:
    """Return the support points (k,3) of an object, in its axes, that are not among its corners (c,3).

    They are moved inwards by ``EDGE_INSET_M``, so that they lie on the support.
    """
    points = [np.zeros((0, 3))]
    for resting in resting_contacts:
        if resting is not None:
            corner_distances = np.linalg.norm(resting.points[:, None] - corners, axis=2).min(axis=1)
            points.append(shrink_points(resting.points, EDGE_INSET_M)[corner_distances > EDGE_INSET_M])
    return np.unique(np.concatenate(points).round(6), axis=0)


def object_poses_at_com(environment: Environment) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the initial pose ``R``, ``p`` of the centre-of-mass frame of each object."""
    return [(o.R, o.p + o.R @ shape_inertia(o.shape, o.mass)[0]) for o in environment.objects]


def _surface_row(s: Surface, place: tuple[np.ndarray, np.ndarray] | None) -> list[float]:
    R, p = s.R, s.p
    if place is not None:
        R, p = place[0].T @ s.R, place[0].T @ (s.p - place[1])
    low, high = s.polygon.min(axis=0), s.polygon.max(axis=0)
    return [*R.ravel(), *p, s.friction, s.thickness, *(low + high) / 2, *(high - low) / 2]


def _chain(robot: Robot, body: int) -> list[int]:
    """Return the indices of the velocities that move a body, in ascending order."""
    topology = robot.tree.topology
    velocities = set(range(6))
    while body > 0:
        velocities.add(int(topology[body, V]))
        body = topology[body, PARENT]
    return sorted(velocities)


def _parents(robot: Robot, objects: int) -> np.ndarray:
    """Return, for each velocity, the index of the next velocity towards the root (-1: none).

    With mimic joints the velocities form no tree; then the parent of each one is the preceding one.
    """
    topology, nv = robot.tree.topology, robot.nv
    parent = np.arange(nv + 6 * objects) - 1
    if len(topology) + 5 == nv:
        for i in range(1, len(topology)):
            parent_body = topology[i, PARENT]
            parent[topology[i, V]] = topology[parent_body, V] if parent_body > 0 else 5
    parent[nv::6] = -1
    return parent.astype(np.int64)


def _inverse_inertias(robot: Robot, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the effective inverse mass at each body's centre of mass, and the inverse inertia of each velocity.

    The inverse mass is ``trace(J M^-1 J') / 3``, the mean over all directions.
    """
    tree = robot.tree
    inverse = np.linalg.inv(robot.mass_matrix(q))
    inverse_mass = np.zeros(len(tree.topology))
    frames = {body: name for name, (body, _) in reversed(list(robot.frames.items()))}
    for body in range(len(tree.topology)):
        name = frames[body]
        X, J = robot.frame_pose(q, name), robot.frame_jacobian(q, name)
        _, offset = robot.frame(name)
        R = X[:3, :3] @ offset[:9].reshape(3, 3).T
        x, y, z = R @ (tree.inertia[body, COM : COM + 3] - offset[9:])
        cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        linear = J[:3] - cross @ J[3:]
        inverse_mass[body] = np.trace(linear @ inverse @ linear.T) / 3
    return inverse_mass, np.diag(inverse)


def _joints(robot: Robot, settings: SimulationSettings, inverse_inertia: np.ndarray) -> np.ndarray:
    """Return the rows of ``ContactScene.joint`` of the robot; the base has neither limits nor friction."""
    rows = _free_joint_rows(robot.nv)
    limits = robot.limits
    rows[6:, 0], rows[6:, 1] = limits.lower, limits.upper
    limit = np.where(np.isfinite(limits.torque), limits.torque, 0.0)
    rows[6:, 2] = settings.joint_damping + robot.joint_damping
    rows[6:, 3] = settings.joint_friction * limit + robot.joint_friction
    rows[:, 4] = inverse_inertia
    rows[6:, 5] = limits.torque if settings.torque_limits else np.inf
    return rows


def _free_joint_rows(count: int) -> np.ndarray:
    rows = np.zeros((count, 6))
    rows[:, 0], rows[:, 1], rows[:, 4], rows[:, 5] = -np.inf, np.inf, 1.0, np.inf
    return rows


def _bounding_ball(points: list[tuple[np.ndarray, float]]) -> np.ndarray:
    """Return the centre (3) and radius of a ball that contains the given balls."""
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
