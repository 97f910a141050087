"""Guide path: the expected path of the base, a polyline with a heading.

Progress is the arc length ``s`` (m) in three dimensions, with turns converted to a length:

    ds = |dp| + TURN_M_PER_RAD |dyaw|        for a robot of the size of HRP-2

with the position p(s) and the heading yaw(s) of the base. A patch in its nominal position follows the track

    t(s) = p(s) + R_z(yaw(s)) offset(patch)

The progress of a contact is that of the nearest point on the track of its patch.

Along a turning guide, candidates of a patch lie on lines parallel to its track, with the heading of the guide there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mcplan.scene.environment import Surface
from mcplan.scene.placement import surface_rotation
from mcplan.scene.polygon import erode, nearest

TURN_M_PER_RAD = 0.5
"""Length of a straight path that takes as many steps as a turn on the spot by 1 rad (m/rad)."""

MAX_FACET_RAD = 0.15
"""A track is approximated by straight pieces whose headings differ by at most this."""

MAX_TRACK_DISTANCE_M = 0.2
"""Largest horizontal distance of candidates from the track."""

CELLS_BEYOND_END = 2
"""Number of grid cells sampled beyond the end of the guide: a goal at the border of a surface has space only there."""

BORDER_INSET_M = 1e-4
"""Distance from the border of candidates that are moved onto their surface; it exceeds the rounding."""

MAX_HEIGHT_OFFSET_M = 0.6
"""Largest height of a surface above or below the track."""


@dataclass(frozen=True, eq=False)
class GuidePath:
    """A polyline of the base.

    Attributes
    ----------
    points : (k, 3) corners (m); at least two, consecutive ones may coincide.
    yaw : (k,) unwrapped heading at the corners (rad).
    turn_length : length that counts the same as a turn by 1 rad (m/rad).
    """

    points: np.ndarray
    yaw: np.ndarray
    turn_length: float = TURN_M_PER_RAD

    @cached_property
    def arc(self) -> np.ndarray:
        """Progress (k,) at the corners."""
        lengths = np.linalg.norm(np.diff(self.points, axis=0), axis=1) + self.turn_length * np.abs(np.diff(self.yaw))
        return np.append(0.0, np.cumsum(lengths))

    @property
    def length(self) -> float:
        """Length of the path (m), its turns included."""
        return float(self.arc[-1])

    @property
    def has_turns(self) -> bool:
        """Whether the heading changes by more than `MAX_FACET_RAD`."""
        return bool(np.ptp(self.yaw) > MAX_FACET_RAD)

    def at(self, s: float) -> tuple[np.ndarray, float]:
        """Return position (3,) and heading at progress ``s``, clamped to the path."""
        p = np.array([np.interp(s, self.arc, self.points[:, i]) for i in range(3)])
        return p, float(np.interp(s, self.arc, self.yaw))

    def track(self, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return progress (m,) and position (m, 3) of the corners of a patch's track, for its ``offset`` (3,)."""
        s, points, yaw = self._facets
        c, n = np.cos(yaw), np.sin(yaw)
        offsets = [c * offset[0] - n * offset[1], n * offset[0] + c * offset[1], np.full(len(yaw), offset[2])]
        return s, points + np.column_stack(offsets)

    def progress(self, positions: np.ndarray, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return progress and distance from the track (m,) of contacts at ``positions`` (m, 3).

        The track is extended straight beyond its ends, so that overshooting the goal counts as distance in ``s``.

        Parameters
        ----------
        offset : (3,) nominal position of the patch.
        """
        positions = np.atleast_2d(positions)
        s, track = self.track(offset)
        tangents = np.diff(track, axis=0)
        length = np.linalg.norm(tangents, axis=1)
        direction = tangents / np.maximum(length, 1e-9)[:, None]
        low, high = np.zeros(len(length)), length.copy()
        low[0], high[-1] = -np.inf, np.inf
        arms = positions[:, None, :] - track[:-1]
        along_piece = np.clip(np.sum(arms * direction, axis=2), low, high)
        distance = np.linalg.norm(arms - along_piece[:, :, None] * direction, axis=2)
        nearest = np.argmin(np.round(distance, 12), axis=1)
        rows = np.arange(len(positions))
        along_track = along_piece[rows, nearest]
        # within a piece progress is interpolated, beyond the ends of the track it grows by metres
        inside = np.clip(along_track, 0.0, length[nearest])
        rate = np.diff(s)[nearest] / np.maximum(length[nearest], 1e-9)
        return s[nearest] + inside * rate + (along_track - inside), distance[rows, nearest]

    @cached_property
    def _facets(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Progress, position and heading at the ends of pieces that turn by at most `MAX_FACET_RAD`."""
        cuts = np.maximum(np.ceil(np.abs(np.diff(self.yaw)) / MAX_FACET_RAD).astype(int), 1)
        share = np.concatenate([k + np.arange(count) / count for k, count in enumerate(cuts)] + [[float(len(cuts))]])
        corners = np.arange(len(self.yaw))
        points = np.column_stack([np.interp(share, corners, self.points[:, i]) for i in range(3)])
        return np.interp(share, corners, self.arc), points, np.interp(share, corners, self.yaw)


def turns_over_surface(guide: GuidePath, surface: Surface, offset: np.ndarray) -> bool:
    """Whether the guide turns while it is over a surface."""
    if not guide.has_turns:
        return False
    s, _ = guide.progress(surface.corners, offset)
    low, high = np.clip([s.min(), s.max()], 0.0, guide.length)
    inside = (guide.arc > low) & (guide.arc < high)
    yaw = np.concatenate([guide.yaw[inside], np.interp([low, high], guide.arc, guide.yaw)])
    return bool(np.ptp(yaw) > MAX_FACET_RAD)


def poses_along(
    guide: GuidePath, surface: Surface, polygon: np.ndarray, offset: np.ndarray, yaw_offset: float, grid: float
) -> Iterator[tuple[float, float, float]]:
    """Yield x, y, yaw at which the whole patch is on a surface, moved by up to half a grid cell if necessary.

    Parameters
    ----------
    polygon : (k, 2) corners of the patch.
    offset : (3,) nominal position of the patch.
    yaw_offset : angle from the heading of the guide to that of the patch (rad).
    grid : spacing along the track and between the lines (m).
    """
    corners, track = guide.track(offset)
    count = int(np.ceil(guide.length / grid - 1e-9)) + 1
    size = guide.turn_length / TURN_M_PER_RAD
    lines_per_side = round(size * MAX_TRACK_DISTANCE_M / grid)
    lines = grid * np.arange(-lines_per_side, lines_per_side + 1)
    beyond = guide.length + grid * np.arange(1, CELLS_BEYOND_END + 1)
    progress = [*np.minimum(grid * np.arange(count), guide.length), *beyond]
    for s in progress:
        heading = float(np.interp(s, guide.arc, guide.yaw))
        c, n = np.cos(heading), np.sin(heading)
        ahead = surface.R.T @ np.array([c, n, 0.0])
        yaw = round(float(np.arctan2(ahead[1], ahead[0])) + yaw_offset, 4)
        A, b = erode(surface.polygon, polygon @ surface_rotation(yaw)[:2, :2].T)
        centre = np.array([np.interp(s, corners, track[:, i]) for i in range(3)])
        centre += max(0.0, s - guide.length) * np.array([c, n, 0.0])
        positions = centre + lines[:, None] * np.array([-n, c, 0.0])
        heights = (positions - surface.p) @ surface.normal / surface.normal[2]
        local = (positions - np.outer(heights, [0.0, 0.0, 1.0]) - surface.p) @ surface.R[:, :2]
        for u in local[np.abs(heights) < size * MAX_HEIGHT_OFFSET_M]:
            moved = u if np.all(A @ u <= b + 1e-9) else nearest(u, A, b - BORDER_INSET_M)
            if moved is not None and np.linalg.norm(moved - u) <= 0.5 * grid:
                yield round(float(moved[0]), 4), round(float(moved[1]), 4), yaw
