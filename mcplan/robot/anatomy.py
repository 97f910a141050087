"""Robot anatomy: kinematic chains, limbs, feet and hands, knees and elbows, body sizes, scale relative to HRP-2.

All functions use the kinematic tree and the poses of patches only, not the names of joints or links.
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
"""Share of a limb's length, from its root, that counts as stiff: the thigh or the upper arm."""

MAX_FOLDED_SHARE = 0.6
"""Share of the straight length below which a joint that folds its limb must be able to bring the ends together."""

FOLD_MARGIN_RAD = 0.5
"""Range beyond the joint limits in which the angle of the straight limb is searched."""

FOLD_SAMPLES = 33
"""Number of angles sampled to find the angle of the straight limb, first in the range, then around the best one."""

FOOT_GRID_M = 0.005
"""Step to which the positions of feet are rounded, so that scenarios have simple numbers."""

GROUND_TOLERANCE_M, MIN_DOWNWARD_COSINE = 0.01, 0.9
"""Tolerances of a foot patch in the standing posture: distance from the ground, cosine to the downward direction."""

MIN_PITCH_COSINE = 0.8
"""Minimum cosine between the robot's y axis and the axis of a pitch joint: a hip, a knee, an ankle."""

LIFT_TORQUE_SHARE, MAX_HALF_BEND_RAD, FALLBACK_LIFT_SHARE = 0.5, np.pi / 3, 0.15
"""Share of a knee's torque limit for lifting the robot, with a reserve for a centre of mass off the foot; half of the
maximum knee bend; step height divided by leg length for a leg without a knee."""

HRP2_LEG_M, HRP2_SOLE_M, HRP2_ARM_M, HRP2_MASS_KG = 0.70703477, 0.17357995, 0.60750000, 56.03717
"""Leg length, square root of the sole's area, arm length and mass of HRP-2, whose scale is 1."""

SCALE_DIGITS = 6
"""Number of decimals of a size ratio, so that the last digits of a robot's file do not matter."""


class _RobotModel(Protocol):
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
    def sizes(self) -> dict[str, float]: ...
    @property
    def link_names(self) -> tuple[str, ...]: ...
    def posture(self, name: str) -> np.ndarray: ...
    def neutral(self) -> np.ndarray: ...
    def frame(self, name: str) -> tuple[int, np.ndarray]: ...
    def frame_pose(self, q, name: str) -> np.ndarray: ...
    def body_pose(self, q, body: int) -> np.ndarray: ...


# -- kinematic chains -------------------------------------------------------------------------------------------------


def chain_of(robot: _RobotModel, frame: str) -> list[int]:
    """Return the bodies on the path from the base (excluded) to the body that carries a link or patch."""
    body, chain = robot.frame(frame)[0], []
    while body > 0:
        chain.append(body)
        body = int(robot.tree.topology[body, PARENT])
    return chain[::-1]


def limb_chain(robot: _RobotModel, patch: str) -> list[int]:
    """Return the bodies of a patch's chain that carry no other limb: a waist that carries both arms is omitted.

    If every body also carries another limb, the result is the last body.
    """
    chain, limb = chain_of(robot, patch), robot.patches[patch].limb
    other_chains = [chain_of(robot, other.name) for other in robot.patches.values() if other.limb != limb]
    shared = {body for other in other_chains for body in other}
    return [body for body in chain if body not in shared] or chain[-1:]


def joint_of_body(robot: _RobotModel) -> dict[int, int]:
    """Return, by body, the index of the joint that moves it; the base has none."""
    return {body: int(robot.tree.topology[body, V]) - 6 for body in range(1, len(robot.tree.topology))}


def links_of_bodies(robot: _RobotModel) -> dict[int, list[str]]:
    """Return the links of each body, in the order of the file."""
    links: dict[int, list[str]] = {body: [] for body in range(len(robot.tree.topology))}
    for link in robot.link_names:
        links[robot.frame(link)[0]].append(link)
    return links


def pitch_bodies(robot: _RobotModel, q: np.ndarray, bodies: Iterable[int]) -> list[int]:
    """Return the bodies of a limb whose joints turn about the y axis of the world at ``q``: hip, knee, ankle."""
    return [body for body in bodies if abs(joint_axis(robot, q, body)[1]) > MIN_PITCH_COSINE]


def joint_axis(robot: _RobotModel, q: np.ndarray, body: int) -> np.ndarray:
    """Return the axis (3,) in the world of the joint that moves a body."""
    return robot.body_pose(q, body)[:3, :3] @ robot.tree.joint[body, AXIS : AXIS + 3]


def _body_position(robot: _RobotModel, q: np.ndarray, body: int) -> np.ndarray:
    return robot.body_pose(q, body)[:3, 3]


def _with_descendants(robot: _RobotModel, bodies: set[int]) -> set[int]:
    topology, descendants = robot.tree.topology, set(bodies)
    for i in range(len(topology)):  # parents come before their children
        if int(topology[i, PARENT]) in descendants:
            descendants.add(i)
    return descendants


def _links_on(robot: _RobotModel, bodies: set[int]) -> frozenset[str]:
    return frozenset(link for link in robot.link_names if robot.frame(link)[0] in bodies)


# -- limbs ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Limb:
    """One limb: its contact patches and its reach.

    Attributes
    ----------
    name : name of the limb.
    patches : names of its patches that may touch, in the robot's order.
    root : (3,) position of its first joint relative to the base, in axes turned by the heading of the base, m.
    length : distance from the root along the joints to the farthest patch, with prismatic joints extended, m.
    """

    name: str
    patches: tuple[str, ...]
    root: np.ndarray
    length: float


def limbs_of(robot: _RobotModel, q: np.ndarray, patches: tuple[str, ...]) -> dict[str, Limb]:
    """Return the limbs that own ``patches``, at the posture ``q`` (nq,)."""
    names = dict.fromkeys(patch.limb for patch in robot.patches.values() if patch.name in patches)
    heading = heading_rotation(q)
    limbs = {}
    for name in names:
        limb_patches = tuple(
            patch.name for patch in robot.patches.values() if patch.limb == name and patch.name in patches
        )
        length, root = 0.0, np.zeros(3)
        for patch in limb_patches:
            chain = limb_chain(robot, patch)
            positions = [_body_position(robot, q, body) for body in chain] + [robot.frame_pose(q, patch)[:3, 3]]
            joint_length = float(np.sum(np.linalg.norm(np.diff(positions, axis=0), axis=1)))
            strokes = (_stroke(robot, q, *segment) for segment in zip(chain, [positions[0], *positions], strict=False))
            length = max(length, joint_length + sum(strokes))
            root = heading.T @ (positions[0] - q[:3])
        limbs[name] = Limb(name, limb_patches, root, length)
    return limbs


def _stroke(robot: _RobotModel, q: np.ndarray, body: int, previous_position: np.ndarray) -> float:
    """Return by how much (m) a body's prismatic joint can increase its distance from a position (3,), from ``q`` on."""
    kind, i = robot.tree.topology[body, [TYPE, Q]]
    if kind != PRISMATIC:
        return 0.0
    distances = []
    for position in np.clip([robot.limits.lower[i - 7], robot.limits.upper[i - 7], q[i]], -MAX_SLIDE_M, MAX_SLIDE_M):
        extended = q.copy()
        extended[i] = position
        distances.append(float(np.linalg.norm(_body_position(robot, extended, body) - previous_position)))
    return max(distances) - distances[-1]


def far_links(robot: _RobotModel, q: np.ndarray, limbs: Mapping[str, Limb]) -> frozenset[str]:
    """Return the compliant links: those farther from the root of their limb than ``STIFF_SHARE`` of its length."""
    bodies: set[int] = set()
    for limb in limbs.values():
        for patch in limb.patches:
            chain = limb_chain(robot, patch)
            if not chain:  # a patch of the base itself
                continue
            positions = np.array([_body_position(robot, q, body) for body in chain])
            path_lengths = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(positions, axis=0), axis=1)))
            bodies |= {
                body for body, length in zip(chain, path_lengths, strict=True) if length > STIFF_SHARE * limb.length
            }
    return _links_on(robot, _with_descendants(robot, bodies))


def _limb_bodies(robot: _RobotModel, limb: str) -> set[int]:
    return {body for patch in robot.patches.values() if patch.limb == limb for body in limb_chain(robot, patch.name)}


def limb_joints(robot: _RobotModel, limb: str) -> np.ndarray:
    """Return the indices into q of the joints that move patches of this limb and of no other."""
    return np.unique(robot.tree.topology[sorted(_limb_bodies(robot, limb)), Q])


def limb_rates(robot: _RobotModel, limb: str) -> np.ndarray:
    """Return the indices into v of the joints that move patches of this limb and of no other."""
    return np.unique(robot.tree.topology[sorted(_limb_bodies(robot, limb)), V])


def limb_links(robot: _RobotModel, limb: str) -> frozenset[str]:
    """Return the links that the joints of a limb move, including the fingers of a hand."""
    return _links_on(robot, _with_descendants(robot, _limb_bodies(robot, limb)))


# -- knees and elbows -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fold:
    """A joint that folds a limb: a knee or an elbow.

    A straight limb is singular: the distance ``d`` between its ends has ``dd/dq = 0``. Between two fixed ends (ground
    and trunk) a millimetre of trunk motion then needs a large change of the knee angle, or has no solution. At an
    angle ``b`` from straight a limb of length l is ``l b² / 8`` shorter: 4 mm for 0.5 m at 0.25 rad.

    Attributes
    ----------
    joint : index of the joint.
    straight : joint angle (rad) of the straight limb, possibly outside the joint's limits.
    """

    joint: int
    straight: float

    def keep_bent(self, limit: np.ndarray, side: float, min_bend: float) -> None:
        """Narrow joint bounds (2, n) so that the limb stays bent by ``min_bend`` (rad), if the bounds allow it.

        The sign of ``side`` is that of the bend.
        """
        lower, upper = limit[:, self.joint]
        if side < 0.0:
            limit[1, self.joint] = max(min(upper, self.straight - min_bend), lower)
        else:
            limit[0, self.joint] = min(max(lower, self.straight + min_bend), upper)


def find_folds(robot: _RobotModel) -> dict[str, tuple[Fold, ...]]:
    """Return the joints that fold the limb of each patch, by the patch's name.

    The ends of the limb are the origins of its first and last body: hip and ankle for a sole. For a point or ball patch
    the second end is the patch. For a shank on the ground it is the knee, so this limb does not fold.
    """
    folds_of_patches: dict[str, tuple[Fold, ...]] = {}
    by_chain: dict[tuple, tuple[Fold, ...]] = {}
    for name, patch in robot.patches.items():
        bodies, is_point = limb_chain(robot, name), patch.kind in ("point", "ball")
        key = (*bodies, name if is_point else "")
        if key not in by_chain:
            by_chain[key] = tuple(_folds_of_chain(robot, bodies, name if is_point else None))
        folds_of_patches[name] = by_chain[key]
    return folds_of_patches


def _folds_of_chain(robot: _RobotModel, bodies: list[int], point_patch: str | None) -> list[Fold]:
    inner_bodies = bodies[1:] if point_patch else bodies[1:-1]
    if not inner_bodies:
        return []
    neutral, folds = robot.neutral(), []
    root = _body_position(robot, neutral, bodies[0])  # independent of the joints beyond it
    for body in inner_bodies:
        i = int(robot.tree.topology[body, Q])
        if robot.tree.topology[body, TYPE] != REVOLUTE:
            continue
        lower, upper = np.clip([limit[i - 7] for limit in (robot.limits.lower, robot.limits.upper)], -np.pi, np.pi)

        def distance(angle: float, i: int = i) -> float:
            q = neutral.copy()
            q[i] = angle
            end = robot.frame_pose(q, point_patch)[:3, 3] if point_patch else _body_position(robot, q, bodies[-1])
            return float(np.linalg.norm(end - root))

        angles = np.linspace(lower - FOLD_MARGIN_RAD, upper + FOLD_MARGIN_RAD, FOLD_SAMPLES)
        distances = [distance(angle) for angle in angles]
        farthest = int(np.argmax(distances))
        if 0 < farthest < FOLD_SAMPLES - 1 and min(distances) < MAX_FOLDED_SHARE * distances[farthest]:
            fine_angles = np.linspace(angles[farthest - 1], angles[farthest + 1], FOLD_SAMPLES)
            folds.append(Fold(i - 7, float(fine_angles[int(np.argmax([distance(angle) for angle in fine_angles]))])))
    return folds


def bent_limits(limits: np.ndarray, folds: Iterable[Fold], q: np.ndarray, min_bend: float) -> np.ndarray:
    """Return joint bounds (2, n) that keep limbs bent.

    Parameters
    ----------
    limits : (2, n) joint limits.
    folds : joints that fold the limbs.
    q : (n,) joint positions, which determine the side of the bend; a straight limb bends to the side with more range.
    min_bend : minimum bend (rad), if the limits allow it.
    """
    bounds = np.array(limits, dtype=float)
    for fold in folds:
        side = q[fold.joint] - fold.straight
        if abs(side) < min_bend:
            side = bounds[:, fold.joint].sum() - 2.0 * fold.straight
        fold.keep_bent(bounds, side, min_bend)
    return bounds


# -- feet, hands and sizes --------------------------------------------------------------------------------------------


def standing_posture(robot: _RobotModel) -> np.ndarray | None:
    """Return the standing posture (nq,): ``half_sitting``, else the first posture, else None."""
    names = [name for name in ("half_sitting", *robot.postures) if name in robot.postures]
    return robot.posture(names[0]) if names else None


def find_feet(robot: _RobotModel) -> dict[str, np.ndarray]:
    """Return the foot patches, with the positions (2,) of their origins relative to the point below the base."""
    q = standing_posture(robot)
    feet: dict[str, np.ndarray] = {}
    if q is None:
        return feet
    for name, patch in robot.patches.items():
        X = robot.frame_pose(q, name)
        faces_down = patch.kind in ("point", "ball") or (len(patch.polygon) > 2 and X[2, 2] < -MIN_DOWNWARD_COSINE)
        if patch.kind != "grasp" and faces_down and abs(X[2, 3] - patch.radius) < GROUND_TOLERANCE_M:
            feet[name] = np.array(np.round(FOOT_GRID_M * np.round((X[:2, 3] - q[:2]) / FOOT_GRID_M), 3), float)
    return feet


def find_hands(robot: _RobotModel) -> tuple[str, ...]:
    """Return the patches at the ends of limbs without feet, not those of forearms; grips are last."""
    feet_limbs = {robot.patches[name].limb for name in robot.feet}
    free_patches = [patch for patch in robot.patches.values() if feet_limbs and patch.limb not in feet_limbs]
    depth = {patch.name: len(chain_of(robot, patch.name)) for patch in free_patches}
    deepest = {
        limb: max(depth[p.name] for p in free_patches if p.limb == limb) for limb in {p.limb for p in free_patches}
    }
    end_patches = [patch for patch in free_patches if depth[patch.name] == deepest[patch.limb]]
    return tuple(patch.name for patch in sorted(end_patches, key=lambda patch: patch.kind == "grasp"))


def measure_sizes(robot: _RobotModel) -> dict[str, float]:
    """Return the sizes (m) of a robot by name, as defined in `mcplan.scenario.parameters`.

    Sizes that the robot does not have are missing, for example those of arms.
    """
    q, foot_names = standing_posture(robot), tuple(robot.feet)
    if q is None or not foot_names:
        return {}
    foot_positions, patches = list(robot.feet.values()), [robot.patches[name] for name in foot_names]
    corners = [robot.frame_pose(q, patch.name)[0] @ [*x, 1.0] for patch in patches for x in patch.points]
    sizes = {
        "height": q[2],
        "leg": max(_chain_length(robot, q, name) for name in foot_names),
        "foot": max(float(np.ptp(patch.polygon[:, 0])) for patch in patches),
        "width": max(position[1] for position in foot_positions) - min(position[1] for position in foot_positions),
        "front": max(corners) - q[0],
        "step": min(_step_height(robot, q, name) for name in foot_names),
    }
    limbs, arms = {patch.limb for patch in patches}, []
    for name, patch in robot.patches.items():
        if patch.limb not in limbs and patch.kind != "grasp" and len(chain := limb_chain(robot, name)) > 2:
            _, y, z = _body_position(robot, q, chain[0])
            arms.append((_chain_length(robot, q, name), z, abs(y - q[1])))
    if arms:
        sizes["reach"], sizes["shoulder"], shoulder_offset = max(arms)
        sizes["breadth"] = 2.0 * shoulder_offset
    return {name: float(value) for name, value in sizes.items()}


def _chain_length(robot: _RobotModel, q: np.ndarray, patch: str) -> float:
    positions = [
        *(_body_position(robot, q, body) for body in limb_chain(robot, patch)),
        robot.frame_pose(q, patch)[:3, 3],
    ]
    return float(np.linalg.norm(np.diff(positions, axis=0), axis=1).sum())


def _step_height(robot: _RobotModel, q: np.ndarray, patch: str) -> float:
    """Return the height (m) by which a leg can lift the robot, with the centre of mass over the middle of the foot.

    A knee bent by ``2 b`` lifts by ``(t + s) (1 - cos b)`` when it stretches, with thigh t and shank s. The lever arm
    of the weight is ``s sin b - x``, x from the ankle to the middle of the foot; ``m g (s sin b - x)`` is limited to
    ``LIFT_TORQUE_SHARE`` of the knee's torque.
    """
    bodies = pitch_bodies(robot, q, limb_chain(robot, patch))
    if len(bodies) != 3:
        return FALLBACK_LIFT_SHARE * _chain_length(robot, q, patch)
    hip, knee, ankle = (_body_position(robot, q, body) for body in bodies)
    thigh, shank = float(np.linalg.norm(knee - hip)), float(np.linalg.norm(ankle - knee))
    torque = robot.limits.torque[joint_of_body(robot)[bodies[1]]]
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
    leg : ratio ``l / l_0`` of leg lengths, for step lengths, lattices, clearances and swing heights; ``mass`` for a
        robot without a standing posture.
    sole : ratio ``sqrt(A / A_0)`` of the sizes of soles, for margins of the centre of mass and of pressure and for gaps
        between feet; ``leg`` for point feet.
    arm : ratio ``l / l_0`` of arm lengths, for the reach of hands; ``leg`` without arms.
    mass : ``(m / m_0)^(1/3)``; forces scale with its third power.
    """

    leg: float = 1.0
    sole: float = 1.0
    arm: float = 1.0
    mass: float = 1.0

    @classmethod
    def of(cls, robot: _RobotModel) -> "RobotScale":
        """Return the scale of a robot."""
        mass = (robot.mass / HRP2_MASS_KG) ** (1 / 3)
        sizes = robot.sizes
        leg = sizes["leg"] / HRP2_LEG_M if "leg" in sizes else mass
        areas = [float(np.ptp(robot.patches[name].polygon, axis=0).prod()) for name in robot.feet]
        sole = np.sqrt(max(areas)) / HRP2_SOLE_M if max(areas, default=0.0) > 0.0 else leg
        arm = sizes["reach"] / HRP2_ARM_M if "reach" in sizes else leg
        return cls(*(round(float(ratio), SCALE_DIGITS) for ratio in (leg, sole, arm, mass)))


HRP2_SCALE = RobotScale()
"""Scale of the reference robot."""
