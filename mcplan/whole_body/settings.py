"""Options of the whole-body program, and the solvers by name.

What the program needs of a robot: its joints and their limits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, Final, Protocol, get_args

import numpy as np

from mcplan.errors import InputError
from mcplan.settings.control import Form
from mcplan.whole_body.collision_avoidance import Array

SOLVERS: Final = MappingProxyType(
    {
        # a negative eps_prox regularises only if the Hessian is singular (the torques have no cost)
        "DAQP": {"eps_prox": -1e-5, "iter_limit": 2000},
        "OSQP": {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iter": 50_000, "polish": True},
        "CLARABEL": {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10},
        "PIQP": {"eps_abs": 1e-9, "eps_rel": 1e-10},
    }
)
"""Solvers that CVXPY calls for us, and the options that make their answers pass the residual check."""

MIXED: Final = "mixed"
FORMS: Final = get_args(Form)
"""Forms of the equation of motion: in mixed velocities, and those of S0 eq. 36, 37, 38."""

UNBOUNDED: Final = 1e6
"""N, N m: stands for an infinite limit of a force or a torque, which not every solver can read."""

MODULES: Final = MappingProxyType({"DAQP": "daqp", "OSQP": "osqp", "CLARABEL": "clarabel", "PIQP": "piqp"})


def solver_options(name: str) -> dict[str, Any]:
    """Return the options of a solver; an unknown or missing one is refused, with the command that installs it."""
    if name not in SOLVERS:
        raise InputError(f"solver {name!r}: one of {', '.join(SOLVERS)}")
    if find_spec(MODULES[name]) is None:
        raise InputError(f"solver {name} is not installed: pip install {MODULES[name]}")
    return dict(SOLVERS[name])


@dataclass(frozen=True)
class QPSettings:
    """Options that are fixed when a problem is declared.

    Parameters
    ----------
    dt : control period, s, over which the joint limits look ahead.
    solver : DAQP, OSQP, CLARABEL or PIQP.
    form : of the equation of motion: mixed, minimal, projected, multiplier or matrix; see ``forms``.
    acceleration_weight : cost of each acceleration squared.
    force_weight, force_rate_weight : cost of each force unknown squared, and of its change since the last one, 1/N². A
        force along a support counts as the pressure that its friction takes, so that little of it is used.
    torque_weight : cost of each torque squared; 0 leaves the torques to be substituted out.
    wrench_weight : (6) cost of each component of a contact's wrench squared, at the origin and in the axes of the
        contact's link or of ``wrench_frame``; None: no such cost.
    wrench_frame : patch -> frame in which ``wrench_weight`` is meant; a patch that is not there takes its own frame.
    torque_limits, velocity_limits, position_limits : whether to keep them.
    torque_margin : torque kept back from each limit, N m.
    near_torques : whether torques can be kept close to given ones, such as the last.
    velocity_fraction : part of each velocity limit that may be used.
    position_margin : distance kept from each position limit, rad or m.
    braking : deceleration that the joint limits count on, rad/s²; see ``viable_acceleration``.
    ceiling : largest acceleration that the joint limits ask for, rad/s².
    inner_margin : N; forces stay inside their cones by this, as solvers may miss a row by 1e-6.
    tolerance : residual of rows beyond which a solution is not one; rad/s², N, N m, relative beyond 1.
    compiled : whether the problem is compiled (mixed form with DAQP only; all else CVXPY solves). The answers are the
        same.
    explain : whether a failure is explained: ``always``, ``first`` (of an episode) or ``never``.
    """

    dt: float = 1e-3
    solver: str = "DAQP"
    form: str = MIXED
    acceleration_weight: float = 1e-3
    force_weight: float = 1e-5
    force_rate_weight: float = 0.0
    torque_weight: float = 0.0
    wrench_weight: tuple[float, ...] | None = None
    wrench_frame: dict[str, str] = field(default_factory=dict, hash=False)
    torque_limits: bool = True
    velocity_limits: bool = True
    position_limits: bool = True
    torque_margin: float = 2e-6
    near_torques: bool = False
    velocity_fraction: float = 1.0
    position_margin: float = 1e-6
    braking: float = 10.0
    ceiling: float = 500.0
    inner_margin: float = 3e-6
    tolerance: float = 1e-6
    compiled: bool = True
    explain: str = "first"

    def __post_init__(self) -> None:
        solver_options(self.solver)
        if self.form not in FORMS:
            raise InputError(f"form {self.form!r}: one of {', '.join(FORMS)}")
        if self.dt <= 0:
            raise InputError(f"control period {self.dt} s, expected a positive one")
        if self.acceleration_weight <= 0 or self.force_weight <= 0:
            raise InputError("acceleration_weight and force_weight are positive: they make the solution unique")
        if self.braking > self.ceiling:
            raise InputError(f"braking {self.braking} rad/s² exceeds the ceiling {self.ceiling} rad/s²")
        if self.explain not in ("always", "first", "never"):
            raise InputError(f"explain {self.explain!r}: one of always, first, never")
        if self.wrench_weight is not None and len(self.wrench_weight) != 6:
            raise InputError(f"wrench_weight has {len(self.wrench_weight)} numbers, expected 6")


class QPJoints(Protocol):
    """Limits of the joints, (n,) each, infinite where absent."""

    @property
    def lower(self) -> Array:
        """Least positions."""

    @property
    def upper(self) -> Array:
        """Largest positions."""

    @property
    def velocity(self) -> Array:
        """Largest speeds."""

    @property
    def torque(self) -> Array:
        """Largest torques."""


class HasLimits(Protocol):
    """What the program needs of a robot."""

    @property
    def nv(self) -> int:
        """Size of a velocity."""

    @property
    def joint_names(self) -> Sequence[str]:
        """Names of the joints."""

    @property
    def limits(self) -> QPJoints:
        """Their limits."""


def bounds(robot: HasLimits, joints: Sequence[int], settings: QPSettings) -> Array:
    """Return lower and upper position and velocity (j, 3) that the accelerations of joints are to keep."""
    limits = robot.limits
    table = np.column_stack([limits.lower, limits.upper, settings.velocity_fraction * limits.velocity])
    table[:, :2] += np.array([1.0, -1.0]) * settings.position_margin
    if not settings.position_limits:
        table[:, :2] = -np.inf, np.inf
    if not settings.velocity_limits:
        table[:, 2] = np.inf
    return np.asarray(table[list(joints)], dtype=np.float64)
