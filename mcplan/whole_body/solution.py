"""Solutions of the whole-body program: residual check against the declared rows, and unpacking by contact.

The residuals are checked independently of the solver's status.
"""

from collections.abc import Container, Iterator, Mapping
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from mcplan.core.whole_body import check as qp_check
from mcplan.util.qp_status import SOLVED
from mcplan.whole_body.declaration import Declaration, add_gradient
from mcplan.whole_body.rows.block import Gradient
from mcplan.whole_body.tables import BoundTables

Array = NDArray[np.float64]


class Residuals(NamedTuple):
    """How well a solution satisfies its problem.

    Parameters
    ----------
    motion : largest entry of ``M vd + h - S' tau - sum J' w - tau_ext``, N or N m.
    contact : largest error of the contact accelerations, m/s² or rad/s².
    inequality : largest violation of a bound on forces, torques or accelerations (and of user-defined constraints).
    stationarity : largest entry of the Lagrangian's gradient relative to the largest of its terms; NaN without
        multipliers of the solver, or with user-defined terms.
    """

    motion: float
    contact: float
    inequality: float
    stationarity: float = float("nan")


class Reported:
    """Attribute that is one number in the report of a solution."""

    def __init__(self, entry: int):
        self._index = entry - qp_check.REPORTED

    @overload
    def __get__(self, solution: None, owner: type) -> "Reported": ...
    @overload
    def __get__(self, solution: "Solution", owner: type) -> float: ...
    def __get__(self, solution, owner):
        """Return the number, or on the class the attribute itself."""
        return self if solution is None else solution.numbers.item(self._index)

    def __set__(self, solution: "Solution", value: float) -> None:
        """Set the number."""
        solution.numbers[self._index] = value


class ByPatch(Mapping[str, Array]):
    """Arrays by patch: views on common numbers, made on access, because most ticks read none of them.

    Parameters
    ----------
    numbers : all numbers.
    parts : patch -> slice of its numbers.
    shape : of the arrays.
    """

    __slots__ = ("_numbers", "_parts", "_shape")

    def __init__(self, numbers: Array, parts: Mapping[str, slice], shape: tuple[int, ...]):
        self._numbers, self._parts, self._shape = numbers, parts, shape

    def __repr__(self) -> str:
        return repr(dict(self))

    def __getitem__(self, patch: str) -> Array:
        """Return the array of a patch."""
        return self._numbers[self._parts[patch]].reshape(self._shape)

    def without(self, patches: Container[str]) -> "ByPatch":
        """Return the mapping without some patches."""
        parts = {patch: part for patch, part in self._parts.items() if patch not in patches}
        return ByPatch(self._numbers, parts, self._shape)

    def __contains__(self, patch: object) -> bool:
        return patch in self._parts

    def __iter__(self) -> Iterator[str]:
        """Iterate over the patches."""
        return iter(self._parts)

    def __len__(self) -> int:
        """Return the number of patches."""
        return len(self._parts)


class Solution:
    """Accelerations, torques and forces of one tick, with the residuals of the declared problem.

    Parameters
    ----------
    tables : kernel tables of the filled program.

    Attributes
    ----------
    vd : (nv,) time derivative of the velocity.
    tau : (n,) joint torques.
    f : (unknowns,) force unknowns, contact by contact in the order of ``patches``.
    patches : patches of the contacts, in the order of the program.
    status : 0 solved, 1 slack form, 2 damped hold; see `mcplan.util.qp_status`.
    motion, contact, inequality, stationarity : see `Residuals`; the last two may be set by a caller that has
        user-defined constraints or multipliers. In the slack form the first three are the violations.
    objective : value of the cost.
    solve_time : computing time of ``solve``, s.
    message : reason why the declared program was not solved; empty if it was.
    conflicts : constraints that would have to be relaxed, if the failure was explained.
    """

    status, solve_time, message = SOLVED, 0.0, ""
    conflicts: tuple = ()
    motion, contact, inequality = (Reported(k) for k in (qp_check.MOTION, qp_check.CONTACT, qp_check.INEQUALITY))
    objective, stationarity = Reported(qp_check.OBJECTIVE), Reported(qp_check.STATIONARITY)

    def __init__(self, tables: BoundTables):
        self._tables, self.patches, self.numbers = tables, tables.patches, tables.new_numbers()
        self.vd, self.tau, self.f = tables.unknowns(self.numbers)

    @classmethod
    def checked(cls, tables: BoundTables, vd: Array, tau: Array, f: Array, objective: float) -> "Solution":
        """Return the solution with these unknowns, (nv,), (n,), (unknowns,), and its residuals."""
        solution = cls(tables)
        solution.vd[:], solution.tau[:], solution.f[:] = vd, tau, f
        tables.check(solution.numbers)
        solution.objective, solution.stationarity = objective, float("nan")
        return solution

    @property
    def ok(self) -> bool:
        """Whether the program was solved as declared."""
        return self.status == SOLVED

    @property
    def residuals(self) -> Residuals:
        """All residuals of the solution."""
        return Residuals(self.motion, self.contact, self.inequality, self.stationarity)

    @property
    def violation(self) -> float:
        """Largest violation of rows other than the equation of motion: m/s², rad/s², N or N m."""
        return max(self.contact, self.inequality)

    def is_wrong(self, tolerance: float, hard_only: bool = False) -> bool:
        """Whether the solution fails the residual check; with ``hard_only`` only the equation of motion counts."""
        return bool(qp_check.is_wrong(self.numbers[-qp_check.REPORTED :], tolerance, hard_only))

    @property
    def forces(self) -> "ByPatch":
        """Forces of the environment at the contact points by patch: (k, 3), world axes, N."""
        return ByPatch(self.numbers, self._tables.point_parts, (-1, 3))

    @property
    def wrenches(self) -> "ByPatch":
        """Wrench of the environment by patch: (6,), at the patch origin, world axes."""
        return ByPatch(self.numbers, self._tables.wrench_parts, (6,))

    @property
    def unknowns(self) -> dict[str, Array]:
        """Force unknowns of the program by patch, in the contact's axes."""
        return dict(zip(self.patches, map(self.f.__getitem__, self._tables.force_slices), strict=True))


LIMIT_TOLERANCE_NM = 1e-5
"""A torque nearer to its limit than this counts as at the limit (N m)."""


def stationarity(
    d: Declaration, data: dict[str, Array], vd: Array, tau: Array, f: Array, duals: dict[str, Array]
) -> float:
    """Return the largest entry of the Lagrangian's gradient over the largest of its terms, computed without CVXPY.

    Parameters
    ----------
    d, data : the declared problem and the values of its parameters.
    vd, tau, f : the point: accelerations, torques and force unknowns.
    duals : name of the rows -> multipliers.
    """
    gradient = Gradient()
    add_gradient(data, d.structure.settings.torque_weight, vd, tau, f, gradient)
    for block in d.blocks:
        block.add_gradient(data, duals, gradient)
    limit, on_tau = np.array(d.structure.torque), np.sum(gradient.tau, axis=0)
    projected = np.where(
        tau > limit - LIMIT_TOLERANCE_NM,
        np.maximum(on_tau, 0),
        np.where(tau < LIMIT_TOLERANCE_NM - limit, np.minimum(on_tau, 0), on_tau),
    )
    scale = max(1.0, float(np.max(np.abs(duals["motion"]))))
    return max(_relative(gradient.vd), float(np.max(np.abs(projected))) / scale, _relative(gradient.f))


def _relative(terms: list[Array]) -> float:
    """Return the largest entry of a sum over the largest entry of its terms, which counts as 1 at least."""
    if not terms:
        return 0.0
    return float(np.max(np.abs(np.sum(terms, axis=0)))) / max(1.0, *(float(np.max(np.abs(t))) for t in terms))
