"""Limbs in the air: nominal patch positions, limbs that would cross obstacles, half-space constraints of swing limbs.

The collision model keeps bodies millimetres apart; a patch in the air keeps a larger distance, as room for its swing.

A posture is found near a reference, independently of the previous posture, and overlaps are resolved by the shorter
displacement. So an arm that hung beside a rail may end above it, with no path between the two postures. `FreeLimbs`
keeps such an arm on its side.
"""

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from mcplan.collision.model import CollisionModel
from mcplan.core.posture.rows import POINT_HEIGHT, POSITION_ROWS
from mcplan.planning.posture.freedom import FrameRows, cell_row
from mcplan.robot.anatomy import Limb, limb_links, limb_rates
from mcplan.robot.pose import heading_rotation
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment, Surface

CONTACT_AHEAD_M = 0.25
"""Expected distance of a contact ahead of the root of a limb without contact at the start."""

CONTACT_BELOW_M = 0.1
"""Expected distance of this contact below the root."""


def nominal_offsets(
    robot: Robot, q: np.ndarray, contacts: tuple[Contact, ...], limbs: dict[str, Limb]
) -> dict[str, np.ndarray]:
    """Return the nominal position (3,) of each patch in the base's heading frame.

    It is the position at the start if the patch or another one of its limb is in contact, else a point ahead of the
    limb's root.
    """
    R = heading_rotation(q)
    contact_positions = {contact.patch: R.T @ (contact.p - q[:3]) for contact in contacts}
    offsets = {}
    for limb in limbs.values():
        limb_positions = [contact_positions[patch] for patch in limb.patches if patch in contact_positions]
        for patch in limb.patches:
            if patch in contact_positions:
                offsets[patch] = contact_positions[patch]
            elif limb_positions:
                position = R.T @ (robot.frame_pose(q, patch)[:3, 3] - q[:3])
                offsets[patch] = np.array([position[0], position[1], min(p[2] for p in limb_positions)])
            else:
                offsets[patch] = limb.root + robot.scale.arm * np.array([CONTACT_AHEAD_M, 0.0, -CONTACT_BELOW_M])
    return offsets


MAX_OVERLAP_M = 0.01
"""Bodies that overlap by less than this on the straight path between two postures are easy to avoid."""

PATH_SAMPLES = 7
"""Number of postures that are checked on the path between two postures."""


class FreeLimbs:
    """Finds limbs in the air that would cross an obstacle between two postures, and keeps their previous joints.

    Parameters
    ----------
    robot, collisions : the scene.
    """

    def __init__(self, robot: Robot, collisions: CollisionModel):
        self.robot, self.collisions = robot, collisions
        names = dict.fromkeys(patch.limb for patch in robot.patches.values())
        links_of_limb = {name: limb_links(robot, name) for name in names}
        robot_links = set(robot.link_names)
        self._rates = {name: limb_rates(robot, name) for name in names}
        min_distance = -robot.scale.arm * MAX_OVERLAP_M
        limb_pairs = {
            name: [pair.a in links_of_limb[name] and pair.b not in robot_links for pair in collisions.pairs]
            for name in names
        }
        self._margins = {
            name: np.where(is_limb_pair, min_distance, -np.inf)
            for name, is_limb_pair in limb_pairs.items()
            if any(is_limb_pair)
        }

    def crossing(self, touching: Collection[str], q0: np.ndarray, q1: np.ndarray) -> tuple[str, ...]:
        """Return the names of the limbs that cross an obstacle on the straight path between two postures.

        Parameters
        ----------
        touching : patches in contact; their limbs are not checked, since their paths are planned.
        q0, q1 : (nq,) postures.
        """
        contact_limbs = {self.robot.patches[patch].limb for patch in touching}
        free = [name for name in self._margins if name not in contact_limbs]
        if not free:
            return ()
        shares = np.arange(1, PATH_SAMPLES + 1) / (PATH_SAMPLES + 1)
        postures = self.robot.integrate(q0, shares[:, None] * self.robot.difference(q0, q1), 1.0)
        is_close = self.collisions.are_close(postures, np.array([self._margins[name] for name in free]))
        return tuple(name for name, close in zip(free, is_close.tolist(), strict=True) if close)

    def keep_limbs(self, limbs: Collection[str], q: np.ndarray, guide: np.ndarray) -> np.ndarray:
        """Return ``guide`` (nq,) with the joints of some limbs from ``q``."""
        step = self.robot.difference(guide, q)
        is_kept = np.zeros(self.robot.nv, bool)
        for limb in limbs:
            is_kept[self._rates[limb]] = True
        return np.asarray(self.robot.integrate(guide, np.where(is_kept, step, 0.0), 1.0))


LIFT_HEIGHT_M = 0.05
"""Smallest height of a lifted patch above a surface."""

NEIGHBOUR_GAP_M = 0.04
"""Distance of a lifted patch from one that stays on the same support, or its distance before if that was smaller."""

BORDER_DISTANCE_M = 0.10
"""A surface is considered if the patch is above it, or at most this far beyond its border."""

DEPTH_BELOW_PLANE_M = 0.1
"""A surface is not considered if the patch is farther than this below its plane."""


def swing_limb_rows(
    robot: Robot, environment: Environment, guide: np.ndarray, contacts: Iterable[Contact], lifted: Sequence[Contact]
) -> dict[str, FrameRows]:
    """Return the half-space constraints of patches that were lifted and whose limbs are in the air.

    Parameters
    ----------
    guide : (nq,) preferred posture, which determines the surfaces below each patch.
    contacts : contacts of the posture; their limbs are not free.
    lifted : the last contact of each patch that was lifted.

    Returns
    -------
    rows : {patch: rows}, ``n . x >= d`` for each point x of the patch and each plane.
    """
    contacts = tuple(contacts)
    contact_limbs = {robot.patches[contact.patch].limb for contact in contacts}
    found = {}
    for contact in lifted:
        patch = robot.patches[contact.patch]
        if patch.limb in contact_limbs or contact.kind == "grasp":
            continue
        position = robot.frame_pose(guide, contact.patch)[:3, 3]
        planes = [
            (surface.normal, float(surface.normal @ surface.p) + robot.scale.leg * LIFT_HEIGHT_M)
            for surface in environment.surfaces
            if _is_near_surface(surface, position, robot.scale.leg)
        ]
        gap = robot.scale.leg * NEIGHBOUR_GAP_M
        planes += [_separating_plane(contact, other, gap) for other in contacts if other.support == contact.support]
        if planes:
            body, offset = robot.frame(contact.patch)
            frame = np.concatenate([offset, np.eye(3).ravel(), np.zeros(3)])
            raised_planes = [(n, d + patch.radius) for n, d in planes]
            cell = np.array([cell_row(n, x, d, np.inf, POINT_HEIGHT) for n, d in raised_planes for x in patch.points])
            found[contact.patch] = FrameRows(POSITION_ROWS, body, frame, np.zeros((0, 6)), cell)
    return found


def _separating_plane(lifted: Contact, other: Contact, gap: float) -> tuple[np.ndarray, float]:
    """Return the half-space ``n . x >= d`` in which a lifted patch stays apart from another one on the same support.

    The normal n is the axis of either patch along which their distance was largest; ``gap`` (m) limits this distance.
    """
    best = (-np.inf, np.zeros(3), 0.0)
    for axis in (other.R[:, 0], other.R[:, 1], lifted.R[:, 0], lifted.R[:, 1]):
        for n in (axis, -axis):
            edge = float((other.world_points @ n).max())
            distance = float((lifted.world_points @ n).min()) - edge
            if distance > best[0]:
                best = (distance, n, edge + min(distance, gap))
    return best[1], best[2]


def _is_near_surface(surface: Surface, position: np.ndarray, size: float) -> bool:
    """Whether a position (3,) is above a surface or near its border, and not far below its plane."""
    if surface.normal[2] < 0.2:
        return False
    local = surface.R.T @ (position - surface.p)
    if local[2] < -size * DEPTH_BELOW_PLANE_M:
        return False
    edge = np.roll(surface.polygon, -1, axis=0) - surface.polygon
    outward = np.column_stack([edge[:, 1], -edge[:, 0]]) / np.linalg.norm(edge, axis=1, keepdims=True)
    distance = np.einsum("ij,ij->i", outward, local[:2] - surface.polygon)
    return float(distance.max()) < size * BORDER_DISTANCE_M
