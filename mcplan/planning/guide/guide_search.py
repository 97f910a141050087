"""The guide found automatically: where the base ends, and the way there.

The way of the base from one pose to another: straight where that works, else the cheapest on a lattice of poses.

A* (Hart, Nilsson, Raphael 1968) over x, y and heading, in eight directions, with eight headings; the height follows
from the supports. The price of a way is its length, dearer aside, backward and in narrow places, and dearer for turns:

    ds = c (3 - cos(a)) / 2 |dp| + TURN |dyaw|,   a from the heading to the direction,  c price of a metre there
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from mcplan.errors import InputError
from mcplan.planning.feasibility import Prover
from mcplan.planning.goal.item import Goal
from mcplan.planning.guide.passage import LEVEL, BasePose, Hindrance, Passage
from mcplan.planning.guide.path import TURN, GuidePath
from mcplan.planning.posture.reference import patch_heading
from mcplan.robot.anatomy import Limb
from mcplan.robot.pose import base_yaw
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Bar, Environment, Surface
from mcplan.scene.placement import make_contact
from mcplan.scene.spec import PoseSpec

GRID = 0.1
"""m: distance of places on the lattice."""

HEADINGS = 8
"""How many headings there are."""

TURN_STEP = 2 * np.pi / HEADINGS
"""rad: between them."""

FLOOR = 0.25
"""m: places at heights that differ by more are different ones."""

WORTH = 0.95
"""A way round has to be cheaper than the straight one by this."""

MAX_PLACES = 6000
"""Places that are looked at before the search for a way gives up."""

SHORT = 0.15
"""m: a way shorter than this is not looked at."""


@dataclass(frozen=True)
class Route:
    """The corners of a way.

    Attributes
    ----------
    places : two at least, first and last those that were asked for; headings unwrapped.
    hindrance : what is in the way of the straight one when no way was found; then it is the straight one.
    """

    places: tuple[BasePose, ...]
    hindrance: Hindrance | None = None


def find_route(passage: Passage, start: BasePose, goal: BasePose) -> Route:
    """Return the way from start to goal; the straight one when it is free, or as good as any other."""
    straight = (start, goal)
    if np.hypot(goal.x - start.x, goal.y - start.y) < passage.size * SHORT:
        return Route(straight)
    price = _price(passage, straight)
    length = _length(start, goal, passage.size)
    if price <= length + 1e-6:
        return Route(straight)
    found = _search(passage, start, goal)
    if found is not None:
        found = _shortened(passage, found)
        cheaper = sum(_price(passage, pair) for pair in pairwise(found)) < WORTH * price
        if cheaper and _apart(found, straight, passage.size) > 1.5 * passage.size * GRID:
            return Route(tuple(found))
    if np.isfinite(price):
        return Route(straight)
    hindrances = (passage.hindrance(place) for place in _samples(start, goal, passage.size))
    return Route(straight, next((hindrance for hindrance in hindrances if hindrance is not None), None))


def _apart(way: list[BasePose], straight: tuple[BasePose, BasePose], size: float) -> float:
    """Return how far the corners of a way are from the straight one, headings in metres too."""
    a, b = (np.array([*place[:3], size * TURN * place.yaw]) for place in straight)
    arms = np.array([[*place[:3], size * TURN * place.yaw] for place in way]) - a
    share = np.clip(arms @ (b - a) / max((b - a) @ (b - a), 1e-12), 0.0, 1.0)
    return float(np.linalg.norm(arms - share[:, None] * (b - a), axis=1).max())


def _length(a: BasePose, b: BasePose, size: float) -> float:
    """Return the price of the straight way from ``a`` to ``b`` where nothing is near."""
    way = float(np.hypot(b.x - a.x, b.y - a.y))
    middle = 0.5 * (a.yaw + b.yaw)
    ahead = (b.x - a.x) * np.cos(middle) + (b.y - a.y) * np.sin(middle)
    return 1.5 * way - 0.5 * float(ahead) + size * TURN * abs(b.yaw - a.yaw)


def _samples(a: BasePose, b: BasePose, size: float) -> Iterator[BasePose]:
    """Yield places from ``a`` to ``b`` no farther apart than neighbours of the lattice."""
    way = np.hypot(b.x - a.x, b.y - a.y) / (1.5 * size * GRID)
    count = max(1, int(np.ceil(max(way, abs(b.yaw - a.yaw) / TURN_STEP) - 1e-9)))
    for k in range(count + 1):
        yield BasePose(*((1 - k / count) * x + k / count * y for x, y in zip(a, b, strict=True)))


def _price(passage: Passage, ends: tuple[BasePose, BasePose]) -> float:
    """Return the price of the straight way between two places; infinite where it is not free between them."""
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


def _search(passage: Passage, start: BasePose, goal: BasePose) -> list[BasePose] | None:
    """Return the cheapest way over the lattice through the start, or None."""
    steps = [(i, j, 0) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j] + [(0, 0, 1), (0, 0, -1)]
    first, grid = (0, 0, 0, 0), passage.size * GRID
    places, price, before = {first: start}, {first: 0.0}, {first: first}
    queue = [(_ahead(start, goal, passage.size), 0, first)]
    closed: set[tuple[int, int, int, int]] = set()
    count = 0
    while queue and len(closed) < MAX_PLACES:
        _, _, key = heapq.heappop(queue)
        if key in closed:
            continue
        closed.add(key)
        here = places[key]
        if np.hypot(goal.x - here.x, goal.y - here.y) < 0.75 * grid and abs(goal.z - here.z) <= passage.climb:
            way = [goal._replace(yaw=here.yaw + _wrapped(goal.yaw - here.yaw))]
            while key != first:
                way.append(places[key])
                key = before[key]
            return [start, *way[::-1]]
        for i, j, k in steps:
            x, y, yaw = here.x + grid * i, here.y + grid * j, here.yaw + TURN_STEP * k
            z = passage.support(x, y, yaw, here.z).height
            if np.isnan(z):
                continue
            there = BasePose(x, y, z, yaw)
            to = (key[0] + i, key[1] + j, (key[2] + k) % HEADINGS, round((z - start.z) / (passage.size * FLOOR)))
            if to in closed or not np.isfinite(passage.cost(there)):
                continue
            total = price[key] + _price(passage, (here, there))
            if total < price.get(to, np.inf) - 1e-9:
                places[to], price[to], before[to] = there, total, key
                count += 1
                heapq.heappush(queue, (total + _ahead(there, goal, passage.size), count, to))
    return None


def _ahead(place: BasePose, goal: BasePose, size: float) -> float:
    """Return what the way to the goal costs at least."""
    return float(np.hypot(goal.x - place.x, goal.y - place.y)) + size * TURN * abs(_wrapped(goal.yaw - place.yaw))


def _shortened(passage: Passage, way: list[BasePose]) -> list[BasePose]:
    """Return the way with straight pieces in place of all that are no cheaper."""
    legs = [_price(passage, pair) for pair in pairwise(way)]
    spent = np.append(0.0, np.cumsum(legs))
    found, i = [way[0]], 0
    while i < len(way) - 1:
        j = len(way) - 1
        while j > i + 1 and _price(passage, (way[i], way[j])) > spent[j] - spent[i] + 1e-6:
            j -= 1
        found.append(way[j])
        i = j
    return found


def _wrapped(angle: float) -> float:
    return float((angle + np.pi) % (2 * np.pi) - np.pi)


SPREAD = 0.1
"""m: places closer together than this tell no heading."""


class Guide(NamedTuple):
    """A path of the base, and what is in its way where no better one was found."""

    path: GuidePath
    hindrance: Hindrance | None = None


def direct_path(
    robot: Robot,
    environment: Environment,
    contacts: Sequence[Contact],
    q: np.ndarray,
    goal: Goal,
    offsets: Mapping[str, np.ndarray],
    guide: Sequence[PoseSpec] = (),
) -> GuidePath:
    """Return the straight path of the base from a stance to a goal, or by way of key poses.

    At key poses without an orientation the heading is on its way, in even parts, between those that are known.

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
    elif (fitted := _heading_over(exact, robot.scale.leg * SPREAD)) is not None:
        end_yaw = yaw + _wrapped(fitted - yaw)
    end = _base_over(places, end_yaw)
    if end is None:
        end = start if goal.item.base is None else np.array(goal.item.base.xyz)
    between = np.array([pose.p for pose in guide]).reshape(-1, 3)
    known = {0: yaw, len(guide) + 1: end_yaw}
    known |= {
        k: patch_heading(one.R) for k, one in enumerate(guide, 1) if one.rpy is not None or one.quat_wxyz is not None
    }
    told = sorted(known)
    yaws = np.interp(np.arange(len(guide) + 2), told, np.unwrap([known[k] for k in told]))
    return GuidePath(np.vstack([start, between, end]), yaws, robot.scale.leg * TURN)


def way_around(
    direct: GuidePath,
    robot: Robot,
    environment: Environment,
    prover: Prover,
    contacts: Sequence[Contact],
    q: np.ndarray,
    goal: Goal,
    limbs: Mapping[str, Limb],
    offsets: Mapping[str, np.ndarray],
) -> Guide:
    """Return the direct path where it is free, else one around what is in its way, if there is one.

    Looked for where the robot goes on surfaces; on bars and walls a direct path is all there is.

    Parameters
    ----------
    q : (nq,) posture at the stance.
    limbs : those that may touch, by name.
    offsets : nominal place of each patch in the base's heading frame.
    """
    supports = [environment.support(contact.support) for contact in contacts]
    supports += [environment.support(spec.surface) for spec in goal.specs.values()]
    if not all(isinstance(support, Surface) and support.normal[2] >= LEVEL for support in supports):
        return Guide(direct)
    passage = Passage(robot, environment, prover.collisions, q, contacts, limbs, offsets)
    poses = np.column_stack([direct.points, direct.yaw]).tolist()
    route = find_route(passage, BasePose(*poses[0]), BasePose(*poses[-1]))
    if len(route.places) == 2:
        return Guide(direct, route.hindrance)
    points = np.array([place[:3] for place in route.places])
    return Guide(GuidePath(points, np.array([place.yaw for place in route.places]), direct.turn))


def _base_over(places: Sequence[tuple[np.ndarray, np.ndarray]], yaw: float) -> np.ndarray | None:
    """Return the base (3,) for which patches at these places are on the average in their nominal ones."""
    if not places:
        return None
    c, n = np.cos(yaw), np.sin(yaw)
    turn = np.array([[c, -n, 0.0], [n, c, 0.0], [0.0, 0.0, 1.0]])
    return np.mean([place - turn @ offset for place, offset in places], axis=0)


def _heading_over(places: Sequence[tuple[np.ndarray, np.ndarray]], spread: float = SPREAD) -> float | None:
    """Return the heading (rad) that turns the nominal places into these best; None if they do not tell.

    maximise over yaw   sum (p_i - mean p) . R_z(yaw) (d_i - mean d)
    """
    if len(places) < 2:
        return None
    p, d = (np.array(side)[:, :2] - np.mean(side, axis=0)[:2] for side in zip(*places, strict=True))
    if min(np.linalg.norm(p), np.linalg.norm(d)) < spread:
        return None
    return float(np.arctan2((d[:, 0] * p[:, 1] - d[:, 1] * p[:, 0]).sum(), (d * p).sum()))
