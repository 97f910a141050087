"""Collision avoidance of the controller: rows of the whole-body program for pairs of nearby bodies."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mcplan.collision.model import ALLOWED_PENETRATION, CollisionModel, faces_of
from mcplan.control.motion import Motion
from mcplan.core.distance.pair import PAIR_SIZE
from mcplan.core.distance.shape import BODY, Shapes
from mcplan.core.distance.watch import new_watch
from mcplan.core.motion.reference import sample_posture
from mcplan.core.whole_body import avoidance_bundle as bundle
from mcplan.core.whole_body.avoidance import NOT_FINITE, avoid
from mcplan.core.whole_body.corner_rows import MAX_CORNERS
from mcplan.core.whole_body.planned_goals import (
    APPROACH_SIZE,
    MIN_DISTANCE_M,
    lower_goals,
    start_goals,
)
from mcplan.errors import InputError
from mcplan.motion.limb_path import Pose
from mcplan.motion.time_parameterization import TimedPath
from mcplan.planning.transition.nearness import CLEARANCE_PER_DISTANCE
from mcplan.robot.link_solids import new_scratch
from mcplan.robot.robot import Robot
from mcplan.robot.terms import Terms
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.settings.control import ControlSettings
from mcplan.util.arrays import read_only
from mcplan.whole_body.collision_avoidance import DECELERATION_M_S2, RECOVERY_TIME_S, row_names
from mcplan.whole_body.packed import is_unchanged

PASSING_OVERLAP_M = 0.75 * ALLOWED_PENETRATION
"""A link may overlap a support that it passes by this much less than one that it rests on (m): the rows are linear, and
a moving link goes slightly beyond them."""

WATCHED_DISTANCE_M = 0.03
"""Pairs nearer than the clearance plus this distance get rows (m, for a robot of HRP-2's size). It is enough to stop
from 0.4 m/s."""

SEPARATION_SPEED_M_S = 0.02
"""Largest rate with which the goal distance of a pair grows, for example after a link has left its support (m/s)."""

WAITING_DISTANCE_M = 2.5e-4
"""Distance above its support of a patch that waits until another patch of its limb touches (m).

It must stay below the touch tolerance: with a joint at its limit, toes descend with their knee, and toes kept higher
would prevent the contact of the knee.
"""

WAITING_DECELERATION_M_S2 = 0.5
"""Braking deceleration of a patch that waits for another one (m/s²). The speed follows its bound late: a harder stop
would overshoot by more than `WAITING_DISTANCE_M`."""

RESPONSE_TIME_S = 0.02
"""Time constant with which the approach speed follows its bound (s); one control period would cause a torque peak."""

MAX_ACCELERATION_M_S2 = 20.0
"""Largest acceleration that a row demands (m/s²)."""

MAX_JERK_M_S3 = 1e3
"""Largest rate of the acceleration that a row demands (m/s³). A foot that passes an edge at 1 m/s comes into range
within one tick: torques would jump by 50 N m."""

SAMPLES = 96
"""Number of samples of a planned motion at which distances are computed, because bodies may come closer between its
knots. The samples are spread over the ticks of the first half of the motion."""

Knots = np.ndarray | Sequence[np.ndarray]
"""Knots of a posture curve (k, 7+n)."""


def _distance(terms: Terms, contact: Contact) -> float:
    """Return the distance of a patch from its contact (m); for a ball, from its contact after rolling."""
    frame = terms.frame(contact.patch)
    target = contact.p + contact.rolled(frame.R) if contact.radius else contact.p
    return math.dist(frame.p.tolist(), target.tolist())  # of arrays it takes three times as long


class _Ends(NamedTuple):
    """Distances at both ends of a motion: goals of all pairs (P,), and indices of the pairs near at its end.

    ``knots`` is kept because the cache is keyed by its identity.
    """

    knots: Knots
    goal: np.ndarray
    near: set[int]


class Avoidance:
    """Collision avoidance of the controller: an `AccelerationLimit` that overrides all references.

    The goal distance of a pair is the distance that the pair has to keep:

    - ``clearance``, or the least distance along the planned motion where that is smaller. Example: a knee bent to its
      limit at the start opens when the motion opens it, not before.
    - negative between a link and the support that it rests on: an overlap up to ``ALLOWED_PENETRATION``. If the link
      leaves or approaches the support, the overlap is smaller by ``PASSING_OVERLAP_M``.
    - minus infinity where contacts fix both links.

    A goal never rises faster than ``SEPARATION_SPEED_M_S``: leaving a support causes no torque peak. A planned motion
    that approaches faster than ``DECELERATION_M_S2`` allows is permitted its own deceleration: a shank that passes the
    edge of a rung is not stopped under it. Distances along a motion are computed at its ends first, then at `SAMPLES`
    samples, one or more per tick.

    The rows are those of ``CollisionAvoidance`` for distance minus goal. One kernel computes them. It remembers
    which pairs are far apart, and evaluates a dozen of hundreds of pairs per tick.

    Parameters
    ----------
    robot, environment : the bodies that must not collide.
    settings : controller settings (``avoidance``).
    dt : control period (s).
    """

    frames: tuple[str, ...] = ()

    def __init__(self, robot: Robot, environment: Environment, settings: ControlSettings, dt: float):
        # with touch detection, supports may be lower than in the model
        self._depth = settings.contact.touch_depth if settings.compliant else 0.0
        self._clearance, self._slots = settings.avoidance.clearance, settings.avoidance.pairs
        self._robot, self._model = robot, CollisionModel(robot, environment)
        self.tick = self.near_count = 0
        surfaces = {surface.name for surface in environment.surfaces}
        self._on_surface = np.array([pair.b in surfaces for pair in self._model.pairs], dtype=bool)
        self._last_inputs: tuple = ()
        self._dt, self._time, self._next_sample, self._samples_per_tick = dt, 0.0, SAMPLES, 1
        self._cached_ends: dict[int, _Ends] = {}
        self._fixed: dict[frozenset[Contact], set[int]] = {}
        self._approaching: list[tuple[np.ndarray, Contact]] = []
        self._planned_shapes = self._model.shapes
        self._margins = np.zeros(len(self._model.pairs))
        """Minus infinity for pairs whose goals follow from contacts, not from the plan (m)."""
        self._approaches, self._approach_count = np.empty((SAMPLES * len(self._model.pairs), APPROACH_SIZE)), 0
        rule = np.zeros(bundle.RULE_SIZE)
        self._margin = WATCHED_DISTANCE_M * robot.scale.leg + self._clearance
        rule[bundle.ROW_DISTANCE], rule[bundle.TEST_DISTANCE] = WATCHED_DISTANCE_M * robot.scale.leg, self._margin
        rule[bundle.PREDICTION_TIME], rule[bundle.MAX_RISE] = max(dt, RESPONSE_TIME_S), SEPARATION_SPEED_M_S * dt
        rule[bundle.CEILING], rule[bundle.RECOVERY], rule[bundle.MAX_ONSET] = (
            MAX_ACCELERATION_M_S2,
            RECOVERY_TIME_S,
            MAX_JERK_M_S3 * dt,
        )
        faces = faces_of(self._model, environment.surfaces)
        self._constants = bundle.pack_constants(
            bundle.AvoidanceConstants(
                robot.tree, self._model.indices, read_only(rule), faces, _group_numbers(self._model)
            )
        )
        self._state, self._targets, self._candidates, self._active_pairs = bundle.pack_state(
            _new_state(robot, self._model, self._slots, int(self._on_surface.sum()), len(environment.objects))
        )
        self._rows = self._active_pairs.A, self._active_pairs.b

    def cache_end_distances(self, knots: Knots) -> None:
        """Cache, before a run, the distances at both ends of a motion with knots (k, 7+n) that moves no object."""
        self._cached_ends[id(knots)] = self._ends(knots)

    def cache_fixed_pairs(self, contacts: Iterable[Contact]) -> None:
        """Cache the pairs that later contacts will fix, because computing them takes longer than a tick."""
        closed = frozenset(contacts)
        self._fixed[closed] = self._model.fixed_by(closed)

    def update(self, terms: Terms, motion: Motion, objects: Mapping[str, Pose] | None = None) -> None:
        """Compute the rows for the state in ``terms``; call it once per control period.

        ``objects`` gives the poses of objects that have moved, in the order of their velocities in ``terms.v``. The
        rows include the velocity-dependent part of the distance acceleration: a hand that turns while it slides along a
        bar is drawn into it by 1 to 2 m/s².
        """
        shapes = self.begin(terms, motion, objects)
        count = avoid(*shapes, *self.arguments, terms.q, terms.v, self.tick)
        if count == NOT_FINITE:
            raise InputError("q of the collision avoidance is not finite")
        self.near_count = count

    def begin(self, terms: Terms, motion: Motion, objects: Mapping[str, Pose] | None = None) -> Shapes:
        """Begin a control period: update the goals, and return the shapes for the kernel ``avoid``, which follows."""
        self.tick += 1
        self._update_goals(terms, motion, objects or {})
        for k, (name, (_, p)) in enumerate((objects or {}).items()):
            i = self._model.shape_index[name]
            self._targets.column[i], self._targets.position[i] = self._robot.nv + 6 * k, p
        return self._model.shapes_at(objects) if objects else self._model.shapes

    @property
    def arguments(self) -> tuple:
        """Arguments of the kernel ``avoid`` between shapes and state."""
        return *self._constants, *self._state

    @property
    def dimension(self) -> int:
        """Number of rows."""
        return self._slots

    @property
    def names(self) -> list[str]:
        """Names of the rows: the pair of each."""
        pairs = self._candidates.pair[self._active_pairs.row[: min(self.near_count, self._slots)]].tolist()
        return row_names([self._model.pairs[p] for p in pairs], self._slots)

    def rows(self, terms: Terms) -> tuple[np.ndarray, np.ndarray]:
        """Return ``A (m, nv)`` and ``b (m,)`` of the last update, which the next one overwrites."""
        nv = len(terms.v)
        if nv != self._rows[0].shape[1]:
            self._rows = self._active_pairs.A[:, :nv], self._active_pairs.b
        return self._rows

    def _update_goals(self, terms: Terms, motion: Motion, objects: Mapping[str, Pose]) -> None:
        """Update the goal distance of each pair.

        All goals are reset when contacts or references have changed. The goal between a patch and its next support
        shrinks with their distance: a toe has to clear the edge of the step on which it will stand.
        """
        inputs = (
            motion.posture, motion.closed, *motion.released.values(), None, *motion.targets.values(), None,
            *motion.descending_patches, None, *motion.waiting_patches,
        )  # fmt: skip
        if not is_unchanged(inputs, self._last_inputs):
            self._last_inputs = inputs
            self._reset_goals(motion, list(motion.closed), objects)
        elif self._next_sample < SAMPLES:
            for _ in range(min(self._samples_per_tick, SAMPLES - self._next_sample)):
                self._sample(motion.posture)
        if self._approaching:
            # in a motion without rest a foot descends while it moves forward
            distances = [0.0 if motion.passing else _distance(terms, contact) for _, contact in self._approaching]
            # the nearest contact last: of several it sets the goal
            for k in sorted(range(len(distances)), key=distances.__getitem__, reverse=True) if distances[1:] else (0,):
                bound = PASSING_OVERLAP_M - ALLOWED_PENETRATION + CLEARANCE_PER_DISTANCE * distances[k]
                self._targets.goal[self._approaching[k][0]] = min(self._clearance, bound)

    def _reset_goals(self, motion: Motion, resting: list[Contact], objects: Mapping[str, Pose]) -> None:
        """Reset all goals, and collect the approaching pairs, whose goals change from tick to tick."""
        model, aims, goal = self._model, self._targets, self._targets.goal
        resting = resting + [
            motion.targets[patch] for patch in sorted(motion.descending_patches) if patch in motion.targets
        ]
        aims.braking.fill(DECELERATION_M_S2)
        object_poses = dict(objects) | {name: path.end for name, path in motion.objects.items()}
        self._planned_shapes, self._approach_count = model.shapes_at(object_poses), 0
        knots = motion.posture.knots
        cached = None if object_poses else self._cached_ends.get(id(knots))
        ends = cached or self._ends(knots)
        goal[:] = ends.goal
        self._margins.fill(self._margin)
        has_inner_knots = len(knots) > 2
        self._time = T = motion.posture.end_time - motion.posture.start_time if has_inner_knots else 0.0
        self._next_sample = 1 if has_inner_knots else SAMPLES
        # all samples within the first half of the motion: several per tick if the control period is long
        self._samples_per_tick = max(1, math.ceil(2 * SAMPLES * self._dt / T)) if T > 0.0 else 1
        released_pairs, resting_pairs = model.pairs_of(motion.released.values()), model.pairs_of(resting)
        waiting_pairs = model.pairs_of(
            motion.targets[patch] for patch in motion.waiting_patches & motion.targets.keys()
        )
        cached_fixed = self._fixed.get(frozenset(motion.closed))
        fixed_pairs = model.fixed_by(motion.closed) if cached_fixed is None else cached_fixed
        if waiting_pairs:
            aims.braking[list(waiting_pairs)] = WAITING_DECELERATION_M_S2
        near_at_end = ends.near
        for pairs, value in (
            (released_pairs, PASSING_OVERLAP_M - ALLOWED_PENETRATION), (waiting_pairs, WAITING_DISTANCE_M),
            (resting_pairs, -ALLOWED_PENETRATION - self._depth), (fixed_pairs, -np.inf),
        ):  # fmt: skip
            if pairs:
                index = list(pairs)
                goal[index], self._margins[index] = value, -np.inf
                near_at_end = near_at_end - pairs
        # a hand that grasps a bar is planned not to touch it with its link: no lower goal then
        approaching = [(model.pairs_of([contact]) & near_at_end, contact) for contact in motion.targets.values()]
        self._approaching = [(np.array(sorted(pairs)), contact) for pairs, contact in approaching if pairs]
        start_goals(*self._state, self._on_surface, -ALLOWED_PENETRATION, self.tick)

    def _ends(self, knots: Knots) -> _Ends:
        """Compute the distances at both ends of a motion; all goals and margins change."""
        goal, at_rest = self._targets.goal, np.zeros(self._robot.nv)
        goal.fill(np.inf)
        self._margins.fill(self._margin)
        self._lower_goals(np.array(knots[-1]), at_rest)
        near = set(np.flatnonzero(goal <= max(self._clearance, MIN_DISTANCE_M)).tolist())
        self._lower_goals(np.array(knots[0]), at_rest)
        return _Ends(knots, np.minimum(goal, self._clearance), near)

    def _lower_goals(self, q: np.ndarray, v: np.ndarray, rate: float = 1.0) -> None:
        """Lower goals to the distances in one sample of a motion: q (nq,), and v (nv,) at the path rate 1."""
        self._approach_count = lower_goals(
            *self._planned_shapes, *self._constants, *self._state, self._margins, self._approaches,
            self._approach_count, q, v, rate, self._next_sample == SAMPLES,
        )  # fmt: skip

    def _sample(self, posture: Any) -> None:
        """Lower goals to the distances at the next sample of a motion, with the reference clock not slowed down."""
        t, path = self._time * self._next_sample / SAMPLES, getattr(posture, "path", posture)
        s, rate, _ = posture.law.at(t) if isinstance(posture, TimedPath) else (posture.start_time + t, 1.0, 0.0)
        sample_posture(*path.arrays, s, *path.workspace)
        self._next_sample += 1
        self._lower_goals(path.workspace[1], path.workspace[2], rate)


def _group_numbers(model: CollisionModel) -> np.ndarray:
    """Return the group number of each pair (P,): pairs of the same two bodies, or body and obstacle, share one."""
    bodies, numbers = model.shapes.index[:, BODY].tolist(), dict[object, int]()
    return read_only(np.array([
        numbers.setdefault((bodies[a], pair.b if bodies[b] < 0 else bodies[b]), len(numbers))
        for (a, b), pair in zip(model.indices.tolist(), model.pairs, strict=True)
    ], np.int64))  # fmt: skip


def _new_state(
    robot: Robot, model: CollisionModel, slots: int, surface_pairs: int, objects: int
) -> bundle.AvoidanceState:
    """Allocate the state of the kernel; ``surface_pairs`` pairs are a link and a surface."""
    pairs, shapes, nv = len(model.pairs), len(model.shapes.index), robot.nv + 6 * objects
    max_candidates = pairs + (MAX_CORNERS - 1) * surface_pairs

    def integers(size: int, value: int = 0) -> np.ndarray:
        """Return an integer array filled with a value."""
        return np.full(size, value, np.int64)

    targets = bundle.AvoidanceTargets(
        np.zeros(pairs), np.full(pairs, DECELERATION_M_S2), integers(pairs, 1), integers(pairs), np.zeros(pairs),
        integers(pairs), integers(shapes, -1), np.zeros((shapes, 3)), np.zeros(pairs), integers(pairs),
    )  # fmt: skip
    candidates = bundle.AvoidanceCandidates(
        integers(max_candidates),
        integers(max_candidates),
        np.zeros(max_candidates),
        np.zeros((max_candidates, nv)),
        np.zeros(max_candidates),
    )
    workspace = bundle.AvoidanceWorkspace(
        new_scratch(robot, shapes, pairs), integers(pairs), np.zeros((pairs, PAIR_SIZE)), np.zeros(pairs),
        np.zeros(PAIR_SIZE), integers(MAX_CORNERS), np.zeros(robot.nq),
    )  # fmt: skip
    active = bundle.ActivePairs(np.zeros((slots, nv)), np.zeros(slots), integers(slots), np.zeros(slots))
    watch = new_watch(robot.nq, len(robot.tree.topology), shapes, pairs)
    return bundle.AvoidanceState(targets, watch, candidates, active, workspace)
