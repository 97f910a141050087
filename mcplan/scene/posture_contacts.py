"""Contact detection for a posture: for each link the support that needs the smallest correction.

A patch rests on a support if the nearest place on it is within a tolerance, in metres and radians. Of the patches of
one link, known ground contacts of the posture have priority, then flat patches.
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

EDGE = 0.3
"""Minimum cosine between an edge's patch and its surface: it may turn about itself."""


TURNED = 0.2
"""m/rad: weight of rotation relative to distance."""

HOLD = 0.3
"""m: maximum distance between a bar and the origin of a patch on it; the origin is in the middle of the patch."""


class Reach(NamedTuple):
    """Tolerance of a patch's pose from its place: m, and rad."""

    distance: float
    angle: float

    def times(self, size: float) -> "Reach":
        """Scale the distance to the size of a robot."""
        return Reach(size * self.distance, self.angle)


def resting_contacts(
    robot: Robot,
    environment: Environment,
    q: np.ndarray,
    patches: Iterable[str],
    reach: Reach,
    listed: Sequence[ContactSpec] = (),
    ground: Sequence[str] = (),
) -> tuple[Contact, ...] | None:
    """Return the contacts of a posture, sorted by patch; None if a required one is impossible.

    Parameters
    ----------
    q : (nq,) the posture.
    patches : candidate patches.
    listed : required contacts at any distance; their missing coordinates are the nearest.
    ground : known ground contacts of the posture.
    """
    chosen: list[Contact] = []
    for spec in listed:
        contact = _nearest(robot, environment, spec, robot.frame_pose(q, spec.patch))
        if contact is None:
            return None
        chosen.append(contact)
    taken = {robot.patches[contact.patch].link for contact in chosen}
    found: list[tuple[int, float, Contact]] = []
    for patch in patches:
        if robot.patches[patch].link in taken:
            continue
        X = robot.frame_pose(q, patch)
        edge = _is_edge(robot.patches[patch])
        for support in environment.supports.values():
            if not _near(X, robot.patches[patch], support, reach, robot.scale.leg):
                continue
            contact = _nearest(robot, environment, ContactSpec(patch=patch, surface=support.name), X)
            if contact is None and isinstance(support, Surface):  # at the border: use the part on the surface
                contact = _nearest(robot, environment, ContactSpec(patch=patch, surface=support.name, overhang=True), X)
            if contact is None:
                continue
            distance, angle = _off(X, contact)
            if distance <= reach.distance and angle <= reach.angle:
                found.append((0 if patch in ground else 1 + edge, distance + robot.scale.leg * TURNED * angle, contact))
    for _, _, contact in sorted(found, key=lambda one: (one[0], one[1], one[2].patch)):
        link = robot.patches[contact.patch].link
        if link not in taken:
            taken.add(link)
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


def _near(X: np.ndarray, patch: Patch, support: Surface | Bar, reach: Reach, size: float) -> bool:
    """Whether a support may be within reach of a patch: a fast conservative test."""
    if isinstance(support, Surface):
        facing = -float(X[:3, 2] @ support.normal) >= _facing(patch, reach.angle)
        return facing and abs(float(support.normal @ (X[:3, 3] - support.p)) - patch.radius) <= reach.distance
    along = float(np.clip((X[:3, 3] - support.ends[0]) @ support.direction, 0.0, support.length))
    return float(np.linalg.norm(X[:3, 3] - support.ends[0] - along * support.direction)) <= reach.distance + size * HOLD


def _facing(patch: Patch, angle: float) -> float:
    """Return the minimum cosine between a patch's z axis and the inward normal of a surface within an angle (rad)."""
    if patch.kind == "ball":  # its centre shows the side of the surface
        return -1.0
    if patch.kind == "point":  # any orientation, with the link outside of the solid
        return 0.0
    return EDGE if _is_edge(patch) else float(np.cos(min(angle, np.pi)))


def _is_edge(patch: Patch) -> bool:
    return len(patch.polygon) == 2


def _off(X: np.ndarray, contact: Contact) -> tuple[float, float]:
    """Return the deviation (m, rad) of a patch at ``X`` from a contact, in its constrained directions."""
    if contact.radius:
        return float(np.linalg.norm(X[:3, 3] - contact.p - contact.rolled(X[:3, :3]))), 0.0
    turn = Rotation.from_matrix(contact.R.T @ X[:3, :3]).as_rotvec()
    off = contact.selection.T @ (contact.selection @ np.concatenate([contact.R.T @ (X[:3, 3] - contact.p), turn]))
    return float(np.linalg.norm(off[:3])), float(np.linalg.norm(off[3:]))
