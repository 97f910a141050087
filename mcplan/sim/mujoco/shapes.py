"""Collision geoms in MuJoCo: shapes, collision bits, contact stiffness and friction, solids of surfaces and patches."""

from collections.abc import Iterable
from typing import Any

import mujoco
import numpy as np

from mcplan.robot.description import Box, Capsule, Cylinder, MeshShape, Shape, Sphere

ROBOT, WORLD, OBJECT, OBJECT_SURFACE = 1, 2, 4, 8
"""Collision bits of geoms. Geoms of the world do not collide with each other; the surfaces on an object collide only
with the robot."""

ALL_BITS = ROBOT | WORLD | OBJECT | OBJECT_SURFACE

SOLREF, SOLIMP = (0.005, 1.0), (0.0, 0.99, 3e-5, 0.5, 2.0)
"""MuJoCo's contact parameters: time constant (s) and damping ratio; impedance as a function of depth.

The force grows with the depth, and contacts are stiff from 0.03 mm on.

The first value of ``SOLIMP`` is the impedance at zero depth: MuJoCo removes that share of the approach acceleration
even of a contact that barely touches. With the default of 0.9 a sole that is about to lift off loses a hundred newtons
within a step, the other sole gets them, and both chatter during a weight shift. The third value is the width (m): with
3e-4 instead of 3e-5, lightly loaded contacts would creep."""

SOLIMP_STIFF = (0.95, 0.99, 0.001, 0.5, 2.0)
"""Impedance of grips, which must hold without penetration, and of objects, which must not creep."""

SOLREF_SLIDING = (0.1, 1.0)
"""MuJoCo's ``solreffriction`` of sliding contacts: time constant (s) and damping ratio.

In MuJoCo's contact model, friction that removes a sliding speed ``v`` within the time constant also lifts the object,
with the acceleration ``2 mu v / time``: with 5 ms, a box of HRP-2's size would hop at 0.2 m/s. With 0.1 s it does not
lift, and creeps by 0.1 mm/s under half of the force that would move it."""


def contact_options(bit: int, mask: int, friction: float | None = None) -> dict[str, Any]:
    """Return the fields of a geom that concern collision and contact forces.

    The friction of a contact is that of the support, which has priority over the robot's. Contacts have no torsional
    friction (condim 3), so the recorded point forces are complete.

    Parameters
    ----------
    bit, mask : collision bit of the geom, and bits of the geoms with which it collides.
    friction : friction coefficient of a support; None for the robot.
    """
    return {
        "contype": bit, "conaffinity": mask, "condim": 3, "friction": [friction or 0.0, 0.0, 0.0],
        "priority": 0 if friction is None else 1, "solref": SOLREF, "solimp": SOLIMP, "density": 0.0,
    }  # fmt: skip


RECESS_M = 2e-3
"""Distance (m) by which a face of a link in the plane of a patch is moved back, so that the patch touches first."""

PLANE_TOLERANCE_M = 4e-3
"""Distance (m) from a patch's plane within which the end of a shape counts as lying in the plane.

The value is that of `mcplan.collision.pairs.PROTRUSION_M`."""

GEOM = mujoco.mjtGeom


def quat_wxyz(R: np.ndarray) -> np.ndarray:
    """Return the quaternion w x y z (4,) of a rotation (3,3)."""
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, np.ascontiguousarray(R, float).ravel())
    return quat


def add_shape(spec: Any, body: Any, shape: Shape, R: np.ndarray, p: np.ndarray, **options: Any) -> Any:
    """Add a geom with the given shape to a body.

    Parameters
    ----------
    spec, body : the MuJoCo model under construction, and one of its bodies.
    shape, R, p : the shape, and its rotation (3,3) and position (3,) in the body.
    options : other fields of the geom.
    """
    pose = {"pos": np.asarray(p, float), "quat": quat_wxyz(R), **options}
    if isinstance(shape, Box):
        return body.add_geom(type=GEOM.mjGEOM_BOX, size=0.5 * np.array(shape.size), **pose)
    if isinstance(shape, Sphere):
        return body.add_geom(type=GEOM.mjGEOM_SPHERE, size=[shape.radius, 0, 0], **pose)
    if isinstance(shape, Cylinder | Capsule):
        kind = GEOM.mjGEOM_CYLINDER if isinstance(shape, Cylinder) else GEOM.mjGEOM_CAPSULE
        return body.add_geom(type=kind, size=[shape.radius, shape.length / 2, 0], **pose)
    return body.add_geom(type=GEOM.mjGEOM_MESH, meshname=_mesh(spec, shape), **pose)


ADDED_THICKNESS_M, MIN_MESH_THICKNESS_M = 1e-3, 1e-6
"""Thickness (m) given to a flat solid, because MuJoCo rejects solids without volume; thickness (m) below which a mesh
counts as flat."""


def _mesh(spec: Any, shape: MeshShape) -> str:
    name, vertices, faces = f"mesh_{len(spec.meshes)}", np.asarray(shape.vertices, float), np.asarray(shape.faces)
    for axis in np.linalg.svd(vertices - vertices.mean(axis=0), full_matrices=False)[2]:
        if np.ptp(vertices @ axis) < MIN_MESH_THICKNESS_M:
            vertices = np.concatenate(
                [vertices + ADDED_THICKNESS_M / 2 * axis, vertices - ADDED_THICKNESS_M / 2 * axis]
            )
            faces = np.zeros((0, 3), int)  # MuJoCo computes the faces of the hull
    spec.add_mesh(name=name, uservert=vertices.ravel(), userface=faces.ravel())
    return name


def slab(polygon: np.ndarray, thickness: float) -> tuple[Shape, np.ndarray]:
    """Return the solid of given thickness (m) below a convex polygon (k,2) in ``z = 0``, and its frame's position (3,).

    An axis-aligned rectangle becomes a box, with exact contacts in MuJoCo; another polygon a convex mesh.
    """
    low, high = polygon.min(axis=0), polygon.max(axis=0)
    corners = {(float(x), float(y)) for x in (low[0], high[0]) for y in (low[1], high[1])}
    thickness = max(thickness, ADDED_THICKNESS_M)
    middle = np.array([*(low + high) / 2, -thickness / 2])
    nearest_corners = [min(corners, key=lambda c: np.hypot(c[0] - x, c[1] - y)) for x, y in polygon]
    if (
        len(polygon) == 4
        and set(nearest_corners) == corners
        and np.abs(np.array(nearest_corners) - polygon).max() < 1e-9
    ):
        return Box((float(high[0] - low[0]), float(high[1] - low[1]), float(thickness))), middle
    k = len(polygon)
    top = np.column_stack([polygon, np.zeros(k)])
    vertices = np.concatenate([top, top - [0, 0, thickness]])
    triangles = [(0, i, i + 1) for i in range(1, k - 1)]
    faces = [*triangles, *[(k, k + j, k + i) for _, i, j in triangles]]
    for i in range(k):
        j = (i + 1) % k
        faces += [(i, k + i, j), (j, k + i, k + j)]
    return MeshShape(vertices, np.array(faces)), np.zeros(3)


def recede(
    shape: Shape, R: np.ndarray, p: np.ndarray, planes: Iterable[tuple[np.ndarray, np.ndarray]]
) -> tuple[Shape, np.ndarray]:
    """Move the faces of a shape in given planes back by ``RECESS_M``; return the shape and its new position.

    For a box the face in the plane is moved, for a mesh its vertices there; any other shape is shifted. A shape that
    extends beyond a plane by more than ``PLANE_TOLERANCE_M`` does not end there, and is not changed.

    Parameters
    ----------
    shape, R, p : the shape, and its rotation (3,3) and position (3,).
    planes : outward normal (3,) and a point (3,) of each plane, in the same axes as the pose.
    """
    p = np.array(p, float)
    for normal, point in planes:
        local_normal = R.T @ normal
        height = _extent(shape, local_normal) + (p - point) @ normal
        if not -RECESS_M < height < PLANE_TOLERANCE_M:
            continue
        shift = height + RECESS_M
        axis = int(np.argmax(np.abs(local_normal)))
        if isinstance(shape, Box) and abs(local_normal[axis]) > 0.999 and shape.size[axis] > 2 * shift:
            size = np.array(shape.size)
            size[axis] -= shift
            shape = Box((float(size[0]), float(size[1]), float(size[2])))
            p = p - np.sign(local_normal[axis]) * R[:, axis] * shift / 2
        elif isinstance(shape, MeshShape):
            heights = shape.vertices @ local_normal + (p - point) @ normal
            shape = MeshShape(shape.vertices - np.maximum(heights + RECESS_M, 0.0)[:, None] * local_normal, shape.faces)
        else:
            p = p - shift * normal
    return shape, p


def _extent(shape: Shape, direction: np.ndarray) -> float:
    """Return the largest coordinate (m) of a shape along a direction (3,) in its axes (support function)."""
    x, y, z = np.abs(direction)
    if isinstance(shape, MeshShape):
        return float((shape.vertices @ direction).max())
    if isinstance(shape, Box):
        return float(np.array(shape.size) @ (x, y, z)) / 2
    if isinstance(shape, Sphere):
        return shape.radius
    if isinstance(shape, Capsule):
        return shape.radius + shape.length / 2 * z
    return shape.radius * float(np.hypot(x, y)) + shape.length / 2 * z
