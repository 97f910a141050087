"""Postures near which an item could be met: a reference posture set down where the item says, or near the robot.

base given      there, with its heading; else with the heading of now, and that of the way there
com given       where the centre of mass of the reference comes to its place
posture alone   around where the robot is, the nearest first, on every level surface that its lowest patches find
"""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.model.robot import Robot
from mcplan.planning.posture.limbs import base_yaw
from mcplan.scene.environment import Environment, Surface
from mcplan.scene.polygon import half_planes
from mcplan.scene.schema import GoalItem

AROUND = 1.5
"""m: how far from where the robot is a posture without a place is taken up."""

GRID = 0.1
"""m: distance of the places that are tried."""

FAR = 0.5
"""m: a way longer than this gives the heading at its end too."""

APART = 0.02
"""m: surfaces at heights that differ by less are at one."""

LEVEL = 0.5
"""Least vertical part of the normal of a surface to stand on."""

ASIDE = tuple(sorted(product((0.0, 0.1, -0.1), repeat=2), key=lambda step: abs(step[0]) + abs(step[1])))
"""m: where else contacts are looked for than right below a place."""


def hints(
    item: GoalItem, robot: Robot, environment: Environment, reference: np.ndarray, ground: Sequence[str], q: np.ndarray
) -> Iterator[np.ndarray]:
    """Yield postures (nq,) near which the item could be met, the likeliest first.

    Parameters
    ----------
    reference : (nq,) the posture to set down; ``ground`` are the patches that it stands on.
    q : (nq,) posture now.
    """
    now = base_yaw(q)
    if item.base is not None:
        xyz = np.array(item.base.xyz)
        if item.base.rpy is not None:
            R = Rotation.from_euler("xyz", item.base.rpy)
            if item.posture is not None:
                yield _with_base(reference, xyz, R)
                return
            headings = [base_yaw(_with_base(reference, xyz, R))]
        else:
            headings = _headings(now, xyz[:2] - q[:2], robot.scale.leg)
        for aside in robot.scale.leg * np.array(ASIDE):
            for heading in headings:
                yield set_down(reference, xyz + np.array([*aside, 0.0]), heading)
    elif item.com is not None:
        com = np.array(item.com)
        for heading in _headings(now, com[:2] - robot.com(q)[:2], robot.scale.leg):
            placed = set_down(reference, q[:3], heading)
            placed[: len(com)] += com - robot.com(placed)[: len(com)]
            yield from _levels(robot, environment, placed, ground)
    else:
        size = robot.scale.leg
        count = round(AROUND / GRID)
        steps = size * GRID * np.arange(-count, count + 1)
        places = sorted(product(steps, steps), key=lambda step: (np.hypot(*step).round(6), step))
        turn = np.array([[np.cos(now), -np.sin(now)], [np.sin(now), np.cos(now)]])
        for step in places:
            if np.hypot(*step) > size * AROUND + 1e-9:
                break
            for heading in (now, now + np.pi / 2, now - np.pi / 2, now + np.pi):
                xyz = np.append(q[:2] + turn @ step, q[2])
                yield from _levels(robot, environment, set_down(reference, xyz, heading), ground)


def set_down(reference: np.ndarray, xyz: np.ndarray, heading: float) -> np.ndarray:
    """Return a posture with its base at a place (3,), turned about the vertical to a heading (rad)."""
    turn = Rotation.from_euler("z", heading - base_yaw(reference))
    return _with_base(reference, xyz, turn * Rotation.from_quat(reference[[4, 5, 6, 3]]))


def _with_base(reference: np.ndarray, xyz: np.ndarray, R: Rotation) -> np.ndarray:
    q = reference.copy()
    q[:3] = xyz
    x, y, z, w = R.as_quat()
    q[3:7] = w, x, y, z
    return q


def _headings(now: float, way: np.ndarray, size: float) -> list[float]:
    """Return the headings to try at the end of a way (2,): as now, and that of the way."""
    if np.hypot(*way) < size * FAR:
        return [now]
    return [now, float(np.arctan2(way[1], way[0]))]


def _levels(robot: Robot, environment: Environment, q: np.ndarray, ground: Sequence[str]) -> Iterator[np.ndarray]:
    """Yield a posture at each height at which all its ground patches find a surface, the nearest to now first."""
    places = np.array([robot.frame_pose(q, patch)[:3, 3] for patch in ground]).reshape(-1, 3)
    if not len(places):
        yield q
        return
    drops = np.concatenate([np.zeros(0), *(_drop(surface, places) for surface in environment.surfaces)])
    heights: list[float] = []
    for drop in sorted(map(float, drops[np.isfinite(drops)]), key=abs):
        if all(abs(drop - other) > robot.scale.leg * APART for other in heights):
            heights.append(drop)
    for height in heights:
        placed = q.copy()
        placed[2] -= height
        yield placed


def _drop(surface: Surface, places: np.ndarray) -> np.ndarray:
    """Return how far (m) places (k, 3) are above a surface; nan where they are not over it."""
    if surface.normal[2] < LEVEL:
        return np.full(len(places), np.nan)
    drop = (places - surface.p) @ surface.normal / surface.normal[2]
    local = (places - np.outer(drop, [0.0, 0.0, 1.0]) - surface.p) @ surface.R[:, :2]
    A, b = half_planes(surface.polygon)
    return np.where(np.all(local @ A.T <= b + 1e-9, axis=1), drop, np.nan)
