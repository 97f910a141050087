"""The guide path: where the base is expected to go, as a polyline with a heading.

Progress along it is measured by its arc length ``s`` (m), which climbs with the path. A contact's progress is that of
the base for which the contact is in its nominal place:

    s(c) = arc length of the point of the path nearest to  p_c - R_z(yaw) offset(patch)
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class GuidePath:
    """A polyline of the base.

    Attributes
    ----------
    points : (k, 3) corners, m; at least two, consecutive ones may coincide.
    yaw : (k,) heading at the corners, rad, unwrapped.
    """

    points: np.ndarray
    yaw: np.ndarray

    @property
    def arc(self) -> np.ndarray:
        """Arc length (k,) at the corners."""
        return np.append(0.0, np.cumsum(np.linalg.norm(np.diff(self.points, axis=0), axis=1)))

    @property
    def length(self) -> float:
        """Length of the path (m)."""
        return float(self.arc[-1])

    def at(self, s: float) -> tuple[np.ndarray, float]:
        """Return position (3,) and heading at arc length ``s``, clamped to the path."""
        arc = self.arc
        p = np.array([np.interp(s, arc, self.points[:, i]) for i in range(3)])
        return p, float(np.interp(s, arc, self.yaw))

    def project(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return arc length (m,) and distance (m,) of the nearest points of the path to ``places`` (m, 3).

        Beyond the ends the path goes on straight, so that overshooting the goal counts as distance in ``s``.
        """
        arc = self.arc
        best = np.full(len(places), np.inf)
        s = np.zeros(len(places))
        last = len(self.points) - 2
        for k in range(last + 1):
            along = self.points[k + 1] - self.points[k]
            length = float(np.linalg.norm(along))
            share = np.zeros(len(places)) if length < 1e-9 else (places - self.points[k]) @ along / length
            share = np.clip(share, -np.inf if k == 0 else 0.0, np.inf if k == last else length)
            direction = along / length if length >= 1e-9 else np.zeros(3)
            distance = np.linalg.norm(places - self.points[k] - share[:, None] * direction, axis=1)
            nearer = distance < best - 1e-12
            best[nearer], s[nearer] = distance[nearer], arc[k] + share[nearer]
        return s, best

    def progress(self, places: np.ndarray, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return arc length and distance (m,) of contacts at ``places`` (m, 3) with a nominal ``offset`` (3,).

        The heading that turns the offset is taken where the contact itself is nearest to the path.
        """
        places = np.atleast_2d(places)
        s, _ = self.project(places - self._turned(np.full(len(places), self.yaw[0]), offset))
        for _ in range(2 if np.ptp(self.yaw) > 1e-9 else 1):
            yaw = np.interp(s, self.arc, self.yaw)
            s, aside = self.project(places - self._turned(yaw, offset))
        return s, aside

    @staticmethod
    def _turned(yaw: np.ndarray, offset: np.ndarray) -> np.ndarray:
        c, n = np.cos(yaw), np.sin(yaw)
        return np.column_stack(
            [c * offset[0] - n * offset[1], n * offset[0] + c * offset[1], np.full(len(yaw), offset[2])]
        )
