"""Options of the whole-body program, its solvers, and its interface to the robot's joints and limits."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, Final, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from mcplan.errors import InputError
from mcplan.settings.control import Form

Array = NDArray[np.float64]

SOLVERS: Final = MappingProxyType(
    {
        # a negative eps_prox regularises only if the Hessian is singular (the torques have no cost)
        "DAQP": {"eps_prox": -1e-5, "iter_limit": 2000},
        "OSQP": {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iter": 50_000, "polish": True},
        "CLARABEL": {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10},
        "PIQP": {"eps_abs": 1e-9, "eps_rel": 1e-10},
    }
)
"""Options of each solver called through CVXPY, with which its solutions pass the residual check."""

MIXED: Final = "mixed"
"""Form of the equation of motion in mixed velocities."""
FORMS: Final = get_args(Form)
"""Forms of the equation of motion: `mixed`, and those of S0 eq. 36 to 38 (S0: docs/sources.md); see `forms`."""

UNBOUNDED: Final = 1e6
"""Finite number that stands for an infinite limit of a force (N) or torque (N m): some solvers accept no infinity."""

SOLVER_PACKAGES: Final = MappingProxyType({"DAQP": "daqp", "OSQP": "osqp", "CLARABEL": "clarabel", "PIQP": "piqp"})
"""Python package of each solver."""


def solver_options(name: str) -> dict[str, Any]:
    """Return the options of a solver; raise an error if it is unknown, or not installed (with the command to do so)."""
    if name not in SOLVERS:
        raise InputError(f"solver {name!r}: one of {', '.join(SOLVERS)}")
    if find_spec(SOLVER_PACKAGES[name]) is None:
        raise InputError(f"solver {name} is not installed: pip install {SOLVER_PACKAGES[name]}")
    return dict(SOLVERS[name])


@dataclass(frozen=True)
class QPSettings:
    """Options of a declared problem.

    Parameters
    ----------
    dt : control period, s, over which the joint limits look ahead.
    solver : DAQP, OSQP, CLARABEL or PIQP.
    form : form of the equation of motion: mixed, minimal, projected, multiplier or matrix; see `forms`.
    acceleration_weight : cost of each acceleration squared.
    force_weight, force_rate_weight : cost of each squared force unknown, and of its squared change per tick, 1/N². A
        tangential force counts like the normal force that its friction needs, so that little of it is used.
    torque_weight : cost of each squared torque; with 0 the torques are eliminated.
    wrench_weight : (6,) cost of each squared component of a contact's wrench, at the origin and in the axes of the
        contact's link or of ``wrench_frame``; None: no such cost.
    wrench_frame : patch -> frame of ``wrench_weight``; default: the frame of the patch.
    torque_limits, velocity_limits, position_limits : whether they are constraints.
    torque_margin : margin to each torque limit, N m.
    torque_band : whether `WholeBodyQP.update` may bound torques to a band, such as one around the last torques.
    velocity_fraction : usable fraction of each velocity limit.
    position_margin : margin to each position limit, rad or m.
    limit_deceleration : available deceleration at joint limits, rad/s²; see ``viable_acceleration``.
    max_limit_acceleration : largest acceleration demanded by joint limits, rad/s².
    inner_margin : N; margin of forces inside their cones, as solvers may violate a row by 1e-6.
    tolerance : largest accepted residual of rows, absolute (rad/s², N, N m) below 1, relative above.
    compiled : whether the problem is compiled (mixed form with DAQP only; otherwise CVXPY solves). The solutions are
        the same.
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
    torque_band: bool = False
    velocity_fraction: float = 1.0
    position_margin: float = 1e-6
    limit_deceleration: float = 10.0
    max_limit_acceleration: float = 500.0
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
        if self.limit_deceleration > self.max_limit_acceleration:
            raise InputError(
                f"limit_deceleration {self.limit_deceleration} rad/s² exceeds max_limit_acceleration "
                f"{self.max_limit_acceleration} rad/s²"
            )
        if self.explain not in ("always", "first", "never"):
            raise InputError(f"explain {self.explain!r}: one of always, first, never")
        if self.wrench_weight is not None and len(self.wrench_weight) != 6:
            raise InputError(f"wrench_weight has {len(self.wrench_weight)} numbers, expected 6")


class QPJoints(Protocol):
    """Interface of joint limits: (n,) each, infinite where a joint has none."""

    @property
    def lower(self) -> Array:
        """Lower position limits."""

    @property
    def upper(self) -> Array:
        """Upper position limits."""

    @property
    def velocity(self) -> Array:
        """Velocity limits."""

    @property
    def torque(self) -> Array:
        """Torque limits."""


class HasLimits(Protocol):
    """Interface of a robot for the program."""

    @property
    def nv(self) -> int:
        """Dimension of the velocity."""

    @property
    def joint_names(self) -> Sequence[str]:
        """Names of the joints."""

    @property
    def limits(self) -> QPJoints:
        """Limits of the joints."""


def bounds(robot: HasLimits, joints: Sequence[int], settings: QPSettings) -> Array:
    """Return the limits (j, 3) of the joints with indices ``joints``: lower and upper position, velocity."""
    limits = robot.limits
    table = np.column_stack([limits.lower, limits.upper, settings.velocity_fraction * limits.velocity])
    table[:, :2] += np.array([1.0, -1.0]) * settings.position_margin
    if not settings.position_limits:
        table[:, :2] = -np.inf, np.inf
    if not settings.velocity_limits:
        table[:, 2] = np.inf
    return np.asarray(table[list(joints)], dtype=np.float64)
