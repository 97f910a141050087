"""Data map of a CVXPY QP: from parameter values to matrices, extracted once per structure.

In the cone form that CVXPY hands to QP solvers, with the parameter vector ``theta`` (matrices flattened in Fortran
order, the last entry the constant 1), every number of

    minimise    1/2 x'P x + q'x + d
    subject to  A_e x + b_e = 0,   A_i x + b_i >= 0,   lower <= x <= upper

is linear in ``theta``. ``DataMap`` holds those linear maps as one sparse matrix ``S``: ``values = S theta``, in the
order ``A`` (by columns), ``b``, ``P`` (symmetrised, by columns), ``q``, ``d``, ``lower``, ``upper``.

The positions of variables and multipliers in the cone form are found by numbered entries: CVXPY's inversion of its
reductions is applied to the vector 1, 2, 3, …; each entry of the result then gives the index from which it was copied,
for symmetric, diagonal and sparse variables, too. The sign is preserved, and a zero is a constant zero.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.constraints.constraint import Constraint

from mcplan.errors import InputError


class CannotCompile(InputError):  # noqa: N818 - the name reads as a sentence
    """The problem cannot be compiled; the message names the reason. ``problem.solve()`` may still solve it."""


@dataclass(frozen=True)
class DataMap:
    """The linear maps from ``theta`` to the data of the QP, and the first position of each block in ``values``.

    Parameters
    ----------
    S : (entries, parameters + 1) CSR; ``values = S theta``.
    size : number of variables of the cone form.
    equalities, inequalities : number of rows of ``A_e`` and ``A_i``.
    A_indptr, A_indices : CSC pattern of ``A`` (equalities first); entry k of the pattern is ``values[k]``.
    P_indptr, P_indices : CSC pattern of ``P``; entry k of the pattern is ``values[P + k]``.
    b, P, q, d, lower, upper : first positions of the blocks in ``values``.
    """

    S: sp.csr_matrix
    size: int
    equalities: int
    inequalities: int
    A_indptr: np.ndarray
    A_indices: np.ndarray
    P_indptr: np.ndarray
    P_indices: np.ndarray
    b: int
    P: int
    q: int
    d: int
    lower: int
    upper: int

    @property
    def rows(self) -> int:
        """Number of rows of ``A``."""
        return self.equalities + self.inequalities

    @cached_property
    def _constants(self) -> tuple[list[bool], list[float]]:
        """Whether each number is constant, and its constant part; computed for all numbers at once."""
        S, last = self.S, self.S.shape[1] - 1
        row, constant = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr)), S.indices == last
        varying = np.bincount(row[~constant], minlength=S.shape[0])
        return (varying == 0).tolist(), np.bincount(row[constant], S.data[constant], S.shape[0]).tolist()

    @cached_property
    def _lists(self) -> tuple[list[int], list[int], list[float]]:
        """The maps of all numbers as lists: faster than NumPy for a few entries each."""
        return self.S.indptr.tolist(), self.S.indices.tolist(), self.S.data.tolist()

    @cached_property
    def row_entries(self) -> list[list[tuple[int, int]]]:
        """For each row of ``A`` its entries as (position, variable)."""
        entries: list[list[tuple[int, int]]] = [[] for _ in range(self.rows)]
        rows = self.A_indices.tolist()
        for variable, (first, end) in enumerate(pairwise(self.A_indptr.tolist())):
            for position in range(first, end):
                entries[rows[position]].append((position, variable))
        return entries

    def terms(self, position: int) -> tuple[tuple[int, float], ...]:
        """Return the map of one number as sorted pairs (entry of ``theta``, coefficient)."""
        starts, entries, coefficients = self._lists
        part = slice(starts[position], starts[position + 1])
        return tuple(sorted(zip(entries[part], coefficients[part], strict=True)))

    def is_constant(self, position: int) -> bool:
        """Return whether a number of the data does not depend on any parameter."""
        return self._constants[0][position]

    def constant(self, position: int) -> float:
        """Return the value of a number of the data that depends on no parameter."""
        return self._constants[1][position]


def check_compilable(problem: cp.Problem) -> None:
    """Raise ``CannotCompile`` with the reason if the problem is not a DPP-compliant, continuous, convex QP."""
    if problem.is_mixed_integer():
        names = [v.name() for v in problem.variables() if v.attributes["boolean"] or v.attributes["integer"]]
        raise CannotCompile(f"variables {', '.join(names)} are boolean or integer; only continuous QPs are compiled")
    if not problem.variables():
        raise CannotCompile("the problem has no variables")
    if any(v.is_complex() for v in problem.variables() + problem.parameters()):
        raise CannotCompile("complex variables or parameters are not compiled")
    if not problem.is_dcp():
        raise CannotCompile("the problem is not convex by CVXPY's rules (problem.is_dcp() is false)")
    if not problem.is_dpp():
        raise CannotCompile(
            "the problem is not DPP: some term is not affine in the parameters, so its data have no fixed linear map "
            "(a product of parameters, or a parametric weight times a squared parametric expression; introduce "
            "a variable r == A @ x - b and square that)"
        )
    if not problem.is_qp():
        raise CannotCompile("the problem is not a QP: it needs second-order, exponential or semidefinite cones")


def canonicalise(problem: cp.Problem):
    """Return CVXPY's data, chain and inverse data for the QP form; parameters without a value get one meanwhile."""
    check_compilable(problem)
    generator = np.random.default_rng(0)
    unset = [p for p in problem.parameters() if p.value is None]
    try:
        for parameter in unset:
            parameter.value = parameter.project(generator.standard_normal(parameter.shape))
        return problem.get_problem_data(cp.DAQP, enforce_dpp=True)
    except (cp.error.DCPError, cp.error.DPPError, cp.error.SolverError) as error:
        raise CannotCompile(f"CVXPY cannot bring the problem to QP form: {error}") from error
    finally:
        for parameter in unset:
            parameter.value = None


def build_data_map(program, columns: int) -> DataMap:
    """Collect the maps of a ``ParamConeProg`` whose cones are zero and non-negative only.

    Parameters
    ----------
    program : CVXPY's ``data[PARAM_PROB]``.
    columns : length of ``theta``.
    """
    n, dims = program.x.size, program.cone_dims
    equalities, inequalities = int(dims.zero), int(dims.nonneg)
    rows = equalities + inequalities
    A_map, A_indices, A_indptr = _reduced(program.reduced_A, columns, n + 1)
    split = A_indptr[n]
    b_map = _scatter(A_map[split:], A_indices[split:], rows)
    P_map, P_indices, P_indptr = _symmetrised(_reduced(program.reduced_P, columns, n), n, columns)
    q_map = sp.csr_matrix(program.q)
    bounds = [
        _bound_map(program.lb_tensor, program.lower_bounds, -np.inf, n, columns),
        _bound_map(program.ub_tensor, program.upper_bounds, np.inf, n, columns),
    ]
    blocks = [A_map[:split], b_map, P_map, q_map, *bounds]
    S = sp.vstack([sp.csr_matrix(block) for block in blocks], format="csr")
    starts = np.concatenate([[0], np.cumsum([block.shape[0] for block in blocks])])
    return DataMap(
        S=S, size=n, equalities=equalities, inequalities=inequalities,
        A_indptr=A_indptr[: n + 1].copy(), A_indices=A_indices[:split].copy(), P_indptr=P_indptr, P_indices=P_indices,
        b=int(starts[1]), P=int(starts[2]), q=int(starts[3]), d=int(starts[3]) + n,
        lower=int(starts[4]), upper=int(starts[5]),
    )  # fmt: skip


def _reduced(reduced, columns: int, width: int):
    """Return (map, indices, indptr) of a ``ReducedMat``: row k of the map gives entry k of the CSC pattern."""
    reduced.cache()
    if reduced.reduced_mat is None or reduced.problem_data_index is None:
        return sp.csr_matrix((0, columns)), np.zeros(0, np.int64), np.zeros(width + 1, np.int64)
    indices, indptr, _ = reduced.problem_data_index
    return sp.csr_matrix(reduced.reduced_mat), np.asarray(indices, np.int64), np.asarray(indptr, np.int64)


def _scatter(block, rows, size: int):
    """Return a map with ``size`` rows: those of a block at the row numbers ``rows``, all others zero."""
    selection = sp.csr_matrix((np.ones(len(rows)), (rows, np.arange(len(rows)))), shape=(size, len(rows)))
    return selection @ block


def _symmetrised(reduced, n: int, columns: int):
    """Return the map and CSC pattern of ``(P + P') / 2``."""
    P_map, indices, indptr = reduced
    cols = np.repeat(np.arange(n), np.diff(indptr))
    keys = np.concatenate([cols * n + indices, indices * n + cols])
    unique, positions = np.unique(keys, return_inverse=True)
    if len(unique) == 0:
        return sp.csr_matrix((0, columns)), np.zeros(0, np.int64), np.zeros(n + 1, np.int64)
    both = sp.vstack([P_map, P_map], format="csr") * 0.5
    pattern_cols, pattern_rows = np.divmod(unique, n)
    pointer = np.concatenate([[0], np.cumsum(np.bincount(pattern_cols, minlength=n))])
    return _scatter(both, positions, len(unique)), pattern_rows.astype(np.int64), pointer.astype(np.int64)


def _bound_map(tensor, values, default: float, n: int, columns: int):
    """Return the map of the variable bounds; without a bound the constant is infinite."""
    if tensor is not None:
        return sp.csr_matrix(tensor)
    constant = np.full(n, default) if values is None else np.asarray(values, dtype=float)
    return sp.csr_matrix((constant, (np.arange(n), np.full(n, columns - 1))), shape=(n, columns))


@dataclass(frozen=True)
class EntryMap:
    """Reader of one variable or multiplier in a flat vector: ``sign * vector[index]``, in its shape."""

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
class EntryMaps:
    """Readers of all variables and of the multipliers of all constraints."""

    variables: list[tuple[cp.Variable, EntryMap]]
    constraints: list[tuple[Constraint, EntryMap]]

    def variable(self, variable: cp.Variable) -> EntryMap:
        """Return the reader of one variable."""
        return self._find(variable, self.variables)

    def constraint(self, constraint) -> EntryMap:
        """Return the reader of one constraint's multiplier."""
        return self._find(constraint, self.constraints)

    @staticmethod
    def _find(item, places) -> EntryMap:
        for candidate, place in places:
            if candidate.id == item.id:
                return place
        raise CannotCompile(f"{item} is not part of the compiled problem")


def find_entry_maps(problem: cp.Problem, program, chain, inverse, data: DataMap) -> EntryMaps:
    """Find the positions of variables and multipliers by CVXPY's inversion of numbered vectors."""
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
        variables.append((v, _entry_map(numbered, v.shape, data.size, v)))
    constraints = [
        (c, _entry_map(solution.dual_vars[c.id], np.shape(c.dual_value), data.rows, c))
        if c.dual_value is not None else (c, _entry_map(solution.dual_vars[c.id], None, data.rows, c))
        for c in problem.constraints
        if c.id in solution.dual_vars
    ]  # fmt: skip
    return EntryMaps(variables, constraints)


def _entry_map(numbered, shape, size: int, item) -> EntryMap:
    """Convert numbered entries to an `EntryMap`."""
    numbered = numbered.toarray() if hasattr(numbered, "toarray") else np.asarray(numbered, dtype=float)
    shape = numbered.shape if shape is None else shape
    numbered = numbered.reshape(shape, order="F")
    index = np.abs(numbered).astype(np.int64)
    if not np.array_equal(index, np.abs(numbered)) or index.max(initial=0) > size:
        raise CannotCompile(f"CVXPY transforms the solution of {item} beyond a selection of entries")
    flat = index.flatten(order="F")
    if (
        flat.size
        and np.array_equal(flat, np.arange(flat[0], flat[0] + flat.size))
        and flat[0] > 0
        and (numbered > 0).all()
    ):
        return EntryMap(index - 1, None, slice(int(flat[0]) - 1, int(flat[0]) - 1 + flat.size), shape)
    return EntryMap(np.maximum(index - 1, 0), np.sign(numbered), None, shape)
