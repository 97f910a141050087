"""Lagrangian dynamics in the coordinates of S0, with any chart of the base's orientation.

    M(q) q_rate_rate + N(q, q_rate) q_rate = M(q) [g; 0; 0] + forces + S' c(theta)' lambda            (S0 eq. 32)

``q = (x0, theta, joints)`` has ``3 + d + n`` numbers; ``c`` is half the gradient of the chart's constraint. Bouyarmane
and Kheddar (2012). The robot's velocity is ``v = E q_rate``; generalized forces are mapped by ``E'``.

S0: `docs/sources.md`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mcplan.core.rigid_body.lagrangian import lagrangian_matrices
from mcplan.core.rigid_body.tree import workspace
from mcplan.errors import InputError, SimulationFailed
from mcplan.robot.pose import cross_matrix
from mcplan.robot.robot import Robot
from mcplan.textbook.coordinates.chart import Array, Axes, RotationChart, numbers
from mcplan.textbook.coordinates.equations import gravity_acceleration, reject_massless_root
from mcplan.textbook.coordinates.jacobian import ORIGIN, relative_jacobian
from mcplan.textbook.coordinates.quaternion import UNIT_QUATERNION, UnitQuaternion
from mcplan.textbook.coordinates.rotation_vector import ROTATION_VECTOR
from mcplan.util.text import summary

STABILISATION = 5.0
"""Decay rate of the constraint violation in a simulation, 1/s (Baumgarte 1972). Within a step the Runge-Kutta stages
violate the constraint by ``dt^2``; a faster decay would mostly react to these."""

STOP_DISTANCE = 1e-3
"""Distance to a singularity at which a simulation stops (rad); it stops earlier if one step could cross it."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A motion in Lagrangian coordinates.

    Attributes
    ----------
    t : (N,) times, s.
    q, q_rate : (N, 3 + d + n) coordinates and rates.
    """

    t: Array
    q: Array
    q_rate: Array

    __repr__ = summary


class Lagrangian:
    """Dynamics of a robot in the coordinates ``(x0, theta, joints)``.

    The mass matrix is singular if a chart has constraints: accelerations are unique only with these. Each ball joint is
    treated like the base, with a separate chart and its constraint (S0 sec. VII).

    Parameters
    ----------
    robot : the robot.
    chart : chart of the base's orientation.
    ball_chart : chart of the rotation of every ball joint; the robot's own coordinates are rotation vectors.

    Raises
    ------
    InputError : the root link has no mass, so that M is singular unless the base is fixed.
    """

    __repr__ = summary

    def __init__(
        self, robot: Robot, chart: RotationChart = UNIT_QUATERNION, ball_chart: RotationChart = ROTATION_VECTOR
    ):
        reject_massless_root(robot)
        self.robot, self.chart, self.ball_chart = robot, chart, ball_chart
        self._theta = slice(3, 3 + chart.size)
        ball_columns, d = robot.ball_columns, ball_chart.size
        widths = np.ones(robot.n, int)
        for column in ball_columns:
            widths[column : column + 3] = d, 0, 0
        ends = self._theta.stop + np.concatenate([[0], np.cumsum(widths)])
        self.size = int(ends[-1])
        self._joints = slice(self._theta.stop, self.size)
        self._hinges = np.setdiff1d(np.arange(robot.n), [column + k for column in ball_columns for k in range(3)])
        self._hinge_columns = ends[self._hinges]
        self._balls = [(slice(c, c + 3), slice(int(ends[c]), int(ends[c]) + d)) for c in ball_columns]
        self._charts = [(self._theta, chart), *((place, ball_chart) for _, place in self._balls)]
        self._work = workspace(robot.tree)

    # -- state ----------------------------------------------------------------------------------------------------

    def coordinates(self, configuration: ArrayLike) -> Array:
        """Return ``(x0, theta, joints)`` (size,) of the robot's configuration (nq,).

        Raises
        ------
        InputError : a ball joint is rotated by more than half a turn, which only rotation vectors represent.
        """
        q = numbers(configuration, (self.robot.nq,), "configuration")
        out = np.empty(self.size)
        out[:3], out[self._theta] = q[:3], self.chart.from_quaternion(q[3:7])
        out[self._hinge_columns] = q[7 + self._hinges]
        for columns, place in self._balls:
            phi = q[7:][columns]
            is_vector, angle = self.ball_chart is ROTATION_VECTOR, float(np.linalg.norm(phi))
            if not is_vector and angle > np.pi:
                name = self.robot.joint_names[columns.start]
                raise InputError(
                    f"the ball joint of {name!r} is turned by {angle:.6g} rad; expected at most pi in "
                    f"{self.ball_chart.name}: only rotation vectors represent larger angles"
                )
            out[place] = phi if is_vector else self.ball_chart.from_quaternion(ROTATION_VECTOR.to_quaternion(phi))
        return out

    def rates(self, q: ArrayLike, velocity: ArrayLike) -> Array:
        """Return the rates (size,) of the robot's velocity (nv,), tangent to the constraints."""
        q, v = self._checked(q), numbers(velocity, (self.robot.nv,), "velocity")
        out = np.empty(self.size)
        out[:3], out[self._theta] = v[:3], self.chart.E_inverse(q[self._theta]) @ v[3:6]
        out[self._hinge_columns] = v[6 + self._hinges]
        for columns, place in self._balls:
            omega = ROTATION_VECTOR.E(self._vector(q[place])) @ v[6:][columns]
            out[place] = self.ball_chart.E_inverse(q[place]) @ omega
        return out

    def configuration(self, q: ArrayLike) -> Array:
        """Return the robot's configuration (nq,) with a unit quaternion."""
        q = self._checked(q)
        return np.concatenate([q[:3], self.chart.to_quaternion(q[self._theta]), self._joint_positions(q)])

    def velocity(self, q: ArrayLike, q_rate: ArrayLike) -> Array:
        """Return the robot's velocity ``E q_rate`` (nv,)."""
        return np.asarray(self.velocity_map(q) @ self._checked(q_rate, "q_rate"))

    def velocity_map(self, q: ArrayLike) -> Array:
        """Return E (nv, size) of ``v = E q_rate``."""
        q = self._checked(q)
        return self._map(self.chart.E(q[self._theta]), [self._ball_map(q[place]) for _, place in self._balls], 1.0)

    def velocity_map_rate(self, q: ArrayLike, q_rate: ArrayLike) -> Array:
        """Return the rate of E (nv, size): ``vd = E q_rate_rate + E_rate q_rate``."""
        q, rate = self._checked(q), self._checked(q_rate, "q_rate")
        ball_maps = [self._ball_map_rate(q[place], rate[place]) for _, place in self._balls]
        return self._map(self.chart.E_rate(q[self._theta], rate[self._theta]), ball_maps, 0.0)

    def jacobian(self, q: ArrayLike, frame: str, point: ArrayLike = ORIGIN, axes: Axes | str = "world") -> Array:
        """Return the Jacobian (6, size) of a point of a link or patch by q, from the one relative to the base.

        ``J_t = [1, -[R0 p x] J_omega, R0 J^_t]``,  ``J_r = [0, J_omega, R0 J^_r]``              (S0 eq. 14 and 17)

        Parameters
        ----------
        point : (3,) coordinates in the frame, m.
        axes : axes of the angular velocity: ``world``, or ``local``, the frame's (S0 eq. 16). The linear rows are the
            rates of the point's coordinates in the world.
        """
        q = self._checked(q)
        R0, E = self.chart.rotation(q[self._theta]), self.chart.E(q[self._theta])
        shape = np.concatenate([[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], self._joint_positions(q)])
        X = self.robot.frame_pose(shape, frame)
        arm = X[:3, :3] @ numbers(point, (3,), "point") + X[:3, 3]
        hat = relative_jacobian(self.robot, shape, frame, point)
        J = np.zeros((6, self.size))
        J[:3, :3] = np.eye(3)
        J[:3, self._theta], J[3:, self._theta] = -cross_matrix(R0 @ arm) @ E, E
        joint_map = self.velocity_map(q)[6:, self._joints]
        J[:3, self._joints], J[3:, self._joints] = R0 @ hat[:3] @ joint_map, R0 @ hat[3:] @ joint_map
        if axes == "local":
            J[3:] = (R0 @ X[:3, :3]).T @ J[3:]
        elif axes != "world":
            raise InputError(f"axes = {axes!r}; expected 'world' or 'local'")
        return J

    # -- equation of motion ---------------------------------------------------------------------------------------

    def matrices(self, q: ArrayLike, q_rate: ArrayLike) -> tuple[Array, Array]:
        """Return M and N (size, size): S0 eq. 25 and 26; ``M_rate - 2 N`` is skew-symmetric."""
        q, rate = self._checked(q), self._checked(q_rate, "q_rate")
        theta = q[self._theta]
        E, E_rate = self.chart.E(theta), self.chart.E_rate(theta, rate[self._theta])
        size = self._theta.stop + self.robot.n
        M, N = np.empty((size, size)), np.empty((size, size))
        v = self.velocity(q, rate)
        arrays = (np.ascontiguousarray(E), np.ascontiguousarray(E_rate), self._work, np.empty((12, size)), M, N)
        lagrangian_matrices(self.robot.tree, self.configuration(q), v, *arrays)
        if self._balls:  # from rotation vectors to the charts of balls: rates = G q_rate
            G, G_rate = np.eye(size, self.size), np.zeros((size, self.size))
            G[self._theta.stop :] = self.velocity_map(q)[6:]
            G_rate[self._theta.stop :] = self.velocity_map_rate(q, rate)[6:]
            M, N = G.T @ M @ G, G.T @ (N @ G + M @ G_rate)
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
            out += self.velocity_map(q)[6:].T @ numbers(tau, (self.robot.n,), "tau")
        for frame, wrench in (wrenches or {}).items():
            out += self.jacobian(q, frame).T @ numbers(wrench, (6,), f"wrench on {frame}")
        return out

    def inverse_dynamics(self, q: ArrayLike, q_rate: ArrayLike, q_rate_rate: ArrayLike) -> Array:
        """Return the force (size,) ``M q_rate_rate + N q_rate - M [g; 0; 0]`` of a motion (S0 eq. 24)."""
        M, N = self.matrices(q, q_rate)
        acceleration = self._checked(q_rate_rate, "q_rate_rate") - self._gravity()
        return np.asarray(M @ acceleration + N @ self._checked(q_rate, "q_rate"))

    def forward_dynamics(self, q: ArrayLike, q_rate: ArrayLike, force: ArrayLike, stabilisation: float = 0.0) -> Array:
        """Return the acceleration (size,) of eq. 32 with the constraint of eq. 30, which makes it unique.

        ``[M c'; c 0] [q_rate_rate; -lambda] = [force + M [g; 0; 0] - N q_rate; -c(theta_rate) theta_rate - drift]``

        Parameters
        ----------
        force : (size,) all generalized forces but gravity; see ``force``.
        stabilisation : s, 1/s: with ``drift = 2 s c theta_rate + s^2 C / 2`` violations of the constraint decay.
        """
        q, rate = self._checked(q), self._checked(q_rate, "q_rate")
        M, N = self.matrices(q, rate)
        applied = self._checked(force, "force") + M @ self._gravity() - N @ rate
        rows = self._rows(q)
        k = len(rows)
        drift = self._rows(rate) @ rate + 2 * stabilisation * rows @ rate
        drift += 0.5 * stabilisation**2 * self.constraint(q)
        system = np.block([[M, rows.T], [rows, np.zeros((k, k))]])
        return np.asarray(np.linalg.solve(system, np.concatenate([applied, -drift]))[: self.size], dtype=np.float64)

    # -- constraint of the chart ----------------------------------------------------------------------------------

    def constraint(self, q: ArrayLike) -> Array:
        """Return ``C(q)`` (d - 3,) of the base, and then of each ball joint: S0 eq. 27 and table II."""
        q = self._checked(q)
        return np.concatenate([chart.constraint(q[place]) for place, chart in self._charts])

    def constraint_acceleration(self, q: ArrayLike, q_rate: ArrayLike, q_rate_rate: ArrayLike) -> Array:
        """Return ``c(theta) theta_rate_rate + c(theta_rate) theta_rate`` (d - 3,), zero in every motion: S0 eq. 30."""
        rate = self._checked(q_rate, "q_rate")
        linear_part = self._rows(self._checked(q)) @ self._checked(q_rate_rate, "q_rate_rate")
        return np.asarray(linear_part + self._rows(rate) @ rate)

    def multiplier(self, q: ArrayLike, q_rate: ArrayLike, q_rate_rate: ArrayLike, force: ArrayLike) -> Array:
        """Return lambda (d - 3,), ``(c c')^-1 c (M q_rate_rate + N q_rate - M [g; 0; 0] - force)``: S0 eq. 33.

        It is zero for all forces that act on bodies, because these have no component normal to the constraint.
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
            for place, chart in self._charts:
                A[place, place] = chart.projector(q[place])
        elif isinstance(self.chart, UnitQuaternion) and not self._balls:
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
        q, q_rate : (size,) initial coordinates and rates.
        duration, dt : s; the step is shortened so that a whole number of them fills the duration.
        torque : joint torques (n,) at a time, configuration (nq,) and velocity (nv,) of the robot (default: none).
        stabilisation : 1/s, see ``forward_dynamics``.

        Raises
        ------
        SimulationFailed : the chart came within a step of a singularity; take another one.
        """
        duration, dt = numbers([duration, dt], (2,), "duration and dt").tolist()
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

    # -- helpers --------------------------------------------------------------------------------------------------

    def _require_regular(self, t: float, state: Array, dt: float) -> None:
        if not np.isfinite(state).all():
            raise SimulationFailed(f"the motion in {self.chart.name} is not finite at t = {t:.4g} s; take a smaller dt")
        try:
            for place, chart in self._charts:
                step = dt * float(np.linalg.norm(state[self.size :][place]))
                chart.require_regular(state[place], max(STOP_DISTANCE, step))
        except InputError as error:
            raise SimulationFailed(f"t = {t:.4g} s: {error}") from None

    def _rows(self, q: Array) -> Array:
        """Return c S (d - 3, size): half the gradient of the constraints by all coordinates, linear in these."""
        rows = []
        for place, chart in self._charts:
            rows.append(np.zeros((chart.size - 3, self.size)))
            rows[-1][:, place] = chart.constraint_rows(q[place])
        return np.vstack(rows)

    def _joint_positions(self, q: Array) -> Array:
        """Return the robot's coordinates (n,) of its joints."""
        out = np.empty(self.robot.n)
        out[self._hinges] = q[self._hinge_columns]
        for columns, place in self._balls:
            out[columns] = self._vector(q[place])
        return out

    def _vector(self, theta: Array) -> Array:
        """Return the rotation vector (3,) of a ball joint."""
        is_vector = self.ball_chart is ROTATION_VECTOR
        return theta if is_vector else ROTATION_VECTOR.parameters(self.ball_chart.rotation(theta))

    def _ball_map(self, theta: Array) -> Array:
        """Return B (3, d) from the rates of a ball joint's chart to those of its rotation vector: ``E_phi^-1 E``."""
        return ROTATION_VECTOR.E_inverse(self._vector(theta)) @ self.ball_chart.E(theta)

    def _ball_map_rate(self, theta: Array, rate: Array) -> Array:
        """Return the rate of B (3, d): ``E_phi^-1 (E_rate - E_phi_rate B)``."""
        phi, B = self._vector(theta), self._ball_map(theta)
        change = self.ball_chart.E_rate(theta, rate) - ROTATION_VECTOR.E_rate(phi, B @ rate) @ B
        return np.asarray(ROTATION_VECTOR.E_inverse(phi) @ change)

    def _map(self, angular: Array, ball_maps: list[Array], identity: float) -> Array:
        """Return E (nv, size) from its blocks for base and ball joints, with ``identity`` 1; its rate with 0."""
        E = np.zeros((self.robot.nv, self.size))
        E[:3, :3], E[3:6, self._theta] = identity * np.eye(3), angular
        E[6 + self._hinges, self._hinge_columns] = identity
        for (columns, place), B in zip(self._balls, ball_maps, strict=True):
            E[6 + columns.start : 6 + columns.stop, place] = B
        return E

    def _gravity(self) -> Array:
        return gravity_acceleration(self.size)

    def _checked(self, value: ArrayLike, name: str = "q") -> Array:
        """Return coordinates, rates or forces as an array (size,) of finite numbers."""
        return numbers(value, (self.size,), f"{name} in {self.chart.name}")
