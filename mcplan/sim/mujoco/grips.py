"""Grips that hold on to bars: welds, switched on while the controller grasps and the hand is at the bar."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from mcplan.model.robot import Robot
from mcplan.scene.environment import Environment
from mcplan.sim.mujoco.build import Built

if TYPE_CHECKING:
    from mcplan.sim.mujoco.touch import Touch

REACH = 0.01
"""How far from the bar's axis a grip still closes around it (m)."""

ASKEW = float(np.cos(np.deg2rad(10)))
"""Cosine of the angle between grip and bar beyond which it does not."""


class Grips:
    """The grips of a robot.

    A grip closes where it is: the weld holds the pose that the hand has at that moment. It opens when the controller
    lets go, or when the pull exceeds what the grip can hold.

    Parameters
    ----------
    robot, environment, built : who, at what, in which model.
    """

    def __init__(self, robot: Robot, environment: Environment, built: Built):
        self.robot, self.bars, self._built = robot, environment.bars, built
        self._lost: set[str] = set()
        self.closed: set[str] = set()

    def follow(self, data: Any, q: np.ndarray, active: Sequence[str]) -> None:
        """Close and open as the controller's contacts say, and as far as the hands are at the bars."""
        self._lost &= set(active)
        for patch, weld in self._built.grasps.items():
            wanted = patch in active and patch not in self._lost
            if wanted and patch not in self.closed and self._at_bar(q, patch):
                self._close(data, q, patch, weld)
            elif not wanted and patch in self.closed:
                data.eq_active[weld] = 0
                self.closed.discard(patch)

    def wrenches(self, data: Any, touch: "Touch") -> dict[str, np.ndarray]:
        """Return by patch what the bars did to the grips, (6,) at the patch origins in world axes.

        The base of the robot is free, so the first six generalised forces of a weld are its wrench, about the base.
        """
        found: dict[str, np.ndarray] = {}
        if not self.closed:
            return found
        rows = data.efc_type == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
        J = data.efc_J.reshape(-1, self._built.model.nv)
        for patch in self.closed:
            mine = np.flatnonzero(rows & (data.efc_id == self._built.grasps[patch]))
            base = J[mine].T[self._built.model.joint("base").dofadr[0] + np.arange(6)] @ data.efc_force[mine]
            moment = touch.base_rotation(data) @ base[3:]
            arm = touch.pose(data, patch)[1] - data.xpos[self._built.model.body("body:0").id]
            found[patch] = np.concatenate([base[:3], moment - np.cross(arm, base[:3])])
            limits = self.robot.patches[patch]
            force, torque = np.linalg.norm(found[patch][:3]), np.linalg.norm(found[patch][3:])
            if force > 1.2 * limits.max_force or torque > 1.2 * limits.max_moment:
                self._lost.add(patch)
        return found

    def _at_bar(self, q: np.ndarray, patch: str) -> bool:
        X = self.robot.frame_pose(q, patch)
        for bar in self.bars:
            arm, direction = X[:3, 3] - bar.ends[0], bar.direction
            along = float(np.clip(arm @ direction, 0.0, bar.length))
            near = np.linalg.norm(arm - along * direction) <= REACH
            if near and abs(X[:3, 1] @ direction) >= ASKEW:
                return True
        return False

    def _close(self, data: Any, q: np.ndarray, patch: str, weld: int) -> None:
        """Weld the hand's body to the world where it is: anchor at the grip, so that forces act there."""
        model = self._built.model
        offset = self.robot.frame(patch)[1]
        X = self.robot.frame_pose(q, patch)
        R = X[:3, :3] @ offset[:9].reshape(3, 3).T
        quat = np.zeros(4)
        # the data of a weld: anchor in the second body and in the first, orientation of the second in the first
        mujoco.mju_mat2Quat(quat, np.ascontiguousarray(R.T).ravel())
        model.eq_data[weld, :10] = [*X[:3, 3], *offset[9:], *quat]
        data.eq_active[weld] = 1
        self.closed.add(patch)
