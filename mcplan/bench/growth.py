"""Scaling of computation times with the number of bodies and of contact points.

Also a plain URDF of a robot for the peers: locked joints are fixed at their position, and there is no geometry.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from mcplan.bench.kernels import median, microseconds
from mcplan.bench.reference_tick import ReferenceTick, TickDefinition
from mcplan.robot.assemble import joint_motion
from mcplan.robot.description import Joint, Link, UrdfModel
from mcplan.robot.robot import Robot
from mcplan.robot.robot_file import load_robot


def plain_urdf(model: UrdfModel, locked: Mapping[str, float]) -> str:
    """Return the text of a URDF with the same mechanism.

    Parameters
    ----------
    model : content of the robot's URDF.
    locked : positions (rad, m) of joints that do not move; they become fixed joints at that position.
    """
    lines = ['<?xml version="1.0"?>', f'<robot name="{model.name}">']
    lines += [_link(link) for link in model.links.values()]
    lines += [_joint(joint, locked) for joint in model.joints.values()]
    return "\n".join([*lines, "</robot>", ""])


def chain_urdf(bodies: int) -> str:
    """Return the URDF text of a chain of equal bodies on revolute joints about x, y and z in turn."""
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
    is_fixed = joint.type == "fixed" or joint.name in locked
    R, p = joint_motion(joint, locked[joint.name]) if joint.name in locked else (joint.R, joint.p)
    parts = [
        f'<joint name="{joint.name}" type="{"fixed" if is_fixed else joint.type}">',
        f'<origin xyz="{_numbers(p)}" rpy="{_numbers(roll_pitch_yaw(R))}"/>',
        f'<parent link="{joint.parent}"/><child link="{joint.child}"/>',
    ]
    if not is_fixed:
        parts.append(f'<axis xyz="{_numbers(joint.axis)}"/>')
        names = {"lower": joint.lower, "upper": joint.upper, "velocity": joint.velocity, "effort": joint.effort}
        limits = " ".join(f'{name}="{float(value)!r}"' for name, value in names.items() if np.isfinite(value))
        parts.append(f"<limit {limits}/>" if limits else "")
        if joint.mimic is not None:
            m = joint.mimic
            parts.append(f'<mimic joint="{m.joint}" multiplier="{m.multiplier!r}" offset="{m.offset!r}"/>')
    return "".join([*parts, "</joint>"])


def roll_pitch_yaw(R: np.ndarray) -> np.ndarray:
    """Return the angles (3,) with ``R = Rz(yaw) Ry(pitch) Rx(roll)``; at a pitch of +-90 degrees the yaw is 0."""
    horizontal = float(np.hypot(R[0, 0], R[1, 0]))
    pitch = np.arctan2(-R[2, 0], horizontal)
    if horizontal < 1e-9:
        return np.array([np.arctan2(-R[1, 2], R[1, 1]), pitch, 0.0])
    return np.array([np.arctan2(R[2, 1], R[2, 2]), pitch, np.arctan2(R[1, 0], R[0, 0])])


def _numbers(values: Sequence[float] | np.ndarray) -> str:
    """Format numbers so that reading them gives the same bits."""
    return " ".join(repr(float(value) + 0.0) for value in values)


BODY_COUNTS = (10, 30, 100, 300)
"""Numbers of bodies of the measured chains."""

FEET_AND_POINTS = {4: (1, 4), 8: (2, 4), 16: (2, 8), 32: (2, 16)}
"""Number of feet and of points per foot, by total number of contact points."""


def write_chains(directory: Path, bodies: tuple[int, ...]) -> dict[int, Path]:
    """Write the URDFs of the chains for mcplan and the peer; return their paths by number of bodies."""
    paths = {}
    for count in bodies:
        paths[count] = directory / f"chain{count}.urdf"
        paths[count].write_text(chain_urdf(count), encoding="utf-8")
    return paths


def bodies_us(chains: dict[int, Path], calls: int, repeats: int) -> dict[str, float]:
    """Return the time (µs) of one call of inverse dynamics by number of bodies."""
    times = {}
    for count, path in chains.items():
        robot = load_robot(path)
        q, v = robot.neutral(), np.ones(robot.nv)
        times[str(count)] = microseconds(partial(robot.inverse_dynamics, q, v, v), calls, repeats)
    return times


def contacts_us(robot: Robot, definition: TickDefinition, points: tuple[int, ...], ticks: int) -> dict[str, float]:
    """Return the median time (µs) of the compiled tick by number of contact points, without integrating the state.

    Four points are the corners of one sole; more than eight are spread along the edges of both soles.
    """
    times = {}
    for count in points:
        feet, points_per_foot = FEET_AND_POINTS[count]
        tick = ReferenceTick(robot, definition, patches=definition.patches[:feet], points=points_per_foot)
        tick_times = tick.run(ticks, integrate=False).total
        times[str(count)] = median(tick_times[ticks // 10 :])
    return times


def linearity(times: dict[str, float]) -> float:
    """Return the largest relative deviation of times from the line ``a + b n`` that fits them best.

    If it is a few percent, the time grows linearly with the number n.
    """
    n, t = np.array([float(count) for count in times]), np.array(list(times.values()))
    A = np.column_stack([np.ones_like(n), n]) / t[:, None]  # minimises relative errors
    line = np.linalg.lstsq(A, np.ones_like(t), rcond=None)[0]
    return float(np.max(np.abs(A @ line - 1)))
