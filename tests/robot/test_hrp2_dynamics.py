"""HRP-2's dynamics against Pinocchio, which reads the same URDF with its own parser."""

import numpy as np
import pinocchio as pin
import pytest

from mcplan.robot.robot_file import load_robot
from mcplan.robot.terms import Terms


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2")


@pytest.fixture(scope="module")
def peer(robot):
    """Pinocchio's model with the locked joints fixed, and where each of our joints is in it."""
    full = pin.buildModelFromUrdf(str(robot.urdf_path), pin.JointModelFreeFlyer())
    q = pin.neutral(full)
    for name, value in robot.locked.items():
        q[full.joints[full.getJointId(name)].idx_q] = value
    model = pin.buildReducedModel(full, [full.getJointId(name) for name in robot.locked], q)
    index = np.array([model.joints[model.getJointId(name)].idx_v for name in robot.joint_names])
    armature = np.zeros(model.nv)
    armature[index] = robot.armature
    model.armature = armature
    return model, model.createData(), index


def states(robot, count=20):
    rng = np.random.default_rng(41)
    for seed in range(count):
        yield robot.random_configuration(seed), rng.standard_normal(robot.nv), rng.standard_normal(robot.nv)


def conversion(robot, peer, q):
    """``v_pin = T v`` and ``q_pin``: base twist in body axes, joints in Pinocchio's order."""
    model, _, index = peer
    T = np.zeros((model.nv, robot.nv))
    R = pin.Quaternion(*q[3:7]).matrix()
    T[:3, :3] = T[3:6, 3:6] = R.T
    T[index, np.arange(6, robot.nv)] = 1.0
    q_pin = np.zeros(model.nq)
    q_pin[:3], q_pin[3:6], q_pin[6] = q[:3], q[4:7], q[3]
    q_pin[index + 1] = q[7:]
    return T, q_pin


def spin(v, vd):
    return np.r_[vd[:3] - np.cross(v[3:6], v[:3]), vd[3:]]


def assert_close(ours, theirs):
    assert np.max(np.abs(ours - theirs)) < 1e-9 * max(1.0, np.max(np.abs(theirs)))


def test_it_is_the_same_robot(robot, peer):
    model, _, _ = peer
    assert model.nv == robot.nv
    assert abs(pin.computeTotalMass(model) - robot.mass) < 1e-9


def test_dynamics(robot, peer):
    model, data, _ = peer
    for q, v, vd in states(robot):
        T, qp = conversion(robot, peer, q)
        pin.crba(model, data, qp, pin.Convention.WORLD)
        M = T.T @ (np.triu(data.M) + np.triu(data.M, 1).T) @ T
        assert_close(robot.mass_matrix(q), M)
        h = T.T @ pin.rnea(model, data, qp, T @ v, T @ spin(v, 0 * vd))
        assert_close(robot.nonlinear_effects(q, v), h)
        force = T.T @ pin.rnea(model, data, qp, T @ v, T @ spin(v, vd))
        assert_close(robot.inverse_dynamics(q, v, vd), force)
        assert_close(robot.forward_dynamics(q, v, force), vd)
        assert_close(robot.com(q), pin.centerOfMass(model, data, qp))
        assert_close(robot.com_jacobian(q), pin.jacobianCenterOfMass(model, data, qp) @ T)
        assert_close(robot.centroidal_momentum_matrix(q), pin.ccrba(model, data, qp, T @ v) @ T)


def test_terms_at_every_link(robot, peer):
    model, data, _ = peer
    links = [name for name in robot.link_names if model.existFrame(name, pin.FrameType.BODY)]
    assert len(links) == len(robot.link_names)
    terms = Terms(robot, links)
    for q, v, _ in states(robot, 5):
        T, qp = conversion(robot, peer, q)
        terms.update(q, v)
        pin.forwardKinematics(model, data, qp, T @ v, T @ spin(v, np.zeros(robot.nv)))
        pin.computeJointJacobians(model, data, qp)
        pin.updateFramePlacements(model, data)
        for name in links:
            frame, ours = model.getFrameId(name, pin.FrameType.BODY), terms.frame(name)
            assert_close(ours.R, data.oMf[frame].rotation)
            assert_close(ours.p, data.oMf[frame].translation)
            assert_close(ours.J, pin.getFrameJacobian(model, data, frame, pin.LOCAL_WORLD_ALIGNED) @ T)
            bias = pin.getFrameClassicalAcceleration(model, data, frame, pin.LOCAL_WORLD_ALIGNED)
            assert_close(ours.bias, bias.vector)
        b = pin.computeCentroidalMomentumTimeVariation(model, data, qp, T @ v, T @ spin(v, np.zeros(robot.nv)))
        assert_close(terms.momentum_bias, b.vector)
        assert_close(terms.momentum, data.hg.vector)
        assert_close(terms.com_velocity, data.hg.linear / robot.mass)


def test_a_leading_axis_is_one_after_the_other(robot):
    q, v, vd = (np.array(x) for x in zip(*states(robot, 5), strict=True))
    link = robot.link_names[-1]
    for method, arguments in (
        (robot.mass_matrix, (q,)),
        (robot.nonlinear_effects, (q, v)),
        (robot.inverse_dynamics, (q, v, vd)),
        (robot.forward_dynamics, (q, v, vd)),
        (robot.com, (q,)),
        (robot.com_jacobian, (q,)),
        (robot.centroidal_momentum_matrix, (q,)),
        (lambda q: robot.frame_pose(q, link), (q,)),
        (lambda q: robot.frame_jacobian(q, link), (q,)),
        (lambda q, v: robot.frame_bias_acceleration(q, v, link), (q, v)),
        (lambda q, v: robot.integrate(q, v, 0.1), (q, v)),
        (robot.difference, (q, q[::-1])),
    ):
        together = method(*arguments)
        for b in range(len(q)):
            assert_close(together[b], method(*(x[b] for x in arguments)))
    # One state may be shared by a batch of velocities.
    assert_close(robot.nonlinear_effects(q[0], v)[3], robot.nonlinear_effects(q[0], v[3]))
