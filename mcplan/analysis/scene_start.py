"""Automatic start and goal of a robot in a scene from a mesh or world file.

Start and goal are on level surfaces that are linked by steps which the robot's knees can take: the start on the lowest
of the largest group of them, the goal on its highest. Where there is one surface only, the goal is a place on it.

Which surfaces of a scene are linked by single steps: their gap seen from above, and their heights.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcplan.collision.model import CollisionModel
from mcplan.errors import InputError
from mcplan.robot.anatomy import standing_posture
from mcplan.robot.robot import Robot
from mcplan.scenario.parameters import robot_sizes
from mcplan.scene.contact import Contact
from mcplan.scene.detection.detect import DetectedScene
from mcplan.scene.environment import Environment, Surface
from mcplan.scene.placement import make_contact
from mcplan.scene.polygon import area, erode, half_planes, nearest
from mcplan.scene.spec import ContactSpec


def linked_groups(surfaces: Sequence[Surface], step: float, gap: float) -> list[list[Surface]]:
    """Return the groups of surfaces that steps link, each from low to high."""
    left, found = list(surfaces), []
    while left:
        group, front = [], [left.pop(0)]
        while front:
            here = front.pop()
            group.append(here)
            near = [other for other in left if linked(here, other, step, gap)]
            left = [other for other in left if other not in near]
            front += near
        found.append(sorted(group, key=lambda surface: float(surface.p[2])))
    return found


def linked(a: Surface, b: Surface, step: float, gap: float) -> bool:
    """Whether a step of this height (m) leads from one surface to the other, over a gap (m) seen from above."""
    low_a, high_a = a.corners[:, 2].min(), a.corners[:, 2].max()
    low_b, high_b = b.corners[:, 2].min(), b.corners[:, 2].max()
    if max(low_a - high_b, low_b - high_a) > step:
        return False
    return apart(a, b) <= gap


def apart(a: Surface, b: Surface) -> float:
    """Return the horizontal distance (m) of two surfaces, between sample points of their outlines."""
    points = [outline(surface) for surface in (a, b)]
    return float(np.min(np.linalg.norm(points[0][:, None, :2] - points[1][None, :, :2], axis=2)))


def outline(surface: Surface) -> np.ndarray:
    """Return points (n,3) along the sides of a surface, m."""
    corners = surface.corners
    ends = np.roll(corners, -1, axis=0)
    return np.concatenate([a + np.linspace(0, 1, 25)[:, None] * (b - a) for a, b in zip(corners, ends, strict=True)])


def hops_to(group: Sequence[Surface], last: Surface, step: float, gap: float) -> dict[str, int]:
    """Return by how many links the surfaces of a group are away from one of them."""
    found, front = {last.name: 0}, [last]
    while front:
        here = front.pop(0)
        for surface in group:
            if surface.name not in found and linked(here, surface, step, gap):
                found[surface.name] = found[here.name] + 1
                front.append(surface)
    return found


LEVEL = np.cos(np.radians(3.0))
"""Minimum vertical component of the normal of the start surface."""

ROOM = 0.01
"""m: clearance of the start posture."""

SHIFT, ASIDE = 0.01, 0.1
"""m: maximum displacement of a foot from its place in the posture, individually and of all feet together."""

LIFT = 0.05
"""m: free height above feet, for a robot of the size of HRP-2: they are lifted so high before they go on."""

GAP = 0.35
"""Maximum horizontal gap of a step / leg length."""

HIGH = 0.21
"""Maximum height of a step / leg length."""

NEAR = 0.1
"""m: minimum distance for computing a heading."""

FAR = 2.0
"""m: distance of a goal on the start surface."""

ALIKE = 0.05
"""m: tolerance of equal heights."""

PLACES = 400
"""Number of places tried on a surface."""


@dataclass(frozen=True, eq=False)
class StandingPlace:
    """Standing robot: posture (nq,), foot contacts, surface."""

    q: np.ndarray
    contacts: tuple[Contact, ...]
    surface: Surface


@dataclass(frozen=True, eq=False)
class Proposal:
    """Start and goal in a scene, with a notice for the user."""

    start: StandingPlace
    goal: dict[str, Any]
    notice: str


def propose(found: DetectedScene, robot: Robot, start: str | None = None, goal: str | None = None) -> Proposal:
    """Return start and goal for a robot on the surfaces found.

    Parameters
    ----------
    start, goal : names of surfaces, where the user says them.

    Raises
    ------
    InputError
        A name that stands for nothing, or no place on which the robot could stand.
    """
    finder = _Places(found.environment, robot)
    names = [surface.name for surface in found.surfaces]
    for name in (start, goal):
        if name is not None and name not in names:
            raise InputError(f"there is no surface `{name}`; there are: {', '.join(names) or 'none'}")
    level = [surface for surface in found.surfaces if surface.normal[2] > LEVEL]
    groups = linked_groups([surface for surface in found.surfaces if finder.fits(surface)], finder.step, finder.gap)
    order = sorted(groups, key=lambda group: (-len(group), group[0].p[2]))
    for group in order if start is None else [g for g in order if start in {s.name for s in g}]:
        for first in _first(group, finder):
            if first not in level or (start is not None and first.name != start):
                continue
            last = _goal(group, first, finder) if goal is None else next(s for s in found.surfaces if s.name == goal)
            place = finder.place(first, _on_the_way(group, first, last, finder))
            if place is None:
                continue
            if last is not first:
                notice = "" if last in group else f"{last.name} is not within a step's reach of {first.name} by others"
                return Proposal(place, {"contacts": [{"patch": "feet", "surface": last.name}], "only": True}, notice)
            there = finder.away(place)
            if there is not None:
                xyz = [round(float(x), 3) for x in there.q[:3]]
                return Proposal(place, {"base": {"xyz": xyz, "tolerance": 0.05}}, "")
    where = f"on `{start}`" if start is not None else "anywhere"
    raise InputError(f"{robot.name} finds no place to stand {where}: level, large enough, collision-free")


class _Places:
    """Places where a robot can stand in its posture."""

    def __init__(self, environment: Environment, robot: Robot):
        self.environment, self.robot = environment, robot
        posture, self.feet = standing_posture(robot), robot.feet
        if posture is None or not self.feet:
            raise InputError(f"{robot.name} has no posture in which it stands, so no start can be proposed")
        self.posture = posture
        self.collisions = CollisionModel(robot, environment)
        standing, links = {robot.frame(name)[0] for name in self.feet}, set(robot.link_names)
        above = [pair.b not in links and robot.frame(pair.a)[0] in standing for pair in self.collisions.pairs]
        self._above = np.where(above, 0.0, -np.inf)
        own = robot_sizes(robot)
        self.step, self.gap = min(1.05 * own["step"], HIGH * own["leg"]), GAP * own["leg"]
        corners = [posture_corners(robot, posture, name) for name in self.feet]
        self.shapes = [c - c.mean(axis=0) for c in corners]

    def fits(self, surface: Surface) -> bool:
        """Whether each foot fits on a surface by itself, in any heading of the robot."""
        for turn in np.linspace(0.0, np.pi, 12, endpoint=False):
            c, s = np.cos(turn), np.sin(turn)
            R = np.array([[c, s], [-s, c]])
            if all(nearest(np.zeros(2), *erode(surface.polygon, shape @ R)) is not None for shape in self.shapes):
                return True
        return False

    def place(self, surface: Surface, towards: np.ndarray) -> StandingPlace | None:
        """Return a place on a surface near a point (3,) of the world, facing it; None where there is none."""
        flat = ((towards - surface.p) @ surface.R)[:2]
        low, high = surface.polygon.min(axis=0), surface.polygon.max(axis=0)
        step = max(0.05, float(np.sqrt(np.prod(high - low) / PLACES)))
        xs, ys = (
            np.arange(a + step / 2, b, step) if b - a > step else [(a + b) / 2] for a, b in zip(low, high, strict=True)
        )
        places = np.array([(x, y) for x in xs for y in ys])
        A, b = half_planes(surface.polygon)
        places = places[np.all(places @ A.T <= b, axis=1)]
        places = places[np.argsort(np.linalg.norm(places - flat, axis=1), kind="stable")]
        # it may look a little aside, and only where nothing else will do away
        for turns in (slice(0, 2), slice(2, 4)):
            for place in places:
                for heading in self._headings(surface, place, flat)[turns]:
                    found = self.stand(surface, place, heading)
                    if found is not None:
                        return found
        return None

    def stand(self, surface: Surface, place: np.ndarray, heading: float) -> StandingPlace | None:
        """Return the robot at a place (2,) of a surface; None where a foot does not fit, or the robot collides."""
        q = self.posture.copy()
        c, s = np.cos(heading / 2), np.sin(heading / 2)
        q[3:7] = [c, 0.0, 0.0, s]
        q[:3] = surface.p + surface.R[:, :2] @ place + [0.0, 0.0, self.posture[2]]
        contacts = self._on(surface, q)
        if contacts is None:
            return None
        # near an edge all feet move in the same direction
        q[:3] += np.mean([contact.p - self.robot.frame_pose(q, contact.patch)[:3, 3] for contact in contacts], axis=0)
        contacts = self._on(surface, q)
        if contacts is None:
            return None
        off = [np.linalg.norm(contact.p - self.robot.frame_pose(q, contact.patch)[:3, 3]) for contact in contacts]
        if max(off) > SHIFT:
            return None
        # a link at its contact touches its support, and nothing else
        margins = np.full(len(self.collisions.pairs), ROOM)
        touching = self.collisions.pairs_of(contacts)
        margins[list(touching)] = -np.inf
        links = set(self.robot.link_names)
        own = [k for k, pair in enumerate(self.collisions.pairs) if pair.b in links]
        margins[own] = -np.inf
        if self.collisions.least(q, margins, touching=touching) is not None or self._covered(q, surface):
            return None
        return StandingPlace(q, tuple(contacts), surface)

    def _covered(self, q: np.ndarray, surface: Surface) -> bool:
        """Whether there is an obstacle above the feet of a posture: toes below a step could not be lifted."""
        raised = q.copy()
        for share in (0.5, 1.0):
            raised[:3] = q[:3] + share * LIFT * self.robot.scale.leg * surface.normal
            if self.collisions.least(raised, self._above) is not None:
                return True
        return False

    def _on(self, surface: Surface, q: np.ndarray) -> list[Contact] | None:
        """Return the foot contacts on a surface nearest to their places in a posture; None if too far."""
        contacts = []
        for name in self.feet:
            X = self.robot.frame_pose(q, name)
            try:
                spec = ContactSpec(patch=name, surface=surface.name)
                contacts.append(make_contact(self.robot, self.environment, spec, (X[:3, :3], X[:3, 3])))
            except InputError:
                return None
            if np.linalg.norm(contacts[-1].p - X[:3, 3]) > ASIDE:
                return None
        return contacts

    def away(self, start: StandingPlace) -> StandingPlace | None:
        """Return a place on the same surface ahead of a start, ``FAR`` away or as far as there is room."""
        surface, heading = start.surface, 2.0 * np.arctan2(start.q[6], start.q[3])
        here = ((start.q[:3] - surface.p) @ surface.R)[:2]
        for far in np.arange(FAR, 0.25, -0.25):
            for turn in np.radians([0, 20, -20, 45, -45, 90, -90, 135, -135, 180]):
                ahead = np.array([np.cos(heading + turn), np.sin(heading + turn), 0.0]) @ surface.R
                found = self.stand(surface, here + far * ahead[:2], heading)
                if found is not None:
                    return found
        return None

    @staticmethod
    def _headings(surface: Surface, place: np.ndarray, flat: np.ndarray) -> list[float]:
        """Return the headings (rad, in the world) to try: along the surface's sides, that towards a point first."""
        # where it is there already, the direction to it over the surface
        path = surface.R[:, :2] @ (flat - place if np.hypot(*(flat - place)) > NEAR else flat)
        ahead = float(np.arctan2(path[1], path[0])) if np.hypot(*path[:2]) > NEAR else 0.0
        side = float(np.arctan2(surface.R[1, 0], surface.R[0, 0]))
        sides = [side + k * np.pi / 2 for k in range(4)]
        return sorted(sides, key=lambda angle: abs((angle - ahead + np.pi) % (2 * np.pi) - np.pi) // 0.3)


def posture_corners(robot: Robot, q: np.ndarray, patch: str) -> np.ndarray:
    """Return the corners (k,2) of a patch seen from above in a posture; a point is a small square."""
    X, polygon = robot.frame_pose(q, patch), robot.patches[patch].polygon
    if polygon is None or len(polygon) < 3:
        polygon = 0.02 * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    return np.array(polygon @ X[:2, :2].T + X[:2, 3])


def _first(group: Sequence[Surface], finder: _Places) -> list[Surface]:
    """Return the surfaces of a group in the order in which they are tried as a start.

    The lowest go first, and of those as low the ones that the fewest steps lead from to the top, those the straightest,
    then the largest.
    """
    low, top = float(group[0].p[2]), group[-1]
    hops = {} if float(top.p[2]) - low < ALIKE else hops_to(group, top, finder.step, finder.gap)

    def rank(surface: Surface) -> tuple[float, ...]:
        hop = hops.get(surface.name, 0)
        turn = 0.0 if hop < 2 else _turn(surface, _next(group, surface, hops, finder), top)
        return round(float(surface.p[2] - low) / ALIKE), hop, turn, -area(surface.polygon)

    return sorted(group, key=rank)


def _next(group: Sequence[Surface], here: Surface, hops: dict[str, int], finder: _Places) -> Surface:
    """Return the surface that is one link nearer to the end, and nearest."""
    near = [s for s in group if hops.get(s.name) == hops[here.name] - 1 and linked(here, s, finder.step, finder.gap)]
    return min(near, key=lambda surface: apart(here, surface))


def _turn(here: Surface, following: Surface, last: Surface) -> float:
    """Return how much the path turns on the next surface: 0 straight on, 2 back, in steps of 0.2."""
    points = outline(here)
    start = points[np.argmin(np.linalg.norm(points - following.p, axis=1))]
    one, two = (following.p - start)[:2], (last.p - following.p)[:2]
    length = np.linalg.norm(one) * np.linalg.norm(two)
    return 0.0 if length < 1e-9 else 0.2 * round(5.0 * (1.0 - float(one @ two) / length))


def _goal(group: Sequence[Surface], first: Surface, finder: _Places) -> Surface:
    """Return the highest surface of a group on which the robot can stand, of those as high the farthest."""

    def rank(surface: Surface) -> tuple[float, float]:
        return round(float(surface.p[2]) / ALIKE), float(np.linalg.norm(surface.p - first.p))

    for surface in sorted(group, key=rank, reverse=True):
        if surface is first or (surface.normal[2] > LEVEL and finder.place(surface, surface.p) is not None):
            return surface
    return first


def _on_the_way(group: Sequence[Surface], first: Surface, last: Surface, finder: _Places) -> np.ndarray:
    """Return the point (3,) from which the path leads on from the first surface to the last: where the next one is."""
    if first is last or last not in group:
        return np.array(last.p)
    following = _next(group, first, hops_to(group, last, finder.step, finder.gap), finder)
    points = outline(following)
    return np.array(points[np.argmin(np.linalg.norm(points - first.p, axis=1))] * 0.5 + following.p * 0.5)
