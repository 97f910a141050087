"""Faces of surfaces, above which all corners of a link count: one nearest point does not hold a flat face off another.

Where two faces are almost parallel the nearest point jumps from corner to corner. A row for one of them alone is then
obeyed by turning about it, and the next one comes too near.
"""

from collections.abc import Sequence

import numpy as np

from mcplan.collision.model import CollisionModel
from mcplan.core.whole_body.corner_rows import Faces
from mcplan.model.solid import frozen
from mcplan.scene.environment import Surface


def faces_of(model: CollisionModel, surfaces: Sequence[Surface]) -> Faces:
    """Return the faces of surfaces that are fixed in the world, by the shapes of the model."""
    shapes, sizes = len(model.shapes.index), [len(surface.polygon) for surface in surfaces]
    span, frame = np.zeros((shapes, 2), np.int64), np.zeros((shapes, 12))
    for surface, first, size in zip(surfaces, np.cumsum([0, *sizes]), sizes, strict=False):
        i = model.place[surface.name]
        span[i], frame[i] = (first, size), [*surface.R.ravel(), *surface.p]
    corners = np.concatenate([np.zeros((0, 2)), *(surface.polygon for surface in surfaces)])
    return Faces(frozen(span), frozen(frame), frozen(corners))
