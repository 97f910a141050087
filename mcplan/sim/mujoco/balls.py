"""Ball joints: unit quaternions and turns about the child's axes in MuJoCo, rotation vectors and their rates here.

With ``E`` the map of the rates to the angular velocity in the child's axes, ``w = E phi'``::

    w' = E phi'' + E' phi'         forces on phi: E' (transposed) times the moment

MuJoCo's step gives w'; what follows for phi'' is integrated as the coordinates of all joints are, ``phi'+ = phi' + dt
phi''``, ``phi+ = phi + dt phi'+``, and MuJoCo's state is put where that leads. Its own, from w, differs by ``dt²``.
"""

from typing import Any

import numpy as np

from mcplan.coordinates.rotation_vector import ROTATION_VECTOR
from mcplan.model.robot import Robot


def ball_name(coordinate: str) -> str:
    """Return the name of the joint in the URDF of the first coordinate's, ``hip`` of ``hip_x``."""
    return coordinate.removesuffix("_x")


class Ball:
    """One ball joint.

    Parameters
    ----------
    column : of its first coordinate among the robot's joints.
    place, rate : where its quaternion and its turn begin in MuJoCo's ``qpos`` and ``qvel``.
    """

    def __init__(self, column: int, place: int, rate: int):
        self.joints, self.place, self.rate = slice(column, column + 3), slice(place, place + 4), slice(rate, rate + 3)
        self.phi, self.speed, self.E = np.zeros(3), np.zeros(3), np.eye(3)

    def put(self, data: Any, phi: np.ndarray, speed: np.ndarray) -> None:
        """Set MuJoCo's state."""
        self.phi, self.speed, self.E = phi, speed, ROTATION_VECTOR.E(phi, "base")
        data.qpos[self.place] = ROTATION_VECTOR.to_quaternion(phi)
        data.qvel[self.rate] = self.E @ speed

    def settle(self, data: Any, dt: float) -> None:
        """Move on by the step that MuJoCo has made from the state that was put."""
        turning = (data.qvel[self.rate] - self.E @ self.speed) / dt
        growth = np.linalg.solve(self.E, turning - ROTATION_VECTOR.E_rate(self.phi, self.speed, "base") @ self.speed)
        speed = self.speed + dt * growth
        self.put(data, self.phi + dt * speed, speed)


def balls_of(robot: Robot, model: Any) -> list[Ball]:
    """Return the ball joints of a robot."""
    found = []
    for column in robot.ball_columns:
        joint = model.joint(f"joint:{ball_name(robot.joint_names[column])}")
        found.append(Ball(column, int(joint.qposadr[0]), int(joint.dofadr[0])))
    return found
