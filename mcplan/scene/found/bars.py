"""Connected parts that are bars: cylinders, and boxes that are thin in two directions."""

import numpy as np

from mcplan.scene.environment import Bar
from mcplan.scene.find_settings import FindSettings
from mcplan.scene.found.triangles import Triangles, normals_areas

SLENDER = 5.0
"""Least ratio of a bar's length to its diameter."""

ROUND = (0.6, 1.5)
"""Of the radius: how near and how far from its axis the corners of a bar are; those of a square are at 1.1."""


def find_bars(triangles: Triangles, settings: FindSettings) -> tuple[list[Bar], np.ndarray]:
    """Return the parts that are bars, and which triangles (m,) are of no bar."""
    part = triangles.parts()
    corners = triangles.corners
    normals, areas = normals_areas(corners)
    rest = np.ones(len(part), bool)
    found = []
    for k in range(part.max() + 1):
        members = np.flatnonzero(part == k)
        axis = bar_of(corners[members], normals[members], areas[members], settings)
        if axis is not None:
            rest[members] = False
            found.append(axis)
    found.sort(key=lambda one: tuple(np.round(one[0].mean(axis=0)[[2, 0, 1]], 3)))
    bars = [Bar(f"bar{k}", ends, radius, settings.friction) for k, (ends, radius) in enumerate(found, 1)]
    return bars, rest


def bar_of(
    corners: np.ndarray, normals: np.ndarray, areas: np.ndarray, settings: FindSettings
) -> tuple[np.ndarray, float] | None:
    """Return ends (2,3) and radius (m) of triangles (m,3,3) that are one bar; None where they are none.

    The radius is that of the circle as long as the section's outline, ``2 pi r L = A`` for the area A of the sides.
    """
    points = corners.reshape(-1, 3)
    low, high = points.min(axis=0), points.max(axis=0)
    if np.linalg.norm(high - low) < settings.bar_length or len(corners) < 8:
        return None
    weight = np.repeat(areas / 3, 3)
    middle = weight @ points / weight.sum()
    axis = np.linalg.eigh((points - middle).T @ ((points - middle) * weight[:, None]))[1][:, 2]
    if axis[np.argmax(np.abs(axis))] < 0:
        axis = -axis
    along = (points - middle) @ axis
    length = float(np.ptp(along))
    side = np.abs(normals @ axis) < 0.3
    radius = float(areas[side].sum() / (2 * np.pi * length))
    if not settings.bar[0] <= radius <= settings.bar[1] or length < max(settings.bar_length, 2 * SLENDER * radius):
        return None
    away = points - middle - along[:, None] * axis
    centre = middle + (away.max(axis=0) + away.min(axis=0)) / 2
    distance = np.linalg.norm(points - centre - ((points - centre) @ axis)[:, None] * axis, axis=1)
    if distance.max() > ROUND[1] * radius:
        return None
    at_side = distance[np.repeat(side, 3)]
    if at_side.min() < ROUND[0] * radius:
        return None
    # the whole length has a section: the sides of what is only two ends would not add up
    spread = np.histogram(along, 3)[0]
    if spread[0] == 0 or spread[2] == 0:
        return None
    start = (points - centre) @ axis
    return np.round(np.array([centre + start.min() * axis, centre + start.max() * axis]), 5), round(radius, 4)
