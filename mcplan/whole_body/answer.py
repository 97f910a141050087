"""A point of the whole-body program: checked against the rows as they were declared, and unpacked."""

import numpy as np

from mcplan.core.whole_body import check as qp_answer
from mcplan.whole_body.solution import Array, Residuals
from mcplan.whole_body.tables import Binding

STATIONARITY = 1e-4
"""Relative gradient of the Lagrangian beyond which an answer is not taken for a minimiser."""


class Answer:
    """Accelerations, torques and force unknowns, with what they mean at the contacts and the residuals.

    Parameters
    ----------
    binding : of the program, filled.
    vd, tau, f : (nv,), (n,), (unknowns,) contiguous, the caller's to keep.
    objective : value of the cost in CVXPY's terms.

    Attributes
    ----------
    inequality, stationarity : may be set by who knows more: the user's constraints, the multipliers.
    """

    def __init__(self, binding: Binding, vd: Array, tau: Array, f: Array, objective: float):
        self.vd, self.tau, self.f, self.objective = vd, tau, f, objective
        self.stationarity = float("nan")
        self._binding = binding
        self._forces, self._wrenches = np.empty((binding.count, 3)), np.empty((len(binding.patches), 6))
        residual = binding.residual
        qp_answer.answer(*binding.check_arguments, vd, tau, f, residual, self._forces, self._wrenches)
        self.motion, self.contact, self.inequality, self._bias, self._acceleration = residual[
            : qp_answer.RESIDUALS
        ].tolist()

    @property
    def residuals(self) -> Residuals:
        """The residuals."""
        return Residuals(self.motion, self.contact, self.inequality, self.stationarity)

    def is_wrong(self, tolerance: float, hard_only: bool = False) -> bool:
        """Say whether it fails the check; with ``hard_only`` the equation of motion alone has to hold."""
        size = max(1.0, self._acceleration)
        wrong = not self.motion <= tolerance * max(1.0, self._bias)
        if not hard_only:
            wrong |= not self.contact <= tolerance * size or not self.inequality <= 2 * tolerance * size
        return wrong or self.stationarity > STATIONARITY

    def by_patch(self) -> tuple[dict[str, Array], dict[str, Array], dict[str, Array]]:
        """Return forces at the points, wrenches and force unknowns by patch."""
        b = self._binding
        forces = dict(zip(b.patches, map(self._forces.__getitem__, b.vectors), strict=True))
        unknowns = dict(zip(b.patches, map(self.f.__getitem__, b.places), strict=True))
        return forces, dict(zip(b.patches, self._wrenches, strict=True)), unknowns
