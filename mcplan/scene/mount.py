"""The contact that holds a fixed base to the world: at the base's pose, in all directions, from start to end."""

from typing import TYPE_CHECKING

import numpy as np

from mcplan.model.patch import MOUNT
from mcplan.model.pose import quat_from_rotation
from mcplan.scene.contact import Contact

if TYPE_CHECKING:
    from mcplan.model.robot import Robot

WORLD = "world"
"""What a fixed base stands on."""


def mount_contact(robot: "Robot", R: np.ndarray, p: np.ndarray) -> Contact:
    """Return the contact of a base that stands at R (3,3), p (3,)."""
    patch = robot.patches[MOUNT]
    pose = {"xyz": np.asarray(p).tolist(), "quat_wxyz": quat_from_rotation(R).tolist()}
    return Contact(
        patch=MOUNT,
        support=WORLD,
        kind="grasp",
        R=R,
        p=p,
        points=np.zeros((1, 3)),
        axes=R,
        friction=0.0,
        max_force=patch.max_force,
        max_moment=patch.max_moment,
        selection=np.eye(6),
        options={"pose": pose},
    )
