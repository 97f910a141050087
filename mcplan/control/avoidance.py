"""Collision avoidance of the controller: the pairs that are near, as rows of the whole-body program."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from mcplan.collision.distances import ALLOWED_PENETRATION
from mcplan.collision.face_rows import FaceRows
from mcplan.collision.model import CollisionModel, Near
from mcplan.control.motion import Motion
from mcplan.control.path import Pose
from mcplan.core.avoidance import ask_clearance
from mcplan.model.robot import Robot
from mcplan.model.terms import Terms
from mcplan.planning.posture.transit import OPENING
from mcplan.qp.collision_avoidance import CollisionAvoidance
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.scene.settings import ControlSettings

PASSING = 0.75 * ALLOWED_PENETRATION
"""How much less a link may overlap a support that it passes than one that it rests on (m)."""

PARTING = 0.02
"""Speed at which a link that has left its support is asked to gain its clearance (m/s)."""

PLANNED = 1e-3
"""How much nearer than in the posture that it goes to a pair may come (m): references are not followed exactly."""

APART = 1e-3
"""What is left between links that are not to touch, however near they are planned (m).

The rows miss by less: as the speed follows its bound late, a link that comes on at 0.1 m/s goes 0.55 mm too far.
"""

HOVER = 2.5e-4
"""What is left under a patch that waits until another one of its limb touches (m).

A joint at its limit takes toes down with their knee: more than a touch may be off would keep the knee from its place.
"""

RESPONSE = 0.02
"""Time within which the speed of approach follows its bound (s); one control period would mean a blow."""


class Avoidance:
    """Keeps links from each other and from the environment, whatever the references ask for.

    A link may touch the support that it rests on, comes from, or goes to when it is its turn; it stays
    ``avoid_clearance`` off all else, or as far as the posture is that it goes to. Nothing is asked of links that their
    contacts hold where they are.
    While it only passes that support, it is held closer to the surface than the overlap which a link at rest is
    allowed (``ALLOWED_PENETRATION``), because the rows are linear and a moving link goes a little beyond them. What is
    asked of a pair never rises faster than ``PARTING``, so that leaving a support is no blow either.

    Parameters
    ----------
    robot, environment : what must not collide.
    settings : ``avoid_*``.
    dt : control period (s).
    """

    def __init__(self, robot: Robot, environment: Environment, settings: ControlSettings, dt: float):
        # where supports are felt, they may be lower than the model has them
        self._depth = settings.touch_depth if settings.touch_force > 0.0 else 0.0
        self._clearance, self._margin = settings.avoid_clearance, settings.avoid_distance + settings.avoid_clearance
        self._robot, self._ahead = robot, max(dt, RESPONSE)
        self._model = model = CollisionModel(robot, environment)
        self._faces = FaceRows(model, environment.surfaces)
        self._reach = settings.avoid_distance
        self._rise = PARTING * dt
        self._tick = 0
        self._asked, self._seen = np.zeros(len(model.pairs)), np.zeros(len(model.pairs), dtype=np.int64)
        self._goal = np.zeros(len(model.pairs))
        surfaces = {surface.name for surface in environment.surfaces}
        self._over = np.array([pair.b in surfaces for pair in model.pairs], dtype=bool)
        self._flat = np.zeros(len(model.pairs), dtype=bool)
        self._goal_of: tuple | None = None
        self._coming: list[tuple[np.ndarray, Contact]] = []
        self._limit = CollisionAvoidance(
            settings.avoid_pairs, safe=0.0, influence=settings.avoid_distance, ceiling=20.0, dt=self._ahead
        )

    def limit(self, terms: Terms, motion: Motion, objects: Mapping[str, Pose] | None = None) -> CollisionAvoidance:
        """Return the rows for the state of the terms; to be called once per control period.

        ``objects`` gives the poses of those that are not where they were at the start. What the velocity alone adds to
        the distances counts: a hand that turns while it slides along a bar is drawn into it by 1 to 2 m/s².
        """
        self._tick += 1
        q, v = terms.q[: self._robot.nq], terms.v[: self._robot.nv]
        near = self._model.foreseen(q, v, self._ahead, self._margin, objects)
        room, low = np.empty(len(near.found)), np.empty(len(near.found), dtype=np.int64)
        goals = self._goals(terms, motion, objects or {})
        count = ask_clearance(
            near.found, near.distance, goals, self._rise, self._tick, self._flat, self._reach, self._asked, self._seen,
            room, low,
        )  # fmt: skip
        rates = np.hstack([near.rows, self._object_rates(near, objects)]) if objects else near.rows
        rows = _Rows(near.found, room, rates, near.bend)
        if count:
            rows = self._all_corners(q, low[:count], near.distance, rows)
        self._limit.set_pairs(rows.room, rows.rates, rows.bend, _Names(self._model.pairs, rows.found))
        return self._limit

    def _all_corners(self, q: np.ndarray, low: np.ndarray, distance: np.ndarray, rows: "_Rows") -> "_Rows":
        """Return the rows with all corners of links that are low over a surface and do not rest on it."""
        found, room, rates, bend = rows
        which, heights, turns = self._faces.rows(q, found[low], distance[low])
        if not len(which):
            return rows
        owner = low[which]
        kept = np.ones(len(found), dtype=bool)
        kept[owner] = False
        return _Rows(
            np.concatenate([found[owner], found[kept]]),
            np.concatenate([heights - distance[owner] + room[owner], room[kept]]),
            np.concatenate([np.pad(turns, ((0, 0), (0, rates.shape[1] - turns.shape[1]))), rates[kept]]),
            np.concatenate([np.zeros(len(owner)), bend[kept]]),
        )

    def _object_rates(self, near: Near, objects: Mapping[str, Pose]) -> np.ndarray:
        """Return the rates (k, 6 O) of the distances of pairs with what the objects' velocities add to them.

        The point x of an object at p moves away with ``-n (v + w x (x - p))``.
        """
        rates = np.zeros((len(near.found), 6 * len(objects)))
        for column, (name, (_, p)) in enumerate(objects.items()):
            for i, pair in enumerate(near.found):
                if self._model.pairs[pair].b == name:
                    n = near.normal[i]
                    rates[i, 6 * column : 6 * column + 6] = -np.concatenate([n, np.cross(near.place[i] - p, n)])
        return rates

    def _goals(self, terms: Terms, motion: Motion, objects: Mapping[str, Pose]) -> np.ndarray:
        """Return the distance that each pair is to keep.

        It is worked out anew when contacts or references have changed; what a patch comes to, it may come the nearer
        the nearer it is to its place: a toe has to clear the edge of the step that it is to stand on.
        """
        passing = (*motion.released.values(), *motion.targets.values())
        resting = tuple([loaded.contact for loaded in motion.contacts.values()])
        now = (
            tuple(map(id, resting)), tuple(map(id, passing)), motion.posture,
            frozenset(motion.sought), frozenset(motion.waiting),
        )  # fmt: skip
        if now != self._goal_of:
            self._goal_of = now
            resting += tuple(motion.targets[patch] for patch in sorted(motion.sought) if patch in motion.targets)
            self._goal = np.full(len(self._model.pairs), self._clearance)
            planned = dict(objects) | {name: path.end for name, path in motion.slides.items()}
            near, distance, _ = self._model.near(motion.posture.end, self._clearance + PLANNED, planned)
            self._goal[near] = np.clip(distance - PLANNED, APART, self._clearance)
            left, held = self._model.pairs_of(motion.released.values()), self._model.pairs_of(resting)
            waiting = self._model.pairs_of(motion.targets[patch] for patch in motion.waiting & motion.targets.keys())
            fixed = self._model.fixed_by(loaded.contact for loaded in motion.contacts.values())
            self._goal[list(left)] = PASSING - ALLOWED_PENETRATION
            self._goal[list(waiting)] = HOVER
            self._goal[list(held)] = -ALLOWED_PENETRATION - self._depth
            self._goal[list(fixed)] = -np.inf
            # a hand that grasps a bar does not touch it with its link, and has no need to on its way
            touched = set(near.tolist()) - left - held - fixed - waiting
            coming = [(self._model.pairs_of([contact]) & touched, contact) for contact in motion.targets.values()]
            self._coming = [(np.array(sorted(pairs)), contact) for pairs, contact in coming if pairs]
            self._flat = self._over & (self._goal > -ALLOWED_PENETRATION)
            # a link that has borne load touches, however deep it might have gone
            np.maximum(self._asked, np.minimum(self._goal, 0.0), out=self._asked)
        for pairs, _ in self._coming:
            self._goal[pairs] = self._clearance
        for pairs, contact in self._coming:
            away = math.dist(terms.frame(contact.patch).p, contact.p)
            self._goal[pairs] = np.minimum(self._goal[pairs], PASSING - ALLOWED_PENETRATION + OPENING * away)
        return self._goal


class _Rows(NamedTuple):
    """What the program is told: pairs (k,), room (k,) in m, its rates (k, nv), and their change ``Jdot v`` (k,)."""

    found: np.ndarray
    room: np.ndarray
    rates: np.ndarray
    bend: np.ndarray


class _Names:
    """Names of pairs by their place among those that were found."""

    def __init__(self, pairs: tuple, found: np.ndarray):
        self._pairs, self._found = pairs, found

    def __len__(self) -> int:
        return len(self._found)

    def __getitem__(self, i: int) -> str:
        return str(self._pairs[self._found[i]])
