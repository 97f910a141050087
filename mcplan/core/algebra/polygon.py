"""Convex polygons in the plane: nearest points, clipping; support polygons by linear programs.

`support_polygon` finds the vertices of a polygon from its farthest points in chosen directions. The polygon is the
projection of a linear program's feasible set on two of its variables. The program is solved along the normal of each
edge found so far; its solution confirms the edge, or splits it.

Source: Bretl & Lall, Testing static equilibrium for legged robots, IEEE T-RO 24(4), 2008.
"""

import math

import numpy as np

from mcplan.core.jit import jit, jit_allocating
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
def farthest(work, cost, ax, ay, exact, x, point):
    """Write the point (2,) of the polygon farthest along ``(ax, ay)``; return the status of the linear program.

    The other parameters are those of `support_polygon`; x gets the solution.
    """
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
    work : a feasible program; its variables ``work.first[0]`` and the next one are the polygon's coordinates.
    exact : bool, whether the forces may use the exact friction cones instead of pyramids.
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
    while final_in_row < count and count > 1:  # visit the edges in turn, until a pass over all splits none
        if is_final[i]:
            i, final_in_row = (i + 1) % count, final_in_row + 1
            continue
        start, end = vertices[i], vertices[(i + 1) % count]
        length = np.hypot(end[0] - start[0], end[1] - start[1])
        ax, ay = (end[1] - start[1]) / length, (start[0] - end[0]) / length
        worst_status = max(worst_status, farthest(work, cost, ax, ay, exact, x, point))
        beyond = ax * (point[0] - start[0]) + ay * (point[1] - start[1])
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
