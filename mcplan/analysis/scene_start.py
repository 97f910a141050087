"""Automatic start and goal of a robot in a scene from a mesh or world file.

Two surfaces are connected if one step of the robot leads from one to the other; their horizontal gap and their heights
decide. The start is on the lowest level surface of the largest group of connected surfaces, the goal on the highest.
With a single surface, the goal is another position on it.
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


def connected_groups(surfaces: Sequence[Surface], step: float, gap: float) -> list[list[Surface]]:
    """Return the groups of surfaces that steps connect, each sorted by height."""
    remaining, found = list(surfaces), []
    while remaining:
        group, frontier = [], [remaining.pop(0)]
        while frontier:
            surface = frontier.pop()
            group.append(surface)
            neighbours = [other for other in remaining if is_one_step(surface, other, step, gap)]
            remaining = [other for other in remaining if other not in neighbours]
            frontier += neighbours
        found.append(sorted(group, key=lambda surface: float(surface.p[2])))
    return found


def is_one_step(a: Surface, b: Surface, step: float, gap: float) -> bool:
    """Whether one step of at most this height and horizontal gap (m) leads from one surface to the other."""
    low_a, high_a = a.corners[:, 2].min(), a.corners[:, 2].max()
    low_b, high_b = b.corners[:, 2].min(), b.corners[:, 2].max()
    if max(low_a - high_b, low_b - high_a) > step:
        return False
    return horizontal_distance(a, b) <= gap


def horizontal_distance(a: Surface, b: Surface) -> float:
    """Return the horizontal distance (m) between two surfaces, measured between sampled points of their outlines."""
    points = [outline(surface) for surface in (a, b)]
    return float(np.min(np.linalg.norm(points[0][:, None, :2] - points[1][None, :, :2], axis=2)))


def outline(surface: Surface) -> np.ndarray:
    """Return points (n,3) along the sides of a surface, m."""
    corners = surface.corners
    ends = np.roll(corners, -1, axis=0)
    return np.concatenate([a + np.linspace(0, 1, 25)[:, None] * (b - a) for a, b in zip(corners, ends, strict=True)])


def steps_to(group: Sequence[Surface], last: Surface, step: float, gap: float) -> dict[str, int]:
    """Return the number of steps from each surface of a group to the last one, by name (breadth-first search)."""
    found, frontier = {last.name: 0}, [last]
    while frontier:
        current = frontier.pop(0)
        for surface in group:
            if surface.name not in found and is_one_step(current, surface, step, gap):
                found[surface.name] = found[current.name] + 1
                frontier.append(surface)
    return found


LEVEL_COSINE = np.cos(np.radians(3.0))
"""Minimum vertical component of the normal of the start surface."""

START_CLEARANCE = 0.01
"""m: minimum clearance of the start posture from obstacles."""

MAX_FOOT_SHIFT, MAX_COMMON_SHIFT = 0.01, 0.1
"""m: maximum displacement of a foot from its position in the posture: of one foot, of all feet together."""

FOOT_LIFT = 0.05
"""m: free height required above feet, for a robot of HRP-2's size: feet are lifted this high before they swing."""

MAX_GAP_RATIO = 0.35
"""Maximum horizontal gap that a step bridges, relative to the leg length."""

MAX_STEP_RATIO = 0.21
"""Maximum height of a step, relative to the leg length."""

MIN_HEADING_DISTANCE = 0.1
"""m: the direction to a nearer point does not determine a heading."""

GOAL_DISTANCE = 2.0
"""m: distance of a goal on the start surface."""

HEIGHT_TOLERANCE = 0.05
"""m: surfaces whose heights differ by less count as equally high."""

POSITIONS_PER_SURFACE = 400
"""Number of grid positions tried on a surface."""


@dataclass(frozen=True, eq=False)
class StandingPose:
    """A standing robot: its posture (nq,), the contacts of its feet, and the surface."""

    q: np.ndarray
    contacts: tuple[Contact, ...]
    surface: Surface


@dataclass(frozen=True, eq=False)
class Proposal:
    """Proposed start pose, goal (as in a scenario file), and a notice for the user (may be empty)."""

    start: StandingPose
    goal: dict[str, Any]
    notice: str


def propose_start_and_goal(
    scene: DetectedScene, robot: Robot, start: str | None = None, goal: str | None = None
) -> Proposal:
    """Return start and goal of a robot on the surfaces of a scene.

    Parameters
    ----------
    scene, robot : detected scene, and the robot.
    start, goal : names of surfaces that the user selected, or None.

    Raises
    ------
    InputError
        There is no surface of that name, or the robot cannot stand on any.
    """
    finder = _PlaceFinder(scene.environment, robot)
    names = [surface.name for surface in scene.surfaces]
    for name in (start, goal):
        if name is not None and name not in names:
            raise InputError(f"there is no surface `{name}`; there are: {', '.join(names) or 'none'}")
    level = [surface for surface in scene.surfaces if surface.normal[2] > LEVEL_COSINE]
    groups = connected_groups(
        [surface for surface in scene.surfaces if finder.is_large_enough(surface)], finder.step, finder.gap
    )
    order = sorted(groups, key=lambda group: (-len(group), group[0].p[2]))
    for group in order if start is None else [g for g in order if start in {s.name for s in g}]:
        for first in _start_order(group, finder):
            if first not in level or (start is not None and first.name != start):
                continue
            last = (
                _goal_surface(group, first, finder)
                if goal is None
                else next(s for s in scene.surfaces if s.name == goal)
            )
            pose = finder.find_pose(first, _direction_point(group, first, last, finder))
            if pose is None:
                continue
            if last is not first:
                notice = "" if last in group else f"no chain of steps leads from {first.name} to {last.name}"
                return Proposal(pose, {"contacts": [{"patch": "feet", "surface": last.name}], "only": True}, notice)
            target = finder.goal_pose(pose)
            if target is not None:
                xyz = [round(float(x), 3) for x in target.q[:3]]
                return Proposal(pose, {"base": {"xyz": xyz, "tolerance": 0.05}}, "")
    where = f"on `{start}`" if start is not None else "anywhere"
    raise InputError(f"{robot.name} finds no place to stand {where}: level, large enough, collision-free")


class _PlaceFinder:
    """Search for poses on surfaces where a robot can stand in its standing posture."""

    def __init__(self, environment: Environment, robot: Robot):
        self.environment, self.robot = environment, robot
        posture, self.feet = standing_posture(robot), robot.feet
        if posture is None or not self.feet:
            raise InputError(f"{robot.name} has no standing posture, so no start can be proposed")
        self.posture = posture
        self.collisions = CollisionModel(robot, environment)
        foot_links, links = {robot.frame(name)[0] for name in self.feet}, set(robot.link_names)
        is_foot_pair = [pair.b not in links and robot.frame(pair.a)[0] in foot_links for pair in self.collisions.pairs]
        self._foot_margins = np.where(is_foot_pair, 0.0, -np.inf)  # only feet against the environment are checked
        sizes = robot_sizes(robot)
        self.step, self.gap = min(1.05 * sizes["step"], MAX_STEP_RATIO * sizes["leg"]), MAX_GAP_RATIO * sizes["leg"]
        corners = [posture_corners(robot, posture, name) for name in self.feet]
        self.shapes = [c - c.mean(axis=0) for c in corners]

    def is_large_enough(self, surface: Surface) -> bool:
        """Whether each foot alone fits on a surface, for some heading of the robot."""
        for heading in np.linspace(0.0, np.pi, 12, endpoint=False):
            c, s = np.cos(heading), np.sin(heading)
            R = np.array([[c, s], [-s, c]])
            if all(nearest(np.zeros(2), *erode(surface.polygon, shape @ R)) is not None for shape in self.shapes):
                return True
        return False

    def find_pose(self, surface: Surface, towards: np.ndarray) -> StandingPose | None:
        """Return a pose on a surface, near a point ``towards`` (3,) in the world and facing it, or None."""
        target = ((towards - surface.p) @ surface.R)[:2]
        low, high = surface.polygon.min(axis=0), surface.polygon.max(axis=0)
        step = max(0.05, float(np.sqrt(np.prod(high - low) / POSITIONS_PER_SURFACE)))
        xs, ys = (
            np.arange(a + step / 2, b, step) if b - a > step else [(a + b) / 2] for a, b in zip(low, high, strict=True)
        )
        positions = np.array([(x, y) for x in xs for y in ys])
        A, b = half_planes(surface.polygon)
        positions = positions[np.all(positions @ A.T <= b, axis=1)]
        positions = positions[np.argsort(np.linalg.norm(positions - target, axis=1), kind="stable")]
        # prefer the two headings nearest to the direction of the point; the others only if those fail everywhere
        for preference in (slice(0, 2), slice(2, 4)):
            for position in positions:
                for heading in self._headings(surface, position, target)[preference]:
                    found = self.standing_pose(surface, position, heading)
                    if found is not None:
                        return found
        return None

    def standing_pose(self, surface: Surface, position: np.ndarray, heading: float) -> StandingPose | None:
        """Return the robot at a position (2,) on a surface; None if a foot does not fit or the robot collides."""
        q = self.posture.copy()
        c, s = np.cos(heading / 2), np.sin(heading / 2)
        q[3:7] = [c, 0.0, 0.0, s]
        q[:3] = surface.p + surface.R[:, :2] @ position + [0.0, 0.0, self.posture[2]]
        contacts = self._foot_contacts(surface, q)
        if contacts is None:
            return None
        # near an edge the contacts of all feet are shifted in the same direction: shift the base by their mean
        q[:3] += np.mean([contact.p - self.robot.frame_pose(q, contact.patch)[:3, 3] for contact in contacts], axis=0)
        contacts = self._foot_contacts(surface, q)
        if contacts is None:
            return None
        shifts = [np.linalg.norm(contact.p - self.robot.frame_pose(q, contact.patch)[:3, 3]) for contact in contacts]
        if max(shifts) > MAX_FOOT_SHIFT:
            return None
        # a link in contact may touch its support only; the standing posture itself is free of self-collision. Pairs
        # with the margin -inf are not checked; `least` returns the pair farthest below its margin, or None
        margins = np.full(len(self.collisions.pairs), START_CLEARANCE)
        touching = self.collisions.pairs_of(contacts)
        margins[list(touching)] = -np.inf
        links = set(self.robot.link_names)
        self_pairs = [k for k, pair in enumerate(self.collisions.pairs) if pair.b in links]
        margins[self_pairs] = -np.inf
        if self.collisions.least(q, margins, touching=touching) is not None or self._is_covered(q, surface):
            return None
        return StandingPose(q, tuple(contacts), surface)

    def _is_covered(self, q: np.ndarray, surface: Surface) -> bool:
        """Whether there is an obstacle above the feet: toes below the edge of a step cannot be lifted."""
        raised = q.copy()
        for share in (0.5, 1.0):
            raised[:3] = q[:3] + share * FOOT_LIFT * self.robot.scale.leg * surface.normal
            if self.collisions.least(raised, self._foot_margins) is not None:
                return True
        return False

    def _foot_contacts(self, surface: Surface, q: np.ndarray) -> list[Contact] | None:
        """Return the contacts on a surface nearest to the feet of a posture; None if one is too far from its foot."""
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

    def goal_pose(self, start: StandingPose) -> StandingPose | None:
        """Return a pose on the surface of a start, at ``GOAL_DISTANCE`` or the largest smaller distance that fits."""
        surface, heading = start.surface, 2.0 * np.arctan2(start.q[6], start.q[3])
        origin = ((start.q[:3] - surface.p) @ surface.R)[:2]
        for distance in np.arange(GOAL_DISTANCE, 0.25, -0.25):
            for angle in np.radians([0, 20, -20, 45, -45, 90, -90, 135, -135, 180]):
                direction = np.array([np.cos(heading + angle), np.sin(heading + angle), 0.0]) @ surface.R
                found = self.standing_pose(surface, origin + distance * direction[:2], heading)
                if found is not None:
                    return found
        return None

    @staticmethod
    def _headings(surface: Surface, position: np.ndarray, target: np.ndarray) -> list[float]:
        """Return the headings (rad, world) along the sides of a surface, those nearest to the target's direction first.

        Angles to the target are compared in steps of 0.3 rad; within a step the order of the sides decides.
        """
        offset = target - position
        # at the target itself, use the direction from the centre of the surface to the target
        path = surface.R[:, :2] @ (offset if np.hypot(*offset) > MIN_HEADING_DISTANCE else target)
        to_target = float(np.arctan2(path[1], path[0])) if np.hypot(*path[:2]) > MIN_HEADING_DISTANCE else 0.0
        side = float(np.arctan2(surface.R[1, 0], surface.R[0, 0]))
        sides = [side + k * np.pi / 2 for k in range(4)]
        return sorted(sides, key=lambda angle: abs((angle - to_target + np.pi) % (2 * np.pi) - np.pi) // 0.3)


def posture_corners(robot: Robot, q: np.ndarray, patch: str) -> np.ndarray:
    """Return the corners (k,2) of a patch in a posture, seen from above; a point counts as a square of 4 cm."""
    X, polygon = robot.frame_pose(q, patch), robot.patches[patch].polygon
    if polygon is None or len(polygon) < 3:
        polygon = 0.02 * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    return np.array(polygon @ X[:2, :2].T + X[:2, 3])


def _start_order(group: Sequence[Surface], finder: _PlaceFinder) -> list[Surface]:
    """Return the surfaces of a group in the order in which they are tried as a start.

    The lowest come first; among equally low ones those with the fewest steps to the top, then those with the
    straightest path, then the largest.
    """
    low, top = float(group[0].p[2]), group[-1]
    steps = {} if float(top.p[2]) - low < HEIGHT_TOLERANCE else steps_to(group, top, finder.step, finder.gap)

    def rank(surface: Surface) -> tuple[float, ...]:
        count = steps.get(surface.name, 0)
        turn = 0.0 if count < 2 else _path_turn(surface, _next_surface(group, surface, steps, finder), top)
        return round(float(surface.p[2] - low) / HEIGHT_TOLERANCE), count, turn, -area(surface.polygon)

    return sorted(group, key=rank)


def _next_surface(group: Sequence[Surface], current: Surface, steps: dict[str, int], finder: _PlaceFinder) -> Surface:
    """Return the nearest surface that is one step closer to the end of the path; ``steps`` are those to it, by name."""
    closer = [
        surface
        for surface in group
        if steps.get(surface.name) == steps[current.name] - 1 and is_one_step(current, surface, finder.step, finder.gap)
    ]
    return min(closer, key=lambda surface: horizontal_distance(current, surface))


def _path_turn(surface: Surface, next_surface: Surface, last: Surface) -> float:
    """Return 1 - cos of the turn of the path on the next surface (0: straight, 2: back), rounded to 0.2."""
    points = outline(surface)
    start = points[np.argmin(np.linalg.norm(points - next_surface.p, axis=1))]
    first_leg, second_leg = (next_surface.p - start)[:2], (last.p - next_surface.p)[:2]
    length = np.linalg.norm(first_leg) * np.linalg.norm(second_leg)
    return 0.0 if length < 1e-9 else 0.2 * round(5.0 * (1.0 - float(first_leg @ second_leg) / length))


def _goal_surface(group: Sequence[Surface], first: Surface, finder: _PlaceFinder) -> Surface:
    """Return the highest surface of a group on which the robot can stand; among equally high ones the farthest."""

    def rank(surface: Surface) -> tuple[float, float]:
        return round(float(surface.p[2]) / HEIGHT_TOLERANCE), float(np.linalg.norm(surface.p - first.p))

    for surface in sorted(group, key=rank, reverse=True):
        if surface is first or (surface.normal[2] > LEVEL_COSINE and finder.find_pose(surface, surface.p) is not None):
            return surface
    return first


def _direction_point(group: Sequence[Surface], first: Surface, last: Surface, finder: _PlaceFinder) -> np.ndarray:
    """Return the point (3,) towards which the path leaves the first surface: on the next surface of the path."""
    if first is last or last not in group:
        return np.array(last.p)
    next_surface = _next_surface(group, first, steps_to(group, last, finder.step, finder.gap), finder)
    points = outline(next_surface)
    return np.array(points[np.argmin(np.linalg.norm(points - first.p, axis=1))] * 0.5 + next_surface.p * 0.5)
