"""Coordinate map between a run and an engine: couplings, locked joints, rotors, base axes.

Ball and universal joints are not part of the URDF format, and the URDF readers of engines reject them. `with_hinges`
replaces them by hinges: a ball joint by three hinges about x, y and z, with massless links between them. At zero joint
positions, masses, positions, axes and limits are the same, so the models of two engines are compared there.
"""

import copy
from collections.abc import Iterator
from xml.etree import ElementTree

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.certificate.engines.contract import moving_joints
from mcplan.record.records import RobotRecord

RATE_STEP_S = 1e-4
"""s: step of the difference quotient of a ball joint's left Jacobian."""


class EngineCoordinates:
    """The map between n coordinates of a run and m moving joints of an engine.

        positions = G q + offset      rates = G v      force on the coordinates = G^T force on the joints

    G holds the multipliers of mimic joints; a locked joint has a row of zeros, and its position as offset. The forces
    on the coordinates follow from virtual power; rotors add ``armature * vd``.

    A ball joint has the rotation vector phi in a run. In an engine it has the unit quaternion w x y z, and the angular
    velocity in the child's axes, ``w = J^T dphi/dt`` with the left Jacobian J of phi. The generalised forces are ``J``
    times the moment.

    Parameters
    ----------
    robot : record of the robot.
    """

    def __init__(self, robot: RobotRecord):
        moving = [robot.joints[i] for i in moving_joints(robot)]
        self.G = np.zeros((len(moving), len(robot.coordinates)))
        self.offset = np.array([joint.offset for joint in moving], float)
        self.armature = np.array(robot.armature, float)
        self._balls = [row for row, joint in enumerate(moving) if joint.kind == "ball"][::3]  # the first of three rows
        for row, joint in enumerate(moving):
            if joint.coordinate >= 0:
                self.G[row, joint.coordinate] = joint.multiplier

    def state(self, q: np.ndarray) -> np.ndarray:
        """Return x (N, 7+m) of q (N, 7+n); each ball joint adds one number. The base quaternion is normalised."""
        quat = q[:, 3:7] / np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
        joints = q[:, 7:] @ self.G.T + self.offset
        for row in reversed(self._balls):
            quaternion = Rotation.from_rotvec(joints[:, row : row + 3]).as_quat(scalar_first=True)
            joints = np.concatenate([joints[:, :row], quaternion, joints[:, row + 3 :]], axis=1)
        return np.concatenate([q[:, :3], quat, joints], axis=1)

    def rate(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return u (N, 6+m) of v (N, 6+n); the angular velocity is in base axes."""
        base_angular_velocity = _rotation(q).inv().apply(v[:, 3:6])
        rates = v[:, 6:] @ self.G.T
        for row, phi in self._ball_rotations(q):
            rates[:, row : row + 3] = np.einsum("nji,nj->ni", left_jacobian(phi), rates[:, row : row + 3])
        return np.concatenate([v[:, :3], base_angular_velocity, rates], axis=1)

    def acceleration(self, q: np.ndarray, v: np.ndarray, vd: np.ndarray) -> np.ndarray:
        """Return ``a = du/dt`` (N, 6+m); the base acceleration transforms like its velocity, as ``w x w = 0``."""
        a, rates = self.rate(q, vd), v[:, 6:] @ self.G.T
        for row, phi in self._ball_rotations(q):
            rate = rates[:, row : row + 3]
            J_dot = (left_jacobian(phi + RATE_STEP_S * rate) - left_jacobian(phi - RATE_STEP_S * rate)) / (
                2 * RATE_STEP_S
            )
            a[:, 6 + row : 9 + row] += np.einsum("nji,nj->ni", J_dot, rate)
        return a

    def force(self, q: np.ndarray, vd: np.ndarray, force: np.ndarray) -> np.ndarray:
        """Return the generalised force (N, 6+n) in world axes from one (N, 6+m) in the axes of ``u``."""
        moment, joints = _rotation(q).apply(force[:, 3:6]), force[:, 6:].copy()
        for row, phi in self._ball_rotations(q):
            joints[:, row : row + 3] = np.einsum("nij,nj->ni", left_jacobian(phi), joints[:, row : row + 3])
        return np.concatenate([force[:, :3], moment, joints @ self.G + self.armature * vd[:, 6:]], axis=1)

    def step_rate(self, q: np.ndarray, v: np.ndarray, dt: float) -> np.ndarray:
        """Return the constant u (N, 6+m) that moves the joints from q to ``q + dt v`` in dt (s).

        It equals ``rate``, except for ball joints: their angular velocity varies if their coordinates change linearly.
        """
        u, rates = self.rate(q, v), v[:, 6:] @ self.G.T
        for row, phi in self._ball_rotations(q):
            end = Rotation.from_rotvec(phi + dt * rates[:, row : row + 3])
            u[:, 6 + row : 9 + row] = (Rotation.from_rotvec(phi).inv() * end).as_rotvec() / dt
        return u

    def _ball_rotations(self, q: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the first row and the rotation vectors (N, 3) of each ball joint."""
        joints = q[:, 7:] @ self.G.T
        for row in self._balls:
            yield row, joints[:, row : row + 3]

    def rotor_energy(self, v: np.ndarray) -> np.ndarray:
        """Return the kinetic energy (N,) of the rotors, J."""
        return np.asarray(0.5 * (v[:, 6:] ** 2 @ self.armature))

    def configuration(self, q: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the configuration (7+n,) of a state x (7+m,), by least squares over the joints of each coordinate.

        For a state from ``state`` and ``rate`` all joints of a coordinate agree. Ball joints get the rotation vector
        nearest to that in ``q``; coordinates without joints keep their value in ``q``.
        """
        weight = np.sum(self.G**2, axis=0)
        found = x[7:]
        for row, phi in self._ball_rotations(q[None]):
            rotation = Rotation.from_quat(found[row : row + 4], scalar_first=True).as_rotvec()
            found = np.concatenate([found[:row], _nearest_equivalent(rotation, phi[0]), found[row + 4 :]])
        joints = np.where(weight > 0, (found - self.offset) @ self.G / np.where(weight > 0, weight, 1.0), q[7:])
        return np.concatenate([x[:7], joints])


def left_jacobian(phi: np.ndarray) -> np.ndarray:
    """Return J (N, 3, 3) with ``angular velocity = J dphi/dt`` for rotation vectors (N, 3), by its power series.

    ``J = sum [phi]^k / (k + 1)!`` (Chirikjian 2012, sec. 10.7); forty terms are exact to rounding up to 2 pi.
    """
    K, term = np.zeros((len(phi), 3, 3)), np.tile(np.eye(3), (len(phi), 1, 1))
    K[:, 2, 1], K[:, 0, 2], K[:, 1, 0] = phi.T
    K -= K.transpose(0, 2, 1)
    total = term.copy()
    for k in range(1, 40):
        term = term @ K / (k + 1)
        total += term
    return total


def _nearest_equivalent(rotation: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """Return the rotation vector nearest to phi (3,) with the same rotation as ``rotation`` (3,)."""
    angle = float(np.linalg.norm(rotation))
    if angle < 1e-12:
        return rotation
    axis = rotation / angle
    return np.asarray(rotation + axis * 2 * np.pi * np.round((phi - rotation) @ axis / (2 * np.pi)))


def _rotation(q: np.ndarray) -> Rotation:
    return Rotation.from_quat(q[:, 3:7], scalar_first=True)


HINGE_NAMES = {"ball": ("x", "y", "z"), "spherical": ("x", "y", "z"), "universal": ("1", "2")}
"""Suffixes of the names of the hinges that replace a joint, by its type."""

HINGE_AXES = {"x": "1 0 0", "y": "0 1 0", "z": "0 0 1"}
"""Axis of each hinge of a ball joint; those of a universal joint are in the URDF."""


def with_hinges(urdf: str) -> str:
    """Replace every joint with several coordinates in a URDF text by hinges.

    Raises
    ------
    ValueError
        The text is not XML.
    """
    if not any(f'"{kind}"' in urdf for kind in HINGE_NAMES):
        return urdf
    try:
        robot = ElementTree.fromstring(urdf)
    except ElementTree.ParseError as error:
        raise ValueError(str(error)) from None
    for joint in robot.findall("joint"):
        names = HINGE_NAMES.get(joint.get("type", ""))
        if names is not None:
            robot.remove(joint)
            _split(robot, joint, names)
    return ElementTree.tostring(robot, encoding="unicode")


def _split(robot: ElementTree.Element, joint: ElementTree.Element, names: tuple[str, ...]) -> None:
    """Append the hinges of a joint, and the links between them."""
    name = joint.get("name", "")
    parent, child = (element.get("link", "") for tag in ("parent", "child") for element in joint.findall(tag)[:1])
    limit = joint.find("limit")
    limits = {"lower": "-3.141592653589793", "upper": "3.141592653589793", "velocity": "1e300", "effort": "1e300"}
    if limit is not None:
        limits.update(limit.attrib)
    axes = [HINGE_AXES.get(part) or _axis(joint, "axis" if part == "1" else "axis2") for part in names]
    for k, (part, axis) in enumerate(zip(names, axes, strict=True)):
        hinge = ElementTree.SubElement(robot, "joint", name=f"{name}_{part}", type="revolute")
        if k == 0:
            hinge.extend(copy.copy(origin) for origin in joint.findall("origin"))
        child_link = child if k == len(names) - 1 else f"{name}_{part}_link"
        if child_link != child:
            ElementTree.SubElement(robot, "link", name=child_link)
        ElementTree.SubElement(hinge, "parent", link=parent)
        ElementTree.SubElement(hinge, "child", link=child_link)
        ElementTree.SubElement(hinge, "axis", xyz=axis)
        hinge_limits = {key: (value.split() * len(names))[k] for key, value in limits.items()}
        ElementTree.SubElement(hinge, "limit", hinge_limits)
        parent = child_link


def _axis(joint: ElementTree.Element, tag: str) -> str:
    element = joint.find(tag)
    return "1 0 0" if element is None else element.get("xyz", "1 0 0")
