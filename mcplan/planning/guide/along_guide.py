"""Places of a patch along a guide that turns: on lines beside its track, each with the heading of the guide there."""

from collections.abc import Iterator

import numpy as np

from mcplan.planning.guide.path import FACET, TURN, GuidePath
from mcplan.scene.environment import Surface
from mcplan.scene.place_surface import surface_rotation
from mcplan.scene.polygon import erode

ASIDE = 0.2
"""m: how far to either side of the track places are looked for."""

DROP = 0.6
"""m: how far above or below the track a surface may be."""


def turns_on(guide: GuidePath, surface: Surface, offset: np.ndarray) -> bool:
    """Whether the guide turns while it is over a surface."""
    if not guide.turns:
        return False
    s, _ = guide.progress(surface.corners, offset)
    low, high = np.clip([s.min(), s.max()], 0.0, guide.length)
    inside = (guide.arc > low) & (guide.arc < high)
    yaw = np.concatenate([guide.yaw[inside], np.interp([low, high], guide.arc, guide.yaw)])
    return bool(np.ptp(yaw) > FACET)


def places_along(
    guide: GuidePath, surface: Surface, polygon: np.ndarray, offset: np.ndarray, turn: float, grid: float
) -> Iterator[tuple[float, float, float]]:
    """Yield x, y, yaw on a surface where the patch lies on it completely.

    Parameters
    ----------
    polygon : (k, 2) of the patch; ``offset`` (3,) its nominal place.
    turn : rad, from the heading of the guide to the patch's.
    grid : m, between places along the track and between its lines.
    """
    corners, track = guide.track(offset)
    count = int(np.ceil(guide.length / grid - 1e-9)) + 1
    size = guide.turn / TURN
    count_aside = round(size * ASIDE / grid)
    lines = grid * np.arange(-count_aside, count_aside + 1)
    for s in np.minimum(grid * np.arange(count), guide.length):
        heading = float(np.interp(s, guide.arc, guide.yaw))
        ahead = surface.R.T @ np.array([np.cos(heading), np.sin(heading), 0.0])
        yaw = round(float(np.arctan2(ahead[1], ahead[0])) + turn, 4)
        A, b = erode(surface.polygon, polygon @ surface_rotation(yaw)[:2, :2].T)
        centre = np.array([np.interp(s, corners, track[:, i]) for i in range(3)])
        places = centre + lines[:, None] * np.array([-np.sin(heading), np.cos(heading), 0.0])
        drop = (places - surface.p) @ surface.normal / surface.normal[2]
        local = (places - np.outer(drop, [0.0, 0.0, 1.0]) - surface.p) @ surface.R[:, :2]
        for u, fits in zip(local, np.all(local @ A.T <= b + 1e-9, axis=1) & (np.abs(drop) < size * DROP), strict=True):
            if fits:
                yield round(float(u[0]), 4), round(float(u[1]), 4), yaw
