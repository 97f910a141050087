"""Knots of a motion near guides: postures with contacts, balance and clearances, for all knots of a motion per call.

The posture at knot k is searched for in rounds, each with new distances (`collision_free`). A posture that satisfies
the constraints at the start is kept.
"""

import math
from typing import NamedTuple

import numpy as np

from mcplan.core.distance.shape import Shapes
from mcplan.core.jit import jit
from mcplan.core.posture.collision_free import (
    MAX_DEFICIT,
    MIN_SURPLUS,
    NOT_FINITE,
    TASK_VIOLATION,
    PostureSurroundings,
    find_near,
    is_feasible,
    largest_deficit,
    search_with_distance_rows,
)
from mcplan.core.posture.rows import COUNT, PostureTargets
from mcplan.core.posture.search import row_violations, search_posture
from mcplan.core.rigid_body.frame import frame_arm, write_path_poses
from mcplan.core.rigid_body.manifold import difference, integrate

FAILED = -1.0
"""In place of a deficit: a search ended in a posture that is not finite."""

MAX_ROUNDS, MAX_IDLE_ROUNDS, MIN_GAIN, MAX_INCREASE, ROW_ERROR, FIT, AT_BOUND, ROUNDS_SIZE = range(8)
"""Entries of ``rounds``: largest number of rounds, and of successive idle ones; decrease of the deficit (m, rad) below
which a round is idle; largest increase of a distance per round (m); allowed violation of the rows of the task (m, rad);
errors (m, rad) below which a posture fits; distance (rad, m) from a bound at which a joint counts as at it."""

SELECT, CELL, REGION = range(3)
"""Columns of ``KnotTasks.first``."""

SUFFICIENT_ERROR, ERROR_WEIGHT, JOINT_WEIGHT, PENALTY, NONLINEARITY, CHECK_SIZE = range(6)
"""Entries of ``check``: contact error (m, rad) that counts as zero; weight of the error beyond it; weight of an
exceeded joint limit; penalty (m) of bodies in collision; factor on the linear change of a distance."""

AMOUNT, AROUND, PATH_ERROR, RESULT_SIZE = range(4)
"""Columns of the results of a check: violation (m); bound on the clearance deficit until the next checks (m); distance
of guided patches from their paths (m)."""

NO_PAIR, UNCHECKED = -1, -2
"""In place of a pair: the violation is one of contacts or joints, or there is none; the sample was not checked."""


class KnotTasks(NamedTuple):
    """Constraints of K knots. The rows of all knots are in one array each; knot k has those from ``first[k]`` on."""

    contact: np.ndarray  # (K, c, 4) int64, see `PostureTargets`
    frame: np.ndarray  # (K, c, 24)
    first: np.ndarray  # (K + 1, 3) int64, columns SELECT .. REGION
    select: np.ndarray  # (S, 6)
    cell: np.ndarray  # (C, 10)
    region: np.ndarray  # (R, 4)
    centre: np.ndarray  # (0, 4)
    weight: np.ndarray  # (nv,)
    limit: np.ndarray  # (K, 2, n) bounds of the joints; widened where a search needs that
    widest: np.ndarray  # (2, n) the widest bounds
    com_preference: np.ndarray  # (K, 4)
    desired: np.ndarray  # (K, P) clearances, m
    sufficient: np.ndarray  # (K, P)
    minimum: np.ndarray  # (K, P)
    watched: np.ndarray  # (P,) bool
    offset: np.ndarray  # (K, S, 12) poses of the shapes; (1, S, 12) if no object moves


@jit
def task_at(tasks, surroundings, k, guide):
    """Return the task of knot k near ``guide`` (nq,)."""
    first, end = tasks.first[k], tasks.first[k + 1]
    return PostureTargets(
        tasks.contact[k], tasks.frame[k], tasks.select[first[SELECT] : end[SELECT]],
        tasks.cell[first[CELL] : end[CELL]], tasks.centre, tasks.region[first[REGION] : end[REGION]],
        surroundings.linear[:0], surroundings.linear_q, guide, tasks.weight, tasks.limit[k], tasks.com_preference[k],
    )  # fmt: skip


@jit
def surroundings_at(surroundings, offset):
    """Return the surroundings with the shapes at other poses (S, 12)."""
    s, shapes = surroundings, surroundings.shapes
    moved = Shapes(shapes.index, shapes.size, offset, shapes.vertices, shapes.graph)
    return PostureSurroundings(
        moved, s.pairs, s.margins, s.scratch, s.found, s.values, s.rows, s.linear, s.linear_q
    )  # fmt: skip


@jit
def search_in_rounds(
    tree, surroundings, task, rule, rounds, start, desired, sufficient, watched, s, report, measures, q, best
):
    """Search in rounds from ``start`` (nq,); write the posture of the smallest deficit to ``best``.

    Parameters
    ----------
    rule, s, report : see `search_posture`.
    rounds : (ROUNDS_SIZE,), see ``MAX_ROUNDS`` ..
    desired, sufficient, watched : (P,) see `search_with_distance_rows`.
    q : (nq,) scratch.

    Returns
    -------
    Smallest deficit (m, rad), at least 0; `FAILED` if a posture is not finite.
    """
    for j in range(len(q)):
        q[j], best[j] = start[j], start[j]
    smallest_deficit, best_slack, idle_rounds = math.inf, -math.inf, 0
    count = find_near(tree, surroundings, q, watched)
    for _ in range(int(rounds[MAX_ROUNDS])):
        count = search_with_distance_rows(
            tree, surroundings, count, task, rule, q, desired, sufficient, watched, rounds[MAX_INCREASE], s, report,
            measures,
        )  # fmt: skip
        if count == NOT_FINITE:
            return FAILED
        violation, slack = measures[TASK_VIOLATION], measures[MIN_SURPLUS]
        deficit = max(violation - rounds[ROW_ERROR], measures[MAX_DEFICIT])
        gains = deficit < smallest_deficit - rounds[MIN_GAIN] or slack > best_slack + rounds[MIN_GAIN]
        idle_rounds = 0 if gains else idle_rounds + 1
        if deficit < smallest_deficit:
            smallest_deficit = deficit
            for j in range(len(q)):
                best[j] = q[j]
        best_slack = max(best_slack, slack)
        converged = violation <= rounds[ROW_ERROR] / 10 and slack > -rounds[FIT]
        if converged or idle_rounds == int(rounds[MAX_IDLE_ROUNDS]):
            break
    return smallest_deficit


@jit
def are_active(limit, widest, q, at_bound):
    """Return whether a joint of q (nq,) is at or beyond bounds (2, n) that could be widened."""
    for j in range(limit.shape[1]):
        if limit[0, j] > widest[0, j] and q[7 + j] < limit[0, j] + at_bound:
            return True
        if limit[1, j] < widest[1, j] and q[7 + j] > limit[1, j] - at_bound:
            return True
    return False


@jit
def solve_knot(tree, surroundings, tasks, rule, rounds, k, start, guide, s, report, measures, scratch, posture):
    """Write the posture of knot k near ``guide``, found from ``start``; return its deficit, or `FAILED`.

    The bounds of its joints are widened for good if a joint at them prevents a posture.

    Parameters
    ----------
    scratch : (2, nq) scratch.
    posture : (nq,) out.
    """
    around = surroundings_at(surroundings, tasks.offset[min(k, len(tasks.offset) - 1)])
    desired, sufficient, q = tasks.desired[k], tasks.sufficient[k], scratch[0]
    deficit = search_in_rounds(
        tree, around, task_at(tasks, around, k, guide), rule, rounds, start, desired, sufficient, tasks.watched, s,
        report, measures, q, posture,
    )  # fmt: skip
    if deficit > rounds[FIT] and are_active(tasks.limit[k], tasks.widest, posture, rounds[AT_BOUND]):
        for i in range(2):
            for j in range(tasks.widest.shape[1]):
                tasks.limit[k, i, j] = tasks.widest[i, j]
        wide = scratch[1]
        wide_deficit = search_in_rounds(
            tree, around, task_at(tasks, around, k, guide), rule, rounds, posture, desired, sufficient, tasks.watched,
            s, report, measures, q, wide,
        )  # fmt: skip
        if wide_deficit < deficit:
            deficit = wide_deficit
            for j in range(len(posture)):
                posture[j] = wide[j]
    return deficit


@jit
def fits(tree, surroundings, tasks, rounds, k, q, s):
    """Return whether q (nq,) satisfies the task and the desired clearances of knot k."""
    around = surroundings_at(surroundings, tasks.offset[min(k, len(tasks.offset) - 1)])
    task = task_at(tasks, around, k, q)
    return is_feasible(tree, around, task, q, tasks.desired[k], tasks.watched, rounds[FIT], s)


@jit
def find_knot(
    tree, surroundings, tasks, rule, rounds, guides, k, offset, s, report, measures, scratch, q, deficits, offsets
):
    """Use the posture at ``offset`` (nv,) from guide k if it fits, else search for one near the guide."""
    start = scratch[2]
    integrate(guides[k], offset, 1.0, start)
    deficits[k] = 0.0
    if fits(tree, surroundings, tasks, rounds, k, start, s):
        for j in range(len(start)):
            q[k, j] = start[j]
    else:
        deficits[k] = solve_knot(
            tree, surroundings, tasks, rule, rounds, k, start, guides[k], s, report, measures, scratch, q[k]
        )
    difference(guides[k], q[k], offsets[k])
    return deficits[k] != FAILED


@jit
def find_knots(
    tree, surroundings, tasks, rule, rounds, guides, stride, s, report, measures, scratch, q, deficits, offsets
):
    """Find the knots between the first and the last one; return whether all postures are finite.

    Every ``stride``-th knot starts from the offset of the previous one, those between from the offsets of both. Then
    knots with a deficit are searched for again from the offsets of their neighbours.

    Parameters
    ----------
    guides : (K, nq).
    scratch : (4, nq) scratch.
    q, deficits, offsets : (K, nq), (K,), (K, nv) out; the first and the last one are given.
    """
    last, previous, nv = len(guides) - 1, 0, offsets.shape[1]
    between = scratch[3][:nv]
    while previous < last:
        following = min(previous + stride, last)
        if following < last:
            for j in range(nv):
                between[j] = offsets[previous, j]
            if not find_knot(
                tree, surroundings, tasks, rule, rounds, guides, following, between, s, report, measures, scratch, q,
                deficits, offsets,
            ):  # fmt: skip
                return False
        for k in range(previous + 1, following):
            share = (k - previous) / (following - previous)
            for j in range(nv):
                between[j] = (1.0 - share) * offsets[previous, j] + share * offsets[following, j]
            if not find_knot(
                tree, surroundings, tasks, rule, rounds, guides, k, between, s, report, measures, scratch, q, deficits,
                offsets,
            ):  # fmt: skip
                return False
        previous = following
    start, posture = scratch[2], scratch[3]
    for neighbour in (1, -1):
        for i in range(1, last):
            k = last - i if neighbour == 1 else i
            if deficits[k] > 0.0:
                integrate(guides[k], offsets[k + neighbour], 1.0, start)
                deficit = solve_knot(
                    tree, surroundings, tasks, rule, rounds, k, start, guides[k], s, report, measures, scratch, posture
                )
                if deficit == FAILED:
                    return False
                if deficit < deficits[k]:
                    deficits[k] = deficit
                    for j in range(len(posture)):
                        q[k, j] = posture[j]
                    difference(guides[k], posture, offsets[k])
    return True


@jit
def replace_knots(
    tree, surroundings, tasks, rule, rounds, smooth, tolerance, s, report, measures, scratch, q, deficits
):
    """Replace knots by feasible postures near smoothed ones (K, nq); return the number of searches, or -1.

    Parameters
    ----------
    tolerance : m, rad: deficit that a knot may have afterwards, if its own was not greater.
    scratch : (4, nq) scratch.
    q, deficits : (K, nq), (K,) in and out.
    """
    count, posture = 0, scratch[3]
    for k in range(1, len(q) - 1):
        deficit = 0.0
        if fits(tree, surroundings, tasks, rounds, k, smooth[k], s):
            for j in range(len(posture)):
                posture[j] = smooth[k, j]
        else:
            deficit = solve_knot(
                tree, surroundings, tasks, rule, rounds, k, q[k], smooth[k], s, report, measures, scratch, posture
            )
            if deficit == FAILED:
                return -1
            count += 1
        if deficit <= max(deficits[k], tolerance):
            deficits[k] = deficit
            for j in range(len(posture)):
                q[k, j] = posture[j]
    return count


@jit
def correct_knots(tree, surroundings, tasks, rule, rounds, guides, with_clearance, s, report, measures, scratch, q):
    """Write knots near guides (K, nq) that satisfy their tasks; return whether all are finite.

    ``with_clearance``: with the clearances, too, and only the knots that do not fit; the others are at their guides.
    """
    for k in range(1, len(q) - 1):
        for j in range(q.shape[1]):
            q[k, j] = guides[k, j]
        if not with_clearance:
            search_posture(tree, task_at(tasks, surroundings, k, guides[k]), rule, q[k], s, report)
        elif not fits(tree, surroundings, tasks, rounds, k, guides[k], s):
            around = surroundings_at(surroundings, tasks.offset[min(k, len(tasks.offset) - 1)])
            deficit = search_in_rounds(
                tree, around, task_at(tasks, around, k, guides[k]), rule, rounds, guides[k], tasks.desired[k],
                tasks.sufficient[k], tasks.watched, s, report, measures, scratch[0], q[k],
            )  # fmt: skip
            if deficit == FAILED:
                return False
    return True


@jit
def contact_error(tree, task, q, closed, check, s, errors):
    """Return the weighted error of the first ``closed`` contacts of a task at q (nq,)."""
    rows = len(task.select) + len(task.cell) + len(task.region)
    row_violations(tree, task, q, s, errors[:rows])
    fixed = 0
    for i in range(closed):
        fixed += task.contact[i, COUNT]
    largest = 0.0
    for i in range(fixed):
        largest = max(largest, errors[i])
    for i in range(len(task.cell)):
        if task.cell[i, 0] < closed:
            largest = max(largest, errors[len(task.select) + i])
    return check[ERROR_WEIGHT] * max(0.0, largest - check[SUFFICIENT_ERROR])


@jit
def distance_from_path(tree, q, body, offset, x, y, z, work):
    """Return the distance (m) of the origin of a frame at q (nq,) from a point."""
    write_path_poses(tree, q, work, body)
    a, b, c = frame_arm(work, body, offset)
    a, b, c = q[0] + a - x, q[1] + b - y, q[2] + c - z
    return math.sqrt(a * a + b * b + c * c)


@jit
def check_curve(
    tree, surroundings, tasks, check, limits, samples, intervals, q, steps, offset, closed, contacts_move, positions,
    midpoints, upper, s, sufficient, minimum, deficits, errors, result, pairs,
):  # fmt: skip
    """Check samples of the curve through the knots, until the violation reaches ``upper``.

    Parameters
    ----------
    check : (CHECK_SIZE,), see ``SUFFICIENT_ERROR`` ..
    limits : (2, n) joint limits.
    samples : (m,) int64 index of each sample; sample ``intervals * k`` is knot k.
    q, steps : (m, nq), (m, nv) postures, and displacements until the next checks.
    offset : (m, S, 12) poses of the shapes, or (1, S, 12).
    closed : number of closed contacts, which precede the guided patches in each task.
    contacts_move : bool; then contacts are checked at the knots only, otherwise also halfway between them.
    positions, midpoints : (g, K, 3), (g, K - 1, 3) positions of guided patches at the knots, and halfway between them;
        (g, 0, 3): not checked there.
    sufficient, minimum, deficits, errors : (P,), (P,), (2,), (rows,) scratch.
    result, pairs : (m, RESULT_SIZE), (m,) int64 out.
    """
    for i in range(len(samples)):
        k, index = samples[i] // intervals, samples[i] % intervals
        following = k if index == 0 else k + 1
        for p in range(len(sufficient)):
            sufficient[p] = min(tasks.sufficient[k, p], tasks.sufficient[following, p])
            minimum[p] = min(tasks.minimum[k, p], tasks.minimum[following, p])
        around = surroundings_at(surroundings, offset[min(i, len(offset) - 1)])
        pair = largest_deficit(
            tree, around, q[i], sufficient, minimum, check[PENALTY], tasks.watched, steps[i], check[NONLINEARITY],
            deficits,
        )  # fmt: skip
        result[i, AROUND] = deficits[1]
        amount = max(deficits[0], 0.0)
        if deficits[0] <= 0.0:
            pair = NO_PAIR
        error = 0.0
        for j in range(limits.shape[1]):
            error = max(error, limits[0, j] - q[i, 7 + j], q[i, 7 + j] - limits[1, j])
        error *= check[JOINT_WEIGHT]
        task = task_at(tasks, around, k, q[i])
        if index == 0 or (2 * index == intervals and not contacts_move):
            error = max(error, contact_error(tree, task, q[i], closed, check, s, errors))
        path_error = 0.0
        if index == 0 or 2 * index == intervals:
            for g in range(len(positions) if index == 0 or k < midpoints.shape[1] else 0):
                contact = closed + g
                point = positions[g, k] if index == 0 else midpoints[g, k]
                path_error = max(
                    path_error,
                    distance_from_path(
                        tree, q[i], task.contact[contact, 0], task.frame[contact, :12], point[0], point[1], point[2],
                        s.work,
                    ),
                )  # fmt: skip
        if error > amount:
            amount, pair = error, NO_PAIR
        result[i, AMOUNT], result[i, PATH_ERROR], pairs[i] = amount, path_error, pair
        if amount >= upper:
            for rest in range(i + 1, len(samples)):
                pairs[rest] = UNCHECKED
            break
