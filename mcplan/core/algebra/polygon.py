"""Convex polygons in the plane, directions and poses for contact detection; support polygons by linear programs.

`support_polygon` finds the vertices of a polygon from its farthest points in chosen directions. The polygon is the
projection of a linear program's feasible set on two of its variables. The program is solved along the normal of each
edge found so far; its solution confirms the edge, or splits it.

Source: Bretl & Lall, Testing static equilibrium for legged robots, IEEE T-RO 24(4), 2008.
"""

import math

import numpy as np

from mcplan.core.jit import jit, jit_allocating, jit_inline
from mcplan.core.optimize import simplex
from mcplan.core.statics import program as static_program


@jit
def is_inside(corners, first, count, x, y):
    """Return whether a point lies in a convex polygon: corners ``first .. first + count - 1``, counter-clockwise."""
    for k in range(count):
        a = first + k
        b = first + (k + 1 if k + 1 < count else 0)
        ax, ay = corners[a, 0], corners[a, 1]
        if (corners[b, 0] - ax) * (y - ay) - (corners[b, 1] - ay) * (x - ax) < 0.0:
            return False
    return True


@jit
def nearest_on_border(corners, first, count, x, y):
    """Return the nearest point (two scalars) of a polygon's border."""
    min_square, bx, by = math.inf, 0.0, 0.0
    for k in range(count):
        a = first + k
        b = first + (k + 1 if k + 1 < count else 0)
        ax, ay = corners[a, 0], corners[a, 1]
        dx, dy = corners[b, 0] - ax, corners[b, 1] - ay
        s = ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy)
        s = min(max(s, 0.0), 1.0)
        px, py = ax + s * dx, ay + s * dy
        square = (x - px) ** 2 + (y - py) ** 2
        if square < min_square:
            min_square, bx, by = square, px, py
    return bx, by


@jit
def clip_polygon(corners, first, count, clip, size):
    """Clip the ``size`` points ``clip[0]`` (x, y, z) to a convex polygon; z is interpolated. Return how many remain.

    The result is in ``clip[0]``; two points are a segment. Source: Sutherland & Hodgman 1974.
    """
    for k in range(count):
        a = first + k
        b = first + (k + 1 if k + 1 < count else 0)
        ax, ay = corners[a, 0], corners[a, 1]
        dx, dy = corners[b, 0] - ax, corners[b, 1] - ay
        kept = 0
        sides = size if size > 2 else size - 1
        for i in range(sides):
            j = i + 1 if i + 1 < size else 0
            u = dx * (clip[0, i, 1] - ay) - dy * (clip[0, i, 0] - ax)
            w = dx * (clip[0, j, 1] - ay) - dy * (clip[0, j, 0] - ax)
            if u >= 0.0:
                for r in range(3):
                    clip[1, kept, r] = clip[0, i, r]
                kept += 1
            if u * w < 0.0:
                s = u / (u - w)
                for r in range(3):
                    clip[1, kept, r] = clip[0, i, r] + s * (clip[0, j, r] - clip[0, i, r])
                kept += 1
            if size == 2 and w >= 0.0:
                for r in range(3):
                    clip[1, kept, r] = clip[0, j, r]
                kept += 1
        size = kept
        for i in range(size):
            for r in range(3):
                clip[0, i, r] = clip[1, i, r]
        if size == 0:
            return 0
    return size


@jit
def compose(a, i, b, j, out, k):
    """Write the pose ``out[k] = a[i] b[j]``: rows of rotation (9, row-major) and position (3)."""
    for r in range(3):
        x, y, z = a[i, 3 * r], a[i, 3 * r + 1], a[i, 3 * r + 2]
        for c in range(3):
            out[k, 3 * r + c] = x * b[j, c] + y * b[j, 3 + c] + z * b[j, 6 + c]
        out[k, 9 + r] = a[i, 9 + r] + x * b[j, 9] + y * b[j, 10] + z * b[j, 11]


@jit_inline
def to_world(pose, i, x, y, z):
    """Return the world coordinates (three scalars) of a point given in frame i."""
    return (
        pose[i, 9] + pose[i, 0] * x + pose[i, 1] * y + pose[i, 2] * z,
        pose[i, 10] + pose[i, 3] * x + pose[i, 4] * y + pose[i, 5] * z,
        pose[i, 11] + pose[i, 6] * x + pose[i, 7] * y + pose[i, 8] * z,
    )


@jit_inline
def to_local(pose, i, x, y, z):
    """Return the coordinates (three scalars) in frame i of a point given in the world."""
    x, y, z = x - pose[i, 9], y - pose[i, 10], z - pose[i, 11]
    return (
        pose[i, 0] * x + pose[i, 3] * y + pose[i, 6] * z,
        pose[i, 1] * x + pose[i, 4] * y + pose[i, 7] * z,
        pose[i, 2] * x + pose[i, 5] * y + pose[i, 8] * z,
    )


@jit
def perpendicular(x, y, z):
    """Return a unit vector (three scalars) perpendicular to a unit vector."""
    if abs(x) <= abs(y) and abs(x) <= abs(z):
        u, v, w = 0.0, -z, y
    elif abs(y) <= abs(z):
        u, v, w = z, 0.0, -x
    else:
        u, v, w = -y, x, 0.0
    scale = 1.0 / math.sqrt(u * u + v * v + w * w)
    return scale * u, scale * v, scale * w


@jit
def farthest(work, cost, ax, ay, exact, x, point):
    """Write the point (2,) of the polygon farthest along ``(ax, ay)``; return the status of the linear program."""
    first = work.first[0]
    cost[first], cost[first + 1] = -ax, -ay
    status = static_program.minimise(work, cost, exact)
    simplex.solution(work.program, x)
    point[0], point[1] = x[first], x[first + 1]
    return status


@jit_allocating
def support_polygon(work, exact, tolerance, merge_distance, cost, x, vertices, is_final):
    """Write the vertices counter-clockwise; return their number and the worst status.

    Parameters
    ----------
    work : a feasible program whose first two variables ``z`` are the polygon's coordinates.
    tolerance : m, an edge is final if the polygon extends beyond it by no more than this.
    merge_distance : m, points closer than this count as one.
    cost, x : (capacity,): scratch, ``cost`` of zeros.
    vertices, is_final : (n, 2), (n,) out: vertices, at most n, and whether the edge after each is final.
    """
    point = np.empty(2)
    count, worst_status = 0, simplex.OPTIMAL
    for k in range(3):
        angle = 2.0 * np.pi * k / 3.0
        worst_status = max(worst_status, farthest(work, cost, np.cos(angle), np.sin(angle), exact, x, point))
        count = insert(vertices, is_final, count, count, point, merge_distance)
    i, final_in_row = 0, 0
    while final_in_row < count and count > 1:  # each round splits each edge once, until all are final
        if is_final[i]:
            i, final_in_row = (i + 1) % count, final_in_row + 1
            continue
        p, n = vertices[i], vertices[(i + 1) % count]
        length = np.hypot(n[0] - p[0], n[1] - p[1])
        ax, ay = (n[1] - p[1]) / length, (p[0] - n[0]) / length
        worst_status = max(worst_status, farthest(work, cost, ax, ay, exact, x, point))
        beyond = ax * (point[0] - p[0]) + ay * (point[1] - p[1])
        before = count
        if beyond > tolerance and count < len(vertices):
            count = insert(vertices, is_final, count, i + 1, point, merge_distance)
        if count == before:
            is_final[i] = True
        else:
            i, final_in_row = (i + 2) % count, 0
    return count, worst_status


@jit_allocating
def insert(vertices, is_final, count, position, point, merge_distance):
    """Insert a vertex unless one is within ``merge_distance``; return the number of vertices."""
    for i in range(count):
        if np.hypot(vertices[i, 0] - point[0], vertices[i, 1] - point[1]) <= merge_distance:
            return count
    for i in range(count, position, -1):
        vertices[i] = vertices[i - 1]
        is_final[i] = is_final[i - 1]
    vertices[position] = point
    is_final[position] = False
    if position > 0:
        is_final[position - 1] = False
    return count + 1
