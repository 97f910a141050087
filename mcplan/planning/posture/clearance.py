"""Where limbs in the air must not go: a lifted patch stays above the surfaces below it and beside its neighbours."""

from collections.abc import Iterable, Sequence

import numpy as np

from mcplan.model.robot import Robot
from mcplan.planning.posture.problem import FreeLimb
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment, Surface

LIFT = 0.05
"""m: height of a lifted patch above a surface."""

GAP = 0.04
"""m: sideways distance of a lifted patch from one that stays on the same support, as far as it had it."""

REACH = 0.10
"""m: a surface counts when the patch is over it or this near to its border."""


def free_limbs(
    robot: Robot,
    environment: Environment,
    guide: np.ndarray,
    in_place: Iterable[Contact],
    lifted: Sequence[Contact],
    posed: bool,
) -> tuple[FreeLimb, ...]:
    """Return the patches that were in contact and whose limbs now hang in the air.

    Parameters
    ----------
    guide : (nq,) the posture that will be preferred: it says which surfaces are below.
    in_place : contacts of the posture; their limbs are not free.
    lifted : the last contact of each patch that was lifted.
    posed : the item names a posture; otherwise a lifted patch keeps the orientation that it had in contact.
    """
    in_place = tuple(in_place)
    busy = {robot.patches[contact.patch].limb for contact in in_place}
    limbs = []
    for contact in lifted:
        if robot.patches[contact.patch].limb in busy or contact.kind == "grasp":
            continue
        X = robot.frame_pose(guide, contact.patch)
        planes = [
            np.append(surface.normal, surface.normal @ surface.p + LIFT)
            for surface in environment.surfaces
            if _below(surface, X[:3, 3])
        ]
        planes += [_beside(contact, other) for other in in_place if other.support == contact.support]
        if not planes:
            continue
        limbs.append(FreeLimb(contact.patch, np.array(planes), None if posed else contact.R))
    return tuple(limbs)


def _beside(lifted: Contact, other: Contact) -> np.ndarray:
    """Return the plane (4,) that kept two patches on one support apart best, for the lifted one to stay on its side."""
    best = (-np.inf, np.zeros(3), 0.0)
    for axis in (other.R[:, 0], other.R[:, 1], lifted.R[:, 0], lifted.R[:, 1]):
        for n in (axis, -axis):
            edge = float((other.world_points @ n).max())
            distance = float((lifted.world_points @ n).min()) - edge
            if distance > best[0]:
                best = (distance, n, edge + min(distance, GAP))
    return np.append(best[1], best[2])


def _below(surface: Surface, place: np.ndarray) -> bool:
    """Whether ``place`` (3,) is over the surface, or at most 0.1 m under its plane."""
    if surface.normal[2] < 0.2:
        return False
    local = surface.R.T @ (place - surface.p)
    if local[2] < -0.1:
        return False
    edge = np.roll(surface.polygon, -1, axis=0) - surface.polygon
    outward = np.column_stack([edge[:, 1], -edge[:, 0]]) / np.linalg.norm(edge, axis=1, keepdims=True)
    distance = np.einsum("ij,ij->i", outward, local[:2] - surface.polygon)
    return float(distance.max()) < REACH
