"""Collision avoidance of the whole-body program: active pairs, their required distances, and their rows."""

import math

from mcplan.core.algebra.consistent_rows import NEUTRAL
from mcplan.core.algebra.joint_bounds import next_velocity
from mcplan.core.bundle import SOUND, check
from mcplan.core.distance.many import fill_distance_row
from mcplan.core.distance.pair import DISTANCE, NORMAL, POINT_B, pair_distance
from mcplan.core.distance.watch import watch_distances, write_pair_poses
from mcplan.core.jit import jit
from mcplan.core.rigid_body.manifold import integrate
from mcplan.core.whole_body.avoidance_bundle import (
    AHEAD,
    CEILING,
    MARGIN,
    ONSET,
    REACH,
    RECOVERY,
    RISE,
    open_around,
    open_memory,
)
from mcplan.core.whole_body.corner_rows import add_corner_rows

CORNER = -1
"""In ``AvoidanceCandidates.at``: the row belongs to a corner above a face, not to a pair's nearest points."""

NOT_FINITE = -1
"""Returned in place of a number of rows if the configuration is not finite."""


@jit
def update_clearance(p, distance, rise, tick, aims):
    """Update and return the required distance of pair p, which is near.

    It starts from the distance at which the pair was first near. Then it moves to its goal: at once if the goal is
    smaller, otherwise by at most ``rise`` per tick. ``tick`` increases by one per call.
    """
    before = aims.asked[p] if aims.seen[p] == tick - 1 else distance
    aims.asked[p], aims.seen[p] = min(aims.goal[p], before + rise), tick
    return aims.asked[p]


@jit
def limit_onset(onset, tick, near, chosen, aims):
    """Limit the increase of the accelerations that pairs require to ``onset`` (m/s²) per tick.

    A pair that approaches quickly requires a large acceleration as soon as it is within reach: torques would jump.
    """
    for k in range(len(chosen.b)):
        if chosen.b[k] > 0.0:
            p = near.pair[chosen.row[k]]
            before = aims.pull[p] if aims.pulled[p] == tick - 1 else 0.0
            chosen.b[k] = min(chosen.b[k], before + onset)
    for k in range(len(chosen.b)):  # a pair may have several rows
        if chosen.b[k] > 0.0:
            p = near.pair[chosen.row[k]]
            aims.pull[p] = max(aims.pull[p], chosen.b[k]) if aims.pulled[p] == tick else chosen.b[k]
            aims.pulled[p] = tick


@jit
def add_object_rate(value, q, middle, row):
    """Write the gradient of a distance by the velocity of an object at ``middle`` (3,): ``-n' (v + w x (x - p))``.

    ``value`` (10,) has the normal n and the point x of the object, from the base origin; ``row`` is (6,).
    """
    x = value[POINT_B] + q[0] - middle[0]
    y = value[POINT_B + 1] + q[1] - middle[1]
    z = value[POINT_B + 2] + q[2] - middle[2]
    nx, ny, nz = value[NORMAL], value[NORMAL + 1], value[NORMAL + 2]
    row[0], row[1], row[2] = -nx, -ny, -nz
    row[3], row[4], row[5] = -(y * nz - z * ny), -(z * nx - x * nz), -(x * ny - y * nx)


@jit
def fill_near(shapes, around, q, tick, found, aims, near, space):
    """Fill the rows, except ``bend``, of the pairs found with less room than REACH; return the number of rows.

    First come the corners of links that are low over a face and do not rest on it: they replace the rows of their
    pairs.
    """
    tree, pairs, reach, total = around.tree, around.pairs, around.rule[REACH], 0
    for i in range(found):
        p, distance = space.found[i], space.values[i, DISTANCE]
        room = distance - update_clearance(p, distance, around.rule[RISE], tick, aims)
        space.room[i] = room
        if aims.flat[p] == 1 and room < reach:
            corners = add_corner_rows(
                tree, shapes, around.faces, pairs[p, 0], pairs[p, 1], q, space.scratch, distance, total,
                near.room, near.rates, space.value, space.nearest,
            )  # fmt: skip
            for k in range(total, total + corners):
                near.pair[k], near.at[k] = p, CORNER
                near.room[k] = near.room[k] - distance + room
            if corners > 0:
                space.room[i] = math.inf
            total += corners
    for i in range(found):
        if not space.room[i] < reach:
            continue
        p = space.found[i]
        a, b = pairs[p, 0], pairs[p, 1]
        near.pair[total], near.at[total], near.room[total] = p, i, space.room[i]
        fill_distance_row(tree, shapes, a, b, space.scratch.bodies, space.values[i], near.rates[total])
        column = aims.column[b]
        if column >= 0:
            add_object_rate(space.values[i], q, aims.middle[b], near.rates[total, column : column + 6])
        total += 1
    return total


@jit
def fill_bends(tree, shapes, pairs, q, v, T, near, count, needed, space):
    """Fill ``bend``, the second derivatives of the distances at constant v, averaged over the time T, objects at rest.

    ``d(q + T v) = d + T J v + T² / 2 bend``; zero for corners. The poses at q are overwritten.

    Parameters
    ----------
    v : (nv,) of the robot
    needed : (bodies,) int64 scratch
    """
    integrate(q, v, T, space.later)
    write_pair_poses(tree, shapes, pairs, near.pair, count, space.later, needed, space.scratch)
    for k in range(count):
        near.bend[k] = 0.0
        if near.at[k] == CORNER:
            continue
        a, b, scratch, value = pairs[near.pair[k], 0], pairs[near.pair[k], 1], space.scratch, space.value
        pair_distance(shapes, a, b, scratch.pose, math.inf, scratch.pair, value)
        rate = 0.0
        for j in range(len(v)):
            rate += near.rates[k, j] * v[j]
        near.bend[k] = 2.0 * (value[DISTANCE] - space.values[near.at[k], DISTANCE] - T * rate) / T**2


@jit
def avoid(shapes, fixed, changing, q, v, tick):
    """Fill ``ActivePairs`` at (q, v): the collision avoidance of one tick.

    Parameters
    ----------
    shapes : with the present poses of objects
    fixed, changing : bundles of ``AvoidanceConstants`` and ``AvoidanceState``
    q, v : those of the robot first; in v the velocities of objects may follow
    tick : number of this tick

    Returns
    -------
    Number of near rows, which may exceed the number of slots; or NOT_FINITE.
    """
    around, memory = open_around(fixed), open_memory(changing)
    tree, pairs, rule = around.tree, around.pairs, around.rule
    watch, near, chosen, space = memory.watch, memory.near, memory.chosen, memory.space
    q = q[: len(space.later)]
    if check(q, False) != SOUND:
        return NOT_FINITE
    found = watch_distances(
        tree, shapes, pairs, rule[MARGIN], memory.aims.wanted, q, space.scratch, watch, space.found, space.values
    )
    count = fill_near(shapes, around, q, tick, found, memory.aims, near, space)
    if count > 0:
        fill_bends(tree, shapes, pairs, q, v[: len(tree.armature)], rule[AHEAD], near, count, watch.needed, space)
    for k in range(len(chosen.b)):
        chosen.A[k, :] = 0.0
        chosen.b[k] = NEUTRAL
    close = fill_avoidance_rows(
        near.room[:count], near.rates[:count], near.bend[:count], v, near.pair, around.group, 0.0, rule[REACH],
        rule[AHEAD], memory.aims.braking, rule[CEILING], rule[RECOVERY], chosen.need, chosen.row, chosen.A, chosen.b,
    )  # fmt: skip
    limit_onset(rule[ONSET], tick, near, chosen, memory.aims)
    return close


@jit
def fill_avoidance_rows(
    distance, J, bias, v, pair, group, safe, influence, dt, braking, ceiling, recovery, need, chosen, A, b
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
    need, chosen : (m,) scratch: accelerations (m/s²) that the chosen rows require, and indices of these rows.
    """
    near, count = 0, 0
    slots = len(b)
    most = (slots + 1) // 2
    for i in range(len(distance)):
        if distance[i] >= influence:
            continue
        near += 1
        speed = 0.0
        for j in range(len(v)):
            speed += J[i, j] * v[j]
        wanted = (-next_velocity(distance[i] - safe, 0.0, braking[pair[i]], dt, recovery) - speed) / dt - bias[i]
        # sorted by required acceleration, stable for equal ones
        place = count
        while place > 0 and need[place - 1] < wanted:
            place -= 1
        own, last = 0, min(count, slots - 1)  # number of rows of its group; slot to overwrite
        for k in range(count):
            if group[pair[chosen[k]]] == group[pair[i]]:
                own += 1
                if own == most:
                    last = k
        if place >= slots or place > last:
            continue
        for k in range(last, place, -1):
            need[k], chosen[k] = need[k - 1], chosen[k - 1]
        need[place], chosen[place] = wanted, i
        count = max(count, last + 1)
    for k in range(count):
        i = chosen[k]
        for j in range(len(v)):
            A[k, j] = J[i, j]
        asks = need[k] + bias[i]
        b[k] = math.copysign(min(abs(asks), ceiling), asks) - bias[i]
    return near
