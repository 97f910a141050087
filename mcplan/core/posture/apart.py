"""Collision-free postures: distances of pairs as rows of the posture search, linearised again in each round.

    n_p' (J_a - J_b) (q - q_0) >= min(need_p - d_p(q_0), stretch)        for all watched pairs p that are near at q_0

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

OFF, SHORT, LEFT, MEASURES = range(4)
"""Entries of ``measures``: largest violation of the rows of the task (OFF); largest deficit ``content - distance`` of a
pair, at least 0 (SHORT); smallest surplus ``distance - need`` of a pair, at most 0 (LEFT)."""

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
def find_near(tree, around, q, watched):
    """Find the watched pairs that are near at q (nq,), with the gradients of their distances; return their number.

    Parameters
    ----------
    watched : (P,) bool.
    """
    count = fill_distance_rows(
        tree, around.shapes, around.pairs, around.margins, q, around.scratch, around.found, around.values, around.rows
    )
    kept = 0
    for k in range(count):
        p = around.found[k]
        if watched[p]:
            around.found[kept] = p
            around.values[kept, DISTANCE] = around.values[k, DISTANCE]
            for j in range(around.rows.shape[1]):
                around.rows[kept, j] = around.rows[k, j]
            kept += 1
    return kept


@jit
def keep_apart(tree, around, near, task, rule, q, need, content, watched, stretch, s, report, measures):
    """Search once from q (nq,) with the ``near`` pairs as rows; return the number of near pairs at the result.

    Parameters
    ----------
    near : number of pairs that `find_near` found at q.
    task : without linear rows.
    rule, s, report : see `search_posture`; q is moved.
    need, content : (P,) m, target distance of each pair, and the distance at which the search may stop.
    stretch : m, largest increase of a distance in one round.
    measures : (MEASURES,) out.
    """
    nv = around.rows.shape[1]
    for k in range(near):
        for j in range(nv):
            around.linear[k, j] = around.rows[k, j]
        around.linear[k, nv] = min(need[around.found[k]] - around.values[k, DISTANCE], stretch)
    for j in range(len(q)):
        around.linear_q[j] = q[j]
    apart = PostureTargets(
        task.contact, task.frame, task.select, task.cell, task.centre, task.region, around.linear[:near],
        around.linear_q, task.guide, task.weight, task.limit, task.hint,
    )  # fmt: skip
    search_posture(tree, apart, rule, q, s, report)
    placed = 0.0
    for i in range(row_count(apart)[0] - near):
        placed = max(placed, s.low[i] - s.value[i], s.value[i] - s.high[i])
    for j in range(len(q)):
        if not math.isfinite(q[j]):
            return NOT_FINITE
    near = find_near(tree, around, q, watched)
    short, left = 0.0, 0.0
    for k in range(near):
        p, distance = around.found[k], around.values[k, DISTANCE]
        short, left = max(short, content[p] - distance), min(left, distance - need[p])
    measures[OFF], measures[SHORT], measures[LEFT] = placed, short, left
    return near


@jit
def fits(tree, around, task, q, need, watched, tolerance, s):
    """Return whether q (nq,) is within joint limits, and satisfies the rows of the task and the distances ``need``."""
    for j in range(len(q) - 7):
        if not task.limit[0, j] <= q[7 + j] <= task.limit[1, j]:
            return False
    fill_bounds(task, s.low, s.high)
    evaluate(tree, task, q, False, s.work, s.frame, s.value, s.J, s.c, s.J_c, s.away)
    for i in range(row_count(task)[0]):
        if not max(s.low[i] - s.value[i], s.value[i] - s.high[i]) <= tolerance:
            return False
    count = fill_distances(
        tree, around.shapes, around.pairs, around.margins, q, around.scratch, around.found, around.values
    )
    for k in range(count):
        p = around.found[k]
        if watched[p] and not around.values[k, DISTANCE] - need[p] > -tolerance:
            return False
    return True


@jit
def shortfall(tree, around, q, content, least, overlap, watched, step, curved, found):
    """Write the largest deficit ``content - distance`` at q (nq,) and within a step; return the worst pair, or -1.

    Parameters
    ----------
    content, least : (P,) m; the deficit of a pair nearer than ``least`` grows by ``overlap``.
    step : (nv,) motion until the next test; distances may change by ``curved`` times their linear change.
    found : (2,) out, the largest deficit at q, and within the step.
    """
    worst = -1
    found[0], found[1] = -math.inf, -math.inf
    for k in range(find_near(tree, around, q, watched)):
        p, distance = around.found[k], around.values[k, DISTANCE]
        change = 0.0
        for j in range(len(step)):
            change += around.rows[k, j] * step[j]
        short, under = content[p] - distance, least[p] - distance
        found[1] = max(found[1], short + curved * abs(change))
        if under > 0.0:
            short = max(short, overlap + under)
        if short > found[0] or worst < 0:
            found[0], worst = short, p
    return worst
