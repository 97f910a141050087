"""What a solved tick gives, and how right it is.

Named tuples, as one is made in every tick: a frozen dataclass takes five times as long.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mcplan.qp_status import SOLVED

Array = NDArray[np.float64]


class Residuals(NamedTuple):
    """How well a solution satisfies its problem.

    Parameters
    ----------
    motion : largest entry of ``M vd + h - S' tau - sum J' w - tau_ext``, N or N m.
    contact : largest error of the contact accelerations, m/s² or rad/s².
    inequality : largest violation of a bound on forces, torques or accelerations (and of the user's constraints).
    stationarity : largest entry of the Lagrangian's gradient relative to the largest of its terms; NaN when the solver
        gave no multipliers or the user added terms.
    """

    motion: float
    contact: float
    inequality: float
    stationarity: float = float("nan")


class Solution(NamedTuple):
    """Accelerations, torques and forces of one tick.

    Parameters
    ----------
    status : 0 solved, 1 slack form, 2 damped hold.
    vd : (nv,) time derivative of the velocity.
    tau : (n,) joint torques.
    forces : patch -> (k, 3) forces of the environment at the contact points, world axes, N.
    wrenches : patch -> (6,) their wrench at the patch origin, world axes.
    unknowns : patch -> force unknowns in the contact's axes, as the program knows them.
    residuals : of the problem as declared, also in the slack form (which then says what was given up).
    objective : value of the cost.
    solve_time : s, clock time of ``solve``.
    message : why the program as declared was not solved; empty if it was.
    """

    status: int
    vd: Array
    tau: Array
    forces: dict[str, Array]
    wrenches: dict[str, Array]
    unknowns: dict[str, Array]
    residuals: Residuals
    objective: float
    solve_time: float
    message: str = ""
    conflicts: tuple = ()

    @property
    def ok(self) -> bool:
        """Whether the program was solved as declared."""
        return self.status == SOLVED

    @property
    def violation(self) -> float:
        """By how much rows other than the equation of motion are missed: m/s², rad/s², N or N m."""
        return max(self.residuals.contact, self.residuals.inequality)
