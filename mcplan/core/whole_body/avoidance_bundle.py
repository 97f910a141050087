"""What collision avoidance knows and keeps, each out of the one bundle that crosses to the kernel."""

from typing import NamedTuple

import numpy as np

from mcplan.core.bundle import Bundle, axes1, axes2, bundle, flat
from mcplan.core.distance.many import DistanceScratch
from mcplan.core.distance.watch import DistanceWatch
from mcplan.core.jit import jit_inline
from mcplan.core.rigid_body.tree import Tree
from mcplan.core.whole_body.corner_rows import Faces

MARGIN, REACH, AHEAD, RISE, CEILING, RECOVERY, ONSET, RULES = range(8)
"""Places in ``Around.rule``: distance within which pairs are seen, room within which they get a row (m), time over
which motions are foreseen (s), most by which the required distance rises (m per tick); ``ceiling`` and ``recovery`` of
``fill_avoidance_rows``; most by which the acceleration that is asked of a pair rises (m/s² per tick)."""


class AvoidanceConstants(NamedTuple):
    """What stays. All arrays are read-only."""

    tree: Tree
    pairs: np.ndarray  # (P, 2) int64 shapes
    rule: np.ndarray  # (RULES,)
    faces: Faces
    group: np.ndarray  # (P,) int64, the same for pairs of shapes of the same two bodies


class AvoidanceTargets(NamedTuple):
    """Required distances of the pairs, and the objects that move."""

    goal: np.ndarray  # (P,) m, distance to keep
    braking: np.ndarray  # (P,) m/s², deceleration of the distance that is counted on
    wanted: np.ndarray  # (P,) int64, 0: nothing is asked
    flat: np.ndarray  # (P,) int64, 1 for links over surfaces that they do not rest on
    asked: np.ndarray  # (P,) m, required last
    seen: np.ndarray  # (P,) int64, the tick in which that was
    column: np.ndarray  # (S,) int64, first entry in v of the object that a shape belongs to, -1 for all other shapes
    middle: np.ndarray  # (S, 3) m, where those objects are
    pull: np.ndarray  # (P,) m/s², acceleration that was asked last
    pulled: np.ndarray  # (P,) int64, the tick in which that was


class AvoidanceCandidates(NamedTuple):
    """Rows of near pairs: nearest points of pairs, or corners above faces."""

    pair: np.ndarray  # (n,) int64
    at: np.ndarray  # (n,) int64, place among the pairs found, or CORNER
    room: np.ndarray  # (n,) m, above the required distance
    rates: np.ndarray  # (n, nv) gradients of the room
    bend: np.ndarray  # (n,) m/s², what a velocity alone adds to its second derivative


class ActivePairs(NamedTuple):
    """Those that ask for most: ``A vd >= b``."""

    A: np.ndarray  # (slots, nv)
    b: np.ndarray  # (slots,)
    row: np.ndarray  # (slots,) int64, their places in AvoidanceCandidates
    need: np.ndarray  # (slots,) m/s², scratch


class AvoidanceWorkspace(NamedTuple):
    """Scratch space."""

    scratch: DistanceScratch
    found: np.ndarray  # (P,) int64
    values: np.ndarray  # (P, 10) of the pairs found, see ``core.distance``
    room: np.ndarray  # (P,) m, of the pairs found
    value: np.ndarray  # (10,)
    nearest: np.ndarray  # (MOST,) int64
    later: np.ndarray  # (nq,)


class AvoidanceState(NamedTuple):
    """All that changes from tick to tick."""

    aims: AvoidanceTargets
    watch: DistanceWatch
    near: AvoidanceCandidates
    chosen: ActivePairs
    space: AvoidanceWorkspace


def close_around(around: AvoidanceConstants) -> Bundle:
    """Return the bundle of what stays."""
    return bundle(flat(around))[0]


def close_memory(memory: AvoidanceState) -> tuple[Bundle, AvoidanceTargets, AvoidanceCandidates, ActivePairs]:
    """Return the bundle of a memory, and the views that code outside of kernels reads or writes."""
    packed, views = bundle(flat(memory))
    rest = iter(views)
    aims, _, near, chosen = [type(part)(*(next(rest) for _ in flat(part))) for part in memory[:4]]
    return packed, aims, near, chosen


@jit_inline
def open_around(packed):
    """Return what stays out of its bundle."""
    real, whole, layout = packed
    return AvoidanceConstants(
        Tree(axes2(whole, layout, 0), axes2(real, layout, 1), axes2(real, layout, 2), axes1(real, layout, 3)),
        axes2(whole, layout, 4),  # pairs
        axes1(real, layout, 5),  # rule
        Faces(axes2(whole, layout, 6), axes2(real, layout, 7), axes2(real, layout, 8)),
        axes1(whole, layout, 9),  # group
    )


@jit_inline
def open_memory(packed):
    """Return the memory out of its bundle."""
    real, whole, layout = packed
    return AvoidanceState(
        AvoidanceTargets(
            axes1(real, layout, 0),  # goal
            axes1(real, layout, 1),  # braking
            axes1(whole, layout, 2),  # wanted
            axes1(whole, layout, 3),  # flat
            axes1(real, layout, 4),  # asked
            axes1(whole, layout, 5),  # seen
            axes1(whole, layout, 6),  # column
            axes2(real, layout, 7),  # middle
            axes1(real, layout, 8),  # pull
            axes1(whole, layout, 9),  # pulled
        ),
        DistanceWatch(
            axes1(real, layout, 10),  # q
            axes2(real, layout, 11),  # around
            axes1(real, layout, 12),  # reach
            axes1(real, layout, 13),  # moved
            axes1(whole, layout, 14),  # size
            axes1(whole, layout, 15),  # pairs
            axes1(real, layout, 16),  # spare
            axes1(whole, layout, 17),  # needed
            axes1(real, layout, 18),  # value
        ),
        AvoidanceCandidates(
            axes1(whole, layout, 19),  # pair
            axes1(whole, layout, 20),  # at
            axes1(real, layout, 21),  # room
            axes2(real, layout, 22),  # rates
            axes1(real, layout, 23),  # bend
        ),
        ActivePairs(
            axes2(real, layout, 24),  # A
            axes1(real, layout, 25),  # b
            axes1(whole, layout, 26),  # row
            axes1(real, layout, 27),  # need
        ),
        AvoidanceWorkspace(
            DistanceScratch(
                axes2(real, layout, 28), axes2(real, layout, 29), axes1(real, layout, 30), axes2(real, layout, 31)
            ),
            axes1(whole, layout, 32),  # found
            axes2(real, layout, 33),  # values
            axes1(real, layout, 34),  # room
            axes1(real, layout, 35),  # value
            axes1(whole, layout, 36),  # nearest
            axes1(real, layout, 37),  # later
        ),
    )
