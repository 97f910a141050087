"""Shapes that meet beyond what patches and corners find: of links and objects, obstacles, slabs and bars."""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from mcplan.collision.pairs import link_solids, new_scratch, self_pairs
from mcplan.collision.shape import bar_solid, frozen, pack, slab, solid
from mcplan.core.distance.many import fill_distances
from mcplan.core.distance.pair import PAIR_SIZE
from mcplan.core.distance.shape import Shapes
from mcplan.model.robot import Robot
from mcplan.model.shape_inertia import shape_inertia
from mcplan.scene.environment import Environment

FRICTION = 0.7
"""Of links and obstacles, which nobody plans to touch."""

ROUGH = 2e-3
"""Links that overlap by more than this (m) in the first posture are roughly modelled, not in contact."""


class PackedShapes(NamedTuple):
    """Fields of ``Scene`` that concern shapes.

    span : (bodies, 2) first and last shape (exclusive) of each body, objects last.
    slabs : number of the shape of each surface of the world; bars are the last shapes.
    """

    shapes: Shapes
    link: np.ndarray
    span: np.ndarray
    pair: np.ndarray
    friction: np.ndarray
    slabs: range


def pack_shapes(robot: Robot, environment: Environment, q: np.ndarray) -> PackedShapes:
    """Pack the shapes of everything, and the pairs that may meet; q (7+n,) is the first posture."""
    names, solids, bodies = link_solids(robot)
    order = np.argsort(bodies, kind="stable").astype(int)
    place = np.argsort(order, kind="stable")
    solids, bodies = [solids[i] for i in order], [bodies[i] for i in order]
    links = [robot.link_names.index(names[i]) for i in order]
    pairs = place[_apart(robot, q)]
    ours, count, first = len(solids), len(robot.tree.topology), len(robot.link_names)
    friction = [FRICTION] * ours
    for i, thing in enumerate(environment.objects):
        solids.append(solid(thing.shape, np.eye(3), -shape_inertia(thing.shape, thing.mass)[0]))
        bodies.append(count + i)
        links.append(first + i)
        friction.append(thing.friction)
    moving = len(solids)
    solids += [solid(obstacle.shape, obstacle.R, obstacle.p) for obstacle in environment.obstacles]
    friction += [FRICTION] * len(environment.obstacles)
    met = range(ours, len(solids))
    found = [tuple(pair) for pair in pairs.tolist()]
    found += [(a, b) for a in range(ours) for b in met if b < moving or not (robot.fixed and bodies[a] == 0)]
    found += [(a, b) for a, b in combinations(met, 2) if a < moving]
    slabs = range(len(solids), len(solids) + len(environment.surfaces))
    solids += [slab(surface) for surface in environment.surfaces] + [bar_solid(bar) for bar in environment.bars]
    still = len(solids) - moving
    stops = np.searchsorted(bodies, np.arange(count + len(environment.objects) + 1))
    span = np.column_stack([stops[:-1], stops[1:]])
    if robot.fixed:
        span[0] = 0  # slabs and bars do not meet a base that is fixed to the world
    pair = np.array(found, np.int64).reshape(-1, 2)
    bodies += [-1] * still
    return PackedShapes(
        pack(solids, bodies),
        frozen(np.array([*links, *[-1] * still], np.int64)),
        span,
        frozen(np.column_stack([pair, np.array(bodies, np.int64)[pair]])),
        frozen(np.array([min(friction[a], friction[b]) for a, b in pair], float)),
        slabs,
    )


def _apart(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Return the pairs (K,2) of ``link_solids`` that may meet and do not overlap at q."""
    _, solids, bodies = link_solids(robot)
    pairs = self_pairs(robot)
    if not len(pairs):
        return pairs
    found, values = np.zeros(len(pairs), np.int64), np.zeros((len(pairs), PAIR_SIZE))
    space, margins = new_scratch(robot, len(solids), len(pairs)), np.full(len(pairs), -ROUGH)
    count = fill_distances(robot.tree, pack(solids, bodies), frozen(pairs), margins, np.array(q), space, found, values)
    return np.delete(pairs, found[:count], axis=0)
