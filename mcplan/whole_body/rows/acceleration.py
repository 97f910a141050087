"""``a_min <= vd_j <= a_max``: joints keep their limits of position and velocity (`core.algebra.joint_bounds`)."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from mcplan.whole_body.rows.block import Block, Conflict, Failure, Gradient, Rows, Values

if TYPE_CHECKING:
    from mcplan.whole_body.declaration import Declaration

LOWER, UPPER = "acceleration_min", "acceleration_max"


class Bounds(Block):
    """The bounds of the accelerations of those joints that have limits."""

    def __init__(self, d: "Declaration"):
        self._joints = joints = np.array(d.structure.bounded, dtype=int)
        if not len(joints):
            return
        lower, upper = (d.parameter(name, len(joints)) for name in (LOWER, UPPER))
        vd = d.vd[6:] if len(joints) == d.structure.nv - 6 else d.vd[6 + joints]
        self.rows = [
            Rows(LOWER, lower - vd, False, penalty=1e2, price=10.0),
            Rows(UPPER, vd - upper, False, penalty=1e2, price=10.0),
        ]

    def add_gradient(self, data: Values, y: Values, gradient: Gradient) -> None:
        """Add the multipliers where the joints are."""
        if self.rows:
            held = np.zeros(len(data["h"]))
            held[6 + self._joints] = y[UPPER] - y[LOWER]
            gradient.vd.append(held)

    def conflicts(self, failure: Failure) -> Iterator[Conflict]:
        """Name the joints and the sides."""
        for rows, side in zip(self.rows, ("lower", "upper"), strict=False):
            for joint, excess in zip(self._joints, failure.slack[rows.name], strict=True):
                what = f"{side} acceleration bound of {failure.joints[joint]} (position and velocity limits)"
                yield Conflict(what, float(excess), "rad/s²")
