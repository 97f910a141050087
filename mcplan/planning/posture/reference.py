"""Reference postures: placement on contacts, comfortable centre of mass, mirror image of a robot.

Mirrored in the plane y = 0 of the neutral posture, a point (x, y, z) becomes (x, -y, z), and so does the direction of a
slide; an axis of rotation (a, b, c) becomes (-a, b, -c). A posture of a symmetric robot then has a twin, with the base
on the other side.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.core.rigid_body.tree import GRAVITY, V
from mcplan.optimize.dense import solve_dense
from mcplan.robot.anatomy import HRP2_SCALE, RobotScale
from mcplan.robot.pose import base_orientation, with_base
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.statics.contact_forces import ForceUnknowns, moments_about
from mcplan.statics.support_region import SupportRegion

COMFORT_INSET_M = 0.06
"""m: preferred distance of the centre of mass from the edge of its region; less in a thin region."""

STAY_PRICE = 10.0
"""1/m²: weight of the squared shift of the centre of mass, relative to squared forces in weights."""

PERTURBED_STARTS = 6
"""Number of perturbed starts."""

JOINT_DEVIATION_RAD = 0.3
"""rad: standard deviation of their joints; that of the base is a quarter of it."""

GROUND_TOLERANCE_M = 0.015
"""m: a named posture stands on the patches within this height of its lowest point."""


def patch_heading(R: np.ndarray) -> float:
    """Return the angle about the vertical (rad) of a patch's x axis, or of its y axis where x is steep."""
    axis, turn = (R[:, 0], 0.0) if np.hypot(*R[:2, 0]) > 0.5 else (R[:, 1], 0.5 * np.pi)
    return float(np.arctan2(axis[1], axis[0]) + turn)


def guide_posture(
    robot: Robot, reference: np.ndarray, standing: Sequence[str], contacts: Sequence[Contact]
) -> np.ndarray | None:
    """Return the reference posture moved rigidly, by place and heading, onto the contacts.

    Parameters
    ----------
    reference : (nq,) the posture to take.
    standing : patches that the reference posture stands on.
    contacts : those with a patch among ``standing`` count, with equal weights.

    Returns
    -------
    q : (nq,), or None if no contact counts.
    """
    moves = []
    for contact in contacts:
        if contact.patch not in standing:
            continue
        X = robot.frame_pose(reference, contact.patch)
        turn = patch_heading(contact.R) - patch_heading(X[:3, :3])
        moves.append((np.array([np.cos(turn), np.sin(turn)]), reference[:3] - X[:3, 3], contact.p))
    if not moves:
        return None
    direction = np.sum([move[0] for move in moves], axis=0)
    yaw = Rotation.from_euler("z", np.arctan2(direction[1], direction[0]))
    place = np.mean([p + yaw.apply(arm) for _, arm, p in moves], axis=0)
    return with_base(reference, place, yaw * base_orientation(reference))


def comfortable_place(
    region: SupportRegion, loaded: Sequence[Contact], com: np.ndarray, mass: float, scale: RobotScale = HRP2_SCALE
) -> np.ndarray:
    """Return the place (2,) of the centre of mass near ``com`` with the smallest contact forces.

        minimise   |f|^2 + STAY_PRICE |c - com|^2   subject to   balance of gravity at c,   c well inside the region

    Parameters
    ----------
    region : support region of ``loaded``.
    com : (2,) or (3,) preferred place (m).
    mass, scale : of the robot, kg, and its size.
    """
    forces = ForceUnknowns(loaded)
    size, stay = forces.size, STAY_PRICE / scale.leg**2
    reference = np.append(np.asarray(com, dtype=float)[:2], 0.0)
    inside = region.inset(scale.sole * COMFORT_INSET_M, share=0.8)
    # unknowns f in weights, c - com; (c - com) x (0, 0, -1) = (-cy, cx, 0)
    equal = 6 + len(forces.equal)
    A = np.zeros((equal + len(inside), size + 2))
    A[:6, :size] = moments_about(forces.map, reference)
    A[6:equal, :size] = forces.equal
    A[3, size + 1], A[4, size] = -1.0, 1.0
    A[equal:, size:] = region.A
    F, upper = forces.face_rows()
    F = F[upper == 0.0]  # cones only: the region accounts for limits in newtons
    balance = np.zeros(equal)
    balance[2] = 1.0
    balance[6:] = forces.equal_to / (mass * GRAVITY)
    room = inside - region.A @ reference[:2]
    solution = solve_dense(
        np.diag(np.append(forces.norm, [stay, stay])),
        np.zeros(size + 2),
        np.vstack([A, np.hstack([F, np.zeros((len(F), 2))])]),
        np.concatenate([balance, np.full(len(room) + len(F), -np.inf)]),
        np.concatenate([balance, room, np.zeros(len(F))]),
    )
    return reference[:2] + solution.x[size:] if solution.ok else region.centre


def ground_patches(robot: Robot, q: np.ndarray) -> frozenset[str]:
    """Return the patches that a posture stands on: those that face down at its lowest level; soles before toes."""
    level: dict[str, float] = {}
    ground = robot.scale.leg * GROUND_TOLERANCE_M
    for name, patch in robot.patches.items():
        X = robot.frame_pose(q, name)
        points = X[:3, 3] + patch.points @ X[:3, :3].T
        if X[2, 2] < -0.3 and patch.kind == "surface" and np.ptp(points[:, 2]) < ground:
            level[name] = float(points[:, 2].mean())
    if not level:
        return frozenset()
    floor = min(level.values())
    down = [name for name, z in level.items() if z < floor + ground]
    links = {robot.patches[name].link for name in down if len(robot.patches[name].polygon) > 2}
    return frozenset(
        name for name in down if len(robot.patches[name].polygon) > 2 or robot.patches[name].link not in links
    )


def perturbed_starts(robot: Robot, guide: np.ndarray) -> list[np.ndarray]:
    """Return postures (nq,) around a guide, the same at each call, as starts if the guide itself fails."""
    steps = JOINT_DEVIATION_RAD * np.random.default_rng(0).normal(size=(PERTURBED_STARTS, robot.nv))
    steps[:, :6] *= 0.25
    steps[:, :3] *= robot.scale.leg
    return [robot.integrate(guide, step, 1.0) for step in steps]


MIRROR_TOLERANCE_M = 5e-3
"""m: tolerance of mirror images."""


@dataclass(frozen=True, eq=False)
class Mirror:
    """The mirror image of a robot.

    Attributes
    ----------
    joint : (n,) index of each joint's image; ``sign`` (n,) of its angle or displacement.
    patch : name of each patch's image.
    """

    joint: np.ndarray
    sign: np.ndarray
    patch: dict[str, str]

    @classmethod
    def of(cls, robot: Robot) -> "Mirror | None":
        """Return the mirror image, or None for a robot that has none."""
        q = robot.neutral()
        flip, turn = np.array([1.0, -1.0, 1.0]), np.array([-1.0, 1.0, -1.0])
        slides = np.array([unit == "m" for unit in robot.joint_units], bool)
        origins, axes = np.zeros((robot.n, 3)), np.zeros((robot.n, 3))
        for link in robot.link_names:
            body, offset = robot.frame(link)
            if body and not offset[9:].any():
                j = int(robot.tree.topology[body, V]) - 6
                origins[j] = robot.frame_pose(q, link)[:3, 3] - q[:3]
                column = robot.frame_jacobian(q, link)[:, 6 + j]
                axes[j] = column[:3] if slides[j] else column[3:]
        joint, sign = np.zeros(robot.n, int), np.ones(robot.n)
        for j in range(robot.n):
            image = (flip if slides[j] else turn) * axes[j]
            cost = np.linalg.norm(origins - flip * origins[j], axis=1) + 1.0 - np.abs(axes @ image)
            joint[j] = int(np.argmin(cost + (slides != slides[j])))
            if cost[joint[j]] > MIRROR_TOLERANCE_M:
                return None
            sign[j] = np.sign(axes[joint[j]] @ image)
        places = {name: robot.frame_pose(q, name) for name in robot.patches}

        def unlike(name: str, other: str) -> float:
            """Return the distance of one patch's place, axis and kind from the mirror image of another's."""
            X, image = places[name], places[other]
            away = float(np.linalg.norm(image[:3, 3] - flip * X[:3, 3]))
            turned = float(np.linalg.norm(image[:3, 2] - flip * X[:3, 2]))
            return away + turned + (robot.patches[other].kind != robot.patches[name].kind)

        patch = {name: min(places, key=partial(unlike, name)) for name in places}
        return cls(joint, sign, patch)

    def posture(self, q: np.ndarray) -> np.ndarray:
        """Return the twin (nq,) of a posture."""
        twin = q.copy()
        twin[1] = -q[1]
        twin[4], twin[6] = -q[4], -q[6]
        twin[7 + self.joint] = self.sign * q[7:]
        return twin
