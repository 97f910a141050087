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

from mcplan.core.distance.many import bound_pairs, write_shape_pose, write_shape_poses
from mcplan.core.distance.pair import DISTANCE, PAIR_SIZE, fast_pair_distance
from mcplan.core.distance.shape import BODY, BOUNDING_RADIUS
from mcplan.core.jit import jit, jit_algebra, jit_inline, jit_inline_exact
from mcplan.core.rigid_body.body import write_base_pose, write_body_pose
from mcplan.core.rigid_body.tree import MULTIPLIER, OFFSET, ORIGIN, PARENT, PRISMATIC, TYPE, Q

WATCH_SLACK = 0.04
"""m: all pairs are tested again once two shapes may have approached each other by this. With a smaller value this
is more frequent; with a larger one more pairs are watched."""

DISTANCE_ERROR = 1e-6
"""m: bound on the rounding error of distances, with a large margin."""


class DistanceWatch(NamedTuple):
    """Configuration at the last full test (the test of all pairs), and bounds on the motion since."""

    q: np.ndarray  # (nq,) configuration at the full test
    world_poses: np.ndarray  # (S, 12) poses of the world's shapes at the full test
    reach: np.ndarray  # (bodies,) m, r_i: radius about the joint
    motion: np.ndarray  # (bodies,) m, s_i: bound on the motion in the base's frame
    size: np.ndarray  # (1,) int64, number of watched pairs; -1 before the first test
    pairs: np.ndarray  # (P,) int64, the watched pairs, in order: all within the margin plus WATCH_SLACK
    clearance: np.ndarray  # (P,) m, distance of each at the full test, less the margin
    needed: np.ndarray  # (bodies,) int64 scratch: 1 for bodies whose pose is needed
    value: np.ndarray  # (10,) scratch


def new_watch(nq: int, bodies: int, shapes: int, pairs: int) -> DistanceWatch:
    """Return a watch before its first full test."""

    def integers(size: int) -> np.ndarray:
        return np.zeros(size, np.int64)

    return DistanceWatch(
        np.full(nq, np.nan), np.zeros((shapes, 12)), np.zeros(bodies), np.zeros(bodies), integers(1) - 1,
        integers(pairs), np.zeros(pairs), integers(bodies), np.zeros(PAIR_SIZE),
    )  # fmt: skip


@jit_algebra
def fill_reach(tree, shapes, q, reach):
    """Write the radii r_i, valid as long as no prismatic joint moves by more than WATCH_SLACK."""
    reach[:] = 0.0
    for i in range(len(shapes.index)):
        body = shapes.index[i, BODY]
        if body >= 0:
            x, y, z = shapes.offset[i, 9], shapes.offset[i, 10], shapes.offset[i, 11]
            reach[body] = max(reach[body], math.sqrt(x * x + y * y + z * z) + shapes.size[i, BOUNDING_RADIUS])
    for i in range(len(reach) - 1, 0, -1):
        parent = tree.topology[i, PARENT]
        x, y, z = tree.joint[i, ORIGIN], tree.joint[i, ORIGIN + 1], tree.joint[i, ORIGIN + 2]
        offset = math.sqrt(x * x + y * y + z * z)
        if tree.topology[i, TYPE] == PRISMATIC:
            position = tree.joint[i, MULTIPLIER] * q[tree.topology[i, Q]] + tree.joint[i, OFFSET]
            offset += abs(position) + WATCH_SLACK
        reach[parent] = max(reach[parent], offset + reach[i])


@jit_algebra
def bound_base_motion(watch, q):
    """Return s, the bound on the motion of the base."""
    last = watch.q
    x, y, z = q[0] - last[0], q[1] - last[1], q[2] - last[2]
    product, new_square, old_square = 0.0, 0.0, 0.0
    for c in range(3, 7):
        product += q[c] * last[c]
        new_square += q[c] * q[c]
        old_square += last[c] * last[c]
    square = 2.0 - 2.0 * product / math.sqrt(new_square * old_square)
    return math.sqrt(x * x + y * y + z * z) + 2.0 * watch.reach[0] * math.sqrt(max(square, 0.0))


@jit_algebra
def bound_body_motion(tree, watch, q):
    """Write s_i, the bounds on the motion of the bodies in the base's frame; return the largest."""
    motion, max_motion = watch.motion, 0.0
    motion[0] = 0.0
    for i in range(1, len(motion)):
        k = tree.topology[i, Q]
        step = abs(tree.joint[i, MULTIPLIER] * (q[k] - watch.q[k]))
        if tree.topology[i, TYPE] != PRISMATIC:
            step *= watch.reach[i]
        motion[i] = motion[tree.topology[i, PARENT]] + step
        max_motion = max(max_motion, motion[i])
    return max_motion


@jit_algebra
def bound_world_motion(shapes, watch, i):
    """Return a bound on the motion of a shape that belongs to the world."""
    turn, shift = 0.0, 0.0
    for c in range(9):
        turn += (shapes.offset[i, c] - watch.world_poses[i, c]) ** 2
    for c in range(9, 12):
        shift += (shapes.offset[i, c] - watch.world_poses[i, c]) ** 2
    # |R - R'|_2 = |R - R'|_F / sqrt 2; without rotation the infinite radius of a half-space does not matter
    return math.sqrt(shift) + (shapes.size[i, BOUNDING_RADIUS] * math.sqrt(0.5 * turn) if turn > 0.0 else 0.0)


@jit
def scan_all_pairs(tree, shapes, pairs, margin, q, scratch, watch):
    """Test all pairs, and watch those within the margin plus WATCH_SLACK."""
    write_shape_poses(tree, shapes, q, scratch)
    bound_pairs(shapes, pairs, scratch.pose, scratch.bounds)
    limit, count = margin + WATCH_SLACK + DISTANCE_ERROR, 0
    for p in range(len(pairs)):
        if scratch.bounds[p] <= limit and fast_pair_distance(
            shapes, pairs[p, 0], pairs[p, 1], scratch.pose, limit, scratch.pair, watch.value
        ):
            watch.pairs[count] = p
            watch.clearance[count] = watch.value[DISTANCE] - margin - DISTANCE_ERROR
            count += 1
    watch.size[0] = count
    for k in range(len(q)):
        watch.q[k] = q[k]
    for i in range(len(watch.world_poses)):
        for c in range(12):
            watch.world_poses[i, c] = shapes.offset[i, c]
    fill_reach(tree, shapes, q, watch.reach)


@jit_inline
def write_pair_poses(tree, shapes, pairs, chosen, count, q, needed, scratch):
    """Fill the poses of the shapes of the first ``count`` chosen pairs, and of the bodies that carry them."""
    work = scratch.bodies
    needed[:] = 0
    for k in range(count):
        for side in range(2):
            i = shapes.index[pairs[chosen[k], side], BODY]
            while i > 0 and needed[i] == 0:
                needed[i] = 1
                i = tree.topology[i, PARENT]
    write_base_pose(q, work)
    for i in range(1, len(needed)):
        if needed[i] == 1:
            write_body_pose(tree, q, work, i)
    for k in range(count):
        for side in range(2):
            write_shape_pose(shapes, q, work, pairs[chosen[k], side], scratch.pose)


@jit_inline_exact
def watch_distances(tree, shapes, pairs, margin, included, q, scratch, watch, found, values):
    """Find the same pairs and, up to rounding, values as ``fill_distances`` with one margin for all pairs.

    Only the poses of their shapes, and of the bodies that carry these, are computed.

    Parameters
    ----------
    margin : m, the same in all calls
    included : (P,) int64, 0 excludes a pair
    watch : DistanceWatch; changed
    found : (P,) int64 out: the pairs found, in order
    values : (P, 10) out: as in ``fill_distances``

    Returns
    -------
    Number of pairs found.
    """
    max_motion, base, world = bound_body_motion(tree, watch, q), bound_base_motion(watch, q), 0.0
    for i in range(len(shapes.index)):
        if shapes.index[i, BODY] < 0:
            world = max(world, bound_world_motion(shapes, watch, i))
    if watch.size[0] < 0 or 2.0 * max_motion > WATCH_SLACK or not max_motion + base + world <= WATCH_SLACK:
        scan_all_pairs(tree, shapes, pairs, margin, q, scratch, watch)
        base, world = 0.0, 0.0
        watch.motion[:] = 0.0
    near = 0
    for k in range(watch.size[0]):
        p = watch.pairs[k]
        if included[p] == 0:
            continue
        a, b = shapes.index[pairs[p, 0], BODY], shapes.index[pairs[p, 1], BODY]
        approach = (watch.motion[a] if a >= 0 else base + world) + (watch.motion[b] if b >= 0 else base + world)
        if approach >= watch.clearance[k]:
            found[near] = p
            near += 1
    write_pair_poses(tree, shapes, pairs, found, near, q, watch.needed, scratch)
    count = 0
    for k in range(near):
        p = found[k]
        if fast_pair_distance(shapes, pairs[p, 0], pairs[p, 1], scratch.pose, margin, scratch.pair, values[count]):
            found[count] = p
            count += 1
    return count
