"""A link or a patch follows a reference pose."""

import numpy as np
from numpy.typing import ArrayLike

from mcplan.core.whole_body import tasks as qp_tasks
from mcplan.errors import InputError
from mcplan.model.terms import Terms
from mcplan.whole_body.packed import Slot
from mcplan.whole_body.rotation_error import rotation_error
from mcplan.whole_body.tasks.task import Array, KernelTask, damping


class LinkPoseTask(KernelTask):
    """``J vd = a* + kp e + kd (v* - J v) - Jdot v`` at the origin of a frame, in world axes.

    ``e = (p* - p, log(R* R'))``: the rotation vector turns the frame onto its reference.

    Parameters
    ----------
    frame : name of a link or patch.
    position, orientation : which of the two halves count.
    weight : cost weight, one number or one per row.
    kp, kd : stiffness (1/s²) and damping (1/s; critical when None), one number or (6,).

    Attributes
    ----------
    R, p : reference pose, (3, 3) and (3,); identity and zero until set (``control.tasks`` sets the first stance's).
    velocity, acceleration : (6,) feed-forward, linear then angular, world axes. Change them at will.
    """

    code = qp_tasks.LINK_POSE
    diagonal = False
    kp, kd, p, R, velocity, acceleration = Slot(), Slot(), Slot(), Slot(), Slot(), Slot()

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
        self.allocate(kp=6, kd=6, p=3, R=(3, 3), velocity=6, acceleration=6, weight=len(self.selected))
        self.weight, self.kp, self.kd, self.R = weight, kp, damping(kp, kd), np.eye(3)

    @property
    def frames(self) -> tuple[str, ...]:
        """The frame."""
        return (self.frame,)

    @property
    def dimension(self) -> int:
        """3 or 6."""
        return len(self.selected)

    @property
    def key(self) -> tuple:
        """Structure."""
        return ("link", self.dimension)

    def error(self, terms: Terms) -> Array:
        """Return ``e``, m and rad."""
        frame = terms.frame(self.frame)
        return np.concatenate([self.p - frame.p, rotation_error(self.R, frame.R)])[list(self.selected)]

    def rows(self, terms: Terms) -> tuple[Array, Array]:
        """Return ``A`` and ``b``."""
        frame = terms.frame(self.frame)
        e = np.concatenate([self.p - frame.p, rotation_error(self.R, frame.R)])
        b = self.acceleration + self.kp * e + self.kd * (self.velocity - frame.velocity) - frame.bias
        rows = slice(self.selected[0], self.selected[-1] + 1)
        return frame.J[rows], b[rows]
