"""Ball joints in the tree: against Pinocchio's, whose coordinates are unit quaternions and whose rates are turns."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

from mcplan.core.rigid_body.com import com_jacobian
from mcplan.core.rigid_body.forward_dynamics import articulated_body
from mcplan.core.rigid_body.frame import frame_bias_acceleration, frame_jacobian
from mcplan.core.rigid_body.inverse_dynamics import inverse_dynamics
from mcplan.core.rigid_body.lagrangian import lagrangian_matrices
from mcplan.core.rigid_body.mass_matrix import mass_matrix
from mcplan.core.rigid_body.tree import BALL, PARENT, TYPE, parents_of, workspace
from tests.core.random_trees import pinocchio_acceleration, random_state, to_body_axes, with_balls


def left_jacobian(phi):
    """By its series: ``sum [phi]^k / (k + 1)!``."""
    x, y, z = phi
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    total, term = np.eye(3), np.eye(3)
    for k in range(1, 60):
        term = term @ K / (k + 1)
        total = total + term
    return total


def converted(tree, first, q, v, vd):
    """The state in Pinocchio's coordinates, T with ``v_pin = T v``, and the acceleration."""
    h = 1e-5
    T = to_body_axes(q, len(v))
    out = [*q[:3], *q[4:7], q[3]]
    acceleration = pinocchio_acceleration(q, v, vd)
    k = 6
    while k < len(v):
        phi = q[k + 1 : k + 4]
        if k not in first:
            out.append(q[k + 1])
            k += 1
            continue
        out += [*Rotation.from_rotvec(phi).as_quat()]
        rate = v[k : k + 3]
        T[k : k + 3, k : k + 3] = left_jacobian(phi).T
        change = (left_jacobian(phi + h * rate) - left_jacobian(phi - h * rate)).T / (2 * h)
        acceleration[k : k + 3] = left_jacobian(phi).T @ vd[k : k + 3] + change @ rate
        k += 3
    return np.array(out), T, acceleration


@pytest.mark.parametrize("size", [1.5, 1e-3, 0.0])
def test_dynamics_are_pinocchios(size):
    rng = np.random.default_rng(5)
    tree, model, last, first = with_balls(rng)
    data, work = model.createData(), workspace(tree)
    q, v, vd = random_state(rng, len(tree.armature))
    for k in first:
        q[k + 1 : k + 4] *= size / 3.0
    x, T, a = converted(tree, first, q, v, vd)
    nv = len(v)
    M, tau, J, bias = np.zeros((nv, nv)), np.zeros(nv), np.zeros((6, nv)), np.zeros(6)
    c, Jc = np.zeros(3), np.zeros((3, nv))
    mass_matrix(tree, q, work, M)
    pin.crba(model, data, x)
    full = np.triu(data.M) + np.triu(data.M, 1).T
    np.testing.assert_allclose(M, T.T @ full @ T, atol=1e-9)
    inverse_dynamics(tree, q, v, vd, work, tau)
    np.testing.assert_allclose(tau, T.T @ pin.rnea(model, data, x, T @ v, a), atol=1e-6)
    found = np.zeros(nv)
    articulated_body(tree, q, v, tau, work, found)
    np.testing.assert_allclose(found, vd, atol=1e-8)
    body, offset = len(tree.topology) - 1, np.array([1.0, 0, 0, 0, 1, 0, 0, 0, 1, 0.1, -0.2, 0.3])
    frame_jacobian(tree, q, body, offset, work, J)
    pin.computeJointJacobians(model, data, x)
    X = data.oMi[last] * pin.SE3(np.eye(3), offset[9:])
    spin = pin.SE3(X.rotation, np.zeros(3)).action @ pin.SE3(np.eye(3), offset[9:]).actionInverse
    np.testing.assert_allclose(J, spin @ pin.getJointJacobian(model, data, last, pin.LOCAL) @ T, atol=1e-9)
    frame_bias_acceleration(tree, q, v, body, offset, work, bias)
    h = 1e-6
    ahead, behind = (moved(q, s * h * v) for s in (1, -1))
    J2, J1 = np.zeros((6, nv)), np.zeros((6, nv))
    frame_jacobian(tree, ahead, body, offset, work, J2)
    frame_jacobian(tree, behind, body, offset, work, J1)
    np.testing.assert_allclose(bias, (J2 - J1) @ v / (2 * h), atol=1e-6)
    com_jacobian(tree, q, work, c, Jc)
    np.testing.assert_allclose(Jc, pin.jacobianCenterOfMass(model, data, x) @ T, atol=1e-9)


def test_the_matrices_of_lagrange_give_newton_eulers_forces():
    rng = np.random.default_rng(6)
    tree, _, _, first = with_balls(rng)
    work, nv = workspace(tree), len(tree.armature)
    q, v, vd = random_state(rng, nv)
    for k in first:
        q[k + 1 : k + 4] *= 0.5
    M, N, rows, tau = np.zeros((nv, nv)), np.zeros((nv, nv)), np.zeros((12, nv)), np.zeros(nv)
    lagrangian_matrices(tree, q, v, np.eye(3), np.zeros((3, 3)), work, rows, M, N)
    inverse_dynamics(tree, q, v, vd, work, tau)
    weight = np.zeros(nv)
    inverse_dynamics(tree, q, 0 * v, 0 * vd, work, weight)
    np.testing.assert_allclose(M @ vd + N @ v + weight, tau, atol=1e-8)


def test_the_bodies_of_a_ball_joint_hang_on_what_the_joint_does():
    tree, *_ = with_balls(np.random.default_rng(7))
    kind, parent, found = tree.topology[:, TYPE], tree.topology[:, PARENT], parents_of(tree)
    starts = np.flatnonzero(kind == BALL)
    assert len(starts) > 0
    for i in starts:
        assert found[i : i + 3].tolist() == [parent[i]] * 3
    others = kind < BALL
    assert found[others].tolist() == parent[others].tolist()


def moved(q, step):
    out = np.array(q)
    out[:3] += step[:3]
    turn = Rotation.from_rotvec(step[3:6]) * Rotation.from_quat(q[[4, 5, 6, 3]])
    x, y, z, w = turn.as_quat()
    out[3:7] = w, x, y, z
    out[7:] += step[6:]
    return out
