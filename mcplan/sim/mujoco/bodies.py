"""MuJoCo model of the robot: bodies, joints with motors, collision shapes, patches and grips.

Ball joints have unit quaternions and angular velocities in the child's axes in MuJoCo, rotation vectors and their rates
here. With ``E`` the map of the rates to the angular velocity, ``w = E phi'``::

    w' = E phi'' + E' phi'         forces on phi: E' (transposed) times the moment

MuJoCo's step gives w'. The resulting phi'' is integrated like all joint coordinates, ``phi'+ = phi' + dt phi''``,
``phi+ = phi + dt phi'+``, and MuJoCo's state is set to the result. MuJoCo's own integration of w differs by ``dt²``.
"""

import warnings
from typing import Any

import mujoco
import numpy as np

from mcplan.collision.pairs import always_touching
from mcplan.core.contact.touching import polygon_distance
from mcplan.core.rigid_body.tree import (
    AXIS,
    BALL,
    COM,
    INERTIA,
    MASS,
    MULTIPLIER,
    ORIGIN,
    PRISMATIC,
    ROTATION,
    TYPE,
    V,
    parents_of,
)
from mcplan.errors import InputError
from mcplan.robot.description import Sphere
from mcplan.robot.patch import MOUNT, Patch
from mcplan.robot.robot import Robot
from mcplan.sim.mujoco.shapes import (
    ALL_BITS,
    ROBOT,
    SOLIMP_STIFF,
    SOLREF,
    add_shape,
    contact_options,
    quat_wxyz,
    recede,
    slab,
)
from mcplan.sim.touching_patch import ball_covers_shape
from mcplan.textbook.coordinates.rotation_vector import ROTATION_VECTOR


def ball_name(coordinate: str) -> str:
    """Return the URDF name of a ball joint from that of its first coordinate: ``hip`` for ``hip_x``."""
    return coordinate.removesuffix("_x")


class Ball:
    """State of one ball joint, in rotation-vector coordinates and in MuJoCo's.

    Parameters
    ----------
    column : index of its first coordinate among the robot's joints.
    qpos, qvel : first index of its quaternion in MuJoCo's ``qpos`` and of its angular velocity in ``qvel``.
    """

    def __init__(self, column: int, qpos: int, qvel: int):
        self.joints = slice(column, column + 3)
        self.qpos_index, self.qvel_index = slice(qpos, qpos + 4), slice(qvel, qvel + 3)
        self.phi, self.phi_rate, self.E = np.zeros(3), np.zeros(3), np.eye(3)

    def put(self, data: Any, phi: np.ndarray, phi_rate: np.ndarray) -> None:
        """Set MuJoCo's state from the rotation vector ``phi`` (3,) and its rate (3,)."""
        self.phi, self.phi_rate, self.E = phi, phi_rate, ROTATION_VECTOR.E(phi, "base")
        data.qpos[self.qpos_index] = ROTATION_VECTOR.to_quaternion(phi)
        data.qvel[self.qvel_index] = self.E @ phi_rate

    def settle(self, data: Any, dt: float) -> None:
        """Redo in these coordinates the step of dt (s) that MuJoCo has made from the state set by ``put``."""
        angular_acceleration = (data.qvel[self.qvel_index] - self.E @ self.phi_rate) / dt
        E_rate = ROTATION_VECTOR.E_rate(self.phi, self.phi_rate, "base")
        phi_acceleration = np.linalg.solve(self.E, angular_acceleration - E_rate @ self.phi_rate)
        phi_rate = self.phi_rate + dt * phi_acceleration
        self.put(data, self.phi + dt * phi_rate, phi_rate)


def balls_of(robot: Robot, model: Any) -> list[Ball]:
    """Return the ball joints of a robot."""
    balls = []
    for column in robot.ball_columns:
        joint = model.joint(f"joint:{ball_name(robot.joint_names[column])}")
        balls.append(Ball(column, int(joint.qposadr[0]), int(joint.dofadr[0])))
    return balls


TRIANGLE_MARGIN, MIN_WARNED_SHARE, MIN_WARNED_INERTIA = 1e-9, 1e-6, 1e-12
"""Triangle inequality of principal moments of inertia: margin left by a correction, and violation up to which it is
corrected without a warning, both relative to the largest moment; the latter also in kg m²."""

MIMIC_SOLIMP = (0.9999, 0.9999, 0.001, 0.5, 2.0)
"""MuJoCo's parameters ``solimp`` for the coupling of mimic joints: almost rigid."""

MIN_JOINT_RANGE, MIN_TORQUE = 1e-9, 1e-12
"""Smallest range of a joint (rad or m) and torque limit of a motor (N m or N): MuJoCo rejects zero, and these values
are negligible."""

PATCH_THICKNESS_M = 0.01
"""Thickness (m) of the solid behind a patch."""

EDGE_RADIUS_M = 2e-3
"""Radius (m) of the capsule of an edge patch."""

POINT_RADIUS_M = 1e-3
"""Radius (m) of the ball of a point patch. The point is on the lower side of the ball; upside down, the patch touches
up to twice this radius away from the point."""


def add_robot(spec: Any, robot: Robot, base: np.ndarray) -> dict[str, tuple[str, ...]]:
    """Add the robot's bodies, joints, motors and geoms to a MuJoCo spec.

    ``base`` (7,) is the pose of a fixed base, which has no joint. Return for each grip the names of its equality
    constraints: a weld and two pins.
    """
    tree = robot.tree
    bodies: list[Any] = []
    names, parents = joint_names(robot), parents_of(tree)
    for i, (topology_row, joint, inertia) in enumerate(zip(tree.topology, tree.joint, tree.inertia, strict=True)):
        parent, kind = int(parents[i]), int(topology_row[TYPE])
        if kind in (BALL, BALL + 1):  # massless; their only child is the third body, the link
            bodies.append(None)
            continue
        owner = spec.worldbody if parent < 0 else bodies[parent]
        frame = tree.joint[i - 2] if kind == BALL + 2 else joint
        R, p = frame[ROTATION:ORIGIN].reshape(3, 3), frame[ORIGIN:AXIS]
        inertial = {} if inertia[MASS] <= 0.0 else {
            "mass": inertia[MASS], "ipos": inertia[COM:INERTIA],
            "fullinertia": _consistent_inertia(inertia[INERTIA:], robot, i),
            "explicitinertial": True,
        }  # fmt: skip
        pose = {"pos": base[:3], "quat": base[3:]} if parent < 0 else {"pos": p, "quat": quat_wxyz(R)}
        body = owner.add_body(name=f"body:{i}", **pose, **inertial)
        bodies.append(body)
        if parent < 0 and robot.fixed:
            continue
        if parent < 0:
            body.add_joint(type=mujoco.mjtJoint.mjJNT_FREE, name="base", align=False)
            continue
        k, axis = int(topology_row[V]) - 6, joint[AXIS : AXIS + 3]
        if kind == BALL + 2:
            _add_ball(spec, body, robot, k - 2)
        elif names[i] == robot.joint_names[k]:
            _add_joint(spec, body, robot, k, kind, axis)
        else:
            _add_mimic_joint(spec, body, robot, names[i], k, kind, axis, joint[MULTIPLIER : MULTIPLIER + 2])
    links = robot.description.links
    for link, (index, offset) in ((name, robot.frame(name)) for name in links):
        R_L, p_L = offset[:9].reshape(3, 3), offset[9:]
        patches = [patch for patch in robot.patches.values() if patch.link == link and patch.kind != "grasp"]
        planes = _planes(robot, index, R_L, p_L)
        for number, geometry in enumerate(links[link].geometry):
            if geometry.role == "visual":
                continue
            if any(ball_covers_shape(patch, link, geometry) for patch in patches):
                continue
            shape, p = recede(geometry.shape, geometry.R, geometry.p, planes)
            options = contact_options(ROBOT, ALL_BITS) | {"name": f"link:{link}:{number}"}
            add_shape(spec, bodies[index], shape, R_L @ geometry.R, R_L @ p + p_L, **options)
        for patch in patches:
            if not _is_edge_of(patch, patches):
                _add_patch(spec, bodies[index], patch, R_L, p_L)
    _exclude(spec, robot)
    grips = [name for name, patch in robot.patches.items() if patch.kind == "grasp" and name != MOUNT]
    return {name: _add_grip_constraints(spec, robot, name) for name in grips}


def joint_names(robot: Robot) -> dict[int, str]:
    """Return, by index of a body of the tree (except the base), the name of the joint that moves it."""
    edges = [(robot.frame(j.parent)[0], robot.frame(j.child)[0], j.name) for j in robot.description.joints.values()]
    return {child: name for parent, child, name in edges if parent != child}


def _add_mimic_joint(
    spec: Any, body: Any, robot: Robot, name: str, k: int, kind: int, axis: np.ndarray, coupling: np.ndarray
) -> None:
    """Add a joint that follows joint k: the equality constraint ``position = multiplier * position_k + offset``.

    Its limits, damping and friction are already included in those of joint k.
    """
    body.add_joint(
        name=f"joint:{name}", axis=axis,
        type=mujoco.mjtJoint.mjJNT_SLIDE if kind == PRISMATIC else mujoco.mjtJoint.mjJNT_HINGE,
    )  # fmt: skip
    multiplier, offset = coupling
    equality = spec.add_equality(
        name=f"mimic:{name}", type=mujoco.mjtEq.mjEQ_JOINT, objtype=mujoco.mjtObj.mjOBJ_JOINT,
        name1=f"joint:{name}", name2=f"joint:{robot.joint_names[k]}", solref=SOLREF, solimp=MIMIC_SOLIMP,
    )  # fmt: skip
    equality.data[:5] = [offset, multiplier, 0.0, 0.0, 0.0]


def _planes(robot: Robot, body: int, R_L: np.ndarray, p_L: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the planes (outward normal, point) of the face patches of a body, in its link's frame ``R_L``, ``p_L``."""
    planes = []
    for name, patch in robot.patches.items():
        owner, offset = robot.frame(name)
        if owner == body and patch.kind != "grasp" and len(patch.polygon) > 2:
            planes.append((R_L.T @ offset[:9].reshape(3, 3)[:, 2], R_L.T @ (offset[9:] - p_L)))
    return planes


def _consistent_inertia(inertia: np.ndarray, robot: Robot, body: int) -> np.ndarray:
    """Return the physically consistent inertia (6,), xx yy zz xy xz yz, nearest to the given one.

    No principal moment exceeds the sum of the two others (triangle inequality); MuJoCo rejects violations, even by
    rounding. ``d`` added to all three corrects ``C = A + B + d``.
    """
    xx, yy, zz, xy, xz, yz = inertia
    A, B, C = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    deficit = C - A - B
    if deficit <= -TRIANGLE_MARGIN * C:
        return inertia
    if deficit > MIN_WARNED_SHARE * C and deficit > MIN_WARNED_INERTIA:
        links = [link for link in robot.description.links if robot.frame(link)[0] == body]
        warnings.warn(
            f"the moments of inertia of {', '.join(links)} violate the triangle inequality: {A:.4g}, {B:.4g}, {C:.4g} "
            f"kg m²; MuJoCo takes each {deficit:.4g} larger, its motion differs slightly from the robot's file",
            RuntimeWarning,
            stacklevel=2,
        )
    return np.asarray(inertia + (deficit + TRIANGLE_MARGIN * C) * np.array([1, 1, 1, 0, 0, 0]))


def _add_joint(spec: Any, body: Any, robot: Robot, k: int, kind: int, axis: np.ndarray) -> None:
    name, limits = robot.joint_names[k], robot.limits
    joint = next(candidate for candidate in robot.description.joints.values() if candidate.name == name)
    lower, upper = limits.lower[k], limits.upper[k]
    limited = bool(np.isfinite(lower) or np.isfinite(upper))
    low, high = max(lower, -1e3), min(upper, 1e3)
    if high - low < MIN_JOINT_RANGE:
        low, high = low - MIN_JOINT_RANGE, max(low, high) + MIN_JOINT_RANGE
    body.add_joint(
        name=f"joint:{name}", axis=axis, armature=robot.armature[k],
        type=mujoco.mjtJoint.mjJNT_SLIDE if kind == PRISMATIC else mujoco.mjtJoint.mjJNT_HINGE,
        limited=limited, range=[low, high] if limited else [0.0, 0.0],
        damping=[joint.damping, 0.0, 0.0], frictionloss=joint.friction,
    )  # fmt: skip
    torque = max(limits.torque[k], MIN_TORQUE)
    motor = spec.add_actuator(
        name=f"motor:{name}", target=f"joint:{name}", trntype=mujoco.mjtTrn.mjTRN_JOINT,
        ctrllimited=bool(np.isfinite(torque)), ctrlrange=[-torque, torque] if np.isfinite(torque) else [0.0, 0.0],
    )  # fmt: skip
    motor.set_to_motor()


def _add_ball(spec: Any, body: Any, robot: Robot, first: int) -> None:
    """Add a ball joint without limits: MuJoCo has no limits on the components of a rotation vector."""
    name = ball_name(robot.joint_names[first])
    joint = robot.description.joints[robot.joint_names[first]]
    if joint.friction or joint.damping:
        raise InputError(f"physics mujoco: the ball joint {name!r} has friction or damping; use the physics contact")
    body.add_joint(name=f"joint:{name}", type=mujoco.mjtJoint.mjJNT_BALL)
    for axis, coordinate in zip(np.eye(3), robot.joint_names[first : first + 3], strict=True):
        motor = spec.add_actuator(
            name=f"motor:{coordinate}", target=f"joint:{name}", trntype=mujoco.mjtTrn.mjTRN_JOINT,
            gear=[*axis, 0.0, 0.0, 0.0],
        )  # fmt: skip
        motor.set_to_motor()


def _add_patch(spec: Any, body: Any, patch: Patch, R_L: np.ndarray, p_L: np.ndarray) -> None:
    """Add the contact geom of a patch: a thin solid behind its polygon, a rounded edge, or a small ball."""
    R, p = R_L @ patch.R, R_L @ patch.p + p_L
    options = contact_options(ROBOT, ALL_BITS) | {"name": f"patch:{patch.name}"}
    polygon = patch.polygon
    if len(polygon) > 2:
        shape, middle = slab(polygon, PATCH_THICKNESS_M)
        add_shape(spec, body, shape, R, p + R @ middle, **options)
    elif len(polygon) == 2:
        a, b = np.column_stack([polygon, np.full(2, -EDGE_RADIUS_M)])
        body.add_geom(
            type=mujoco.mjtGeom.mjGEOM_CAPSULE, size=[EDGE_RADIUS_M, 0, 0],
            fromto=np.concatenate([p + R @ a, p + R @ b]), **options,
        )  # fmt: skip
    elif patch.radius:
        add_shape(spec, body, Sphere(patch.radius), R, p, **options)
    else:
        add_shape(spec, body, Sphere(POINT_RADIUS_M), R, p - POINT_RADIUS_M * R[:, 2], **options)


def _is_edge_of(patch: Patch, others: list[Patch]) -> bool:
    """Return whether an edge or point patch is part of a face patch, whose geom then serves both."""
    if len(patch.polygon) > 2:
        return False
    corners = patch.p + patch.points @ patch.R.T
    faces = [other for other in others if len(other.polygon) > 2]
    return any(
        all(polygon_distance(f.polygon, 0, len(f.polygon), *(f.R.T @ (x - f.p))) < EDGE_RADIUS_M for x in corners)
        for f in faces
    )


def _exclude(spec: Any, robot: Robot) -> None:
    """Disable collisions between bodies whose links may overlap (MuJoCo itself excludes parent and child)."""
    excluded_pairs = set()
    if robot.fixed:  # MuJoCo does not exclude children of a body that is fixed to the world
        kinds = robot.tree.topology[:, TYPE]
        for i in np.flatnonzero((parents_of(robot.tree) == 0) & (kinds != BALL) & (kinds != BALL + 1)).tolist():
            excluded_pairs.add((0, i))
            spec.add_exclude(bodyname1="body:0", bodyname2=f"body:{i}")
    for pair in robot.collision_ignore | always_touching(robot):
        a, b = sorted({robot.frame(link)[0] for link in pair} | {-1})[-2:]
        if a >= 0 and (a, b) not in excluded_pairs:
            excluded_pairs.add((a, b))
            spec.add_exclude(bodyname1=f"body:{a}", bodyname2=f"body:{b}")


def _add_grip_constraints(spec: Any, robot: Robot, patch: str) -> tuple[str, ...]:
    """Add the inactive equality constraints of a grip to the world: a weld, and two pins for a hinge."""
    kinds = {"weld": mujoco.mjtEq.mjEQ_WELD, "pin0": mujoco.mjtEq.mjEQ_CONNECT, "pin1": mujoco.mjtEq.mjEQ_CONNECT}
    for name, kind in kinds.items():
        spec.add_equality(
            name=f"grasp:{patch}:{name}", type=kind, objtype=mujoco.mjtObj.mjOBJ_BODY, active=False,
            name1=f"body:{robot.frame(patch)[0]}", name2="world", solref=SOLREF, solimp=SOLIMP_STIFF,
        )  # fmt: skip
    return tuple(f"grasp:{patch}:{name}" for name in kinds)
