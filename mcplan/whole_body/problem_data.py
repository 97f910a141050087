"""Structure, variables and parameters of the whole-body program."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import cvxpy as cp
import numpy as np

from mcplan.whole_body.contact import ContactShape
from mcplan.whole_body.packed import Array
from mcplan.whole_body.settings import QPSettings


@dataclass(frozen=True)
class Structure:
    """Structure of a declared problem: sizes, constant limits, options."""

    nv: int  # dimension of the velocity
    shapes: tuple[ContactShape, ...]  # of the contacts, in the order of the program
    task_rows: int  # number of rows of the tasks on accelerations that are not diagonal
    torque: tuple[float, ...]  # (n,) bounds of the torques; inf: no bound
    bounded: tuple[int, ...]  # indices of the joints whose acceleration is bounded
    settings: QPSettings
    force_rows: int = 0  # number of rows of the tasks on contact forces
    torque_task: bool = False  # whether there is a task on the torques
    limit_rows: int = 0  # number of rows of the user-defined limits

    @property
    def n(self) -> int:
        """Number of joints; further velocities, beyond base and joints, are those of free objects."""
        return len(self.torque)

    @property
    def row_counts(self) -> tuple[int, int, bool, int]:
        """Numbers of rows of tasks on accelerations and on forces, whether there is a torque task, rows of limits."""
        return self.task_rows, self.force_rows, self.torque_task, self.limit_rows

    def slices(self) -> list[slice]:
        """Return the slice of each contact among the force unknowns."""
        ends = np.cumsum([0, *(shape.unknowns for shape in self.shapes)])
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]


class ProblemData:
    """Variables and parameters of the program, to which each block adds its rows.

    Attributes
    ----------
    vd, tau, force : the variables; ``force`` is None without contacts.
    unknowns : number of force unknowns.
    parameters : name -> Parameter.
    """

    def __init__(self, structure: Structure):
        self.structure = structure
        self.parameters: dict[str, cp.Parameter] = {}
        limit = np.array(structure.torque)
        self.vd = cp.Variable(structure.nv, name="vd")
        self.tau = cp.Variable(structure.n, name="tau", bounds=[-limit, limit])
        self.unknowns = sum(shape.unknowns for shape in structure.shapes)
        self.force: Any = cp.Variable(self.unknowns, name="force") if self.unknowns else None

    def parameter(self, name: str, shape: int | tuple[int, ...], **attributes: Any) -> cp.Parameter:
        """Register a new parameter of the program and return it."""
        self.parameters[name] = cp.Parameter(shape, name=name, **attributes)
        return self.parameters[name]

    @property
    def variables(self) -> tuple[Any, ...]:
        """The accelerations, the torques and, with contacts, the forces."""
        return (self.vd, self.tau) if self.force is None else (self.vd, self.tau, self.force)

    @property
    def actuation(self) -> Array:
        """Actuation matrix ``S'`` (nv, n): torques act on joints only."""
        s = self.structure
        return np.vstack([np.zeros((6, s.n)), np.eye(s.n), np.zeros((s.nv - 6 - s.n, s.n))])
