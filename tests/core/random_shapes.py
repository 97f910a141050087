"""Random convex shapes, ours and coal's, for the tests of the distance kernels."""

import coal
import numpy as np
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from mcplan.core.distance.pair import PAIR_SIZE, pair_distance
from mcplan.core.distance.shape import BOX, CAPSULE, CYLINDER, HULL, SPHERE, scratch
from mcplan.robot.description import Box, Capsule, Cylinder, MeshShape, Sphere
from mcplan.robot.solid import HalfSpace, Solid, pack, solid

KINDS = ("sphere", "capsule", "box", "cylinder", "hull", "prism", "plane")


def random_shape(rng, kind):
    """A shape and coal's shape of the same kind and size."""
    a, b, c = rng.uniform(0.05, 0.5, 3)
    if kind == "sphere":
        return Sphere(a), coal.Sphere(a)
    if kind == "capsule":
        return Capsule(a, b), coal.Capsule(a, b)
    if kind == "box":
        return Box((a, b, c)), coal.Box(a, b, c)
    if kind == "cylinder":
        return Cylinder(a, b), coal.Cylinder(a, b)
    if kind == "plane":
        return HalfSpace(), coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0)
    if kind == "hull":
        points = 0.2 * rng.normal(size=(12, 3))
    else:
        angle = np.sort(rng.uniform(0, 2 * np.pi, 6))
        corners = np.column_stack([a * np.cos(angle), b * np.sin(angle), np.zeros(6)])
        points = np.concatenate([corners, corners - [0, 0, 0.2 * c]])
    return MeshShape(points, np.zeros((0, 3), int)), _coal_hull(points)


def _coal_hull(points):
    """Vertices and outward triangles of a convex hull."""
    hull = ConvexHull(points, qhull_options="QJ")
    number = {v: i for i, v in enumerate(hull.vertices)}
    vertices, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    for v in hull.vertices:
        vertices.append(points[v])
    for corners, equation in zip(hull.simplices, hull.equations, strict=True):
        p, q, r = points[corners]
        turn = corners if np.cross(q - p, r - p) @ equation[:3] > 0 else corners[::-1]
        triangles.append(coal.Triangle(*(number[v] for v in turn)))
    return coal.Convex(vertices, triangles)


def random_pose(rng, reach=0.5):
    """Rotation and position."""
    return Rotation.random(random_state=rng).as_matrix(), rng.uniform(-reach, reach, 3)


def distance(a: Solid, b: Solid, margin=np.inf, kernel=pair_distance):
    """Distance, normal, point of a and point of b; None when they are further apart than the margin."""
    shapes, out = pack([a, b], [-1, -1]), np.zeros(PAIR_SIZE)
    near = kernel(shapes, 0, 1, shapes.offset.copy(), margin, scratch(), out)
    return (out[0], out[1:4], out[4:7], out[7:10]) if near else None


def coal_distance(request, a, pose_a, b, pose_b):
    """Signed distance by coal."""
    result = coal.DistanceResult()
    return coal.distance(a, coal.Transform3s(*pose_a), b, coal.Transform3s(*pose_b), request, result)


def support_height(s: Solid, n):
    """Largest ``n' x`` over a shape, written apart from the kernels."""
    x, y, z = d = s.R.T @ n
    if s.kind in (SPHERE, CAPSULE):
        local = s.radius + s.half[2] * abs(z)
    elif s.kind == BOX:
        local = s.half @ np.abs(d)
    elif s.kind == CYLINDER:
        local = s.half[0] * np.hypot(x, y) + s.half[2] * abs(z)
    elif s.kind == HULL:
        local = (s.vertices @ d).max()
    else:
        local = 0.0 if np.allclose([x, y, z], [0, 0, 1], atol=1e-9) else np.inf
    return local + n @ s.p


def placed(shape, pose):
    """A shape at a pose."""
    return solid(shape, *pose)
