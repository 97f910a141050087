"""Penetration depth of two overlapping cores: the expanding polytope algorithm on ``A - B`` (van den Bergen 2001).

A polytope inside ``A - B`` grows by the support point in the direction of its face nearest to the origin. Distances of
faces are signed, so that the polytope need not contain the origin at first. The height of each support point is an
upper bound of the depth, the distance of the nearest face a lower bound. The result is the best direction found, so
that it separates the cores even if the search ends early.
"""

import math

from mcplan.core.distance.nearest_simplex import triangle_weights, weighted_square
from mcplan.core.distance.shape import FACES, HORIZON, POLYTOPE, difference_support
from mcplan.core.jit import jit_algebra, jit_inline

MAX_VERTICES = FACES - POLYTOPE
MAX_FACES = HORIZON - FACES
MAX_EDGES = 128
"""Capacity of the polytope."""

TOLERANCE = 1e-9
"""Gap between the bounds at which the search ends (m)."""

GOLDEN_ANGLE = 2.399963229728653
"""rad: angle between successive directions of a search around one direction, so that they cover the circle evenly."""

VISIBLE_HEIGHT = 1e-12
"""m: a point sees a face if it is higher above the face than this."""


@jit_inline
def write_face(work, row, i, j, k):
    """Write a face with corners i, j, k of the polytope: columns corners 0..2, outward normal 3..5, signed distance 6.

    A face without area gets an infinite distance and no normal, so that no point sees it.
    """
    p, q, r = POLYTOPE + i, POLYTOPE + j, POLYTOPE + k
    ax, ay, az = work[p, 0], work[p, 1], work[p, 2]
    ux, uy, uz = work[q, 0] - ax, work[q, 1] - ay, work[q, 2] - az
    vx, vy, vz = work[r, 0] - ax, work[r, 1] - ay, work[r, 2] - az
    nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    length = math.sqrt(nx * nx + ny * ny + nz * nz)
    sides = math.sqrt((ux * ux + uy * uy + uz * uz) * (vx * vx + vy * vy + vz * vz))
    work[row, 0] = i
    work[row, 1] = j
    work[row, 2] = k
    if length > 1e-10 * sides and length > 0.0:
        work[row, 3] = nx / length
        work[row, 4] = ny / length
        work[row, 5] = nz / length
        work[row, 6] = (nx * ax + ny * ay + nz * az) / length
    else:
        work[row, 3] = work[row, 4] = work[row, 5] = 0.0
        work[row, 6] = math.inf


@jit_algebra
def first_tetrahedron(shapes, a, b, work):
    """Write four corners that span a volume and their four faces; return False if ``A - B`` is flat."""
    # support points in both directions of the axis along which A - B is widest
    max_width, axis = -1.0, 0
    for k in range(3):
        x, y, z = (1.0 if k == 0 else 0.0), (1.0 if k == 1 else 0.0), (1.0 if k == 2 else 0.0)
        difference_support(shapes, a, b, work, POLYTOPE, x, y, z)
        difference_support(shapes, a, b, work, POLYTOPE + 1, -x, -y, -z)
        width = work[POLYTOPE, k] - work[POLYTOPE + 1, k]
        if width > max_width:
            max_width, axis = width, k
    x, y, z = (1.0 if axis == 0 else 0.0), (1.0 if axis == 1 else 0.0), (1.0 if axis == 2 else 0.0)
    difference_support(shapes, a, b, work, POLYTOPE, x, y, z)
    difference_support(shapes, a, b, work, POLYTOPE + 1, -x, -y, -z)
    p = POLYTOPE
    ux, uy, uz = work[p + 1, 0] - work[p, 0], work[p + 1, 1] - work[p, 1], work[p + 1, 2] - work[p, 2]
    # third corner: the farthest from this line in three directions 120 deg apart, of which at least one is not short
    ex, ey, ez = (0.0, 1.0, 0.0) if axis == 0 else ((0.0, 0.0, 1.0) if axis == 1 else (1.0, 0.0, 0.0))
    fx, fy, fz = uy * ez - uz * ey, uz * ex - ux * ez, ux * ey - uy * ex
    gx, gy, gz = uy * fz - uz * fy, uz * fx - ux * fz, ux * fy - uy * fx
    scale = math.sqrt((fx * fx + fy * fy + fz * fz) / (gx * gx + gy * gy + gz * gz))
    max_area, best_x, best_y, best_z = -1.0, 0.0, 0.0, 0.0
    for k in range(3):
        s = (0.0, 0.8660254037844386, -0.8660254037844386)[k] * scale
        c = 1.0 if k == 0 else -0.5
        x, y, z = c * fx + s * gx, c * fy + s * gy, c * fz + s * gz
        difference_support(shapes, a, b, work, p + 2, x, y, z)
        vx, vy, vz = work[p + 2, 0] - work[p, 0], work[p + 2, 1] - work[p, 1], work[p + 2, 2] - work[p, 2]
        nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
        area = nx * nx + ny * ny + nz * nz
        if area > max_area:
            max_area, best_x, best_y, best_z = area, x, y, z
    difference_support(shapes, a, b, work, p + 2, best_x, best_y, best_z)
    vx, vy, vz = work[p + 2, 0] - work[p, 0], work[p + 2, 1] - work[p, 1], work[p + 2, 2] - work[p, 2]
    nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    difference_support(shapes, a, b, work, p + 3, nx, ny, nz)
    above = nx * (work[p + 3, 0] - work[p, 0]) + ny * (work[p + 3, 1] - work[p, 1]) + nz * (work[p + 3, 2] - work[p, 2])
    difference_support(shapes, a, b, work, p + 4, -nx, -ny, -nz)
    below = nx * (work[p + 4, 0] - work[p, 0]) + ny * (work[p + 4, 1] - work[p, 1]) + nz * (work[p + 4, 2] - work[p, 2])
    if above >= -below:
        write_face(work, FACES, 0, 2, 1)
        write_face(work, FACES + 1, 0, 1, 3)
        write_face(work, FACES + 2, 1, 2, 3)
        write_face(work, FACES + 3, 2, 0, 3)
    else:
        for c in range(6):
            work[p + 3, c] = work[p + 4, c]
        write_face(work, FACES, 0, 1, 2)
        write_face(work, FACES + 1, 1, 0, 3)
        write_face(work, FACES + 2, 2, 1, 3)
        write_face(work, FACES + 3, 0, 2, 3)
    return max(above, -below) > 0.0


@jit_algebra
def expand(work, faces, vertex):
    """Replace the faces that a vertex sees by faces to their horizon; return the new number of faces.

    Return -1 if the arrays are full, or if the vertex sees no face.
    """
    x, y, z = work[POLYTOPE + vertex, 0], work[POLYTOPE + vertex, 1], work[POLYTOPE + vertex, 2]
    edges, remaining = 0, 0
    for f in range(FACES, FACES + faces):
        height = work[f, 3] * x + work[f, 4] * y + work[f, 5] * z - work[f, 6]
        if height > VISIBLE_HEIGHT:
            for side in range(3):
                i, j = work[f, side], work[f, (side + 1) % 3]
                twin = -1
                for e in range(edges):  # an edge between two visible faces occurs once in each direction
                    if work[HORIZON + e, 0] == j and work[HORIZON + e, 1] == i:
                        twin = e
                        break
                if twin >= 0:
                    edges -= 1
                    work[HORIZON + twin, 0] = work[HORIZON + edges, 0]
                    work[HORIZON + twin, 1] = work[HORIZON + edges, 1]
                elif edges < MAX_EDGES:
                    work[HORIZON + edges, 0] = i
                    work[HORIZON + edges, 1] = j
                    edges += 1
                else:
                    return -1
        else:
            if FACES + remaining < f:
                for c in range(7):
                    work[FACES + remaining, c] = work[f, c]
            remaining += 1
    if edges == 0 or remaining + edges > MAX_FACES:
        return -1
    for e in range(edges):
        write_face(work, FACES + remaining + e, int(work[HORIZON + e, 0]), int(work[HORIZON + e, 1]), vertex)
    return remaining + edges


@jit_algebra
def write_deepest_point(work, faces, lower_bound, out):
    """Write A's point at the foot of the perpendicular from the origin to the nearest side of ``A - B``.

    A flat side consists of several triangles at equal distance: the one that contains the foot is used.
    """
    min_square = math.inf
    for f in range(FACES, FACES + faces):
        cosine = -(work[f, 3] * out[1] + work[f, 4] * out[2] + work[f, 5] * out[3])
        if work[f, 6] <= lower_bound + 10.0 * TOLERANCE and cosine > 1.0 - 1e-6:
            p, q, r = POLYTOPE + int(work[f, 0]), POLYTOPE + int(work[f, 1]), POLYTOPE + int(work[f, 2])
            s, t, u = triangle_weights(work, p, q, r)
            square = weighted_square(work, p, q, r, s, t, u)
            if square < min_square:
                min_square = square
                for c in range(3):
                    out[4 + c] = s * work[p, 3 + c] + t * work[q, 3 + c] + u * work[r, 3 + c]


@jit_algebra
def refine_direction(shapes, a, b, work, out):
    """Refine the best direction by a pattern search: smaller steps, until no step reduces the height of ``A - B``.

    It serves round shapes. Their depth is nearly equal in many directions, so that the polytope would need too many
    vertices.
    """
    step, failures = 0.03, 0
    row = POLYTOPE
    for k in range(800):
        nx, ny, nz = -out[1], -out[2], -out[3]
        if abs(nx) < 0.7:
            ux, uy, uz = 0.0, nz, -ny
        else:
            ux, uy, uz = -nz, 0.0, nx
        scale = step / math.sqrt(ux * ux + uy * uy + uz * uz)
        ux, uy, uz = scale * ux, scale * uy, scale * uz
        vx, vy, vz = ny * uz - nz * uy, nz * ux - nx * uz, nx * uy - ny * ux
        c, s = math.cos(GOLDEN_ANGLE * k), math.sin(GOLDEN_ANGLE * k)
        x, y, z = nx + c * ux + s * vx, ny + c * uy + s * vy, nz + c * uz + s * vz
        scale = 1.0 / math.sqrt(x * x + y * y + z * z)
        x, y, z = scale * x, scale * y, scale * z
        difference_support(shapes, a, b, work, row, x, y, z)
        height = x * work[row, 0] + y * work[row, 1] + z * work[row, 2]
        if height < -out[0]:
            out[0] = -height
            out[1] = -x
            out[2] = -y
            out[3] = -z
            for i in range(3):
                out[4 + i] = work[row, 3 + i]
            step, failures = 1.5 * step, 0
        else:
            failures += 1
            if failures == 10:
                step, failures = 0.5 * step, 0
                if step < 1e-7:
                    return


@jit_algebra
def penetrate(shapes, a, b, work, out):
    """Write minus the depth of two cores, the unit normal from b to a and A's deepest point to ``out[:7]``, b's frame.

    ``depth = min over unit n of the height of A - B along n``; moving a by ``depth`` along the normal separates the
    cores.
    """
    out[0] = -math.inf
    if not first_tetrahedron(shapes, a, b, work):
        out[0] = 0.0
        out[1] = out[2] = 0.0
        out[3] = 1.0
        for c in range(3):
            out[4 + c] = work[POLYTOPE, 3 + c]
        return
    faces, vertices = 4, 4
    upper_bound = math.inf
    while True:
        nearest = FACES
        for f in range(FACES + 1, FACES + faces):
            if work[f, 6] < work[nearest, 6]:
                nearest = f
        if vertices >= MAX_VERTICES or work[nearest, 6] == math.inf:
            break
        nx, ny, nz, lower_bound = work[nearest, 3], work[nearest, 4], work[nearest, 5], work[nearest, 6]
        row = POLYTOPE + vertices
        difference_support(shapes, a, b, work, row, nx, ny, nz)
        height = nx * work[row, 0] + ny * work[row, 1] + nz * work[row, 2]
        if height < upper_bound:
            upper_bound = height
            out[0] = -height
            out[1] = -nx
            out[2] = -ny
            out[3] = -nz
            for c in range(3):
                out[4 + c] = work[row, 3 + c]
        if upper_bound - lower_bound <= TOLERANCE:
            write_deepest_point(work, faces, lower_bound, out)
            return
        faces = expand(work, faces, vertices)
        vertices += 1
        if faces < 0:
            break
    refine_direction(shapes, a, b, work, out)
