"""All corners of a link above a surface: one nearest point is not enough to hold a flat face off another.

Where two faces are almost parallel the nearest point jumps from corner to corner. A row for one of them alone is then
obeyed by turning about it, and the next one comes too near.
"""

from collections.abc import Sequence

import numpy as np

from mcplan.collision.model import CollisionModel
from mcplan.collision.shape import frozen
from mcplan.core.corner_rows import MOST, Faces, fill_corner_rows
from mcplan.core.distance import PAIR_SIZE
from mcplan.scene.environment import Surface


class FaceRows:
    """Distances of a robot's corners from surfaces, and their rates.

    For a corner at x on a link with Jacobian (J_v, J_w) at p, over a surface with normal n through s::

        d = n' (x - s) - radius,   d' = (n' J_v + ((x - p) x n)' J_w) v

    Parameters
    ----------
    model : whose pairs are asked for.
    surfaces : of its environment, fixed in the world.

    Attributes
    ----------
    faces : as the kernels see them.
    """

    def __init__(self, model: CollisionModel, surfaces: Sequence[Surface]):
        self._model = model
        shapes, sizes = len(model.shapes.index), [len(surface.polygon) for surface in surfaces]
        span, frame = np.zeros((shapes, 2), np.int64), np.zeros((shapes, 12))
        for surface, first, size in zip(surfaces, np.cumsum([0, *sizes]), sizes, strict=False):
            i = model.place[surface.name]
            span[i], frame[i] = (first, size), [*surface.R.ravel(), *surface.p]
        corners = np.concatenate([np.zeros((0, 2)), *(surface.polygon for surface in surfaces)])
        self.faces = Faces(frozen(span), frozen(frame), frozen(corners))
        self._value, self._nearest = np.zeros(PAIR_SIZE), np.zeros(MOST, np.int64)

    def rows(self, q: np.ndarray, pairs: np.ndarray, distance: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return corners above surfaces: which pair each is of (m,), heights (m,), nearest first, and rates (m, nv).

        A pair has none where the surface's face is not what the link is nearest to, or where at most one corner is
        above it.

        Parameters
        ----------
        q : (nq,)
        pairs : (k,) int64, indices into ``model.pairs``.
        distance : (k,) of the pairs, m.
        """
        model, most = self._model, MOST * len(pairs)
        which, height, rows = np.zeros(most, np.int64), np.zeros(most), np.zeros((most, model.robot.nv))
        count = fill_corner_rows(
            model.robot.tree, model.shapes, self.faces, model.indices, q, model.scratch, pairs, distance,
            which, height, rows, self._value, self._nearest,
        )  # fmt: skip
        return which[:count], height[:count], rows[:count]
