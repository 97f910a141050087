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
    name : name of the group.
    expression : CVXPY expression with one entry per row.
    equality : whether the rows are ``== 0``, else ``<= 0``.
    penalty : cost of each squared violation in the slack form; None: the rows are hard constraints there.
    price : relative cost per unit of violation when a failure is explained; 1 for a force or torque limit. With higher
        prices other rows are violated later, contacts last.
    slack_map : (rows, k) rows of one column share one slack, for example the faces of a cone; None: one slack per row.
    """

    name: str
    expression: cp.Expression
    equality: bool
    penalty: float | None = None
    price: float = 1.0
    slack_map: Array | None = None

    def constraint(self) -> cp.Constraint:
        """Return the rows as a constraint."""
        return self.expression == 0 if self.equality else self.expression <= 0

    def relaxed(self, slack: cp.Expression) -> cp.Constraint:
        """Return the rows as a constraint relaxed by ``slack``."""
        return self.expression == slack if self.equality else self.expression <= slack


@dataclass(frozen=True)
class Conflict:
    """A constraint that would have to be relaxed, and by which amount."""

    name: str
    amount: float
    unit: str

    def __str__(self) -> str:
        return f"{self.name} by {self.amount:.3g} {self.unit}"


@dataclass(frozen=True)
class Gradient:
    """Terms of the Lagrangian's gradient: with respect to accelerations, torques and forces."""

    vd: list[Array] = field(default_factory=list)
    tau: list[Array] = field(default_factory=list)
    f: list[Array] = field(default_factory=list)


@dataclass(frozen=True)
class Failure:
    """An infeasible program, with the smallest violations that make it feasible.

    Attributes
    ----------
    slack : name of the rows -> violation of each row, or of each group with a common slack.
    contacts : the contacts in the order of the declared problem.
    force_slices : slice of each contact among the force unknowns.
    force : the force unknowns of the relaxed program.
    joints : names of the joints.
    limits : names of the rows of user-defined limits.
    """

    slack: Values
    contacts: Sequence[ContactConstraint]
    force_slices: Sequence[slice]
    force: Array
    joints: Sequence[str]
    limits: Sequence[str]


class RowBlock:
    """A block of constraint rows.

    Parameters
    ----------
    d : the program: its variables; the parameters of the rows are registered in it.

    Attributes
    ----------
    rows : the groups of rows; empty if this program has no such rows.
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
        """Yield the constraints that would have to be relaxed, each with the amount."""
        yield from ()
