"""A link or a patch follows a reference pose."""

import numpy as np

from mcplan.model.terms import Terms
from mcplan.qp.rotation_error import rotation_error
from mcplan.qp.tasks.task import Array, damping


class LinkPoseTask:
    """``J vd = a* + kp e + kd (v* - J v) - Jdot v`` at the origin of a frame, in world axes.

    ``e = (p* - p, log(R* R'))``: the rotation vector turns the frame onto its reference.

    Parameters
    ----------
    frame : name of a link or patch.
    position, orientation : which of the two halves count.
    weight, kp, kd : cost weight (one number, or one per row), stiffness (1/s²), damping (1/s; critical when None).

    Attributes
    ----------
    R, p : reference pose, (3, 3) and (3,).
    velocity, acceleration : (6,) feed-forward, linear then angular, world axes. Change them at will.
    """

    diagonal = False

    def __init__(
        self,
        frame: str,
        position: bool = True,
        orientation: bool = True,
        weight: float | Array = 500.0,
        kp: float = 400.0,
        kd: float | None = None,
    ):
        if not (position or orientation):
            raise ValueError(f"task on {frame}: neither position nor orientation")
        self.frame, self.weight, self.kp, self.kd = frame, weight, kp, damping(kp, kd)
        self._rows = slice(0 if position else 3, 6 if orientation else 3)
        self.R = np.eye(3)
        self.p = np.zeros(3)
        self.velocity = np.zeros(6)
        self.acceleration = np.zeros(6)

    @property
    def frames(self) -> tuple[str, ...]:
        """The frame."""
        return (self.frame,)

    @property
    def dimension(self) -> int:
        """3 or 6."""
        return self._rows.stop - self._rows.start

    @property
    def key(self) -> tuple:
        """Structure."""
        return ("link", self.dimension)

    def error(self, terms: Terms) -> Array:
        """Return ``e``, m and rad."""
        frame = terms.frame(self.frame)
        return np.concatenate([self.p - frame.p, rotation_error(self.R, frame.R)])[self._rows]

    def rows(self, terms: Terms) -> tuple[Array, Array]:
        """Return ``A`` and ``b``."""
        frame = terms.frame(self.frame)
        wanted = self.acceleration + self.kd * (self.velocity - frame.velocity) - frame.bias
        wanted[:3] += self.kp * (self.p - frame.p)
        wanted[3:] += self.kp * rotation_error(self.R, frame.R)
        return frame.J[self._rows], wanted[self._rows]
