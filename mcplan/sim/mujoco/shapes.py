"""Collision geoms in MuJoCo: shapes, collision bits, contact stiffness and friction, solids of surfaces and patches."""

from collections.abc import Iterable
from typing import Any

import mujoco
import numpy as np

from mcplan.robot.description import Box, Capsule, Cylinder, MeshShape, Shape, Sphere

ROBOT, WORLD, OBJECT, OBJECT_SURFACE = 1, 2, 4, 8
"""Collision bits. Fixed bodies do not collide with each other; an object's surface collides only with the robot."""

EVERYTHING = ROBOT | WORLD | OBJECT | OBJECT_SURFACE

SOLREF, SOLIMP = (0.005, 1.0), (0.0, 0.99, 3e-5, 0.5, 2.0)
"""Time constant (s) and damping ratio; the force grows with depth, and contacts are stiff from 0.03 mm on.

MuJoCo reduces the approach acceleration by the first value of ``SOLIMP``, at any depth. With its default of 0.9 a sole
that is about to lift off loses a hundred newtons within a step, the other sole gets them, and both chatter during a
weight shift. With depths ten times as large, light contacts creep."""

STIFF = (0.95, 0.99, 0.001, 0.5, 2.0)
"""``SOLIMP`` of grips, which must hold without penetration, and of objects, which must not creep."""

SLIDING = (0.1, 1.0)
"""Time constant and damping ratio of the friction below an object. In MuJoCo's contact model friction that removes a
sliding speed ``v`` within this time also lifts the object, with ``2 mu v / time``: a box of HRP-2's size at 0.2 m/s
would hop with 5 ms. With 0.1 s it stays down, and creeps by 0.1 mm/s under half of the force that would move it."""


def contact_options(bit: int, mask: int, friction: float | None = None) -> dict[str, Any]:
    """Return the options of a geom.

    The friction of a contact is that of the support, which has priority over the robot's. Contacts have no torsional
    friction (condim 3), so the recorded point forces are complete.

    Parameters
    ----------
    bit, mask : collision bit of the geom, and bits of the geoms with which it collides.
    friction : of a support; None for the robot.
    """
    return {
        "contype": bit, "conaffinity": mask, "condim": 3, "friction": [friction or 0.0, 0.0, 0.0],
        "priority": 0 if friction is None else 1, "solref": SOLREF, "solimp": SOLIMP, "density": 0.0,
    }  # fmt: skip


RECESS = 2e-3
"""m: a face of a link in the plane of a patch is moved back by this, so that the patch touches first."""

LEVEL = 4e-3
"""m: a shape that ends within this distance of a patch's plane counts as ending in it, as in ``PROTRUSION_M``."""

GEOM = mujoco.mjtGeom


def quat_wxyz(R: np.ndarray) -> np.ndarray:
    """Return the quaternion of a rotation (3,3)."""
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, np.ascontiguousarray(R, float).ravel())
    return quat


def add_shape(spec: Any, body: Any, shape: Shape, R: np.ndarray, p: np.ndarray, **options: Any) -> Any:
    """Add a geom to a body of the spec.

    Parameters
    ----------
    spec, body : the model under construction, and a body of it.
    shape, R, p : the shape and its pose in the body.
    options : other fields of the geom.
    """
    place = {"pos": np.asarray(p, float), "quat": quat_wxyz(R), **options}
    if isinstance(shape, Box):
        return body.add_geom(type=GEOM.mjGEOM_BOX, size=0.5 * np.array(shape.size), **place)
    if isinstance(shape, Sphere):
        return body.add_geom(type=GEOM.mjGEOM_SPHERE, size=[shape.radius, 0, 0], **place)
    if isinstance(shape, Cylinder | Capsule):
        kind = GEOM.mjGEOM_CYLINDER if isinstance(shape, Cylinder) else GEOM.mjGEOM_CAPSULE
        return body.add_geom(type=kind, size=[shape.radius, shape.length / 2, 0], **place)
    return body.add_geom(type=GEOM.mjGEOM_MESH, meshname=_mesh(spec, shape), **place)


MIN_THICKNESS, FLAT = 1e-3, 1e-6
"""m: MuJoCo rejects solids without volume. A flat face, or a mesh thinner than ``FLAT``, gets this thickness."""


def _mesh(spec: Any, shape: MeshShape) -> str:
    name, vertices, faces = f"mesh_{len(spec.meshes)}", np.asarray(shape.vertices, float), np.asarray(shape.faces)
    for axis in np.linalg.svd(vertices - vertices.mean(axis=0), full_matrices=False)[2]:
        if np.ptp(vertices @ axis) < FLAT:
            vertices = np.concatenate([vertices + MIN_THICKNESS / 2 * axis, vertices - MIN_THICKNESS / 2 * axis])
            faces = np.zeros((0, 3), int)  # MuJoCo uses those of the hull
    spec.add_mesh(name=name, uservert=vertices.ravel(), userface=faces.ravel())
    return name


def slab(polygon: np.ndarray, thickness: float) -> tuple[Shape, np.ndarray]:
    """Return the solid below a convex polygon (k,2) in the plane ``z = 0``, and the position (3,) of its frame.

    An axis-aligned rectangle becomes a box, with exact contacts in MuJoCo; another polygon a convex mesh.
    """
    low, high = polygon.min(axis=0), polygon.max(axis=0)
    corners = {(float(x), float(y)) for x in (low[0], high[0]) for y in (low[1], high[1])}
    thickness = max(thickness, MIN_THICKNESS)
    middle = np.array([*(low + high) / 2, -thickness / 2])
    near = [min(corners, key=lambda c: np.hypot(c[0] - x, c[1] - y)) for x, y in polygon]
    if len(polygon) == 4 and set(near) == corners and np.abs(np.array(near) - polygon).max() < 1e-9:
        return Box((float(high[0] - low[0]), float(high[1] - low[1]), float(thickness))), middle
    k = len(polygon)
    top = np.column_stack([polygon, np.zeros(k)])
    vertices = np.concatenate([top, top - [0, 0, thickness]])
    fan = [(0, i, i + 1) for i in range(1, k - 1)]
    faces = [*fan, *[(k, k + j, k + i) for _, i, j in fan]]
    for i in range(k):
        j = (i + 1) % k
        faces += [(i, k + i, j), (j, k + i, k + j)]
    return MeshShape(vertices, np.array(faces)), np.zeros(3)


def recede(
    shape: Shape, R: np.ndarray, p: np.ndarray, planes: Iterable[tuple[np.ndarray, np.ndarray]]
) -> tuple[Shape, np.ndarray]:
    """Move the faces of a shape in given planes back by ``RECESS``; return the shape and its new position.

    Of a box the face in the plane is moved, of a mesh its points there, any other shape as a whole. A shape that
    extends beyond a plane by more than ``LEVEL`` does not end there, and is not changed.

    Parameters
    ----------
    shape, R, p : shape and pose.
    planes : outward normal (3,) and a point (3,) each, in the same axes as the pose.
    """
    p = np.array(p, float)
    for normal, point in planes:
        along = R.T @ normal
        above = _reach(shape, along) + (p - point) @ normal
        if not -RECESS < above < LEVEL:
            continue
        step = above + RECESS
        axis = int(np.argmax(np.abs(along)))
        if isinstance(shape, Box) and abs(along[axis]) > 0.999 and shape.size[axis] > 2 * step:
            size = np.array(shape.size)
            size[axis] -= step
            shape = Box((float(size[0]), float(size[1]), float(size[2])))
            p = p - np.sign(along[axis]) * R[:, axis] * step / 2
        elif isinstance(shape, MeshShape):
            height = shape.vertices @ along + (p - point) @ normal
            shape = MeshShape(shape.vertices - np.maximum(height + RECESS, 0.0)[:, None] * along, shape.faces)
        else:
            p = p - step * normal
    return shape, p


def _reach(shape: Shape, direction: np.ndarray) -> float:
    """Return the extent of a shape from its frame in a direction (3,) in its axes (support function)."""
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
