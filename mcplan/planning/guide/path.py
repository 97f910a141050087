"""The guide path: where the base is expected to go, as a polyline with a heading.

Progress along it is measured by its length ``s`` (m), which climbs with the path and counts turning as well:

    ds = |dp| + TURN |dyaw|        TURN for a robot of the size of HRP-2

A patch in its nominal place follows the track  t(s) = p(s) + R_z(yaw(s)) offset(patch).  The progress of a contact is
that of the point of its patch's track which is nearest to it.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

TURN = 0.5
"""m/rad: a turn on the spot takes as many steps as a way of this length."""

FACET = 0.15
"""rad: a track is taken for straight between headings this near to each other."""


@dataclass(frozen=True, eq=False)
class GuidePath:
    """A polyline of the base.

    Attributes
    ----------
    points : (k, 3) corners, m; at least two, consecutive ones may coincide.
    yaw : (k,) heading at the corners, rad, unwrapped.
    turn : way that a turn counts as, m/rad.
    """

    points: np.ndarray
    yaw: np.ndarray
    turn: float = TURN

    @cached_property
    def arc(self) -> np.ndarray:
        """Progress (k,) at the corners."""
        way = np.linalg.norm(np.diff(self.points, axis=0), axis=1) + self.turn * np.abs(np.diff(self.yaw))
        return np.append(0.0, np.cumsum(way))

    @property
    def length(self) -> float:
        """Length of the path (m), its turns included."""
        return float(self.arc[-1])

    @property
    def turns(self) -> bool:
        """Whether the heading changes by more than a step does by the way."""
        return bool(np.ptp(self.yaw) > FACET)

    def at(self, s: float) -> tuple[np.ndarray, float]:
        """Return position (3,) and heading at progress ``s``, clamped to the path."""
        p = np.array([np.interp(s, self.arc, self.points[:, i]) for i in range(3)])
        return p, float(np.interp(s, self.arc, self.yaw))

    def track(self, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return progress (m,) and place (m, 3) of the corners of a patch's track, by its nominal ``offset`` (3,)."""
        s, points, yaw = self._facets
        c, n = np.cos(yaw), np.sin(yaw)
        turned = [c * offset[0] - n * offset[1], n * offset[0] + c * offset[1], np.full(len(yaw), offset[2])]
        return s, points + np.column_stack(turned)

    def progress(self, places: np.ndarray, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return progress and distance from the track (m,) of contacts at ``places`` (m, 3).

        Beyond its ends the track goes on straight, so that overshooting the goal counts as distance in ``s``.

        Parameters
        ----------
        offset : (3,) nominal place of the patch.
        """
        places = np.atleast_2d(places)
        s, track = self.track(offset)
        along = np.diff(track, axis=0)
        length = np.linalg.norm(along, axis=1)
        direction = along / np.maximum(length, 1e-9)[:, None]
        low, high = np.zeros(len(length)), length.copy()
        low[0], high[-1] = -np.inf, np.inf
        arm = places[:, None, :] - track[:-1]
        way = np.clip(np.sum(arm * direction, axis=2), low, high)
        distance = np.linalg.norm(arm - way[:, :, None] * direction, axis=2)
        nearest = np.argmin(np.round(distance, 12), axis=1)
        rows = np.arange(len(places))
        way = way[rows, nearest]
        # within a piece progress runs with the track, beyond its ends in metres
        inside = np.clip(way, 0.0, length[nearest])
        rate = np.diff(s)[nearest] / np.maximum(length[nearest], 1e-9)
        return s[nearest] + inside * rate + (way - inside), distance[rows, nearest]

    @cached_property
    def _facets(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Progress, position and heading where the path is cut into pieces of hardly any turn."""
        cuts = np.maximum(np.ceil(np.abs(np.diff(self.yaw)) / FACET).astype(int), 1)
        share = np.concatenate([k + np.arange(count) / count for k, count in enumerate(cuts)] + [[float(len(cuts))]])
        corners = np.arange(len(self.yaw))
        points = np.column_stack([np.interp(share, corners, self.points[:, i]) for i in range(3)])
        return np.interp(share, corners, self.arc), points, np.interp(share, corners, self.yaw)
