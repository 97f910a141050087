"""Corners of shapes above flat faces: their heights, and the gradients of these."""

import math
from typing import NamedTuple

import numpy as np

from mcplan.core.distance.many import add_point_row
from mcplan.core.distance.pair import NORMAL, POINT_A
from mcplan.core.distance.shape import BODY, BOX, CAPSULE, COUNT, FIRST, HALF_SIZE, HULL, KIND, RADIUS
from mcplan.core.jit import jit, jit_algebra

MAX_CORNERS = 4
"""Largest number of corners of a shape that get a row: those nearest to the face."""

SAME_DISTANCE = 1e-4
"""m: the face is the nearest part of its shape if its nearest corner has the distance of the pair within this."""


class Faces(NamedTuple):
    """Faces of shapes of the world. All arrays are read-only."""

    span: np.ndarray  # (S, 2) int64: first corner of each shape's face, and their number; 0 for none
    frame: np.ndarray  # (S, 12) rotation (row-major), its z being the normal, and position in the world
    corner: np.ndarray  # (K, 2) corners of the faces in their frames, counter-clockwise


@jit_algebra
def corner_count(shapes, i):
    """Return the number of corners of the core of shape i; round ones have none."""
    kind = shapes.index[i, KIND]
    if kind == HULL:
        return shapes.index[i, COUNT]
    return 8 if kind == BOX else (2 if kind == CAPSULE else 0)


@jit_algebra
def corner(shapes, i, k):
    """Return corner k of the core of shape i in the shape's frame (three scalars)."""
    if shapes.index[i, KIND] == HULL:
        row = shapes.index[i, FIRST] + k
        return shapes.vertices[row, 0], shapes.vertices[row, 1], shapes.vertices[row, 2]
    x, y, z = shapes.size[i, HALF_SIZE], shapes.size[i, HALF_SIZE + 1], shapes.size[i, HALF_SIZE + 2]
    return (x if k & 4 else -x), (y if k & 2 else -y), (z if k & 1 else -z)


@jit_algebra
def is_above(faces, face, x, y):
    """Return whether a point of a face's plane, in the face's frame, is on the face."""
    first, count = faces.span[face, 0], faces.span[face, 1]
    for i in range(count):
        a, b = first + i, first + (i + 1) % count
        ex, ey = faces.corner[b, 0] - faces.corner[a, 0], faces.corner[b, 1] - faces.corner[a, 1]
        if ex * (y - faces.corner[a, 1]) - ey * (x - faces.corner[a, 0]) < 0.0:
            return False
    return True


@jit_algebra
def corner_from_base(shapes, pose, a, k):
    """Return corner k of shape a from the base origin (three scalars)."""
    x, y, z = corner(shapes, a, k)
    return (
        pose[a, 9] + pose[a, 0] * x + pose[a, 1] * y + pose[a, 2] * z,
        pose[a, 10] + pose[a, 3] * x + pose[a, 4] * y + pose[a, 5] * z,
        pose[a, 11] + pose[a, 6] * x + pose[a, 7] * y + pose[a, 8] * z,
    )


@jit
def add_corner_rows(tree, shapes, faces, a, b, q, scratch, distance, first, height, rows, value, nearest):
    """Write the heights of the corners of shape a above the face of shape b, nearest first, and their gradients.

    For a corner at x on a link with Jacobian (J_v, J_w) at p, over a face with normal n through s::

        d = n' (x - s) - radius,   d' = (n' J_v + ((x - p) x n)' J_w) v

    There are no rows if another part of shape b is nearer than the face, or if at most one corner is above the face.

    Parameters
    ----------
    scratch : with the poses of the two shapes and of the body
    distance : of the two shapes, m
    first : first row to write
    height, rows : (k,), (k, nv) out: m
    value, nearest : (10,), (MOST,) int64 scratch

    Returns
    -------
    Number of corners, at most MOST.
    """
    if faces.span[b, 1] == 0:
        return 0
    pose, frame = scratch.pose, faces.frame[b]
    above_count, count = 0, 0
    for k in range(corner_count(shapes, a)):
        x, y, z = corner_from_base(shapes, pose, a, k)
        x, y, z = x + q[0] - frame[9], y + q[1] - frame[10], z + q[2] - frame[11]
        u = frame[0] * x + frame[3] * y + frame[6] * z
        v = frame[1] * x + frame[4] * y + frame[7] * z
        if not is_above(faces, b, u, v):
            continue
        above_count += 1
        h = frame[2] * x + frame[5] * y + frame[8] * z - shapes.size[a, RADIUS]
        position = count
        while position > 0 and h < height[first + position - 1]:
            position -= 1
        if position == MAX_CORNERS:
            continue
        count = min(count + 1, MAX_CORNERS)
        for m in range(count - 1, position, -1):
            height[first + m], nearest[m] = height[first + m - 1], nearest[m - 1]
        height[first + position], nearest[position] = h, k
    if above_count < 2 or math.fabs(height[first] - distance) > SAME_DISTANCE:
        return 0
    for m in range(count):
        x, y, z = corner_from_base(shapes, pose, a, nearest[m])
        value[POINT_A], value[POINT_A + 1], value[POINT_A + 2] = x, y, z
        value[NORMAL], value[NORMAL + 1], value[NORMAL + 2] = frame[2], frame[5], frame[8]
        rows[first + m, :] = 0.0
        add_point_row(tree, scratch.bodies, shapes.index[a, BODY], 1.0, value, POINT_A, rows[first + m])
    return count
