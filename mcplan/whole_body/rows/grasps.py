"""``D3 f <= r_f, D3 m <= r_m``: force and moment of a grasp within balls, as polytopes."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from mcplan.optimize.polytope import ball_polytope
from mcplan.whole_body.rows.block import Array, Block, Conflict, Failure, Gradient, Rows, Values

if TYPE_CHECKING:
    from mcplan.whole_body.declaration import Declaration

HALVES = (("grasp_force", slice(0, 3)), ("grasp_moment", slice(3, 6)))


class Grasps(Block):
    """The balls of all grasps: first the forces, then the moments."""

    def __init__(self, d: "Declaration"):
        shapes = zip(d.structure.shapes, d.structure.slices(), strict=True)
        grasps = [(shape, place) for shape, place in shapes if shape.grasp]
        if not grasps:
            return
        D, self.rows, self._faces = ball_polytope(3), [], dict[str, Array]()
        each: Array = np.repeat(np.eye(len(grasps)), len(D), axis=0)
        for name, half in HALVES:
            self._faces[name] = G = np.zeros((len(grasps) * len(D), d.unknowns))
            for i, (shape, place) in enumerate(grasps):
                G[i * len(D) : (i + 1) * len(D), place] = D @ shape.wrench_basis[half]
            radius = d.parameter(name, len(grasps))
            self.rows.append(Rows(name, G @ d.force - each @ radius, False, spread=each))

    def add_gradient(self, data: Values, y: Values, gradient: Gradient) -> None:
        """Add the multipliers along the faces of the balls."""
        gradient.f.extend(self._faces[rows.name].T @ y[rows.name] for rows in self.rows)

    def conflicts(self, failure: Failure) -> Iterator[Conflict]:
        """Name forces and moments that are too large."""
        grasps = [contact for contact in failure.contacts if contact.shape.grasp]
        for i, contact in enumerate(grasps):
            for (name, _), what, unit in zip(HALVES, ("force", "moment"), ("N", "N m"), strict=True):
                yield Conflict(f"grasping {what} at {contact.patch}", float(failure.slack[name][i]), unit)
