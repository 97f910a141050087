"""Terms against the single kernels, which tests/core compares with Pinocchio."""

from types import SimpleNamespace

import numpy as np
import pytest

from mcplan.core.rigid_body.com import centroidal_momentum_bias, centroidal_momentum_matrix
from mcplan.core.rigid_body.frame import frame_bias_acceleration, frame_jacobian, frame_pose
from mcplan.core.rigid_body.inverse_dynamics import nonlinear_effects
from mcplan.core.rigid_body.manifold import integrate
from mcplan.core.rigid_body.mass_matrix import mass_matrix
from mcplan.core.rigid_body.tree import workspace
from mcplan.errors import InputError
from mcplan.robot.terms import Terms
from tests.core.random_trees import build_tree, random_bodies, random_rotation, random_state


@pytest.fixture(params=[0.0, 0.3], ids=["plain", "mimic"])
def robot(request):
    rng = np.random.default_rng(11)
    tree = build_tree(random_bodies(rng, 20, mimic=request.param))
    places = {"base": 0, "hand": 20, "elbow": 12, "knee": 5}
    frames = {n: (b, np.r_[random_rotation(rng).ravel(), rng.standard_normal(3)]) for n, b in places.items()}
    return SimpleNamespace(tree=tree, frame=frames.__getitem__, names=tuple(places))


def test_terms_equal_the_single_kernels(robot):
    tree, rng = robot.tree, np.random.default_rng(12)
    nv, work = len(tree.armature), workspace(tree)
    terms = Terms(robot, robot.names)
    for _ in range(5):
        q, v, _ = random_state(rng, nv)
        terms.update(q, v)
        np.testing.assert_array_equal(terms.q, q)
        np.testing.assert_array_equal(terms.v, v)
        M, h, A, b = np.zeros((nv, nv)), np.zeros(nv), np.zeros((6, nv)), np.zeros(6)
        mass_matrix(tree, q, work, M)
        nonlinear_effects(tree, q, v, work, h)
        centroidal_momentum_matrix(tree, q, work, A)
        centroidal_momentum_bias(tree, q, v, work, b)
        np.testing.assert_allclose(terms.M, M, rtol=1e-12, atol=1e-10)
        np.testing.assert_allclose(terms.h, h, rtol=1e-11, atol=1e-9)
        np.testing.assert_allclose(terms.momentum_matrix, A, atol=1e-11)
        np.testing.assert_allclose(terms.momentum, A @ v, atol=1e-10)
        np.testing.assert_allclose(terms.momentum_bias, b, atol=1e-9)
        for name in robot.names:
            X, J, a = np.zeros((4, 4)), np.zeros((6, nv)), np.zeros(6)
            frame_pose(tree, q, *robot.frame(name), work, X)
            frame_jacobian(tree, q, *robot.frame(name), work, J)
            frame_bias_acceleration(tree, q, v, *robot.frame(name), work, a)
            frame = terms.frame(name)
            np.testing.assert_allclose(frame.R, X[:3, :3], atol=1e-13)
            np.testing.assert_allclose(frame.p, X[:3, 3], atol=1e-13)
            np.testing.assert_allclose(frame.J, J, atol=1e-12)
            np.testing.assert_allclose(frame.bias, a, atol=1e-10)
            np.testing.assert_allclose(frame.velocity, J @ v, atol=1e-11)


def test_com_rows_are_the_derivatives_of_com(robot):
    nv, rng = len(robot.tree.armature), np.random.default_rng(13)
    terms, step, moved = Terms(robot), 1e-6, np.zeros(len(robot.tree.armature) + 1)
    q, v, _ = random_state(rng, nv)
    at = []
    for sign in (-1.0, 1.0):
        integrate(q, v, sign * step, moved)
        terms.update(moved, v)
        at.append((terms.com.copy(), terms.com_velocity.copy(), terms.momentum.copy()))
    terms.update(q, v)
    np.testing.assert_allclose(terms.com_jacobian @ v, terms.com_velocity, atol=1e-13)
    # Central differences: truncation step^2 = 1e-12 times third derivatives of about 1e2, rounding 1e-16 / step.
    np.testing.assert_allclose((at[1][0] - at[0][0]) / (2 * step), terms.com_velocity, atol=1e-8)
    np.testing.assert_allclose((at[1][1] - at[0][1]) / (2 * step), terms.com_bias, atol=1e-7)
    np.testing.assert_allclose((at[1][2] - at[0][2]) / (2 * step), terms.momentum_bias, atol=1e-5)


def test_what_is_wrong_is_named(robot):
    terms = Terms(robot, ["hand"])
    with pytest.raises(InputError, match="q has shape"):
        terms.update(np.zeros(3), np.zeros(len(robot.tree.armature)))
    with pytest.raises(InputError, match=r"foot.*hand"):
        terms.frame("foot")
