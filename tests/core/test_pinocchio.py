"""Agreement with Pinocchio, an engine that nobody here wrote, to 1e-9 relative over random trees."""

import numpy as np
import pinocchio as pin
import pytest

from mcplan.core.rigid_body.com import centroidal_momentum_bias, centroidal_momentum_matrix, com, com_jacobian
from mcplan.core.rigid_body.forward_dynamics import forward_dynamics
from mcplan.core.rigid_body.frame import frame_bias_acceleration, frame_jacobian, frame_pose
from mcplan.core.rigid_body.inverse_dynamics import inverse_dynamics, nonlinear_effects
from mcplan.core.rigid_body.mass_matrix import mass_matrix
from mcplan.core.rigid_body.tree import workspace
from tests.core.random_trees import (
    build_pinocchio,
    build_tree,
    coupling,
    pinocchio_acceleration,
    pinocchio_q,
    random_bodies,
    random_state,
    to_body_axes,
)


def assert_close(ours, theirs, what, tolerance=1e-9):
    error = np.max(np.abs(ours - theirs)) / max(1.0, np.max(np.abs(theirs)))
    assert error < tolerance, f"{what}: relative error {error:.1e}"


def compare(rng, bodies):
    tree, model = build_tree(bodies), build_pinocchio(bodies)
    data, work, nv = model.createData(), workspace(tree), len(tree.armature)
    q, v, vd = random_state(rng, nv)
    C = coupling(bodies)
    T = to_body_axes(q, len(C)) @ C  # v_pin = T v
    qp, vp = pinocchio_q(bodies, q), T @ v
    C_vd = C @ vd
    ap = pinocchio_acceleration(q, C @ v, C_vd)
    bias = pinocchio_acceleration(q, C @ v, 0 * C_vd)
    # Armature of a mimic joint is none of its own: it is zero in the description, so that C' diag C is our diagonal.
    M, h, force = np.full((nv, nv), np.nan), np.full(nv, np.nan), np.full(nv, np.nan)
    mass_matrix(tree, q, work, M)
    pin.crba(model, data, qp, pin.Convention.WORLD)
    M_pin = np.triu(data.M) + np.triu(data.M, 1).T
    assert_close(M, T.T @ M_pin @ T, "mass matrix")
    nonlinear_effects(tree, q, v, work, h)
    assert_close(h, T.T @ pin.rnea(model, data, qp, vp, bias), "nonlinear effects")
    inverse_dynamics(tree, q, v, vd, work, force)
    assert_close(force, T.T @ pin.rnea(model, data, qp, vp, ap), "inverse dynamics")

    back = np.full(nv, np.nan)
    forward_dynamics(tree, q, v, force, work, np.zeros((nv, nv)), back)
    # The solution carries the condition of M; the residual does not.
    scale = np.abs(M) @ np.abs(back) + np.abs(h) + np.abs(force)
    assert np.max(np.abs(M @ back + h - force) / scale) < 1e-9
    assert np.max(np.abs(back - vd)) < 1e-9 * max(1.0, np.max(np.abs(vd))) * max(1.0, np.linalg.cond(M) * 1e-6)

    c, J_c, A, b = np.zeros(3), np.full((3, nv), np.nan), np.full((6, nv), np.nan), np.full(6, np.nan)
    com_jacobian(tree, q, work, c, J_c)
    assert_close(c, pin.centerOfMass(model, data, qp), "centre of mass")
    assert_close(J_c, pin.jacobianCenterOfMass(model, data, qp) @ T, "CoM Jacobian")
    com(tree, q, work, b[:3])
    assert_close(b[:3], c, "centre of mass alone", 1e-13)
    centroidal_momentum_matrix(tree, q, work, A)
    assert_close(A, pin.ccrba(model, data, qp, vp) @ T, "momentum matrix")
    centroidal_momentum_bias(tree, q, v, work, b)
    assert_close(b, pin.computeCentroidalMomentumTimeVariation(model, data, qp, vp, bias).vector, "momentum bias")

    i = int(rng.integers(len(bodies)))
    placement = pin.SE3.Random()
    frame = model.addFrame(pin.Frame("probe", i + 1, 0, placement, pin.FrameType.OP_FRAME))
    data = model.createData()
    offset = np.concatenate([placement.rotation.ravel(), placement.translation])
    X, J, a = np.full((4, 4), np.nan), np.full((6, nv), np.nan), np.full(6, np.nan)
    pin.forwardKinematics(model, data, qp, vp, bias)
    pin.updateFramePlacements(model, data)
    frame_pose(tree, q, i, offset, work, X)
    assert_close(X, data.oMf[frame].homogeneous, "frame pose")
    frame_jacobian(tree, q, i, offset, work, J)
    world = pin.LOCAL_WORLD_ALIGNED
    assert_close(J, pin.computeFrameJacobian(model, data, qp, frame, world) @ T, "frame Jacobian")
    frame_bias_acceleration(tree, q, v, i, offset, work, a)
    pin.forwardKinematics(model, data, qp, vp, bias)
    assert_close(a, pin.getFrameClassicalAcceleration(model, data, frame, world).vector, "frame bias")


@pytest.mark.parametrize("block", range(10))
def test_random_trees(block):
    rng = np.random.default_rng(100 + block)
    pin.seed(100 + block)
    for _ in range(100):
        compare(rng, random_bodies(rng, int(rng.integers(3, 61)), branching=rng.choice([0.0, 0.3, 0.6])))


def test_mimic_joints():
    rng = np.random.default_rng(7)
    pin.seed(7)
    for _ in range(60):
        compare(rng, random_bodies(rng, int(rng.integers(3, 31)), mimic=0.3))
