"""Pose error of a frame, and the Jacobian by which it is reduced (S1 section 2.9.3).

S1: `docs/sources.md`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mcplan.errors import InputError
from mcplan.robot.robot import Robot
from mcplan.textbook.coordinates.chart import Array, RotationChart, numbers, real
from mcplan.textbook.coordinates.rotation_vector import ROTATION_VECTOR
from mcplan.textbook.kinematics.differential import VelocityTask


@dataclass(frozen=True, eq=False)
class FrameTarget:
    """Target pose, position or orientation of a link or patch.

    Attributes
    ----------
    frame : link or patch.
    position : (3,) target, m; None: free.
    rotation : (3, 3) target; None: free.
    chart : chart whose parameter difference is the rotation error, with the analytic Jacobian (S1 algorithm 1). None:
        the error is the rotation vector of the shortest rotation, with the geometric Jacobian (S1 eq. 2.235 to
        2.237).
    near : whether to use those parameters of the target that are nearest to the present ones, so that small rotations
        are small differences; S1 uses the parameters that the formulas of the chart give.
    """

    frame: str
    position: Array | None
    rotation: Array | None
    chart: RotationChart | None = None
    near: bool = False

    def errors(self, X: Array) -> tuple[float, float]:
        """Return the distances to a pose (4, 4): m, and rad of the shortest rotation; 0 for free components."""
        distance = 0.0 if self.position is None else float(np.linalg.norm(self.position - X[:3, 3]))
        rotation = np.zeros(3) if self.rotation is None else rotation_error(self.rotation, X[:3, :3])
        return distance, float(np.linalg.norm(rotation))

    def task(self, robot: Robot, q: Array) -> VelocityTask:
        """Return the error at a configuration (nq,) and its Jacobian by v (nv,), position first."""
        X, J = robot.frame_pose(q, self.frame), robot.frame_jacobian(q, self.frame)
        rows, error = [], []
        if self.position is not None:
            rows.append(J[:3])
            error.append(self.position - X[:3, 3])
        if self.rotation is not None and self.chart is None:
            rows.append(J[3:])
            error.append(rotation_error(self.rotation, X[:3, :3]))
        elif self.rotation is not None and self.chart is not None:
            theta = self.chart.parameters(X[:3, :3])
            rows.append(self.chart.E_inverse(theta) @ J[3:])
            error.append(self._target_parameters(self.chart, self.rotation, theta) - theta)
        return VelocityTask(np.vstack(rows), np.concatenate(error))

    def _target_parameters(self, chart: RotationChart, R: Array, theta: Array) -> Array:
        return chart.parameters_near(R, theta) if self.near else chart.parameters(R)


def rotation_error(target: ArrayLike, R: ArrayLike) -> Array:
    """Return ``log(R* R')`` (3,), rad, in world axes: the shortest rotation from R to R* (S1 eq. 2.236).

    Parameters
    ----------
    target, R : (3, 3) target R*, and present rotation.
    """
    return ROTATION_VECTOR.parameters(numbers(target, (3, 3), "target") @ numbers(R, (3, 3), "rotation").T)


def frame_target(robot: Robot, frame: str, value: ArrayLike, chart: RotationChart | None = None) -> FrameTarget:
    """Return the target of a pose (4, 4), a position (3,) or a rotation (3, 3).

    Raises
    ------
    InputError : ``value`` is none of these, or the robot has no such frame.
    """
    robot.frame(frame)
    given = real(value, f"target of {frame!r}")
    if given.shape not in ((4, 4), (3,), (3, 3)):
        raise InputError(f"target of {frame!r}: an array {given.shape}; expected pose (4, 4), position (3,) or (3, 3)")
    R = None if given.shape == (3,) else given[:3, :3]
    if R is not None and (np.abs(R @ R.T - np.eye(3)).max() > 1e-6 or np.linalg.det(R) < 0.0):
        raise InputError(f"target of {frame!r}: {R.tolist()} is not a rotation")
    p = given if given.shape == (3,) else given[:3, 3] if given.shape == (4, 4) else None
    return FrameTarget(frame, p, R, chart)
