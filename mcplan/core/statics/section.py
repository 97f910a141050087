"""The set of pairs (u, x) for which forces exist: a linear program over forces, projected on two of its variables.

The corners of the projection are found from outside in: a support point in four directions, then along the normal of
every edge between neighbours, until none lies beyond its edge by more than a tolerance. Each program starts from the
optimum of the one before, so that a corner costs a few pivots. What is returned lies inside the true set: its corners
are points of it.

Source: Bretl and Lall (2008), Testing static equilibrium for legged robots, IEEE T-RO 24(4), algorithm 1.
"""

import math

import numpy as np

from mcplan.core.jit import jit, jit_allocating
from mcplan.core.optimize import simplex
from mcplan.core.statics import program as static_program

FAILED, EMPTY = -1, -2
"""Instead of a number of corners or edges: a program could not be solved; there are no forces."""

TOLERANCE, CORNERS = 1e-6, 48
"""Part of the extent of a projection by which its edges may be inside of it, and room for its corners."""

EDGE = 1e-9
"""Part of the extent of a polygon below which an edge is none."""


@jit
def corner(work, cost, a, b, out):
    """Maximise ``a z_0 + b z_1`` over a feasible program; write z_0, z_1 to ``out`` (2,) and return the status."""
    first, program = work.first[0], work.program
    m = len(program.b)
    cost[first], cost[first + 1] = -a, -b
    status = static_program.minimise(work, cost, False)
    for k in range(2):
        column = 1 + m + first + k
        value = 0.0
        for i in range(m):
            if program.basis[i] == column:
                value = min(max(program.T[i, 0], 0.0), program.upper[column])
        out[k] = program.upper[column] - value if program.flipped[column] else value
    return status


@jit_allocating
def project(work, cost, tolerance, corners):
    """Write the corners of the projection of a feasible program on its first two variables z, counterclockwise.

    Parameters
    ----------
    work : a program that has been started, its first two variables bounded from above.
    cost : (capacity,) zeros; scratch.
    tolerance : by which part of the extent of the set an edge may be inside of it.
    corners : (most, 2) written.

    Returns
    -------
    count : of corners, or `FAILED`.
    """
    most = len(corners)
    extent_u, extent_x = 1.0, 1.0
    for k in range(4):
        a, b = math.cos(0.5 * math.pi * k), math.sin(0.5 * math.pi * k)
        if corner(work, cost, a, b, corners[k]) != simplex.OPTIMAL:
            return FAILED
    extent_u = max(corners[0, 0] - corners[2, 0], 1e-12)
    extent_x = max(corners[1, 1] - corners[3, 1], 1e-12)
    count, edge = 4, 0
    new = corners[most - 1]
    while edge < count and count < most - 1:
        p, q = corners[edge], corners[(edge + 1) % count]
        a, b = (q[1] - p[1]) / extent_x, -(q[0] - p[0]) / extent_u
        length = math.sqrt(a * a + b * b)
        if length < tolerance:
            edge += 1
            continue
        a, b = a / length / extent_u, b / length / extent_x
        if corner(work, cost, a, b, new) != simplex.OPTIMAL:
            return FAILED
        if a * (new[0] - p[0]) + b * (new[1] - p[1]) <= tolerance:
            edge += 1
            continue
        for i in range(count, edge + 1, -1):
            corners[i, 0], corners[i, 1] = corners[i - 1, 0], corners[i - 1, 1]
        corners[edge + 1, 0], corners[edge + 1, 1] = new[0], new[1]
        count += 1
    return count


@jit
def cut(corners, count, a, b, most, scratch):
    """Cut a polygon, ``count`` corners of (capacity, 2) counterclockwise, to ``a u + b x <= most``.

    Return how many corners are left. Source: Sutherland and Hodgman (1974).
    """
    left = 0
    for i in range(count):
        j = i + 1 if i + 1 < count else 0
        here = a * corners[i, 0] + b * corners[i, 1] - most
        there = a * corners[j, 0] + b * corners[j, 1] - most
        if here <= 0.0:
            scratch[left, 0], scratch[left, 1] = corners[i, 0], corners[i, 1]
            left += 1
        if (here < 0.0 and there > 0.0) or (here > 0.0 and there < 0.0):
            t = here / (here - there)
            for k in range(2):
                scratch[left, k] = corners[i, k] + t * (corners[j, k] - corners[i, k])
            left += 1
    for i in range(left):
        corners[i, 0], corners[i, 1] = scratch[i, 0], scratch[i, 1]
    return left


@jit
def cut_accelerations(corners, count, v, vd, most, scratch):
    """Cut a polygon to ``|v_j u + vd_j x| <= most`` for all j; return how many corners are left."""
    for j in range(len(v)):
        if v[j] != 0.0 or vd[j] != 0.0:
            count = cut(corners, count, v[j], vd[j], most, scratch)
            count = cut(corners, count, -v[j], -vd[j], most, scratch)
    return count


@jit
def halfplanes(corners, count, rows):
    """Write the edges of a polygon as rows (most, 3) ``a u + b x <= c``, scaled by its extent; return how many."""
    low_u, high_u, low_x, high_x = math.inf, -math.inf, math.inf, -math.inf
    for i in range(count):
        low_u, high_u = min(low_u, corners[i, 0]), max(high_u, corners[i, 0])
        low_x, high_x = min(low_x, corners[i, 1]), max(high_x, corners[i, 1])
    extent_u, extent_x = max(high_u - low_u, 1e-12), max(high_x - low_x, 1e-12)
    found = 0
    for i in range(count):
        j = i + 1 if i + 1 < count else 0
        du, dx = corners[j, 0] - corners[i, 0], corners[j, 1] - corners[i, 1]
        if math.hypot(du / extent_u, dx / extent_x) < EDGE:
            continue
        scale = 1.0 / math.hypot(dx * extent_u, du * extent_x)
        a, b = dx * scale, -du * scale
        rows[found, 0], rows[found, 1] = a, b
        rows[found, 2] = a * corners[i, 0] + b * corners[i, 1]
        found += 1
    return found


@jit_allocating
def along_path(work, slack, unit, joints, limit, hold, of_u, of_x, forces, x_max, u_max, v, vd, most, rows, counts):
    """Write the polygons of (u, x), squared rate and its half derivative, that forces allow at the points of a path.

    Base and joints need ``hold + of_u u + of_x x``, of which contacts give ``forces f`` and motors up to ``limit``.

    Parameters
    ----------
    work : a program whose rows are six of the base, one per joint, and those that do not change; its first variables
        ``z`` are those of u and x, then the slacks of the joints. It is written over.
    slack : its rows' slacks, as of ``simplex.start``
    unit : N, by which the rows of the base are divided
    joints, limit : (k,) indices of the joints in generalised forces, and limits, N m
    hold, of_u, of_x : (m, nv); forces : (m, nv, size)
    x_max, u_max : (m,) bounds
    v, vd : (m, nv - 3) coordinates whose acceleration ``v u + vd x`` is bounded by ``most``
    rows, counts : (m, capacity, 3), (m,) half-planes ``a u + b x <= c``, written

    Returns
    -------
    point : the first at which there is no polygon, its count `FAILED` or `EMPTY`; m when there are all.
    """
    program, first = work.program, work.first[0]
    A, b = program.A, program.b
    count, k = program.count[0], len(joints)
    cost = np.zeros(A.shape[1])
    corners, scratch = np.zeros((rows.shape[1], 2)), np.zeros((rows.shape[1], 2))
    for i in range(len(hold)):
        U, X = u_max[i], x_max[i]
        for r in range(6 + k):
            j = r if r < 6 else joints[r - 6]
            scale = 1.0 / unit if r < 6 else -1.0 / limit[r - 6]
            for column in range(forces.shape[2]):
                work.rows[r, column] = scale * forces[i, j, column]
            A[r, first], A[r, first + 1] = -scale * 2.0 * U * of_u[i, j], -scale * X * of_x[i, j]
            least = scale * (hold[i, j] - U * of_u[i, j])
            b[r] = least if r < 6 else 1.0 + least
        program.count[0] = count
        cost[:] = 0.0
        if static_program.start(work, slack) != simplex.OPTIMAL:
            counts[i] = EMPTY
            return i
        found = project(work, cost, TOLERANCE, corners[:CORNERS])
        if found == FAILED:
            counts[i] = FAILED
            return i
        for n in range(found):
            corners[n, 0], corners[n, 1] = U * (2.0 * corners[n, 0] - 1.0), X * corners[n, 1]
        found = cut_accelerations(corners, found, v[i], vd[i], most, scratch)
        counts[i] = halfplanes(corners, found, rows[i])
    return len(hold)
