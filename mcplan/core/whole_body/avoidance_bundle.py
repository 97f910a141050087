"""What collision avoidance knows and keeps, each out of the one bundle that crosses to the kernel."""

from typing import NamedTuple

import numpy as np

from mcplan.core.bundle import Bundle, axes1, axes2, bundle, flat
from mcplan.core.distance.many import Scratch
from mcplan.core.distance.watch import Watch
from mcplan.core.jit import jit_inline
from mcplan.core.rigid_body.tree import Tree
from mcplan.core.whole_body.corner_rows import Faces

MARGIN, REACH, AHEAD, RISE, CEILING, RECOVERY, RULES = range(7)
"""Places in ``Around.rule``: distance within which pairs are seen, room within which they get a row (m), time over
which motions are foreseen (s), most by which what is asked rises (m per tick); ``ceiling`` and ``recovery`` of
``fill_avoidance_rows``."""


class Around(NamedTuple):
    """What stays. All arrays are read-only."""

    tree: Tree
    pairs: np.ndarray  # (P, 2) int64 shapes
    rule: np.ndarray  # (RULES,)
    faces: Faces
    group: np.ndarray  # (P,) int64, the same for pairs of shapes of the same two bodies


class Aims(NamedTuple):
    """What is asked of the pairs, and the objects that move."""

    goal: np.ndarray  # (P,) m, distance to keep
    braking: np.ndarray  # (P,) m/s², deceleration of the distance that is counted on
    wanted: np.ndarray  # (P,) int64, 0: nothing is asked
    flat: np.ndarray  # (P,) int64, 1 for links over surfaces that they do not rest on
    asked: np.ndarray  # (P,) m, what was asked last
    seen: np.ndarray  # (P,) int64, the tick in which that was
    column: np.ndarray  # (S,) int64, first entry in v of the object that a shape belongs to, -1 for all other shapes
    middle: np.ndarray  # (S, 3) m, where those objects are


class Near(NamedTuple):
    """Rows of what is near: nearest points of pairs, or corners above faces."""

    pair: np.ndarray  # (n,) int64
    at: np.ndarray  # (n,) int64, place among the pairs found, or CORNER
    room: np.ndarray  # (n,) m, above what is asked
    rates: np.ndarray  # (n, nv) gradients of the room
    bend: np.ndarray  # (n,) m/s², what a velocity alone adds to its second derivative


class Chosen(NamedTuple):
    """Those that ask for most: ``A vd >= b``."""

    A: np.ndarray  # (slots, nv)
    b: np.ndarray  # (slots,)
    row: np.ndarray  # (slots,) int64, their places in Near
    need: np.ndarray  # (slots,) m/s², scratch


class Space(NamedTuple):
    """Scratch space."""

    scratch: Scratch
    found: np.ndarray  # (P,) int64
    values: np.ndarray  # (P, 10) of the pairs found, see ``core.distance``
    room: np.ndarray  # (P,) m, of the pairs found
    value: np.ndarray  # (10,)
    nearest: np.ndarray  # (MOST,) int64
    later: np.ndarray  # (nq,)


class Memory(NamedTuple):
    """All that changes from tick to tick."""

    aims: Aims
    watch: Watch
    near: Near
    chosen: Chosen
    space: Space


def close_around(around: Around) -> Bundle:
    """Return the bundle of what stays."""
    return bundle(flat(around))[0]


def close_memory(memory: Memory) -> tuple[Bundle, Aims, Near, Chosen]:
    """Return the bundle of a memory, and what is read or written outside of kernels as it is there."""
    packed, views = bundle(flat(memory))
    rest = iter(views)
    aims, _, near, chosen = [type(part)(*(next(rest) for _ in flat(part))) for part in memory[:4]]
    return packed, aims, near, chosen


@jit_inline
def open_around(packed):
    """Return what stays out of its bundle."""
    real, whole, layout = packed
    return Around(
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
    return Memory(
        Aims(
            axes1(real, layout, 0),  # goal
            axes1(real, layout, 1),  # braking
            axes1(whole, layout, 2),  # wanted
            axes1(whole, layout, 3),  # flat
            axes1(real, layout, 4),  # asked
            axes1(whole, layout, 5),  # seen
            axes1(whole, layout, 6),  # column
            axes2(real, layout, 7),  # middle
        ),
        Watch(
            axes1(real, layout, 8),  # q
            axes2(real, layout, 9),  # around
            axes1(real, layout, 10),  # reach
            axes1(real, layout, 11),  # moved
            axes1(whole, layout, 12),  # size
            axes1(whole, layout, 13),  # pairs
            axes1(real, layout, 14),  # spare
            axes1(whole, layout, 15),  # needed
            axes1(real, layout, 16),  # value
        ),
        Near(
            axes1(whole, layout, 17),  # pair
            axes1(whole, layout, 18),  # at
            axes1(real, layout, 19),  # room
            axes2(real, layout, 20),  # rates
            axes1(real, layout, 21),  # bend
        ),
        Chosen(
            axes2(real, layout, 22),  # A
            axes1(real, layout, 23),  # b
            axes1(whole, layout, 24),  # row
            axes1(real, layout, 25),  # need
        ),
        Space(
            Scratch(axes2(real, layout, 26), axes2(real, layout, 27), axes1(real, layout, 28), axes2(real, layout, 29)),
            axes1(whole, layout, 30),  # found
            axes2(real, layout, 31),  # values
            axes1(real, layout, 32),  # room
            axes1(real, layout, 33),  # value
            axes1(whole, layout, 34),  # nearest
            axes1(real, layout, 35),  # later
        ),
    )
