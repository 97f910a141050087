"""Where limbs in the air must not go: a lifted patch stays above the surfaces below it and beside its neighbours.

The model of collisions keeps bodies apart by millimetres; a patch in the air keeps more, so that it has room to swing.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from mcplan.core.posture.rows import OF_POINT, PLACE_ROWS
from mcplan.model.robot import Robot
from mcplan.planning.posture.freedom import ContactRows, cell_row
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment, Surface

LIFT = 0.05
"""m: height of a lifted patch above a surface."""

GAP = 0.04
"""m: sideways distance of a lifted patch from one that stays on the same support, as far as it had it."""

REACH, UNDER = 0.10, 0.1
"""m: a surface counts when the patch is over it or this near to its border, and no farther below its plane."""


def airborne(
    robot: Robot, environment: Environment, guide: np.ndarray, in_place: Iterable[Contact], lifted: Sequence[Contact]
) -> dict[str, ContactRows]:
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
            (surface.normal, float(surface.normal @ surface.p) + robot.scale.leg * LIFT)
            for surface in environment.surfaces
            if _below(surface, place, robot.scale.leg)
        ]
        gap = robot.scale.leg * GAP
        planes += [_beside(contact, other, gap) for other in in_place if other.support == contact.support]
        if planes:
            body, offset = robot.frame(contact.patch)
            frame = np.concatenate([offset, np.eye(3).ravel(), np.zeros(3)])
            above = [(n, d + patch.radius) for n, d in planes]
            cell = np.array([cell_row(n, x, d, np.inf, OF_POINT) for n, d in above for x in patch.points])
            found[contact.patch] = ContactRows(PLACE_ROWS, body, frame, np.zeros((0, 6)), cell)
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
    """Whether ``place`` (3,) is over the surface, or at most ``UNDER`` under its plane, and near it sideways."""
    if surface.normal[2] < 0.2:
        return False
    local = surface.R.T @ (place - surface.p)
    if local[2] < -size * UNDER:
        return False
    edge = np.roll(surface.polygon, -1, axis=0) - surface.polygon
    outward = np.column_stack([edge[:, 1], -edge[:, 0]]) / np.linalg.norm(edge, axis=1, keepdims=True)
    distance = np.einsum("ij,ij->i", outward, local[:2] - surface.polygon)
    return float(distance.max()) < size * REACH
