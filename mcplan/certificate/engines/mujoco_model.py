"""MuJoCo model of a recorded robot: bodies, joints and inertias from the numbers of the record."""

from typing import Any

import mujoco
import numpy as np

from mcplan.certificate.engines.contract import moving_joints
from mcplan.record.records import JointRecord, RobotRecord


def add_links(spec: Any, robot: RobotRecord) -> list[Any]:
    """Add a body ``link:i`` per link and a joint ``joint:i`` per movable joint; return the bodies."""
    bodies: dict[int, Any] = {0: spec.worldbody.add_body(name="link:0", **_PLACEHOLDER)}
    bodies[0].add_joint(type=mujoco.mjtJoint.mjJNT_FREE, name="base", align=False)
    for index, joint in enumerate(robot.joints):
        place = {"pos": joint.p, "quat": quat_wxyz(np.array(joint.R))}
        body = bodies[joint.parent].add_body(name=f"link:{joint.child}", **place, **_PLACEHOLDER)
        bodies[joint.child] = body
        if _has_joint(joint):
            body.add_joint(type=KINDS[joint.kind], name=f"joint:{index}", axis=joint.axis)
    return [bodies[i] for i in range(len(robot.links))]


def state_indices(model: Any, robot: RobotRecord) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the entries of x and u (see `contract`) in MuJoCo's qpos and qvel."""
    qpos, qvel = [*range(7)], [*range(6)]
    for index in moving_joints(robot):
        if _has_joint(robot.joints[index]):
            ball, joint = robot.joints[index].kind == "ball", model.joint(f"joint:{index}")
            qpos += range(joint.qposadr[0], joint.qposadr[0] + (4 if ball else 1))
            qvel += range(joint.dofadr[0], joint.dofadr[0] + (3 if ball else 1))
    return np.array(qpos, int), np.array(qvel, int)


def _has_joint(joint: JointRecord) -> bool:
    """Whether MuJoCo has this joint: not if it is fixed; of the three parts of a ball joint only the last."""
    return joint.kind != "fixed" and joint.part in (None, 2)


KINDS = {
    "prismatic": mujoco.mjtJoint.mjJNT_SLIDE,
    "revolute": mujoco.mjtJoint.mjJNT_HINGE,
    "ball": mujoco.mjtJoint.mjJNT_BALL,
}

_PLACEHOLDER: dict[str, Any] = {
    "mass": 1.0, "ipos": [0.1, 0.2, 0.3], "iquat": [0.5, 0.5, 0.5, 0.5], "inertia": [1.0, 1.1, 1.2],
    "explicitinertial": True,
}  # fmt: skip
"""Inertia of every body until `set_inertias`. MuJoCo's compiler rejects zero masses and physically impossible inertias;
files of real robots contain both. The values are generic, so that the compiler does not simplify the body, as it would
for a frame at the centre of mass."""


def set_inertias(model: Any, robot: RobotRecord) -> None:
    """Give every body the mass, centre of mass and principal inertia of its link."""
    for i, link in enumerate(robot.links):
        body = model.body(f"link:{i}").id
        moments, axes = np.linalg.eigh(np.array(link.inertia))
        axes[:, 0] *= np.sign(np.linalg.det(axes))
        model.body_mass[body], model.body_ipos[body] = link.mass, link.com
        model.body_inertia[body], model.body_iquat[body] = moments, quat_wxyz(axes)
    model.body_subtreemass[:] = model.body_mass
    for body in range(model.nbody - 1, 0, -1):
        model.body_subtreemass[model.body_parentid[body]] += model.body_subtreemass[body]


def rotation_wxyz(quat: np.ndarray) -> np.ndarray:
    """Return the rotation (3,3) of a quaternion."""
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, np.array(quat) / np.linalg.norm(quat))
    return R.reshape(3, 3)


def quat_wxyz(R: np.ndarray) -> np.ndarray:
    """Return the quaternion of a rotation (3,3)."""
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, np.ascontiguousarray(R, float).ravel())
    return quat
