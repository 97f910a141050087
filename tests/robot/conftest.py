"""Robots that the tests share, and Pinocchio behind this package's conventions."""

import numpy as np
import pinocchio as pin
import pytest

from mcplan.robot.robot_file import load_robot

ARM = """<?xml version="1.0"?>
<robot name="arm">
  <link name="ground"/>
  <joint name="mount" type="fixed">
    <origin xyz="0.1 -0.2 0.3" rpy="0.3 -0.2 0.5"/><parent link="ground"/><child link="pedestal"/>
  </joint>
  <link name="pedestal">
    <inertial><origin xyz="0.02 0.01 0.1" rpy="0.1 0.2 0.3"/><mass value="4"/>
      <inertia ixx="0.05" iyy="0.06" izz="0.03" ixy="0.002" ixz="-0.003" iyz="0.001"/></inertial>
    <visual>
      <geometry><box size="0.1 0.1 0.2"/></geometry><material name="red"><color rgba="1 0 0 1"/></material>
    </visual>
    <collision><origin xyz="0 0 0.1"/><geometry><cylinder radius="0.05" length="0.2"/></geometry></collision>
  </link>
  <joint name="turn" type="continuous">
    <origin xyz="0 0 0.2" rpy="0.2 0 0"/><parent link="pedestal"/><child link="hub"/><axis xyz="0.6 0 0.8"/>
  </joint>
  <link name="hub"/>
  <joint name="slide" type="prismatic">
    <origin xyz="0.1 0 0" rpy="0 0.4 0"/><parent link="hub"/><child link="upper"/><axis xyz="0 0.6 0.8"/>
    <limit lower="-0.1" upper="0.3" velocity="1" effort="50"/><dynamics damping="0.1" friction="0.2"/>
  </joint>
  <link name="upper">
    <inertial><origin xyz="0.1 0 0.05"/><mass value="1.5"/>
      <inertia ixx="0.01" iyy="0.02" izz="0.015" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <joint name="elbow" type="revolute">
    <origin xyz="0.3 0 0" rpy="0 0 1.2"/><parent link="upper"/><child link="lower"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="2" velocity="3" effort="20"/>
  </joint>
  <link name="lower">
    <inertial><origin xyz="0.1 0.02 0"/><mass value="0.7"/>
      <inertia ixx="0.003" iyy="0.004" izz="0.002" ixy="0" ixz="0" iyz="0.0005"/></inertial>
  </link>
  <joint name="bolt" type="fixed">
    <origin xyz="0.2 0 0.01" rpy="0.5 0.1 0"/><parent link="lower"/><child link="tool"/>
  </joint>
  <link name="tool">
    <inertial><mass value="0.3"/><inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
</robot>
"""


def finger(
    name: str, y: float, mimic: str = "", parent: str = "palm", kind: str = "revolute", range_: str = "-2 2"
) -> str:
    low, high = range_.split()
    return f"""
  <joint name="{name}" type="{kind}">
    <origin xyz="0.05 {y} 0.1" rpy="0.1 0.2 {y}"/><axis xyz="1 0 0"/>
    <parent link="{parent}"/><child link="{name}_link"/>
    <limit lower="{low}" upper="{high}" velocity="4" effort="5"/>{mimic}
  </joint>
  <link name="{name}_link">
    <inertial><origin xyz="0 0.01 0.03"/><mass value="0.2"/>
      <inertia ixx="0.0004" iyy="0.0003" izz="0.0002" ixy="0" ixz="0" iyz="0.00002"/></inertial>
  </link>"""


GRIPPER = (
    """<robot name="gripper">
  <link name="palm"><inertial><mass value="1"/>
    <inertia ixx="0.004" iyy="0.003" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
    # the second finger comes before the joint that it follows, the tip hangs on the master, the pad follows a follower
    + finger("right", -0.04, '<mimic joint="left" multiplier="-1.5" offset="0.2"/>')
    + finger("left", 0.04, range_="-1 1")
    + finger("tip", 0.03, '<mimic joint="left" multiplier="0.7"/>', parent="left_link")
    + finger(
        "pad", 0.02, '<mimic joint="right" multiplier="0.1" offset="-0.01"/>', "left_link", "prismatic", "-0.3 0.3"
    )
    + finger("thumb", 0.0)
    + "\n</robot>\n"
)


class Oracle:
    """Pinocchio with the free flyer, seen in ``q`` and ``v`` of this package.

    Mimic joints are moved by their masters: ``q_all = G q + c``, so ``M = G' M_all G`` and ``force = G' force_all``.
    """

    def __init__(self, robot):
        model = pin.buildModelFromUrdf(str(robot.urdf_path), pin.JointModelFreeFlyer())
        locked = [model.getJointId(name) for name in robot.locked]
        q = pin.neutral(model)
        for name, value in robot.locked.items():
            q[model.joints[model.getJointId(name)].idx_q] = value
        self.model = pin.buildReducedModel(model, locked, q) if locked else model
        self.robot = robot
        self.G = np.zeros((self.model.nv, robot.nv))
        self.c = np.zeros(self.model.nv)
        self.G[:6, :6] = np.eye(6)
        joints = robot.description.joints
        for i in range(2, self.model.njoints):
            row, name, multiplier, offset = self.model.joints[i].idx_v, self.model.names[i], 1.0, 0.0
            while (mimic := joints[name].mimic) is not None:
                offset += multiplier * mimic.offset
                multiplier *= mimic.multiplier
                name = mimic.joint
            self.G[row, 6 + robot.joint_names.index(name)] = multiplier
            self.c[row] = offset
        armature = np.zeros(self.model.nv)
        for i in range(2, self.model.njoints):
            if self.model.names[i] in robot.joint_names:
                armature[self.model.joints[i].idx_v] = robot.armature[robot.joint_names.index(self.model.names[i])]
        self.model.armature = armature
        self.data = self.model.createData()

    def q(self, q):
        joints = self.G[6:, 6:] @ q[7:] + self.c[6:]
        out = np.zeros(self.model.nq)
        out[:7] = [*q[:3], *q[4:7], q[3]]
        for joint in list(self.model.joints)[2:]:
            value = joints[joint.idx_v - 6]
            out[joint.idx_q : joint.idx_q + joint.nq] = [np.cos(value), np.sin(value)] if joint.nq == 2 else [value]
        return out

    def T(self, q):
        """Return the map from ``v`` to Pinocchio's velocity, whose first six are a twist in body axes."""
        R = pin.XYZQUATToSE3(self.q(q)[:7]).rotation
        T = np.eye(self.model.nv)
        T[:3, :3] = T[3:6, 3:6] = R.T
        return T @ self.G

    def a(self, q, v, vd):
        out = self.T(q) @ vd
        out[:3] -= pin.XYZQUATToSE3(self.q(q)[:7]).rotation.T @ np.cross(v[3:6], v[:3])
        return out

    def mass_matrix(self, q):
        M = pin.crba(self.model, self.data, self.q(q))
        M = np.triu(M) + np.triu(M, 1).T
        return self.T(q).T @ M @ self.T(q)

    def inverse_dynamics(self, q, v, vd):
        force = pin.rnea(self.model, self.data, self.q(q), self.T(q) @ v, self.a(q, v, vd))
        return self.T(q).T @ force

    def forward_dynamics(self, q, v, force):
        """By the articulated-body algorithm; for robots without mimic joints."""
        T = self.T(q)
        a = pin.aba(self.model, self.data, self.q(q), T @ v, np.linalg.solve(T.T, force))
        return np.linalg.solve(T, a - self.a(q, v, np.zeros(self.robot.nv)))

    def com(self, q):
        return pin.centerOfMass(self.model, self.data, self.q(q)).copy()

    def com_jacobian(self, q):
        return pin.jacobianCenterOfMass(self.model, self.data, self.q(q)) @ self.T(q)

    def centroidal_momentum_matrix(self, q):
        return pin.computeCentroidalMap(self.model, self.data, self.q(q)) @ self.T(q)

    def _frame(self, name):
        return self.model.getFrameId(name, pin.FrameType.BODY)

    def frame_pose(self, q, name):
        pin.framesForwardKinematics(self.model, self.data, self.q(q))
        return self.data.oMf[self._frame(name)].homogeneous.copy()

    def frame_jacobian(self, q, name):
        J = pin.computeFrameJacobian(
            self.model, self.data, self.q(q), self._frame(name), pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        )
        return J @ self.T(q)

    def frame_bias_acceleration(self, q, v, name):
        a = self.a(q, v, np.zeros(self.robot.nv))
        pin.forwardKinematics(self.model, self.data, self.q(q), self.T(q) @ v, a)
        frame = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        return pin.getFrameClassicalAcceleration(self.model, self.data, self._frame(name), frame).vector.copy()


@pytest.fixture(scope="session")
def robots(tmp_path_factory):
    """HRP-2, an arm on a pedestal (continuous, prismatic, massless link, fixed joints), a gripper of mimic joints."""
    folder = tmp_path_factory.mktemp("robots")
    found = {"hrp2": load_robot("hrp2", strict=True)}
    for name, text in (("arm", ARM), ("gripper", GRIPPER)):
        (folder / f"{name}.urdf").write_text(text)
        found[name] = load_robot(folder / f"{name}.urdf", strict=True)
    return found


@pytest.fixture(scope="session")
def oracles(robots):
    return {name: Oracle(robot) for name, robot in robots.items()}
