"""``tau_min <= tau <= tau_max``: how far from the last ones torques may go within a tick."""

from typing import TYPE_CHECKING

import numpy as np

from mcplan.whole_body.rows.block import Array, Block, Gradient, Rows, Values
from mcplan.whole_body.settings import UNBOUNDED

if TYPE_CHECKING:
    from mcplan.whole_body.declaration import Declaration

LOWER, UPPER = "torque_min", "torque_max"


class TorqueRate(Block):
    """The rows ``|tau - tau_last| <= rate dt``; none where torques may change at will.

    They never give way: where they are in the way of a solution the program is filled without last torques.
    """

    def __init__(self, d: "Declaration"):
        settings = d.structure.settings
        if np.isfinite(settings.torque_rate):
            lower, upper = (d.parameter(name, d.structure.n) for name in (LOWER, UPPER))
            self.rows = [Rows(LOWER, lower - d.tau, False), Rows(UPPER, d.tau - upper, False)]

    def add_gradient(self, data: Values, y: Values, gradient: Gradient) -> None:
        """Add the multipliers where the torques are."""
        if self.rows:
            gradient.tau.append(y[UPPER] - y[LOWER])


def fill_torque_rate(data: Values, last: Array | None, step: float) -> None:
    """Fill the bounds of the torques around those of the last tick (n,), N m; without them there are none."""
    if LOWER in data:
        data[LOWER][:] = -UNBOUNDED if last is None else last - step
        data[UPPER][:] = UNBOUNDED if last is None else last + step
