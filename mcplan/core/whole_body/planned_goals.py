"""Goal distances of collision avoidance along a planned motion, and the braking that the motion needs."""

import math

from mcplan.core.bundle import Bundle
from mcplan.core.distance.many import bound_pairs, fill_distance_row, write_shape_poses
from mcplan.core.distance.pair import DISTANCE, fast_pair_distance
from mcplan.core.distance.shape import Shapes
from mcplan.core.jit import jit
from mcplan.core.whole_body.avoidance_bundle import CEILING, PREDICTION_TIME, unpack_constants, unpack_state

PLAN_TOLERANCE_M = 1e-3
"""Distance by which a pair may come nearer than planned (m): references are not tracked exactly."""

MIN_DISTANCE_M = 1e-3
"""Least distance between links that must not touch, even if they are planned nearer (m).

It exceeds the error of the rows: the speed follows its bound late, so a link that approaches at 0.1 m/s overshoots by
0.55 mm.
"""

DECELERATION_FACTOR = 1.5
"""Safety factor on the deceleration that a planned motion needs: no motion is tracked exactly."""

APPROACH_PAIR, APPROACH_DISTANCE, APPROACH_SPEED, APPROACH_SIZE = range(4)
"""Columns of an approach of a pair in a sample of the motion: pair, distance (m), and speed (m/s)."""


@jit
def start_goals(state_real, state_integer, state_layout, on_surface, ground_goal, tick):
    """Take over new goals: minus infinity excludes a pair. Required distances start from them.

    Parameters
    ----------
    state_real .. state_layout : bundle of ``AvoidanceState``
    on_surface : (P,) bool, whether a pair is a link and a surface
    ground_goal : m, goals above it keep a link off its surface
    tick : number of this tick
    """
    targets = unpack_state(Bundle(state_real, state_integer, state_layout)).targets
    for p in range(len(targets.goal)):
        goal = targets.goal[p]
        if targets.included[p] == 0:  # contacts fixed the pair: it had no goal until now, and was near
            targets.required_tick[p] = tick - 1
        targets.included[p] = goal > -math.inf
        targets.over_face[p] = on_surface[p] and goal > ground_goal
        # a link that bore load touches its support: start from zero distance at least
        targets.required[p] = max(targets.required[p], min(goal, 0.0)) if targets.included[p] else -math.inf


@jit
def lower_goals(
    index, size, offset, vertices, graph, constants_real, constants_integer, constants_layout, state_real,
    state_integer, state_layout, margins, approaches, count, q, v, rate, is_last,
):  # fmt: skip
    """Lower goals to the distances at one sample of the motion; after the last one, raise the decelerations.

    Decelerations need all samples, because the distance for braking ends at the final goal.

    Parameters
    ----------
    index .. state_layout : see ``avoid``, objects at their planned poses
    margins : (P,) m; minus infinity for pairs whose goals do not depend on the motion
    approaches : (n, 3) APPROACH_PAIR .. of the motion, changed
    count : number of earlier approaches
    q, v, rate : (nq,), (nv,) sample of the path, and path rate
    is_last : whether no other sample follows

    Returns
    -------
    Number of approaches.
    """
    shapes = Shapes(index, size, offset, vertices, graph)
    constants = unpack_constants(Bundle(constants_real, constants_integer, constants_layout))
    state = unpack_state(Bundle(state_real, state_integer, state_layout))
    tree, pairs, targets, work = constants.tree, constants.pairs, state.targets, state.work
    value, row = work.value, state.candidates.rates[0]
    write_shape_poses(tree, shapes, q, work.scratch)
    bound_pairs(shapes, pairs, work.scratch.pose, work.scratch.bounds)
    for p in range(len(pairs)):
        a, b, scratch = pairs[p, 0], pairs[p, 1], work.scratch
        if not scratch.bounds[p] <= margins[p] or not fast_pair_distance(
            shapes, a, b, scratch.pose, margins[p], scratch.pair, value
        ):
            continue
        targets.goal[p] = min(targets.goal[p], max(value[DISTANCE] - PLAN_TOLERANCE_M, MIN_DISTANCE_M))
        fill_distance_row(tree, shapes, a, b, scratch.bodies, value, row)
        speed = 0.0
        for j in range(len(v)):
            speed -= row[j] * rate * v[j]
        if speed > 0.0:
            approaches[count, APPROACH_PAIR], approaches[count, APPROACH_DISTANCE] = p, value[DISTANCE]
            approaches[count, APPROACH_SPEED] = speed
            count += 1
    for k in range(count if is_last else 0):
        p, speed = int(approaches[k, APPROACH_PAIR]), approaches[k, APPROACH_SPEED]
        # speed v stops within distance d at v² / 2 (d - T v), as it follows its bound with delay T
        room = max(approaches[k, APPROACH_DISTANCE] - targets.goal[p] - constants.rule[PREDICTION_TIME] * speed, 1e-9)
        deceleration = 0.5 * DECELERATION_FACTOR * speed**2 / room
        targets.braking[p] = max(targets.braking[p], min(deceleration, constants.rule[CEILING]))
    return count
