"""Base class of blocks of constraint rows of the whole-body program.

To add a kind of rows, add a class here in `rows` and to `mcplan.whole_body.declaration.BLOCKS`; numbers that a kernel
writes need an entry in `mcplan.core.whole_body.layout`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.problem_data import ProblemData

Array = NDArray[np.float64]
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Rows:
    """A group of rows ``expression == 0`` or ``expression <= 0`` of one kind.

    Attributes
    ----------
    penalty : cost of each squared violation in the slack form; None: hard.
    price : price of one unit of violation in the explanation of a failure, relative to 1 N or 1 N m: limits of forces
        and torques are relaxed first, contacts slip last.
    spread : (rows, k) groups of rows relaxed by one common amount: the faces of one cone.
    """

    name: str
    expression: cp.Expression
    equality: bool
    penalty: float | None = None
    price: float = 1.0
    spread: Array | None = None

    def constraint(self) -> cp.Constraint:
        """Return the rows as a constraint."""
        return self.expression == 0 if self.equality else self.expression <= 0

    def relaxed(self, slack: cp.Expression) -> cp.Constraint:
        """Return the rows as a constraint relaxed by ``slack``."""
        return self.expression == slack if self.equality else self.expression <= slack


@dataclass(frozen=True)
class Conflict:
    """One constraint that would have to be relaxed."""

    what: str
    amount: float
    unit: str

    def __str__(self) -> str:
        return f"{self.what} by {self.amount:.3g} {self.unit}"


@dataclass(frozen=True)
class Gradient:
    """Terms of the Lagrangian's gradient: with respect to accelerations, torques and forces."""

    vd: list[Array] = field(default_factory=list)
    tau: list[Array] = field(default_factory=list)
    f: list[Array] = field(default_factory=list)


@dataclass(frozen=True)
class Failure:
    """An infeasible program: the violations with which it becomes feasible.

    Attributes
    ----------
    slack : name of the rows -> violation of each row, or of each group relaxed together.
    contacts : in the order of the declared problem; places : slice of each among the force unknowns.
    force : the force unknowns of the relaxed program.
    joints : names.
    limits : names of the rows of the added limits.
    """

    slack: Values
    contacts: Sequence[ContactConstraint]
    places: Sequence[slice]
    force: Array
    joints: Sequence[str]
    limits: Sequence[str]


class RowBlock:
    """A block of constraint rows.

    Parameters
    ----------
    d : variables of the program, and where parameters are added.

    Attributes
    ----------
    rows : empty if the structure has none of the kind.
    """

    rows: Sequence[Rows] = ()

    def __init__(self, d: ProblemData):
        raise NotImplementedError

    def add_gradient(self, data: Values, y: Values, gradient: Gradient) -> None:
        """Add the contribution of the rows to the Lagrangian's gradient.

        Parameters
        ----------
        data : name -> value of the parameters.
        y : name of the rows -> multipliers.
        """
        raise NotImplementedError

    def conflicts(self, failure: Failure) -> Iterator[Conflict]:
        """Yield the rows that would have to be relaxed, and by how much."""
        yield from ()
