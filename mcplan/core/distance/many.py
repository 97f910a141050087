"""Distances of many pairs of shapes on a mechanism, and their Jacobians: one call per configuration.

The distance of a pair is computed only if its bounding spheres and boxes come within its margin.
All positions are relative to the base origin.
"""

import math
from typing import NamedTuple

import numpy as np

from mcplan.core.distance.pair import DISTANCE, NORMAL, PAIR_SIZE, POINT_A, pair_distance
from mcplan.core.distance.shape import BODY, BOUNDING_RADIUS, HALF_SIZE, KIND, PLANE, RADIUS
from mcplan.core.jit import jit, jit_algebra, jit_inline
from mcplan.core.rigid_body.frame import write_body_poses
from mcplan.core.rigid_body.tree import DEGREE, PARENT, POSE, SCREW, V


class DistanceScratch(NamedTuple):
    """Scratch space of the kernels of this file."""

    bodies: np.ndarray  # workspace of the tree
    pose: np.ndarray  # (S, 12) rotation and position of every shape, from the base origin
    bounds: np.ndarray  # (P,) lower bound of every pair's distance
    pair: np.ndarray  # scratch of one pair


@jit_inline
def write_shape_pose(shapes, q, work, i, pose):
    """Fill the pose of shape i from that of its body; shapes of the world are shifted by minus the base position."""
    body, offset = shapes.index[i, BODY], shapes.offset
    if body < 0:
        for c in range(9):
            pose[i, c] = offset[i, c]
        for c in range(3):
            pose[i, 9 + c] = offset[i, 9 + c] - q[c]
        return
    for r in range(3):
        x, y, z = work[body, POSE + 3 * r], work[body, POSE + 3 * r + 1], work[body, POSE + 3 * r + 2]
        for c in range(3):
            pose[i, 3 * r + c] = x * offset[i, c] + y * offset[i, 3 + c] + z * offset[i, 6 + c]
        pose[i, 9 + r] = work[body, POSE + 9 + r] + x * offset[i, 9] + y * offset[i, 10] + z * offset[i, 11]


@jit_algebra
def write_shape_poses(tree, shapes, q, scratch):
    """Fill the pose of every shape."""
    write_body_poses(tree, q, scratch.bodies)
    for i in range(len(shapes.index)):
        write_shape_pose(shapes, q, scratch.bodies, i, scratch.pose)


@jit_algebra
def bound_pairs(shapes, pairs, pose, bounds):
    """Write a lower bound of every pair's distance: the gap between spheres, or between a sphere and a bounding box.

    The loops are in one function: calling another one with this many arrays would cost more than its arithmetic.

    Parameters
    ----------
    pose : (S, 12) out of ``write_shape_poses``
    bounds : (P,) out, m; not below minus the sum of the radii
    """
    index, size = shapes.index, shapes.size
    for p in range(len(pairs)):
        a, b = pairs[p, 0], pairs[p, 1]
        ball_a, ball_b = size[a, BOUNDING_RADIUS], size[b, BOUNDING_RADIUS]
        x, y, z = pose[a, 9] - pose[b, 9], pose[a, 10] - pose[b, 10], pose[a, 11] - pose[b, 11]
        if index[b, KIND] == PLANE:
            bounds[p] = pose[b, 2] * x + pose[b, 5] * y + pose[b, 8] * z - ball_a
            continue
        bound = math.sqrt(x * x + y * y + z * z) - ball_a - ball_b
        if bound < ball_a or bound < ball_b:  # the bounding box of a large or near shape may give a larger bound
            for side in range(2):
                box, other_radius = (b, ball_a) if side == 0 else (a, ball_b)
                radius = size[box, RADIUS]
                total = 0.0
                for k in range(3):
                    coordinate = pose[box, k] * x + pose[box, 3 + k] * y + pose[box, 6 + k] * z
                    outside = max(abs(coordinate) - size[box, HALF_SIZE + k] - radius, 0.0)
                    total += outside * outside
                bound = max(bound, math.sqrt(total) - other_radius)
        bounds[p] = bound


@jit
def fill_distances(tree, shapes, pairs, margins, q, scratch, found, values):
    """Find all pairs that are within their margins.

    Parameters
    ----------
    pairs : (P, 2) int64 shapes a and b
    margins : (P,) m; minus infinity excludes a pair
    q : (nq,)
    found : (P,) int64 out: the pairs found, in order
    values : (P, 10) out: their columns DISTANCE .. POINT_B, points relative to the base origin

    Returns
    -------
    Number of pairs found.
    """
    write_shape_poses(tree, shapes, q, scratch)
    bound_pairs(shapes, pairs, scratch.pose, scratch.bounds)
    count = 0
    for p in range(len(pairs)):
        if scratch.bounds[p] <= margins[p]:
            a, b = pairs[p, 0], pairs[p, 1]
            if pair_distance(shapes, a, b, scratch.pose, margins[p], scratch.pair, values[count]):
                found[count] = p
                count += 1
    return count


@jit
def find_smallest(tree, shapes, pairs, margins, q, scratch, found, values):
    """Find the nearest pair within its margin, the first of equally near ones; outputs as of ``fill_distances``.

    Returns
    -------
    1, or 0 if no pair is within its margin.
    """
    write_shape_poses(tree, shapes, q, scratch)
    bound_pairs(shapes, pairs, scratch.pose, scratch.bounds)
    bounds = scratch.bounds
    first = 0  # the pair with the smallest bound is tested first: its distance excludes most others
    for p in range(len(pairs)):
        if margins[p] == math.inf and bounds[p] < bounds[first]:
            first = p
    min_distance, count = math.inf, 0
    for k in range(-1 if len(pairs) > 0 else 0, len(pairs)):
        p = first if k < 0 else k
        margin = min(margins[p], min_distance)
        if bounds[p] <= margin:
            a, b = pairs[p, 0], pairs[p, 1]
            if pair_distance(shapes, a, b, scratch.pose, margin, scratch.pair, values[1]) and (
                values[1, DISTANCE] < min_distance or (values[1, DISTANCE] == min_distance and p < found[0])
            ):
                min_distance, count = values[1, DISTANCE], 1
                found[0] = p
                for c in range(PAIR_SIZE):
                    values[0, c] = values[1, c]
    return count


@jit_algebra
def add_point_row(tree, work, body, scale, value, point, row):
    """Add ``scale n' J`` to a row, J the linear Jacobian of a body's point; the point is given from the base origin."""
    nx, ny, nz = scale * value[NORMAL], scale * value[NORMAL + 1], scale * value[NORMAL + 2]
    x, y, z = value[point], value[point + 1], value[point + 2]
    mx, my, mz = y * nz - z * ny, z * nx - x * nz, x * ny - y * nx
    row[0] += nx
    row[1] += ny
    row[2] += nz
    row[3] += mx
    row[4] += my
    row[5] += mz
    i = body
    while i > 0:
        d = tree.topology[i, DEGREE]
        row[tree.topology[i, V]] += (
            nx * work[d, SCREW]
            + ny * work[d, SCREW + 1]
            + nz * work[d, SCREW + 2]
            + mx * work[d, SCREW + 3]
            + my * work[d, SCREW + 4]
            + mz * work[d, SCREW + 5]
        )
        i = tree.topology[i, PARENT]


@jit
def fill_distance_row(tree, shapes, a, b, work, value, row):
    """Write ``row = n' (J_a - J_b)`` of two shapes, whose nearest points and normal are in ``value`` (10,)."""
    row[:] = 0.0
    for side in range(2):
        body = shapes.index[a if side == 0 else b, BODY]
        if body >= 0:
            add_point_row(tree, work, body, 1.0 if side == 0 else -1.0, value, POINT_A + 3 * side, row)


@jit
def fill_distance_rows(tree, shapes, pairs, margins, q, scratch, found, values, rows):
    """Find pairs as ``fill_distances`` does, and write ``d(distance)/dt = row v``: ``row = n' (J_a - J_b)``.

    The nearest points are taken as fixed to the bodies: moving along the surfaces does not change the distance.

    Parameters
    ----------
    rows : (P, nv) out

    Returns
    -------
    Number of pairs found.
    """
    count = fill_distances(tree, shapes, pairs, margins, q, scratch, found, values)
    for k in range(count):
        fill_distance_row(tree, shapes, pairs[found[k], 0], pairs[found[k], 1], scratch.bodies, values[k], rows[k])
    return count
