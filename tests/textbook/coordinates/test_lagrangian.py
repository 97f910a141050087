"""S0's equation of motion in every chart of the base: one motion, and the constraint's multiplier and projector."""

import numpy as np
import pytest

from mcplan.errors import InputError, SimulationFailed
from mcplan.textbook.coordinates import (
    ANGLE_AXIS,
    ROLL_PITCH_YAW,
    ROTATION_MATRIX,
    ROTATION_VECTOR,
    UNIT_QUATERNION,
    XYZ,
    ZYZ,
    EulerAngles,
    Lagrangian,
    point_jacobian,
)
from tests.core.random_trees import random_state
from tests.textbook.coordinates.random_robots import random_robot

CHARTS = [ROLL_PITCH_YAW, UNIT_QUATERNION, ROTATION_MATRIX, ROTATION_VECTOR, ANGLE_AXIS, XYZ, ZYZ]
CONSTRAINED = [UNIT_QUATERNION, ROTATION_MATRIX, ANGLE_AXIS]
STEP = 1e-6


def named(charts):
    return pytest.mark.parametrize("chart", charts, ids=[c.name for c in charts])


class State:
    """A random robot at a random state, in a chart's coordinates too."""

    def __init__(self, seed, chart):
        self.rng = np.random.default_rng(seed)
        self.robot = random_robot(self.rng, int(self.rng.integers(3, 12)))
        self.configuration, self.v, self.vd = random_state(self.rng, self.robot.nv)
        self.dynamics = Lagrangian(self.robot, chart)
        self.q = self.dynamics.coordinates(self.configuration)
        self.q_rate = self.dynamics.rates(self.q, self.v)
        self.E = self.dynamics.velocity_map(self.q)
        self.E_rate = self.dynamics.velocity_map_rate(self.q, self.q_rate)
        self.wrenches = {"tool": self.rng.normal(size=6), "link1": self.rng.normal(size=6)}
        self.tau = self.rng.normal(size=self.robot.n)
        self.applied = np.r_[np.zeros(6), self.tau] + sum(
            self.robot.frame_jacobian(self.configuration, frame).T @ w for frame, w in self.wrenches.items()
        )

    @property
    def normals(self):
        """Directions of the coordinates across the constraint (d - 3, size)."""
        rows = np.zeros((self.dynamics.chart.size - 3, self.dynamics.size))
        theta = slice(3, 3 + self.dynamics.chart.size)
        rows[:, theta] = self.dynamics.chart.constraint_rows(self.q[theta])
        return rows


@pytest.fixture(params=range(3))
def state(request, chart):
    return State(request.param, chart)


def relative(a, b):
    return np.max(np.abs(a - b)) / max(1.0, np.max(np.abs(b)))


@named(CHARTS)
def test_the_state_goes_there_and_back(state):
    d = state.dynamics
    np.testing.assert_allclose(state.robot.difference(state.configuration, d.configuration(state.q)), 0.0, atol=1e-12)
    np.testing.assert_allclose(d.velocity(state.q, state.q_rate), state.v, atol=1e-11 * np.abs(state.q_rate).max())


@named(CHARTS)
def test_jacobians_from_those_relative_to_the_base(state):
    """S0 eq. 14, 16 and 17 against the mixed Jacobian times E."""
    p = np.array([0.2, 0.5, -0.3])
    expected = point_jacobian(state.robot, state.configuration, "tool", p) @ state.E
    np.testing.assert_allclose(state.dynamics.jacobian(state.q, "tool", p), expected, atol=1e-12)
    R = state.robot.frame_pose(state.configuration, "tool")[:3, :3]
    local = state.dynamics.jacobian(state.q, "tool", p, axes="local")
    np.testing.assert_allclose(local, np.vstack([expected[:3], R.T @ expected[3:]]), atol=1e-12)


@named(CHARTS)
def test_matrices_are_those_of_the_mixed_form(state):
    M, N = state.dynamics.matrices(state.q, state.q_rate)
    mixed = state.robot.mass_matrix(state.configuration)
    assert relative(M, state.E.T @ mixed @ state.E) < 1e-12
    rest = state.robot.nonlinear_effects(state.configuration, np.zeros(state.robot.nv))
    coriolis = state.robot.nonlinear_effects(state.configuration, state.v) - rest
    assert relative(N @ state.q_rate, state.E.T @ (mixed @ state.E_rate @ state.q_rate + coriolis)) < 1e-11


@named(CHARTS)
def test_rate_of_mass_matrix_minus_twice_N_is_skew(state):
    ahead, back = (state.dynamics.matrices(state.q + s * STEP * state.q_rate, state.q_rate)[0] for s in (1, -1))
    _, N = state.dynamics.matrices(state.q, state.q_rate)
    S = (ahead - back) / (2 * STEP) - 2 * N
    assert np.max(np.abs(S + S.T)) < 1e-7 * max(1.0, np.max(np.abs(N)) * np.abs(state.q_rate).max())


@named(CHARTS)
def test_forces_and_motion_are_those_of_the_robot(state):
    """Torques and contact forces of eq. 24 give the robot's own acceleration, and the motion gives them back."""
    d = state.dynamics
    force = d.force(state.q, state.tau, state.wrenches)
    np.testing.assert_allclose(force, state.E.T @ state.applied, atol=1e-12)
    q_rate_rate = d.forward_dynamics(state.q, state.q_rate, force)
    vd = state.robot.forward_dynamics(state.configuration, state.v, state.applied)
    assert relative(state.E @ q_rate_rate + state.E_rate @ state.q_rate, vd) < 1e-10
    scale = max(1.0, np.abs(q_rate_rate).max())
    np.testing.assert_allclose(d.constraint(state.q), 0.0, atol=1e-14)
    np.testing.assert_allclose(d.constraint_acceleration(state.q, state.q_rate, q_rate_rate), 0.0, atol=1e-12 * scale)
    back = d.inverse_dynamics(state.q, state.q_rate, q_rate_rate)
    assert relative(back, force) < 1e-11 * scale


@named(CONSTRAINED)
def test_the_multiplier_answers_only_to_a_force_across_the_constraint(state):
    d, rows = state.dynamics, state.normals
    physical = d.force(state.q, state.tau, state.wrenches)
    motion = d.forward_dynamics(state.q, state.q_rate, physical)
    scale = max(1.0, np.abs(d.matrices(state.q, state.q_rate)[0] @ motion).max())
    np.testing.assert_allclose(d.multiplier(state.q, state.q_rate, motion, physical), 0.0, atol=1e-11 * scale)
    kappa = 40.0 * state.rng.normal(size=len(rows))
    pushed = physical + rows.T @ kappa
    again = d.forward_dynamics(state.q, state.q_rate, pushed)
    assert relative(again, motion) < 1e-9
    found = d.multiplier(state.q, state.q_rate, again, pushed)
    np.testing.assert_allclose(found, -kappa, atol=1e-10 * scale)
    residual = d.inverse_dynamics(state.q, state.q_rate, again) - pushed
    np.testing.assert_allclose(residual, rows.T @ found, atol=1e-9 * scale)  # eq. 32


@named(CONSTRAINED)
@pytest.mark.parametrize("oblique", [False, True])
def test_the_projector_removes_the_multiplier_and_nothing_else(state, oblique):
    d, rows = state.dynamics, state.normals
    if oblique and d.chart is not UNIT_QUATERNION:
        with pytest.raises(InputError, match=r"S0 eq\. 34 is for the unit quaternion"):
            d.projector(state.q, oblique=True)
        return
    A = d.projector(state.q, oblique)
    size = max(1.0, np.linalg.norm(A, 2))
    np.testing.assert_allclose(A @ rows.T, 0.0, atol=1e-14 * size)
    np.testing.assert_allclose(A @ A, A, atol=1e-13 * size**2)
    assert np.linalg.matrix_rank(A) == d.size - len(rows)
    if not oblique:
        np.testing.assert_allclose(A, A.T, atol=1e-14)
    force = d.force(state.q, state.tau, state.wrenches) + 50 * rows.sum(axis=0)
    motion = d.forward_dynamics(state.q, state.q_rate, force)
    residual = d.inverse_dynamics(state.q, state.q_rate, motion) - force
    assert np.abs(A @ residual).max() < 1e-10 * size * max(1.0, np.abs(motion).max())  # eq. 35


def test_only_the_oblique_projector_minds_where_the_robot_stands():
    state = State(0, UNIT_QUATERNION)
    far = state.q + np.r_[1e4, np.zeros(state.dynamics.size - 1)]
    assert np.linalg.norm(state.dynamics.projector(far, oblique=True), 2) > 9e3
    assert np.linalg.norm(state.dynamics.projector(far), 2) == pytest.approx(1.0, abs=1e-12)


@named(CONSTRAINED)
def test_the_mass_matrix_is_singular_by_the_number_of_constraints(state):
    M, _ = state.dynamics.matrices(state.q, state.q_rate)
    values = np.linalg.eigvalsh(M)
    k = state.dynamics.chart.size - 3
    assert abs(values[:k]).max() < 1e-12 * values[-1]
    assert values[k] > 1e-8 * values[-1]


# -- forward simulation -----------------------------------------------------------------------------------------------


def thrown():
    """A robot of four joints that turns once in two seconds, about the vertical and a little beside it."""
    rng = np.random.default_rng(3)
    robot = random_robot(rng, 4)
    q = robot.neutral()
    q[7:] = rng.uniform(-1, 1, 4)
    v = np.r_[0.3, -0.2, 5.0, 0.15, -0.1, 1.2, rng.uniform(-0.5, 0.5, 4)]
    return robot, q, v


def torque(t, q, v):
    return 0.4 * np.sin(3 * t) * np.array([1.0, -1.0, 0.5, 0.2]) - 0.3 * v[6:]


@pytest.fixture(scope="module")
def motions():
    robot, q, v = thrown()
    found = {}
    for chart in (ROLL_PITCH_YAW, UNIT_QUATERNION, ROTATION_MATRIX):
        d = Lagrangian(robot, chart)
        start = d.coordinates(q)
        found[chart.name] = d, d.simulate(start, d.rates(start, v), duration=2.0, dt=2e-3, torque=torque)
    return robot, found


@pytest.mark.slow
def test_three_charts_give_one_trajectory(motions):
    robot, found = motions
    states = {
        name: [(d.configuration(q), d.velocity(q, w)) for q, w in zip(m.q[::50], m.q_rate[::50], strict=True)]
        for name, (d, m) in found.items()
    }
    reference = states[UNIT_QUATERNION.name]
    assert np.abs(robot.difference(reference[0][0], reference[-1][0])).max() > 1.0
    for name, other in states.items():
        for (q0, v0), (q1, v1) in zip(reference, other, strict=True):
            assert np.abs(robot.difference(q0, q1)).max() < 1e-6, name
            assert np.abs(v0 - v1).max() < 1e-5, name
    pitch = np.abs(found[ROLL_PITCH_YAW.name][1].q[:, 4])
    assert pitch.max() < 1.2  # away from the singularity of this chart


def test_the_trajectory_is_that_of_the_robots_own_dynamics(motions):
    """The mixed form with the exponential map, one step of the method of Runge and Kutta after the other."""
    robot, found = motions
    _, q, v = thrown()
    h, steps = 4e-3, 500
    for k in range(steps):
        t = k * h

        def rate(t, q, v):
            return robot.forward_dynamics(q, v, torque(t, q, v))

        a1 = rate(t, q, v)
        q2, v2 = robot.integrate(q, v, h / 2), v + h / 2 * a1
        a2 = rate(t + h / 2, q2, v2)
        q3, v3 = robot.integrate(q, v2, h / 2), v + h / 2 * a2
        a3 = rate(t + h / 2, q3, v3)
        q4, v4 = robot.integrate(q, v3, h), v + h * a3
        a4 = rate(t + h, q4, v4)
        q, v = robot.integrate(q, (v + 2 * v2 + 2 * v3 + v4) / 6, h), v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
    d, motion = found[UNIT_QUATERNION.name]
    # averaging velocities of stages is of second order in the turn: h^2 |w| |wd| over two seconds
    assert np.abs(robot.difference(q, d.configuration(motion.q[-1]))).max() < 2e-5


def test_constraints_are_kept(motions):
    for d, motion in motions[1].values():
        worst = max((np.abs(d.constraint(q)).max(initial=0.0) for q in motion.q), default=0.0)
        assert worst < 1e-10, d.chart.name


def test_stabilisation_lets_a_violation_decay():
    robot, q, v = thrown()
    d = Lagrangian(robot, ROTATION_MATRIX)
    start = d.coordinates(q)
    start[3:12] += 1e-4 * np.arange(9)
    rates = d.rates(d.coordinates(q), v)
    left = {
        s: np.abs(d.constraint(d.simulate(start, rates, 0.5, 5e-3, stabilisation=s).q[-1])).max() for s in (0.0, 30.0)
    }
    assert left[0.0] > 1e-4
    assert left[30.0] < 1e-7


def test_a_chart_that_comes_to_its_singularity_says_so():
    robot, q, _ = thrown()
    chart = EulerAngles("zyx")
    d = Lagrangian(robot, chart)
    start = d.coordinates(q)
    v = np.r_[np.zeros(3), 0.0, 1.0, 0.0, np.zeros(4)]
    with pytest.raises(SimulationFailed, match=r"t = 1\.\d* s: Euler angles zyx: .* rad from a singularity"):
        d.simulate(start, d.rates(start, v), 3.0, 2e-2)
