"""Places of a patch along a guide that turns: on lines beside its track, each with the heading of the guide there."""

from collections.abc import Iterator

import numpy as np

from mcplan.planning.guide.path import FACET, TURN, GuidePath
from mcplan.scene.environment import Surface
from mcplan.scene.place_surface import surface_rotation
from mcplan.scene.polygon import erode, nearest

ASIDE = 0.2
"""m: how far to either side of the track places are looked for."""

BEYOND = 2
"""Grids by which places go on behind the end of the guide: a goal on the border of a surface has room only there."""

INSET = 1e-4
"""m: a place that is moved onto its surface is so far inside, which rounding does not undo."""

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
    """Yield x, y, yaw on a surface where the patch lies on it completely, if need be half a grid beside the line.

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
    progress = [*np.minimum(grid * np.arange(count), guide.length), *(guide.length + grid * np.arange(1, BEYOND + 1))]
    for s in progress:
        heading = float(np.interp(s, guide.arc, guide.yaw))
        c, n = np.cos(heading), np.sin(heading)
        ahead = surface.R.T @ np.array([c, n, 0.0])
        yaw = round(float(np.arctan2(ahead[1], ahead[0])) + turn, 4)
        A, b = erode(surface.polygon, polygon @ surface_rotation(yaw)[:2, :2].T)
        centre = np.array([np.interp(s, corners, track[:, i]) for i in range(3)])
        centre += max(0.0, s - guide.length) * np.array([c, n, 0.0])
        places = centre + lines[:, None] * np.array([-n, c, 0.0])
        drop = (places - surface.p) @ surface.normal / surface.normal[2]
        local = (places - np.outer(drop, [0.0, 0.0, 1.0]) - surface.p) @ surface.R[:, :2]
        for u in local[np.abs(drop) < size * DROP]:
            onto = u if np.all(A @ u <= b + 1e-9) else nearest(u, A, b - INSET)
            if onto is not None and np.linalg.norm(onto - u) <= 0.5 * grid:
                yield round(float(onto[0]), 4), round(float(onto[1]), 4), yaw
