"""Linear programs over contact forces, with inscribed polytopes or, by column generation, with the exact cones.

    minimise  c' z   subject to   rows f + columns z = rhs,   0 <= z <= upper,   f = sum x_i ray_i,   caps,   x >= 0

The variables are the slacks of the caps, ``z``, and the multiples ``x`` of rays. With the dual variables ``y`` of the
rows, the value of a triple of unknowns is ``rows' y`` per unit. The best ray of its exact cone or ball enters the
program if its value exceeds the cost of its cap. If no such ray is left, the optimum is exact; in phase 1 it means that
no forces within the exact cones exist.

In series of programs (`minimise_few`) the rays of the polytopes, some hundred with grips, enter in the same manner: a
tableau with only the rays in use is a fraction as large.

Source: Dantzig & Wolfe (1960), applied to the cones of one contact point each.
"""

import math
from typing import NamedTuple

import numpy as np

from mcplan.core.jit import jit, jit_allocating
from mcplan.core.optimize import simplex
from mcplan.core.optimize.simplex import Program
from mcplan.core.statics.rays import Triples, best_ray

GAIN_TOLERANCE = 1e-8
ROUNDS = 80


class StaticWork(NamedTuple):
    """A program over forces.

    Parameters
    ----------
    program : rows ``[rows; caps]``.
    triples : bounds of the unknown forces.
    rows : (m, 3 k): coefficients of the unknowns in the program's first m rows.
    owner, ray : (capacity,), (capacity, 3): triple and ray of each variable that is the multiple of a ray.
    first : (2,): index of the first variable ``z``, and of the first ray.
    y : (rows + caps,): scratch.
    """

    program: Program
    triples: Triples
    rows: np.ndarray
    owner: np.ndarray
    ray: np.ndarray
    first: np.ndarray
    y: np.ndarray


class Rays(NamedTuple):
    """The rays from which a program takes those that it needs: their triples (n,), in order, and the rays (n, 3)."""

    owner: np.ndarray
    ray: np.ndarray


@jit
def write_rays(work, first, last):
    """Write the columns of the rays from ``first`` to ``last - 1`` into ``A``."""
    A, rows, triples, owner, ray = work.program.A, work.rows, work.triples, work.owner, work.ray
    m = len(rows)
    for i in range(m):
        for j in range(first, last):
            k = 3 * owner[j]
            A[i, j] = rows[i, k] * ray[j, 0] + rows[i, k + 1] * ray[j, 1] + rows[i, k + 2] * ray[j, 2]
    for i in range(m, len(A)):
        for j in range(first, last):
            A[i, j] = triples.share[owner[j]] if triples.cap[owner[j]] == i - m else 0.0


@jit
def start(work, slack):
    """Write the columns of the first rays and find a feasible point with them."""
    write_rays(work, work.first[1], work.program.count[0])
    return simplex.start(work.program, slack)


@jit
def worth_of(work, k, worth):
    """Write the value ``worth`` (3,) per unknown of triple ``k``, by the dual variables; return that of its cap."""
    rows, triples, y = work.rows, work.triples, work.y
    worth[0], worth[1], worth[2] = 0.0, 0.0, 0.0
    for i in range(len(rows)):
        for r in range(3):
            worth[r] += rows[i, 3 * k + r] * y[i]
    return triples.share[k] * y[len(rows) + triples.cap[k]] if triples.cap[k] >= 0 else 0.0


@jit_allocating
def add_rays(work, artificial):
    """Append the rays that lower the cost; return their number. ``artificial``: 1 in phase 1, else 0."""
    program, triples = work.program, work.triples
    if program.count[0] + len(triples.kind) > program.A.shape[1]:
        drop_rays(work)
    simplex.duals(program, work.y, artificial)
    worth, found = np.empty(3), 0
    for k in range(len(triples.kind)):
        cap = worth_of(work, k, worth)
        j = program.count[0] + found
        best_ray(triples, k, worth, work.ray[j])
        gain = worth[0] * work.ray[j, 0] + worth[1] * work.ray[j, 1] + worth[2] * work.ray[j, 2] + cap
        if gain > GAIN_TOLERANCE:
            work.owner[j] = k
            write_rays(work, j, j + 1)
            found += 1
    simplex.append(program, found, artificial)
    return found


@jit_allocating
def drop_rays(work):
    """Remove all rays that are not in the basis, to free columns of the tableau."""
    A, T, basis, count = work.program.A, work.program.T, work.program.basis, work.program.count
    m = len(basis)
    kept = work.first[1]
    for j in range(work.first[1], count[0]):
        for i in range(m):
            if basis[i] == 1 + m + j:
                A[:, kept] = A[:, j]
                T[:, 1 + m + kept] = T[:, 1 + m + j]
                work.owner[kept] = work.owner[j]
                work.ray[kept] = work.ray[j]
                basis[i] = 1 + m + kept
                kept += 1
                break
    count[0] = kept


@jit
def find_exact(work):
    """Continue an infeasible phase 1 with the rays of the exact cones; return the status."""
    for _ in range(ROUNDS):
        if add_rays(work, 1.0) == 0:
            break
        status = simplex.seek(work.program)
        if status != simplex.INFEASIBLE:
            return status
    return simplex.INFEASIBLE


@jit
def minimise(work, cost, exact):
    """Minimise ``cost' x`` (capacity,), which is zero at the rays; return the status."""
    status = simplex.minimise(work.program, cost)
    if exact:
        for _ in range(ROUNDS):
            if status != simplex.OPTIMAL or add_rays(work, 0.0) == 0:
                break
            status = simplex.minimise(work.program, cost)
    return status


@jit
def least_reach(work, cost, first, last, most, x):
    """Return the smallest maximum of the variables from ``first`` to ``last - 1``, each maximised alone.

    The other ones are zero. The result is at most ``most``; NaN if a program is not solved.

    Parameters
    ----------
    cost : (capacity,) zero before and after.
    x : (capacity,) scratch.
    """
    program = work.program
    m = len(program.b)
    least = most
    for j in range(first, last):
        program.upper[1 + m + j] = least
        cost[j] = -1.0
        status = minimise(work, cost, True)
        simplex.solution(program, x)
        least = min(least, x[j])
        cost[j] = 1.0
        back = minimise(work, cost, True)
        cost[j] = 0.0
        if status != simplex.OPTIMAL or back != simplex.OPTIMAL:
            return math.nan
        simplex.hold_at_zero(program, j, j + 1)
    return least


@jit_allocating
def enter(work, rays, artificial):
    """Append the most valuable ray; return whether there is one. ``artificial``: 1 in phase 1, else 0."""
    program, ray = work.program, rays.ray
    simplex.duals(program, work.y, artificial)
    worth, cap, of, best, most = np.empty(3), 0.0, -1, -1, GAIN_TOLERANCE
    for n in range(len(rays.owner)):
        if rays.owner[n] != of:
            of = rays.owner[n]
            cap = worth_of(work, of, worth)
        gain = worth[0] * ray[n, 0] + worth[1] * ray[n, 1] + worth[2] * ray[n, 2] + cap
        if gain > most:
            best, most = n, gain
    if best < 0:
        return False
    if program.count[0] == program.A.shape[1]:
        drop_rays(work)
    j = program.count[0]
    work.owner[j] = rays.owner[best]
    for r in range(3):
        work.ray[j, r] = rays.ray[best, r]
    write_rays(work, j, j + 1)
    simplex.append(program, 1, artificial)
    return True


@jit_allocating
def start_few(work, rays, slack):
    """Find a feasible point, starting with the rays in the basis of the previous program; return the status."""
    drop_rays(work)
    status = start(work, slack)
    for _ in range(len(rays.owner)):
        if status != simplex.INFEASIBLE or not enter(work, rays, 1.0):
            break
        status = simplex.seek(work.program)
    return status


@jit_allocating
def minimise_few(work, rays, cost):
    """Minimise ``cost' x`` (capacity,), which is zero at the rays, over all of them; return the status.

    It does not check the tableau for rounding (`simplex.is_sound`), unlike `minimise_surely`.
    """
    simplex.price_row(work.program, cost)
    status = simplex.iterate(work.program)
    for _ in range(len(rays.owner)):
        if status != simplex.OPTIMAL or not enter(work, rays, 0.0):
            break
        status = simplex.iterate(work.program)
    return status


@jit_allocating
def minimise_surely(work, rays, cost):
    """Minimise like `minimise_few`, and compute the tableau again if rounding has spoilt it."""
    for _ in range(ROUNDS):
        status = minimise_few(work, rays, cost)
        if status != simplex.STALLED and simplex.is_sound(work.program):
            return status
        status = simplex.minimise(work.program, cost)
        if status != simplex.OPTIMAL:
            return status
    return simplex.STALLED
