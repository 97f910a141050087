"""Automatic start and goal of a robot in a scene from a mesh or world file.

Two surfaces are linked if one step of the robot leads from one to the other, by their horizontal gap and their heights.
The start is on the lowest level surface of the largest group of linked surfaces, the goal on the highest. With one
surface only, the goal is a place on it.
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
    """Return the groups of surfaces that are linked by steps, each sorted by height."""
    remaining, found = list(surfaces), []
    while remaining:
        group, front = [], [remaining.pop(0)]
        while front:
            surface = front.pop()
            group.append(surface)
            neighbours = [other for other in remaining if step_links(surface, other, step, gap)]
            remaining = [other for other in remaining if other not in neighbours]
            front += neighbours
        found.append(sorted(group, key=lambda surface: float(surface.p[2])))
    return found


def step_links(a: Surface, b: Surface, step: float, gap: float) -> bool:
    """Return whether a step of this height (m) and horizontal gap (m) leads from one surface to the other."""
    low_a, high_a = a.corners[:, 2].min(), a.corners[:, 2].max()
    low_b, high_b = b.corners[:, 2].min(), b.corners[:, 2].max()
    if max(low_a - high_b, low_b - high_a) > step:
        return False
    return horizontal_distance(a, b) <= gap


def horizontal_distance(a: Surface, b: Surface) -> float:
    """Return the horizontal distance (m) of two surfaces, between sample points of their outlines."""
    points = [outline(surface) for surface in (a, b)]
    return float(np.min(np.linalg.norm(points[0][:, None, :2] - points[1][None, :, :2], axis=2)))


def outline(surface: Surface) -> np.ndarray:
    """Return points (n,3) along the sides of a surface, m."""
    corners = surface.corners
    ends = np.roll(corners, -1, axis=0)
    return np.concatenate([a + np.linspace(0, 1, 25)[:, None] * (b - a) for a, b in zip(corners, ends, strict=True)])


def links_to(group: Sequence[Surface], last: Surface, step: float, gap: float) -> dict[str, int]:
    """Return the number of links from each surface of a group to the last one, by name."""
    found, front = {last.name: 0}, [last]
    while front:
        nearest = front.pop(0)
        for surface in group:
            if surface.name not in found and step_links(nearest, surface, step, gap):
                found[surface.name] = found[nearest.name] + 1
                front.append(surface)
    return found


LEVEL_COSINE = np.cos(np.radians(3.0))
"""Minimum vertical component of the normal of the start surface."""

START_CLEARANCE = 0.01
"""m: clearance of the start posture."""

MAX_FOOT_SHIFT, MAX_COMMON_SHIFT = 0.01, 0.1
"""m: maximum displacement of a foot from its place in the posture, individually and of all feet together."""

FOOT_LIFT = 0.05
"""m: free height above feet, for a robot of the size of HRP-2: feet are lifted this high before they swing."""

MAX_GAP_RATIO = 0.35
"""Maximum horizontal gap of a step / leg length."""

MAX_STEP_RATIO = 0.21
"""Maximum height of a step / leg length."""

MIN_HEADING_DISTANCE = 0.1
"""m: minimum distance for computing a heading."""

GOAL_DISTANCE = 2.0
"""m: distance of a goal on the start surface."""

HEIGHT_TOLERANCE = 0.05
"""m: tolerance of equal heights."""

PLACES_PER_SURFACE = 400
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
    start, goal : names of surfaces, if given by the user.

    Raises
    ------
    InputError
        There is no surface of a given name, or no place on which the robot can stand.
    """
    finder = _Places(found.environment, robot)
    names = [surface.name for surface in found.surfaces]
    for name in (start, goal):
        if name is not None and name not in names:
            raise InputError(f"there is no surface `{name}`; there are: {', '.join(names) or 'none'}")
    level = [surface for surface in found.surfaces if surface.normal[2] > LEVEL_COSINE]
    groups = linked_groups([surface for surface in found.surfaces if finder.fits(surface)], finder.step, finder.gap)
    order = sorted(groups, key=lambda group: (-len(group), group[0].p[2]))
    for group in order if start is None else [g for g in order if start in {s.name for s in g}]:
        for first in _start_order(group, finder):
            if first not in level or (start is not None and first.name != start):
                continue
            last = _goal(group, first, finder) if goal is None else next(s for s in found.surfaces if s.name == goal)
            place = finder.place(first, _direction_point(group, first, last, finder))
            if place is None:
                continue
            if last is not first:
                notice = "" if last in group else f"no chain of steps leads from {first.name} to {last.name}"
                return Proposal(place, {"contacts": [{"patch": "feet", "surface": last.name}], "only": True}, notice)
            target = finder.goal_place(place)
            if target is not None:
                xyz = [round(float(x), 3) for x in target.q[:3]]
                return Proposal(place, {"base": {"xyz": xyz, "tolerance": 0.05}}, "")
    where = f"on `{start}`" if start is not None else "anywhere"
    raise InputError(f"{robot.name} finds no place to stand {where}: level, large enough, collision-free")


class _Places:
    """Places where a robot can stand in its posture."""

    def __init__(self, environment: Environment, robot: Robot):
        self.environment, self.robot = environment, robot
        posture, self.feet = standing_posture(robot), robot.feet
        if posture is None or not self.feet:
            raise InputError(f"{robot.name} has no standing posture, so no start can be proposed")
        self.posture = posture
        self.collisions = CollisionModel(robot, environment)
        foot_links, links = {robot.frame(name)[0] for name in self.feet}, set(robot.link_names)
        is_above = [pair.b not in links and robot.frame(pair.a)[0] in foot_links for pair in self.collisions.pairs]
        self._above_margins = np.where(is_above, 0.0, -np.inf)
        sizes = robot_sizes(robot)
        self.step, self.gap = min(1.05 * sizes["step"], MAX_STEP_RATIO * sizes["leg"]), MAX_GAP_RATIO * sizes["leg"]
        corners = [posture_corners(robot, posture, name) for name in self.feet]
        self.shapes = [c - c.mean(axis=0) for c in corners]

    def fits(self, surface: Surface) -> bool:
        """Return whether each foot alone fits on a surface, for some heading of the robot."""
        for turn in np.linspace(0.0, np.pi, 12, endpoint=False):
            c, s = np.cos(turn), np.sin(turn)
            R = np.array([[c, s], [-s, c]])
            if all(nearest(np.zeros(2), *erode(surface.polygon, shape @ R)) is not None for shape in self.shapes):
                return True
        return False

    def place(self, surface: Surface, towards: np.ndarray) -> StandingPlace | None:
        """Return a standing place on a surface, near a point (3,) of the world and facing it; None if there is none."""
        target = ((towards - surface.p) @ surface.R)[:2]
        low, high = surface.polygon.min(axis=0), surface.polygon.max(axis=0)
        step = max(0.05, float(np.sqrt(np.prod(high - low) / PLACES_PER_SURFACE)))
        xs, ys = (
            np.arange(a + step / 2, b, step) if b - a > step else [(a + b) / 2] for a, b in zip(low, high, strict=True)
        )
        places = np.array([(x, y) for x in xs for y in ys])
        A, b = half_planes(surface.polygon)
        places = places[np.all(places @ A.T <= b, axis=1)]
        places = places[np.argsort(np.linalg.norm(places - target, axis=1), kind="stable")]
        # prefer headings towards the point; use the opposite ones only if no place is found
        for turns in (slice(0, 2), slice(2, 4)):
            for place in places:
                for heading in self._headings(surface, place, target)[turns]:
                    found = self.stand(surface, place, heading)
                    if found is not None:
                        return found
        return None

    def stand(self, surface: Surface, place: np.ndarray, heading: float) -> StandingPlace | None:
        """Return the robot at a place (2,) of a surface; None if a foot does not fit or the robot collides."""
        q = self.posture.copy()
        c, s = np.cos(heading / 2), np.sin(heading / 2)
        q[3:7] = [c, 0.0, 0.0, s]
        q[:3] = surface.p + surface.R[:, :2] @ place + [0.0, 0.0, self.posture[2]]
        contacts = self._foot_contacts(surface, q)
        if contacts is None:
            return None
        # near an edge all feet move in the same direction
        q[:3] += np.mean([contact.p - self.robot.frame_pose(q, contact.patch)[:3, 3] for contact in contacts], axis=0)
        contacts = self._foot_contacts(surface, q)
        if contacts is None:
            return None
        shifts = [np.linalg.norm(contact.p - self.robot.frame_pose(q, contact.patch)[:3, 3]) for contact in contacts]
        if max(shifts) > MAX_FOOT_SHIFT:
            return None
        # a link in contact may touch its support, and nothing else
        margins = np.full(len(self.collisions.pairs), START_CLEARANCE)
        touching = self.collisions.pairs_of(contacts)
        margins[list(touching)] = -np.inf
        links = set(self.robot.link_names)
        self_pairs = [k for k, pair in enumerate(self.collisions.pairs) if pair.b in links]
        margins[self_pairs] = -np.inf
        if self.collisions.least(q, margins, touching=touching) is not None or self._covered(q, surface):
            return None
        return StandingPlace(q, tuple(contacts), surface)

    def _covered(self, q: np.ndarray, surface: Surface) -> bool:
        """Return whether there is an obstacle above the feet: toes below a step cannot be lifted."""
        raised = q.copy()
        for share in (0.5, 1.0):
            raised[:3] = q[:3] + share * FOOT_LIFT * self.robot.scale.leg * surface.normal
            if self.collisions.least(raised, self._above_margins) is not None:
                return True
        return False

    def _foot_contacts(self, surface: Surface, q: np.ndarray) -> list[Contact] | None:
        """Return the foot contacts on a surface nearest to their places in a posture; None if too far."""
        contacts = []
        for name in self.feet:
            X = self.robot.frame_pose(q, name)
            try:
                spec = ContactSpec(patch=name, surface=surface.name)
                contacts.append(make_contact(self.robot, self.environment, spec, (X[:3, :3], X[:3, 3])))
            except InputError:
                return None
            if np.linalg.norm(contacts[-1].p - X[:3, 3]) > MAX_COMMON_SHIFT:
                return None
        return contacts

    def goal_place(self, start: StandingPlace) -> StandingPlace | None:
        """Return a place on the surface of a start, at ``GOAL_DISTANCE`` or the largest distance that fits."""
        surface, heading = start.surface, 2.0 * np.arctan2(start.q[6], start.q[3])
        origin = ((start.q[:3] - surface.p) @ surface.R)[:2]
        for distance in np.arange(GOAL_DISTANCE, 0.25, -0.25):
            for turn in np.radians([0, 20, -20, 45, -45, 90, -90, 135, -135, 180]):
                ahead = np.array([np.cos(heading + turn), np.sin(heading + turn), 0.0]) @ surface.R
                found = self.stand(surface, origin + distance * ahead[:2], heading)
                if found is not None:
                    return found
        return None

    @staticmethod
    def _headings(surface: Surface, place: np.ndarray, target: np.ndarray) -> list[float]:
        """Return headings (rad, world) along the sides of the surface, the one towards a point first."""
        # at the point itself: the direction from the centre of the surface to it
        path = surface.R[:, :2] @ (target - place if np.hypot(*(target - place)) > MIN_HEADING_DISTANCE else target)
        ahead = float(np.arctan2(path[1], path[0])) if np.hypot(*path[:2]) > MIN_HEADING_DISTANCE else 0.0
        side = float(np.arctan2(surface.R[1, 0], surface.R[0, 0]))
        sides = [side + k * np.pi / 2 for k in range(4)]
        return sorted(sides, key=lambda angle: abs((angle - ahead + np.pi) % (2 * np.pi) - np.pi) // 0.3)


def posture_corners(robot: Robot, q: np.ndarray, patch: str) -> np.ndarray:
    """Return the corners (k,2) of a patch seen from above in a posture; a point is a small square."""
    X, polygon = robot.frame_pose(q, patch), robot.patches[patch].polygon
    if polygon is None or len(polygon) < 3:
        polygon = 0.02 * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    return np.array(polygon @ X[:2, :2].T + X[:2, 3])


def _start_order(group: Sequence[Surface], finder: _Places) -> list[Surface]:
    """Return the surfaces of a group in the order in which they are tried as a start.

    The lowest first. Among equally low ones, those with the fewest steps to the top, then with the straightest path,
    then the largest.
    """
    low, top = float(group[0].p[2]), group[-1]
    links = {} if float(top.p[2]) - low < HEIGHT_TOLERANCE else links_to(group, top, finder.step, finder.gap)

    def rank(surface: Surface) -> tuple[float, ...]:
        count = links.get(surface.name, 0)
        turn = 0.0 if count < 2 else _path_turn(surface, _next_surface(group, surface, links, finder), top)
        return round(float(surface.p[2] - low) / HEIGHT_TOLERANCE), count, turn, -area(surface.polygon)

    return sorted(group, key=rank)


def _next_surface(group: Sequence[Surface], at: Surface, links: dict[str, int], finder: _Places) -> Surface:
    """Return the nearest surface that is one link closer to the end."""
    closer = [
        s for s in group if links.get(s.name) == links[at.name] - 1 and step_links(at, s, finder.step, finder.gap)
    ]
    return min(closer, key=lambda surface: horizontal_distance(at, surface))


def _path_turn(surface: Surface, following: Surface, last: Surface) -> float:
    """Return 1 - cos of the turn of the path on the next surface (0: straight, 2: back), in steps of 0.2."""
    points = outline(surface)
    start = points[np.argmin(np.linalg.norm(points - following.p, axis=1))]
    one, two = (following.p - start)[:2], (last.p - following.p)[:2]
    length = np.linalg.norm(one) * np.linalg.norm(two)
    return 0.0 if length < 1e-9 else 0.2 * round(5.0 * (1.0 - float(one @ two) / length))


def _goal(group: Sequence[Surface], first: Surface, finder: _Places) -> Surface:
    """Return the highest surface of a group on which the robot can stand; among equally high ones the farthest."""

    def rank(surface: Surface) -> tuple[float, float]:
        return round(float(surface.p[2]) / HEIGHT_TOLERANCE), float(np.linalg.norm(surface.p - first.p))

    for surface in sorted(group, key=rank, reverse=True):
        if surface is first or (surface.normal[2] > LEVEL_COSINE and finder.place(surface, surface.p) is not None):
            return surface
    return first


def _direction_point(group: Sequence[Surface], first: Surface, last: Surface, finder: _Places) -> np.ndarray:
    """Return the point (3,) towards which the path leaves the first surface: on the next surface to the last one."""
    if first is last or last not in group:
        return np.array(last.p)
    following = _next_surface(group, first, links_to(group, last, finder.step, finder.gap), finder)
    points = outline(following)
    return np.array(points[np.argmin(np.linalg.norm(points - first.p, axis=1))] * 0.5 + following.p * 0.5)
