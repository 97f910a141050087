"""What touches what: MuJoCo's contacts as points of patches, wrenches, and generalised forces."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import mujoco
import numpy as np

from mcplan.model.robot import Robot
from mcplan.sim.mujoco.build import Built
from mcplan.sim.mujoco.shapes import distance
from mcplan.sim.recorder import PointForces

NEAR = 5e-3
"""A point so near to a patch belongs to it (m)."""

CONTACT_ROWS = (
    mujoco.mjtConstraint.mjCNSTR_CONTACT_ELLIPTIC,
    mujoco.mjtConstraint.mjCNSTR_CONTACT_FRICTIONLESS,
)


class ContactForces(NamedTuple):
    """Contacts of one step.

    points : contact points that carry something.
    wrenches : by patch, (6,) at the patch origin in world axes.
    other : (6+n,) generalised force of the contacts that are no patch's, world axes.
    """

    points: PointForces
    wrenches: dict[str, np.ndarray]
    other: np.ndarray


class Touch:
    """Reads contacts.

    Parameters
    ----------
    robot, built : the robot and its model.
    rate : where the robot's velocities are in MuJoCo's.
    patches : names, in the order in which contact points count them.
    """

    def __init__(self, robot: Robot, built: Built, rate: np.ndarray, patches: Sequence[str]):
        self.robot, self.patches = robot, tuple(patches)
        self._built, self._rate, self._base = built, rate, built.model.body("body:0").id
        self._index = {name: i for i, name in enumerate(self.patches)}
        self._links = len(robot.link_names)
        self._on_link: dict[int, list[str]] = {}
        for name in self.patches:
            if robot.patches[name].kind != "grasp":
                self._on_link.setdefault(robot.link_names.index(robot.patches[name].link), []).append(name)
        self._frames = {}
        for name in self.patches:
            body, offset = robot.frame(name)
            self._frames[name] = built.model.body(f"body:{body}").id, offset[:9].reshape(3, 3), offset[9:]

    def base_rotation(self, data: Any) -> np.ndarray:
        """Rotation (3,3) of the base at the beginning of the step."""
        return data.xmat[self._base].reshape(3, 3)

    def pose(self, data: Any, patch: str) -> tuple[np.ndarray, np.ndarray]:
        """R (3,3) and p (3,) of a patch at the beginning of the step."""
        body, R, p = self._frames[patch]
        R_body = data.xmat[body].reshape(3, 3)
        return R_body @ R, data.xpos[body] + R_body @ p

    def read(self, data: Any, active: Sequence[str]) -> ContactForces:
        """Return what touched during the step that began in the state of the poses in ``data``."""
        link, patch, xyz, normal, force = [], [], [], [], []
        wrenches: dict[str, np.ndarray] = {}
        J, f = data.efc_J.reshape(-1, self._built.model.nv), data.efc_force
        other = np.zeros(self._built.model.nv)
        for k in range(data.ncon):
            contact = data.contact[k]
            first = contact.efc_address
            if first < 0 or not f[first] > 0.0:
                continue
            rows = slice(first, first + contact.dim)
            axes = contact.frame.reshape(3, 3)
            on_second = axes[: contact.dim].T @ f[rows]
            planned = False
            for side, sign in ((0, -1.0), (1, 1.0)):
                geom = int(contact.geom[side])
                thing = int(self._built.link[geom])
                if thing < 0:
                    continue
                name = None
                if thing < self._links and self._built.link[int(contact.geom[1 - side])] not in range(self._links):
                    name = self._patch(data, thing, self._built.patch[geom], contact.pos, sign * axes[0], active)
                link.append(thing)
                patch.append(-1 if name is None else self._index[name])
                xyz.append(contact.pos.copy())
                normal.append(sign * axes[0])
                force.append(sign * on_second)
                if name is not None:
                    planned = True
                    arm = contact.pos - self.pose(data, name)[1]
                    w = np.concatenate([force[-1], np.cross(arm, force[-1])])
                    wrenches[name] = wrenches.get(name, 0.0) + w
            if not planned:
                other += J[rows].T @ f[rows]
        other = other[self._rate]
        other[3:6] = self.base_rotation(data) @ other[3:6]
        points = PointForces(
            np.array(link, int), np.array(patch, int), np.array(xyz, float).reshape(-1, 3),
            np.array(normal, float).reshape(-1, 3), np.array(force, float).reshape(-1, 3),
        )  # fmt: skip
        return ContactForces(points, wrenches, other)

    def _patch(
        self, data: Any, link: int, own: str | None, xyz: np.ndarray, normal: np.ndarray, active: Sequence[str]
    ) -> str | None:
        """Return the patch that a point of a link belongs to, or None.

        Of those that the point lies in, one that is meant to touch, then the one that faces the support most: a sole
        that stands on its front edge touches with the toe. The geom's own patch else.
        """
        best, found = (False, -np.inf), own if own in self._index else None
        for name in self._on_link.get(link, ()):
            R, p = self.pose(data, name)
            if distance(R.T @ (xyz - p), self.robot.patches[name].polygon) < NEAR:
                rank = (name in active, float(-R[:, 2] @ normal))
                if rank > best:
                    best, found = rank, name
        return found
