"""The verifier's dynamics against Pinocchio, and its rotations against their definitions."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from mcplan.certificate.independent import (
    Mechanism,
    deviation,
    integrate,
    pose_twist,
    quaternion_step,
    rotation_of,
    rotation_vector,
)
from tests.sim.random_robots import random_record, random_states, urdf_text


def pinocchio_forces(record, q, v, vd, wrench, patches):
    """CoM, ``M vd + h - sum J' w`` and patch poses by Pinocchio, in the mixed convention."""
    model = pin.buildModelFromXML(urdf_text(record), pin.JointModelFreeFlyer())
    data = model.createData()
    # columns of Pinocchio's joint vector in the order of the record
    order = [model.joints[model.getJointId(name)].idx_v for name in record.coordinates]
    R = Rotation.from_quat(q[[4, 5, 6, 3]]).as_matrix()
    q_pin, v_pin, a_pin = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv)
    q_pin[:3], q_pin[3:7] = q[:3], q[[4, 5, 6, 3]]
    q_pin[1 + np.array(order)] = q[7:]
    v_pin[:3], v_pin[3:6], v_pin[order] = R.T @ v[:3], R.T @ v[3:6], v[6:]
    a_pin[:3] = R.T @ (vd[:3] - np.cross(v[3:6], v[:3]))
    a_pin[3:6], a_pin[order] = R.T @ vd[3:6], vd[6:]
    force_pin = pin.rnea(model, data, q_pin, v_pin, a_pin)
    pin.framesForwardKinematics(model, data, q_pin)
    poses = []
    for name, w in zip(patches, wrench, strict=True):
        patch = next(p for p in record.patches if p.name == name)
        frame = model.getFrameId(record.links[patch.link].name)
        X = data.oMf[frame]
        place = X.act(np.array(patch.p))
        J = pin.computeFrameJacobian(model, data, q_pin, frame, pin.LOCAL_WORLD_ALIGNED)
        moment = w[3:] + np.cross(place - X.translation, w[:3])
        force_pin = force_pin - J.T @ np.concatenate([w[:3], moment])
        poses.append((X.rotation @ np.array(patch.R), place))
    force = np.concatenate(
        [R @ force_pin[:3], R @ force_pin[3:6], force_pin[order] + np.array(record.armature) * vd[6:]]
    )
    return pin.centerOfMass(model, data, q_pin).copy(), force, poses


@pytest.mark.parametrize("seed", range(12))
def test_forces_com_and_poses_agree_with_pinocchio(seed):
    record = random_record(seed, links=6 + seed)
    patches = [patch.name for patch in record.patches]
    q, v, vd = random_states(record, seed, 5)
    wrench = np.random.default_rng(seed).normal(0, 100, (5, len(patches), 6))
    motion = Mechanism(record).motion(q, v, vd, wrench, patches)
    for k in range(5):
        com, force, poses = pinocchio_forces(record, q[k], v[k], vd[k], wrench[k], patches)
        np.testing.assert_allclose(motion.com[k], com, atol=1e-12)
        np.testing.assert_allclose(motion.force[k], force, rtol=0, atol=1e-10 * np.abs(force).max())
        for name, (R, p) in zip(patches, poses, strict=True):
            np.testing.assert_allclose(motion.R[name][k], R, atol=1e-12)
            np.testing.assert_allclose(motion.p[name][k], p, atol=1e-12)


def test_mimic_joint_passes_its_force_on_to_its_master():
    """Virtual power: the master's force is the sum over both joints, weighted with the multiplier."""
    free = random_record(3, links=4)
    joints = {joint.name: joint for joint in free.joints}
    master, slave = (name for name in free.coordinates)
    scale, offset = -1.7, 0.3
    tied = free.model_copy(
        update={
            "coordinates": [master],
            "armature": [0.0],
            "joints": [
                joint.model_copy(update={"coordinate": 0, "multiplier": scale, "offset": offset})
                if joint.name == slave
                else joint
                for joint in joints.values()
            ],
        }
    )
    free = free.model_copy(update={"armature": [0.0, 0.0]})
    q, v, vd = random_states(tied, 1, 3)

    def expand(rows, shift):
        return np.concatenate([rows, scale * rows[:, -1:] + shift], axis=1)

    force = Mechanism(free).motion(expand(q, offset), expand(v, 0), expand(vd, 0)).force
    tied_force = Mechanism(tied).motion(q, v, vd).force
    np.testing.assert_allclose(tied_force[:, :6], force[:, :6], atol=1e-11)
    np.testing.assert_allclose(tied_force[:, 6], force[:, 6] + scale * force[:, 7], atol=1e-11)


def test_chunks_do_not_matter():
    record = random_record(5)
    q, v, vd = random_states(record, 5, 2500)
    mechanism = Mechanism(record)
    # not to the bit: how NumPy orders the sums of a product depends on the number of samples, and on the processor
    whole, end = mechanism.motion(q, v, vd).force[-3:], mechanism.motion(q[-3:], v[-3:], vd[-3:]).force
    np.testing.assert_allclose(whole, end, rtol=0.0, atol=1e-14 * np.abs(whole).max())


def test_rotations_agree_with_scipy():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(200, 3))
    angles = np.concatenate(
        [rng.uniform(0, np.pi, 100), [0.0, 1e-14, 1e-9, np.pi, np.pi - 1e-9], np.geomspace(1e-12, 3, 95)]
    )
    vectors *= (angles / np.linalg.norm(vectors, axis=1))[:, None]
    expected = Rotation.from_rotvec(vectors)
    quats = quaternion_step(np.tile([[1.0], [0], [0], [0]], (1, 200)), vectors.T)
    R = rotation_of(quats).transpose(2, 0, 1)
    np.testing.assert_allclose(R, expected.as_matrix(), atol=1e-14)
    back = Rotation.from_rotvec(rotation_vector(R))
    np.testing.assert_allclose(back.as_matrix(), R, atol=1e-14)
    small = angles < np.pi - 1e-6
    np.testing.assert_allclose(rotation_vector(R)[small], vectors[small], atol=1e-9)


def test_the_twist_of_a_pose_is_its_logarithm():
    """A body that moves with it for a unit of time arrives at the pose."""
    rng = np.random.default_rng(3)
    for angle in (0.0, 1e-5, 9e-4, 1.1e-3, 0.2, 1.5, 3.1):
        twist = rng.normal(size=6)
        twist[3:] *= angle / np.linalg.norm(twist[3:])
        v, (x, y, z) = twist[:3], twist[3:]
        pose = expm(np.array([[0, -z, y, v[0]], [z, 0, -x, v[1]], [-y, x, 0, v[2]], [0, 0, 0, 0]]))
        np.testing.assert_allclose(pose_twist(pose[None, :3, :3], pose[None, :3, 3])[0], twist, atol=1e-9)


def test_what_turns_about_a_free_axis_has_not_moved():
    """A hinge about y at the origin: whatever turns on it is off its place along y alone."""
    kept = np.delete(np.eye(6), 4, axis=0)
    turn = Rotation.from_euler("y", [[0.3], [-1.2], [2.5]]).as_matrix()
    for along in (0.0, 0.02):
        off = deviation(turn, np.tile([0.0, along, 0.0], (3, 1)), kept)
        np.testing.assert_allclose(off, np.tile([0, along, 0, 0, 0, 0], (3, 1)), atol=1e-12)
    slides = deviation(turn, np.tile([0.0, 0.0, 0.01], (3, 1)), kept)
    assert (np.linalg.norm(slides[:, :3], axis=1) > 0.009).all()


def test_integrate_turns_the_base_about_world_axes():
    q = np.array([[1.0, 2, 3, 1, 0, 0, 0, 0.5]])
    q[0, 3:7] = Rotation.from_rotvec([0.3, -0.2, 0.9]).as_quat()[[3, 0, 1, 2]]
    v = np.array([[1.0, 0, 0, 0.1, 0.2, -0.3, 2.0]])
    after = integrate(q, v, 0.5)
    expected = Rotation.from_rotvec([0.05, 0.1, -0.15]) * Rotation.from_rotvec([0.3, -0.2, 0.9])
    np.testing.assert_allclose(Rotation.from_quat(after[0, [4, 5, 6, 3]]).as_matrix(), expected.as_matrix(), atol=1e-15)
    np.testing.assert_allclose(after[0, [0, 1, 2, 7]], [1.5, 2, 3, 1.5])
