"""From the coordinates of a run to those of an engine and back: couplings, locked joints, rotors, base axes."""

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.certificate.engines.contract import moving_joints
from mcplan.sim.records import RobotRecord


class Joints:
    """The map between n coordinates of a run and m moving joints of an engine.

        positions = G q + offset      rates = G v      force on the coordinates = G' force on the joints

    G holds the multipliers of mimic joints; a locked joint has a row of zeros and its value as offset. A force on
    the coordinates follows from virtual power, and rotors add ``armature * vd`` to it.

    Parameters
    ----------
    robot : the record.
    """

    def __init__(self, robot: RobotRecord):
        moving = [robot.joints[i] for i in moving_joints(robot)]
        self.G = np.zeros((len(moving), len(robot.coordinates)))
        self.offset = np.array([joint.offset for joint in moving], float)
        self.armature = np.array(robot.armature, float)
        for row, joint in enumerate(moving):
            if joint.coordinate >= 0:
                self.G[row, joint.coordinate] = joint.multiplier

    def state(self, q: np.ndarray) -> np.ndarray:
        """Return x (N, 7+m) of q (N, 7+n); the quaternion is normalised."""
        quat = q[:, 3:7] / np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
        return np.concatenate([q[:, :3], quat, q[:, 7:] @ self.G.T + self.offset], axis=1)

    def rate(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return u (N, 6+m) of v (N, 6+n), or a of vd: the axes turn with the base, and ``w x w = 0``."""
        turned = _rotation(q).inv().apply(v[:, 3:6])
        return np.concatenate([v[:, :3], turned, v[:, 6:] @ self.G.T], axis=1)

    def force(self, q: np.ndarray, vd: np.ndarray, force: np.ndarray) -> np.ndarray:
        """Return the generalised force (N, 6+n) in world axes of one (N, 6+m) in the axes of ``u``."""
        moment = _rotation(q).apply(force[:, 3:6])
        return np.concatenate([force[:, :3], moment, force[:, 6:] @ self.G + self.armature * vd[:, 6:]], axis=1)

    def rotor_energy(self, v: np.ndarray) -> np.ndarray:
        """Return the kinetic energy (N,) of the rotors, J."""
        return np.asarray(0.5 * (v[:, 6:] ** 2 @ self.armature))

    def configuration(self, q: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the configuration (7+n,) of a state x (7+m,): joints by least squares over a coordinate's joints.

        The joints of one coordinate agree as long as the state came from ``state`` and ``rate``.
        """
        weight = np.sum(self.G**2, axis=0)
        joints = np.where(weight > 0, (x[7:] - self.offset) @ self.G / np.where(weight > 0, weight, 1.0), q[7:])
        return np.concatenate([x[:7], joints])


def _rotation(q: np.ndarray) -> Rotation:
    return Rotation.from_quat(q[:, 3:7], scalar_first=True)
