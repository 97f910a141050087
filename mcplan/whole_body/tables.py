"""Kernel tables of the whole-body program (parameter offsets, constants, contacts, tasks), and its compiled form.

The parameters are views on the flat parameter vector of the compiled form.
"""

import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import cvxpy as cp
import numpy as np

from mcplan.core.whole_body import check as qp_check, fill as qp_fill, layout as lay
from mcplan.core.whole_body.solve import solve_tick
from mcplan.errors import InputError
from mcplan.optimize.compiled import CannotCompile, CompiledProblem, compile_problem
from mcplan.optimize.polytope import ball_polytope, friction_pyramid
from mcplan.robot.terms import Terms
from mcplan.whole_body.collision_avoidance import AccelerationLimit
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.declaration import Declaration
from mcplan.whole_body.packed import Array
from mcplan.whole_body.rows.forces import TorqueBand
from mcplan.whole_body.settings import UNBOUNDED, QPSettings
from mcplan.whole_body.tasks.task import KernelTask, Task, checked_rows, filled_by_kernel

EXTERNAL, WEIGHT, PULL = range(3)
"""Rows of ``BoundTables.inputs``: known external force; weights and linear costs of accelerations by Python tasks."""


NO_BAND = np.zeros(0), np.zeros(0)
"""Interval of the torques of a program without one."""


class StructureTable:
    """Kernel tables of a structure: layout and constants.

    Parameters
    ----------
    d : the declared program.
    theta : its flat parameter vector.
    data : name -> view of a parameter on ``theta``.
    limits : (bounded, 3) lower and upper position, velocity of the joints whose acceleration is bounded.

    Attributes
    ----------
    layout, constants : see ``core.whole_body.layout``.
    face_offsets : offset in ``constants`` of each contact's friction pyramid.
    """

    def __init__(self, d: Declaration, theta: Array, data: Mapping[str, Array], limits: Array):
        s, settings = d.structure, d.structure.settings
        self.theta = theta
        head = np.zeros(lay.WRENCH_ROOT + 6)
        head[lay.ACCELERATION_COST], head[lay.FORCE_COST] = settings.acceleration_weight, settings.force_weight
        head[lay.RATE_COST], head[lay.MARGIN], head[lay.LARGE] = (
            settings.force_rate_weight,
            settings.inner_margin,
            UNBOUNDED,
        )
        head[lay.DT], head[lay.BRAKING], head[lay.CEILING] = (
            settings.dt,
            settings.limit_deceleration,
            settings.max_limit_acceleration,
        )
        if settings.wrench_weight is not None:
            head[lay.WRENCH_ROOT :] = np.sqrt(settings.wrench_weight)
        pyramids = [np.zeros(0) if c.grasp else friction_pyramid(c.faces, c.pyramid).ravel() for c in s.shapes]
        parts = [head, np.array(s.torque), *pyramids, ball_polytope(3).ravel(), limits.ravel()]
        starts = np.cumsum([0, *(len(part) for part in parts)]).tolist()
        self.constants = np.concatenate(parts)
        self.face_offsets = starts[2 : 2 + len(pyramids)]
        self.layout = np.zeros(lay.JOINTS + len(s.bounded), np.int64)
        self.layout[lay.NV], self.layout[lay.FORCES] = s.nv, d.unknowns
        for k, name in enumerate(lay.PARAMETERS):
            parameter = data.get(name)
            self.layout[lay.MASS + k] = -1 if parameter is None else _offset(theta, parameter)
            self.layout[lay.SIZES + k] = 0 if parameter is None else parameter.size
        self.layout[lay.CONTACT_ROWS] = sum(c.rows for c in s.shapes)
        self.layout[lay.RELEASE_ROWS] = sum(c.free_rows for c in s.shapes)
        self.layout[lay.TASK_ROWS], self.layout[lay.LIMIT_ROWS] = s.task_rows, s.limit_rows
        self.layout[lay.BOUNDED], self.layout[lay.ACTUATED] = len(s.bounded), s.n
        self.layout[lay.TORQUE], self.layout[lay.BALL], self.layout[lay.LIMITS] = starts[1], starts[-3], starts[-2]
        self.layout[lay.JOINTS :] = s.bounded
        for array in (self.layout, self.constants):
            array.flags.writeable = False


class BoundTables:
    """Kernel tables of the present contacts and tasks, valid until these change.

    Parameters
    ----------
    structure : tables of the program's structure.
    terms : terms of the robot, read at each ``fill``.
    contacts : the contacts in the order of the program.
    tasks : tasks on accelerations.
    settings : options of the program, with the frames of the wrench cost.

    Attributes
    ----------
    python_tasks : tasks without a kernel, with their rows in the task matrix.
    inputs : (3, nv) arguments of the kernel from Python, see ``EXTERNAL``.
    planned, last, rate : (unknowns,) references of the force unknowns, see ``core.whole_body.fill``.
    has_last, has_external : whether the last forces of all contacts are known, and an external force.
    limits : A (limit rows, nv) and b (limit rows,) of the limits ``A vd >= b``.
    torque_band : centre and half width (n,) of the interval of the torques; empty arrays without an interval.
    scratch : workspace of the kernels; its last entry is the constant part of the cost.
    force_slices : slice of each contact among the force unknowns.
    point_parts, wrench_parts : patch -> slice of its point forces, and of its wrench, among the numbers of a solution.
    patches : of the contacts.
    """

    def __init__(
        self,
        structure: StructureTable,
        terms: Terms,
        contacts: Sequence[ContactConstraint],
        tasks: Sequence[Task],
        settings: QPSettings,
    ):
        self.structure, self.terms, self.contacts, self.tasks = structure, terms, contacts, tasks
        self._max_residual = settings.tolerance
        self.python_tasks: list[tuple[Task, slice]] = []
        self._parts: list[Array] = []
        self._places: dict[int, int] = {}
        self._length = 0
        self._task_table = self._make_task_table(tasks)
        wrench_frame = {} if settings.wrench_weight is None else settings.wrench_frame
        self._contact_table = self._make_contact_table(contacts, wrench_frame)
        forces, point_count = int(structure.layout[lay.FORCES]), sum(c.shape.points for c in contacts)
        self.values = np.zeros(self._length)
        self.inputs = np.zeros((3, structure.layout[lay.NV]))
        self.planned, self.last, self.rate = np.zeros((3, forces))
        self.has_last = self.has_external = False
        limit_rows = int(structure.layout[lay.LIMIT_ROWS])
        self._limit_arrays = np.zeros((limit_rows, int(structure.layout[lay.NV]))), np.zeros(limit_rows)
        self.limits: tuple[Array, Array] = self._limit_arrays
        self.torque_band: tuple[Array, Array] = NO_BAND
        self.scratch = np.zeros((7, max(forces, int(structure.layout[lay.CONTACT_ROWS]), qp_fill.SCRATCH)))
        self.patches = tuple(c.patch for c in contacts)
        layout, self._joints = structure.layout, int(structure.layout[lay.ACTUATED])
        sizes = layout[lay.NV], layout[lay.ACTUATED], forces, 3 * point_count, 6 * len(contacts), qp_check.REPORTED
        self._ends = np.cumsum(sizes).tolist()
        self.force_slices = _slices(0, [c.shape.unknowns for c in contacts])
        point_slices = _slices(self._ends[2], [3 * c.shape.points for c in contacts])
        wrench_slices = _slices(self._ends[3], [6] * len(contacts))
        self.point_parts, self.wrench_parts = (
            dict(zip(self.patches, slices, strict=True)) for slices in (point_slices, wrench_slices)
        )
        rows = (lay.NV, lay.CONTACT_ROWS, lay.RELEASE_ROWS, lay.LIMIT_ROWS)
        self.residual = np.zeros(qp_check.RESIDUALS + max(int(structure.layout[k]) for k in rows))
        self._first_arguments = (
            *terms.arrays, self.inputs, structure.layout, structure.constants, self._task_table, self._contact_table,
            self.values, self.planned,
        )  # fmt: skip
        self._last_arguments = (
            structure.theta, self.scratch,
            np.zeros((2 * int(structure.layout[lay.CONTACT_ROWS]) + 1, int(structure.layout[lay.NV]))),
        )  # fmt: skip
        self._check_arguments = (
            structure.layout, structure.constants, self._contact_table, self.values, structure.theta, self.scratch,
        )  # fmt: skip

    def set_limits(self, terms: Terms, limits: Sequence[AccelerationLimit]) -> None:
        """Set the rows of all limits; ``InputError`` if their shape differs from the declared one.

        The kernel reads the arrays of a limit themselves if there is one only, and copies of those of several.
        """
        all_rows = [limit.rows(terms) for limit in limits]
        if all_rows[0] is self.limits and len(limits) == 1:
            return
        self.limits = self._limit_arrays
        row, (A, lower) = 0, self.limits
        for limit, rows in zip(limits, all_rows, strict=True):
            end = row + limit.dimension
            A[row:end], lower[row:end] = checked_rows(limit, rows, A.shape[1])
            row = end
        if len(limits) == 1 and all(map(_is_readable, all_rows[0])):
            self.limits = all_rows[0]  # a limit that returns the same tuple again is not checked again

    def set_torque_band(self, band: TorqueBand | None) -> None:
        """Set the interval of the torques; None: torques may jump."""
        if band is None:
            self.torque_band = NO_BAND
            return
        torque = np.ascontiguousarray(band.torque, float)
        if torque.shape != (self._joints,):
            raise InputError(f"torque_band.torque has the shape {torque.shape}, expected ({self._joints},)")
        self.torque_band = torque, np.array(np.broadcast_to(band.step, self._joints), float)

    def fill(self) -> int:
        """Fill the parameters of the program; return the status of ``qp_fill.fill``."""
        return qp_fill.fill(*self._fill_arguments())

    def fill_and_solve(self, fast: "FastForm", numbers: Array) -> int:
        """Fill the parameters, and solve from the last active set on; return the status of ``solve_tick``.

        ``numbers`` are those of the solution, to be filled.
        """
        return solve_tick(*self._fill_arguments(), *fast.warm_arguments, self._max_residual, numbers, self.residual)

    def place(self, task: Any, part: Array | None = None) -> slice:
        """Return the slice of the numbers of a task, or of a view on a part of them, in ``values``."""
        numbers = task.values if part is None else part
        first = self._places[id(task)] + _offset(task.values, numbers)
        return slice(first, first + numbers.size)

    def kernel_arguments(self, fast: "FastForm", planned: Array, step: Array) -> tuple:
        """Return the arguments of ``core.whole_body.tick.respond`` from the state to ``residual``."""
        return (
            *self._first_arguments[:-1], planned, self.rate, *self.limits, step, *self._last_arguments,
            *fast.warm_arguments, self._max_residual, self.residual,
        )  # fmt: skip

    def check(self, numbers: Array) -> None:
        """Compute residuals, point forces and wrenches of the solution in ``numbers``."""
        c, d, e = self._ends[2:5]  # np.split takes longer than the kernel
        forces, wrenches = numbers[c:d].reshape(-1, 3), numbers[d:e].reshape(-1, 6)
        qp_check.check_solution(*self._check_arguments, *self.unknowns(numbers), self.residual, forces, wrenches)
        numbers[e : e + qp_check.RESIDUALS] = self.residual[: qp_check.RESIDUALS]

    def new_numbers(self) -> Array:
        """Return a new array for the numbers of a solution: vd, tau, unknowns, point forces, wrenches and report."""
        return np.empty(self._ends[-1])

    def unknowns(self, numbers: Array) -> tuple[Array, Array, Array]:
        """Return vd (nv,), tau (n,) and the force unknowns, as views."""
        a, b, c, *_ = self._ends
        return numbers[:a], numbers[a:b], numbers[b:c]

    def _fill_arguments(self) -> tuple:
        """Return the arguments of ``qp_fill.fill``, with the present numbers of tasks and contacts."""
        self.refresh()
        return (*self._first_arguments, self.last, self.rate, *self.limits, *self.torque_band, *self._last_arguments)

    def refresh(self) -> None:
        """Read the present numbers of tasks and contacts."""
        if self._parts:
            np.concatenate(self._parts, out=self.values)

    @property
    def constant(self) -> float:
        """Constant part of the cost, which is not in the parameters."""
        return self.scratch[6, -1].item()

    def _append(self, owner: Any) -> int:
        """Append the numbers of a task or contact to ``values``; return their offset."""
        start = self._length
        self._parts.append(owner.values)
        self._length += len(owner.values)
        self._places[id(owner)] = start
        return start

    def _make_task_table(self, tasks: Sequence[Task]) -> np.ndarray:
        """Return the table of the tasks with a kernel, and collect those without one."""
        table, row = [], 0
        for task in tasks:
            rows = slice(row, row + (0 if task.diagonal else task.dimension))
            row = rows.stop
            if not (isinstance(task, KernelTask) and filled_by_kernel(task)):
                self.python_tasks.append((task, rows))
                continue
            entries = np.zeros(lay.TASK_COLUMNS, np.int64)
            entries[lay.CODE], entries[lay.TASK_VALUES] = task.code, self._append(task)
            entries[lay.TASK_ROW], entries[lay.TASK_COUNT] = rows.start, len(task.selected)
            entries[lay.TASK_FRAME] = self._frame(task.frames[0]) if task.frames else -1
            entries[lay.SELECTED : lay.SELECTED + len(task.selected)] = task.selected
            table.append(entries)
        return np.array(table, np.int64).reshape(-1, lay.TASK_COLUMNS)

    def _make_contact_table(self, contacts: Sequence[ContactConstraint], wrench_frame: Mapping[str, str]) -> np.ndarray:
        table = np.zeros((len(contacts), lay.CONTACT_COLUMNS), np.int64)
        force = row = release = point = vector = 0
        cone_counts = [0, 0]
        for entries, contact, face_offset in zip(table, contacts, self.structure.face_offsets, strict=True):
            shape = contact.shape
            entries[lay.CONTACT_FRAME], entries[lay.CONTACT_VALUES] = self._frame(contact.frame), self._append(contact)
            entries[lay.IS_GRASP], entries[lay.POINTS] = shape.grasp, shape.points
            entries[lay.ROWS], entries[lay.RELEASED] = shape.rows, shape.free_rows
            entries[lay.FIRST_FORCE], entries[lay.FIRST_ROW], entries[lay.FIRST_RELEASE] = force, row, release
            entries[lay.CONE], entries[lay.FIRST_POINT] = cone_counts[shape.grasp], point
            entries[lay.FACES], entries[lay.FIRST_FACE] = shape.faces, face_offset
            entries[lay.WRENCH_FRAME] = self._frame(wrench_frame.get(contact.patch, contact.frame))
            entries[lay.FIRST_VECTOR], entries[lay.ROLLS] = vector, shape.ball
            cone_counts[shape.grasp] += 1
            force, row, release = force + shape.unknowns, row + shape.rows, release + shape.free_rows
            vector, point = vector + shape.points, point + (0 if shape.grasp else shape.points)
        return table

    def _frame(self, name: str) -> int:
        """Return the index of a frame among the terms."""
        self.terms.frame(name)  # raises an error if it is unknown
        return self.terms.frame_names.index(name)


def _slices(start: int, sizes: Sequence[int]) -> list[slice]:
    """Return the slices of parts that follow each other from an index on."""
    return [slice(a, b) for a, b in pairwise(np.cumsum([start, *sizes]).tolist())]


def _is_readable(array: Any) -> bool:
    """Whether kernels that are compiled for arrays of floats can read an array without a copy."""
    return isinstance(array, np.ndarray) and array.dtype == np.float64 and array.flags.carray


def _offset(theta: Array, part: Array) -> int:
    """Return the index in ``theta`` of the first entry of a view on it."""
    return (part.ctypes.data - theta.ctypes.data) // theta.itemsize


class FastForm:
    """The compiled problem, with the offsets of the program's parameters and variables.

    Parameters
    ----------
    compiled : the compiled problem, with user-defined terms.
    d : the declared program.

    Attributes
    ----------
    theta : the flat parameter vector.
    data : name -> the view on ``theta`` that the Parameter holds.
    """

    def __init__(self, compiled: CompiledProblem, d: Declaration):
        self.compiled, self.theta = compiled, compiled.theta
        compiled.warm = True  # consecutive ticks are similar
        self.data: dict[str, Array] = {}
        for name, parameter in d.parameters.items():
            self.data[name] = compiled.parameter_view(parameter)
            parameter.save_value(self.data[name])
        declared = {parameter.id for parameter in d.parameters.values()}
        self._user_parameters = [p for p in compiled.problem.parameters() if p.id not in declared]
        variables = {variable.id for variable in d.variables}
        self._has_user_variables = any(variable.id not in variables for variable in compiled.problem.variables())
        self._extractors = [compiled.entry_map(variable) for variable in d.variables]
        spans = [extract.span for extract in self._extractors]
        warm = compiled.warm_arguments()
        self.warm_arguments: tuple = ()
        """Arguments of ``solve_tick`` after those of ``fill``; empty if the solver has to be called from Python."""
        if warm and not self._user_parameters and not self._has_user_variables and None not in spans:
            first = np.array([*(span.start for span in spans if span is not None), 0][:3])
            self.warm_arguments = (*warm, first)
        self._no_force = np.zeros(0)

    def solve(self, prove: bool = True) -> str:
        """Solve at the present parameters, including user-defined ones; see ``CompiledProblem.solve``."""
        for parameter in self._user_parameters:
            if parameter.value is None:
                raise InputError(f"parameter {parameter.name()} has no value")
            self.compiled.set(parameter, parameter.value)
        return self.compiled.solve(write=self._has_user_variables, prove=prove)

    def point(self) -> tuple[Array, Array, Array]:
        """Return copies of vd, tau and the force unknowns of the last solution."""
        x = self.compiled.x.copy()
        vd, tau, *force = [extract(x) for extract in self._extractors]
        return vd, tau, force[0] if force else self._no_force


def fast_form(problem: cp.Problem, d: Declaration) -> FastForm | None:
    """Return the compiled form; if the problem cannot be compiled, warn with the reason and return None."""
    try:
        return FastForm(compile_problem(problem), d)
    except CannotCompile as reason:
        warnings.warn(
            f"the whole-body program is solved by CVXPY, about ten times as slow, because it cannot be compiled: "
            f"{reason} (QPSettings(compiled=False) asks for that)",
            RuntimeWarning,
            stacklevel=2,
        )
        return None


def allocate_parameters(d: Declaration, data: dict[str, Array]) -> Array:
    """Allocate the parameters in a flat vector and return it; fill ``data`` with views on it."""
    theta = np.zeros(sum(parameter.size for parameter in d.parameters.values()))
    first = 0
    for name, parameter in d.parameters.items():
        part = theta[first : first + parameter.size]
        data[name] = part.reshape(parameter.shape, order="F")
        parameter.save_value(data[name])
        first += parameter.size
    return theta
