"""Nearest point of a simplex to the origin, for up to four corners.

Corners are rows SIMPLEX .. of the scratch (columns 0..2); the barycentric weights of the nearest point are written to
column 6. Corners with zero weight are removed and the others moved up; functions return how many remain.
Source: Ericson 2004, section 5.1.
"""

from mcplan.core.distance.shape import SIMPLEX
from mcplan.core.jit import jit_inline

MIN_SQUARED_HEIGHT = 1e-24
"""m²: squared height over the base below which four corners count as coplanar."""

ORIGIN_INSIDE = 5
"""Returned in place of a number of corners, which is at most 4, if the tetrahedron contains the origin."""


@jit_inline
def segment_weights(work, i, j):
    """Return the barycentric weights of the point of a segment, ends i, j, that is nearest to the origin."""
    x, y, z = work[j, 0] - work[i, 0], work[j, 1] - work[i, 1], work[j, 2] - work[i, 2]
    projection = -(x * work[i, 0] + y * work[i, 1] + z * work[i, 2])
    square = x * x + y * y + z * z
    if projection <= 0.0 or square == 0.0:
        return 1.0, 0.0
    if projection >= square:
        return 0.0, 1.0
    t = projection / square
    return 1.0 - t, t


@jit_inline
def weighted_square(work, i, j, k, u, v, w):
    """Return the squared distance from the origin to the point with the weights u, v, w of rows i, j, k."""
    x = u * work[i, 0] + v * work[j, 0] + w * work[k, 0]
    y = u * work[i, 1] + v * work[j, 1] + w * work[k, 1]
    z = u * work[i, 2] + v * work[j, 2] + w * work[k, 2]
    return x * x + y * y + z * z


@jit_inline
def triangle_weights(work, i, j, k):
    """Return the barycentric weights of the point of a triangle, corners i, j, k, that is nearest to the origin."""
    ax, ay, az = work[i, 0], work[i, 1], work[i, 2]
    ux, uy, uz = work[j, 0] - ax, work[j, 1] - ay, work[j, 2] - az
    vx, vy, vz = work[k, 0] - ax, work[k, 1] - ay, work[k, 2] - az
    nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    square_area = nx * nx + ny * ny + nz * nz
    if square_area > 0.0:
        # areas of the triangles that the origin's projection makes with each edge
        weight_k = -(nx * (uy * az - uz * ay) + ny * (uz * ax - ux * az) + nz * (ux * ay - uy * ax)) / square_area
        weight_j = (nx * (vy * az - vz * ay) + ny * (vz * ax - vx * az) + nz * (vx * ay - vy * ax)) / square_area
        weight_i = 1.0 - weight_j - weight_k
        if weight_i >= 0.0 and weight_j >= 0.0 and weight_k >= 0.0:
            return weight_i, weight_j, weight_k
    first, second = segment_weights(work, i, j)
    best_i, best_j, best_k = first, second, 0.0
    min_square = weighted_square(work, i, j, k, best_i, best_j, best_k)
    first, second = segment_weights(work, i, k)
    candidate = weighted_square(work, i, j, k, first, 0.0, second)
    if candidate < min_square:
        best_i, best_j, best_k, min_square = first, 0.0, second, candidate
    first, second = segment_weights(work, j, k)
    candidate = weighted_square(work, i, j, k, 0.0, first, second)
    if candidate < min_square:
        best_i, best_j, best_k = 0.0, first, second
    return best_i, best_j, best_k


@jit_inline
def remove_unweighted(work, count):
    """Remove the corners with zero weight; return the number of remaining ones."""
    remaining = 0
    for i in range(SIMPLEX, SIMPLEX + count):
        if work[i, 6] > 0.0:
            if remaining < i - SIMPLEX:
                for c in range(7):
                    work[SIMPLEX + remaining, c] = work[i, c]
            remaining += 1
    return remaining


@jit_inline
def nearest_of_tetrahedron(work):
    """Write the weights of four corners, from the nearest of the faces that have the origin on their outer side.

    Return the number of remaining corners, or ORIGIN_INSIDE.
    """
    s = SIMPLEX
    min_square = -1.0
    w0, w1, w2, w3 = 0.0, 0.0, 0.0, 0.0
    for face in range(4):  # the face opposite to the corner 3, 2, 1, 0
        i = s + (1 if face == 3 else 0)
        j = s + (2 if face >= 2 else 1)
        k = s + (2 if face == 0 else 3)
        opposite = s + 3 - face
        ax, ay, az = work[i, 0], work[i, 1], work[i, 2]
        ux, uy, uz = work[j, 0] - ax, work[j, 1] - ay, work[j, 2] - az
        vx, vy, vz = work[k, 0] - ax, work[k, 1] - ay, work[k, 2] - az
        nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
        height = nx * (work[opposite, 0] - ax) + ny * (work[opposite, 1] - ay) + nz * (work[opposite, 2] - az)
        origin = -(nx * ax + ny * ay + nz * az)
        if origin * height > 0.0 and height * height > MIN_SQUARED_HEIGHT * (nx * nx + ny * ny + nz * nz):
            continue
        p, q, r = triangle_weights(work, i, j, k)
        candidate = weighted_square(work, i, j, k, p, q, r)
        if min_square < 0.0 or candidate < min_square:
            min_square = candidate
            if face == 0:
                w0, w1, w2, w3 = p, q, r, 0.0
            elif face == 1:
                w0, w1, w2, w3 = p, q, 0.0, r
            elif face == 2:
                w0, w1, w2, w3 = p, 0.0, q, r
            else:
                w0, w1, w2, w3 = 0.0, p, q, r
    if min_square < 0.0:
        return ORIGIN_INSIDE
    work[s, 6] = w0
    work[s + 1, 6] = w1
    work[s + 2, 6] = w2
    work[s + 3, 6] = w3
    return remove_unweighted(work, 4)


@jit_inline
def nearest_of_simplex(work, count):
    """Write the weights of up to four corners; return the number of remaining ones, or ORIGIN_INSIDE."""
    s = SIMPLEX
    if count == 1:
        work[s, 6] = 1.0
        return 1
    if count == 2:
        work[s, 6], work[s + 1, 6] = segment_weights(work, s, s + 1)
        return remove_unweighted(work, 2)
    if count == 3:
        work[s, 6], work[s + 1, 6], work[s + 2, 6] = triangle_weights(work, s, s + 1, s + 2)
        return remove_unweighted(work, 3)
    return nearest_of_tetrahedron(work)
