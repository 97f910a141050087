"""Assembly of a ``UrdfModel`` into the packed tree of the kernels: fixed and locked joints merged, numbering."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mcplan.core.rigid_body.tree import BALL, FLOATING, MASS, PRISMATIC, REVOLUTE, Tree
from mcplan.robot.description import Inertia, Joint, UrdfModel
from mcplan.robot.pose import axis_rotation
from mcplan.util.arrays import read_only
from mcplan.util.text import summary

MAX_JOINTS = 500
"""Maximum number of moving joints."""


@dataclass(frozen=True)
class JointLimits:
    """Limits of the joints in ``q``: position (rad, m), velocity (rad/s, m/s), torque (N m, N).

    Each is (n,), infinite where there is no limit.
    """

    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    torque: np.ndarray

    __repr__ = summary


@dataclass(frozen=True)
class Assembly:
    """A mechanism with numbered bodies and coordinates."""

    tree: Tree
    joint_names: tuple[str, ...]
    frames: dict[str, tuple[int, np.ndarray]]
    """By link: index of its body, and pose of the link in the body (12,), rotation row-major and position."""
    limits: JointLimits
    locked: dict[str, float]
    """Positions (rad, m) of locked joints, including joints that mimic one of them."""


@dataclass
class _Body:
    """A body under construction: its joint, and the inertias with poses of the links merged into it so far."""

    parent: int
    type: int
    joint: Joint | None = None
    R: np.ndarray = field(default_factory=lambda: np.eye(3))
    p: np.ndarray = field(default_factory=lambda: np.zeros(3))
    parts: list[tuple[Inertia, np.ndarray, np.ndarray]] = field(default_factory=list)


class AssemblyError(Exception):
    """The mechanism cannot be built; ``joint`` is the name of the joint concerned, ``message`` the reason."""

    def __init__(self, joint: str, message: str):
        super().__init__(message)
        self.joint, self.message = joint, message


def resolve_mimic(joint: Joint, joints: Mapping[str, Joint]) -> tuple[str, float, float]:
    """Return the master of a chain of mimic joints (the joint itself if it mimics none), multiplier and offset."""
    name, multiplier, offset = joint.name, 1.0, 0.0
    while (mimic := joints[name].mimic) is not None:
        offset += multiplier * mimic.offset
        multiplier *= mimic.multiplier
        name = mimic.joint
    return name, multiplier, offset


def joint_motion(joint: Joint, position: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the pose ``R``, ``p`` of the child link in the parent link at a joint position (rad or m)."""
    if joint.type == "prismatic":
        return joint.R, joint.p + joint.R @ joint.axis * position
    return joint.R @ axis_rotation(joint.axis, position), joint.p


def lump(parts: list[tuple[Inertia, np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return the inertia (10,) of rigidly joined parts, each given with its pose ``R``, ``p``.

    The result is the mass, the centre of mass, and the inertia matrix about it (xx, yy, zz, xy, xz, yz):
    ``I = sum R I_k R' + m_k (|d|² 1 - d d')`` with ``d`` from the common centre of mass to that of part k (Steiner).
    """
    row = np.zeros(10)
    if not parts:
        return row
    masses = np.array([part.mass for part, _, _ in parts])
    centres = np.array([R @ part.com + p for part, R, p in parts])
    com = masses @ centres / masses.sum()
    matrix = np.zeros((3, 3))
    for (part, R, _), centre in zip(parts, centres, strict=True):
        d = centre - com
        matrix += R @ part.matrix @ R.T + part.mass * (d @ d * np.eye(3) - np.outer(d, d))
    row[0], row[1:4], row[4:] = masses.sum(), com, matrix[(0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)]
    return row


def assemble(
    model: UrdfModel, locked: Mapping[str, float], armature: Mapping[str, float], fixed_base: bool = False
) -> Assembly:
    """Build the tree of the kernels.

    A massless root link can rotate against its first joint without moving any mass; then M is singular. If the base is
    fixed, its acceleration is zero and its inertia arbitrary, so its rows of M get the robot's mass as armature.

    Parameters
    ----------
    model : the URDF.
    locked : positions (rad, m) of joints that do not move.
    armature : reflected inertia (kg m² or kg) per joint; zero where absent.
    fixed_base : whether the base is fixed to the world.

    Raises
    ------
    AssemblyError
        There are too many joints, or no link has mass.
    """
    joints = model.joints
    masters = {name: resolve_mimic(joint, joints) for name, joint in joints.items() if joint.type != "fixed"}
    constants = {name: k * locked[master] + c for name, (master, k, c) in masters.items() if master in locked}
    constants |= {name: c for name, (_, k, c) in masters.items() if k == 0}
    moving = [name for name in masters if name not in constants and joints[name].mimic is None]
    for name in constants:
        if joints[name].type == "ball":
            raise AssemblyError(name, "is part of a ball joint and cannot be locked by itself; make the joint fixed")
    if len(masters) > MAX_JOINTS:
        message = f"the robot has {len(masters)} moving joints, at most {MAX_JOINTS} are allowed"
        raise AssemblyError(list(masters)[MAX_JOINTS], message)
    index = {name: i for i, name in enumerate(moving)}

    bodies = [_Body(-1, FLOATING)]
    pose_in_body = {model.root: (0, np.eye(3), np.zeros(3))}
    bodies[0].parts += _part(model, model.root, *pose_in_body[model.root][1:])
    for name, joint in joints.items():  # depth-first, so the parent is placed before the child
        body, R, p = pose_in_body[joint.parent]
        if joint.type == "fixed" or name in constants:
            R_joint, p_joint = (
                joint_motion(joint, constants.get(name, 0.0)) if name in constants else (joint.R, joint.p)
            )
            pose_in_body[joint.child] = body, R @ R_joint, R @ p_joint + p
        else:
            bodies.append(_Body(body, _kind(joint), joint, R @ joint.R, R @ joint.p + p))
            pose_in_body[joint.child] = len(bodies) - 1, np.eye(3), np.zeros(3)
        body, R, p = pose_in_body[joint.child]
        bodies[body].parts += _part(model, joint.child, R, p)
    if not any(body_parts.parts for body_parts in bodies):
        raise AssemblyError("", "no link has mass")

    topology = np.zeros((len(bodies), 5), dtype=np.int64)
    topology[0] = -1, FLOATING, 0, 0, 0
    joint_rows = np.zeros((len(bodies), 17))
    joint_rows[0] = [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 0]
    for i, body_with_joint in enumerate(bodies[1:], start=1):
        assert body_with_joint.joint is not None
        master, multiplier, offset = masters[body_with_joint.joint.name]
        k = index[master]
        topology[i] = body_with_joint.parent, body_with_joint.type, 7 + k, 6 + k, 5 + i
        joint_rows[i] = [
            *body_with_joint.R.ravel(),
            *body_with_joint.p,
            *body_with_joint.joint.axis,
            multiplier,
            offset,
        ]
    inertia = np.array([lump(body_parts.parts) for body_parts in bodies])
    base_armature = inertia[:, MASS].sum() if fixed_base and inertia[0, MASS] == 0.0 else 0.0
    tree = Tree(
        read_only(topology),
        read_only(joint_rows),
        read_only(inertia),
        read_only(np.array([base_armature] * 6 + [armature.get(name, 0.0) for name in moving])),
    )
    frames = {link: (pose_in_body[link][0], frame_offset(*pose_in_body[link][1:])) for link in model.links}
    return Assembly(tree, tuple(moving), frames, _limits(model, moving, masters), constants)


def _kind(joint: Joint) -> int:
    """Return the joint type code of the tree."""
    if joint.type == "ball":
        return BALL + joint.part
    return PRISMATIC if joint.type == "prismatic" else REVOLUTE


def frame_offset(R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Pack a pose for the kernels: (12,) rotation row-major, then position; read-only."""
    return read_only(np.concatenate([R.ravel(), p]))


def _part(model: UrdfModel, link: str, R: np.ndarray, p: np.ndarray) -> list[tuple[Inertia, np.ndarray, np.ndarray]]:
    inertia = model.links[link].inertia
    return [] if inertia is None else [(inertia, R, p)]


def _limits(model: UrdfModel, moving: list[str], masters: Mapping[str, tuple[str, float, float]]) -> JointLimits:
    """Return the limits of the coordinates; a mimic joint also limits position and velocity of its master."""
    joints = model.joints
    moving_joints = [joints[name] for name in moving]
    lower, upper = (np.array([getattr(joint, side) for joint in moving_joints], float) for side in ("lower", "upper"))
    velocity, torque = (
        np.array([getattr(joint, side) for joint in moving_joints], float) for side in ("velocity", "effort")
    )
    index = {name: i for i, name in enumerate(moving)}
    for name, (master, multiplier, offset) in masters.items():
        if name == master or master not in index or multiplier == 0:
            continue
        i, joint = index[master], joints[name]
        mapped_limits = sorted([(joint.lower - offset) / multiplier, (joint.upper - offset) / multiplier])
        low, high = max(lower[i], mapped_limits[0]), min(upper[i], mapped_limits[1])
        if low < high:  # else the mimic joint's limits are invalid; those of the master apply
            lower[i], upper[i] = low, high
        velocity[i] = min(velocity[i], joint.velocity / abs(multiplier)) or velocity[i]
    return JointLimits(read_only(lower), read_only(upper), read_only(velocity), read_only(torque))
