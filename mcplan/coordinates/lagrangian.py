"""A robot in the Lagrangian coordinates of S0, with any chart of the base's orientation.

    M(q) q_rate_rate + N(q, q_rate) q_rate = M(q) [g; 0; 0] + forces + S' c(theta)' lambda            (S0 eq. 32)

``q = (x0, theta, joints)`` has ``3 + d + n`` numbers; ``c`` is half the gradient of the chart's constraint. Bouyarmane
and Kheddar (2012). The link to the robot's own velocity is ``v = E q_rate``, and ``E'`` for generalized forces.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mcplan.coordinates.chart import Array, Axes, RotationChart, numbers
from mcplan.coordinates.equations import gravity_acceleration
from mcplan.coordinates.jacobian import ORIGIN, relative_jacobian
from mcplan.coordinates.quaternion import UNIT_QUATERNION, UnitQuaternion
from mcplan.core.rigid_body.lagrangian import lagrangian_matrices
from mcplan.core.rigid_body.tree import workspace
from mcplan.errors import InputError, SimulationFailed
from mcplan.model.pose import cross_matrix
from mcplan.model.robot import Robot
from mcplan.short import short

STABILISATION = 5.0
"""1/s, rate at which a violated constraint of the chart decays in a simulation (Baumgarte 1972). The stages of a step
leave the constraint by ``dt^2``, and a faster decay answers to that more than to what the steps leave behind."""


NEAR = 1e-3
"""rad from a singularity at which a simulation stops at the latest; it stops before if one step could lead across."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A motion in Lagrangian coordinates.

    Attributes
    ----------
    t : (N,) s.
    q, q_rate : (N, 3 + d + n) coordinates and rates.
    """

    t: Array
    q: Array
    q_rate: Array

    __repr__ = short


class Lagrangian:
    """Dynamics of a robot in the coordinates ``(x0, theta, joints)``.

    The mass matrix is singular where the chart has constraints: accelerations are unique only with these.

    Parameters
    ----------
    robot : the robot.
    chart : of the base's orientation.
    """

    __repr__ = short

    def __init__(self, robot: Robot, chart: RotationChart = UNIT_QUATERNION):
        self.robot, self.chart = robot, chart
        self.size = 3 + chart.size + robot.n
        self._theta = slice(3, 3 + chart.size)
        self._joints = slice(3 + chart.size, self.size)
        self._work = workspace(robot.tree)

    # -- the state ------------------------------------------------------------------------------------------------

    def coordinates(self, configuration: ArrayLike) -> Array:
        """Return ``(x0, theta, joints)`` (size,) of the robot's configuration (nq,)."""
        q = numbers(configuration, (self.robot.nq,), "configuration")
        return np.concatenate([q[:3], self.chart.from_quaternion(q[3:7]), q[7:]])

    def rates(self, q: ArrayLike, velocity: ArrayLike) -> Array:
        """Return the rates (size,) of the robot's velocity (nv,), tangent to the constraints."""
        q, v = self._checked(q), numbers(velocity, (self.robot.nv,), "velocity")
        return np.concatenate([v[:3], self.chart.E_inverse(q[self._theta]) @ v[3:6], v[6:]])

    def configuration(self, q: ArrayLike) -> Array:
        """Return the robot's configuration (nq,) with a unit quaternion."""
        q = self._checked(q)
        return np.concatenate([q[:3], self.chart.to_quaternion(q[self._theta]), q[self._joints]])

    def velocity(self, q: ArrayLike, q_rate: ArrayLike) -> Array:
        """Return the robot's velocity ``E q_rate`` (nv,)."""
        return np.asarray(self.velocity_map(q) @ self._checked(q_rate, "q_rate"))

    def velocity_map(self, q: ArrayLike) -> Array:
        """Return E (nv, size) of ``v = E q_rate``."""
        return self._map(self.chart.E(self._checked(q)[self._theta]), 1.0)

    def velocity_map_rate(self, q: ArrayLike, q_rate: ArrayLike) -> Array:
        """Return the rate of E (nv, size): ``vd = E q_rate_rate + E_rate q_rate``."""
        rate = self._checked(q_rate, "q_rate")[self._theta]
        return self._map(self.chart.E_rate(self._checked(q)[self._theta], rate), 0.0)

    def jacobian(self, q: ArrayLike, frame: str, point: ArrayLike = ORIGIN, axes: Axes | str = "world") -> Array:
        """Return the Jacobian (6, size) of a point of a link or patch by q, from the one relative to the base.

        ``J_t = [1, -[R0 p x] J_omega, R0 J^_t]``,  ``J_r = [0, J_omega, R0 J^_r]``              (S0 eq. 14 and 17)

        Parameters
        ----------
        point : (3,) coordinates in the frame, m.
        axes : of the angular velocity: ``world``, or ``local``, the frame's (S0 eq. 16). The linear rows are the
            rates of the point's coordinates in the world.
        """
        q = self._checked(q)
        R0, E = self.chart.rotation(q[self._theta]), self.chart.E(q[self._theta])
        shape = np.concatenate([[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], q[self._joints]])
        X = self.robot.frame_pose(shape, frame)
        arm = X[:3, :3] @ numbers(point, (3,), "point") + X[:3, 3]
        hat = relative_jacobian(self.robot, shape, frame, point)
        J = np.zeros((6, self.size))
        J[:3, :3] = np.eye(3)
        J[:3, self._theta], J[3:, self._theta] = -cross_matrix(R0 @ arm) @ E, E
        J[:3, self._joints], J[3:, self._joints] = R0 @ hat[:3], R0 @ hat[3:]
        if axes == "local":
            J[3:] = (R0 @ X[:3, :3]).T @ J[3:]
        elif axes != "world":
            raise InputError(f"axes = {axes!r}; expected 'world' or 'local'")
        return J

    # -- the equation of motion -----------------------------------------------------------------------------------

    def matrices(self, q: ArrayLike, q_rate: ArrayLike) -> tuple[Array, Array]:
        """Return M and N (size, size): S0 eq. 25 and 26; ``M_rate - 2 N`` is skew-symmetric."""
        q, rate = self._checked(q), self._checked(q_rate, "q_rate")
        theta = q[self._theta]
        E, E_rate = self.chart.E(theta), self.chart.E_rate(theta, rate[self._theta])
        M, N = np.empty((self.size, self.size)), np.empty((self.size, self.size))
        v = np.concatenate([rate[:3], E @ rate[self._theta], rate[self._joints]])
        arrays = (np.ascontiguousarray(E), np.ascontiguousarray(E_rate), self._work, np.empty((12, self.size)), M, N)
        lagrangian_matrices(self.robot.tree, self.configuration(q), v, *arrays)
        return M, N

    def force(
        self, q: ArrayLike, tau: ArrayLike | None = None, wrenches: Mapping[str, ArrayLike] | None = None
    ) -> Array:
        """Return the generalized force (size,) of torques and contacts: ``[0; 0; u] + sum J' f`` (S0 eq. 24).

        Parameters
        ----------
        tau : (n,) joint torques, or none.
        wrenches : force and moment (6,) on links or patches, at their origins in world axes.
        """
        out = np.zeros(self.size)
        if tau is not None:
            out[self._joints] = numbers(tau, (self.robot.n,), "tau")
        for frame, wrench in (wrenches or {}).items():
            out += self.jacobian(q, frame).T @ numbers(wrench, (6,), f"wrench on {frame}")
        return out

    def inverse_dynamics(self, q: ArrayLike, q_rate: ArrayLike, q_rate_rate: ArrayLike) -> Array:
        """Return the force (size,) ``M q_rate_rate + N q_rate - M [g; 0; 0]`` of a motion (S0 eq. 24)."""
        M, N = self.matrices(q, q_rate)
        lifted = self._checked(q_rate_rate, "q_rate_rate") - self._gravity()
        return np.asarray(M @ lifted + N @ self._checked(q_rate, "q_rate"))

    def forward_dynamics(self, q: ArrayLike, q_rate: ArrayLike, force: ArrayLike, stabilisation: float = 0.0) -> Array:
        """Return the acceleration (size,) of eq. 32 with the constraint of eq. 30, which makes it unique.

        ``[M c'; c 0] [q_rate_rate; -lambda] = [force + M [g; 0; 0] - N q_rate; -c(theta_rate) theta_rate - drift]``

        Parameters
        ----------
        force : (size,) all generalized forces but gravity; see ``force``.
        stabilisation : s, 1/s: ``drift = 2 s c theta_rate + s^2 C / 2`` lets what violates the constraint decay.
        """
        q, rate = self._checked(q), self._checked(q_rate, "q_rate")
        M, N = self.matrices(q, rate)
        free = self._checked(force, "force") + M @ self._gravity() - N @ rate
        rows, theta_rate = self._rows(q), rate[self._theta]
        k = len(rows)
        drift = self.chart.constraint_rows(theta_rate) @ theta_rate + 2 * stabilisation * rows @ rate
        drift += 0.5 * stabilisation**2 * self.chart.constraint(q[self._theta])
        system = np.block([[M, rows.T], [rows, np.zeros((k, k))]])
        return np.asarray(np.linalg.solve(system, np.concatenate([free, -drift]))[: self.size], dtype=np.float64)

    # -- the constraint of the chart ------------------------------------------------------------------------------

    def constraint(self, q: ArrayLike) -> Array:
        """Return ``C(q)`` (d - 3,): S0 eq. 27 and table II."""
        return self.chart.constraint(self._checked(q)[self._theta])

    def constraint_acceleration(self, q: ArrayLike, q_rate: ArrayLike, q_rate_rate: ArrayLike) -> Array:
        """Return ``c(theta) theta_rate_rate + c(theta_rate) theta_rate`` (d - 3,), zero in every motion: S0 eq. 30."""
        theta_rate = self._checked(q_rate, "q_rate")[self._theta]
        growth = self._rows(self._checked(q)) @ self._checked(q_rate_rate, "q_rate_rate")
        return np.asarray(growth + self.chart.constraint_rows(theta_rate) @ theta_rate)

    def multiplier(self, q: ArrayLike, q_rate: ArrayLike, q_rate_rate: ArrayLike, force: ArrayLike) -> Array:
        """Return lambda (d - 3,), ``(c c')^-1 c (M q_rate_rate + N q_rate - M [g; 0; 0] - force)``: S0 eq. 33.

        It is zero for all forces that act on bodies, which have nothing across the constraint.
        """
        rows = self._rows(self._checked(q))
        residual = self.inverse_dynamics(q, q_rate, q_rate_rate) - self._checked(force, "force")
        return np.asarray(np.linalg.solve(rows @ rows.T, rows @ residual), dtype=np.float64)

    def projector(self, q: ArrayLike, oblique: bool = False) -> Array:
        """Return A (size, size), which removes the multiplier from eq. 32: S0 eq. 34 and 35.

        Parameters
        ----------
        oblique : ``1 - S' S q q'``, as S0 prints it for the unit quaternion: its norm grows with the distance from the
            world's origin. By default ``1 - S' c' (c c')^-1 c S``, which is orthogonal and has the norm one.
        """
        q = self._checked(q)
        A = np.eye(self.size)
        if not oblique:
            A[self._theta, self._theta] = self.chart.projector(q[self._theta])
        elif isinstance(self.chart, UnitQuaternion):
            A -= np.outer(self._rows(q)[0], q)
        else:
            raise InputError(f"S0 eq. 34 is for the unit quaternion: no oblique projector for {self.chart.name}")
        return A

    # -- motion ---------------------------------------------------------------------------------------------------

    def simulate(
        self,
        q: ArrayLike,
        q_rate: ArrayLike,
        duration: float,
        dt: float = 1e-3,
        torque: Callable[[float, Array, Array], ArrayLike] | None = None,
        stabilisation: float = STABILISATION,
    ) -> Trajectory:
        """Integrate the motion in these coordinates with the fourth-order method of Runge and Kutta.

        Parameters
        ----------
        q, q_rate : (size,) start.
        duration, dt : s; the step is shortened so that a whole number of them fills the duration.
        torque : joint torques (n,) at a time, configuration (nq,) and velocity (nv,) of the robot; none by default.
        stabilisation : 1/s, see ``forward_dynamics``.

        Raises
        ------
        SimulationFailed : the chart came within a step of a singularity; take another one.
        """
        if not (duration > 0.0 and dt > 0.0):
            raise InputError(f"duration = {duration} s and dt = {dt} s; expected both positive")
        state = np.concatenate([self._checked(q), self._checked(q_rate, "q_rate")])
        steps = max(1, int(np.ceil(duration / dt - 1e-9)))
        h = duration / steps
        out = np.empty((steps + 1, 2 * self.size))
        out[0] = state

        def rate(t: float, y: Array) -> Array:
            q, v = y[: self.size], y[self.size :]
            tau = None if torque is None else torque(t, self.configuration(q), self.velocity(q, v))
            return np.concatenate([v, self.forward_dynamics(q, v, self.force(q, tau), stabilisation)])

        for k in range(steps):
            t, y = k * h, out[k]
            self._require_regular(t, y, h)
            k1 = rate(t, y)
            k2 = rate(t + 0.5 * h, y + 0.5 * h * k1)
            k3 = rate(t + 0.5 * h, y + 0.5 * h * k2)
            out[k + 1] = y + h / 6.0 * (k1 + 2 * k2 + 2 * k3 + rate(t + h, y + h * k3))
        return Trajectory(np.linspace(0.0, duration, steps + 1), out[:, : self.size], out[:, self.size :])

    # -- parts ----------------------------------------------------------------------------------------------------

    def _require_regular(self, t: float, state: Array, dt: float) -> None:
        if not np.isfinite(state).all():
            raise SimulationFailed(f"the motion in {self.chart.name} is not finite at t = {t:.4g} s; take a smaller dt")
        try:
            step = dt * float(np.linalg.norm(state[self.size :][self._theta]))
            self.chart.require_regular(state[self._theta], max(NEAR, step))
        except InputError as error:
            raise SimulationFailed(f"t = {t:.4g} s: {error}") from None

    def _rows(self, q: Array) -> Array:
        """Return c S (d - 3, size): half the gradient of the constraint by all coordinates."""
        rows = np.zeros((self.chart.size - 3, self.size))
        rows[:, self._theta] = self.chart.constraint_rows(q[self._theta])
        return rows

    def _map(self, angular: Array, one: float) -> Array:
        E = np.zeros((self.robot.nv, self.size))
        E[:3, :3], E[3:6, self._theta], E[6:, self._joints] = one * np.eye(3), angular, one * np.eye(self.robot.n)
        return E

    def _gravity(self) -> Array:
        return gravity_acceleration(self.size)

    def _checked(self, value: ArrayLike, what: str = "q") -> Array:
        return numbers(value, (self.size,), f"{what} in {self.chart.name}")
