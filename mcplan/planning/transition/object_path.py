"""Paths of objects that the robot moves, and of the contacts on them.

p(s) = p0 + s (p1 - p0),   R(s) = exp(s log(R1 R0')) R0,   s in [0, 1] a minimum-jerk function of time
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.motion.rotation import rotation_vector
from mcplan.motion.spline import minimum_jerk
from mcplan.robot.pose import Pose, rotation_from_quat
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment, FreeObject
from mcplan.scene.resting import slides


@dataclass(frozen=True, eq=False)
class ObjectPath:
    """The straight path of an object from one pose to another, from rest to rest.

    Attributes
    ----------
    name : name of the object.
    begin, end : its poses (R, p) at both ends.
    """

    name: str
    begin: Pose
    end: Pose

    @classmethod
    def of(cls, thing: FreeObject, pose: np.ndarray) -> "ObjectPath":
        """Return the path of an object from its pose to a pose (7,)."""
        return cls(thing.name, (thing.R, thing.p), (rotation_from_quat(pose[3:]), pose[:3]))

    @property
    def length(self) -> float:
        """Distance between the two positions of the object (m)."""
        return float(np.linalg.norm(self.end[1] - self.begin[1]))

    @property
    def angle(self) -> float:
        """Angle by which the object turns (rad)."""
        return float(np.linalg.norm(self._rotation_vector))

    @property
    def _rotation_vector(self) -> np.ndarray:
        return rotation_vector(self.end[0] @ self.begin[0].T)

    def at(self, share: float) -> Pose:
        """Return the pose at a share of the duration."""
        s = minimum_jerk(share)[0]
        R = Rotation.from_rotvec(s * self._rotation_vector).as_matrix() @ self.begin[0]
        return R, self.begin[1] + s * (self.end[1] - self.begin[1])


def contacts_at(
    begin_contacts: Sequence[Contact],
    end_contacts: Sequence[Contact],
    paths: Sequence[ObjectPath],
    share: float,
    environment: Environment,
) -> tuple[Contact, ...]:
    """Return the contacts at a share of the duration; contacts on moving objects move with them.

    A moving object is supported by the surface that it slides on, or by the robot alone if it does not slide.

    Parameters
    ----------
    begin_contacts, end_contacts : the contacts of the same patches at both ends.
    paths : paths of the objects.
    share : share of the duration, 0 to 1.
    environment : the scene with the surfaces.
    """
    path_of, end_contact_of = {path.name: path for path in paths}, {contact.patch: contact for contact in end_contacts}
    contacts = []
    for contact in begin_contacts:
        carrier, end = contact.carrier, end_contact_of[contact.patch].carrier
        path = None if carrier is None else path_of.get(carrier.name)
        if carrier is not None and path is not None:
            pose, slides_ = path.at(share), end is not None and slides(carrier.rest, end.rest, environment)
            contact = replace(contact.moved(path.begin, pose), carrier=carrier.moved(path.begin, pose, slides_))
        contacts.append(contact)
    return tuple(contacts)
