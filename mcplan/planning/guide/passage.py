"""Traversability: where the base can pass in the posture of the start, collision-free and with supports within reach.

The robot is divided into two parts. The core (trunk, and the proximal part of every limb) must be collision-free. The
distal parts (shanks, feet, forearms) can avoid obstacles by stepping over or reaching around them, so their overlap
only adds a cost:

    cost of a metre = 1 + w (max(0, 1 - d_core / CORE_MARGIN_M) + max(0, 1 - d_distal / DISTAL_MARGIN_M) + stretch)

with the distances d of both parts (an overlap counts as 0), ``stretch`` of `BaseSupport`, and w = NEARNESS_WEIGHT.
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

CORE_MARGIN_M, DISTAL_MARGIN_M = 0.20, 0.08
"""Distances to core and distal parts beyond which obstacles cost nothing; the core sways from foot to foot."""

NEARNESS_WEIGHT = 3.0
"""Additional cost of a metre at the distance 0, or at the largest stretch."""

MAX_REACH_SHARE = 0.4
"""Largest horizontal or vertical distance of a support from a nominal patch position, as a share of limb length."""

MIN_GROUND_NORMAL_Z = 0.5
"""Smallest vertical component of the normal of a surface to stand on."""


class BasePose(NamedTuple):
    """A pose of the base: position (m) and heading (rad)."""

    x: float
    y: float
    z: float
    yaw: float


class BaseSupport(NamedTuple):
    """The support of the base at a pose.

    Attributes
    ----------
    height : height of the base (m); nan if a limb finds no support.
    stretch : largest horizontal distance of a support from the nominal position of a patch, as a share of the reach of
        its limb; if a limb finds no support, the distance by which the nearest support is out of reach (m).
    limb : name of the limb that finds no support; empty if all find one.
    """

    height: float
    stretch: float
    limb: str


class Obstruction(NamedTuple):
    """An obstacle or missing support at a pose of the base.

    Attributes
    ----------
    pose : pose of the base.
    reason : description of the obstruction.
    amount : depth of the overlap, or distance by which the nearest support is out of reach (m).
    """

    pose: BasePose
    reason: str
    amount: float


class Traversability:
    """Cost of poses of the base.

    Parameters
    ----------
    robot, environment, collisions : the scene.
    q : (nq,) posture of the walking robot.
    contacts : contacts of this posture; their limbs step from support to support.
    limbs : all limbs by name.
    offsets : nominal position (3,) of each patch in the base's heading frame.

    Attributes
    ----------
    max_step_height : largest height difference that every limb in contact can step (m).
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
        self.core_margin, self.distal_margin = self.size * CORE_MARGIN_M, self.size * DISTAL_MARGIN_M
        self.heading = base_yaw(q)
        self.orientation = base_orientation(q)
        self.feet: dict[str, tuple[np.ndarray, float]] = {}
        for contact in contacts:
            limb = limbs[robot.patches[contact.patch].limb]
            if not limb.length:  # a patch of the base has no reach
                continue
            self.feet.setdefault(limb.name, (offsets[contact.patch], MAX_REACH_SHARE * limb.length))
        self.max_step_height = min((reach for _, reach in self.feet.values()), default=0.0)
        surfaces = [s for s in environment.supports.values() if isinstance(s, Surface)]
        ground_surfaces = [s for s in surfaces if s.normal[2] >= MIN_GROUND_NORMAL_Z]
        self._store_surfaces(ground_surfaces)
        # links may come near their own support, and bars that a hand may hold: these have no margin
        ground = {s.owner or s.name for s in ground_surfaces}
        bars = {s.name for s in environment.supports.values() if isinstance(s, Bar)}
        contact_supports = {contact.support for contact in contacts}
        distal = far_links(robot, q, limbs)
        robot_links = set(robot.link_names)
        core_pairs = [
            pair.b not in robot_links and pair.a not in distal and pair.b not in contact_supports
            for pair in collisions.pairs
        ]
        distal_pairs = [
            pair.b not in robot_links and pair.a in distal and pair.b not in ground | bars for pair in collisions.pairs
        ]
        on_bar = [pair.b in bars for pair in collisions.pairs]
        self._core_margins = np.where(core_pairs, np.where(on_bar, 0.0, self.core_margin), -np.inf)
        self._distal_margins = np.where(distal_pairs, self.distal_margin, -np.inf)
        self._costs: dict[tuple[int, ...], float] = {}
        self._support_cache: dict[tuple[int, ...], BaseSupport] = {}

    def _store_surfaces(self, ground_surfaces: Sequence[Surface]) -> None:
        count = max((len(s.polygon) for s in ground_surfaces), default=0)
        self._R = np.array([s.R for s in ground_surfaces]).reshape(-1, 3, 3)
        self._p = np.array([s.p for s in ground_surfaces]).reshape(-1, 3)
        self._A, self._b = np.zeros((len(ground_surfaces), count, 2)), np.full((len(ground_surfaces), count), np.inf)
        for i, surface in enumerate(ground_surfaces):
            A, b = half_planes(surface.polygon)
            self._A[i, : len(b)], self._b[i, : len(b)] = A, b

    def support(self, x: float, y: float, yaw: float, z: float) -> BaseSupport:
        """Return the support of the base at (x, y) with a heading; ``z`` is its height at the previous pose."""
        key = (round(x * 500), round(y * 500), round(yaw * 500), round(z * 50))
        if key not in self._support_cache:
            self._support_cache[key] = self._support(x, y, yaw, z)
        return self._support_cache[key]

    def _support(self, x: float, y: float, yaw: float, z: float) -> BaseSupport:
        c, n = np.cos(yaw), np.sin(yaw)
        base_heights, stretch = [], 0.0
        for limb, (offset, reach) in self.feet.items():
            if not len(self._p):
                return BaseSupport(np.nan, np.inf, limb)
            position = np.array([x + c * offset[0] - n * offset[1], y + n * offset[0] + c * offset[1], z + offset[2]])
            arm = position - self._p
            normal = self._R[:, :, 2]
            heights_above = np.einsum("si,si->s", normal, arm) / normal[:, 2]
            arm[:, 2] -= heights_above
            local = np.einsum("sij,si->sj", self._R[:, :, :2], arm)
            horizontal = np.maximum((np.einsum("skj,sj->sk", self._A, local) - self._b).max(axis=1), 0.0)
            vertical = np.abs(heights_above)
            excess = np.maximum(horizontal, vertical) - reach
            best = int(np.argmin(np.where(excess <= 0.0, horizontal + 0.5 * vertical, 1e3 + excess)))
            if excess[best] > 0.0:
                return BaseSupport(np.nan, float(excess[best]), limb)
            base_heights.append(z - heights_above[best])
            stretch = max(stretch, float(horizontal[best]) / reach)
        return BaseSupport(float(np.mean(base_heights)) if base_heights else z, stretch, "")

    def cost(self, pose: BasePose) -> float:
        """Return the cost of a metre at a pose; infinite if the core collides or a support is missing."""
        key = tuple(round(value * 500) for value in pose)
        if key not in self._costs:
            self._costs[key] = self._cost(pose)
        return self._costs[key]

    def _cost(self, pose: BasePose) -> float:
        support = self.support(pose.x, pose.y, pose.yaw, pose.z)
        if support.limb:
            return np.inf
        q = self._posture(pose)
        core = self.collisions.least(q, self._core_margins)
        if core is not None and core.distance < 0.0:
            return np.inf
        distal = self.collisions.least(q, self._distal_margins)
        cost = 1.0 + NEARNESS_WEIGHT * support.stretch
        if core is not None:
            cost += NEARNESS_WEIGHT * (1.0 - core.distance / self.core_margin)
        if distal is not None:
            cost += NEARNESS_WEIGHT * (1.0 - max(distal.distance, 0.0) / self.distal_margin)
        return cost

    def obstruction(self, pose: BasePose) -> Obstruction | None:
        """Return the obstruction of the base at a pose, or None."""
        support = self.support(pose.x, pose.y, pose.yaw, pose.z)
        if support.limb:
            beyond = support.stretch
            reason = f"the nearest support is {beyond:.2f} m beyond the {support.limb}'s reach"
            return Obstruction(pose, reason, beyond)
        core = self.collisions.least(self._posture(pose), self._core_margins)
        if core is not None and core.distance < 0.0:
            a, b = core.pair.a, core.pair.b
            return Obstruction(pose, f"{a} would be {-core.distance:.2f} m inside {b}", -core.distance)
        return None

    def _posture(self, pose: BasePose) -> np.ndarray:
        q = self.q
        q[:3] = pose[:3]
        R = Rotation.from_euler("z", pose.yaw - self.heading) * self.orientation
        q[3:7] = R.as_quat(scalar_first=True)
        return q
