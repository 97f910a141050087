"""Robot anatomy: kinematic chains, limbs, feet and hands, knees and elbows, body sizes, scale against HRP-2.

All functions use only the kinematic tree and the places of patches, not the names of joints or links.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mcplan.core.rigid_body.tree import AXIS, GRAVITY, PARENT, PRISMATIC, REVOLUTE, TYPE, Q, Tree, V
from mcplan.robot.assemble import JointLimits
from mcplan.robot.patch import Patch
from mcplan.robot.pose import heading_rotation

MAX_SLIDE_M = 10.0
"""Assumed stroke of a prismatic joint without limits."""

STIFF_SHARE = 0.3
"""Share of a limb's length from its root that counts as stiff: the thigh, the upper arm."""

MAX_FOLDED_SHARE = 0.6
"""A joint folds its limb if it can reduce the distance of the ends to this share of the straight length."""

FOLD_MARGIN_RAD = 0.5
"""Margin beyond the joint range for the search of the straight angle."""

FOLD_SAMPLES = 33
"""Sampled angles in the search of the straight angle; repeated once around the best one."""

FOOT_GRID_M = 0.005
"""Rounding of the places of feet, so that scenarios have plain numbers."""

GROUND_TOLERANCE_M, MIN_DOWNWARD_COSINE = 0.01, 0.9
"""Tolerances of a foot patch in the standing posture: distance from the ground, cosine to the downward direction."""

MIN_PITCH_COSINE = 0.8
"""Minimum cosine between the robot's y axis and the axis of a pitch joint: a hip, a knee, an ankle."""

LIFT_TORQUE_SHARE, MAX_HALF_BEND_RAD, FALLBACK_LIFT_SHARE = 0.5, np.pi / 3, 0.15
"""Share of a knee's torque for lifting the robot, with a reserve for a centre of mass off the foot; half of the maximum
knee bend; step height / leg length of a leg without a knee."""

HRP2_LEG_M, HRP2_SOLE_M, HRP2_ARM_M, HRP2_MASS_KG = 0.70703477, 0.17357995, 0.60750000, 56.03717
"""Sizes of HRP-2, whose scale is 1."""

SCALE_DIGITS = 6
"""Decimals of a ratio, so that the last digits of a robot's file do not matter."""


class _Skeleton(Protocol):
    """The members of a `Robot` that its anatomy needs."""

    @property
    def tree(self) -> Tree: ...
    @property
    def limits(self) -> JointLimits: ...
    @property
    def patches(self) -> Mapping[str, Patch]: ...
    @property
    def mass(self) -> float: ...
    @property
    def feet(self) -> dict[str, np.ndarray]: ...
    @property
    def postures(self) -> tuple[str, ...]: ...
    @property
    def link_names(self) -> tuple[str, ...]: ...
    def posture(self, name: str) -> np.ndarray: ...
    def neutral(self) -> np.ndarray: ...
    def frame(self, name: str) -> tuple[int, np.ndarray]: ...
    def frame_pose(self, q, name: str) -> np.ndarray: ...
    def body_pose(self, q, body: int) -> np.ndarray: ...


# -- kinematic chains -------------------------------------------------------------------------------------------------


def chain_of(robot: _Skeleton, frame: str) -> list[int]:
    """Return the bodies from the first below the base to the one that carries a link or patch."""
    body, chain = robot.frame(frame)[0], []
    while body > 0:
        chain.append(body)
        body = int(robot.tree.topology[body, PARENT])
    return chain[::-1]


def limb_chain(robot: _Skeleton, patch: str) -> list[int]:
    """Return the part of a patch's chain that carries no other limb: without a waist that carries both arms.

    If every body carries others, return the last body.
    """
    chain, limb = chain_of(robot, patch), robot.patches[patch].limb
    others = [chain_of(robot, other.name) for other in robot.patches.values() if other.limb != limb]
    shared = {body for other in others for body in other}
    return [body for body in chain if body not in shared] or chain[-1:]


def joint_of_body(robot: _Skeleton) -> dict[int, int]:
    """Return the index of the joint that moves each body but the base."""
    return {body: int(robot.tree.topology[body, V]) - 6 for body in range(1, len(robot.tree.topology))}


def links_of_bodies(robot: _Skeleton) -> dict[int, list[str]]:
    """Return the links of each body, in the order of the file."""
    found: dict[int, list[str]] = {body: [] for body in range(len(robot.tree.topology))}
    for link in robot.link_names:
        found[robot.frame(link)[0]].append(link)
    return found


def pitch_bodies(robot: _Skeleton, q: np.ndarray, bodies: Iterable[int]) -> list[int]:
    """Return the bodies of a limb whose joints turn about the y axis of the world at ``q``: hip, knee, ankle."""
    return [body for body in bodies if abs(joint_axis(robot, q, body)[1]) > MIN_PITCH_COSINE]


def joint_axis(robot: _Skeleton, q: np.ndarray, body: int) -> np.ndarray:
    """Return the axis (3,) in the world of the joint that moves a body."""
    return robot.body_pose(q, body)[:3, :3] @ robot.tree.joint[body, AXIS : AXIS + 3]


def _body_position(robot: _Skeleton, q: np.ndarray, body: int) -> np.ndarray:
    return robot.body_pose(q, body)[:3, 3]


def _with_descendants(robot: _Skeleton, bodies: set[int]) -> set[int]:
    topology, grown = robot.tree.topology, set(bodies)
    for i in range(len(topology)):  # parents come before their children
        if int(topology[i, PARENT]) in grown:
            grown.add(i)
    return grown


def _links_on(robot: _Skeleton, bodies: set[int]) -> frozenset[str]:
    return frozenset(link for link in robot.link_names if robot.frame(link)[0] in bodies)


# -- limbs ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Limb:
    """One limb: its contact patches and its reach.

    Attributes
    ----------
    name : of the limb.
    patches : its patches that may touch, in the robot's order.
    root : (3,) its first joint in the base's heading frame, at the start.
    length : from there along the joints to the farthest patch, prismatic joints extended (m).
    """

    name: str
    patches: tuple[str, ...]
    root: np.ndarray
    length: float


def limbs_of(robot: _Skeleton, q: np.ndarray, patches: tuple[str, ...]) -> dict[str, Limb]:
    """Return the limbs that own ``patches``, at the posture ``q`` (nq,)."""
    names = dict.fromkeys(patch.limb for patch in robot.patches.values() if patch.name in patches)
    turn = heading_rotation(q)
    found = {}
    for name in names:
        own = tuple(patch.name for patch in robot.patches.values() if patch.limb == name and patch.name in patches)
        length, root = 0.0, np.zeros(3)
        for patch in own:
            chain = limb_chain(robot, patch)
            places = [_body_position(robot, q, body) for body in chain] + [robot.frame_pose(q, patch)[:3, 3]]
            own_length = float(np.sum(np.linalg.norm(np.diff(places, axis=0), axis=1)))
            strokes = (_stroke(robot, q, *segment) for segment in zip(chain, [places[0], *places], strict=False))
            length = max(length, own_length + sum(strokes))
            root = turn.T @ (places[0] - q[:3])
        found[name] = Limb(name, own, root, length)
    return found


def _stroke(robot: _Skeleton, q: np.ndarray, body: int, before: np.ndarray) -> float:
    """Return the extension (m) of a body's prismatic joint away from ``before`` (3,), relative to q."""
    kind, at = robot.tree.topology[body, [TYPE, Q]]
    if kind != PRISMATIC:
        return 0.0
    distances = []
    for end in np.clip([robot.limits.lower[at - 7], robot.limits.upper[at - 7], q[at]], -MAX_SLIDE_M, MAX_SLIDE_M):
        extended = q.copy()
        extended[at] = end
        distances.append(float(np.linalg.norm(_body_position(robot, extended, body) - before)))
    return max(distances) - distances[-1]


def far_links(robot: _Skeleton, q: np.ndarray, limbs: Mapping[str, Limb]) -> frozenset[str]:
    """Return the compliant links: beyond ``STIFF_SHARE`` of the length from a limb's root to its patches."""
    far: set[int] = set()
    for limb in limbs.values():
        for patch in limb.patches:
            chain = limb_chain(robot, patch)
            if not chain:  # a patch of the base itself
                continue
            places = np.array([_body_position(robot, q, body) for body in chain])
            arc = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(places, axis=0), axis=1)))
            far |= {body for body, length in zip(chain, arc, strict=True) if length > STIFF_SHARE * limb.length}
    return _links_on(robot, _with_descendants(robot, far))


def _limb_bodies(robot: _Skeleton, limb: str) -> set[int]:
    return {body for patch in robot.patches.values() if patch.limb == limb for body in limb_chain(robot, patch.name)}


def limb_joints(robot: _Skeleton, limb: str) -> np.ndarray:
    """Return the indices into q of the joints that move patches of this limb and of no other."""
    return np.unique(robot.tree.topology[sorted(_limb_bodies(robot, limb)), Q])


def limb_rates(robot: _Skeleton, limb: str) -> np.ndarray:
    """Return the indices into v of the joints that move patches of this limb and of no other."""
    return np.unique(robot.tree.topology[sorted(_limb_bodies(robot, limb)), V])


def limb_links(robot: _Skeleton, limb: str) -> frozenset[str]:
    """Return the links that the joints of a limb move, fingers beyond a hand among them."""
    return _links_on(robot, _with_descendants(robot, _limb_bodies(robot, limb)))


# -- knees and elbows -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fold:
    """A joint that folds a limb: a knee, an elbow.

    A straight limb is singular: the distance ``d`` between its ends has ``dd/dq = 0``. Between two fixed ends (ground
    and trunk) a millimetre of trunk motion then needs a large change of the knee angle, or has no solution. At an
    angle ``b`` from straight a limb of length l is ``l b² / 8`` shorter: 4 mm for 0.5 m at 0.25 rad.

    Attributes
    ----------
    joint : its index among the joints.
    straight : its angle in the straight limb (rad), possibly outside its range.
    """

    joint: int
    straight: float

    def keep_bent(self, limit: np.ndarray, side: float, min_bend: float) -> None:
        """Narrow bounds (2, n) so that the limb stays bent by ``min_bend`` (rad) to a side, if the bounds allow it."""
        lower, upper = limit[:, self.joint]
        if side < 0.0:
            limit[1, self.joint] = max(min(upper, self.straight - min_bend), lower)
        else:
            limit[0, self.joint] = min(max(lower, self.straight + min_bend), upper)


def find_folds(robot: _Skeleton) -> dict[str, tuple[Fold, ...]]:
    """Return the joints that fold the limb of each patch, by the patch's name.

    The limb extends from its first body to its last: from hip to ankle for a sole, to the point for a point patch, to
    the knee for a shank on the ground, which does not fold.
    """
    found: dict[str, tuple[Fold, ...]] = {}
    by_chain: dict[tuple, tuple[Fold, ...]] = {}
    for name, patch in robot.patches.items():
        bodies, point = limb_chain(robot, name), patch.kind in ("point", "ball")
        key = (*bodies, name if point else "")
        if key not in by_chain:
            by_chain[key] = tuple(_folds_of_chain(robot, bodies, name if point else None))
        found[name] = by_chain[key]
    return found


def _folds_of_chain(robot: _Skeleton, bodies: list[int], point: str | None) -> list[Fold]:
    inner = bodies[1:] if point else bodies[1:-1]
    if not inner:
        return []
    neutral, found = robot.neutral(), []
    root = _body_position(robot, neutral, bodies[0])  # independent of the joints beyond it
    for body in inner:
        at = int(robot.tree.topology[body, Q])
        if robot.tree.topology[body, TYPE] != REVOLUTE:
            continue
        lower, upper = np.clip([limit[at - 7] for limit in (robot.limits.lower, robot.limits.upper)], -np.pi, np.pi)

        def distance(angle: float, at: int = at) -> float:
            q = neutral.copy()
            q[at] = angle
            end = robot.frame_pose(q, point)[:3, 3] if point else _body_position(robot, q, bodies[-1])
            return float(np.linalg.norm(end - root))

        angles = np.linspace(lower - FOLD_MARGIN_RAD, upper + FOLD_MARGIN_RAD, FOLD_SAMPLES)
        distances = [distance(angle) for angle in angles]
        best = int(np.argmax(distances))
        if 0 < best < FOLD_SAMPLES - 1 and min(distances) < MAX_FOLDED_SHARE * distances[best]:
            fine = np.linspace(angles[best - 1], angles[best + 1], FOLD_SAMPLES)
            found.append(Fold(at - 7, float(fine[int(np.argmax([distance(angle) for angle in fine]))])))
    return found


def bent_limits(limit: np.ndarray, folds: Iterable[Fold], q: np.ndarray, min_bend: float) -> np.ndarray:
    """Return joint bounds (2, n) that keep limbs bent.

    Parameters
    ----------
    limit : (2, n) joint limits.
    folds : of the limbs.
    q : (n,) joints, which determine the side of bending; for a straight limb, the side with the larger range.
    min_bend : minimum bend (rad), if the limits allow it.
    """
    bounds = np.array(limit, dtype=float)
    for fold in folds:
        side = q[fold.joint] - fold.straight
        if abs(side) < min_bend:
            side = bounds[:, fold.joint].sum() - 2.0 * fold.straight
        fold.keep_bent(bounds, side, min_bend)
    return bounds


# -- feet, hands and sizes --------------------------------------------------------------------------------------------


def standing_posture(robot: _Skeleton) -> np.ndarray | None:
    """Return the standing posture (nq,): ``half_sitting``, else the first posture, else None."""
    names = [name for name in ("half_sitting", *robot.postures) if name in robot.postures]
    return robot.posture(names[0]) if names else None


def find_feet(robot: _Skeleton) -> dict[str, np.ndarray]:
    """Return the foot patches, with the positions (2,) of their origins relative to the point below the base."""
    q = standing_posture(robot)
    found: dict[str, np.ndarray] = {}
    if q is None:
        return found
    for name, patch in robot.patches.items():
        X = robot.frame_pose(q, name)
        faces_down = patch.kind in ("point", "ball") or (len(patch.polygon) > 2 and X[2, 2] < -MIN_DOWNWARD_COSINE)
        if patch.kind != "grasp" and faces_down and abs(X[2, 3] - patch.radius) < GROUND_TOLERANCE_M:
            found[name] = np.array(np.round(FOOT_GRID_M * np.round((X[:2, 3] - q[:2]) / FOOT_GRID_M), 3), float)
    return found


def find_hands(robot: _Skeleton) -> tuple[str, ...]:
    """Return the patches at the ends of limbs without feet: palms, then grips; no forearms."""
    standing = {robot.patches[name].limb for name in robot.feet}
    free = [patch for patch in robot.patches.values() if standing and patch.limb not in standing]
    depth = {patch.name: len(chain_of(robot, patch.name)) for patch in free}
    deepest = {limb: max(depth[p.name] for p in free if p.limb == limb) for limb in {p.limb for p in free}}
    at_end = [patch for patch in free if depth[patch.name] == deepest[patch.limb]]
    return tuple(patch.name for patch in sorted(at_end, key=lambda patch: patch.kind == "grasp"))


def measure_sizes(robot: _Skeleton) -> dict[str, float]:
    """Return the sizes by name (m, see `mcplan.scenario.parameters`) that the robot has."""
    q, standing = standing_posture(robot), tuple(robot.feet)
    if q is None or not standing:
        return {}
    places, patches = list(robot.feet.values()), [robot.patches[name] for name in standing]
    corners = [robot.frame_pose(q, patch.name)[0] @ [*x, 1.0] for patch in patches for x in patch.points]
    found = {
        "height": q[2],
        "leg": max(_length(robot, q, name) for name in standing),
        "foot": max(float(np.ptp(patch.polygon[:, 0])) for patch in patches),
        "width": max(place[1] for place in places) - min(place[1] for place in places),
        "front": max(corners) - q[0],
        "step": min(_step_height(robot, q, name) for name in standing),
    }
    limbs, arms = {patch.limb for patch in patches}, []
    for name, patch in robot.patches.items():
        if patch.limb not in limbs and patch.kind != "grasp" and len(chain := limb_chain(robot, name)) > 2:
            _, y, z = _body_position(robot, q, chain[0])
            arms.append((_length(robot, q, name), z, abs(y - q[1])))
    if arms:
        found["reach"], found["shoulder"], side = max(arms)
        found["breadth"] = 2.0 * side
    return {name: float(value) for name, value in found.items()}


def _length(robot: _Skeleton, q: np.ndarray, patch: str) -> float:
    places = [*(_body_position(robot, q, body) for body in limb_chain(robot, patch)), robot.frame_pose(q, patch)[:3, 3]]
    return float(np.linalg.norm(np.diff(places, axis=0), axis=1).sum())


def _step_height(robot: _Skeleton, q: np.ndarray, patch: str) -> float:
    """Return the height (m) by which a leg can lift the robot, with the centre of mass over the middle of the foot.

    A knee bent by ``2 b`` lifts by ``(t + s) (1 - cos b)`` when it stretches, with thigh t and shank s. The lever arm
    of the weight is ``s sin b - x``, x from the ankle to the middle of the foot; ``m g (s sin b - x)`` is limited to
    ``LIFT_TORQUE_SHARE`` of the knee's torque.
    """
    pitch = pitch_bodies(robot, q, limb_chain(robot, patch))
    if len(pitch) != 3:
        return FALLBACK_LIFT_SHARE * _length(robot, q, patch)
    hip, knee, ankle = (_body_position(robot, q, body) for body in pitch)
    thigh, shank = float(np.linalg.norm(knee - hip)), float(np.linalg.norm(ankle - knee))
    torque = robot.limits.torque[joint_of_body(robot)[pitch[1]]]
    middle = robot.frame_pose(q, patch) @ [*robot.patches[patch].polygon.mean(axis=0), 0.0, 1.0]
    lever = LIFT_TORQUE_SHARE * torque / (robot.mass * GRAVITY) + max(middle[0] - ankle[0], 0.0)
    bend = np.arcsin(min(lever / shank, np.sin(MAX_HALF_BEND_RAD)))
    return float((thigh + shank) * (1.0 - np.cos(bend)))


@dataclass(frozen=True)
class RobotScale:
    """Sizes of a robot relative to HRP-2, for which the default settings of planner and controller are given.

    Lengths of planner and controller scale with one of these ratios: a robot twice as large plans steps twice as long.
    Motions under gravity are dynamically similar if speeds scale with the square root of the length and stiffnesses
    with its inverse (Froude; Alexander 1989). Tolerances do not scale: accuracy does not depend on size.

    Attributes
    ----------
    leg : step lengths, lattices, clearances, swing heights, ``l / l_0``; without a standing posture that of mass.
    sole : margins of the centre of mass and of pressure, gaps between feet, ``sqrt(A / A_0)``; on points that of legs.
    arm : reach of hands, ``l / l_0``; without arms that of legs.
    mass : ``(m / m_0)^(1/3)``; forces scale with its third power.
    """

    leg: float = 1.0
    sole: float = 1.0
    arm: float = 1.0
    mass: float = 1.0

    @classmethod
    def of(cls, robot: _Skeleton) -> "RobotScale":
        """Measure a robot."""
        mass = (robot.mass / HRP2_MASS_KG) ** (1 / 3)
        found = measure_sizes(robot)
        leg = found["leg"] / HRP2_LEG_M if "leg" in found else mass
        areas = [float(np.ptp(robot.patches[name].polygon, axis=0).prod()) for name in robot.feet]
        sole = np.sqrt(max(areas)) / HRP2_SOLE_M if max(areas, default=0.0) > 0.0 else leg
        arm = found["reach"] / HRP2_ARM_M if "reach" in found else leg
        return cls(*(round(float(ratio), SCALE_DIGITS) for ratio in (leg, sole, arm, mass)))


HRP2_SCALE = RobotScale()
"""Scale of the reference robot."""
