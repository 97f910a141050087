"""Reference postures: placement on contacts, comfortable centre of mass, mirror image of a robot.

The mirror plane is y = 0 of the neutral posture. The image of a point (x, y, z) or of the direction of a prismatic
joint is (x, -y, z), the image of an axis of rotation (a, b, c) is (-a, b, -c). Each posture of a symmetric robot has a
mirror image.
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
"""Preferred distance of the centre of mass from the edge of its region; smaller in a thin region."""

COM_SHIFT_WEIGHT = 10.0
"""Cost of the squared shift of the centre of mass (1/m²); forces in units of the robot's weight have the cost 1."""

PERTURBED_START_COUNT = 6
"""Number of perturbed initial postures."""

JOINT_PERTURBATION_RAD = 0.3
"""Standard deviation of their joints; that of the base (rad, m) is a quarter of it."""

GROUND_TOLERANCE_M = 0.015
"""A named posture stands on the patches that are at most this much higher than the lowest one."""


def patch_heading(R: np.ndarray) -> float:
    """Return the heading (rad) of a patch with the rotation ``R`` (3, 3).

    It is the direction of the x axis in the horizontal plane; if that is steep, that of the y axis plus 90 degrees.
    """
    axis, turn = (R[:, 0], 0.0) if np.hypot(*R[:2, 0]) > 0.5 else (R[:, 1], 0.5 * np.pi)
    return float(np.arctan2(axis[1], axis[0]) + turn)


def guide_posture(
    robot: Robot, reference: np.ndarray, standing: Sequence[str], contacts: Sequence[Contact]
) -> np.ndarray | None:
    """Return the reference posture, rigidly displaced and turned about the vertical, to fit the contacts best.

    Parameters
    ----------
    reference : (nq,) reference posture.
    standing : patches that the reference posture stands on.
    contacts : contacts to fit; only those of patches in ``standing`` are used, with equal weights.

    Returns
    -------
    q : (nq,), or None if no contact is used.
    """
    fits = []
    for contact in contacts:
        if contact.patch not in standing:
            continue
        X = robot.frame_pose(reference, contact.patch)
        angle = patch_heading(contact.R) - patch_heading(X[:3, :3])
        fits.append((np.array([np.cos(angle), np.sin(angle)]), reference[:3] - X[:3, 3], contact.p))
    if not fits:
        return None
    mean_direction = np.sum([move[0] for move in fits], axis=0)
    yaw = Rotation.from_euler("z", np.arctan2(mean_direction[1], mean_direction[0]))
    position = np.mean([p + yaw.apply(base_offset) for _, base_offset, p in fits], axis=0)
    return with_base(reference, position, yaw * base_orientation(reference))


def comfortable_com(
    region: SupportRegion, loaded: Sequence[Contact], com: np.ndarray, mass: float, scale: RobotScale = HRP2_SCALE
) -> np.ndarray:
    """Return the position c (2,) of the centre of mass near ``com`` with the smallest contact forces f.

        minimise    |f|^2 + COM_SHIFT_WEIGHT |c - com|^2
        subject to  balance of gravity at c,   c well inside the region

    Parameters
    ----------
    region : support region of ``loaded``.
    loaded : contacts that carry load.
    com : (2,) or (3,) preferred position (m).
    mass : mass of the robot (kg).
    scale : size of the robot.
    """
    forces = ForceUnknowns(loaded)
    size, shift_weight = forces.size, COM_SHIFT_WEIGHT / scale.leg**2
    reference = np.append(np.asarray(com, dtype=float)[:2], 0.0)
    comfort_bounds = region.inset(scale.sole * COMFORT_INSET_M, share=0.8)
    # unknowns: f in units of the weight, and d = c - com, whose moment of gravity is d x (0, 0, -1) = (-d_y, d_x, 0)
    n_equal = 6 + len(forces.equal)
    A = np.zeros((n_equal + len(comfort_bounds), size + 2))
    A[:6, :size] = moments_about(forces.map, reference)
    A[6:n_equal, :size] = forces.equal
    A[3, size + 1], A[4, size] = -1.0, 1.0
    A[n_equal:, size:] = region.A
    cone_rows, cone_bounds = forces.face_rows()
    cone_rows = cone_rows[cone_bounds == 0.0]  # cones only: the region accounts for limits in newtons
    equality_rhs = np.zeros(n_equal)
    equality_rhs[2] = 1.0
    equality_rhs[6:] = forces.equal_to / (mass * GRAVITY)
    upper_bound = comfort_bounds - region.A @ reference[:2]
    solution = solve_dense(
        np.diag(np.append(forces.norm, [shift_weight, shift_weight])),
        np.zeros(size + 2),
        np.vstack([A, np.hstack([cone_rows, np.zeros((len(cone_rows), 2))])]),
        np.concatenate([equality_rhs, np.full(len(upper_bound) + len(cone_rows), -np.inf)]),
        np.concatenate([equality_rhs, upper_bound, np.zeros(len(cone_rows))]),
    )
    return reference[:2] + solution.x[size:] if solution.ok else region.centre


def ground_patches(robot: Robot, q: np.ndarray) -> frozenset[str]:
    """Return the patches that a posture stands on: those at its lowest level that face down.

    A toe edge does not count beside a flat patch of the same link.
    """
    heights: dict[str, float] = {}
    tolerance = robot.scale.leg * GROUND_TOLERANCE_M
    for name, patch in robot.patches.items():
        X = robot.frame_pose(q, name)
        points = X[:3, 3] + patch.points @ X[:3, :3].T
        if X[2, 2] < -0.3 and patch.kind == "surface" and np.ptp(points[:, 2]) < tolerance:
            heights[name] = float(points[:, 2].mean())
    if not heights:
        return frozenset()
    floor = min(heights.values())
    lowest = [name for name, z in heights.items() if z < floor + tolerance]
    links = {robot.patches[name].link for name in lowest if len(robot.patches[name].polygon) > 2}
    return frozenset(
        name for name in lowest if len(robot.patches[name].polygon) > 2 or robot.patches[name].link not in links
    )


def perturbed_starts(robot: Robot, guide: np.ndarray) -> list[np.ndarray]:
    """Return randomly perturbed guides (nq,), the same at each call, to start from if the guide itself fails."""
    steps = JOINT_PERTURBATION_RAD * np.random.default_rng(0).normal(size=(PERTURBED_START_COUNT, robot.nv))
    steps[:, :6] *= 0.25
    steps[:, :3] *= robot.scale.leg
    return [robot.integrate(guide, step, 1.0) for step in steps]


MIRROR_TOLERANCE_M = 5e-3
"""Tolerance of mirror images: position (m) plus axis error."""


@dataclass(frozen=True, eq=False)
class Mirror:
    """The mirror image of a robot.

    Attributes
    ----------
    joint : (n,) index of each joint's image.
    sign : (n,) sign of the image's angle or displacement relative to that of the joint.
    patch : name of each patch's image, by patch.
    """

    joint: np.ndarray
    sign: np.ndarray
    patch: dict[str, str]

    @classmethod
    def of(cls, robot: Robot) -> "Mirror | None":
        """Return the mirror image of a robot, or None if the robot is not symmetric."""
        q = robot.neutral()
        reflect_vector, reflect_axis = np.array([1.0, -1.0, 1.0]), np.array([-1.0, 1.0, -1.0])
        is_slide = np.array([unit == "m" for unit in robot.joint_units], bool)
        origins, axes = np.zeros((robot.n, 3)), np.zeros((robot.n, 3))
        for link in robot.link_names:
            body, offset = robot.frame(link)
            if body and not offset[9:].any():
                j = int(robot.tree.topology[body, V]) - 6
                origins[j] = robot.frame_pose(q, link)[:3, 3] - q[:3]
                column = robot.frame_jacobian(q, link)[:, 6 + j]
                axes[j] = column[:3] if is_slide[j] else column[3:]
        joint, sign = np.zeros(robot.n, int), np.ones(robot.n)
        for j in range(robot.n):
            image = (reflect_vector if is_slide[j] else reflect_axis) * axes[j]
            cost = np.linalg.norm(origins - reflect_vector * origins[j], axis=1) + 1.0 - np.abs(axes @ image)
            joint[j] = int(np.argmin(cost + (is_slide != is_slide[j])))
            if cost[joint[j]] > MIRROR_TOLERANCE_M:
                return None
            sign[j] = np.sign(axes[joint[j]] @ image)
        poses = {name: robot.frame_pose(q, name) for name in robot.patches}

        def mirror_error(name: str, other: str) -> float:
            """Return the difference in position, normal and kind between a patch and the image of another one."""
            X, image = poses[name], poses[other]
            position_error = float(np.linalg.norm(image[:3, 3] - reflect_vector * X[:3, 3]))
            axis_error = float(np.linalg.norm(image[:3, 2] - reflect_vector * X[:3, 2]))
            return position_error + axis_error + (robot.patches[other].kind != robot.patches[name].kind)

        patch = {name: min(poses, key=partial(mirror_error, name)) for name in poses}
        return cls(joint, sign, patch)

    def posture(self, q: np.ndarray) -> np.ndarray:
        """Return the mirror image (nq,) of a posture."""
        twin = q.copy()
        twin[1] = -q[1]
        twin[4], twin[6] = -q[4], -q[6]
        twin[7 + self.joint] = self.sign * q[7:]
        return twin
