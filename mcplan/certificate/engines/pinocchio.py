"""The robot in Pinocchio, joint by joint from the numbers of the record.

The model is built with ``Model.addJoint`` from the numbers in the record, on which all checks are based (including
locked joints, payloads and mass errors). ``certificate/engine_checks.py`` compares these numbers with the URDF as read
by Pinocchio's own reader.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pinocchio as pin

from mcplan.certificate.engines.contract import (
    BASE,
    STANDARD_GRAVITY,
    Engine,
    EngineSample,
    JointDescription,
    body_row,
    moving_joints,
)
from mcplan.record.records import JointRecord, RobotRecord

WXYZ, XYZW = np.array([3, 0, 1, 2]), np.array([1, 2, 3, 0])
"""Indices of the entries of a quaternion w x y z in Pinocchio's x y z w, and vice versa."""


class PinocchioEngine(Engine):
    """Recursive Newton-Euler, frames and energies of Pinocchio; the base is a translation and a ball joint."""

    name = "pinocchio"
    version = str(pin.__version__)

    def __init__(self, robot: RobotRecord, patches: Sequence[str]):
        model = pin.Model()
        model.gravity = pin.Motion(np.array([0.0, 0.0, -STANDARD_GRAVITY]), np.zeros(3))
        slide = model.addJoint(0, pin.JointModelTranslation(), pin.SE3.Identity(), "base position")
        base = model.addJoint(slide, pin.JointModelSpherical(), pin.SE3.Identity(), "base rotation")
        link_poses = self._add_joints(model, robot, base)
        for link, (joint, X) in zip(robot.links, link_poses, strict=True):
            model.appendBodyToJoint(joint, pin.Inertia(link.mass, np.array(link.com), np.array(link.inertia)), X)
        self._model, self._data = model, model.createData()
        self._to_pinocchio, self._from_pinocchio = np.arange(model.nq), np.arange(model.nq)
        for joint in model.joints:
            if joint.nq == 4:
                k = joint.idx_q
                self._to_pinocchio[k : k + 4], self._from_pinocchio[k : k + 4] = k + XYZW, k + WXYZ
        named = {patch.name: patch for patch in robot.patches}
        self._patches = []
        for name in patches:
            joint, X = link_poses[named[name].link]
            self._patches.append((joint, X * pin.SE3(np.array(named[name].R), np.array(named[name].p))))
        self._force = pin.StdVec_Force()
        for _ in range(model.njoints):
            self._force.append(pin.Force.Zero())

    @staticmethod
    def _add_joints(model: pin.Model, robot: RobotRecord, base: int) -> list[tuple[int, pin.SE3]]:
        """Add all moving joints; return the joint of every link, and the pose of the link in it."""
        link_poses: dict[int, tuple[int, pin.SE3]] = {0: (base, pin.SE3.Identity())}
        order = {index: k for k, index in enumerate(moving_joints(robot))}
        remaining = sorted(range(len(robot.joints)), key=lambda i: order.get(i, -1))
        while remaining:  # fixed joints first, when their parent exists; the others in the order of ``moving_joints``
            index = next(i for i in remaining if robot.joints[i].parent in link_poses)
            remaining.remove(index)
            joint = robot.joints[index]
            parent, X = link_poses[joint.parent]
            joint_pose = X * pin.SE3(np.array(joint.R), np.array(joint.p))
            if joint.kind == "fixed" or joint.part in (0, 1):  # a ball joint is added with its last part
                link_poses[joint.child] = (parent, joint_pose)
                continue
            added = model.addJoint(parent, _joint_model(joint), joint_pose, f"{index} {joint.name}")
            link_poses[joint.child] = (added, pin.SE3.Identity())
        return [link_poses[i] for i in range(len(robot.links))]

    def sample(self, x: np.ndarray, u: np.ndarray, a: np.ndarray, wrench: np.ndarray) -> EngineSample:
        """Recompute one sample; see ``Engine``."""
        model, data, q = self._model, self._data, x[self._to_pinocchio]
        pin.forwardKinematics(model, data, q, u)
        count = len(self._patches)
        R, p, twist = np.empty((count, 3, 3)), np.empty((count, 3)), np.empty((count, 6))
        for force in self._force:
            force.setZero()
        for k, (joint, X) in enumerate(self._patches):
            pose = data.oMi[joint] * X
            R[k], p[k] = pose.rotation, pose.translation
            axes = pin.SE3(pose.rotation, np.zeros(3))
            twist[k] = axes.act(X.actInv(data.v[joint])).vector
            self._force[joint] += X.act(axes.actInv(pin.Force(wrench[k])))
        kinetic, potential = pin.computeKineticEnergy(model, data), pin.computePotentialEnergy(model, data)
        com = pin.centerOfMass(model, data, False).copy()
        total = pin.rnea(model, data, q, u, a, self._force).copy()
        return EngineSample(total, com, R, p, twist, kinetic, potential)

    def energy(self, x: np.ndarray, u: np.ndarray) -> float:
        """Return kinetic and potential energy of the links, J."""
        model, data, q = self._model, self._data, x[self._to_pinocchio]
        return float(pin.computeKineticEnergy(model, data, q, u) + pin.computePotentialEnergy(model, data))

    def integrate(self, x: np.ndarray, u: np.ndarray, dt: float) -> np.ndarray:
        """Return the state after the velocity u has acted for dt (s)."""
        return np.asarray(pin.integrate(self._model, x[self._to_pinocchio], dt * u))[self._from_pinocchio]

    @staticmethod
    def read_urdf(urdf: str) -> dict[str, JointDescription]:
        """Return all moving joints and the base; see ``Engine``."""
        model = pin.buildModelFromXML(urdf, pin.JointModelFreeFlyer())
        data, q = model.createData(), pin.neutral(model)
        pin.computeJointJacobians(model, data, q)
        effort = model.upperEffortLimit if hasattr(model, "upperEffortLimit") else model.effortLimit
        velocity = model.upperVelocityLimit if hasattr(model, "upperVelocityLimit") else model.velocityLimit
        found = {}
        for i in range(1, model.njoints):
            joint, Y, X = model.joints[i], model.inertias[i], data.oMi[i]
            body = body_row(Y.mass, Y.lever, Y.inertia, X.rotation, X.translation)
            if i == 1:
                found[BASE] = JointDescription(body, np.zeros(3), np.zeros(3))
                continue
            J = pin.getJointJacobian(model, data, i, pin.LOCAL_WORLD_ALIGNED)[:, joint.idx_v]
            axis = J[3:] if np.any(J[3:]) else J[:3]
            lower, upper = -np.inf, np.inf
            if joint.nq == 1:  # a continuous joint is stored as sine and cosine
                lower, upper = model.lowerPositionLimit[joint.idx_q], model.upperPositionLimit[joint.idx_q]
            limits = [float(value) for value in (lower, upper, velocity[joint.idx_v], effort[joint.idx_v])]
            found[model.names[i]] = JointDescription(body, X.translation.copy(), axis.copy(), *limits)
        return found


def _joint_model(joint: JointRecord) -> Any:
    if joint.kind == "ball":
        return pin.JointModelSpherical()
    kind = pin.JointModelPrismaticUnaligned if joint.kind == "prismatic" else pin.JointModelRevoluteUnaligned
    return kind(np.array(joint.axis))


ENGINE = PinocchioEngine
