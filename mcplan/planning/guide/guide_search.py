"""Guide search: path of the base from start to goal, straight if collision-free, else by A* on a lattice of poses.

A* (Hart, Nilsson, Raphael 1968) over x, y and heading, with eight directions and eight headings; the height follows
from the supports. The cost of a path is its length, increased for motion sideways or backward, near obstacles, and for
turns:

    ds = c (3 - cos(a)) / 2 |dp| + TURN_M_PER_RAD |dyaw|,   a angle from heading to direction,  c `Traversability.cost`
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from mcplan.errors import InputError
from mcplan.planning.feasibility import Feasibility
from mcplan.planning.goal.item import Goal
from mcplan.planning.guide.passage import MIN_GROUND_NORMAL_Z, BasePose, Obstruction, Traversability
from mcplan.planning.guide.path import TURN_M_PER_RAD, GuidePath
from mcplan.planning.posture.reference import patch_heading
from mcplan.robot.anatomy import Limb
from mcplan.robot.pose import base_yaw
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Bar, Environment, Surface
from mcplan.scene.placement import make_contact
from mcplan.scene.spec import PoseSpec

GRID_M = 0.1
"""Spacing of the lattice."""

HEADINGS = 8

TURN_STEP_RAD = 2 * np.pi / HEADINGS

FLOOR_HEIGHT_M = 0.25
"""Height of a level: poses on different levels are different nodes."""

MAX_DETOUR_COST = 0.95
"""A detour replaces the straight path if it costs at most this share of it."""

MAX_PLACES = 6000
"""Maximum number of expanded nodes."""

MIN_LENGTH_M = 0.15
"""A shorter path stays straight without a search."""

MIN_SPREAD_M = 0.1
"""Contacts closer together than this do not define a heading."""


@dataclass(frozen=True)
class Route:
    """The corners of a path.

    Attributes
    ----------
    places : start, corners and goal; headings unwrapped.
    obstruction : obstacle on the straight path if no other path was found; then the route is the straight path.
    """

    places: tuple[BasePose, ...]
    obstruction: Obstruction | None = None


def find_route(passage: Traversability, start: BasePose, goal: BasePose) -> Route:
    """Return the path from start to goal; the straight one if it is collision-free or no detour is cheaper."""
    straight = (start, goal)
    if np.hypot(goal.x - start.x, goal.y - start.y) < passage.size * MIN_LENGTH_M:
        return Route(straight)
    cost = _cost(passage, straight)
    if cost <= _length(start, goal, passage.size) + 1e-6:
        return Route(straight)
    found = _search(passage, start, goal)
    if found is not None:
        found = _shortcut(passage, found)
        cheaper = sum(_cost(passage, pair) for pair in pairwise(found)) < MAX_DETOUR_COST * cost
        if cheaper and _deviation(found, straight, passage.size) > 1.5 * passage.size * GRID_M:
            return Route(tuple(found))
    if np.isfinite(cost):
        return Route(straight)
    obstructions = (passage.obstruction(place) for place in _samples(start, goal, passage.size))
    return Route(straight, next((obstruction for obstruction in obstructions if obstruction is not None), None))


def _deviation(corners: list[BasePose], straight: tuple[BasePose, BasePose], size: float) -> float:
    """Return the largest distance of the corners of a path from the straight one (m), headings converted to metres."""
    a, b = (np.array([*place[:3], size * TURN_M_PER_RAD * place.yaw]) for place in straight)
    arms = np.array([[*place[:3], size * TURN_M_PER_RAD * place.yaw] for place in corners]) - a
    share = np.clip(arms @ (b - a) / max((b - a) @ (b - a), 1e-12), 0.0, 1.0)
    return float(np.linalg.norm(arms - share[:, None] * (b - a), axis=1).max())


def _length(a: BasePose, b: BasePose, size: float) -> float:
    """Return the cost of the straight path from ``a`` to ``b`` without obstacles."""
    distance = float(np.hypot(b.x - a.x, b.y - a.y))
    middle = 0.5 * (a.yaw + b.yaw)
    ahead = (b.x - a.x) * np.cos(middle) + (b.y - a.y) * np.sin(middle)
    return 1.5 * distance - 0.5 * float(ahead) + size * TURN_M_PER_RAD * abs(b.yaw - a.yaw)


def _samples(a: BasePose, b: BasePose, size: float) -> Iterator[BasePose]:
    """Yield poses from ``a`` to ``b``, no farther apart than neighbours of the lattice."""
    steps = np.hypot(b.x - a.x, b.y - a.y) / (1.5 * size * GRID_M)
    count = max(1, int(np.ceil(max(steps, abs(b.yaw - a.yaw) / TURN_STEP_RAD) - 1e-9)))
    for k in range(count + 1):
        yield BasePose(*((1 - k / count) * x + k / count * y for x, y in zip(a, b, strict=True)))


def _cost(passage: Traversability, ends: tuple[BasePose, BasePose]) -> float:
    """Return the cost of the straight path between two poses; infinite if it is blocked between them."""
    total, before = 0.0, None
    for place in _samples(*ends, passage.size):
        cost = passage.cost(place)
        if not np.isfinite(cost):
            if place not in ends:
                return np.inf
            cost = 1.0
        if before is not None:
            total += 0.5 * (cost + before[1]) * _length(before[0], place, passage.size)
        before = (place, cost)
    return total


def _search(passage: Traversability, start: BasePose, goal: BasePose) -> list[BasePose] | None:
    """Return the cheapest path over the lattice through the start, or None."""
    steps = [(i, j, 0) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j] + [(0, 0, 1), (0, 0, -1)]
    first, grid = (0, 0, 0, 0), passage.size * GRID_M
    places, costs, before = {first: start}, {first: 0.0}, {first: first}
    queue = [(_cost_to_go(start, goal, passage.size), 0, first)]
    closed: set[tuple[int, int, int, int]] = set()
    count = 0
    while queue and len(closed) < MAX_PLACES:
        _, _, key = heapq.heappop(queue)
        if key in closed:
            continue
        closed.add(key)
        here = places[key]
        if np.hypot(goal.x - here.x, goal.y - here.y) < 0.75 * grid and abs(goal.z - here.z) <= passage.climb:
            path = [goal._replace(yaw=here.yaw + _wrapped(goal.yaw - here.yaw))]
            while key != first:
                path.append(places[key])
                key = before[key]
            return [start, *path[::-1]]
        for i, j, k in steps:
            x, y, yaw = here.x + grid * i, here.y + grid * j, here.yaw + TURN_STEP_RAD * k
            z = passage.support(x, y, yaw, here.z).height
            if np.isnan(z):
                continue
            there = BasePose(x, y, z, yaw)
            floor = round((z - start.z) / (passage.size * FLOOR_HEIGHT_M))
            to = (key[0] + i, key[1] + j, (key[2] + k) % HEADINGS, floor)
            if to in closed or not np.isfinite(passage.cost(there)):
                continue
            total = costs[key] + _cost(passage, (here, there))
            if total < costs.get(to, np.inf) - 1e-9:
                places[to], costs[to], before[to] = there, total, key
                count += 1
                heapq.heappush(queue, (total + _cost_to_go(there, goal, passage.size), count, to))
    return None


def _cost_to_go(place: BasePose, goal: BasePose, size: float) -> float:
    """Return a lower bound of the cost to the goal: the heuristic of A*."""
    turn = abs(_wrapped(goal.yaw - place.yaw))
    return float(np.hypot(goal.x - place.x, goal.y - place.y)) + size * TURN_M_PER_RAD * turn


def _shortcut(passage: Traversability, corners: list[BasePose]) -> list[BasePose]:
    """Return the path with shortcuts that are no more expensive."""
    legs = [_cost(passage, pair) for pair in pairwise(corners)]
    cost_to = np.append(0.0, np.cumsum(legs))
    found, i = [corners[0]], 0
    while i < len(corners) - 1:
        j = len(corners) - 1
        while j > i + 1 and _cost(passage, (corners[i], corners[j])) > cost_to[j] - cost_to[i] + 1e-6:
            j -= 1
        found.append(corners[j])
        i = j
    return found


def _wrapped(angle: float) -> float:
    return float((angle + np.pi) % (2 * np.pi) - np.pi)


class Guide(NamedTuple):
    """A path of the base, and the obstacle on it if no other path was found."""

    path: GuidePath
    obstruction: Obstruction | None = None


def direct_path(
    robot: Robot,
    environment: Environment,
    contacts: Sequence[Contact],
    q: np.ndarray,
    goal: Goal,
    offsets: Mapping[str, np.ndarray],
    guide: Sequence[PoseSpec] = (),
) -> GuidePath:
    """Return the straight path of the base from a stance to a goal, or through key poses.

    At key poses without an orientation the heading is interpolated.

    Parameters
    ----------
    q : (nq,) posture at the stance.
    offsets : nominal place of each patch in the base's heading frame.
    guide : the key poses.
    """
    yaw = base_yaw(q)
    start = _base_over([(c.p, offsets[c.patch]) for c in contacts if c.patch in goal.specs or not goal.specs], yaw)
    start = q[:3] if start is None else start
    touching = {contact.patch for contact in contacts}
    places, turns, exact = [], [], []
    for patch, spec in goal.specs.items():
        offset = offsets[patch]
        X = robot.frame_pose(q, patch)
        try:
            contact = make_contact(robot, environment, spec, (X[:3, :3], X[:3, 3]))
        except InputError:
            support = environment.support(spec.surface)
            middle = support.ends.mean(axis=0) if isinstance(support, Bar) else support.corners.mean(axis=0)
            places.append((middle, offset))
            continue
        if {"x", "y"} <= set(spec.given) or "along" in spec.given:
            exact.append((contact.p, offset))
        if "yaw" in spec.given and contact.kind == "surface" and len(contact.points) > 2 and patch in touching:
            turns.append(patch_heading(contact.R) - patch_heading(X[:3, :3]))
        places.append((contact.p, offset))
    end_yaw = yaw
    if turns:
        end_yaw = yaw + float(np.angle(np.mean(np.exp(1j * np.array(turns)))))
    elif (fitted := _heading_over(exact, robot.scale.leg * MIN_SPREAD_M)) is not None:
        end_yaw = yaw + _wrapped(fitted - yaw)
    end = _base_over(places, end_yaw)
    if end is None:
        end = start if goal.item.base is None else np.array(goal.item.base.xyz)
    between = np.array([pose.p for pose in guide]).reshape(-1, 3)
    headings = {0: yaw, len(guide) + 1: end_yaw}
    headings |= {
        k: patch_heading(one.R) for k, one in enumerate(guide, 1) if one.rpy is not None or one.quat_wxyz is not None
    }
    keys = sorted(headings)
    yaws = np.interp(np.arange(len(guide) + 2), keys, np.unwrap([headings[k] for k in keys]))
    return GuidePath(np.vstack([start, between, end]), yaws, robot.scale.leg * TURN_M_PER_RAD)


def find_guide(
    direct: GuidePath,
    feasibility: Feasibility,
    contacts: Sequence[Contact],
    q: np.ndarray,
    goal: Goal,
    limbs: Mapping[str, Limb],
    offsets: Mapping[str, np.ndarray],
) -> Guide:
    """Return the direct path if it is collision-free, else a path around the obstacle, if there is one.

    Detours are searched only if the robot walks on surfaces; on bars and walls there is only the direct path.

    Parameters
    ----------
    q : (nq,) posture at the stance.
    limbs : limbs that may be in contact, by name.
    offsets : nominal place of each patch in the base's heading frame.
    """
    robot, environment = feasibility.robot, feasibility.environment
    supports = [environment.support(contact.support) for contact in contacts]
    supports += [environment.support(spec.surface) for spec in goal.specs.values()]
    if not all(isinstance(support, Surface) and support.normal[2] >= MIN_GROUND_NORMAL_Z for support in supports):
        return Guide(direct)
    passage = Traversability(robot, environment, feasibility.collisions, q, contacts, limbs, offsets)
    poses = np.column_stack([direct.points, direct.yaw]).tolist()
    route = find_route(passage, BasePose(*poses[0]), BasePose(*poses[-1]))
    if len(route.places) == 2:
        return Guide(direct, route.obstruction)
    points = np.array([place[:3] for place in route.places])
    return Guide(GuidePath(points, np.array([place.yaw for place in route.places]), direct.turn))


def _base_over(places: Sequence[tuple[np.ndarray, np.ndarray]], yaw: float) -> np.ndarray | None:
    """Return the base position (3,) for which the nominal places fit these (place, offset) pairs on average."""
    if not places:
        return None
    c, n = np.cos(yaw), np.sin(yaw)
    turn = np.array([[c, -n, 0.0], [n, c, 0.0], [0.0, 0.0, 1.0]])
    return np.mean([place - turn @ offset for place, offset in places], axis=0)


def _heading_over(places: Sequence[tuple[np.ndarray, np.ndarray]], spread: float = MIN_SPREAD_M) -> float | None:
    """Return the heading (rad) that fits the nominal places to these ones best; None if they are too close together.

    maximise over yaw   sum (p_i - mean p) . R_z(yaw) (d_i - mean d)
    """
    if len(places) < 2:
        return None
    p, d = (np.array(side)[:, :2] - np.mean(side, axis=0)[:2] for side in zip(*places, strict=True))
    if min(np.linalg.norm(p), np.linalg.norm(d)) < spread:
        return None
    return float(np.arctan2((d[:, 0] * p[:, 1] - d[:, 1] * p[:, 0]).sum(), (d * p).sum()))
