"""Feasible polygons of (u, x) along a path: a linear program over contact forces, projected on two of its variables.

u is the path acceleration, x the squared path velocity.

The corners of the projection are support points: first in four directions, then along the normal of every edge between
neighbours, until none lies beyond its edge by more than a tolerance. Each program starts from the optimum of the
previous one, so that a corner costs a few pivots. The result lies inside the exact set, because its corners are points
of it.

Source: Bretl and Lall (2008), Testing static equilibrium for legged robots, IEEE T-RO 24(4), algorithm 1.
"""

import math

import numpy as np

from mcplan.core.jit import jit, jit_allocating
from mcplan.core.optimize import simplex
from mcplan.core.statics import program as static_program

FAILED, EMPTY, AT_REST = -1, -2, -3
"""In place of a number of corners or edges: a program was not solved; no forces exist; forces exist only at rest."""

TOLERANCE, MAX_CORNERS = 1e-6, 48
"""Largest distance of edges from the exact projection, relative to its extent; largest number of corners."""

MIN_EDGE = 1e-9
"""Shorter edges, relative to the extent of a polygon, are skipped."""


@jit_allocating
def find_corner(work, rays, cost, check_rounding, a, b, out):
    """Maximise ``a z_0 + b z_1`` over a feasible program; write z_0, z_1 to ``out`` (2,) and return the status."""
    first, program = work.first[0], work.program
    m = len(program.b)
    cost[first], cost[first + 1] = -a, -b
    if check_rounding:
        status = static_program.minimise_checked(work, rays, cost)
    else:
        status = static_program.minimise_with_few_rays(work, rays, cost)
    for k in range(2):
        column = 1 + m + first + k
        value = 0.0
        for i in range(m):
            if program.basis[i] == column:
                value = min(max(program.T[i, 0], 0.0), program.upper[column])
        out[k] = program.upper[column] - value if program.flipped[column] else value
    return status


@jit_allocating
def project(work, rays, cost, check_rounding, tolerance, corners):
    """Write the corners of the projection of a feasible program on its first two variables z, counterclockwise.

    Parameters
    ----------
    work, rays : a started program, its first two variables bounded from above, and the rays of its forces.
    cost : (capacity,) zeros; scratch.
    check_rounding : check the tableau for rounding at every corner; otherwise the caller does so at the end.
    tolerance : largest distance of an edge from the exact set, relative to its extent.
    corners : (capacity, 2) out.

    Returns
    -------
    Number of corners, or `FAILED`.
    """
    capacity = len(corners)
    extent_u, extent_x = 1.0, 1.0
    for k in range(4):
        a, b = math.cos(0.5 * math.pi * k), math.sin(0.5 * math.pi * k)
        if find_corner(work, rays, cost, check_rounding, a, b, corners[k]) != simplex.OPTIMAL:
            return FAILED
    extent_u = max(corners[0, 0] - corners[2, 0], 1e-12)
    extent_x = max(corners[1, 1] - corners[3, 1], 1e-12)
    count, edge = 4, 0
    corner = corners[capacity - 1]
    while edge < count and count < capacity - 1:
        p, q = corners[edge], corners[(edge + 1) % count]
        a, b = (q[1] - p[1]) / extent_x, -(q[0] - p[0]) / extent_u
        length = math.sqrt(a * a + b * b)
        if length < tolerance:
            edge += 1
            continue
        a, b = a / length / extent_u, b / length / extent_x
        if find_corner(work, rays, cost, check_rounding, a, b, corner) != simplex.OPTIMAL:
            return FAILED
        if a * (corner[0] - p[0]) + b * (corner[1] - p[1]) <= tolerance:
            edge += 1
            continue
        for i in range(count, edge + 1, -1):
            corners[i, 0], corners[i, 1] = corners[i - 1, 0], corners[i - 1, 1]
        corners[edge + 1, 0], corners[edge + 1, 1] = corner[0], corner[1]
        count += 1
    return count


@jit
def clip(corners, count, a, b, bound, scratch):
    """Clip a polygon, ``count`` corners of (capacity, 2) counterclockwise, to ``a u + b x <= bound``.

    Return the new number of corners. Source: Sutherland and Hodgman (1974).
    """
    kept = 0
    for i in range(count):
        j = i + 1 if i + 1 < count else 0
        start = a * corners[i, 0] + b * corners[i, 1] - bound
        end = a * corners[j, 0] + b * corners[j, 1] - bound
        if start <= 0.0:
            scratch[kept, 0], scratch[kept, 1] = corners[i, 0], corners[i, 1]
            kept += 1
        if (start < 0.0 and end > 0.0) or (start > 0.0 and end < 0.0):
            t = start / (start - end)
            for k in range(2):
                scratch[kept, k] = corners[i, k] + t * (corners[j, k] - corners[i, k])
            kept += 1
    for i in range(kept):
        corners[i, 0], corners[i, 1] = scratch[i, 0], scratch[i, 1]
    return kept


@jit
def clip_to_halfplanes(corners, count, bounds, scratch):
    """Clip a polygon to half-planes ``bounds`` (k, 3), rows ``a u + b x <= c``; return the new number of corners."""
    for j in range(len(bounds)):
        if bounds[j, 2] < math.inf:
            count = clip(corners, count, bounds[j, 0], bounds[j, 1], bounds[j, 2], scratch)
    return count


@jit
def halfplanes(corners, count, rows):
    """Write the edges of a polygon as rows ``a u + b x <= c``, (n, 3), scaled by its extent; return their number."""
    low_u, high_u, low_x, high_x = math.inf, -math.inf, math.inf, -math.inf
    for i in range(count):
        low_u, high_u = min(low_u, corners[i, 0]), max(high_u, corners[i, 0])
        low_x, high_x = min(low_x, corners[i, 1]), max(high_x, corners[i, 1])
    extent_u, extent_x = max(high_u - low_u, 1e-12), max(high_x - low_x, 1e-12)
    edges = 0
    for i in range(count):
        j = i + 1 if i + 1 < count else 0
        du, dx = corners[j, 0] - corners[i, 0], corners[j, 1] - corners[i, 1]
        if math.hypot(du / extent_u, dx / extent_x) < MIN_EDGE:
            continue
        scale = 1.0 / math.hypot(dx * extent_u, du * extent_x)
        a, b = dx * scale, -du * scale
        rows[edges, 0], rows[edges, 1] = a, b
        rows[edges, 2] = a * corners[i, 0] + b * corners[i, 1]
        edges += 1
    return edges


@jit
def allows_motion(rows, count):
    """Return whether the half-planes allow motion at a constant speed: u = 0 with some x > 0."""
    for k in range(count):
        if rows[k, 1] > 0.0 and not rows[k, 2] > 0.0:
            return False
    return count >= 3


@jit
def fill_rows(work, unit, joints, limit, hold, demand, forces):
    """Write the rows by which contacts and motors produce the generalised force ``hold + demand' z``.

    The contact forces f produce ``forces f``, the motors the rest, up to ``limit``.

    Parameters
    ----------
    work : a program whose rows are six of the base, one per joint, and constant ones; its first variables are z, then
        the slacks of the joints.
    unit : N, by which the rows of the base are divided
    joints, limit : (k,) indices of the joints in generalised forces, and limits, N m
    hold : (nv,) generalised force at rest
    demand : (variables, nv) generalised force per unit of each variable
    forces : (nv, size) generalised force per unit of each contact force
    """
    A, b, first = work.program.A, work.program.b, work.first[0]
    for r in range(6 + len(joints)):
        j = r if r < 6 else joints[r - 6]
        scale = 1.0 / unit if r < 6 else -1.0 / limit[r - 6]
        for column in range(forces.shape[1]):
            work.rows[r, column] = scale * forces[j, column]
        for k in range(len(demand)):
            A[r, first + k] = -scale * demand[k, j]
        b[r] = scale * hold[j] if r < 6 else 1.0 + scale * hold[j]


@jit_allocating
def polygons_along_path(
    work, rays, slack, unit, joints, limit, hold, demand, forces, x_max, u_max, bounds, order, rows, counts
):
    """Write the feasible polygons of (u, x), path acceleration and squared path velocity, at the points of a path.

    Parameters
    ----------
    work, rays, slack : program as in ``fill_rows`` with two variables up to 1, overwritten; its rays; slack of each
        row, as in ``simplex.start``
    unit, joints, limit : as in ``fill_rows``
    hold, forces : (m, nv), (m, nv, size) as in ``fill_rows``; ``demand`` (m, 2, nv): generalised force per u and x
    x_max, u_max : (m,) bounds
    bounds : (m, j, 3) half-planes ``a u + b x <= c`` that do not depend on forces
    order : (m,) order in which the points are computed
    rows, counts : (m, capacity, 3), (m,) out, half-planes ``a u + b x <= c`` and their number

    Returns
    -------
    point : the first one without a polygon, with `FAILED`, `EMPTY` or `AT_REST` as its count; m if all have one.
    """
    cost = np.zeros(work.program.A.shape[1])
    corners, scratch = np.zeros((rows.shape[1], 2)), np.zeros((rows.shape[1], 2))
    lowest, demand_z = np.zeros(hold.shape[1]), np.zeros((2, hold.shape[1]))
    for i in order:
        u_bound, x_bound = u_max[i], x_max[i]
        for j in range(len(lowest)):  # u = u_bound (2 z_0 - 1), x = x_bound z_1
            lowest[j] = hold[i, j] - u_bound * demand[i, 0, j]
            demand_z[0, j], demand_z[1, j] = 2.0 * u_bound * demand[i, 0, j], x_bound * demand[i, 1, j]
        fill_rows(work, unit, joints, limit, lowest, demand_z, forces[i])
        cost[:] = 0.0
        if static_program.start_with_few_rays(work, rays, slack) != simplex.OPTIMAL:
            counts[i] = EMPTY
            return i
        count = project(work, rays, cost, False, TOLERANCE, corners[:MAX_CORNERS])
        if count == FAILED or not simplex.is_accurate(work.program):
            if static_program.start_with_few_rays(work, rays, slack) == simplex.OPTIMAL:
                count = project(work, rays, cost, True, TOLERANCE, corners[:MAX_CORNERS])
            else:
                count = FAILED
        if count == FAILED:
            counts[i] = FAILED
            return i
        for n in range(count):
            corners[n, 0], corners[n, 1] = u_bound * (2.0 * corners[n, 0] - 1.0), x_bound * corners[n, 1]
        count = clip_to_halfplanes(corners, count, bounds[i], scratch)
        counts[i] = halfplanes(corners, count, rows[i])
        if not allows_motion(rows[i], counts[i]):
            counts[i] = AT_REST
            return i
    return len(hold)


@jit_allocating
def feasible_shares(work, rays, slack, unit, joints, limit, hold, demand, forces, share):
    """Lower ``share`` (m,), at most 1, to the feasible fraction of ``demand`` at each point of a path.

    Parameters
    ----------
    work, rays, slack : as in ``polygons_along_path``, but with one variable up to 1
    unit, joints, limit, hold, forces : as in ``polygons_along_path``; ``demand`` (m, 1, nv)

    Returns
    -------
    point : the first one that is infeasible even without ``demand``, or whose program was not solved, with ``share``
        `EMPTY` or `FAILED`; m if there is none.
    """
    program, first = work.program, work.first[0]
    cost, x = np.zeros(program.A.shape[1]), np.zeros(program.A.shape[1])
    cost[first] = -1.0
    for i in range(len(hold)):
        fill_rows(work, unit, joints, limit, hold[i], demand[i], forces[i])
        status = static_program.start_with_few_rays(work, rays, slack)
        if status == simplex.OPTIMAL:
            status = static_program.minimise_checked(work, rays, cost)
        if status != simplex.OPTIMAL:
            share[i] = EMPTY if status == simplex.INFEASIBLE else FAILED
            return i
        simplex.solution(program, x)
        share[i] = min(share[i], x[first])
    return len(hold)
