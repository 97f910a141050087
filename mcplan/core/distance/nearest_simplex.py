"""Nearest point of a simplex to the origin, for up to four corners.

Corners are rows SIMPLEX .. of the scratch (columns 0..2); their weights are written to column 6. Corners with zero
weight are removed and the others moved up; functions return the number of remaining corners.
Source: Ericson 2004, section 5.1.
"""

from mcplan.core.distance.shape import SIMPLEX
from mcplan.core.jit import jit_inline

FLAT = 1e-24
"""m²: squared height over the base below which four corners count as coplanar."""


@jit_inline
def segment_weights(work, i, j):
    """Weights of two rows, clamped to the segment between them."""
    x, y, z = work[j, 0] - work[i, 0], work[j, 1] - work[i, 1], work[j, 2] - work[i, 2]
    along = -(x * work[i, 0] + y * work[i, 1] + z * work[i, 2])
    square = x * x + y * y + z * z
    if along <= 0.0 or square == 0.0:
        return 1.0, 0.0
    if along >= square:
        return 0.0, 1.0
    t = along / square
    return 1.0 - t, t


@jit_inline
def weighted_square(work, i, j, k, u, v, w):
    """Squared distance from the origin to the point of three rows with these weights."""
    x = u * work[i, 0] + v * work[j, 0] + w * work[k, 0]
    y = u * work[i, 1] + v * work[j, 1] + w * work[k, 1]
    z = u * work[i, 2] + v * work[j, 2] + w * work[k, 2]
    return x * x + y * y + z * z


@jit_inline
def triangle_weights(work, i, j, k):
    """Weights of three rows, clamped to the triangle."""
    ax, ay, az = work[i, 0], work[i, 1], work[i, 2]
    ux, uy, uz = work[j, 0] - ax, work[j, 1] - ay, work[j, 2] - az
    vx, vy, vz = work[k, 0] - ax, work[k, 1] - ay, work[k, 2] - az
    nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    square = nx * nx + ny * ny + nz * nz
    if square > 0.0:
        # areas of the triangles that the origin's projection makes with each edge
        weight_k = -(nx * (uy * az - uz * ay) + ny * (uz * ax - ux * az) + nz * (ux * ay - uy * ax)) / square
        weight_j = (nx * (vy * az - vz * ay) + ny * (vz * ax - vx * az) + nz * (vx * ay - vy * ax)) / square
        weight_i = 1.0 - weight_j - weight_k
        if weight_i >= 0.0 and weight_j >= 0.0 and weight_k >= 0.0:
            return weight_i, weight_j, weight_k
    p, q = segment_weights(work, i, j)
    best_i, best_j, best_k = p, q, 0.0
    least = weighted_square(work, i, j, k, best_i, best_j, best_k)
    p, q = segment_weights(work, i, k)
    now = weighted_square(work, i, j, k, p, 0.0, q)
    if now < least:
        best_i, best_j, best_k, least = p, 0.0, q, now
    p, q = segment_weights(work, j, k)
    now = weighted_square(work, i, j, k, 0.0, p, q)
    if now < least:
        best_i, best_j, best_k = 0.0, p, q
    return best_i, best_j, best_k


@jit_inline
def keep_weighted(work, count):
    """Remove the corners with zero weight; return the number of remaining ones."""
    kept = 0
    for i in range(SIMPLEX, SIMPLEX + count):
        if work[i, 6] > 0.0:
            if kept < i - SIMPLEX:
                for c in range(7):
                    work[SIMPLEX + kept, c] = work[i, c]
            kept += 1
    return kept


@jit_inline
def nearest_of_tetrahedron(work):
    """Write the weights of four corners, from the nearest face with the origin outside; return the number of corners.

    Return 5 if the origin is inside.
    """
    s = SIMPLEX
    least = -1.0
    best0, best1, best2, best3 = 0.0, 0.0, 0.0, 0.0
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
        if origin * height > 0.0 and height * height > FLAT * (nx * nx + ny * ny + nz * nz):
            continue
        p, q, r = triangle_weights(work, i, j, k)
        now = weighted_square(work, i, j, k, p, q, r)
        if least < 0.0 or now < least:
            least = now
            if face == 0:
                best0, best1, best2, best3 = p, q, r, 0.0
            elif face == 1:
                best0, best1, best2, best3 = p, q, 0.0, r
            elif face == 2:
                best0, best1, best2, best3 = p, 0.0, q, r
            else:
                best0, best1, best2, best3 = 0.0, p, q, r
    if least < 0.0:
        return 5
    work[s, 6] = best0
    work[s + 1, 6] = best1
    work[s + 2, 6] = best2
    work[s + 3, 6] = best3
    return keep_weighted(work, 4)


@jit_inline
def nearest_of_simplex(work, count):
    """Write the weights of up to four corners; return the number of remaining ones, or 5 if the origin is inside."""
    s = SIMPLEX
    if count == 1:
        work[s, 6] = 1.0
        return 1
    if count == 2:
        work[s, 6], work[s + 1, 6] = segment_weights(work, s, s + 1)
        return keep_weighted(work, 2)
    if count == 3:
        work[s, 6], work[s + 1, 6], work[s + 2, 6] = triangle_weights(work, s, s + 1, s + 2)
        return keep_weighted(work, 3)
    return nearest_of_tetrahedron(work)
