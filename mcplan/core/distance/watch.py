"""Incremental distances of many pairs: pairs that cannot have come near since the last full test are skipped.

Let r_i be the largest possible distance of a point moved by joint i from the joint's axis. Between two configurations
no point of body i moves in the base's frame by more than::

    s_i = s_parent + r_i |q_i - q_i'|      (r_i = 1 for a prismatic joint),   s_0 = 0

A ball joint adds one such step per coordinate, because its link turns no faster than its coordinates change. In the
world, points of body i move by at most ``s_i + s``. For rotations R' and R that differ by the angle t,
``|R - R'|_2 = 2 sin(t/2)`` is at most twice the distance of their unit quaternions h' and h::

    s = |p - p'| + 2 r_0 |h - h'|

So two links approach each other by at most ``s_a + s_b``, and a link its surroundings by at most ``s_a + s``, whatever
the motion between the two configurations.
"""

import math
from typing import NamedTuple

import numpy as np

from mcplan.core.distance.many import bound_pairs, place_shape, place_shapes
from mcplan.core.distance.pair import DISTANCE, PAIR_SIZE, pair_distance
from mcplan.core.distance.shape import BALL, BODY
from mcplan.core.jit import jit, jit_algebra
from mcplan.core.rigid_body.body import place_base, place_body
from mcplan.core.rigid_body.tree import MULTIPLIER, OFFSET, ORIGIN, PARENT, PRISMATIC, TYPE, Q

SLACK = 0.04
"""m: all pairs are tested again once two shapes may have approached by this. With a smaller value that happens more
often; with a larger one more pairs are watched."""

ROUNDING = 1e-6
"""m: bound on the error of distances, with a large margin."""


class DistanceWatch(NamedTuple):
    """State since the last test of all pairs."""

    q: np.ndarray  # (nq,) configuration then
    around: np.ndarray  # (S, 12) poses of the world's shapes then
    reach: np.ndarray  # (bodies,) m, r_i
    moved: np.ndarray  # (bodies,) m, s_i
    size: np.ndarray  # (1,) int64, number of watched pairs; -1 before the first test
    pairs: np.ndarray  # (P,) int64, the watched pairs, in order: all within the margin plus SLACK
    spare: np.ndarray  # (P,) m, distance of each from the margin then
    needed: np.ndarray  # (bodies,) int64 scratch
    value: np.ndarray  # (10,) scratch


def new_watch(nq: int, bodies: int, shapes: int, pairs: int) -> DistanceWatch:
    """Return a watch before its first test of all pairs."""

    def whole(size: int) -> np.ndarray:
        return np.zeros(size, np.int64)

    return DistanceWatch(
        np.full(nq, np.nan), np.zeros((shapes, 12)), np.zeros(bodies), np.zeros(bodies), whole(1) - 1, whole(pairs),
        np.zeros(pairs), whole(bodies), np.zeros(PAIR_SIZE),
    )  # fmt: skip


@jit_algebra
def measure_reach(tree, shapes, q, reach):
    """Write r_i, valid as long as no prismatic joint moves by more than SLACK."""
    reach[:] = 0.0
    for i in range(len(shapes.index)):
        body = shapes.index[i, BODY]
        if body >= 0:
            x, y, z = shapes.offset[i, 9], shapes.offset[i, 10], shapes.offset[i, 11]
            reach[body] = max(reach[body], math.sqrt(x * x + y * y + z * z) + shapes.size[i, BALL])
    for i in range(len(reach) - 1, 0, -1):
        parent = tree.topology[i, PARENT]
        x, y, z = tree.joint[i, ORIGIN], tree.joint[i, ORIGIN + 1], tree.joint[i, ORIGIN + 2]
        away = math.sqrt(x * x + y * y + z * z)
        if tree.topology[i, TYPE] == PRISMATIC:
            position = tree.joint[i, MULTIPLIER] * q[tree.topology[i, Q]] + tree.joint[i, OFFSET]
            away += abs(position) + SLACK
        reach[parent] = max(reach[parent], away + reach[i])


@jit_algebra
def bound_base_motion(watch, q):
    """Return s, the bound on the motion of the base."""
    old = watch.q
    x, y, z = q[0] - old[0], q[1] - old[1], q[2] - old[2]
    along, new_square, old_square = 0.0, 0.0, 0.0
    for c in range(3, 7):
        along += q[c] * old[c]
        new_square += q[c] * q[c]
        old_square += old[c] * old[c]
    square = 2.0 - 2.0 * along / math.sqrt(new_square * old_square)
    return math.sqrt(x * x + y * y + z * z) + 2.0 * watch.reach[0] * math.sqrt(max(square, 0.0))


@jit_algebra
def bound_body_motion(tree, watch, q):
    """Write s_i, the bounds on the motion of the bodies in the base's frame; return the largest."""
    moved, most = watch.moved, 0.0
    moved[0] = 0.0
    for i in range(1, len(moved)):
        k = tree.topology[i, Q]
        step = abs(tree.joint[i, MULTIPLIER] * (q[k] - watch.q[k]))
        if tree.topology[i, TYPE] != PRISMATIC:
            step *= watch.reach[i]
        moved[i] = moved[tree.topology[i, PARENT]] + step
        most = max(most, moved[i])
    return most


@jit_algebra
def bound_world_motion(shapes, watch, i):
    """Return a bound on the motion of a shape that belongs to the world."""
    turn, shift = 0.0, 0.0
    for c in range(9):
        turn += (shapes.offset[i, c] - watch.around[i, c]) ** 2
    for c in range(9, 12):
        shift += (shapes.offset[i, c] - watch.around[i, c]) ** 2
    # |R - R'|_2 = |R - R'|_F / sqrt 2; without rotation the infinite radius of a half-space does not matter
    return math.sqrt(shift) + (shapes.size[i, BALL] * math.sqrt(0.5 * turn) if turn > 0.0 else 0.0)


@jit
def scan_all_pairs(tree, shapes, pairs, margin, q, scratch, watch):
    """Test all pairs, and choose those to watch."""
    place_shapes(tree, shapes, q, scratch)
    bound_pairs(shapes, pairs, scratch.pose, scratch.bounds)
    wide, count = margin + SLACK + ROUNDING, 0
    for p in range(len(pairs)):
        if scratch.bounds[p] <= wide and pair_distance(
            shapes, pairs[p, 0], pairs[p, 1], scratch.pose, wide, scratch.pair, watch.value
        ):
            watch.pairs[count] = p
            watch.spare[count] = watch.value[DISTANCE] - margin - ROUNDING
            count += 1
    watch.size[0] = count
    for k in range(len(q)):
        watch.q[k] = q[k]
    for i in range(len(watch.around)):
        for c in range(12):
            watch.around[i, c] = shapes.offset[i, c]
    measure_reach(tree, shapes, q, watch.reach)


@jit_algebra
def place_pairs(tree, shapes, pairs, chosen, count, q, needed, scratch):
    """Fill the poses of the shapes of the first ``count`` chosen pairs, and of the bodies that carry them."""
    work = scratch.bodies
    needed[:] = 0
    for k in range(count):
        for side in range(2):
            i = shapes.index[pairs[chosen[k], side], BODY]
            while i > 0 and needed[i] == 0:
                needed[i] = 1
                i = tree.topology[i, PARENT]
    place_base(q, work)
    for i in range(1, len(needed)):
        if needed[i] == 1:
            place_body(tree, q, work, i)
    for k in range(count):
        for side in range(2):
            place_shape(shapes, q, work, pairs[chosen[k], side], scratch.pose)


@jit
def watch_distances(tree, shapes, pairs, margin, wanted, q, scratch, watch, found, values):
    """Find the same pairs and values as ``fill_distances`` with one margin for all pairs.

    Only the poses of their shapes, and of the bodies that carry these, are computed.

    Parameters
    ----------
    margin : m, the same in all calls
    wanted : (P,) int64, 0 excludes a pair
    found : (P,) int64 out: the pairs found, in order
    values : (P, 10) out: as in ``fill_distances``

    Returns
    -------
    Number of pairs found.
    """
    most, base, world = bound_body_motion(tree, watch, q), bound_base_motion(watch, q), 0.0
    for i in range(len(shapes.index)):
        if shapes.index[i, BODY] < 0:
            world = max(world, bound_world_motion(shapes, watch, i))
    if watch.size[0] < 0 or 2.0 * most > SLACK or not most + base + world <= SLACK:
        scan_all_pairs(tree, shapes, pairs, margin, q, scratch, watch)
        base, world = 0.0, 0.0
        watch.moved[:] = 0.0
    near = 0
    for k in range(watch.size[0]):
        p = watch.pairs[k]
        if wanted[p] == 0:
            continue
        a, b = shapes.index[pairs[p, 0], BODY], shapes.index[pairs[p, 1], BODY]
        path = (watch.moved[a] if a >= 0 else base + world) + (watch.moved[b] if b >= 0 else base + world)
        if path >= watch.spare[k]:
            found[near] = p
            near += 1
    place_pairs(tree, shapes, pairs, found, near, q, watch.needed, scratch)
    count = 0
    for k in range(near):
        p = found[k]
        if pair_distance(shapes, pairs[p, 0], pairs[p, 1], scratch.pose, margin, scratch.pair, values[count]):
            found[count] = p
            count += 1
    return count
