"""Acceleration rows: equation of motion, contacts, joint limits, and added limits.

- ``M vd + h = S' tau + J_f f``: the equation of motion, which is never relaxed.
- ``J_c vd = a_c``: contacts keep their pose; ``R f = 0``: they bear no force in their free directions.
- ``a_min <= vd_j <= a_max``: position and velocity limits of joints (`core.algebra.joint_bounds`).
- ``A_l vd >= b_l``: added limits, such as collision avoidance.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from mcplan.whole_body.collision_avoidance import AccelerationLimit
from mcplan.whole_body.problem_data import ProblemData
from mcplan.whole_body.rows.block import Conflict, Failure, Gradient, RowBlock, Rows, Values

MOTION = "motion"
"""Name of the rows of the equation of motion."""


class EquationOfMotionRows(RowBlock):
    """Rows of the equation of motion."""

    def __init__(self, d: ProblemData):
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


class HeldContactRows(RowBlock):
    """Rows ``J_c vd = a_c`` of all contacts, in their constrained directions."""

    def __init__(self, d: ProblemData):
        if count := sum(shape.rows for shape in d.structure.shapes):
            J = d.parameter("contact_jacobian", (count, d.structure.nv))
            error = J @ d.vd - d.parameter("contact_acceleration", count)
            self.rows = [Rows("contact", error, True, penalty=1e4, price=100.0)]

    def add_gradient(self, data: Values, y: Values, gradient: Gradient) -> None:
        """Add ``J_c' y`` for the accelerations."""
        if self.rows:
            gradient.vd.append(data["contact_jacobian"].T @ y["contact"])

    def conflicts(self, failure: Failure) -> Iterator[Conflict]:
        """Yield the required acceleration of each contact."""
        row = 0
        for contact in failure.contacts:
            motion = contact.selection.T @ failure.slack["contact"][row : row + contact.shape.rows]
            for part, unit in ((motion[:3], "m/s²"), (motion[3:], "rad/s²")):
                yield Conflict(f"contact acceleration at {contact.patch}", float(np.linalg.norm(part)), unit)
            row += contact.shape.rows


class FreeDirectionRows(RowBlock):
    """Rows ``R f = 0`` of all contacts, in their free directions."""

    def __init__(self, d: ProblemData):
        if count := sum(shape.free_rows for shape in d.structure.shapes):
            R = d.parameter("release", (count, d.unknowns))
            self.rows = [Rows("release", R @ d.force, True, penalty=1e2, price=5.0)]

    def add_gradient(self, data: Values, y: Values, gradient: Gradient) -> None:
        """Add ``R' y`` for the forces."""
        if self.rows:
            gradient.f.append(data["release"].T @ y["release"])

    def conflicts(self, failure: Failure) -> Iterator[Conflict]:
        """Yield the required force of each contact in its free directions."""
        row = 0
        for contact in (contact for contact in failure.contacts if contact.shape.free_rows):
            value = failure.slack["release"][row : row + contact.shape.free_rows]
            yield Conflict(f"free direction of {contact.patch}", float(np.linalg.norm(value)), "N")
            row += contact.shape.free_rows


LOWER, UPPER = "acceleration_min", "acceleration_max"
"""Names of the rows with the acceleration bounds, and of their parameters."""


class AccelerationBounds(RowBlock):
    """Rows ``a_min <= vd_j <= a_max`` of joints with position or velocity limits."""

    def __init__(self, d: ProblemData):
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
        """Add the multipliers at the joints."""
        if self.rows:
            terms = np.zeros(len(data["h"]))
            terms[6 + self._joints] = y[UPPER] - y[LOWER]
            gradient.vd.append(terms)

    def conflicts(self, failure: Failure) -> Iterator[Conflict]:
        """Yield the violated bounds, by joint and side."""
        for rows, side in zip(self.rows, ("lower", "upper"), strict=False):
            for joint, excess in zip(self._joints, failure.slack[rows.name], strict=True):
                name = f"{side} acceleration bound of {failure.joints[joint]} (position and velocity limits)"
                yield Conflict(name, float(excess), "rad/s²")


class AddedLimitRows(RowBlock):
    """Rows ``A_l vd >= b_l`` of all added limits."""

    def __init__(self, d: ProblemData):
        if count := d.structure.limit_rows:
            A, lower = d.parameter("limit_matrix", (count, d.structure.nv)), d.parameter("limit_lower", count)
            self.rows = [Rows("limit", lower - A @ d.vd, False, penalty=1e3, price=50.0)]

    def add_gradient(self, data: Values, y: Values, gradient: Gradient) -> None:
        """Add ``-A_l' y`` for the accelerations."""
        if self.rows:
            gradient.vd.append(-data["limit_matrix"].T @ y["limit"])

    def conflicts(self, failure: Failure) -> Iterator[Conflict]:
        """Yield the violated rows by name."""
        if self.rows:
            for name, amount in zip(failure.limits, failure.slack["limit"].tolist(), strict=False):
                yield Conflict(name, amount, "m/s²")


def limit_names(limits: Sequence[AccelerationLimit]) -> list[str]:
    """Return the names of the rows of added limits."""
    return [name for limit in limits for name in limit.names]
