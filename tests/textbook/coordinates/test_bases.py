"""S2: theorem 2, lemmas 3 to 5 and corollary 1, on five hundred random robots and states."""

import numpy as np
import pytest

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.errors import InputError
from mcplan.robot.pose import cross_matrix
from mcplan.textbook.coordinates import (
    average_velocity,
    configuration_from,
    configuration_in,
    convert_velocity,
    equations_of_motion,
    fixed_base,
    frame_jacobian_rate,
    locked_inertia,
    point_jacobian,
    to_centroid,
    to_com,
    to_frame,
    to_mixed_frame,
)
from tests.core.random_trees import random_state
from tests.textbook.coordinates.random_robots import random_robot

COUNT = 500
STEP = 1e-6


class Case:
    """A random robot at a random state, and a frame to change to."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.robot = random_robot(rng, int(rng.integers(2, 9)))
        self.q, self.v, self.vd = random_state(rng, self.robot.nv)
        self.frame, self.other = "tool", f"link{rng.integers(0, self.robot.n)}"
        self.tau = rng.normal(size=self.robot.n)
        self.wrenches = {self.other: rng.normal(size=6)}
        self.J = {frame: self.robot.frame_jacobian(self.q, frame) for frame in (self.frame, self.other)}
        self.phi = np.r_[np.zeros(6), self.tau] + self.J[self.other].T @ self.wrenches[self.other]
        self.equations = equations_of_motion(self.robot, self.q, self.v)
        self.changes = {
            "frame": to_frame(self.robot, self.q, self.v, self.frame),
            "mixed": to_mixed_frame(self.robot, self.q, self.v, self.frame, self.other),
            "com": to_com(self.robot, self.q, self.v),
            "centroid": to_centroid(self.robot, self.q, self.v),
        }


@pytest.fixture(scope="module")
def cases():
    return [Case(seed) for seed in range(COUNT)]


def near(a, b, tolerance=1e-10):
    """Whether two arrays agree, relative to the size of the numbers."""
    return np.max(np.abs(a - b), initial=0.0) <= tolerance * max(1.0, np.max(np.abs(a)), np.max(np.abs(b)))


def test_the_equations_are_the_robots(cases):
    """Lemma 2, properties 1 and 2, and the momentum in the first six rows (theorem 1)."""
    for c in cases:
        e, robot = c.equations, c.robot
        assert near(e.M, robot.mass_matrix(c.q))
        assert near(e.C @ c.v + e.G, robot.nonlinear_effects(c.q, c.v))
        assert near(e.G, GRAVITY * e.M[:, 2])
        momentum = robot.centroidal_momentum_matrix(c.q) @ c.v
        assert near(e.M[:3] @ c.v, momentum[:3])
        arm = robot.com(c.q) - c.q[:3]
        assert near(e.M[3:6] @ c.v, momentum[3:] + np.cross(arm, momentum[:3]))


def test_the_coriolis_matrix_makes_the_rate_of_M(cases):
    """Property 2 as ``M_rate = C + C'``, the rate differenced along the motion."""
    for c in cases[:40]:
        ahead, back = (c.robot.mass_matrix(c.robot.integrate(c.q, c.v, s * STEP)) for s in (1, -1))
        assert near((ahead - back) / (2 * STEP), c.equations.M_rate, 1e-7)


def test_lemma_3_state_velocity_forces_jacobians(cases):
    for c in cases:
        robot, change = c.robot, c.changes["frame"]
        q_D = configuration_in(robot, c.q, c.frame)
        assert near(q_D[:3], robot.frame_pose(c.q, c.frame)[:3, 3])
        assert near(robot.difference(c.q, configuration_from(robot, q_D, c.frame)), np.zeros(robot.nv))
        nu_D = change.velocity(c.v)
        assert near(nu_D, np.r_[c.J[c.frame] @ c.v, c.v[6:]])
        phi_D = change.force(c.phi)
        assert abs(phi_D @ nu_D - c.phi @ c.v) <= 1e-10 * max(1.0, np.abs(c.phi) @ np.abs(c.v))
        assert near(change.force(np.r_[np.zeros(6), c.tau])[6:], c.tau)  # remark 2
        assert near(change.jacobian(c.J[c.other]) @ nu_D, c.J[c.other] @ c.v)
        assert near(change.jacobian(c.J[c.frame]), np.eye(6, robot.nv))  # eq. 49
        # back to where it came from
        assert near((change.inverse @ change).T, np.eye(robot.nv))
        assert near((change.inverse @ change).T_rate, np.zeros((robot.nv, robot.nv)), 1e-9)


def test_the_new_velocity_belongs_to_the_new_state(cases):
    """``q_D`` moves by ``nu_D``: the manifold's difference along the motion (eq. 22a)."""
    for c in cases[:40]:
        ahead, back = (configuration_in(c.robot, c.robot.integrate(c.q, c.v, s * STEP), c.frame) for s in (1, -1))
        rate = c.robot.difference(back, ahead) / (2 * STEP)
        assert near(rate, c.changes["frame"].velocity(c.v), 1e-7)


@pytest.mark.parametrize("base", ["frame", "mixed", "com", "centroid"])
def test_theorem_2(cases, base):
    """Motion, kinetic energy and skew symmetry in another base, link, mixed or centroidal."""
    for c in cases:
        change, old = c.changes[base], c.equations
        new = change.equations(old)
        vd = c.robot.forward_dynamics(c.q, c.v, c.phi)
        assert near(new.force(change.acceleration(c.v, vd)), change.force(c.phi), 1e-9)
        assert abs(new.kinetic_energy - old.kinetic_energy) <= 1e-10 * max(1.0, old.kinetic_energy)
        # of M_D = T^-T M T^-1 by the product rule, with M_rate = C + C'
        back = change.inverse
        M_rate = back.T_rate.T @ old.M @ back.T + back.T.T @ old.M_rate @ back.T + back.T.T @ old.M @ back.T_rate
        assert near(M_rate, new.M_rate)
        skew = M_rate - 2 * new.C
        assert near(skew, -skew.T)


@pytest.mark.parametrize("base", ["frame", "mixed", "com", "centroid"])
def test_rates_of_the_changes(cases, base):
    make = {
        "frame": lambda c, q: to_frame(c.robot, q, c.v, c.frame),
        "mixed": lambda c, q: to_mixed_frame(c.robot, q, c.v, c.frame, c.other),
        "com": lambda c, q: to_com(c.robot, q, c.v),
        "centroid": lambda c, q: to_centroid(c.robot, q, c.v),
    }[base]
    for c in cases[:40]:
        ahead, back = (make(c, c.robot.integrate(c.q, c.v, s * STEP)).T for s in (1, -1))
        assert near((ahead - back) / (2 * STEP), c.changes[base].T_rate, 1e-7)


def test_mixed_frame_has_the_velocities_of_both(cases):
    for c in cases:
        nu = c.changes["mixed"].velocity(c.v)
        assert near(nu[:6], np.r_[c.J[c.frame][:3] @ c.v, c.J[c.other][3:] @ c.v])


def test_centroidal_velocity(cases):
    """Eq. 30 to 34: the centre of mass, the momentum, and the kinetic energy of the average motion."""
    for c in cases:
        momentum = c.robot.centroidal_momentum_matrix(c.q) @ c.v
        inertia, average = locked_inertia(c.robot, c.q), average_velocity(c.robot, c.q, c.v)
        assert near(inertia[:3], np.hstack([c.robot.mass * np.eye(3), np.zeros((3, 3))]))
        assert near(inertia @ average, momentum)
        assert near(average[:3], c.robot.com_jacobian(c.q) @ c.v)
        assert near(c.changes["centroid"].velocity(c.v)[:6], average)
        assert near(c.changes["com"].velocity(c.v)[:6], np.r_[average[:3], c.v[3:6]])


def test_locked_joints_turn_at_the_average_velocity():
    """An impulse that stops all joints leaves a rigid body with the average angular velocity (S2 section 5.2)."""
    c = Case(3)
    # M dv = S' impulse with the joints at rest afterwards
    M = c.equations.M
    after = np.r_[np.linalg.solve(M[:6, :6], M[:6] @ c.v), np.zeros(c.robot.n)]
    assert near(after[3:6], average_velocity(c.robot, c.q, c.v)[3:])


def test_lemma_4(cases):
    """Block-diagonal M_G, constant G_G, and C_G without anything for the centre of mass."""
    for c in cases:
        new = c.changes["centroid"].equations(c.equations)
        size = max(1.0, np.abs(c.equations.M).max()) * 1e-10
        assert np.abs(new.M[:3, :3] - c.robot.mass * np.eye(3)).max() < size
        assert np.abs(new.M[:3, 3:]).max() < size
        assert np.abs(new.M[3:6, 6:]).max() < size
        assert near(new.M[3:6, 3:6], locked_inertia(c.robot, c.q)[3:, 3:])
        assert np.abs(new.G - np.r_[0, 0, c.robot.mass * GRAVITY, np.zeros(c.robot.nv - 3)]).max() < 10 * size
        size = max(1.0, np.abs(c.equations.C).max()) * 1e-10
        assert np.abs(new.C[:3]).max() < size
        assert np.abs(new.C[:, :3]).max() < size


def test_lemma_5_and_the_wrench_in_closed_form(cases):
    """Joint accelerations and contact wrench against the equations with the constraint, solved as one system."""
    for c in cases:
        held = fixed_base(c.robot, c.q, c.v[6:], c.frame)
        J, J_rate, v = c.J[c.frame], frame_jacobian_rate(c.robot, c.q, held.v, c.frame), held.v
        assert near(J @ v, np.zeros(6))
        assert near(v[6:], c.v[6:])
        M, h = c.robot.mass_matrix(c.q), c.robot.nonlinear_effects(c.q, v)
        system = np.block([[M, -J.T], [J, np.zeros((6, 6))]])
        solution = np.linalg.solve(system, np.r_[c.phi - h, -J_rate @ v])
        s, f = held.acceleration(c.tau, c.wrenches), held.contact_wrench(c.tau, c.wrenches)
        assert near(s, solution[6 : c.robot.nv], 1e-9)
        assert near(f, solution[c.robot.nv :], 1e-9)
        assert near(held.jacobian(c.other) @ c.v[6:], c.J[c.other] @ v)


def test_the_fixed_base_inherits_the_skew_symmetry(cases):
    for c in cases[:40]:
        held = fixed_base(c.robot, c.q, c.v[6:], c.frame)
        ahead, back = (
            fixed_base(c.robot, c.robot.integrate(c.q, held.v, s * STEP), c.v[6:], c.frame).M for s in (1, -1)
        )
        assert near((ahead - back) / (2 * STEP), held.C + held.C.T, 1e-7)


def test_corollary_1_with_the_inverse(cases):
    """The matrix that eq. 48 inverts is ``J M^-1 J'``. Its inverse is the articulated inertia, not the composite one.

    What the corollary says of ``J M J'`` holds, but of a matrix that eq. 48 does not contain.
    """
    for c in cases:
        eom = c.changes["frame"].equations(c.equations)
        J = np.eye(6, c.robot.nv)
        X = np.eye(6)  # the composite inertia moves from the centre of mass to the frame's origin
        arm = c.robot.com(c.q) - c.robot.frame_pose(c.q, c.frame)[:3, 3]
        X[3:, :3] = cross_matrix(arm)
        composite = X @ locked_inertia(c.robot, c.q) @ X.T
        assert near(J @ eom.M @ J.T, composite)
        articulated = np.linalg.inv(J @ np.linalg.solve(eom.M, J.T))
        F, H = eom.M[:6, 6:], eom.M[6:, 6:]
        assert near(articulated, composite - F @ np.linalg.solve(H, F.T), 1e-9)
        assert np.linalg.norm(articulated - composite) > 1e-4 * np.linalg.norm(composite)


def test_a_push_meets_the_articulated_inertia():
    """A wrench on a free robot at rest accelerates its frame by ``J M^-1 J'``, in the engine's own forward dynamics."""
    c = Case(5)
    rest = np.zeros(c.robot.nv)
    change = to_frame(c.robot, c.q, rest, c.frame)
    M = change.equations(equations_of_motion(c.robot, c.q, rest)).M
    w, J = np.array([3.0, -1.0, 2.0, 0.2, -0.4, 0.1]), c.J[c.frame]
    pushed = c.robot.forward_dynamics(c.q, rest, J.T @ w) - c.robot.forward_dynamics(c.q, rest, 0 * rest)
    assert near(J @ pushed, np.linalg.inv(M)[:6, :6] @ w)


def test_wrong_sizes_are_refused():
    c = Case(0)
    with pytest.raises(InputError, match="joint_rates has the shape"):
        fixed_base(c.robot, c.q, c.v, c.frame)
    with pytest.raises(InputError, match="tau has the shape"):
        fixed_base(c.robot, c.q, c.v[6:], c.frame).acceleration(c.phi)


def test_batches_and_what_is_no_state_are_refused():
    c = Case(0)
    robot, q, v = c.robot, c.q, c.v
    many, rates = np.tile(q, (2, 1)), np.tile(v, (2, 1))
    for call in (
        lambda: equations_of_motion(robot, many, rates),
        lambda: frame_jacobian_rate(robot, many, rates, c.frame),
        lambda: locked_inertia(robot, many),
        lambda: average_velocity(robot, many, rates),
        lambda: point_jacobian(robot, many, c.frame),
        lambda: configuration_in(robot, many, c.frame),
        lambda: to_frame(robot, many, v, c.frame),
    ):
        with pytest.raises(InputError, match=rf"q has the shape \(2, {robot.nq}\); expected \({robot.nq},\)"):
            call()
    with pytest.raises(InputError, match="v = 'fast'; expected an array of numbers"):
        average_velocity(robot, q, "fast")
    with pytest.raises(InputError, match="v has the shape"):
        average_velocity(robot, q, v[1:])
    with pytest.raises(InputError, match=r"velocity has the shape \(5,\); expected \(6,\)"):
        convert_velocity(np.zeros(5), np.eye(4), "body", "mixed")
    with pytest.raises(InputError, match="all zero, which is no rotation"):
        configuration_from(robot, np.zeros(robot.nq), c.frame)
