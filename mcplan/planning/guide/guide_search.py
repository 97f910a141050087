"""Guide search: path of the base from start to goal, straight if collision-free, else by A* on a lattice of poses.

A* (Hart, Nilsson, Raphael 1968) over x, y and heading, with eight directions and eight headings; the height follows
from the supports. The cost of a path is its length, increased for motion sideways or backward, near obstacles, and for
turns:

    d cost = c ((3 - cos(a)) / 2 |dp| + TURN_M_PER_RAD |dyaw|)

for a motion by dp and dyaw, with the angle a from the heading to the direction of dp, and c from `Traversability.cost`.

Constants in m and m/rad are those for a robot of HRP-2's size; they are scaled by the leg length.
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
"""Number of headings of the lattice."""

TURN_STEP_RAD = 2 * np.pi / HEADINGS
"""Angle between neighbouring headings of the lattice."""

FLOOR_HEIGHT_M = 0.25
"""Height interval of the lattice: poses in different intervals are different nodes."""

MAX_DETOUR_COST = 0.95
"""A detour replaces the straight path if its cost is below this share of that path's cost."""

MAX_EXPANDED_NODES = 6000
"""Maximum number of nodes that A* expands."""

MIN_DETOUR_LENGTH_M = 0.15
"""A path shorter than this stays straight without a search."""

MIN_HEADING_SPREAD_M = 0.1
"""Contacts whose distances from their mean have a smaller norm than this do not define a heading."""


@dataclass(frozen=True)
class Route:
    """The corners of a path.

    Attributes
    ----------
    poses : start, corners and goal, with unwrapped headings.
    obstruction : obstruction of the straight path if no other path was found; then the route is the straight path.
    """

    poses: tuple[BasePose, ...]
    obstruction: Obstruction | None = None


def find_route(passage: Traversability, start: BasePose, goal: BasePose) -> Route:
    """Return the path from start to goal; the straight one if it is collision-free or no detour is cheaper."""
    straight = (start, goal)
    if np.hypot(goal.x - start.x, goal.y - start.y) < passage.size * MIN_DETOUR_LENGTH_M:
        return Route(straight)
    cost = _cost(passage, straight)
    if cost <= _free_cost(start, goal, passage.size) + 1e-6:
        return Route(straight)
    found = _search(passage, start, goal)
    if found is not None:
        found = _shortcut(passage, found)
        cheaper = sum(_cost(passage, pair) for pair in pairwise(found)) < MAX_DETOUR_COST * cost
        if cheaper and _deviation(found, straight, passage.size) > 1.5 * passage.size * GRID_M:
            return Route(tuple(found))
    if np.isfinite(cost):
        return Route(straight)
    obstructions = (passage.obstruction(pose) for pose in _sample_poses(start, goal, passage.size))
    return Route(straight, next((obstruction for obstruction in obstructions if obstruction is not None), None))


def _deviation(corners: list[BasePose], straight: tuple[BasePose, BasePose], size: float) -> float:
    """Return the largest distance of the corners of a path from the straight one (m), with headings as lengths."""
    a, b = (np.array([*pose[:3], size * TURN_M_PER_RAD * pose.yaw]) for pose in straight)
    arms = np.array([[*pose[:3], size * TURN_M_PER_RAD * pose.yaw] for pose in corners]) - a
    share = np.clip(arms @ (b - a) / max((b - a) @ (b - a), 1e-12), 0.0, 1.0)
    return float(np.linalg.norm(arms - share[:, None] * (b - a), axis=1).max())


def _free_cost(a: BasePose, b: BasePose, size: float) -> float:
    """Return the cost of the straight path from ``a`` to ``b`` without obstacles, that is for c = 1."""
    distance = float(np.hypot(b.x - a.x, b.y - a.y))
    middle = 0.5 * (a.yaw + b.yaw)
    ahead = (b.x - a.x) * np.cos(middle) + (b.y - a.y) * np.sin(middle)
    return 1.5 * distance - 0.5 * float(ahead) + size * TURN_M_PER_RAD * abs(b.yaw - a.yaw)


def _sample_poses(a: BasePose, b: BasePose, size: float) -> Iterator[BasePose]:
    """Yield poses from ``a`` to ``b``, at most 1.5 spacings apart: there is none between neighbours of the lattice."""
    steps = np.hypot(b.x - a.x, b.y - a.y) / (1.5 * size * GRID_M)
    count = max(1, int(np.ceil(max(steps, abs(b.yaw - a.yaw) / TURN_STEP_RAD) - 1e-9)))
    for k in range(count + 1):
        yield BasePose(*((1 - k / count) * x + k / count * y for x, y in zip(a, b, strict=True)))


def _cost(passage: Traversability, ends: tuple[BasePose, BasePose]) -> float:
    """Return the cost of the straight path between two poses; infinite if it is blocked between them."""
    total, previous = 0.0, None
    for pose in _sample_poses(*ends, passage.size):
        cost = passage.cost(pose)
        if not np.isfinite(cost):
            if pose not in ends:
                return np.inf
            cost = 1.0
        if previous is not None:
            total += 0.5 * (cost + previous[1]) * _free_cost(previous[0], pose, passage.size)
        previous = (pose, cost)
    return total


def _search(passage: Traversability, start: BasePose, goal: BasePose) -> list[BasePose] | None:
    """Return the cheapest path on the lattice through the start, or None if A* finds none."""
    steps = [(i, j, 0) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j] + [(0, 0, 1), (0, 0, -1)]
    root, grid = (0, 0, 0, 0), passage.size * GRID_M
    poses, costs, parents = {root: start}, {root: 0.0}, {root: root}
    queue = [(_cost_to_go(start, goal, passage.size), 0, root)]
    closed: set[tuple[int, int, int, int]] = set()
    count = 0
    while queue and len(closed) < MAX_EXPANDED_NODES:
        _, _, key = heapq.heappop(queue)
        if key in closed:
            continue
        closed.add(key)
        pose = poses[key]
        if np.hypot(goal.x - pose.x, goal.y - pose.y) < 0.75 * grid and abs(goal.z - pose.z) <= passage.max_step_height:
            path = [goal._replace(yaw=pose.yaw + _wrap_angle(goal.yaw - pose.yaw))]
            while key != root:
                path.append(poses[key])
                key = parents[key]
            return [start, *path[::-1]]
        for i, j, k in steps:
            x, y, yaw = pose.x + grid * i, pose.y + grid * j, pose.yaw + TURN_STEP_RAD * k
            z = passage.support(x, y, yaw, pose.z).height
            if np.isnan(z):
                continue
            neighbour = BasePose(x, y, z, yaw)
            floor = round((z - start.z) / (passage.size * FLOOR_HEIGHT_M))
            neighbour_key = (key[0] + i, key[1] + j, (key[2] + k) % HEADINGS, floor)
            if neighbour_key in closed or not np.isfinite(passage.cost(neighbour)):
                continue
            total = costs[key] + _cost(passage, (pose, neighbour))
            if total < costs.get(neighbour_key, np.inf) - 1e-9:
                poses[neighbour_key], costs[neighbour_key], parents[neighbour_key] = neighbour, total, key
                count += 1
                heapq.heappush(queue, (total + _cost_to_go(neighbour, goal, passage.size), count, neighbour_key))
    return None


def _cost_to_go(pose: BasePose, goal: BasePose, size: float) -> float:
    """Return a lower bound of the cost to the goal: the heuristic of A*."""
    turn = abs(_wrap_angle(goal.yaw - pose.yaw))
    return float(np.hypot(goal.x - pose.x, goal.y - pose.y)) + size * TURN_M_PER_RAD * turn


def _shortcut(passage: Traversability, corners: list[BasePose]) -> list[BasePose]:
    """Return the path with shortcuts that are no more expensive."""
    legs = [_cost(passage, pair) for pair in pairwise(corners)]
    path_costs = np.append(0.0, np.cumsum(legs))
    found, i = [corners[0]], 0
    while i < len(corners) - 1:
        j = len(corners) - 1
        while j > i + 1 and _cost(passage, (corners[i], corners[j])) > path_costs[j] - path_costs[i] + 1e-6:
            j -= 1
        found.append(corners[j])
        i = j
    return found


def _wrap_angle(angle: float) -> float:
    return float((angle + np.pi) % (2 * np.pi) - np.pi)


class Guide(NamedTuple):
    """A path of the base, and the obstruction on it if no other path was found."""

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
    """Return the straight path of the base from a stance to a goal, through key poses if there are any.

    At key poses without an orientation the heading is interpolated.

    Parameters
    ----------
    contacts : contacts of the stance.
    q : (nq,) posture at the stance.
    offsets : nominal position (3,) of each patch in the base's heading frame.
    guide : key poses of the base.
    """
    yaw = base_yaw(q)
    base_start = _fit_base_position(
        [(c.p, offsets[c.patch]) for c in contacts if c.patch in goal.specs or not goal.specs], yaw
    )
    base_start = q[:3] if base_start is None else base_start
    touching = {contact.patch for contact in contacts}
    positions, yaw_changes, exact_positions = [], [], []
    for patch, spec in goal.specs.items():
        offset = offsets[patch]
        X = robot.frame_pose(q, patch)
        try:
            contact = make_contact(robot, environment, spec, (X[:3, :3], X[:3, 3]))
        except InputError:
            support = environment.support(spec.surface)
            centre = support.ends.mean(axis=0) if isinstance(support, Bar) else support.corners.mean(axis=0)
            positions.append((centre, offset))
            continue
        if {"x", "y"} <= set(spec.given) or "along" in spec.given:
            exact_positions.append((contact.p, offset))
        if "yaw" in spec.given and contact.kind == "surface" and len(contact.points) > 2 and patch in touching:
            yaw_changes.append(patch_heading(contact.R) - patch_heading(X[:3, :3]))
        positions.append((contact.p, offset))
    end_yaw = yaw
    if yaw_changes:
        end_yaw = yaw + float(np.angle(np.mean(np.exp(1j * np.array(yaw_changes)))))
    elif (fitted := _fit_heading(exact_positions, robot.scale.leg * MIN_HEADING_SPREAD_M)) is not None:
        end_yaw = yaw + _wrap_angle(fitted - yaw)
    base_end = _fit_base_position(positions, end_yaw)
    if base_end is None:
        base_end = base_start if goal.item.base is None else np.array(goal.item.base.xyz)
    between = np.array([pose.p for pose in guide]).reshape(-1, 3)
    headings = {0: yaw, len(guide) + 1: end_yaw}
    headings |= {
        k: patch_heading(one.R) for k, one in enumerate(guide, 1) if one.rpy is not None or one.quat_wxyz is not None
    }
    keys = sorted(headings)
    yaws = np.interp(np.arange(len(guide) + 2), keys, np.unwrap([headings[k] for k in keys]))
    return GuidePath(np.vstack([base_start, between, base_end]), yaws, robot.scale.leg * TURN_M_PER_RAD)


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
    contacts, q : stance at the start, and its posture (nq,).
    limbs : limbs that may be in contact, by name.
    offsets : nominal position (3,) of each patch in the base's heading frame.
    """
    robot, environment = feasibility.robot, feasibility.environment
    supports = [environment.support(contact.support) for contact in contacts]
    supports += [environment.support(spec.surface) for spec in goal.specs.values()]
    if not all(isinstance(support, Surface) and support.normal[2] >= MIN_GROUND_NORMAL_Z for support in supports):
        return Guide(direct)
    passage = Traversability(robot, environment, feasibility.collisions, q, contacts, limbs, offsets)
    poses = np.column_stack([direct.points, direct.yaw]).tolist()
    route = find_route(passage, BasePose(*poses[0]), BasePose(*poses[-1]))
    if len(route.poses) == 2:
        return Guide(direct, route.obstruction)
    points = np.array([pose[:3] for pose in route.poses])
    return Guide(GuidePath(points, np.array([pose.yaw for pose in route.poses]), direct.turn_length))


def _fit_base_position(positions: Sequence[tuple[np.ndarray, np.ndarray]], yaw: float) -> np.ndarray | None:
    """Return the base position (3,) whose nominal patch positions fit the given ones on average.

    Parameters
    ----------
    positions : pairs of the position (3,) of a patch and its nominal offset (3,).
    """
    if not positions:
        return None
    c, n = np.cos(yaw), np.sin(yaw)
    R = np.array([[c, -n, 0.0], [n, c, 0.0], [0.0, 0.0, 1.0]])
    return np.mean([position - R @ offset for position, offset in positions], axis=0)


def _fit_heading(
    positions: Sequence[tuple[np.ndarray, np.ndarray]], spread: float = MIN_HEADING_SPREAD_M
) -> float | None:
    """Return the heading (rad) whose nominal patch positions fit the given ones best; None if these are too close.

        maximise over yaw   sum (p_i - mean p) . R_z(yaw) (d_i - mean d)

    with the horizontal position p_i and nominal offset d_i of each patch.
    """
    if len(positions) < 2:
        return None
    p, d = (np.array(side)[:, :2] - np.mean(side, axis=0)[:2] for side in zip(*positions, strict=True))
    if min(np.linalg.norm(p), np.linalg.norm(d)) < spread:
        return None
    return float(np.arctan2((d[:, 0] * p[:, 1] - d[:, 1] * p[:, 0]).sum(), (d * p).sum()))
