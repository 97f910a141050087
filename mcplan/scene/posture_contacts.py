"""Contacts of a posture: for each link the support that needs the least correction.

A patch rests on a support when the place on it that is nearest to the patch is no farther away than a reach, in metres
and in radians. Of the patches of one link those that the posture is known to stand on come first, then flat ones.
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
"""Decimals (m, rad) of coordinates that are taken from a posture."""

EDGE = 0.3
"""Least cosine between an edge's patch and its surface: it may be turned about itself."""


TURNED = 0.2
"""m/rad: what a patch that is turned counts as being away."""

HOLD = 0.3
"""m: how far from a bar a patch may be that rests on it, at most: its origin is at its middle."""


class Reach(NamedTuple):
    """How far a patch may be from its place: m, and rad."""

    distance: float
    angle: float

    def times(self, size: float) -> "Reach":
        """Return the reach of a robot that is so many times as large."""
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
    """Return the contacts in which a posture rests, sorted by patch; None where a listed one has no place at all.

    Parameters
    ----------
    q : (nq,) the posture.
    patches : those that may touch.
    listed : contacts that there must be, however far away; coordinates that they leave open are the nearest.
    ground : patches that the posture is known to stand on.
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
            if contact is None and isinstance(support, Surface):  # on the border: the part that lies on it counts
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
    """Return the contact nearest to a patch at ``X`` (4, 4), with coordinates that a file holds; None where none is."""
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
    """Whether a support may be within reach of a patch: a quick look that lets nothing slip."""
    if isinstance(support, Surface):
        facing = -float(X[:3, 2] @ support.normal) >= _facing(patch, reach.angle)
        return facing and abs(float(support.normal @ (X[:3, 3] - support.p)) - patch.radius) <= reach.distance
    along = float(np.clip((X[:3, 3] - support.ends[0]) @ support.direction, 0.0, support.length))
    return float(np.linalg.norm(X[:3, 3] - support.ends[0] - along * support.direction)) <= reach.distance + size * HOLD


def _facing(patch: Patch, angle: float) -> float:
    """Return the least cosine between the z of a patch within reach, by an angle (rad), and the way into a surface."""
    if patch.kind == "ball":  # on which side of the surface it is, its centre says
        return -1.0
    if patch.kind == "point":  # turned as it may be, its link comes from outside
        return 0.0
    return EDGE if _is_edge(patch) else float(np.cos(min(angle, np.pi)))


def _is_edge(patch: Patch) -> bool:
    return len(patch.polygon) == 2


def _off(X: np.ndarray, contact: Contact) -> tuple[float, float]:
    """Return how far (m, rad) a patch at ``X`` is from a contact, in the directions that this holds."""
    if contact.radius:
        return float(np.linalg.norm(X[:3, 3] - contact.p - contact.rolled(X[:3, :3]))), 0.0
    turn = Rotation.from_matrix(contact.R.T @ X[:3, :3]).as_rotvec()
    off = contact.selection.T @ (contact.selection @ np.concatenate([contact.R.T @ (X[:3, 3] - contact.p), turn]))
    return float(np.linalg.norm(off[:3])), float(np.linalg.norm(off[3:]))
