"""The arms of S1's examples as URDF, on a base that stands still."""

import numpy as np

from mcplan.robot.robot import Robot
from mcplan.robot.robot_file import load_robot


def hinge(name, parent, child, axis, z=0.0):
    return f"""
  <joint name="{name}" type="continuous"><parent link="{parent}"/><child link="{child}"/>
    <origin xyz="0 0 {z}"/><axis xyz="{axis}"/></joint>
  <link name="{child}"><inertial><mass value="1"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>"""


def arm(folder, name, joints, tip=0.0) -> Robot:
    """A chain of hinges: (axis, height above the one before); the tool stands ``tip`` above the last."""
    parts, parent = [], "base"
    for k, (axis, z) in enumerate(joints):
        parts.append(hinge(f"joint{k}", parent, f"link{k}", axis, z))
        parent = f"link{k}"
    path = folder / f"{name}.urdf"
    path.write_text(
        f"""<robot name="{name}"><link name="base"><inertial><mass value="5"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>{"".join(parts)}
  <joint name="bolt" type="fixed"><parent link="{parent}"/><child link="tool"/><origin xyz="0 0 {tip}"/></joint>
  <link name="tool"/></robot>"""
    )
    return load_robot(path)


def planar_arm(folder) -> Robot:
    """Three unit links in the x-z plane, S1 examples 2.8.5 to 2.9.1 (with l0 = 0)."""
    return arm(folder, "planar", [("0 1 0", 0), ("0 1 0", 1), ("0 1 0", 1)], tip=1)


def wrist(folder) -> Robot:
    """Three hinges in one point about z, y, x: S1 example 2.9.7."""
    return arm(folder, "wrist", [("0 0 1", 0), ("0 1 0", 0), ("1 0 0", 0)])


def at(robot, joints) -> np.ndarray:
    """The configuration with the base at the origin and these joints."""
    q = robot.neutral()
    q[7:] = joints
    return q
