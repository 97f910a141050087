"""Grips on bars in MuJoCo: equality constraints, active while the controller grasps and the hand is at the bar."""

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from mcplan.certificate.tolerances import PHYSICAL
from mcplan.errors import InputError
from mcplan.record.world import closing_grasp
from mcplan.robot.pose import cross
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.sim.mujoco.build import BuiltModel

if TYPE_CHECKING:
    from mcplan.sim.mujoco.touch import ContactReader

MAX_AXIS_DISTANCE_M = 0.01
"""Largest distance from the bar's axis at which a grip closes (m)."""

MIN_ALIGNMENT = float(np.cos(np.deg2rad(10)))
"""Cosine of the largest angle between grip and bar at which it closes."""


HALF_PIN_DISTANCE_M = 0.05
"""Distance of the two points of a hinge from the origin of the grip, along its axis (m)."""


class Grips:
    """Grips of a robot: they hold bars by equality constraints.

    A grip closes at the present pose of the hand: a weld holds that pose. If the contact is free to rotate about one
    axis, pins hold two points on this axis instead; if it is free to rotate about all axes, a pin holds one point. A
    grip opens when the controller opens it, or when its load exceeds the limits of its contact (of the patch if none
    is planned). As in the certificate, the load is averaged over the duration of an impact: the touchdown of a foot
    causes peaks of single steps in a stiff constraint.

    Parameters
    ----------
    robot, environment, built_model : the robot, the environment with its bars, and the model of both.
    contacts : planned contacts; among several grasps of a patch, the one nearest to the hand gives its free directions
        and limits.

    Raises
    ------
    InputError
        A grasp is free to slide, or to rotate about exactly two axes; neither is supported.
    """

    def __init__(
        self, robot: Robot, environment: Environment, built_model: BuiltModel, contacts: Sequence[Contact] = ()
    ):
        self.robot, self.bars, self._built_model = robot, environment.bars, built_model
        self._contacts = [contact for contact in contacts if contact.kind == "grasp"]
        for contact in self._contacts:
            free_axes = _free_axes(contact)
            if (free_axes[:3] | (free_axes[3:].sum() == 2)).any():
                raise InputError(
                    f"physics mujoco: the grip of {contact.patch} on {contact.support} slides or turns about two axes; "
                    "it can hold, hinge about one axis, or turn about its origin"
                )
        first = 0 if robot.fixed else int(built_model.model.joint("base").dofadr[0])
        self._base = slice(first, first + 6)
        self._overloaded: set[str] = set()
        self._recent_wrenches: dict[str, deque[np.ndarray]] = {}
        self._limits: dict[str, tuple[float, float]] = {}
        self.closed: set[str] = set()

    def reset(self) -> None:
        """Open all grips, as in MuJoCo's data after a reset."""
        self.closed.clear()
        self._overloaded.clear()
        self._recent_wrenches.clear()

    def follow(self, data: Any, q: np.ndarray, active: Sequence[str]) -> None:
        """Close the grips of ``active`` patches whose hands are at a bar, and open those that are not active.

        ``q`` (7+n,) is the configuration of the robot, ``data`` MuJoCo's data.
        """
        if not self._built_model.grasps:
            return
        self._overloaded &= set(active)
        for patch, constraint_ids in self._built_model.grasps.items():
            should_close = patch in active and patch not in self._overloaded
            if should_close and patch not in self.closed and self._is_at_bar(q, patch):
                self._close(data, q, patch, constraint_ids)
            elif not should_close and patch in self.closed:
                data.eq_active[list(constraint_ids)] = 0
                self.closed.discard(patch)

    def wrenches(self, data: Any, touch: "ContactReader") -> dict[str, np.ndarray]:
        """Return the wrench of the bar on each closed grip, (6,) at the patch origin in world axes.

        The base of the robot is free, so the first six generalised forces of a grip are its wrench about the base.
        """
        by_patch: dict[str, np.ndarray] = {}
        if not self.closed:
            return by_patch
        count = data.ne  # the rows of equality constraints come first
        constraint_id, force = data.efc_id[:count], data.efc_force[:count]
        J = data.efc_J.reshape(len(data.efc_id), self._built_model.model.nv)[:count, self._base]
        R, origin = touch.base_rotation(data), touch.base_position(data)
        for patch in self.closed:
            rows = (constraint_id[:, None] == self._built_model.grasps[patch]).any(axis=1)
            base_force = force[rows] @ J[rows]
            arm = touch.pose(data, patch)[1] - origin
            by_patch[patch] = np.concatenate([base_force[:3], R @ base_force[3:] - cross(arm, base_force[:3])])
            steps = max(1, round(PHYSICAL.impact / self._built_model.model.opt.timestep))
            recent = self._recent_wrenches.setdefault(patch, deque(maxlen=steps))
            recent.append(by_patch[patch])
            mean = np.sum(recent, axis=0) / steps
            max_force, max_torque = self._limits[patch]
            if np.linalg.norm(mean[:3]) > max_force or np.linalg.norm(mean[3:]) > max_torque:
                self._overloaded.add(patch)
        return by_patch

    def _is_at_bar(self, q: np.ndarray, patch: str) -> bool:
        X = self.robot.frame_pose(q, patch)
        for bar in self.bars:
            arm, direction = X[:3, 3] - bar.ends[0], bar.direction
            coordinate = float(np.clip(arm @ direction, 0.0, bar.length))
            is_near = np.linalg.norm(arm - coordinate * direction) <= MAX_AXIS_DISTANCE_M
            if is_near and abs(X[:3, 1] @ direction) >= MIN_ALIGNMENT:
                return True
        return False

    def _close(self, data: Any, q: np.ndarray, patch: str, constraint_ids: tuple[int, ...]) -> None:
        """Hold the body of the hand at its present pose; the anchors are at the grip, where the forces act."""
        model, offset = self._built_model.model, self.robot.frame(patch)[1]
        R_L, p_L = offset[:9].reshape(3, 3), offset[9:]
        X = self.robot.frame_pose(q, patch)
        grasp = closing_grasp([contact for contact in self._contacts if contact.patch == patch], X[:3, 3])
        free_rotations = np.zeros(3, dtype=bool) if grasp is None else _free_axes(grasp)[3:]
        limits = grasp or self.robot.patches[patch]
        self._limits[patch] = limits.max_force, limits.max_moment
        weld, *pins = constraint_ids
        if not free_rotations.any():
            quat = np.zeros(4)
            # data of a weld: anchor in the second body and in the first, orientation of the second in the first
            mujoco.mju_mat2Quat(quat, np.ascontiguousarray((X[:3, :3] @ R_L.T).T).ravel())
            model.eq_data[weld, :10] = [*X[:3, 3], *p_L, *quat]
            data.eq_active[weld] = 1
        else:
            axis = np.zeros(3) if free_rotations.all() else HALF_PIN_DISTANCE_M * free_rotations
            for pin, arm in zip(pins, (axis, -axis) if axis.any() else (axis,), strict=False):
                # data of a pin: anchor in the first body and in the second
                model.eq_data[pin, :6] = [*(p_L + R_L @ arm), *(X[:3, 3] + X[:3, :3] @ arm)]
                data.eq_active[pin] = 1
        self._recent_wrenches.pop(patch, None)
        self.closed.add(patch)


def _free_axes(contact: Contact) -> np.ndarray:
    """Return a mask (6,) of the free patch axes of a contact, linear then angular."""
    return np.logical_not(contact.selection.any(axis=0))
