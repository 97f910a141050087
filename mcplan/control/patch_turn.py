"""The orientation of a patch as a posture reference turns it."""

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.control.quintic import Sample, minimum_jerk
from mcplan.control.rotation import rotation_vector
from mcplan.control.spline import PostureSpline
from mcplan.core.frame import frame_motion
from mcplan.core.tree import workspace
from mcplan.model.robot import Robot


class PatchTurn:
    """``R(t) = exp((1 - sigma(t)) phi) R_FK(q(t))``: what the patch is off at the start (phi) goes away on the way.

    Parameters
    ----------
    robot, patch : whose orientation.
    posture : reference of the whole posture.
    start : (3,3) orientation at its beginning.
    """

    def __init__(self, robot: Robot, patch: str, posture: PostureSpline, start: np.ndarray):
        self.posture = posture
        self._tree, (self._body, self._offset), self._work = robot.tree, robot.frame(patch), workspace(robot.tree)
        self._off = np.zeros(3)
        self._off = rotation_vector(start @ self.sample(posture.start_time).value.T)

    def sample(self, t: float) -> Sample:
        """Return R (3,3), angular velocity and acceleration (3,) at time t."""
        q, v, vd = self.posture.sample(t)
        x = np.empty(24)
        frame_motion(self._tree, q, v, vd, self._body, self._offset, self._work, x)
        T = self.posture.end_time - self.posture.start_time
        part, slope, bend = minimum_jerk((t - self.posture.start_time) / T)
        E = Rotation.from_rotvec((1 - part) * self._off).as_matrix()
        turning, w = -slope / T * self._off, E @ x[15:18]
        wd = -bend / (T * T) * self._off + E @ x[21:24] + np.cross(turning, w)
        return Sample(E @ x[:9].reshape(3, 3), turning + w, wd)
