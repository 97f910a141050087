"""Contact detection for a posture: for each link the support that needs the smallest correction.

A patch rests on a support if the nearest place on the support is within a tolerance, in metres and radians. Of the
patches of one link, ground contacts of the posture have priority, then flat patches.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.errors import InputError
from mcplan.robot.patch import Patch
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Bar, Environment, Surface
from mcplan.scene.placement import make_contact
from mcplan.scene.spec import ContactSpec

DIGITS = 9
"""Decimals (m, rad) of coordinates computed from a posture."""

MIN_EDGE_COSINE = 0.3
"""Minimum cosine between the z axis of an edge patch and the inward normal of a surface: the patch may turn about its
edge."""

ANGLE_WEIGHT = 0.2
"""m/rad: weight of an angle relative to a distance, for HRP-2; scales with the legs."""

MAX_BAR_DISTANCE = 0.3
"""m: maximum distance between a bar and the origin of a patch on it; the origin is in the middle of the patch."""


class PoseTolerance(NamedTuple):
    """Tolerance of the pose of a patch against its contact: m, and rad."""

    distance: float
    angle: float

    def times(self, size: float) -> "PoseTolerance":
        """Scale the distance to the size of a robot."""
        return PoseTolerance(size * self.distance, self.angle)


def resting_contacts(
    robot: Robot,
    environment: Environment,
    q: np.ndarray,
    patches: Iterable[str],
    tolerance: PoseTolerance,
    required: Sequence[ContactSpec] = (),
    ground: Sequence[str] = (),
) -> tuple[Contact, ...] | None:
    """Return the contacts of a posture, sorted by patch; None if a required one is impossible.

    Parameters
    ----------
    q : (nq,) the posture.
    patches : candidates, which rest on a support within the tolerance.
    required : contacts at any distance; their missing coordinates are the nearest.
    ground : patches that touch the ground in the posture; preferred.
    """
    chosen: list[Contact] = []
    for spec in required:
        contact = _nearest(robot, environment, spec, robot.frame_pose(q, spec.patch))
        if contact is None:
            return None
        chosen.append(contact)
    used_links = {robot.patches[contact.patch].link for contact in chosen}
    found: list[tuple[int, float, Contact]] = []
    for patch in patches:
        if robot.patches[patch].link in used_links:
            continue
        X = robot.frame_pose(q, patch)
        edge = _is_edge(robot.patches[patch])
        for support in environment.supports.values():
            if not _may_be_near(X, robot.patches[patch], support, tolerance, robot.scale.leg):
                continue
            contact = _nearest(robot, environment, ContactSpec(patch=patch, surface=support.name), X)
            if contact is None and isinstance(support, Surface):  # at the border: use the part on the surface
                contact = _nearest(robot, environment, ContactSpec(patch=patch, surface=support.name, overhang=True), X)
            if contact is None:
                continue
            distance, angle = _deviation(X, contact)
            if distance <= tolerance.distance and angle <= tolerance.angle:
                rank = 0 if patch in ground else 1 + edge
                found.append((rank, distance + robot.scale.leg * ANGLE_WEIGHT * angle, contact))
    for _, _, contact in sorted(found, key=lambda item: (item[0], item[1], item[2].patch)):
        link = robot.patches[contact.patch].link
        if link not in used_links:
            used_links.add(link)
            chosen.append(contact)
    return tuple(sorted(chosen, key=lambda contact: contact.patch))


def _nearest(robot: Robot, environment: Environment, spec: ContactSpec, X: np.ndarray) -> Contact | None:
    """Return the contact nearest to a patch at ``X`` (4, 4), with rounded coordinates; None if there is none."""
    try:
        contact = make_contact(robot, environment, spec, (X[:3, :3], X[:3, 3]))
        data = contact.to_data() | {
            name: round(float(value), DIGITS)
            for name, value in contact.coordinates.items()
            if not isinstance(value, bool) and name not in spec.given
        }
        return make_contact(robot, environment, data)
    except InputError:
        return None


def _may_be_near(X: np.ndarray, patch: Patch, support: Surface | Bar, tolerance: PoseTolerance, size: float) -> bool:
    """Whether a support may be within the tolerance of a patch: a fast conservative test."""
    if isinstance(support, Surface):
        facing = -float(X[:3, 2] @ support.normal) >= _facing(patch, tolerance.angle)
        return facing and abs(float(support.normal @ (X[:3, 3] - support.p)) - patch.radius) <= tolerance.distance
    along = float(np.clip((X[:3, 3] - support.ends[0]) @ support.direction, 0.0, support.length))
    distance = float(np.linalg.norm(X[:3, 3] - support.ends[0] - along * support.direction))
    return distance <= tolerance.distance + size * MAX_BAR_DISTANCE


def _facing(patch: Patch, angle: float) -> float:
    """Return the minimum cosine between a patch's z axis and the inward normal of a surface within an angle (rad)."""
    if patch.kind == "ball":  # the position of its centre shows the side of the surface
        return -1.0
    if patch.kind == "point":  # any orientation, with the link outside of the solid
        return 0.0
    return MIN_EDGE_COSINE if _is_edge(patch) else float(np.cos(min(angle, np.pi)))


def _is_edge(patch: Patch) -> bool:
    return len(patch.polygon) == 2


def _deviation(X: np.ndarray, contact: Contact) -> tuple[float, float]:
    """Return the deviation (m, rad) of a patch at ``X`` from a contact, in its constrained directions."""
    if contact.radius:
        return float(np.linalg.norm(X[:3, 3] - contact.p - contact.rolled(X[:3, :3]))), 0.0
    turn = Rotation.from_matrix(contact.R.T @ X[:3, :3]).as_rotvec()
    deviation = contact.selection.T @ (contact.selection @ np.concatenate([contact.R.T @ (X[:3, 3] - contact.p), turn]))
    return float(np.linalg.norm(deviation[:3])), float(np.linalg.norm(deviation[3:]))
