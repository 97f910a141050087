"""The vertices of a polygon that is known by its farthest point in any direction.

The polygon ``{u}`` is the projection of a linear program's feasible set on two of its variables. Each edge of the
polygon so far is confirmed by the program along the edge's normal, or split at the point that it returns.

Source: Bretl & Lall, Testing static equilibrium for legged robots, IEEE T-RO 24(4), 2008.
"""

import numpy as np

from mcplan.core.jit import jit, jit_allocating
from mcplan.core.optimize import simplex
from mcplan.core.statics import program as static_program


@jit
def farthest(work, cost, ax, ay, exact, x, point):
    """Write the point farthest along ``(ax, ay)``; return the status."""
    first = work.first[0]
    cost[first], cost[first + 1] = -ax, -ay
    status = static_program.minimise(work, cost, exact)
    simplex.solution(work.program, x)
    point[0], point[1] = x[first], x[first + 1]
    return status


@jit_allocating
def support_polygon(work, exact, tolerance, same, cost, x, vertices, settled):
    """Write the vertices counter-clockwise; return their number and the worst status.

    Parameters
    ----------
    work : a feasible program whose first two variables ``z`` are the polygon's coordinates.
    tolerance : an edge is final when the polygon extends no farther beyond it.
    same : points closer than this are one.
    cost, x : (capacity,): scratch, ``cost`` of zeros.
    vertices, settled : (n, 2), (n,): written; no more than n vertices are found.
    """
    point = np.empty(2)
    count, worst = 0, simplex.OPTIMAL
    for k in range(3):
        angle = 2.0 * np.pi * k / 3.0
        worst = max(worst, farthest(work, cost, np.cos(angle), np.sin(angle), exact, x, point))
        count = insert(vertices, settled, count, count, point, same)
    i, quiet = 0, 0
    while quiet < count and count > 1:  # around and around, each edge halved once a time, until all are settled
        if settled[i]:
            i, quiet = (i + 1) % count, quiet + 1
            continue
        p, n = vertices[i], vertices[(i + 1) % count]
        length = np.hypot(n[0] - p[0], n[1] - p[1])
        ax, ay = (n[1] - p[1]) / length, (p[0] - n[0]) / length
        worst = max(worst, farthest(work, cost, ax, ay, exact, x, point))
        beyond = ax * (point[0] - p[0]) + ay * (point[1] - p[1])
        before = count
        if beyond > tolerance and count < len(vertices):
            count = insert(vertices, settled, count, i + 1, point, same)
        if count == before:
            settled[i] = True
        else:
            i, quiet = (i + 2) % count, 0
    return count, worst


@jit_allocating
def insert(vertices, settled, count, at, point, same):
    """Insert a point that is not there yet; return the number of vertices."""
    for i in range(count):
        if np.hypot(vertices[i, 0] - point[0], vertices[i, 1] - point[1]) <= same:
            return count
    for i in range(count, at, -1):
        vertices[i] = vertices[i - 1]
        settled[i] = settled[i - 1]
    vertices[at] = point
    settled[at] = False
    if at > 0:
        settled[at - 1] = False
    return count + 1
