"""The way of the base from one pose to another: straight where that works, else the cheapest on a lattice of poses.

A* (Hart, Nilsson, Raphael 1968) over x, y and heading, in eight directions, with eight headings; the height follows
from the supports. The price of a way is its length, dearer aside, backward and in narrow places, and dearer for turns:

    ds = c (3 - cos(a)) / 2 |dp| + TURN |dyaw|,   a from the heading to the direction,  c price of a metre there
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mcplan.planning.guide.passage import Hindrance, Passage, Place
from mcplan.planning.guide.path import TURN

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

    places: tuple[Place, ...]
    hindrance: Hindrance | None = None


def find_route(passage: Passage, start: Place, goal: Place) -> Route:
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


def _apart(way: list[Place], straight: tuple[Place, Place], size: float) -> float:
    """Return how far the corners of a way are from the straight one, headings in metres too."""
    a, b = (np.array([*place[:3], size * TURN * place.yaw]) for place in straight)
    arms = np.array([[*place[:3], size * TURN * place.yaw] for place in way]) - a
    share = np.clip(arms @ (b - a) / max((b - a) @ (b - a), 1e-12), 0.0, 1.0)
    return float(np.linalg.norm(arms - share[:, None] * (b - a), axis=1).max())


def _length(a: Place, b: Place, size: float) -> float:
    """Return the price of the straight way from ``a`` to ``b`` where nothing is near."""
    way = float(np.hypot(b.x - a.x, b.y - a.y))
    middle = 0.5 * (a.yaw + b.yaw)
    ahead = (b.x - a.x) * np.cos(middle) + (b.y - a.y) * np.sin(middle)
    return 1.5 * way - 0.5 * float(ahead) + size * TURN * abs(b.yaw - a.yaw)


def _samples(a: Place, b: Place, size: float) -> Iterator[Place]:
    """Yield places from ``a`` to ``b`` no farther apart than neighbours of the lattice."""
    way = np.hypot(b.x - a.x, b.y - a.y) / (1.5 * size * GRID)
    count = max(1, int(np.ceil(max(way, abs(b.yaw - a.yaw) / TURN_STEP) - 1e-9)))
    for k in range(count + 1):
        yield Place(*((1 - k / count) * x + k / count * y for x, y in zip(a, b, strict=True)))


def _price(passage: Passage, ends: tuple[Place, Place]) -> float:
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


def _search(passage: Passage, start: Place, goal: Place) -> list[Place] | None:
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
            there = Place(x, y, z, yaw)
            to = (key[0] + i, key[1] + j, (key[2] + k) % HEADINGS, round((z - start.z) / (passage.size * FLOOR)))
            if to in closed or not np.isfinite(passage.cost(there)):
                continue
            total = price[key] + _price(passage, (here, there))
            if total < price.get(to, np.inf) - 1e-9:
                places[to], price[to], before[to] = there, total, key
                count += 1
                heapq.heappush(queue, (total + _ahead(there, goal, passage.size), count, to))
    return None


def _ahead(place: Place, goal: Place, size: float) -> float:
    """Return what the way to the goal costs at least."""
    return float(np.hypot(goal.x - place.x, goal.y - place.y)) + size * TURN * abs(_wrapped(goal.yaw - place.yaw))


def _shortened(passage: Passage, way: list[Place]) -> list[Place]:
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
