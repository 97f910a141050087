"""Theorems of mechanics that no reference implementation is needed for."""

import numpy as np
import pytest

from mcplan.core.rigid_body.com import centroidal_momentum_bias, centroidal_momentum_matrix, com, com_jacobian
from mcplan.core.rigid_body.forward_dynamics import factorised_dynamics, forward_dynamics
from mcplan.core.rigid_body.frame import frame_bias_acceleration, frame_jacobian, frame_motion, frame_pose
from mcplan.core.rigid_body.inverse_dynamics import inverse_dynamics, nonlinear_effects
from mcplan.core.rigid_body.manifold import integrate
from mcplan.core.rigid_body.mass_matrix import mass_matrix
from mcplan.core.rigid_body.tree import GRAVITY, workspace
from tests.core.random_trees import build_tree, random_bodies, random_rotation, random_state


class Mechanism:
    """A random tree with kernels that return their output."""

    def __init__(self, seed, joints=9, mimic=0.0):
        self.rng = np.random.default_rng(seed)
        self.tree = build_tree(random_bodies(self.rng, joints, mimic))
        self.nv, self.work = len(self.tree.armature), workspace(self.tree)
        self.mass = self.tree.inertia[:, 0].sum()

    def state(self, speed=1.0):
        return random_state(self.rng, self.nv, speed)

    def call(self, kernel, *arguments, shape=None):
        out = np.full(self.nv if shape is None else shape, np.nan)
        kernel(self.tree, *arguments, self.work, out)
        return out

    def M(self, q):
        return self.call(mass_matrix, q, shape=(self.nv, self.nv))

    def com(self, q):
        return self.call(com, q, shape=3)

    def momentum(self, q, v):
        return self.call(centroidal_momentum_matrix, q, shape=(6, self.nv)) @ v

    def energy(self, q, v):
        return 0.5 * v @ self.M(q) @ v + self.mass * GRAVITY * self.com(q)[2]

    def acceleration(self, q, v, force):
        vd = np.full(self.nv, np.nan)
        forward_dynamics(self.tree, q, v, force, self.work, np.zeros((self.nv, self.nv)), vd)
        return vd

    def integrate(self, q, v, dt):
        out = np.full(len(q), np.nan)
        integrate(q, v, dt, out)
        return out


@pytest.fixture(params=[(1, 0.0), (2, 0.0), (3, 0.4)], ids=["tree", "other", "mimic"])
def mechanism(request):
    return Mechanism(request.param[0], mimic=request.param[1])


def semi_implicit(m, q, v, dt):
    v = v + dt * m.acceleration(q, v, np.zeros(m.nv))
    return m.integrate(q, v, dt), v


def midpoint(m, q, v, dt):
    middle = v + 0.5 * dt * m.acceleration(q, v, np.zeros(m.nv))
    q_middle = m.integrate(q, v, 0.5 * dt)
    v = v + dt * m.acceleration(q_middle, middle, np.zeros(m.nv))
    return m.integrate(q, middle, dt), v


@pytest.mark.parametrize(("step", "order"), [(semi_implicit, 1), (midpoint, 2)])
def test_free_flight_keeps_energy_and_momentum_to_the_order_of_the_integrator(mechanism, step, order):
    q0, v0, _ = mechanism.state(speed=0.5)
    time, errors = 0.1, []
    for steps in (200, 400, 800):
        q, v = q0, v0
        for _ in range(steps):
            q, v = step(mechanism, q, v, time / steps)
        fall = np.r_[0, 0, -mechanism.mass * GRAVITY * time, 0, 0, 0]
        errors.append(
            [
                abs(mechanism.energy(q, v) - mechanism.energy(q0, v0)),
                np.linalg.norm(mechanism.momentum(q, v) - mechanism.momentum(q0, v0) - fall),
            ]
        )
    ratios = np.array(errors[:-1]) / np.array(errors[1:])
    np.testing.assert_allclose(ratios[-1], 2.0**order, rtol=0.1)


def test_inverse_undoes_forward_dynamics(mechanism):
    for _ in range(20):
        q, v, _ = mechanism.state()
        force = 10 * mechanism.rng.standard_normal(mechanism.nv)
        back = mechanism.call(inverse_dynamics, q, v, mechanism.acceleration(q, v, force))
        np.testing.assert_allclose(back, force, atol=1e-8)


def test_articulated_bodies_and_cholesky_agree():
    m = Mechanism(4, joints=25)
    q, v, force = m.state()
    vd = np.zeros(m.nv)
    factorised_dynamics(m.tree, q, v, force, m.work, np.zeros((m.nv, m.nv)), vd)
    np.testing.assert_allclose(m.acceleration(q, v, force), vd, rtol=1e-8, atol=1e-8 * np.max(np.abs(vd)))


def test_inverse_dynamics_is_affine_in_the_acceleration(mechanism):
    q, v, vd = mechanism.state()
    h = mechanism.call(nonlinear_effects, q, v)
    np.testing.assert_allclose(mechanism.call(inverse_dynamics, q, v, vd), mechanism.M(q) @ vd + h, atol=1e-10)


def test_power_in_is_the_rate_of_energy(mechanism):
    q, v, _ = mechanism.state()
    force = 10 * mechanism.rng.standard_normal(mechanism.nv)
    vd, step = mechanism.acceleration(q, v, force), 1e-5

    def energy(dt):
        # The motion to second order: the acceleration moves q by dt^2 / 2, which central differences need not see.
        return mechanism.energy(mechanism.integrate(q, v, dt), v + dt * vd)

    rate = (energy(step) - energy(-step)) / (2 * step)
    scale = abs(force) @ abs(v) + np.max(np.abs(vd)) ** 2
    assert abs(rate - force @ v) < 1e-6 * scale


def test_kinetic_energy_is_half_v_M_v(mechanism):
    q, v, _ = mechanism.state()
    energy = 0.5 * v @ (np.append(np.zeros(6), mechanism.tree.armature[6:]) * v)
    for i, (mass, x, y, z, *i_c) in enumerate(mechanism.tree.inertia):
        at_com = np.r_[np.eye(3).ravel(), x, y, z]
        velocity = mechanism.call(frame_jacobian, q, i, at_com, shape=(6, mechanism.nv)) @ v
        w = mechanism.call(frame_pose, q, i, at_com, shape=(4, 4))[:3, :3].T @ velocity[3:]
        inertia = np.array(i_c)[[0, 3, 4, 3, 1, 5, 4, 5, 2]].reshape(3, 3)
        energy += 0.5 * mass * velocity[:3] @ velocity[:3] + 0.5 * w @ inertia @ w
    assert abs(energy - 0.5 * v @ mechanism.M(q) @ v) < 1e-12 * energy


def test_mass_matrix_is_symmetric_and_definite(mechanism):
    M = mechanism.M(mechanism.state()[0])
    np.testing.assert_allclose(M, M.T, atol=1e-13)
    assert np.linalg.eigvalsh(M)[0] > 0


def numerical(mechanism, q, value):
    """Derivative of a value by each velocity, by central differences on the manifold: error step^2 and 1e-16 / step."""
    step = 1e-5
    columns = [
        (value(mechanism.integrate(q, e, step)) - value(mechanism.integrate(q, e, -step))) / (2 * step)
        for e in np.eye(mechanism.nv)
    ]
    return np.array(columns).T


def test_jacobians_are_derivatives_on_the_manifold(mechanism):
    q, v, _ = mechanism.state()
    body = len(mechanism.tree.topology) - 1
    offset = np.r_[random_rotation(mechanism.rng).ravel(), mechanism.rng.standard_normal(3)]

    def pose(q):
        return mechanism.call(frame_pose, q, body, offset, shape=(4, 4))

    def jacobian(q):
        return mechanism.call(frame_jacobian, q, body, offset, shape=(6, mechanism.nv))

    J, R = jacobian(q), pose(q)[:3, :3]
    np.testing.assert_allclose(numerical(mechanism, q, lambda q: pose(q)[:3, 3]), J[:3], atol=1e-8)
    turns = numerical(mechanism, q, lambda q: (pose(q)[:3, :3] @ R.T)[[2, 0, 1], [1, 2, 0]])
    np.testing.assert_allclose(turns, J[3:], atol=1e-8)
    bias = numerical(mechanism, q, lambda q: jacobian(q) @ v) @ v
    a = np.full(6, np.nan)
    frame_bias_acceleration(mechanism.tree, q, v, body, offset, mechanism.work, a)
    np.testing.assert_allclose(a, bias, atol=1e-6)
    vd = mechanism.rng.standard_normal(mechanism.nv)
    motion = np.full(24, np.nan)
    frame_motion(mechanism.tree, q, v, vd, body, offset, mechanism.work, motion)
    np.testing.assert_allclose(motion[12:18], jacobian(q) @ v, atol=1e-12)
    np.testing.assert_allclose(motion[18:], jacobian(q) @ vd + a, atol=1e-11)
    X = pose(q)
    np.testing.assert_allclose(motion[:12], np.r_[X[:3, :3].ravel(), X[:3, 3]], atol=1e-15)

    c, J_c = np.zeros(3), np.full((3, mechanism.nv), np.nan)
    com_jacobian(mechanism.tree, q, mechanism.work, c, J_c)
    np.testing.assert_allclose(numerical(mechanism, q, mechanism.com), J_c, atol=1e-8)
    rate = numerical(mechanism, q, lambda q: mechanism.momentum(q, v)) @ v
    bias = mechanism.call(centroidal_momentum_bias, q, v, shape=6)
    np.testing.assert_allclose(bias, rate, atol=1e-6 * max(1, np.max(np.abs(rate))))


def test_momentum_matrix_holds_the_com_jacobian_and_the_base_rows(mechanism):
    q, v, vd = mechanism.state()
    A = mechanism.call(centroidal_momentum_matrix, q, shape=(6, mechanism.nv))
    c, J = np.zeros(3), np.zeros((3, mechanism.nv))
    com_jacobian(mechanism.tree, q, mechanism.work, c, J)
    np.testing.assert_allclose(A[:3], mechanism.mass * J, atol=1e-12)
    # Newton and Euler for the whole robot: rate of momentum = gravity + what acts on the base.
    force = mechanism.call(inverse_dynamics, q, v, vd)
    rate = A @ vd + mechanism.call(centroidal_momentum_bias, q, v, shape=6)
    arm = q[:3] - c
    np.testing.assert_allclose(rate[:3], force[:3] - [0, 0, mechanism.mass * GRAVITY], atol=1e-9)
    np.testing.assert_allclose(rate[3:], force[3:6] + np.cross(arm, force[:3]), atol=1e-9)


def test_where_the_base_stands_changes_nothing(mechanism):
    q, v, vd = mechanism.state()
    far = q.copy()
    far[:3] += 1e6
    here, there = (mechanism.call(inverse_dynamics, x, v, vd) for x in (q, far))
    np.testing.assert_array_equal(here, there)
    np.testing.assert_array_equal(mechanism.M(q), mechanism.M(far))


def test_not_a_number_stays_visible(mechanism):
    q, v, vd = mechanism.state()
    q[9] = np.nan
    assert np.isnan(mechanism.M(q)).any()
    assert np.isnan(mechanism.call(inverse_dynamics, q, v, vd)).any()
    assert np.isnan(mechanism.acceleration(q, v, vd)).any()
