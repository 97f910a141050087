"""Left and right: which joints and patches of a robot are mirror images of each other, found from its geometry.

Mirrored in the plane y = 0 of the neutral posture, a place (x, y, z) becomes (x, -y, z), so does the direction of a
slide, an axis of rotation (a, b, c) becomes (-a, b, -c). A posture of a symmetric robot then has a twin, with the base
on the other side.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from mcplan.core.rigid_body.tree import V
from mcplan.model.robot import Robot

TOLERANCE = 5e-3
"""m: places that are mirror images within this are taken for such."""


@dataclass(frozen=True, eq=False)
class Mirror:
    """The mirror image of a robot.

    Attributes
    ----------
    joint : (n,) index of each joint's image; ``sign`` (n,) of its angle, or of how far it is out.
    patch : name of each patch's image.
    """

    joint: np.ndarray
    sign: np.ndarray
    patch: dict[str, str]

    @classmethod
    def of(cls, robot: Robot) -> "Mirror | None":
        """Return the mirror image, or None for a robot that has none."""
        q = robot.neutral()
        flip, turn = np.array([1.0, -1.0, 1.0]), np.array([-1.0, 1.0, -1.0])
        slides = np.array([unit == "m" for unit in robot.joint_units], bool)
        origins, axes = np.zeros((robot.n, 3)), np.zeros((robot.n, 3))
        for link in robot.link_names:
            body, offset = robot.frame(link)
            if body and not offset[9:].any():
                j = int(robot.tree.topology[body, V]) - 6
                origins[j] = robot.frame_pose(q, link)[:3, 3] - q[:3]
                column = robot.frame_jacobian(q, link)[:, 6 + j]
                axes[j] = column[:3] if slides[j] else column[3:]
        joint, sign = np.zeros(robot.n, int), np.ones(robot.n)
        for j in range(robot.n):
            image = (flip if slides[j] else turn) * axes[j]
            cost = np.linalg.norm(origins - flip * origins[j], axis=1) + 1.0 - np.abs(axes @ image)
            joint[j] = int(np.argmin(cost + (slides != slides[j])))
            if cost[joint[j]] > TOLERANCE:
                return None
            sign[j] = np.sign(axes[joint[j]] @ image)
        places = {name: robot.frame_pose(q, name) for name in robot.patches}

        def unlike(name: str, other: str) -> float:
            """Tell how far one patch's place, axis and kind are from the mirror image of another's."""
            X, image = places[name], places[other]
            away = float(np.linalg.norm(image[:3, 3] - flip * X[:3, 3]))
            turned = float(np.linalg.norm(image[:3, 2] - flip * X[:3, 2]))
            return away + turned + (robot.patches[other].kind != robot.patches[name].kind)

        patch = {name: min(places, key=partial(unlike, name)) for name in places}
        return cls(joint, sign, patch)

    def posture(self, q: np.ndarray) -> np.ndarray:
        """Return the twin (nq,) of a posture."""
        twin = q.copy()
        twin[1] = -q[1]
        twin[4], twin[6] = -q[4], -q[6]
        twin[7 + self.joint] = self.sign * q[7:]
        return twin
