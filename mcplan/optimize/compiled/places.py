"""Where the user's variables and multipliers sit in CVXPY's cone form, found by sending numbered entries through it.

CVXPY's own inversion of its reductions is applied to the vector 1, 2, 3, …; each entry of the answer then names the
entry that it was copied from, whatever the reductions did (symmetric, diagonal, sparse variables). Its sign is kept,
and a zero is a constant zero.
"""

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
from cvxpy.constraints.constraint import Constraint

from mcplan.optimize.compiled.data_map import CannotCompile, DataMap


@dataclass(frozen=True)
class Place:
    """Reads one variable or multiplier from a flat vector: ``sign * vector[index]``, in its shape."""

    index: np.ndarray
    sign: np.ndarray | None
    span: slice | None
    shape: tuple[int, ...]

    def __call__(self, vector: np.ndarray) -> np.ndarray:
        """Return the value; a view of ``vector`` when it is one run of it."""
        if self.span is not None:
            run = vector[self.span]
            return run if len(self.shape) == 1 else run.reshape(self.shape, order="F")
        return self.sign * vector[self.index]


@dataclass(frozen=True)
class Places:
    """The places of all variables and of all constraints' multipliers."""

    variables: list[tuple[cp.Variable, Place]]
    constraints: list[tuple[Constraint, Place]]

    def variable(self, variable: cp.Variable) -> Place:
        """Return the place of one variable."""
        return self._find(variable, self.variables)

    def constraint(self, constraint) -> Place:
        """Return the place of one constraint's multiplier."""
        return self._find(constraint, self.constraints)

    @staticmethod
    def _find(item, places) -> Place:
        for candidate, place in places:
            if candidate.id == item.id:
                return place
        raise CannotCompile(f"{item} is not part of the compiled problem")


def find_places(problem: cp.Problem, program, chain, inverse, data: DataMap) -> Places:
    """Send numbered vectors through CVXPY's inversion."""
    x = np.arange(1.0, data.size + 1)
    multipliers = np.concatenate([np.zeros(data.size), np.arange(1.0, data.rows + 1)])
    raw = (x, 0.0, 1, {"solve_time": 0.0, "setup_time": 0.0, "iterations": 0, "lam": multipliers})
    solution = chain.invert(raw, inverse)
    variables = []
    for v in problem.variables():
        numbered = solution.primal_vars[v.id]
        if program.id_to_var.get(v.id) is v:  # not transformed; CVXPY would move the numbers inside its bounds
            start = program.var_id_to_col[v.id]
            numbered = x[start : start + v.size].reshape(v.shape, order="F")
        variables.append((v, _place(numbered, v.shape, data.size, v)))
    constraints = [
        (c, _place(solution.dual_vars[c.id], np.shape(c.dual_value), data.rows, c))
        if c.dual_value is not None else (c, _place(solution.dual_vars[c.id], None, data.rows, c))
        for c in problem.constraints
        if c.id in solution.dual_vars
    ]  # fmt: skip
    return Places(variables, constraints)


def _place(numbered, shape, size: int, item) -> Place:
    """Read the numbers back."""
    numbered = numbered.toarray() if hasattr(numbered, "toarray") else np.asarray(numbered, dtype=float)
    shape = numbered.shape if shape is None else shape
    numbered = numbered.reshape(shape, order="F")
    index = np.abs(numbered).astype(np.int64)
    if not np.array_equal(index, np.abs(numbered)) or index.max(initial=0) > size:
        raise CannotCompile(f"CVXPY transforms the solution of {item} in a way that is not a selection of entries")
    flat = index.flatten(order="F")
    if (
        flat.size
        and np.array_equal(flat, np.arange(flat[0], flat[0] + flat.size))
        and flat[0] > 0
        and (numbered > 0).all()
    ):
        return Place(index - 1, None, slice(int(flat[0]) - 1, int(flat[0]) - 1 + flat.size), shape)
    return Place(np.maximum(index - 1, 0), np.sign(numbered), None, shape)
