"""Geometry of robots and scenes as meshcat objects, and meshes of prisms, capsules, cones and tubes."""

import numpy as np
from meshcat import geometry as mg

from mcplan.robot.description import Box, Capsule, Cylinder, MeshShape, Sphere
from mcplan.scene.polygon import counter_clockwise

CYLINDER_TO_Z = np.array([[1.0, 0, 0, 0], [0, 0, -1.0, 0], [0, 1.0, 0, 0], [0, 0, 0, 1.0]])
"""Transformation of meshcat's cylinders, whose axis is y, to those of mcplan and URDF, whose axis is z."""


def material(rgba, *, flat: bool = False, on_top: bool = False, faceted: bool = False, coat: bool = False):
    """Return a material of the colour ``rgba`` (0..1).

    ``flat`` ignores lighting; ``on_top`` is visible through the robot; ``faceted`` lights each triangle separately, so
    that edges stay sharp; a ``coat`` is drawn slightly nearer to the eye, against flicker with coincident faces.
    """
    red, green, blue, alpha = rgba
    colour = (round(red * 255) << 16) | (round(green * 255) << 8) | round(blue * 255)
    kind = mg.MeshBasicMaterial if flat else mg.MeshPhongMaterial
    # transparent objects are drawn last: nothing covers those with `on_top`
    options: dict[str, object] = {"flatShading": True} if faceted else {}
    if coat:
        options |= {"polygonOffset": True, "polygonOffsetFactor": -1, "polygonOffsetUnits": -4}
    return kind(color=colour, opacity=float(alpha), transparent=alpha < 1.0 or on_top, depthTest=not on_top, **options)


def draw(node, shape, rgba, pose: np.ndarray | None = None, *, coat: bool = False) -> None:
    """Draw a shape of `mcplan.robot.description` at ``node`` with the constant pose ``pose`` (4, 4)."""
    pose = np.eye(4) if pose is None else pose
    if isinstance(shape, Box):
        node.set_object(mg.Box([float(side) for side in shape.size]), material(rgba, coat=coat))
    elif isinstance(shape, Sphere):
        node.set_object(mg.Sphere(float(shape.radius)), material(rgba, coat=coat))
    elif isinstance(shape, Cylinder):
        node.set_object(mg.Cylinder(float(shape.length), float(shape.radius)), material(rgba, coat=coat))
        pose = pose @ CYLINDER_TO_Z
    elif isinstance(shape, Capsule):
        node.set_object(mesh(*capsule(shape.radius, shape.length)), material(rgba, coat=coat))
    elif isinstance(shape, MeshShape):
        node.set_object(mesh(shape.vertices, shape.faces), material(rgba, faceted=True, coat=coat))
    else:
        raise TypeError(f"no drawing for a {type(shape).__name__}")
    node.set_transform(pose)


def mesh(vertices, faces):
    """Return a triangular mesh."""
    return mg.TriangularMeshGeometry(np.asarray(vertices, dtype=np.float32), np.asarray(faces, dtype=np.uint32))


def prism(polygon, top: float, bottom: float):
    """Return vertices and faces of a convex polygon (k, 2), counter-clockwise, extruded from ``bottom`` to ``top``."""
    polygon = counter_clockwise(np.asarray(polygon, dtype=float))
    k = len(polygon)
    vertices = np.vstack([np.column_stack([polygon, np.full(k, top)]), np.column_stack([polygon, np.full(k, bottom)])])
    faces = [[0, i, i + 1] for i in range(1, k - 1)] + [[k, k + i + 1, k + i] for i in range(1, k - 1)]
    for i in range(k):
        j = (i + 1) % k
        faces += [[i, k + i, k + j], [i, k + j, j]]
    return vertices, np.array(faces)


def capsule(radius: float, length: float, around: int = 16, along: int = 6):
    """Return vertices and faces of a capsule along z; ``length`` is that of its cylindrical part."""
    latitude = np.concatenate([np.linspace(-np.pi / 2, 0, along), np.linspace(0, np.pi / 2, along)])
    height = radius * np.sin(latitude) + np.repeat([-length / 2, length / 2], along)
    angle = np.arange(around) * 2 * np.pi / around
    ring = radius * np.cos(latitude)
    vertices = np.stack(
        [np.outer(ring, np.cos(angle)), np.outer(ring, np.sin(angle)), np.repeat(height[:, None], around, axis=1)],
        axis=-1,
    ).reshape(-1, 3)
    faces = []
    for i in range(2 * along - 1):
        for j in range(around):
            a, b = i * around + j, i * around + (j + 1) % around
            faces += [[a, b, b + around], [a, b + around, a + around]]
    return vertices, np.array(faces)


def cone(around: int = 32):
    """Return vertices and faces of a cone with its apex at the origin and a base of radius 1 at z = 1.

    Every face has both windings, so that the cone is visible from inside and outside.
    """
    angle = np.arange(around) * 2 * np.pi / around
    rim = np.column_stack([np.cos(angle), np.sin(angle), np.ones(around)])
    faces = np.array([[0, 1 + i, 1 + (i + 1) % around] for i in range(around)])
    return np.vstack([np.zeros(3), rim]), np.vstack([faces, faces[:, ::-1]])


def tube(points: np.ndarray, radius: float, around: int = 6):
    """Return vertices and faces of a tube along a line of points (k, 3); WebGL draws lines one pixel wide."""
    points = np.asarray(points, dtype=float)
    tangent = np.gradient(points, axis=0)
    side = np.cross(tangent, [0.0, 0.0, 1.0])
    is_vertical = np.linalg.norm(side, axis=1) < 1e-9 * np.maximum(np.linalg.norm(tangent, axis=1), 1e-12)
    side[is_vertical] = [1.0, 0.0, 0.0]
    side /= np.linalg.norm(side, axis=1, keepdims=True)
    up = np.cross(side, tangent)
    up /= np.maximum(np.linalg.norm(up, axis=1, keepdims=True), 1e-12)
    angle = np.arange(around) * 2 * np.pi / around
    ring = np.cos(angle)[:, None, None] * side + np.sin(angle)[:, None, None] * up  # (around, k, 3)
    vertices = (points + radius * ring).transpose(1, 0, 2).reshape(-1, 3)
    faces = []
    for i in range(len(points) - 1):
        for j in range(around):
            a, b = i * around + j, i * around + (j + 1) % around
            faces += [[a, b + around, b], [a, a + around, b + around]]
    return vertices, np.array(faces)


def rotation_from_z(direction: np.ndarray) -> np.ndarray:
    """Return unit quaternions (n, 4), w first, of the shortest rotations that take z to each of ``direction`` (n, 3).

    With unit d, the quaternion is (1 + d_z, -d_y, d_x, 0) normalised, for d = -z a half turn about x.
    """
    unit = direction / np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-12)
    quat = np.column_stack([1 + unit[:, 2], -unit[:, 1], unit[:, 0], np.zeros(len(unit))])
    norm = np.linalg.norm(quat, axis=1, keepdims=True)
    return np.where(norm > 1e-9, quat / np.maximum(norm, 1e-12), [0.0, 1.0, 0.0, 0.0])


def continuous(quat: np.ndarray) -> np.ndarray:
    """Choose between q and -q so that consecutive quaternions are close: the viewer interpolates between them."""
    flips = np.where(np.einsum("ij,ij->i", quat[1:], quat[:-1]) < 0, -1.0, 1.0)
    return quat * np.concatenate([[1.0], np.cumprod(flips)])[:, None]
