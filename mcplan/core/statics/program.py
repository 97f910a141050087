"""Linear programs over contact forces, with inscribed polytopes or, by column generation, with the exact cones.

    minimise  c' z   subject to   rows f + columns z = rhs,   0 <= z <= upper,   f = sum x_i ray_i,   caps,   x >= 0

The variables are the slacks of the caps, ``z``, and the multiples ``x`` of rays. With the dual variables ``y`` of the
rows, the value of a triple of unknowns is ``rows' y`` per unit. The best ray of its exact cone or ball enters the
program if its value exceeds the cost of its cap. If there is no such ray, the optimum is exact; in phase 1 this means
that no forces within the exact cones exist.

In series of programs (`minimise_with_few_rays`) the rays of the polytopes, some hundred with grips, enter in the
same manner: a tableau with only the rays in use is a fraction as large.

Source: Dantzig & Wolfe (1960), applied to the cones of one contact point each.
"""

import math
from typing import NamedTuple

import numpy as np

from mcplan.core.jit import jit, jit_allocating
from mcplan.core.optimize import simplex
from mcplan.core.optimize.simplex import Program
from mcplan.core.statics.rays import Triples, most_valuable_ray

MIN_GAIN = 1e-8
"""A ray enters the program if it lowers the cost by more than this per unit."""

MAX_ROUNDS = 80
"""Largest number of times that rays enter."""


class StaticWork(NamedTuple):
    """A linear program over contact forces, and the tables of its rays.

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
    """All rays of the polytopes, from which a program takes those that it needs: triples (n,) in order, rays (n, 3)."""

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
def triple_value(work, k, value):
    """Write the value ``value`` (3,) per unknown of triple ``k``, by the dual variables; return that of its cap."""
    rows, triples, y = work.rows, work.triples, work.y
    value[0], value[1], value[2] = 0.0, 0.0, 0.0
    for i in range(len(rows)):
        for r in range(3):
            value[r] += rows[i, 3 * k + r] * y[i]
    return triples.share[k] * y[len(rows) + triples.cap[k]] if triples.cap[k] >= 0 else 0.0


@jit_allocating
def add_rays(work, artificial):
    """Append the rays that lower the cost; return their number. ``artificial``: 1 in phase 1, else 0."""
    program, triples = work.program, work.triples
    if program.count[0] + len(triples.kind) > program.A.shape[1]:
        drop_rays(work)
    simplex.duals(program, work.y, artificial)
    value, count = np.empty(3), 0
    for k in range(len(triples.kind)):
        cap = triple_value(work, k, value)
        j = program.count[0] + count
        most_valuable_ray(triples, k, value, work.ray[j])
        gain = value[0] * work.ray[j, 0] + value[1] * work.ray[j, 1] + value[2] * work.ray[j, 2] + cap
        if gain > MIN_GAIN:
            work.owner[j] = k
            write_rays(work, j, j + 1)
            count += 1
    simplex.append(program, count, artificial)
    return count


@jit
def drop_rays(work):
    """Remove all rays that are not in the basis, to free columns of the tableau."""
    A, T, basis, count = work.program.A, work.program.T, work.program.basis, work.program.count
    m = len(basis)
    end = work.first[1]
    for j in range(work.first[1], count[0]):
        for i in range(m):
            if basis[i] == 1 + m + j:
                for r in range(len(A)):
                    A[r, end] = A[r, j]
                for r in range(len(T)):
                    T[r, 1 + m + end] = T[r, 1 + m + j]
                for r in range(3):
                    work.ray[end, r] = work.ray[j, r]
                work.owner[end] = work.owner[j]
                basis[i] = 1 + m + end
                end += 1
                break
    count[0] = end


@jit
def find_feasible_exact(work):
    """Continue an infeasible phase 1 with rays of the exact cones; return the status."""
    for _ in range(MAX_ROUNDS):
        if add_rays(work, 1.0) == 0:
            break
        status = simplex.continue_phase_1(work.program)
        if status != simplex.INFEASIBLE:
            return status
    return simplex.INFEASIBLE


@jit
def minimise(work, cost, exact):
    """Minimise ``cost' x``, cost (capacity,) zero at the rays; return the status. ``exact``: over the exact cones."""
    status = simplex.minimise(work.program, cost)
    if exact:
        for _ in range(MAX_ROUNDS):
            if status != simplex.OPTIMAL or add_rays(work, 0.0) == 0:
                break
            status = simplex.minimise(work.program, cost)
    return status


@jit
def smallest_maximum(work, cost, first, last, upper, x):
    """Return the smallest maximum of the variables from ``first`` to ``last - 1``, each maximised alone.

    The other ones are zero. The result is at most ``upper``; NaN if a program is not solved.

    Parameters
    ----------
    cost : (capacity,) zero before and after.
    x : (capacity,) scratch.
    """
    program = work.program
    m = len(program.b)
    smallest = upper
    for j in range(first, last):
        program.upper[1 + m + j] = smallest
        cost[j] = -1.0
        status = minimise(work, cost, True)
        simplex.solution(program, x)
        smallest = min(smallest, x[j])
        cost[j] = 1.0
        return_status = minimise(work, cost, True)
        cost[j] = 0.0
        if status != simplex.OPTIMAL or return_status != simplex.OPTIMAL:
            return math.nan
        simplex.fix_at_zero(program, j, j + 1)
    return smallest


@jit_allocating
def add_best_ray(work, rays, artificial):
    """Append the most valuable ray; return whether there is one. ``artificial``: 1 in phase 1, else 0."""
    program, ray = work.program, rays.ray
    simplex.duals(program, work.y, artificial)
    value, cap, triple, best, max_gain = np.empty(3), 0.0, -1, -1, MIN_GAIN
    for n in range(len(rays.owner)):
        if rays.owner[n] != triple:
            triple = rays.owner[n]
            cap = triple_value(work, triple, value)
        gain = value[0] * ray[n, 0] + value[1] * ray[n, 1] + value[2] * ray[n, 2] + cap
        if gain > max_gain:
            best, max_gain = n, gain
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
def start_with_few_rays(work, rays, slack):
    """Find a feasible point, starting with the rays in the basis of the previous program; return the status."""
    drop_rays(work)
    status = start(work, slack)
    for _ in range(len(rays.owner)):
        if status != simplex.INFEASIBLE or not add_best_ray(work, rays, 1.0):
            break
        status = simplex.continue_phase_1(work.program)
    return status


@jit_allocating
def minimise_with_few_rays(work, rays, cost):
    """Minimise ``cost' x`` (capacity,), which is zero at the rays, over all of them; return the status.

    It does not check the tableau for rounding (`simplex.is_accurate`), unlike `minimise_checked`.
    """
    simplex.price_row(work.program, cost)
    status = simplex.iterate(work.program)
    for _ in range(len(rays.owner)):
        if status != simplex.OPTIMAL or not add_best_ray(work, rays, 0.0):
            break
        status = simplex.iterate(work.program)
    return status


@jit_allocating
def minimise_checked(work, rays, cost):
    """Minimise like `minimise_with_few_rays`, and compute the tableau again if rounding has spoilt it."""
    for _ in range(MAX_ROUNDS):
        status = minimise_with_few_rays(work, rays, cost)
        if status != simplex.STALLED and simplex.is_accurate(work.program):
            return status
        status = simplex.minimise(work.program, cost)
        if status != simplex.OPTIMAL:
            return status
    return simplex.STALLED
