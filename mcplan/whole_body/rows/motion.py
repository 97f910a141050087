"""``M vd + h = S' tau + J_f f``: the equation of motion, which never gives way."""

from typing import TYPE_CHECKING

from mcplan.whole_body.rows.block import Block, Gradient, Rows, Values

if TYPE_CHECKING:
    from mcplan.whole_body.declaration import Declaration

MOTION = "motion"


class Motion(Block):
    """The rows of the equation of motion."""

    def __init__(self, d: "Declaration"):
        nv, self._joints = d.structure.nv, slice(6, 6 + d.structure.n)
        M, h = d.parameter("M", (nv, nv)), d.parameter("h", nv)
        motion = M @ d.vd + h - d.actuation @ d.tau
        if d.force is not None:
            motion = motion - d.parameter("force_map", (nv, d.force.size)) @ d.force
        self.rows = [Rows(MOTION, motion, True)]

    def add_gradient(self, data: Values, y: Values, gradient: Gradient) -> None:
        """Add ``M' y`` for the accelerations, ``-S y`` for the torques, ``-J_f' y`` for the forces."""
        gradient.vd.append(data["M"].T @ y[MOTION])
        gradient.tau.append(-y[MOTION][self._joints])
        if "force_map" in data:
            gradient.f.append(-data["force_map"].T @ y[MOTION])
