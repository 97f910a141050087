"""What collision avoidance knows and keeps, each out of the one bundle that crosses to the kernel."""

from typing import NamedTuple

import numpy as np

from mcplan.core.bundle import Bundle, bundle, flat, real1, real2, whole1, whole2
from mcplan.core.corner_rows import Faces
from mcplan.core.distance_pairs import Scratch
from mcplan.core.distance_watch import Watch
from mcplan.core.jit import jit_inline
from mcplan.core.tree import Tree

MARGIN, REACH, AHEAD, RISE, BRAKING, CEILING, RECOVERY, RULES = range(8)
"""Places in ``Around.rule``: distance within which pairs are seen, room within which they get a row (m), time over
which motions are foreseen (s), most by which what is asked rises (m per tick); ``braking``, ``ceiling`` and
``recovery`` of ``fill_avoidance_rows``."""


class Around(NamedTuple):
    """What stays. All arrays are read-only."""

    tree: Tree
    pairs: np.ndarray  # (P, 2) int64 shapes
    rule: np.ndarray  # (RULES,)
    faces: Faces


class Aims(NamedTuple):
    """What is asked of the pairs, and the objects that move."""

    goal: np.ndarray  # (P,) m, distance to keep
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
    return Around(
        Tree(whole2(packed, 0), real2(packed, 1), real2(packed, 2), real1(packed, 3)),
        whole2(packed, 4),  # pairs
        real1(packed, 5),  # rule
        Faces(whole2(packed, 6), real2(packed, 7), real2(packed, 8)),
    )


@jit_inline
def open_memory(packed):
    """Return the memory out of its bundle."""
    return Memory(
        Aims(
            real1(packed, 0),  # goal
            whole1(packed, 1),  # wanted
            whole1(packed, 2),  # flat
            real1(packed, 3),  # asked
            whole1(packed, 4),  # seen
            whole1(packed, 5),  # column
            real2(packed, 6),  # middle
        ),
        Watch(
            real1(packed, 7),  # q
            real2(packed, 8),  # around
            real1(packed, 9),  # reach
            real1(packed, 10),  # moved
            whole1(packed, 11),  # size
            whole1(packed, 12),  # pairs
            real1(packed, 13),  # spare
            whole1(packed, 14),  # needed
            real1(packed, 15),  # value
        ),
        Near(
            whole1(packed, 16),  # pair
            whole1(packed, 17),  # at
            real1(packed, 18),  # room
            real2(packed, 19),  # rates
            real1(packed, 20),  # bend
        ),
        Chosen(
            real2(packed, 21),  # A
            real1(packed, 22),  # b
            whole1(packed, 23),  # row
            real1(packed, 24),  # need
        ),
        Space(
            Scratch(real2(packed, 25), real2(packed, 26), real1(packed, 27), real2(packed, 28)),
            whole1(packed, 29),  # found
            real2(packed, 30),  # values
            real1(packed, 31),  # room
            real1(packed, 32),  # value
            whole1(packed, 33),  # nearest
            real1(packed, 34),  # later
        ),
    )
