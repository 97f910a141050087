"""Blocks of rows of the whole-body program.

A new kind of rows is one more file here, and one more line in `mcplan.whole_body.declaration.BLOCKS`; numbers that a
kernel writes have an entry in `mcplan.core.whole_body.layout`.
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
    """A group of rows ``expression == 0`` or ``expression <= 0`` that share a meaning.

    Attributes
    ----------
    penalty : cost of each squared violation in the slack form; None: they stay hard.
    price : what one unit of violation costs where a failure is explained, relative to 1 N or 1 N m: limits of forces
        and torques are named first, a slipping contact last.
    spread : (rows, k) those that are relaxed together, by one amount each: the faces of one cone.
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
        """Return the rows as a constraint that may be missed by ``slack``."""
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
    """A program without a solution: what its rows would have to be missed by.

    Attributes
    ----------
    slack : name of the rows -> by how much each, or each group that is relaxed together.
    contacts : in the order of the declared problem; places : of each among the force unknowns.
    force : the force unknowns with which it would do.
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
    """Rows that are declared together.

    Parameters
    ----------
    d : the program that they become part of: its variables, and where parameters are added.

    Attributes
    ----------
    rows : none where the structure has none of the kind.
    """

    rows: Sequence[Rows] = ()

    def __init__(self, d: ProblemData):
        raise NotImplementedError

    def add_gradient(self, data: Values, y: Values, gradient: Gradient) -> None:
        """Add the rows' part of the Lagrangian's gradient.

        Parameters
        ----------
        data : name -> value of the parameters.
        y : name of the rows -> multipliers.
        """
        raise NotImplementedError

    def conflicts(self, failure: Failure) -> Iterator[Conflict]:
        """Name the rows that would have to be relaxed, and by how much."""
        yield from ()
