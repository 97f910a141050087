"""The orientation of a patch as a posture reference turns it."""

import numpy as np

from mcplan.core.algebra.minimum_jerk import turn_back
from mcplan.core.rigid_body.frame import frame_motion
from mcplan.core.rigid_body.tree import workspace
from mcplan.model.robot import Robot
from mcplan.motion.posture import PostureTrajectory
from mcplan.motion.quintic import Sample
from mcplan.motion.rotation import rotation_vector
from mcplan.motion.spline import PostureSpline


class PatchTurn:
    """``R(t) = exp((1 - sigma(t)) phi) R_FK(q(t))``: what the patch is off at the start (phi) goes away on the way.

    Parameters
    ----------
    robot, patch : whose orientation.
    posture : reference of the whole posture.
    start : (3,3) orientation at its beginning.
    """

    def __init__(self, robot: Robot, patch: str, posture: PostureSpline | PostureTrajectory, start: np.ndarray):
        self.posture = posture
        self._tree, (self._body, self._offset), self._work = robot.tree, robot.frame(patch), workspace(robot.tree)
        self._off, self._scratch = np.zeros(3), np.zeros((4, 3, 3))
        self._off = rotation_vector(start @ self.sample(posture.start_time).value.T)

    def sample(self, t: float) -> Sample:
        """Return R (3,3), angular velocity and acceleration (3,) at time t."""
        q, v, vd = self.posture.sample(t)
        x = np.empty(24)
        frame_motion(self._tree, q, v, vd, self._body, self._offset, self._work, x)
        start, end = self.posture.start_time, self.posture.end_time
        if t < end:
            turn_back(self._off, (t - start) / (end - start), end - start, self._scratch, x)
        return Sample(x[:9].reshape(3, 3), x[15:18], x[21:24])
