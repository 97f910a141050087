"""The robot as a URDF that every program reads alike: locked joints fixed where they are locked, no geometry."""

from collections.abc import Mapping, Sequence

import numpy as np

from mcplan.model.assemble import joint_motion
from mcplan.model.description import Joint, Link, UrdfModel


def plain_urdf(model: UrdfModel, locked: Mapping[str, float]) -> str:
    """Return the text of a URDF with the same mechanism.

    Parameters
    ----------
    model : what the robot's own URDF says.
    locked : positions (rad, m) of joints that do not move; they become fixed joints at that position.
    """
    lines = ['<?xml version="1.0"?>', f'<robot name="{model.name}">']
    lines += [_link(link) for link in model.links.values()]
    lines += [_joint(joint, locked) for joint in model.joints.values()]
    return "\n".join([*lines, "</robot>", ""])


def chain_urdf(bodies: int) -> str:
    """Return a chain of ``bodies`` equal bodies on revolute joints about x, y and z in turn."""
    lines = ['<?xml version="1.0"?>', f'<robot name="chain{bodies}">']
    inertia = '<inertia ixx="0.003" iyy="0.004" izz="0.002" ixy="0" ixz="0" iyz="0"/>'
    for i in range(bodies):
        lines.append(
            f'<link name="link{i}"><inertial><origin xyz="0.01 0.02 0.05"/><mass value="1"/>{inertia}</inertial></link>'
        )
        if i:
            axis = ("1 0 0", "0 1 0", "0 0 1")[i % 3]
            lines.append(
                f'<joint name="joint{i}" type="revolute"><origin xyz="0 0 0.1"/><parent link="link{i - 1}"/>'
                f'<child link="link{i}"/><axis xyz="{axis}"/>'
                '<limit lower="-2" upper="2" velocity="5" effort="100"/></joint>'
            )
    return "\n".join([*lines, "</robot>", ""])


def _link(link: Link) -> str:
    if link.inertia is None:
        return f'<link name="{link.name}"/>'
    I = link.inertia.matrix  # noqa: E741 - the inertia's letter
    entries = {"ixx": I[0, 0], "iyy": I[1, 1], "izz": I[2, 2], "ixy": I[0, 1], "ixz": I[0, 2], "iyz": I[1, 2]}
    values = " ".join(f'{name}="{float(value)!r}"' for name, value in entries.items())
    return (
        f'<link name="{link.name}"><inertial><origin xyz="{_numbers(link.inertia.com)}"/>'
        f'<mass value="{float(link.inertia.mass)!r}"/><inertia {values}/></inertial></link>'
    )


def _joint(joint: Joint, locked: Mapping[str, float]) -> str:
    still = joint.type == "fixed" or joint.name in locked
    R, p = joint_motion(joint, locked[joint.name]) if joint.name in locked else (joint.R, joint.p)
    parts = [
        f'<joint name="{joint.name}" type="{"fixed" if still else joint.type}">',
        f'<origin xyz="{_numbers(p)}" rpy="{_numbers(roll_pitch_yaw(R))}"/>',
        f'<parent link="{joint.parent}"/><child link="{joint.child}"/>',
    ]
    if not still:
        parts.append(f'<axis xyz="{_numbers(joint.axis)}"/>')
        names = {"lower": joint.lower, "upper": joint.upper, "velocity": joint.velocity, "effort": joint.effort}
        limits = " ".join(f'{name}="{float(value)!r}"' for name, value in names.items() if np.isfinite(value))
        parts.append(f"<limit {limits}/>" if limits else "")
        if joint.mimic is not None:
            m = joint.mimic
            parts.append(f'<mimic joint="{m.joint}" multiplier="{m.multiplier!r}" offset="{m.offset!r}"/>')
    return "".join([*parts, "</joint>"])


def roll_pitch_yaw(R: np.ndarray) -> np.ndarray:
    """Return (3,) angles with ``R = Rz(yaw) Ry(pitch) Rx(roll)``; the yaw is 0 where the pitch is a right angle."""
    across = float(np.hypot(R[0, 0], R[1, 0]))
    pitch = np.arctan2(-R[2, 0], across)
    if across < 1e-9:
        return np.array([np.arctan2(-R[1, 2], R[1, 1]), pitch, 0.0])
    return np.array([np.arctan2(R[2, 1], R[2, 2]), pitch, np.arctan2(R[1, 0], R[0, 0])])


def _numbers(values: Sequence[float] | np.ndarray) -> str:
    """Write numbers so that they read back to the bit."""
    return " ".join(repr(float(value) + 0.0) for value in values)
