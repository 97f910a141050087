"""Contact detection for a posture: for each link, the contact whose pose is nearest to that of its patch.

A patch rests on a support if its pose is within a tolerance (m, rad) of the nearest pose in contact. Of the patches of
one link, patches that touch the ground in the robot's nominal posture have priority, then flat patches.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from mcplan.errors import InputError
from mcplan.robot.patch import Patch
from mcplan.robot.pose import rotation_vector
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Bar, Environment, Surface
from mcplan.scene.placement import make_contact
from mcplan.scene.spec import ContactSpec

DIGITS = 9
"""Coordinates computed from a posture are rounded to this number of decimals (m, rad)."""

MIN_EDGE_COSINE = 0.3
"""Minimum cosine between the z axis of an edge patch, which may turn about its edge, and the inward normal of a
surface."""

ANGLE_WEIGHT = 0.2
"""Weight of an angle relative to a distance (m/rad), for HRP-2's legs; scaled by leg length."""

MAX_BAR_DISTANCE = 0.3
"""Maximum distance (m) of the axis of a bar from the origin of a patch on it, for HRP-2; scaled by leg length."""


class PoseTolerance(NamedTuple):
    """Tolerance of the pose of a patch relative to its contact: distance (m) and angle (rad)."""

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
    patches : candidates; each becomes a contact if its pose is within ``tolerance`` of one.
    required : contacts at any distance; missing coordinates are those nearest to the posture.
    ground : preferred patches: they touch the ground in the robot's nominal posture.
    """
    chosen: list[Contact] = []
    for spec in required:
        contact = _nearest(robot, environment, spec, robot.frame_pose(q, spec.patch))
        if contact is None:
            return None
        chosen.append(contact)
    used_links = {robot.patches[contact.patch].link for contact in chosen}
    candidates: list[tuple[int, float, Contact]] = []
    for patch in patches:
        if robot.patches[patch].link in used_links:
            continue
        X = robot.frame_pose(q, patch)
        is_edge = _is_edge(robot.patches[patch])
        for support in environment.supports.values():
            if not _is_candidate(X, robot.patches[patch], support, tolerance, robot.scale.leg):
                continue
            contact = _nearest(robot, environment, ContactSpec(patch=patch, surface=support.name), X)
            if contact is None and isinstance(support, Surface):  # at the border: use the part on the surface
                contact = _nearest(robot, environment, ContactSpec(patch=patch, surface=support.name, overhang=True), X)
            if contact is None:
                continue
            distance, angle = _deviation(X, contact)
            if distance <= tolerance.distance and angle <= tolerance.angle:
                rank = 0 if patch in ground else 1 + is_edge
                candidates.append((rank, distance + robot.scale.leg * ANGLE_WEIGHT * angle, contact))
    for _, _, contact in sorted(candidates, key=lambda item: (item[0], item[1], item[2].patch)):
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


def _is_candidate(X: np.ndarray, patch: Patch, support: Surface | Bar, tolerance: PoseTolerance, size: float) -> bool:
    """Return whether a support may be within the tolerance of a patch: a fast conservative test."""
    if isinstance(support, Surface):
        is_facing = -float(X[:3, 2] @ support.normal) >= _min_cosine(patch, tolerance.angle)
        return is_facing and abs(float(support.normal @ (X[:3, 3] - support.p)) - patch.radius) <= tolerance.distance
    along = float(np.clip((X[:3, 3] - support.ends[0]) @ support.direction, 0.0, support.length))
    distance = float(np.linalg.norm(X[:3, 3] - support.ends[0] - along * support.direction))
    return distance <= tolerance.distance + size * MAX_BAR_DISTANCE


def _min_cosine(patch: Patch, angle: float) -> float:
    """Return the minimum cosine between a patch's z axis and the inward normal of a surface for a tolerance (rad)."""
    if patch.kind == "ball":  # the position of its centre shows the side of the surface
        return -1.0
    if patch.kind == "point":  # any orientation, with the link outside of the solid
        return 0.0
    return MIN_EDGE_COSINE if _is_edge(patch) else float(np.cos(min(angle, np.pi)))


def _is_edge(patch: Patch) -> bool:
    """Return whether the polygon of a patch is an edge (two corners)."""
    return len(patch.polygon) == 2


def _deviation(X: np.ndarray, contact: Contact) -> tuple[float, float]:
    """Return the deviation (m, rad) of a patch at ``X`` from a contact, in its constrained directions."""
    if contact.radius:
        return float(np.linalg.norm(X[:3, 3] - contact.p - contact.rolled(X[:3, :3]))), 0.0
    angles = rotation_vector(contact.R.T @ X[:3, :3])
    deviation = contact.selection.T @ (
        contact.selection @ np.concatenate([contact.R.T @ (X[:3, 3] - contact.p), angles])
    )
    return float(np.linalg.norm(deviation[:3])), float(np.linalg.norm(deviation[3:]))
