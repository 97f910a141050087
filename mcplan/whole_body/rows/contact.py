"""``J_c vd = a_c``: contacts stay where they are; ``R f = 0``: in directions that they leave free they bear nothing."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from mcplan.whole_body.rows.block import Block, Conflict, Failure, Gradient, Rows, Values

if TYPE_CHECKING:
    from mcplan.whole_body.declaration import Declaration


class Held(Block):
    """The accelerations of all contacts in the directions in which they are held."""

    def __init__(self, d: "Declaration"):
        if count := sum(shape.rows for shape in d.structure.shapes):
            J = d.parameter("contact_jacobian", (count, d.structure.nv))
            moves = J @ d.vd - d.parameter("contact_acceleration", count)
            self.rows = [Rows("contact", moves, True, penalty=1e4, price=100.0)]

    def add_gradient(self, data: Values, y: Values, gradient: Gradient) -> None:
        """Add ``J_c' y`` for the accelerations."""
        if self.rows:
            gradient.vd.append(data["contact_jacobian"].T @ y["contact"])

    def conflicts(self, failure: Failure) -> Iterator[Conflict]:
        """Name by how much each contact would have to accelerate."""
        row = 0
        for contact in failure.contacts:
            motion = contact.selection.T @ failure.slack["contact"][row : row + contact.shape.rows]
            for half, unit in ((motion[:3], "m/s²"), (motion[3:], "rad/s²")):
                yield Conflict(f"contact acceleration at {contact.patch}", float(np.linalg.norm(half)), unit)
            row += contact.shape.rows


class Released(Block):
    """The forces of all contacts in the directions that they leave free."""

    def __init__(self, d: "Declaration"):
        if count := sum(shape.released for shape in d.structure.shapes):
            R = d.parameter("release", (count, d.unknowns))
            self.rows = [Rows("release", R @ d.force, True, penalty=1e2, price=5.0)]

    def add_gradient(self, data: Values, y: Values, gradient: Gradient) -> None:
        """Add ``R' y`` for the forces."""
        if self.rows:
            gradient.f.append(data["release"].T @ y["release"])

    def conflicts(self, failure: Failure) -> Iterator[Conflict]:
        """Name what each contact would have to bear where it is free."""
        row = 0
        for contact in (contact for contact in failure.contacts if contact.shape.released):
            value = failure.slack["release"][row : row + contact.shape.released]
            yield Conflict(f"free direction of {contact.patch}", float(np.linalg.norm(value)), "N")
            row += contact.shape.released
