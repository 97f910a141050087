"""Pose tasks of links and patches: in the world, and relative to another frame of the robot."""

import numpy as np
from numpy.typing import ArrayLike

from mcplan.core.whole_body import tasks as qp_tasks
from mcplan.errors import InputError
from mcplan.robot.terms import Terms
from mcplan.util.text import summary
from mcplan.whole_body.contact import rotation_error
from mcplan.whole_body.packed import View
from mcplan.whole_body.tasks.task import Array, KernelTask, damping


class LinkPoseTask(KernelTask):
    """``J vd = a* + kp e + kd (v* - J v) - Jdot v`` at the origin of a frame, in world axes.

    ``e = (p* - p, log(R* R'))``: the rotation vector rotates the frame onto its reference.

    Parameters
    ----------
    frame : name of a link or patch.
    position, orientation : whether each is controlled.
    weight : cost weight, one number or one per row.
    kp, kd : stiffness (1/s²) and damping (1/s; critical when None), one number or (6,).

    Attributes
    ----------
    R, p : reference pose, (3, 3) and (3,); identity and zero until set (``control.tasks``: pose in the first stance).
    velocity, acceleration : (6,) feed-forward, linear then angular, world axes. They may be changed at any time.
    reference : (24,) all of these in one array, see `core.motion.reference`.
    """

    code = qp_tasks.LINK_POSE
    diagonal = False
    kp, kd, R, p, velocity, acceleration = View(), View(), View(), View(), View(), View()

    def __init__(
        self,
        frame: str,
        position: bool = True,
        orientation: bool = True,
        weight: ArrayLike = 500.0,
        kp: ArrayLike = 400.0,
        kd: ArrayLike | None = None,
    ):
        if not (position or orientation):
            raise InputError(f"task on {frame}: neither position nor orientation")
        self.frame = frame
        self.selected = tuple(range(0 if position else 3, 6 if orientation else 3))
        self.allocate(kp=6, kd=6, R=(3, 3), p=3, velocity=6, acceleration=6, weight=len(self.selected))
        self.reference = self.values[12:36]
        self.weight, self.kp, self.kd, self.R = weight, kp, damping(kp, kd), np.eye(3)

    @property
    def frames(self) -> tuple[str, ...]:
        """The frame of the task."""
        return (self.frame,)

    @property
    def dimension(self) -> int:
        """Number of rows: 3 or 6."""
        return len(self.selected)

    @property
    def key(self) -> tuple:
        """Structure key; see `Task.key`."""
        return ("link", self.dimension)

    def error(self, terms: Terms) -> Array:
        """Return ``e``, m and rad."""
        frame = terms.frame(self.frame)
        return np.concatenate([self.p - frame.p, rotation_error(self.R, frame.R)])[list(self.selected)]

    def rows(self, terms: Terms) -> tuple[Array, Array]:
        """Return ``A`` and ``b`` of the rows ``A vd = b``."""
        frame = terms.frame(self.frame)
        e = np.concatenate([self.p - frame.p, rotation_error(self.R, frame.R)])
        b = self.acceleration + self.kp * e + self.kd * (self.velocity - frame.velocity) - frame.bias
        rows = slice(self.selected[0], self.selected[-1] + 1)
        return frame.J[rows], b[rows]


class RelativePoseTask:
    """``J_BA vd = a* + kp e + kd (v* - v_BA) - Jdot_BA v``: the motion of A relative to B, in B's axes.

    With ``r = p_A - p_B`` and ``u = v_A - v_B - w_B x r`` (world axes)::

        p_BA = R_B' r,                    R_BA = R_B' R_A
        v_BA = R_B' (u, w_A - w_B)
        d/dt v_BA = R_B' (a_A - a_B - wd_B x r - w_B x (w_B x r) - 2 w_B x u,
                          wd_A - wd_B - w_B x (w_A - w_B))
        e = (p* - p_BA, log(R* R_BA'))

    Parameters
    ----------
    frame, reference : names of the links or patches A and B.
    position, orientation : whether each is controlled.
    weight, kp, kd : cost weight (one number, or one per row), stiffness (1/s²), damping (1/s; critical when None).

    Attributes
    ----------
    R, p : reference pose of A in B, (3, 3) and (3,).
    velocity, acceleration : (6,) feed-forward, linear then angular, in B's axes. They may be changed at any time.
    """

    diagonal = False

    __repr__ = summary

    def __init__(
        self,
        frame: str,
        reference: str,
        position: bool = True,
        orientation: bool = True,
        weight: float | Array = 500.0,
        kp: float = 400.0,
        kd: float | None = None,
    ):
        if not (position or orientation):
            raise InputError(f"task on {frame} in {reference}: neither position nor orientation")
        self.frame, self.reference = frame, reference
        self.weight, self.kp, self.kd = weight, kp, damping(kp, kd)
        self._rows = slice(0 if position else 3, 6 if orientation else 3)
        self.R = np.eye(3)
        self.p = np.zeros(3)
        self.velocity = np.zeros(6)
        self.acceleration = np.zeros(6)

    @property
    def frames(self) -> tuple[str, ...]:
        """Both frames, A and B."""
        return (self.frame, self.reference)

    @property
    def dimension(self) -> int:
        """Number of rows: 3 or 6."""
        return self._rows.stop - self._rows.start

    @property
    def key(self) -> tuple:
        """Structure key; see `Task.key`."""
        return ("relative", self.dimension)

    def error(self, terms: Terms) -> Array:
        """Return ``e``, m and rad."""
        A, B = terms.frame(self.frame), terms.frame(self.reference)
        p, R = B.R.T @ (A.p - B.p), B.R.T @ A.R
        return np.concatenate([self.p - p, rotation_error(self.R, R)])[self._rows]

    def rows(self, terms: Terms) -> tuple[Array, Array]:
        """Return ``A`` and ``b`` of the rows ``A vd = b``."""
        J, velocity, bias = self.motion(terms)
        b = self.acceleration + self.kd * (self.velocity - velocity) - bias
        b[self._rows] += self.kp * self.error(terms)
        return J[self._rows], b[self._rows]

    def motion(self, terms: Terms) -> tuple[Array, Array, Array]:
        """Return ``J_BA (6, nv)``, ``v_BA`` and ``Jdot_BA v``."""
        A, B = terms.frame(self.frame), terms.frame(self.reference)
        r, w = A.p - B.p, B.velocity[3:]
        u = A.velocity[:3] - B.velocity[:3] - np.cross(w, r)
        relative_w = A.velocity[3:] - w
        x, y, z = r
        r_hat = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        J = np.vstack([B.R.T @ (A.J[:3] - B.J[:3] + r_hat @ B.J[3:]), B.R.T @ (A.J[3:] - B.J[3:])])
        linear = A.bias[:3] - B.bias[:3] - np.cross(B.bias[3:], r) - np.cross(w, np.cross(w, r)) - 2 * np.cross(w, u)
        angular = A.bias[3:] - B.bias[3:] - np.cross(w, relative_w)
        velocity = np.concatenate([B.R.T @ u, B.R.T @ relative_w])
        return J, velocity, np.concatenate([B.R.T @ linear, B.R.T @ angular])
