"""The whole-body quadratic program, written once, in CVXPY."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

from mcplan.errors import InputError
from mcplan.optimize.polytope import ball_polytope, friction_pyramid
from mcplan.whole_body.contact import ContactShape
from mcplan.whole_body.settings import QPSettings

Array = NDArray[np.float64]

UNBOUNDED = 1e6
"""N, N m: stands for an infinite force limit, which not every solver can read."""


@dataclass(frozen=True)
class Rows:
    """A group of rows ``expression == 0`` or ``expression <= 0`` that share a meaning."""

    name: str
    expression: cp.Expression
    equality: bool

    def constraint(self) -> cp.Constraint:
        """Return the rows as a constraint."""
        return self.expression == 0 if self.equality else self.expression <= 0


@dataclass(frozen=True)
class Structure:
    """What fixes the declared problem: sizes, limits that never change, options."""

    nv: int
    shapes: tuple[ContactShape, ...]
    task_rows: int
    torque: tuple[float, ...]  # (n,) bounds on the torques, inf where there are none
    bounded: tuple[int, ...]  # joints whose acceleration is bounded
    settings: QPSettings
    force_rows: int = 0  # of the tasks on contact forces
    torque_task: bool = False  # whether the torques follow a reference
    limit_rows: int = 0  # of the added limits

    @property
    def n(self) -> int:
        """Number of joints; what ``nv`` has beyond the base and them moves freely."""
        return len(self.torque)

    @property
    def row_counts(self) -> tuple[int, int, bool, int]:
        """Rows of tasks on accelerations, on forces, whether there are any on torques, rows of limits."""
        return self.task_rows, self.force_rows, self.torque_task, self.limit_rows

    def slices(self) -> list[slice]:
        """Return the place of each contact among the force unknowns."""
        ends = np.cumsum([0, *(shape.unknowns for shape in self.shapes)])
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]


class Declaration:
    """The program, as variables, parameters and rows.

    ::

        min   |A vd - b|^2 + (vd' W vd - 2 g' vd) + (f' W_f f - 2 g_f' f) + |F f|^2 + w_tau |tau|^2
          + |A_f f - b_f|^2 + (tau' W_tau tau - 2 g_tau' tau)
        s.t.  M vd + h = S' tau + J_f f                     motion
              J_c vd = a_c                                  contact
              R f = 0                                       release (free directions of a contact)
              D f_t + margin <= mu f_n                      friction, every point; also keeps f_n positive
              f_min <= sum f_n <= f_max                     normal_min, normal_max, every surface or point contact
              D3 f <= r_f, D3 m <= r_m                      grasp_force, grasp_moment
              a_min <= vd_j <= a_max                        acceleration_min, acceleration_max
              A_l vd >= b_l                                 limit
              |tau| <= tau_max                              bounds of the variable

    The weights of a diagonal task are in ``W`` and ``g = W b``, so it adds no unknowns; ``A`` and ``b`` carry the
    square root of the weight. All that changes between ticks is a Parameter: matrices and vectors only, one per symbol.

    Attributes
    ----------
    vd, tau, force : the variables; ``force`` is None without contacts.
    unknowns : number of force unknowns.
    parameters : name -> Parameter.
    constants : the constant matrices that multiply the forces, by name.
    rows : the groups of rows, ``motion`` first.
    objective : the cost.
    """

    def __init__(self, structure: Structure):
        self.structure = structure
        self.parameters: dict[str, cp.Parameter] = {}
        self.constants: dict[str, Array] = {}
        s = structure
        limit = np.array(s.torque)
        self.vd = cp.Variable(s.nv, name="vd")
        self.tau = cp.Variable(s.n, name="tau", bounds=[-limit, limit])
        self.unknowns = sum(shape.unknowns for shape in s.shapes)
        self.force: Any = cp.Variable(self.unknowns, name="force") if self.unknowns else None
        self.rows = [self._motion(), *self._contact(), *self._acceleration(), *self._limits(), *self._cones()]
        self.objective = self._objective()

    def parameter(self, name: str, shape: int | tuple[int, ...], **attributes: Any) -> cp.Parameter:
        """Add a parameter."""
        self.parameters[name] = cp.Parameter(shape, name=name, **attributes)
        return self.parameters[name]

    @property
    def actuation(self) -> Array:
        """``S'`` (nv, n): the torques act on the joints, neither on the base nor on free objects."""
        s = self.structure
        return np.vstack([np.zeros((6, s.n)), np.eye(s.n), np.zeros((s.nv - 6 - s.n, s.n))])

    def _motion(self) -> Rows:
        s = self.structure
        M, h = self.parameter("M", (s.nv, s.nv)), self.parameter("h", s.nv)
        motion = M @ self.vd + h - self.actuation @ self.tau
        if self.force is not None:
            motion = motion - self.parameter("force_map", (s.nv, self.force.size)) @ self.force
        return Rows("motion", motion, True)

    def _contact(self) -> list[Rows]:
        s = self.structure
        count = sum(shape.rows for shape in s.shapes)
        released = sum(shape.released for shape in s.shapes)
        rows = []
        if count:
            J = self.parameter("contact_jacobian", (count, s.nv))
            rows.append(Rows("contact", J @ self.vd - self.parameter("contact_acceleration", count), True))
        if released:
            R = self.parameter("release", (released, self.force.size))
            rows.append(Rows("release", R @ self.force, True))
        return rows

    def _acceleration(self) -> list[Rows]:
        joints = np.array(self.structure.bounded, dtype=int)
        if not len(joints):
            return []
        lower, upper = (self.parameter(f"acceleration_{side}", len(joints)) for side in ("min", "max"))
        vd = self.vd[6:] if len(joints) == self.structure.nv - 6 else self.vd[6 + joints]
        return [Rows("acceleration_min", lower - vd, False), Rows("acceleration_max", vd - upper, False)]

    def _limits(self) -> list[Rows]:
        s = self.structure
        if not s.limit_rows:
            return []
        A, lower = self.parameter("limit_matrix", (s.limit_rows, s.nv)), self.parameter("limit_lower", s.limit_rows)
        return [Rows("limit", lower - A @ self.vd, False)]

    def _cones(self) -> list[Rows]:
        s = self.structure
        margin = s.settings.inner_margin
        rows: list[Rows] = []
        cones = [(shape, place) for shape, place in zip(s.shapes, s.slices(), strict=True) if not shape.grasp]
        if cones:
            T, N, E, total = self._pyramids(cones)
            mu = self.parameter("friction", sum(shape.points for shape, _ in cones), nonneg=True)
            friction = T @ self.force - cp.multiply(E @ mu, N @ self.force) + margin
            low, high = self.parameter("normal_min", len(cones)), self.parameter("normal_max", len(cones))
            rows += [
                Rows("friction", friction, False),
                Rows("normal_min", low - total @ self.force, False),
                Rows("normal_max", total @ self.force - high, False),
            ]
        grasps = [(shape, place) for shape, place in zip(s.shapes, s.slices(), strict=True) if shape.grasp]
        if grasps:
            D = ball_polytope(3)
            for name, half in (("grasp_force", slice(0, 3)), ("grasp_moment", slice(3, 6))):
                G = np.zeros((len(grasps) * len(D), self.force.size))
                for i, (shape, place) in enumerate(grasps):
                    G[i * len(D) : (i + 1) * len(D), place] = D @ shape.wrench_basis[half]
                repeat: Array = np.repeat(np.eye(len(grasps)), len(D), axis=0)
                self.constants[name], self.constants[f"{name}_repeat"] = G, repeat
                rows.append(Rows(name, G @ self.force - repeat @ self.parameter(name, len(grasps)), False))
        return rows

    def _pyramids(self, cones: Sequence[tuple[ContactShape, slice]]) -> tuple[Array, Array, Array, Array]:
        """Return the constant matrices of the cones: tangential faces, normal force, repetition, total normal force."""
        size, points = self.force.size, sum(shape.points for shape, _ in cones)
        faces = sum(shape.points * shape.faces for shape, _ in cones)
        T, N, E = np.zeros((faces, size)), np.zeros((faces, size)), np.zeros((faces, points))
        total = np.zeros((len(cones), size))
        row = point = 0
        for i, (shape, place) in enumerate(cones):
            D = friction_pyramid(shape.faces, shape.pyramid)
            total[i, place.start + 2 : place.stop : 3] = 1.0
            for k in range(shape.points):
                at, block = place.start + 3 * k, slice(row, row + shape.faces)
                T[block, at : at + 2], N[block, at + 2], E[block, point] = D, 1.0, 1.0
                row, point = row + shape.faces, point + 1
        self.constants |= {"tangential": T, "normal": N, "repeat": E, "total": total}
        return T, N, E, total

    def _objective(self) -> cp.Expression:
        s = self.structure
        weight, linear = (
            self.parameter("acceleration_weight", s.nv, nonneg=True),
            self.parameter("acceleration_pull", s.nv),
        )
        cost = weight @ cp.square(self.vd) - 2 * linear @ self.vd
        if s.task_rows:
            A, b = self.parameter("task_matrix", (s.task_rows, s.nv)), self.parameter("task_target", s.task_rows)
            cost = cost + cp.sum_squares(A @ self.vd - b)
        if self.force is not None:
            weight = self.parameter("force_weight", self.force.size, nonneg=True)
            cost = (
                cost + weight @ cp.square(self.force) - 2 * self.parameter("force_pull", self.force.size) @ self.force
            )
            if s.settings.wrench_weight is not None:
                F = self.parameter("wrench_matrix", (6 * len(s.shapes), self.force.size))
                cost = cost + cp.sum_squares(F @ self.force)
        if s.force_rows:
            A = self.parameter("force_task_matrix", (s.force_rows, self.force.size))
            cost = cost + cp.sum_squares(A @ self.force - self.parameter("force_task_target", s.force_rows))
        if s.torque_task:
            weight, linear = self.parameter("torque_cost", s.n, nonneg=True), self.parameter("torque_pull", s.n)
            cost = cost + weight @ cp.square(self.tau) - 2 * linear @ self.tau
        if s.settings.torque_weight:
            cost = cost + s.settings.torque_weight * cp.sum_squares(self.tau)
        return cost


Extra = Callable[[Any], tuple[Sequence[cp.Expression], Sequence[cp.Constraint]]]
"""The user's part: called once with the ``WholeBodyQP``, returns terms of the cost and constraints."""


def check_convex(problem: cp.Problem) -> None:
    """Refuse a problem that CVXPY would have to build anew at each solve, or that is no quadratic program."""
    if not problem.is_qp():
        raise InputError("the whole-body program with the added terms is not a convex quadratic program")
    if not problem.is_dpp():
        raise InputError("the whole-body program with the added terms breaks CVXPY's rules for parameters (DPP)")
