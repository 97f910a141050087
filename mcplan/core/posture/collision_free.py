"""Collision-free postures: distances of pairs as rows of the posture search, linearised again in each round.

    n_p' (J_a - J_b) (q - q_0) >= min(target_p - d_p(q_0), max_increase)

for all watched pairs p of bodies a and b that are near at q_0, with distance d_p and unit normal n_p from b to a.

A call is one round, so that a search within a control tick can be stopped between rounds.
"""

import math
from typing import NamedTuple

import numpy as np

from mcplan.core.distance.many import DistanceScratch, fill_distance_rows, fill_distances
from mcplan.core.distance.pair import DISTANCE
from mcplan.core.distance.shape import Shapes
from mcplan.core.jit import jit
from mcplan.core.posture.rows import PostureTargets, evaluate, fill_bounds, row_count
from mcplan.core.posture.search import search_posture

TASK_VIOLATION, MAX_DEFICIT, MIN_SURPLUS, MEASURE_COUNT = range(4)
"""Entries of ``measures``. The largest violation of the rows of the task (m, rad); the largest deficit ``sufficient -
distance`` of a pair, at least 0 (m); the smallest surplus ``distance - target`` of a pair, at most 0 (m)."""

NOT_FINITE = -1
"""Returned in place of a number of pairs if q is not finite."""


class PostureSurroundings(NamedTuple):
    """Shapes, pairs of shapes to test, and the pairs found near in the last test."""

    shapes: Shapes
    pairs: np.ndarray  # (P, 2) int64
    margins: np.ndarray  # (P,) m: pairs nearer than this are near
    scratch: DistanceScratch
    found: np.ndarray  # (P,) int64
    values: np.ndarray  # (P, PAIR_SIZE)
    rows: np.ndarray  # (P, nv)
    linear: np.ndarray  # (P, nv + 1)
    linear_q: np.ndarray  # (nq,)


@jit
def find_near(tree, surroundings, q, watched):
    """Find the watched pairs that are near at q (nq,), with the gradients of their distances; return their number.

    Parameters
    ----------
    watched : (P,) bool.
    """
    found_count = fill_distance_rows(
        tree, surroundings.shapes, surroundings.pairs, surroundings.margins, q, surroundings.scratch,
        surroundings.found, surroundings.values, surroundings.rows,
    )  # fmt: skip
    count = 0
    for k in range(found_count):
        p = surroundings.found[k]
        if watched[p]:
            surroundings.found[count] = p
            surroundings.values[count, DISTANCE] = surroundings.values[k, DISTANCE]
            for j in range(surroundings.rows.shape[1]):
                surroundings.rows[count, j] = surroundings.rows[k, j]
            count += 1
    return count


@jit
def search_with_distance_rows(
    tree, surroundings, near, task, rule, q, target, sufficient, watched, max_increase, s, report, measures
):
    """Search once from q (nq,) with the near pairs as rows; return the number of near pairs at the result.

    Parameters
    ----------
    near : number of pairs that `find_near` found at q.
    task : PostureTargets without linear rows.
    rule, s, report : see `search_posture`; q is moved.
    target : (P,) m, distance of each pair that the rows demand.
    sufficient : (P,) m, distance of each pair at which the caller may stop.
    watched : (P,) bool.
    max_increase : m, largest increase of a distance in one round.
    measures : (MEASURE_COUNT,) out.
    """
    nv = surroundings.rows.shape[1]
    for k in range(near):
        for j in range(nv):
            surroundings.linear[k, j] = surroundings.rows[k, j]
        surroundings.linear[k, nv] = min(target[surroundings.found[k]] - surroundings.values[k, DISTANCE], max_increase)
    for j in range(len(q)):
        surroundings.linear_q[j] = q[j]
    targets = PostureTargets(
        task.contact, task.frame, task.select, task.cell, task.centre, task.region, surroundings.linear[:near],
        surroundings.linear_q, task.guide, task.weight, task.limit, task.com_preference,
    )  # fmt: skip
    search_posture(tree, targets, rule, q, s, report)
    task_violation = 0.0
    for i in range(row_count(targets)[0] - near):
        task_violation = max(task_violation, s.low[i] - s.value[i], s.value[i] - s.high[i])
    for j in range(len(q)):
        if not math.isfinite(q[j]):
            return NOT_FINITE
    near = find_near(tree, surroundings, q, watched)
    max_deficit, min_surplus = 0.0, 0.0
    for k in range(near):
        p, distance = surroundings.found[k], surroundings.values[k, DISTANCE]
        max_deficit, min_surplus = max(max_deficit, sufficient[p] - distance), min(min_surplus, distance - target[p])
    measures[TASK_VIOLATION], measures[MAX_DEFICIT], measures[MIN_SURPLUS] = task_violation, max_deficit, min_surplus
    return near


@jit
def is_feasible(tree, surroundings, task, q, target, watched, tolerance, s):
    """Return whether q (nq,) is within joint limits, and satisfies the rows of the task and the target distances."""
    for j in range(len(q) - 7):
        if not task.limit[0, j] <= q[7 + j] <= task.limit[1, j]:
            return False
    fill_bounds(task, s.low, s.high)
    evaluate(tree, task, q, False, False, s.work, s.frame, s.value, s.J, s.c, s.J_c, s.away)
    for i in range(row_count(task)[0]):
        if not max(s.low[i] - s.value[i], s.value[i] - s.high[i]) <= tolerance:
            return False
    count = fill_distances(
        tree, surroundings.shapes, surroundings.pairs, surroundings.margins, q, surroundings.scratch,
        surroundings.found, surroundings.values,
    )  # fmt: skip
    for k in range(count):
        p = surroundings.found[k]
        if watched[p] and not surroundings.values[k, DISTANCE] - target[p] > -tolerance:
            return False
    return True


@jit
def largest_deficit(tree, surroundings, q, sufficient, minimum, penalty, watched, step, nonlinearity, deficits):
    """Write the largest deficit at q (nq,), and a bound on it during the next motion; return the worst pair, or -1.

    The deficit of a pair is ``sufficient - distance``. A pair nearer than ``minimum`` gets ``penalty`` added.

    Parameters
    ----------
    sufficient, minimum : (P,) m.
    step : (nv,) motion until the next test; its distances may change by ``nonlinearity`` times their linear change.
    deficits : (2,) out, m: largest deficit at q, and bound during the motion.
    """
    worst = -1
    deficits[0], deficits[1] = -math.inf, -math.inf
    for k in range(find_near(tree, surroundings, q, watched)):
        p, distance = surroundings.found[k], surroundings.values[k, DISTANCE]
        linear_change = 0.0
        for j in range(len(step)):
            linear_change += surroundings.rows[k, j] * step[j]
        deficit, below_minimum = sufficient[p] - distance, minimum[p] - distance
        deficits[1] = max(deficits[1], deficit + nonlinearity * abs(linear_change))
        if below_minimum > 0.0:
            deficit = max(deficit, penalty + below_minimum)
        if deficit > deficits[0] or worst < 0:
            deficits[0], worst = deficit, p
    return worst
