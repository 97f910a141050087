"""Traversability: where the base can pass in the posture of the start, collision-free and with supports within reach.

The robot is divided into two parts. The core (trunk, and the proximal part of every limb) must be collision-free. The
distal parts (shanks, feet, forearms) can move aside: their overlap with obstacles adds a cost, as for stepping over.

    cost of a metre = 1 + w (max(0, 1 - d_core / CORE_MARGIN_M) + max(0, 1 - d_far / FAR_MARGIN_M) + stretch)

with the distances d of both parts and w = NEARNESS_WEIGHT.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.collision.model import CollisionModel
from mcplan.robot.anatomy import Limb, far_links
from mcplan.robot.pose import base_orientation, base_yaw
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Bar, Environment, Surface
from mcplan.scene.polygon import half_planes

CORE_MARGIN_M, FAR_MARGIN_M = 0.20, 0.08
"""Distances beyond which obstacles cost nothing: to the core (the body sways from foot to foot), and distal parts."""

NEARNESS_WEIGHT = 3.0
"""Extra cost per metre at the smallest distance."""

MAX_REACH_SHARE = 0.4
"""Largest distance of a support from a limb's nominal place, sideways or in height, as a share of the limb's length."""

MIN_GROUND_NORMAL_Z = 0.5
"""Smallest vertical component of the normal of a surface to stand on."""


class BasePose(NamedTuple):
    """A pose of the base: position (m) and heading (rad)."""

    x: float
    y: float
    z: float
    yaw: float


class BaseSupport(NamedTuple):
    """The support of the base at a place.

    ``height`` of the base (m), nan if a ``limb`` (name, else empty) finds no support; ``stretch``: how far a limb
    has to reach beyond its nominal place as a share of its reach, or by how much the support is out of reach (m).
    """

    height: float
    stretch: float
    limb: str


class Obstruction(NamedTuple):
    """An obstacle or missing support at a pose of the base: description, and missing distance (m)."""

    pose: BasePose
    reason: str
    amount: float


class Traversability:
    """Cost of poses of the base.

    Parameters
    ----------
    robot, environment, collisions : the scene.
    q : (nq,) posture of the walking robot.
    contacts : of this posture; their limbs step from support to support.
    limbs : all limbs by name.
    offsets : nominal places of patches in the base's heading frame.
    """

    def __init__(
        self,
        robot: Robot,
        environment: Environment,
        collisions: CollisionModel,
        q: np.ndarray,
        contacts: Sequence[Contact],
        limbs: Mapping[str, Limb],
        offsets: Mapping[str, np.ndarray],
    ):
        self.robot, self.collisions, self.q = robot, collisions, q.copy()
        self.size = robot.scale.leg
        self.core_margin, self.far_margin = self.size * CORE_MARGIN_M, self.size * FAR_MARGIN_M
        self.heading = base_yaw(q)
        self.orientation = base_orientation(q)
        self.feet: dict[str, tuple[np.ndarray, float]] = {}
        for contact in contacts:
            limb = limbs[robot.patches[contact.patch].limb]
            if not limb.length:  # a patch of the base has no reach
                continue
            self.feet.setdefault(limb.name, (offsets[contact.patch], MAX_REACH_SHARE * limb.length))
        self.climb = min((reach for _, reach in self.feet.values()), default=0.0)
        surfaces = [s for s in environment.supports.values() if isinstance(s, Surface)]
        levels = [s for s in surfaces if s.normal[2] >= MIN_GROUND_NORMAL_Z]
        self._supports(levels)
        # links may come near their own support, and bars that a hand may hold: these only block
        ground = {s.owner or s.name for s in levels}
        bars = {s.name for s in environment.supports.values() if isinstance(s, Bar)}
        touched = {contact.support for contact in contacts}
        far = far_links(robot, q, limbs)
        links = set(robot.link_names)
        core = [pair.b not in links and pair.a not in far and pair.b not in touched for pair in collisions.pairs]
        soft = [pair.b not in links and pair.a in far and pair.b not in ground | bars for pair in collisions.pairs]
        holds = [pair.b in bars for pair in collisions.pairs]
        self._core = np.where(core, np.where(holds, 0.0, self.core_margin), -np.inf)
        self._far = np.where(soft, self.far_margin, -np.inf)
        self._costs: dict[tuple[int, ...], float] = {}
        self._known_supports: dict[tuple[int, ...], BaseSupport] = {}

    def _supports(self, levels: Sequence[Surface]) -> None:
        count = max((len(s.polygon) for s in levels), default=0)
        self._R = np.array([s.R for s in levels]).reshape(-1, 3, 3)
        self._p = np.array([s.p for s in levels]).reshape(-1, 3)
        self._A, self._b = np.zeros((len(levels), count, 2)), np.full((len(levels), count), np.inf)
        for i, surface in enumerate(levels):
            A, b = half_planes(surface.polygon)
            self._A[i, : len(b)], self._b[i, : len(b)] = A, b

    def support(self, x: float, y: float, yaw: float, z: float) -> BaseSupport:
        """Return the support of the base at (x, y) with a heading, coming from the height ``z``."""
        key = (round(x * 500), round(y * 500), round(yaw * 500), round(z * 50))
        if key not in self._known_supports:
            self._known_supports[key] = self._support(x, y, yaw, z)
        return self._known_supports[key]

    def _support(self, x: float, y: float, yaw: float, z: float) -> BaseSupport:
        c, n = np.cos(yaw), np.sin(yaw)
        heights, stretch = [], 0.0
        for limb, (offset, reach) in self.feet.items():
            if not len(self._p):
                return BaseSupport(np.nan, np.inf, limb)
            place = np.array([x + c * offset[0] - n * offset[1], y + n * offset[0] + c * offset[1], z + offset[2]])
            arm = place - self._p
            normal = self._R[:, :, 2]
            drop = np.einsum("si,si->s", normal, arm) / normal[:, 2]
            arm[:, 2] -= drop
            local = np.einsum("sij,si->sj", self._R[:, :, :2], arm)
            aside = np.maximum((np.einsum("skj,sj->sk", self._A, local) - self._b).max(axis=1), 0.0)
            step = np.abs(drop)
            beyond = np.maximum(aside, step) - reach
            best = int(np.argmin(np.where(beyond <= 0.0, aside + 0.5 * step, 1e3 + beyond)))
            if beyond[best] > 0.0:
                return BaseSupport(np.nan, float(beyond[best]), limb)
            heights.append(z - drop[best])
            stretch = max(stretch, float(aside[best]) / reach)
        return BaseSupport(float(np.mean(heights)) if heights else z, stretch, "")

    def cost(self, place: BasePose) -> float:
        """Return the cost of a metre at a pose; infinite if the core collides or a support is missing."""
        key = tuple(round(value * 500) for value in place)
        if key not in self._costs:
            self._costs[key] = self._cost(place)
        return self._costs[key]

    def _cost(self, place: BasePose) -> float:
        support = self.support(place.x, place.y, place.yaw, place.z)
        if support.limb:
            return np.inf
        q = self._posture(place)
        core = self.collisions.least(q, self._core)
        if core is not None and core.distance < 0.0:
            return np.inf
        far = self.collisions.least(q, self._far)
        cost = 1.0 + NEARNESS_WEIGHT * support.stretch
        if core is not None:
            cost += NEARNESS_WEIGHT * (1.0 - core.distance / self.core_margin)
        if far is not None:
            cost += NEARNESS_WEIGHT * (1.0 - max(far.distance, 0.0) / self.far_margin)
        return cost

    def obstruction(self, place: BasePose) -> Obstruction | None:
        """Return the obstruction of the base at a pose, or None."""
        support = self.support(place.x, place.y, place.yaw, place.z)
        if support.limb:
            beyond = support.stretch
            reason = f"the nearest support is {beyond:.2f} m beyond the {support.limb}'s reach"
            return Obstruction(place, reason, beyond)
        core = self.collisions.least(self._posture(place), self._core)
        if core is not None and core.distance < 0.0:
            a, b = core.pair.a, core.pair.b
            return Obstruction(place, f"{a} would be {-core.distance:.2f} m inside {b}", -core.distance)
        return None

    def _posture(self, place: BasePose) -> np.ndarray:
        q = self.q
        q[:3] = place[:3]
        turned = Rotation.from_euler("z", place.yaw - self.heading) * self.orientation
        q[3:7] = turned.as_quat(scalar_first=True)
        return q
