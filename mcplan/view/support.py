"""Drawing of the support region: one plate per set of contacts, visible while these carry load."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mcplan.analysis.regions import contact_set_key
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment, Surface
from mcplan.scene.polygon import clip, counter_clockwise, half_planes
from mcplan.statics.support_region import support_region
from mcplan.view import palette, shapes
from mcplan.view.drawing import Drawing
from mcplan.view.environment import pose

UNBOUNDED_MARGIN_M = 0.25
"""Distance from the contacts at which an unbounded region is cut, m (between facing walls any position is balanced)."""

MIN_NORMAL_Z = 0.5
"""Minimum vertical component of the unit normal of a surface on which the region is drawn."""


def draw_support(
    drawing: Drawing,
    carrying: Sequence[tuple[Contact, ...]],
    ground: np.ndarray,
    mass: float,
    environment: Environment | None = None,
) -> None:
    """Draw the support region of each set of contacts, visible in the frames in which these carry load.

    The part above a supporting surface is drawn on that surface, and the outline of the whole region at the lowest
    contact. Without such a surface, the whole region is drawn at the lowest contact.

    Parameters
    ----------
    carrying : contacts that carry load in each frame.
    ground : (frames,) height of the lowest contact, m.
    mass : mass of the robot, kg.
    environment : environment whose surfaces the region is drawn on, or None.
    """
    surfaces = {} if environment is None else {surface.name: surface for surface in environment.surfaces}
    visibility: dict[tuple, np.ndarray] = {}
    for row, contacts in enumerate(carrying):
        if not contacts:
            continue
        key = contact_set_key(contacts)
        if key not in visibility:
            visibility[key] = np.zeros(len(carrying), dtype=bool)
            polygon = support_polygon(contacts, mass)
            if len(polygon) >= 3:
                names = dict.fromkeys(c.support for c in contacts if c.carrier is None)
                supports = [surfaces[name] for name in names if name in surfaces]
                supports = [surface for surface in supports if surface.R[2, 2] > MIN_NORMAL_Z]
                _draw_region(drawing.root[f"support/{len(visibility)}"], polygon, supports, float(ground[row]))
        visibility[key][row] = True
    for index, visible in enumerate(visibility.values(), start=1):
        drawing.animate(f"support/{index}", visible=visible)


def _draw_region(node: Any, polygon: np.ndarray, supports: Sequence[Surface], ground: float) -> None:
    """Draw a region on its supports, and its outline at the height ``ground``; without supports all of it there."""
    colour = shapes.material(palette.SUPPORT, flat=True)
    height = 0.005
    if supports:
        height += ground
    else:
        node.set_object(shapes.mesh(*shapes.prism(polygon, 0.003, 0.0)), colour)
        node.set_transform(pose(np.eye(3), [0, 0, ground + 0.002]))
    closed = np.vstack([polygon, polygon[:1]])
    edge = shapes.tube(np.column_stack([closed, np.full(len(closed), height)]), 0.003)
    node["edge"].set_object(shapes.mesh(*edge), shapes.material(palette.SUPPORT_EDGE, flat=True))
    for number, surface in enumerate(supports):
        part = part_above(polygon, surface)
        if len(part) >= 3:
            vertices, faces = shapes.prism(part[:, :2], 0.005, 0.002)
            vertices[:, 2] += height_on(surface, vertices[:, :2])
            node[f"on{number}"].set_object(shapes.mesh(vertices, faces), colour)


def part_above(polygon: np.ndarray, surface: Surface) -> np.ndarray:
    """Return the part (k, 2) of a region, seen from above, that lies over a surface."""
    corners = (surface.p + np.column_stack([surface.polygon, np.zeros(len(surface.polygon))]) @ surface.R.T)[:, :2]
    return clip(polygon, *half_planes(counter_clockwise(corners)))


def height_on(surface: Surface, points: np.ndarray) -> np.ndarray:
    """Return the height (k,) of a surface's plane at points (k, 2), from ``n . (x - p) = 0``."""
    n = surface.R[:, 2]
    return surface.p[2] - (points - surface.p[:2]) @ n[:2] / n[2]


def support_polygon(contacts: Sequence[Contact], mass: float) -> np.ndarray:
    """Return the corners (k, 2) of the support region; an unbounded one is cut (`UNBOUNDED_MARGIN_M`)."""
    region = support_region(contacts, mass)
    if region.bounded:
        return region.vertices
    positions = np.array([contact.p[:2] for contact in contacts])
    A = np.vstack([np.eye(2), -np.eye(2)])
    b = np.concatenate([positions.max(axis=0), -positions.min(axis=0)]) + UNBOUNDED_MARGIN_M
    return clip(region.vertices, A, b)
