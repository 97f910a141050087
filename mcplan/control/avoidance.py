"""Collision avoidance of the controller: constraint rows of the whole-body program for nearby pairs of bodies."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mcplan.collision.model import ALLOWED_PENETRATION, CollisionModel, faces_of
from mcplan.control.motion import AnyPosture, Motion
from mcplan.core.distance.pair import PAIR_SIZE
from mcplan.core.distance.shape import BODY
from mcplan.core.distance.watch import new_watch
from mcplan.core.whole_body import avoidance_bundle as keep
from mcplan.core.whole_body.avoidance import NOT_FINITE, avoid
from mcplan.core.whole_body.corner_rows import MOST
from mcplan.errors import InputError
from mcplan.motion.limb_path import Pose
from mcplan.motion.spline import PostureSample
from mcplan.motion.time_parameterization import TimedPath
from mcplan.planning.transition.nearness import CLEARANCE_PER_DISTANCE
from mcplan.robot.link_solids import new_scratch
from mcplan.robot.robot import Robot
from mcplan.robot.terms import Terms
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.settings.control import ControlSettings
from mcplan.util.arrays import read_only
from mcplan.whole_body.collision_avoidance import RETURN, STOPPING, row_names
from mcplan.whole_body.packed import is_unchanged

PASSING = 0.75 * ALLOWED_PENETRATION
"""How much less a link may overlap a support that it passes than one that it rests on (m): the rows are linear, and a
moving link goes slightly beyond them."""

WATCHED_DISTANCE_M = 0.03
"""m: pairs nearer than the clearance plus this get rows. Enough to stop from 0.4 m/s, for a robot of the size of
HRP-2."""

PARTING = 0.02
"""Speed at which a link gains its clearance after it has left its support (m/s)."""

PLANNED = 1e-3
"""How much nearer than planned a pair may come (m): references are not tracked exactly."""

APART = 1e-3
"""Least distance between links that must not touch, however near they are planned (m).

It exceeds the error of the rows: the speed follows its bound late, so a link that approaches at 0.1 m/s overshoots by
0.55 mm.
"""

HOVER = 2.5e-4
"""Distance above its support of a patch that waits until another patch of its limb touches (m).

It must stay below the touch tolerance: with a joint at its limit, toes go down with their knee, and toes held higher
would keep the knee off its contact.
"""

GENTLE = 0.5
"""m/s²: braking deceleration of such a patch. The speed follows its bound late: a harder stop would overshoot by more
than `HOVER`."""

RESPONSE = 0.02
"""Time constant with which the approach speed follows its bound (s); one control period would cause a torque peak."""

MOST_ASKED = 20.0
"""m/s²: largest acceleration that a row demands."""

ONSET = 1e3
"""m/s³: largest rate of the acceleration that a row demands. A foot that passes an edge at 1 m/s comes into range
within one tick: torques would jump by 50 N m."""

LOOKS = 96
"""Number of samples at which the distances along a planned motion are computed: between its knots bodies may come
closer. They are spread over the ticks of the first half of the motion."""

QUICKER = 1.5
"""Safety factor on the deceleration with which a planned motion approaches: no motion is tracked exactly."""

Knots = np.ndarray | Sequence[np.ndarray]
"""Knots of a posture curve (k, 7+n)."""


def _distance(terms: Terms, contact: Contact) -> float:
    """Return the distance of a patch from its contact (m); for a ball, from its contact after rolling."""
    frame = terms.frame(contact.patch)
    return math.dist(frame.p, contact.p + contact.rolled(frame.R) if contact.radius else contact.p)


class _Ends(NamedTuple):
    """Distances at both ends of a motion: goals of all pairs (P,), and the pairs that are near at its end (k,).

    ``knots`` is kept because the cache is keyed by its identity.
    """

    knots: Knots
    goal: np.ndarray
    near: np.ndarray


class Avoidance:
    """Keep links off each other and the environment, whatever the references demand: a ``Limit``.

    The goal of a pair is the distance that it has to keep:

    - ``clearance``, or the least distance along the planned motion where that is smaller. Example: a knee bent to its
      limit at the start opens when the motion opens it, not before.
    - of a link and the support that it rests on, leaves or approaches: contact, with an overlap up to
      ``ALLOWED_PENETRATION``, and less (``PASSING``) while it only passes.
    - none where contacts fix both links.

    A goal never rises faster than ``PARTING``: leaving a support causes no torque peak. A planned motion that
    approaches faster than ``STOPPING`` allows is permitted its own deceleration: a shank that passes the edge of a rung
    is not stopped under it. The distances along a motion are computed at its ends first, then at `LOOKS` samples,
    one or more per tick.

    The rows are those of ``CollisionAvoidance`` for distance minus goal. One kernel computes them; it remembers which
    pairs are far apart, and evaluates a dozen out of hundreds per tick.

    Parameters
    ----------
    robot, environment : the bodies that must not collide.
    settings : ``avoid_*``.
    dt : control period (s).
    """

    frames: tuple[str, ...] = ()

    def __init__(self, robot: Robot, environment: Environment, settings: ControlSettings, dt: float):
        # with touch detection, supports may be lower than in the model
        self._depth = settings.contact.touch_depth if settings.compliant else 0.0
        self._clearance, self._slots = settings.avoidance.clearance, settings.avoidance.pairs
        self._robot, self._model = robot, CollisionModel(robot, environment)
        self._tick = self._near = 0
        surfaces = {surface.name for surface in environment.surfaces}
        self._over = np.array([pair.b in surfaces for pair in self._model.pairs], dtype=bool)
        self._aimed: list = []
        self._dt, self._time, self._next, self._looks = dt, 0.0, LOOKS, 1
        self._seen: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._foreseen: dict[int, _Ends] = {}
        self._fixed: dict[frozenset[Contact], set[int]] = {}
        self._coming: list[tuple[np.ndarray, Contact]] = []
        self._planned: dict[str, Pose] = {}
        self._given = np.zeros(len(self._model.pairs), dtype=bool)
        """Pairs whose goals follow from contacts."""
        rule = np.zeros(keep.RULES)
        self._margin, self._response = WATCHED_DISTANCE_M * robot.scale.leg + self._clearance, max(dt, RESPONSE)
        rule[keep.REACH], rule[keep.MARGIN] = WATCHED_DISTANCE_M * robot.scale.leg, self._margin
        rule[keep.AHEAD], rule[keep.RISE] = self._response, PARTING * dt
        rule[keep.CEILING], rule[keep.RECOVERY], rule[keep.ONSET] = MOST_ASKED, RETURN, ONSET * dt
        faces = faces_of(self._model, environment.surfaces)
        self._around = keep.close_around(
            keep.AvoidanceConstants(robot.tree, self._model.indices, read_only(rule), faces, _groups(self._model))
        )
        self._memory, self._aims, self._rows, self._chosen = keep.close_memory(
            _new_memory(robot, self._model, self._slots, int(self._over.sum()), len(environment.objects))
        )

    def foresee(self, knots: Knots) -> None:
        """Cache the distances at the ends of a later motion, given by its posture knots (k, 7+n); objects stay."""
        self._foreseen[id(knots)] = self._ends(knots, {})

    def expect(self, contacts: Iterable[Contact]) -> None:
        """Cache the pairs that later contacts will fix: too slow for a tick."""
        closed = frozenset(contacts)
        self._fixed[closed] = self._model.fixed_by(closed)

    def update(self, terms: Terms, motion: Motion, objects: Mapping[str, Pose] | None = None) -> None:
        """Compute the rows for the state in ``terms``; call it once per control period.

        ``objects`` gives the poses of objects that have moved, in the order of their velocities in ``terms.v``. The
        rows include the velocity-dependent part of the distance acceleration: a hand that turns while it slides along a
        bar is drawn into it by 1 to 2 m/s².
        """
        self._tick += 1
        self._update_goals(terms, motion, objects or {})
        shapes = self._model.shapes
        if objects:
            shapes = self._model.shapes_at(objects)
            for k, (name, (_, p)) in enumerate(objects.items()):
                i = self._model.place[name]
                self._aims.column[i], self._aims.middle[i] = self._robot.nv + 6 * k, p
        near = avoid(shapes, self._around, self._memory, terms.q, terms.v, self._tick)
        if near == NOT_FINITE:
            raise InputError("q of the collision avoidance is not finite")
        self._near = near

    @property
    def dimension(self) -> int:
        """Number of rows."""
        return self._slots

    @property
    def names(self) -> list[str]:
        """Names of the rows: the pair of each."""
        chosen = self._rows.pair[self._chosen.row[: min(self._near, self._slots)]].tolist()
        return row_names([self._model.pairs[p] for p in chosen], self._slots)

    def rows(self, terms: Terms) -> tuple[np.ndarray, np.ndarray]:
        """Return ``A (m, nv)`` and ``b (m,)`` of the last update, which the next one overwrites."""
        return self._chosen.A[:, : len(terms.v)], self._chosen.b

    def _update_goals(self, terms: Terms, motion: Motion, objects: Mapping[str, Pose]) -> None:
        """Update the goal distance of each pair.

        All goals are reset when contacts or references have changed. The goal between a patch and its next support
        shrinks with their distance: a toe has to clear the edge of the step on which it will stand.
        """
        resting = list(motion.closed)
        now = [
            motion.posture, *resting, None, *motion.released.values(), None, *motion.targets.values(), None,
            *motion.sought, None, *motion.waiting,
        ]  # fmt: skip
        if not is_unchanged(now, self._aimed):
            self._aimed = now
            self._reset_goals(motion, resting, objects)
        elif self._next < LOOKS:
            for _ in range(min(self._looks, LOOKS - self._next)):
                self._relax_goals(foreseen(motion.posture, self._time * self._next / LOOKS))
                self._next += 1
            if self._next == LOOKS:
                self._relax_braking()
        if self._coming:
            # in a motion without rest a foot descends while it moves forward
            distances = [0.0 if motion.passing else _distance(terms, contact) for _, contact in self._coming]
            # the nearest contact last: of several it sets the goal
            for k in sorted(range(len(distances)), key=distances.__getitem__, reverse=True):
                bound = PASSING - ALLOWED_PENETRATION + CLEARANCE_PER_DISTANCE * distances[k]
                self._aims.goal[self._coming[k][0]] = min(self._clearance, bound)

    def _reset_goals(self, motion: Motion, resting: list[Contact], objects: Mapping[str, Pose]) -> None:
        """Reset all goals, and collect the approaching pairs, whose goals change from tick to tick."""
        model, aims, goal = self._model, self._aims, self._aims.goal
        resting = resting + [motion.targets[patch] for patch in sorted(motion.sought) if patch in motion.targets]
        # pairs that contacts fixed had no goal until now, and were near
        aims.seen[aims.wanted == 0] = self._tick - 1
        aims.braking.fill(STOPPING)
        self._planned = dict(objects) | {name: path.end for name, path in motion.objects.items()}
        self._given[:] = False
        self._seen.clear()
        knots = motion.posture.knots
        known = None if self._planned else self._foreseen.get(id(knots))
        ends = known or self._ends(knots, self._planned)
        goal[:] = ends.goal
        between = len(knots) > 2
        self._time = T = motion.posture.end_time - motion.posture.start_time if between else 0.0
        self._next = 1 if between else LOOKS
        # all samples within the first half of the motion: several per tick where ticks are long
        self._looks = max(1, math.ceil(2 * LOOKS * self._dt / T)) if T > 0.0 else 1
        left, held = model.pairs_of(motion.released.values()), model.pairs_of(resting)
        waiting = model.pairs_of(motion.targets[patch] for patch in motion.waiting & motion.targets.keys())
        expected = self._fixed.get(frozenset(motion.closed))
        fixed = model.fixed_by(motion.closed) if expected is None else expected
        goal[list(left)] = PASSING - ALLOWED_PENETRATION
        goal[list(waiting)], aims.braking[list(waiting)] = HOVER, GENTLE
        goal[list(held)] = -ALLOWED_PENETRATION - self._depth
        goal[list(fixed)] = -np.inf
        self._given[[*left, *waiting, *held, *fixed]] = True
        aims.wanted[:] = goal > -np.inf
        # a hand that grasps a bar is planned not to touch it with its link: no lower goal then
        touched = set(ends.near.tolist()) - left - held - fixed - waiting
        coming = [(model.pairs_of([contact]) & touched, contact) for contact in motion.targets.values()]
        self._coming = [(np.array(sorted(pairs)), contact) for pairs, contact in coming if pairs]
        aims.flat[:] = self._over & (goal > -ALLOWED_PENETRATION)
        # a link that bore load touches its support: start from zero distance at least
        np.maximum(aims.asked, np.minimum(goal, 0.0), out=aims.asked)
        aims.asked[aims.wanted == 0] = -np.inf

    def _ends(self, knots: Knots, objects: Mapping[str, Pose]) -> _Ends:
        """Compute the distances at both ends of a motion."""
        goal, near = np.full(len(self._model.pairs), self._clearance), np.zeros(0, np.int64)
        for q in (knots[0], knots[-1]):
            pairs, distance = self._model.nearer(q, self._margin, objects)
            goal[pairs] = np.minimum(goal[pairs], self._allowed_distance(distance))
            near = pairs[distance < self._clearance + PLANNED]
        return _Ends(knots, goal, near)

    def _relax_goals(self, there: PostureSample) -> None:
        """Lower goals to the distances at one sample of the motion, and store the approach speeds there."""
        pairs, distance, rates = self._model.near(there.q, self._margin, self._planned)
        goal = self._aims.goal
        goal[pairs] = np.where(
            self._given[pairs], goal[pairs], np.minimum(goal[pairs], self._allowed_distance(distance))
        )
        self._seen.append((pairs, distance, np.maximum(-rates @ there.v, 0.0)))

    def _allowed_distance(self, distance: np.ndarray) -> np.ndarray:
        """Return the goals of pairs with planned distances (k,); infinity where the clearance applies."""
        near = distance < self._clearance + PLANNED
        return np.where(near, np.clip(distance - PLANNED, APART, self._clearance), np.inf)

    def _relax_braking(self) -> None:
        """Allow pairs the braking deceleration that the sampled motion needs."""
        pairs, distance, coming = (np.concatenate(seen) for seen in zip(*self._seen, strict=True))
        self._seen.clear()  # freeing many small arrays takes time: do it here, not in a tick that resets the goals
        # speed v stops within distance d at v² / 2 (d - T v), as it follows its bound with delay T
        left = np.maximum(distance - self._aims.goal[pairs] - self._response * coming, 1e-9)
        quick = np.clip(0.5 * QUICKER * coming**2 / left, STOPPING, MOST_ASKED)
        free = ~self._given[pairs]
        np.maximum.at(self._aims.braking, pairs[free], quick[free])


def foreseen(posture: AnyPosture, t: float) -> PostureSample:
    """Return the posture of a motion t (s) after its beginning, if the reference clock does not slow it down."""
    return posture.nominal_sample(t) if isinstance(posture, TimedPath) else posture.sample(posture.start_time + t)


def _groups(model: CollisionModel) -> np.ndarray:
    """Return the group number of each pair (P,): pairs of the same two bodies, or body and obstacle, share one."""
    bodies, numbers = model.shapes.index[:, BODY].tolist(), dict[object, int]()
    return read_only(np.array([
        numbers.setdefault((bodies[a], pair.b if bodies[b] < 0 else bodies[b]), len(numbers))
        for (a, b), pair in zip(model.indices.tolist(), model.pairs, strict=True)
    ], np.int64))  # fmt: skip


def _new_memory(robot: Robot, model: CollisionModel, slots: int, over: int, objects: int) -> keep.AvoidanceState:
    """Allocate the kernel's state; ``over`` pairs have a surface below."""
    pairs, shapes, nv = len(model.pairs), len(model.shapes.index), robot.nv + 6 * objects
    most = pairs + (MOST - 1) * over

    def whole(size: int, value: int = 0) -> np.ndarray:
        return np.full(size, value, np.int64)

    aims = keep.AvoidanceTargets(
        np.zeros(pairs), np.full(pairs, STOPPING), whole(pairs, 1), whole(pairs), np.zeros(pairs), whole(pairs),
        whole(shapes, -1), np.zeros((shapes, 3)), np.zeros(pairs), whole(pairs),
    )  # fmt: skip
    near = keep.AvoidanceCandidates(whole(most), whole(most), np.zeros(most), np.zeros((most, nv)), np.zeros(most))
    space = keep.AvoidanceWorkspace(
        new_scratch(robot, shapes, pairs), whole(pairs), np.zeros((pairs, PAIR_SIZE)), np.zeros(pairs),
        np.zeros(PAIR_SIZE), whole(MOST), np.zeros(robot.nq),
    )  # fmt: skip
    chosen = keep.ActivePairs(np.zeros((slots, nv)), np.zeros(slots), whole(slots), np.zeros(slots))
    watch = new_watch(robot.nq, len(robot.tree.topology), shapes, pairs)
    return keep.AvoidanceState(aims, watch, near, chosen, space)
