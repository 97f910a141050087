"""Drawing of the environment: surfaces as slabs, bars, obstacles, objects, camera and background.

Parallel bars are drawn with the two stiles (side rails) of a ladder. The stiles are not part of the model.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from mcplan.scene.environment import Bar, Environment
from mcplan.scene.polygon import half_planes
from mcplan.view import palette, shapes
from mcplan.view.drawing import Drawing, node_name

MIN_RUNGS = 3
"""Minimum number of bars of a ladder."""

LADDER_TOLERANCE = 0.005
"""Tolerance of the rungs of a ladder: of their ends from a common line, and of their lengths (m)."""

STILE_OVERHANG = 0.12
"""Length of a stile beyond its last rung (m)."""


def stiles(bars: Sequence[Bar]) -> list[np.ndarray]:
    """Return the stiles (2, 3) of all ladders: lines through the ends of at least three parallel bars of equal length.

    Collinear bars, such as those of a handrail, are not a ladder.
    """
    lines: list[np.ndarray] = []
    remaining = [np.asarray(bar.ends, dtype=float) for bar in bars]
    while len(remaining) >= MIN_RUNGS:
        first = remaining.pop(0)
        rung = first[1] - first[0]
        parallel = [first, *(ends for ends in remaining if np.abs(ends[1] - ends[0] - rung).max() < LADDER_TOLERANCE)]
        if len(parallel) < MIN_RUNGS:
            continue
        sides = [_line(np.array([ends[k] for ends in parallel])) for k in range(2)]
        up = sides[0] is not None and sides[0][1] - sides[0][0]
        # stiles are perpendicular to the rungs, within 17 degrees (0.3 rad)
        if sides[0] is None or sides[1] is None or abs(up @ rung) > 0.3 * np.linalg.norm(up) * np.linalg.norm(rung):
            continue
        lines += [side for side in sides if side is not None]
        remaining = [ends for ends in remaining if not any(ends is other for other in parallel)]
    return lines


def _line(points: np.ndarray) -> np.ndarray | None:
    """Return the ends (2, 3) of the line through points (k, 3), extended by `STILE_OVERHANG`; None if not collinear."""
    centre = points.mean(axis=0)
    direction = np.linalg.svd(points - centre)[2][0]
    along = (points - centre) @ direction
    if (
        np.abs(points - centre - np.outer(along, direction)).max() > LADDER_TOLERANCE
        or np.ptp(along) < LADDER_TOLERANCE
    ):
        return None
    return centre + np.outer([along.min() - STILE_OVERHANG, along.max() + STILE_OVERHANG], direction)


STILE_RADIUS = 0.018
"""Radius of the stiles of a ladder (m)."""


def pose(R: ArrayLike, p: ArrayLike) -> np.ndarray:
    """Return the homogeneous transformation (4, 4) of a rotation and a position."""
    X = np.eye(4)
    X[:3, :3] = R
    X[:3, 3] = p
    return X


def draw_environment(drawing: Drawing, environment: Environment) -> None:
    """Draw surfaces, bars, stiles, obstacles, and objects at their start pose."""
    root = drawing.root["environment"]
    for surface in environment.surfaces:
        colour = palette.SURFACE if abs(surface.p[2]) < 1e-6 and surface.R[2, 2] > 0.999 else palette.RAISED_SURFACE
        node = root["surfaces"][node_name(surface.name)]
        node.set_object(
            shapes.mesh(*shapes.prism(surface.polygon, 0.0, -surface.thickness)), shapes.material(colour, faceted=True)
        )
        node.set_transform(pose(surface.R, surface.p))
    for bar in environment.bars:
        begin, end = np.asarray(bar.ends, dtype=float)
        node = root["bars"][node_name(bar.name)]
        shapes.draw(
            node,
            shapes.Cylinder(bar.radius, float(np.linalg.norm(end - begin))),
            palette.BAR,
            pose(_frame_with_z(end - begin), (begin + end) / 2),
        )
    for number, (begin, end) in enumerate(stiles(environment.bars)):
        shapes.draw(
            drawing.root["stiles"][str(number)],
            shapes.Cylinder(STILE_RADIUS, float(np.linalg.norm(end - begin))),
            palette.STILE,
            pose(_frame_with_z(end - begin), (begin + end) / 2),
        )
    for obstacle in environment.obstacles:
        node = root["obstacles"][node_name(obstacle.name)]
        shapes.draw(node, obstacle.shape, palette.OBSTACLE, pose(obstacle.R, obstacle.p))
    for item in environment.objects:
        node = root["objects"][node_name(item.name)]
        node.set_transform(pose(item.R, item.p))
        shapes.draw(node["shape"], item.shape, palette.OBJECT)


HALF_FIELD_OF_VIEW = np.radians(19.0)
"""Half the vertical field of view of the camera, rad (`web/viewer.js`)."""

FRAMING_MARGIN = 1.3
"""Visible height / height range of the frames of the links, because links extend beyond their frames."""


def animate_objects(drawing: Drawing, environment: Environment, poses: np.ndarray) -> None:
    """Move the objects through their poses (frames, objects, 7): position, quaternion w x y z."""
    for column, item in enumerate(environment.objects):
        path = f"environment/objects/{node_name(item.name)}"
        drawing.animate(path, position=poses[:, column, :3], quat_wxyz=shapes.continuous(poses[:, column, 3:]))


def set_stage(drawing: Drawing, path: np.ndarray, environment: Environment, body: np.ndarray | None = None) -> None:
    """Set background and camera: the camera sees the path (n, 3) of the centre of mass, with least occlusion.

    Parameters
    ----------
    body : (m, 3) points of the body during the motion; all of them must be visible, also in a handstand.
    """
    root = drawing.root
    root["/Background"].set_property("top_color", [0.93, 0.95, 0.98])
    root["/Background"].set_property("bottom_color", [0.70, 0.76, 0.84])
    root["/Grid"].set_property("visible", False)
    root["/Axes"].set_property("visible", False)
    centre = (path.min(axis=0) + path.max(axis=0)) / 2
    centre[2] -= 0.12
    distance = 3.0 + 1.1 * float(np.linalg.norm(np.ptp(path, axis=0)))
    if body is not None:
        low, high = float(body[:, 2].min()), float(body[:, 2].max())
        centre[2] = (low + high) / 2
        distance = max(distance, FRAMING_MARGIN * (high - low) / 2 / np.tan(HALF_FIELD_OF_VIEW))
    # points of the body, from shoulder to foot, relative to the beginning, middle and end of the path
    centres = path[[0, len(path) // 2, -1]]
    offsets = np.array([[x, y, z] for x in (0.0, 0.3) for y in (-0.25, 0.25) for z in (-0.75, -0.4, 0.0, 0.4)])
    targets = (centres[:, None, :] + offsets).reshape(-1, 3)
    eyes = [centre + distance * direction for direction in _directions()]
    upward = [float(surface.p[2]) for surface in environment.surfaces if surface.R[2, 2] > 0.999]
    drawing.ground = min(upward, default=0.0)
    drawing.camera = (centre, min(eyes, key=lambda eye: _count_hidden(eye, targets, environment)))


def _directions() -> list[np.ndarray]:
    """Return candidate viewing directions (unit vectors): from front left to back, low, then high."""
    azimuths = np.radians([41, -41, 65, -65, 90, -90, 115, -115, 140, -140, 15, -15, 165, -165])
    return [
        np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
        for e in np.radians([17.5, 45.0])
        for a in azimuths
    ]


def _count_hidden(eye: np.ndarray, targets: np.ndarray, environment: Environment) -> int:
    """Return the number of ``targets`` (n, 3) that surfaces hide from ``eye``."""
    hidden = np.zeros(len(targets), dtype=bool)
    for surface in environment.surfaces:
        begin = surface.R.T @ (eye - surface.p)
        end = (targets - surface.p) @ surface.R
        through = (begin[2] > 0) != (end[:, 2] > 0)
        share = begin[2] / np.where(through, begin[2] - end[:, 2], 1.0)
        crossing = begin[:2] + share[:, None] * (end[:, :2] - begin[:2])
        A, b = half_planes(surface.polygon)
        hidden |= through & np.all(crossing @ A.T <= b, axis=1)
    return int(hidden.sum())


def _frame_with_z(direction: np.ndarray) -> np.ndarray:
    """Return a rotation whose z axis is along ``direction``."""
    z = direction / np.linalg.norm(direction)
    x = np.cross([0.0, 1.0, 0.0] if abs(z[1]) < 0.9 else [1.0, 0.0, 0.0], z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])
