"""The whole-body program compiled: its parameters live in the compiled form's flat vector."""

import warnings

import cvxpy as cp
import numpy as np

from mcplan.errors import InputError
from mcplan.optimize.compiled import CannotCompile, CompiledProblem, compile_problem
from mcplan.whole_body.declaration import Declaration
from mcplan.whole_body.packed import Array


class FastForm:
    """The compiled problem and the places of the program's parameters and variables in it.

    Parameters
    ----------
    compiled : the compiled form of the declared problem, with the user's terms.
    d : what was declared.

    Attributes
    ----------
    theta : the flat parameter vector; data : name -> the view on it that the Parameter holds.
    """

    def __init__(self, compiled: CompiledProblem, d: Declaration):
        self.compiled, self.theta = compiled, compiled.theta
        compiled.warm = True  # one tick is much like the one before
        self.data: dict[str, Array] = {}
        for name, parameter in d.parameters.items():
            self.data[name] = compiled.parameter_view(parameter)
            parameter.save_value(self.data[name])
        own = {parameter.id for parameter in d.parameters.values()}
        self._users = [p for p in compiled.problem.parameters() if p.id not in own]
        self._variables = d.variables
        self._no_force = np.zeros(0)

    def solve(self, prove: bool = True) -> str:
        """Solve at the present parameters, the user's included; see ``CompiledProblem.solve``."""
        for parameter in self._users:
            if parameter.value is None:
                raise InputError(f"parameter {parameter.name()} has no value")
            self.compiled.set(parameter, parameter.value)
        return self.compiled.solve(prove=prove)

    def point(self) -> tuple[Array, Array, Array]:
        """Return vd, tau and the force unknowns of the last solution; they are nobody else's."""
        values = [variable.value for variable in self._variables]
        return values[0], values[1], values[2] if len(values) > 2 else self._no_force


def fast_form(problem: cp.Problem, d: Declaration) -> FastForm | None:
    """Return the compiled form, or None, with a warning that says why, where there is none."""
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


def place_parameters(d: Declaration, data: dict[str, Array]) -> Array:
    """Let the parameters live in a flat vector, which is returned; fill ``data`` with the views on it."""
    theta = np.zeros(sum(parameter.size for parameter in d.parameters.values()))
    first = 0
    for name, parameter in d.parameters.items():
        part = theta[first : first + parameter.size]
        data[name] = part.reshape(parameter.shape, order="F")
        parameter.save_value(data[name])
        first += parameter.size
    return theta
