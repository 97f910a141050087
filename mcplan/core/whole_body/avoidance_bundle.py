"""Constants and state of collision avoidance, each in one bundle that is passed to the kernel."""

from typing import NamedTuple

import numpy as np

from mcplan.core.bundle import Bundle, axes1, axes2, bundle, flat
from mcplan.core.distance.many import DistanceScratch
from mcplan.core.distance.watch import DistanceWatch
from mcplan.core.jit import jit_inline
from mcplan.core.rigid_body.tree import Tree
from mcplan.core.whole_body.corner_rows import Faces

TEST_DISTANCE, ROW_DISTANCE, PREDICTION_TIME, MAX_RISE, CEILING, RECOVERY, MAX_ONSET, RULE_SIZE = range(8)
"""Entries of ``AvoidanceConstants.rule``: distance within which pairs are tested (m); room within which they get a row
(m); prediction time (s); largest increase of the required distance (m per tick); ``ceiling`` and ``recovery`` of
``fill_avoidance_rows``; largest increase of the acceleration that a pair requires (m/s² per tick)."""


class AvoidanceConstants(NamedTuple):
    """Constants of a run. All arrays are read-only."""

    tree: Tree
    pairs: np.ndarray  # (P, 2) int64 shapes
    rule: np.ndarray  # (RULES,)
    faces: Faces
    group: np.ndarray  # (P,) int64, the same for pairs of shapes of the same two bodies


class AvoidanceTargets(NamedTuple):
    """Required distances of the pairs, and the objects that move."""

    goal: np.ndarray  # (P,) m, target distance
    braking: np.ndarray  # (P,) m/s², available deceleration of the distance
    included: np.ndarray  # (P,) int64, 0: the pair is ignored
    over_face: np.ndarray  # (P,) int64, 1 for links over surfaces that they do not rest on
    required: np.ndarray  # (P,) m, last required distance
    required_tick: np.ndarray  # (P,) int64, tick of ``required``
    column: np.ndarray  # (S,) int64, first entry in v of the object that a shape belongs to, -1 for all other shapes
    position: np.ndarray  # (S, 3) m, positions of these objects
    acceleration: np.ndarray  # (P,) m/s², last required acceleration
    acceleration_tick: np.ndarray  # (P,) int64, tick of ``acceleration``


class AvoidanceCandidates(NamedTuple):
    """Rows of near pairs, each for the nearest points of a pair or for a corner above a face."""

    pair: np.ndarray  # (n,) int64
    index: np.ndarray  # (n,) int64, index among the pairs found, or CORNER
    room: np.ndarray  # (n,) m, distance minus the required distance
    rates: np.ndarray  # (n, nv) gradients of the room
    curvature: np.ndarray  # (n,) m/s², second derivative of the room at constant velocity


class ActivePairs(NamedTuple):
    """Rows of the program, ``A vd >= b``: the most demanding candidates."""

    A: np.ndarray  # (slots, nv)
    b: np.ndarray  # (slots,)
    row: np.ndarray  # (slots,) int64, their indices in AvoidanceCandidates
    required: np.ndarray  # (slots,) m/s², scratch: required accelerations


class AvoidanceWorkspace(NamedTuple):
    """Scratch space."""

    scratch: DistanceScratch
    found: np.ndarray  # (P,) int64
    values: np.ndarray  # (P, 10) of the pairs found, see ``core.distance.pair``
    room: np.ndarray  # (P,) m, of the pairs found
    value: np.ndarray  # (10,)
    nearest: np.ndarray  # (MAX_CORNERS,) int64
    q_predicted: np.ndarray  # (nq,)


class AvoidanceState(NamedTuple):
    """Arrays that change from tick to tick."""

    targets: AvoidanceTargets
    watch: DistanceWatch
    candidates: AvoidanceCandidates
    active: ActivePairs
    work: AvoidanceWorkspace


def pack_constants(constants: AvoidanceConstants) -> Bundle:
    """Return the bundle of the constants."""
    return bundle(flat(constants))[0]


def pack_state(state: AvoidanceState) -> tuple[Bundle, AvoidanceTargets, AvoidanceCandidates, ActivePairs]:
    """Return the bundle of the state, and the views that code outside of kernels reads or writes."""
    packed, views = bundle(flat(state))
    rest = iter(views)
    targets, _, near, active = [type(part)(*(next(rest) for _ in flat(part))) for part in state[:4]]
    return packed, targets, near, active


@jit_inline
def unpack_constants(packed):
    """Unpack the constants."""
    real, integer, layout = packed
    return AvoidanceConstants(
        Tree(axes2(integer, layout, 0), axes2(real, layout, 1), axes2(real, layout, 2), axes1(real, layout, 3)),
        axes2(integer, layout, 4),  # pairs
        axes1(real, layout, 5),  # rule
        Faces(axes2(integer, layout, 6), axes2(real, layout, 7), axes2(real, layout, 8)),
        axes1(integer, layout, 9),  # group
    )


@jit_inline
def unpack_state(packed):
    """Unpack the state."""
    real, integer, layout = packed
    return AvoidanceState(
        AvoidanceTargets(
            axes1(real, layout, 0),  # goal
            axes1(real, layout, 1),  # braking
            axes1(integer, layout, 2),  # included
            axes1(integer, layout, 3),  # over_face
            axes1(real, layout, 4),  # required
            axes1(integer, layout, 5),  # required_tick
            axes1(integer, layout, 6),  # column
            axes2(real, layout, 7),  # position
            axes1(real, layout, 8),  # acceleration
            axes1(integer, layout, 9),  # acceleration_tick
        ),
        DistanceWatch(
            axes1(real, layout, 10),  # q
            axes2(real, layout, 11),  # world_poses
            axes1(real, layout, 12),  # reach
            axes1(real, layout, 13),  # motion
            axes1(integer, layout, 14),  # size
            axes1(integer, layout, 15),  # pairs
            axes1(real, layout, 16),  # clearance
            axes1(integer, layout, 17),  # needed
            axes1(real, layout, 18),  # value
        ),
        AvoidanceCandidates(
            axes1(integer, layout, 19),  # pair
            axes1(integer, layout, 20),  # index
            axes1(real, layout, 21),  # room
            axes2(real, layout, 22),  # rates
            axes1(real, layout, 23),  # curvature
        ),
        ActivePairs(
            axes2(real, layout, 24),  # A
            axes1(real, layout, 25),  # b
            axes1(integer, layout, 26),  # row
            axes1(real, layout, 27),  # required
        ),
        AvoidanceWorkspace(
            DistanceScratch(
                axes2(real, layout, 28), axes2(real, layout, 29), axes1(real, layout, 30), axes2(real, layout, 31)
            ),
            axes1(integer, layout, 32),  # found
            axes2(real, layout, 33),  # values
            axes1(real, layout, 34),  # room
            axes1(real, layout, 35),  # value
            axes1(integer, layout, 36),  # nearest
            axes1(real, layout, 37),  # q_predicted
        ),
    )
