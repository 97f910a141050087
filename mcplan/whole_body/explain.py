"""Why a whole-body program has no solution: the constraints that would have to give way, by name and amount."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.declaration import Declaration

PRICE = {
    "contact": 100.0,
    "acceleration_min": 10.0,
    "acceleration_max": 10.0,
    "limit": 50.0,
    "release": 5.0,
    "extra": 100.0,
}
"""What one unit of violation costs relative to 1 N or 1 N m: limits of forces and torques are named first, a slipping
contact last. The equation of motion is never given up."""


@dataclass(frozen=True)
class Conflict:
    """One constraint that would have to give way."""

    what: str
    amount: float
    unit: str

    def __str__(self) -> str:
        return f"{self.what} by {self.amount:.3g} {self.unit}"


class Explanation:
    """The elastic form: the smallest sum of priced violations that makes the program feasible.

    Built once per declared problem, on its parameters.
    """

    def __init__(self, d: Declaration, extra: Sequence[cp.Constraint], joint_names: Sequence[str]):
        self._d, self._extra, self._joints = d, list(extra), list(joint_names)
        self._torque = cp.Variable(d.structure.n)
        self._slack: dict[str, cp.Variable] = {}
        price = cp.norm1(self._torque) + 1e-7 * cp.sum_squares(d.vd)
        if d.force is not None:
            price = price + 1e-9 * cp.sum_squares(d.force)
        constraints = []
        for rows in d.rows:
            if rows.name == "motion":
                constraints.append(rows.expression - d.actuation @ self._torque == 0)
                continue
            slack, price_each = self._relaxation(rows.name, rows.expression.shape)
            price = price + PRICE.get(rows.name, 1.0) * price_each
            constraints.append(rows.expression == slack if rows.equality else rows.expression <= slack)
        for index, given in enumerate(self._extra):
            expression = given.args[0] - given.args[1]
            slack = cp.Variable(expression.shape)
            self._slack[f"extra {index}"] = slack
            price = price + PRICE["extra"] * cp.sum(cp.abs(slack))
            equality = isinstance(given, cp.constraints.Equality)
            constraints.append(expression == slack if equality else expression <= slack)
        self._problem = cp.Problem(cp.Minimize(price), constraints)

    def _relaxation(self, name: str, shape: tuple[int, ...]) -> tuple[cp.Expression, cp.Expression]:
        """Return what is added to some rows, and its price: one amount for all the faces of one cone or ball."""
        spread = self._d.constants.get("repeat" if name == "friction" else f"{name}_repeat")
        slack = cp.Variable(shape if spread is None else spread.shape[1])
        self._slack[name] = slack
        return slack if spread is None else spread @ slack, cp.norm1(slack)

    def __call__(
        self, contacts: Sequence[ContactConstraint], limits: Sequence[str] = (), threshold: float = 1e-4
    ) -> tuple[Conflict, ...]:
        """Return the conflicts at the present values of the parameters, the largest first.

        Parameters
        ----------
        contacts : the contacts, in the order of the declared problem.
        limits : names of the rows of the added limits.
        threshold : violations below are not named.
        """
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an inaccurate answer still names what is in the way
                self._problem.solve(solver=cp.CLARABEL)
        except cp.SolverError:
            return ()
        if self._problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            return ()
        found = [*self._torques(), *self._forces(contacts), *self._contacts(contacts), *self._accelerations()]
        if limits:
            excess = self._value("limit").tolist()
            found.extend(Conflict(name, amount, "m/s²") for name, amount in zip(limits, excess, strict=True))
        for index, given in enumerate(self._extra):
            value = np.atleast_1d(self._value(f"extra {index}"))
            name = given.label or str(given)
            found.append(Conflict(f"added constraint {name}", float(np.max(np.abs(value))), ""))
        return tuple(sorted((c for c in found if c.amount > threshold), key=lambda c: -c.amount))

    def _value(self, name: str) -> Any:
        slack = self._slack.get(name)
        return None if slack is None else np.asarray(slack.value)

    def _torques(self) -> list[Conflict]:
        excess = np.abs(np.asarray(self._torque.value))
        return [Conflict(f"torque limit of {n}", float(x), "N m") for n, x in zip(self._joints, excess, strict=True)]

    def _forces(self, contacts: Sequence[ContactConstraint]) -> list[Conflict]:
        found = []
        cone = grasp = 0
        for contact, place in zip(contacts, self._d.structure.slices(), strict=True):
            if contact.shape.grasp:
                for name, text, unit in (
                    ("grasp_force", "grasping force", "N"),
                    ("grasp_moment", "grasping moment", "N m"),
                ):
                    found.append(Conflict(f"{text} at {contact.patch}", float(self._value(name)[grasp]), unit))
                grasp += 1
                continue
            f = np.asarray(self._d.force.value)[place].reshape(-1, 3)
            pull = float(np.sum(np.maximum(-f[:, 2], 0.0)))
            excess = np.hypot(f[:, 0], f[:, 1]) - contact.friction * np.maximum(f[:, 2], 0.0)
            found.append(Conflict(f"unilateral force at {contact.patch}", pull, "N"))
            if np.any(self._value("friction") > 1e-5):
                found.append(Conflict(f"friction at {contact.patch}", float(np.sum(np.maximum(excess, 0.0))), "N"))
            if contact.min_force > 0:
                found.append(
                    Conflict(f"smallest force at {contact.patch}", float(self._value("normal_min")[cone]), "N")
                )
            found.append(Conflict(f"largest force at {contact.patch}", float(self._value("normal_max")[cone]), "N"))
            cone += 1
        return found

    def _contacts(self, contacts: Sequence[ContactConstraint]) -> list[Conflict]:
        found = []
        row = released = 0
        for contact in contacts:
            value = self._value("contact")[row : row + contact.shape.rows]
            motion = contact.selection.T @ value
            for half, unit in ((motion[:3], "m/s²"), (motion[3:], "rad/s²")):
                found.append(Conflict(f"contact acceleration at {contact.patch}", float(np.linalg.norm(half)), unit))
            row += contact.shape.rows
            if contact.shape.released:
                value = self._value("release")[released : released + contact.shape.released]
                found.append(Conflict(f"free direction of {contact.patch}", float(np.linalg.norm(value)), "N"))
                released += contact.shape.released
        return found

    def _accelerations(self) -> list[Conflict]:
        found = []
        for name, side in (("acceleration_min", "lower"), ("acceleration_max", "upper")):
            value = self._value(name)
            if value is not None:
                for joint, x in zip(self._d.structure.bounded, value, strict=True):
                    what = f"{side} acceleration bound of {self._joints[joint]} (position and velocity limits)"
                    found.append(Conflict(what, float(x), "rad/s²"))
        return found
