"""Limbs in the air: nominal patch positions, limbs that would cross obstacles, half-space constraints of swing limbs.

The collision model keeps bodies millimetres apart; a patch in the air keeps more, so that it has room to swing. A
posture is found near a reference without regard to the one before. Overlaps are resolved by the shorter displacement:
an arm may end above a rail beside which it hung, with no path between the two. `FreeLimbs` keeps it on its side.
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

TOUCH_AHEAD_M = 0.25
"""m: expected distance of a contact ahead of the root of a limb that has none at the start."""

TOUCH_BELOW_M = 0.1
"""m: the same below the root."""


def nominal_offsets(
    robot: Robot, q: np.ndarray, contacts: tuple[Contact, ...], limbs: dict[str, Limb]
) -> dict[str, np.ndarray]:
    """Return the nominal place (3,) of each patch in the base's heading frame.

    That of the start where the patch touches there, or another one of its limb does; else ahead of the limb's root.
    """
    turn = heading_rotation(q)
    touching = {contact.patch: turn.T @ (contact.p - q[:3]) for contact in contacts}
    offsets = {}
    for limb in limbs.values():
        own = [touching[patch] for patch in limb.patches if patch in touching]
        for patch in limb.patches:
            if patch in touching:
                offsets[patch] = touching[patch]
            elif own:
                place = turn.T @ (robot.frame_pose(q, patch)[:3, 3] - q[:3])
                offsets[patch] = np.array([place[0], place[1], min(p[2] for p in own)])
            else:
                offsets[patch] = limb.root + robot.scale.arm * np.array([TOUCH_AHEAD_M, 0.0, -TOUCH_BELOW_M])
    return offsets


MAX_OVERLAP_M = 0.01
"""m: bodies that overlap by less than this on the straight path between two postures are easy to avoid."""

PATH_SAMPLES = 7
"""Postures between two that are looked at."""


class FreeLimbs:
    """Tells which limbs would have to go through something, and keeps them where they were.

    Parameters
    ----------
    robot, collisions : the scene.
    """

    def __init__(self, robot: Robot, collisions: CollisionModel):
        self.robot, self.collisions = robot, collisions
        names = dict.fromkeys(patch.limb for patch in robot.patches.values())
        own = {name: limb_links(robot, name) for name in names}
        links = set(robot.link_names)
        self._rates = {name: limb_rates(robot, name) for name in names}
        deep = -robot.scale.arm * MAX_OVERLAP_M
        of = {name: [pair.a in own[name] and pair.b not in links for pair in collisions.pairs] for name in names}
        self._margins = {name: np.where(mine, deep, -np.inf) for name, mine in of.items() if any(mine)}

    def crossing(self, touching: Collection[str], q0: np.ndarray, q1: np.ndarray) -> tuple[str, ...]:
        """Return the limbs that go through something on the straight path between two postures, by name.

        Parameters
        ----------
        touching : patches in contact; their limbs are left out, since their paths are planned.
        q0, q1 : (nq,) postures.
        """
        held = {self.robot.patches[patch].limb for patch in touching}
        found = [name for name in self._margins if name not in held]
        step = self.robot.difference(q0, q1)
        between = [
            self.robot.integrate(q0, step, share) for share in np.arange(1, PATH_SAMPLES + 1) / (PATH_SAMPLES + 1)
        ]
        least, margins = self.collisions.least, self._margins
        return tuple(name for name in found if any(least(q, margins[name]) is not None for q in between))

    def keep_limbs(self, limbs: Collection[str], q: np.ndarray, guide: np.ndarray) -> np.ndarray:
        """Return ``guide`` (nq,) with the joints of some limbs as they are in ``q``."""
        step = self.robot.difference(guide, q)
        mine = np.zeros(self.robot.nv, bool)
        for limb in limbs:
            mine[self._rates[limb]] = True
        return np.asarray(self.robot.integrate(guide, np.where(mine, step, 0.0), 1.0))


LIFT_HEIGHT_M = 0.05
"""m: height of a lifted patch above a surface."""

NEIGHBOUR_GAP_M = 0.04
"""m: sideways distance of a lifted patch from one that stays on the same support, as far as it had it."""

BORDER_DISTANCE_M = 0.10
"""m: a surface counts when the patch is above it, or this near to its border."""

DEPTH_BELOW_PLANE_M = 0.1
"""m: a surface does not count when the patch is farther below its plane."""


def swing_limb_rows(
    robot: Robot, environment: Environment, guide: np.ndarray, in_place: Iterable[Contact], lifted: Sequence[Contact]
) -> dict[str, FrameRows]:
    """Return the rows that patches which were in contact, and whose limbs now hang in the air, are to keep.

    Parameters
    ----------
    guide : (nq,) the posture that will be preferred: it says which surfaces are below.
    in_place : contacts of the posture; their limbs are not free.
    lifted : the last contact of each patch that was lifted.

    Returns
    -------
    rows : {patch: rows}, ``n . x >= d`` for each point x of the patch and each plane.
    """
    in_place = tuple(in_place)
    busy = {robot.patches[contact.patch].limb for contact in in_place}
    found = {}
    for contact in lifted:
        patch = robot.patches[contact.patch]
        if patch.limb in busy or contact.kind == "grasp":
            continue
        place = robot.frame_pose(guide, contact.patch)[:3, 3]
        planes = [
            (surface.normal, float(surface.normal @ surface.p) + robot.scale.leg * LIFT_HEIGHT_M)
            for surface in environment.surfaces
            if _below(surface, place, robot.scale.leg)
        ]
        gap = robot.scale.leg * NEIGHBOUR_GAP_M
        planes += [_beside(contact, other, gap) for other in in_place if other.support == contact.support]
        if planes:
            body, offset = robot.frame(contact.patch)
            frame = np.concatenate([offset, np.eye(3).ravel(), np.zeros(3)])
            above = [(n, d + patch.radius) for n, d in planes]
            cell = np.array([cell_row(n, x, d, np.inf, POINT_HEIGHT) for n, d in above for x in patch.points])
            found[contact.patch] = FrameRows(POSITION_ROWS, body, frame, np.zeros((0, 6)), cell)
    return found


def _beside(lifted: Contact, other: Contact, gap: float) -> tuple[np.ndarray, float]:
    """Return the plane (n, d) that kept two patches on one support apart best, for the lifted one to stay beyond it."""
    best = (-np.inf, np.zeros(3), 0.0)
    for axis in (other.R[:, 0], other.R[:, 1], lifted.R[:, 0], lifted.R[:, 1]):
        for n in (axis, -axis):
            edge = float((other.world_points @ n).max())
            distance = float((lifted.world_points @ n).min()) - edge
            if distance > best[0]:
                best = (distance, n, edge + min(distance, gap))
    return best[1], best[2]


def _below(surface: Surface, place: np.ndarray, size: float) -> bool:
    """Whether ``place`` (3,) is above the surface, or at most `DEPTH_BELOW_PLANE_M` below its plane, and near it."""
    if surface.normal[2] < 0.2:
        return False
    local = surface.R.T @ (place - surface.p)
    if local[2] < -size * DEPTH_BELOW_PLANE_M:
        return False
    edge = np.roll(surface.polygon, -1, axis=0) - surface.polygon
    outward = np.column_stack([edge[:, 1], -edge[:, 0]]) / np.linalg.norm(edge, axis=1, keepdims=True)
    distance = np.einsum("ij,ij->i", outward, local[:2] - surface.polygon)
    return float(distance.max()) < size * BORDER_DISTANCE_M
