"""S0's Lagrangian form in unit-quaternion coordinates and the mixed form are one motion."""

import numpy as np
import pytest

from mcplan.core.algebra.rotation import quaternion_to_matrix
from mcplan.core.rigid_body import lagrangian
from mcplan.core.rigid_body.forward_dynamics import forward_dynamics
from mcplan.core.rigid_body.inverse_dynamics import nonlinear_effects
from mcplan.core.rigid_body.manifold import integrate
from mcplan.core.rigid_body.mass_matrix import mass_matrix
from mcplan.core.rigid_body.tree import GRAVITY, workspace
from tests.core.random_trees import build_tree, random_bodies, random_state

SEEDS = range(8)


class Lagrangian:
    """Both forms at one random state."""

    def __init__(self, seed):
        rng = self.rng = np.random.default_rng(seed)
        self.tree = build_tree(random_bodies(rng, int(rng.integers(3, 16)), mimic=0.2 * (seed % 2)))
        self.nv = len(self.tree.armature)
        self.nq = self.nv + 1
        self.work = workspace(self.tree)
        self.q, self.v, _ = random_state(rng, self.nv)
        self.E, self.Edot = np.zeros((self.nv, self.nq)), np.zeros((self.nv, self.nq))
        lagrangian.velocity_map(self.q, self.E)
        self.qdot = np.linalg.pinv(self.E) @ self.v  # the one rate tangent to the unit sphere
        lagrangian.velocity_map_rate(self.qdot, self.Edot)
        self.M, self.N = self.matrices(self.q, self.v)
        self.M_mixed, self.h = np.zeros((self.nv, self.nv)), np.zeros(self.nv)
        mass_matrix(self.tree, self.q, self.work, self.M_mixed)
        nonlinear_effects(self.tree, self.q, self.v, self.work, self.h)
        self.gravity = -GRAVITY * self.M[:, 2]  # M [g; 0; 0]
        self.normal = np.r_[np.zeros(3), self.q[3:7], np.zeros(self.nv - 6)]  # S'S q

    def matrices(self, q, v):
        E, Edot = np.zeros((self.nv, self.nq)), np.zeros((self.nv, self.nq))
        lagrangian.velocity_map(q, E)
        lagrangian.velocity_map_rate(np.linalg.pinv(E) @ v, Edot)
        M, N, rows = np.zeros((self.nq, self.nq)), np.zeros((self.nq, self.nq)), np.zeros((12, self.nq))
        J, Jdot = E[3:6, 3:7].copy(), Edot[3:6, 3:7].copy()
        lagrangian.lagrangian_matrices(self.tree, q, v, J, Jdot, self.work, rows, M, N)
        return M, N

    def acceleration(self, force):
        qddot = np.zeros(self.nq)
        lagrangian.lagrangian_acceleration(
            self.q, self.qdot, self.M, self.N, force, np.zeros((self.nq, self.nq)), qddot
        )
        return qddot

    def residual(self, qddot, force):
        return self.M @ qddot + self.N @ self.qdot - force


@pytest.fixture(params=SEEDS)
def pair(request):
    return Lagrangian(request.param)


def relative(a, b):
    return np.max(np.abs(a - b)) / max(1.0, np.max(np.abs(b)))


def test_the_map_is_equation_10_on_tangent_rates():
    rng = np.random.default_rng(0)
    for _ in range(20):
        theta = rng.standard_normal(4)
        a, b, c, d = theta / np.linalg.norm(theta)
        R, J10, J = np.zeros((3, 3)), np.zeros((3, 4)), np.zeros((3, 4))
        quaternion_to_matrix(np.array([a, b, c, d]), R)
        dR = np.zeros((3, 3, 4))  # eq. 13
        dR[:, 0] = 2 * np.array([[2 * a, 2 * b, 0, 0], [d, c, b, a], [-c, d, -a, b]])
        dR[:, 1] = 2 * np.array([[-d, c, b, -a], [2 * a, 0, 2 * c, 0], [b, a, d, c]])
        dR[:, 2] = 2 * np.array([[c, d, a, b], [-b, -a, d, c], [2 * a, 0, 0, 2 * d]])
        lagrangian.angular_map(R, dR, J10)
        lagrangian.quaternion_map(np.array([a, b, c, d]), J)
        rate = rng.standard_normal(4)
        rate -= (rate @ [a, b, c, d]) * np.array([a, b, c, d])
        np.testing.assert_allclose(J @ rate, J10 @ rate, atol=1e-14)
        np.testing.assert_allclose(J @ [a, b, c, d], 0, atol=1e-15)
        omega = dR @ rate @ R.T  # [w x] = Rdot R' (eq. 3)
        np.testing.assert_allclose(J @ rate, [omega[2, 1], omega[0, 2], omega[1, 0]], atol=1e-14)


def test_matrices_are_those_of_the_mixed_form(pair):
    assert relative(pair.M, pair.E.T @ pair.M_mixed @ pair.E) < 1e-9
    coriolis = pair.N @ pair.qdot - pair.gravity
    assert relative(coriolis, pair.E.T @ (pair.M_mixed @ pair.Edot @ pair.qdot + pair.h)) < 1e-9


def test_mass_matrix_is_singular_along_the_quaternion_only(pair):
    values, vectors = np.linalg.eigh(pair.M)
    assert abs(values[0]) < 1e-12 * values[-1] < values[1]
    assert abs(abs(vectors[:, 0] @ pair.normal) - 1) < 1e-9


def test_rate_of_mass_matrix_minus_twice_N_is_skew(pair):
    step, moved = 1e-6, []
    for sign in (-1.0, 1.0):
        q = np.zeros(pair.nq)
        integrate(pair.q, pair.v, sign * step, q)
        moved.append(pair.matrices(q, pair.v)[0])
    S = (moved[1] - moved[0]) / (2 * step) - 2 * pair.N
    # The turned quaternion moves along the sphere with the rate that Edot assumes, up to step^2.
    assert np.max(np.abs(S + S.T)) < 1e-6 * np.max(np.abs(pair.N))


def test_both_forms_give_the_same_motion(pair):
    force = pair.rng.standard_normal(pair.nv) * 20
    qddot = pair.acceleration(pair.gravity + pair.E.T @ force)
    vd = np.zeros(pair.nv)
    forward_dynamics(pair.tree, pair.q, pair.v, force, pair.work, np.zeros((pair.nv, pair.nv)), vd)
    assert relative(pair.E @ qddot + pair.Edot @ pair.qdot, vd) < 1e-9
    assert abs(lagrangian.constraint(pair.q)) < 1e-15
    assert abs(lagrangian.constraint_acceleration(pair.q, pair.qdot, qddot)) < 1e-9 * max(1.0, np.max(np.abs(qddot)))


def test_the_multiplier_answers_only_to_a_force_along_the_quaternion(pair):
    physical = pair.gravity + pair.E.T @ pair.rng.standard_normal(pair.nv) * 20
    qddot = pair.acceleration(physical)
    scale = max(1.0, np.max(np.abs(pair.M @ qddot))) * np.linalg.norm(pair.q)
    for kappa in (0.0, 37.0, -4e3):
        force = physical + kappa * pair.normal
        with_artificial = pair.acceleration(force)
        assert relative(with_artificial, qddot) < 1e-9
        residual = pair.residual(with_artificial, force)
        for multiplier in (lagrangian.multiplier, lagrangian.multiplier_tangent):
            assert abs(multiplier(pair.q, residual) + kappa) < 1e-9 * max(scale, abs(kappa))
        # Equation 32 holds with that multiplier.
        assert np.max(np.abs(residual + kappa * pair.normal)) < 1e-9 * max(scale, abs(kappa))


@pytest.mark.parametrize("projector", [lagrangian.projector, lagrangian.projector_tangent])
def test_projectors_remove_the_multiplier_and_nothing_else(pair, projector):
    A = np.zeros((pair.nq, pair.nq))
    projector(pair.q, A)
    size = max(1.0, np.linalg.norm(A, 2))
    assert np.max(np.abs(A @ pair.normal)) < 1e-15 * size
    assert np.max(np.abs(A @ A - A)) < 1e-14 * size**2
    assert np.linalg.matrix_rank(A) == pair.nq - 1
    force = pair.gravity + pair.E.T @ pair.rng.standard_normal(pair.nv) + 50 * pair.normal
    residual = pair.residual(pair.acceleration(force), force)
    assert np.max(np.abs(A @ residual)) < 1e-9 * size * max(1.0, np.max(np.abs(pair.M)))  # eq. 35
    # With eq. 30 the projected equation still fixes the motion.
    system = np.vstack([A @ pair.M, pair.normal])
    right = np.r_[A @ (force - pair.N @ pair.qdot), -pair.qdot[3:7] @ pair.qdot[3:7]]
    qddot = np.linalg.lstsq(system, right, rcond=None)[0]
    assert relative(qddot, pair.acceleration(force)) < 1e-9 * size**2


def test_only_one_projector_minds_where_the_robot_stands(pair):
    norms = []
    for distance in (0.0, 1e4):
        q = pair.q.copy()
        q[0] += distance
        for projector in (lagrangian.projector, lagrangian.projector_tangent):
            A = np.zeros((pair.nq, pair.nq))
            projector(q, A)
            norms.append(np.linalg.norm(A, 2))
    assert norms[2] > 9e3
    assert abs(norms[1] - 1) < 1e-12
    assert abs(norms[3] - 1) < 1e-12
