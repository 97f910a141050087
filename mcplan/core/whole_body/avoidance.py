"""Collision avoidance of the whole-body program: active pairs, their required distances, and their rows."""

import math

from mcplan.core.algebra.consistent_rows import NEUTRAL
from mcplan.core.algebra.joint_bounds import next_velocity
from mcplan.core.bundle import SOUND, Bundle, check
from mcplan.core.distance.many import fill_distance_row
from mcplan.core.distance.pair import DISTANCE, NORMAL, POINT_B, fast_pair_distance
from mcplan.core.distance.shape import Shapes
from mcplan.core.distance.watch import watch_distances, write_pair_poses
from mcplan.core.jit import jit, jit_inline_exact
from mcplan.core.rigid_body.manifold import integrate
from mcplan.core.whole_body.avoidance_bundle import (
    CEILING,
    MAX_ONSET,
    MAX_RISE,
    PREDICTION_TIME,
    RECOVERY,
    ROW_DISTANCE,
    TEST_DISTANCE,
    unpack_constants,
    unpack_state,
)
from mcplan.core.whole_body.corner_rows import add_corner_rows

CORNER = -1
"""In ``AvoidanceCandidates.index``: the row belongs to a corner above a face, not to a pair's nearest points."""

NOT_FINITE = -1
"""Returned in place of a number of rows if the configuration is not finite."""


@jit
def update_clearance(p, distance, rise, tick, targets):
    """Update and return the required distance of a near pair p.

    It starts from the distance at which the pair was first near. Then it moves to its goal: at once if the goal is
    smaller, otherwise by at most ``rise`` per tick. ``tick`` increases by one per call.
    """
    last = targets.required[p] if targets.required_tick[p] == tick - 1 else distance
    targets.required[p], targets.required_tick[p] = min(targets.goal[p], last + rise), tick
    return targets.required[p]


@jit_inline_exact
def limit_onset(onset, tick, candidates, active, targets):
    """Limit the increase of the accelerations that pairs require to ``onset`` (m/s²) per tick.

    A pair that approaches quickly requires a large acceleration as soon as it gets a row: torques would jump.
    """
    for k in range(len(active.b)):
        if active.b[k] > 0.0:
            p = candidates.pair[active.row[k]]
            last = targets.acceleration[p] if targets.acceleration_tick[p] == tick - 1 else 0.0
            active.b[k] = min(active.b[k], last + onset)
    for k in range(len(active.b)):  # a pair may have several rows
        if active.b[k] > 0.0:
            p = candidates.pair[active.row[k]]
            b = active.b[k]
            targets.acceleration[p] = max(targets.acceleration[p], b) if targets.acceleration_tick[p] == tick else b
            targets.acceleration_tick[p] = tick


@jit
def add_object_rate(value, q, position, row):
    """Write the gradient of a distance by the velocity of an object at ``position`` (3,): ``-n' (v + w x (x - p))``.

    ``value`` (10,) has the normal n and the point x of the object, from the base origin; ``row`` is (6,).
    """
    x = value[POINT_B] + q[0] - position[0]
    y = value[POINT_B + 1] + q[1] - position[1]
    z = value[POINT_B + 2] + q[2] - position[2]
    nx, ny, nz = value[NORMAL], value[NORMAL + 1], value[NORMAL + 2]
    row[0], row[1], row[2] = -nx, -ny, -nz
    row[3], row[4], row[5] = -(y * nz - z * ny), -(z * nx - x * nz), -(x * ny - y * nx)


@jit_inline_exact
def fill_near(shapes, constants, q, tick, found, targets, candidates, work):
    """Fill the rows of the pairs found with less room than ROW_DISTANCE, except ``curvature``; return their number.

    First come the corners of links that are low over a face and do not rest on it: they replace the rows of their
    pairs.
    """
    tree, pairs, row_distance, count = constants.tree, constants.pairs, constants.rule[ROW_DISTANCE], 0
    for i in range(found):
        p, distance = work.found[i], work.values[i, DISTANCE]
        room = distance - update_clearance(p, distance, constants.rule[MAX_RISE], tick, targets)
        work.room[i] = room
        if targets.over_face[p] == 1 and room < row_distance:
            corners = add_corner_rows(
                tree, shapes, constants.faces, pairs[p, 0], pairs[p, 1], q, work.scratch, distance, count,
                candidates.room, candidates.rates, work.value, work.nearest,
            )  # fmt: skip
            for k in range(count, count + corners):
                candidates.pair[k], candidates.index[k] = p, CORNER
                candidates.room[k] = candidates.room[k] - distance + room
            if corners > 0:
                work.room[i] = math.inf
            count += corners
    for i in range(found):
        if not work.room[i] < row_distance:
            continue
        p = work.found[i]
        a, b = pairs[p, 0], pairs[p, 1]
        candidates.pair[count], candidates.index[count], candidates.room[count] = p, i, work.room[i]
        fill_distance_row(tree, shapes, a, b, work.scratch.bodies, work.values[i], candidates.rates[count])
        column = targets.column[b]
        if column >= 0:
            add_object_rate(work.values[i], q, targets.position[b], candidates.rates[count, column : column + 6])
        count += 1
    return count


@jit_inline_exact
def fill_curvatures(tree, shapes, pairs, q, v, T, candidates, count, needed, work):
    """Write the second derivatives of the distances at constant v, averaged over the time T, with objects at rest.

    ``d(q + T v) = d + T J v + T² / 2 curvature``; zero for corners. The poses at q are overwritten.

    Parameters
    ----------
    v : (nv,) of the robot
    needed : (bodies,) int64 scratch
    """
    integrate(q, v, T, work.q_predicted)
    write_pair_poses(tree, shapes, pairs, candidates.pair, count, work.q_predicted, needed, work.scratch)
    for k in range(count):
        candidates.curvature[k] = 0.0
        if candidates.index[k] == CORNER:
            continue
        a, b, scratch, value = pairs[candidates.pair[k], 0], pairs[candidates.pair[k], 1], work.scratch, work.value
        fast_pair_distance(shapes, a, b, scratch.pose, math.inf, scratch.pair, value)
        rate = 0.0
        for j in range(len(v)):
            rate += candidates.rates[k, j] * v[j]
        candidates.curvature[k] = 2.0 * (value[DISTANCE] - work.values[candidates.index[k], DISTANCE] - T * rate) / T**2


@jit
def avoid(
    index, size, offset, vertices, graph, constants_real, constants_integer, constants_layout, state_real,
    state_integer, state_layout, q, v, tick,
):  # fmt: skip
    """Fill ``ActivePairs`` at (q, v): the collision avoidance of one tick.

    Parameters
    ----------
    index .. graph : ``Shapes`` with the present poses of objects; arrays are passed to a kernel faster than tuples
    constants_real .. state_layout : bundles of ``AvoidanceConstants`` and ``AvoidanceState``
    q, v : those of the robot first; in v the velocities of objects may follow
    tick : number of this tick

    Returns
    -------
    Number of near rows, which may exceed the number of slots; or NOT_FINITE.
    """
    shapes = Shapes(index, size, offset, vertices, graph)
    constants = unpack_constants(Bundle(constants_real, constants_integer, constants_layout))
    state = unpack_state(Bundle(state_real, state_integer, state_layout))
    tree, pairs, rule = constants.tree, constants.pairs, constants.rule
    watch, candidates, active, work = state.watch, state.candidates, state.active, state.work
    q = q[: len(work.q_predicted)]
    if check(q, False) != SOUND:
        return NOT_FINITE
    found = watch_distances(
        tree, shapes, pairs, rule[TEST_DISTANCE], state.targets.included, q, work.scratch, watch, work.found,
        work.values,
    )  # fmt: skip
    count = fill_near(shapes, constants, q, tick, found, state.targets, candidates, work)
    if count > 0:
        T, v_robot = rule[PREDICTION_TIME], v[: len(tree.armature)]
        fill_curvatures(tree, shapes, pairs, q, v_robot, T, candidates, count, watch.needed, work)
    for k in range(len(active.b)):
        active.A[k, :] = 0.0
        active.b[k] = NEUTRAL
    near_count = fill_avoidance_rows(
        candidates.room[:count], candidates.rates[:count], candidates.curvature[:count], v, candidates.pair,
        constants.group, 0.0, rule[ROW_DISTANCE], rule[PREDICTION_TIME], state.targets.braking, rule[CEILING],
        rule[RECOVERY], active.required, active.row, active.A, active.b,
    )  # fmt: skip
    limit_onset(rule[MAX_ONSET], tick, candidates, active, state.targets)
    return near_count


@jit
def fill_avoidance_rows(
    distance, J, bias, v, pair, group, safe, influence, dt, braking, ceiling, recovery, required, row_index, A, b
):
    """Fill ``A`` (m, nv) and ``b`` (m,) with the most demanding rows; return the number of near rows.

    A row is ``J vd >= -(v_max + J v) / dt - bias``, with ``v_max`` the largest approach speed from which the pair can
    still be stopped (``next_velocity``). It requires no more than ``ceiling``. Unused rows do not change. One group
    gets at most half of the rows: the corners and balls of a sole that leaves its floor are all equally demanding, and
    would displace other near pairs until these demand more than is feasible.

    Parameters
    ----------
    distance, bias : (k,) m, m/s².
    J : (k, nv) gradients.
    pair, group, braking : (k,) pair of each row, and of each pair its group and its deceleration (m/s²).
    required, row_index : (m,) scratch: accelerations (m/s²) that the chosen rows require, and indices of these rows.
    """
    near_count, count = 0, 0
    slots = len(b)
    max_per_group = (slots + 1) // 2
    for i in range(len(distance)):
        if distance[i] >= influence:
            continue
        near_count += 1
        speed = 0.0
        for j in range(len(v)):
            speed += J[i, j] * v[j]
        demand = (-next_velocity(distance[i] - safe, 0.0, braking[pair[i]], dt, recovery) - speed) / dt - bias[i]
        # sorted by required acceleration, stable for equal ones
        position = count
        while position > 0 and required[position - 1] < demand:
            position -= 1
        group_count, last = 0, min(count, slots - 1)  # number of rows of its group; slot to overwrite
        for k in range(count):
            if group[pair[row_index[k]]] == group[pair[i]]:
                group_count += 1
                if group_count == max_per_group:
                    last = k
        if position >= slots or position > last:
            continue
        for k in range(last, position, -1):
            required[k], row_index[k] = required[k - 1], row_index[k - 1]
        required[position], row_index[position] = demand, i
        count = max(count, last + 1)
    for k in range(count):
        i = row_index[k]
        for j in range(len(v)):
            A[k, j] = J[i, j]
        acceleration = required[k] + bias[i]
        b[k] = math.copysign(min(abs(acceleration), ceiling), acceleration) - bias[i]
    return near_count
