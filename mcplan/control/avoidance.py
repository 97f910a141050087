"""Collision avoidance of the controller: the pairs that are near, as rows of the whole-body program."""

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
from mcplan.motion.posture import PostureSample
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
"""How much less a link may overlap a support that it passes than one that it rests on (m)."""

WATCHED_DISTANCE_M = 0.03
"""Pairs nearer than this beyond the clearance are watched: room to stop from 0.4 m/s, for a robot of the size of
HRP-2."""

PARTING = 0.02
"""Speed at which a link that has left its support is asked to gain its clearance (m/s)."""

PLANNED = 1e-3
"""How much nearer than in the postures of its motion a pair may come (m): references are not followed exactly."""

APART = 1e-3
"""What is left between links that are not to touch, however near they are planned (m).

The rows miss by less: as the speed follows its bound late, a link that comes on at 0.1 m/s goes 0.55 mm too far.
"""

HOVER = 2.5e-4
"""What is left under a patch that waits until another one of its limb touches (m).

A joint at its limit takes toes down with their knee: more than a touch may be off would keep the knee from its place.
"""

GENTLE = 0.5
"""m/s², the deceleration with which such a patch is stopped: the speed follows its bound late, a quick stop would go
farther than it is to hover."""

RESPONSE = 0.02
"""Time within which the speed of approach follows its bound (s); one control period would mean a blow."""

MOST_ASKED = 20.0
"""m/s², the most that a row asks for."""

ONSET = 1e3
"""m/s³, how fast what a row asks for rises: a foot that passes an edge at 1 m/s is within reach from one tick to the
next, and torques would jump by 50 N m."""

LOOKS = 96
"""Times at which a planned motion is looked at: between its knots bodies may pass each other more closely, and as many
of them are made in a tick that all are over before half of the motion is."""

QUICKER = 1.5
"""How many times the deceleration with which a planned motion stops a distance is counted on: no motion is followed
exactly."""

Knots = np.ndarray | Sequence[np.ndarray]
"""Those of a posture (k, 7+n)."""


def _way(terms: Terms, contact: Contact) -> float:
    """Return how far a patch is from its place (m); a ball from where it touches with its link as it is turned."""
    frame = terms.frame(contact.patch)
    return math.dist(frame.p, contact.p + contact.rolled(frame.R) if contact.radius else contact.p)


class _Ends(NamedTuple):
    """What a motion has at its ends: how near each pair may come for them (P,), and which are near at its end (k,).

    It keeps the knots, by whose identity it is found again.
    """

    knots: Knots
    goal: np.ndarray
    near: np.ndarray


class Avoidance:
    """Keeps links from each other and from the environment, whatever the references ask for: a ``Limit``.

    A link may touch the support that it rests on, comes from, or goes to when it is its turn; it stays
    ``clearance`` off all else, or as far as its motion is planned to be where that comes nearest: a knee that is
    bent as far as it goes at the start of a motion parts when the motion takes it along, not before. And they come on
    as quickly as they are planned to, where ``STOPPING`` would not allow it: a shank that passes the edge of a rung is
    not held back under it. A motion is looked at `LOOKS` times after its ends, once per tick or more. Nothing is asked
    of links that contacts hold where they are. While it only passes that support, it is held closer to the surface than
    the overlap which a link at rest is allowed (``ALLOWED_PENETRATION``), because the rows are linear and a moving link
    goes a little beyond them. What is asked of a pair never rises faster than ``PARTING``, so that leaving a support is
    no blow either.

    The rows are those of ``CollisionAvoidance`` for what a distance has left above what is asked, made by one kernel
    that remembers which pairs have been far: a dozen out of hundreds are looked at in a tick.

    Parameters
    ----------
    robot, environment : what must not collide.
    settings : ``avoid_*``.
    dt : control period (s).
    """

    frames: tuple[str, ...] = ()

    def __init__(self, robot: Robot, environment: Environment, settings: ControlSettings, dt: float):
        # where supports are felt, they may be lower than the model has them
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
        """Pairs whose goals contacts give."""
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
        """Look at the ends of a motion that comes, by the knots (k, 7+n) of its posture; objects stay."""
        self._foreseen[id(knots)] = self._ends(knots, {})

    def expect(self, contacts: Iterable[Contact]) -> None:
        """Find what contacts will hold: no tick has the time for it."""
        closed = frozenset(contacts)
        self._fixed[closed] = self._model.fixed_by(closed)

    def update(self, terms: Terms, motion: Motion, objects: Mapping[str, Pose] | None = None) -> None:
        """Make the rows for the state of the terms; to be called once per control period.

        ``objects`` gives the poses of those that are not where they were at the start, in the order of their
        velocities in ``terms.v``. What the velocity alone adds to the distances counts: a hand that turns while it
        slides along a bar is drawn into it by 1 to 2 m/s².
        """
        self._tick += 1
        self._aim(terms, motion, objects or {})
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
        """What each row keeps."""
        chosen = self._rows.pair[self._chosen.row[: min(self._near, self._slots)]].tolist()
        return row_names([self._model.pairs[p] for p in chosen], self._slots)

    def rows(self, terms: Terms) -> tuple[np.ndarray, np.ndarray]:
        """Return ``A (m, nv)`` and ``b (m,)`` of the last update, which the next one overwrites."""
        return self._chosen.A[:, : len(terms.v)], self._chosen.b

    def _aim(self, terms: Terms, motion: Motion, objects: Mapping[str, Pose]) -> None:
        """Work out the distance that each pair is to keep.

        That is done anew when contacts or references have changed; what a patch comes to, it may come the nearer the
        nearer it is to its place: a toe has to clear the edge of the step that it is to stand on.
        """
        resting = list(motion.closed)
        now = [
            motion.posture, *resting, None, *motion.released.values(), None, *motion.targets.values(), None,
            *motion.sought, None, *motion.waiting,
        ]  # fmt: skip
        if not is_unchanged(now, self._aimed):
            self._aimed = now
            self._aim_anew(motion, resting, objects)
        elif self._next < LOOKS:
            for _ in range(min(self._looks, LOOKS - self._next)):
                self._allow(foreseen(motion.posture, self._time * self._next / LOOKS))
                self._next += 1
            if self._next == LOOKS:
                self._hurry()
        if self._coming:
            # a foot that is set down without a rest comes down as it goes along
            ways = [0.0 if motion.passing else _way(terms, contact) for _, contact in self._coming]
            for k in sorted(range(len(ways)), key=ways.__getitem__, reverse=True):  # the nearest has the last word
                bound = PASSING - ALLOWED_PENETRATION + CLEARANCE_PER_DISTANCE * ways[k]
                self._aims.goal[self._coming[k][0]] = min(self._clearance, bound)

    def _aim_anew(self, motion: Motion, resting: list[Contact], objects: Mapping[str, Pose]) -> None:
        """Set the goals but for those of pairs that come together, and which these are."""
        model, aims, goal = self._model, self._aims, self._aims.goal
        resting = resting + [motion.targets[patch] for patch in sorted(motion.sought) if patch in motion.targets]
        # of what was held nothing was asked, and it was near
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
        # over when half of the motion is: where ticks are long, several of them in each
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
        # a hand that grasps a bar does not touch it with its link, and has no need to on its way
        touched = set(ends.near.tolist()) - left - held - fixed - waiting
        coming = [(model.pairs_of([contact]) & touched, contact) for contact in motion.targets.values()]
        self._coming = [(np.array(sorted(pairs)), contact) for pairs, contact in coming if pairs]
        aims.flat[:] = self._over & (goal > -ALLOWED_PENETRATION)
        # a link that has borne load touches, however deep it might have gone
        np.maximum(aims.asked, np.minimum(goal, 0.0), out=aims.asked)
        aims.asked[aims.wanted == 0] = -np.inf

    def _ends(self, knots: Knots, objects: Mapping[str, Pose]) -> _Ends:
        """Look at both ends of a motion."""
        goal, near = np.full(len(self._model.pairs), self._clearance), np.zeros(0, np.int64)
        for q in (knots[0], knots[-1]):
            pairs, distance = self._model.nearer(q, self._margin, objects)
            goal[pairs] = np.minimum(goal[pairs], self._nearest(distance))
            near = pairs[distance < self._clearance + PLANNED]
        return _Ends(knots, goal, near)

    def _allow(self, there: PostureSample) -> None:
        """Let pairs come as near as the motion has them there, and keep how fast they come on."""
        pairs, distance, rates = self._model.near(there.q, self._margin, self._planned)
        goal = self._aims.goal
        goal[pairs] = np.where(self._given[pairs], goal[pairs], np.minimum(goal[pairs], self._nearest(distance)))
        self._seen.append((pairs, distance, np.maximum(-rates @ there.v, 0.0)))

    def _nearest(self, distance: np.ndarray) -> np.ndarray:
        """Return how near pairs may come that are planned at distances (k,); infinite where no nearer than others."""
        near = distance < self._clearance + PLANNED
        return np.where(near, np.clip(distance - PLANNED, APART, self._clearance), np.inf)

    def _hurry(self) -> None:
        """Let pairs come on as quickly as the motion that has been looked at has them."""
        pairs, distance, coming = (np.concatenate(seen) for seen in zip(*self._seen, strict=True))
        self._seen.clear()  # here: many small arrays take their time, and the tick that aims anew has none
        # from a room d the speed v is stopped by v² / 2 (d - T v), where it follows its bound within T
        left = np.maximum(distance - self._aims.goal[pairs] - self._response * coming, 1e-9)
        quick = np.clip(0.5 * QUICKER * coming**2 / left, STOPPING, MOST_ASKED)
        free = ~self._given[pairs]
        np.maximum.at(self._aims.braking, pairs[free], quick[free])


def foreseen(posture: AnyPosture, t: float) -> PostureSample:
    """Return where a motion takes the posture at time t after its beginning (s), unless something slows it down."""
    return posture.foreseen(t) if isinstance(posture, TimedPath) else posture.sample(posture.start_time + t)


def _groups(model: CollisionModel) -> np.ndarray:
    """Return numbers of the pairs (P,), the same for those of two bodies, or of a body and a thing around."""
    bodies, numbers = model.shapes.index[:, BODY].tolist(), dict[object, int]()
    return read_only(np.array([
        numbers.setdefault((bodies[a], pair.b if bodies[b] < 0 else bodies[b]), len(numbers))
        for (a, b), pair in zip(model.indices.tolist(), model.pairs, strict=True)
    ], np.int64))  # fmt: skip


def _new_memory(robot: Robot, model: CollisionModel, slots: int, over: int, objects: int) -> keep.AvoidanceState:
    """Allocate a memory; ``over`` pairs are over surfaces."""
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
