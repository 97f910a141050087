"""Scenes whose surfaces are known: boxes, stairs, ramps, tables, discs on a floor, turned, cut up, rough."""

from dataclasses import dataclass

import numpy as np
import shapely
import trimesh
from scipy.spatial.transform import Rotation
from shapely.affinity import rotate, translate

CELL = 2.0
"""m: side of the square in which each thing stands."""


@dataclass
class Known:
    """A surface: ``shape`` is its outline seen from above, ``plane`` (a, b, c) its height ``z = a x + b y + c``."""

    shape: shapely.Geometry
    plane: np.ndarray


@dataclass
class Scene:
    """Triangles, the surfaces in them, and whether they are rough."""

    vertices: np.ndarray
    faces: np.ndarray
    known: list[Known]
    rough: bool


class _Builder:
    def __init__(self, random):
        self.random = random
        self.meshes, self.known = [], []
        self.taken = []

    def box(self, low, high, place):
        """Add a box between two corners, turned and moved to a place (x, y, yaw)."""
        size = np.subtract(high, low)
        mesh = trimesh.creation.box(size)
        mesh.apply_translation(np.add(low, high) / 2)
        self.add(mesh, place)

    def add(self, mesh, place):
        mesh.apply_transform(_pose(place))
        self.meshes.append(mesh)

    def top(self, outline, place, height, slope=0.0):
        """Know a surface; ``slope`` is dz/dx in the thing's own axes, ``height`` that at its origin."""
        c, s = np.cos(place[2]), np.sin(place[2])
        a, b = slope * c, slope * s
        self.known.append(Known(_placed(outline, place), np.array([a, b, height - a * place[0] - b * place[1]])))

    def take(self, outline, place):
        self.taken.append(_placed(outline, place))


def _pose(place):
    X = np.eye(4)
    X[:3, :3] = Rotation.from_euler("z", place[2]).as_matrix()
    X[:2, 3] = place[:2]
    return X


def _placed(outline, place):
    return translate(rotate(outline, place[2], origin=(0, 0), use_radians=True), place[0], place[1])


def _block(b, place):
    x, y, h = b.random.uniform(0.3, 1.0), b.random.uniform(0.3, 1.0), b.random.uniform(0.05, 0.6)
    b.box([-x / 2, -y / 2, 0], [x / 2, y / 2, h], place)
    b.top(shapely.box(-x / 2, -y / 2, x / 2, y / 2), place, h)
    b.take(shapely.box(-x / 2, -y / 2, x / 2, y / 2), place)


def _stairs(b, place):
    count, tread, riser = b.random.integers(2, 5), b.random.uniform(0.24, 0.32), b.random.uniform(0.06, 0.18)
    width, start = b.random.uniform(0.6, 1.0), -0.6
    for k in range(count):
        x0, x1 = start + k * tread, start + (k + 1) * tread
        b.box([x0, -width / 2, 0], [x1, width / 2, (k + 1) * riser], place)
        b.top(shapely.box(x0, -width / 2, x1, width / 2), place, (k + 1) * riser)
    b.take(shapely.box(start, -width / 2, start + count * tread, width / 2), place)


def _ramp(b, place, low=5, high=25, known=True):
    angle, width = np.radians(b.random.uniform(low, high)), b.random.uniform(0.5, 1.0)
    length = 1.0 if known else 0.5
    h = length * np.tan(angle)
    corners = [
        (x, y, z) for y in (-width / 2, width / 2) for x, z in ((-length / 2, 0), (length / 2, 0), (length / 2, h))
    ]
    b.add(trimesh.convex.convex_hull(np.array(corners)), place)
    outline = shapely.box(-length / 2, -width / 2, length / 2, width / 2)
    if known:
        b.top(outline, place, h / 2, np.tan(angle))
    b.take(outline, place)


def _steep(b, place):
    _ramp(b, place, 42, 60, known=False)


def _table(b, place):
    x, y, h = b.random.uniform(0.6, 1.0), b.random.uniform(0.5, 0.8), b.random.uniform(0.5, 0.8)
    outline = shapely.box(-x / 2, -y / 2, x / 2, y / 2)
    b.box([-x / 2, -y / 2, h - 0.04], [x / 2, y / 2, h], place)
    b.top(outline, place, h)
    for sx in (-1, 1):
        for sy in (-1, 1):
            mx, my = sx * (x / 2 - 0.05), sy * (y / 2 - 0.05)
            b.box([mx - 0.03, my - 0.03, 0], [mx + 0.03, my + 0.03, h - 0.04], place)
            b.take(shapely.box(mx - 0.03, my - 0.03, mx + 0.03, my + 0.03), place)


def _shelf(b, place):
    x, y, h = b.random.uniform(0.5, 1.0), b.random.uniform(0.4, 0.8), b.random.uniform(0.12, 0.25)
    outline = shapely.box(-x / 2, -y / 2, x / 2, y / 2)
    b.box([-x / 2, -y / 2, h - 0.03], [x / 2, y / 2, h], place)
    b.top(outline, place, h)
    b.take(outline, place)


def _post(b, place):
    b.box([-0.04, -0.04, 0], [0.04, 0.04, 0.15], place)
    b.take(shapely.box(-0.04, -0.04, 0.04, 0.04), place)


def _disc(b, place):
    r, h = b.random.uniform(0.2, 0.5), b.random.uniform(0.08, 0.4)
    mesh = trimesh.creation.cylinder(r, h, sections=24)
    mesh.apply_translation([0, 0, h / 2])
    b.add(mesh, place)
    outline = shapely.Polygon([(r * np.cos(a), r * np.sin(a)) for a in np.linspace(0, 2 * np.pi, 24, endpoint=False)])
    b.top(outline, place, h)
    b.take(outline, place)


def _corner(b, place):
    h = b.random.uniform(0.1, 0.4)
    parts = shapely.union(shapely.box(-0.6, -0.6, 0.6, -0.1), shapely.box(-0.6, -0.6, -0.1, 0.6))
    mesh = trimesh.creation.extrude_polygon(parts, h)
    b.add(mesh, place)
    b.top(parts, place, h)
    b.take(parts, place)


KINDS = (_block, _stairs, _ramp, _table, _shelf, _post, _disc, _corner, _steep)


def generated(seed):
    """Return the scene of a seed: every other one is rough."""
    random = np.random.default_rng(seed)
    b = _Builder(random)
    rough = seed % 2 == 1
    for cell, kind in enumerate(random.permutation(len(KINDS))[:4]):
        x, y = CELL * (cell % 2 - 0.5), CELL * (cell // 2 - 0.5)
        place = (x + random.uniform(-0.15, 0.15), y + random.uniform(-0.15, 0.15), random.uniform(-np.pi, np.pi))
        KINDS[kind](b, place)
    floor = shapely.box(-CELL, -CELL, CELL, CELL)
    b.box([-CELL, -CELL, -0.1], [CELL, CELL, 0], (0, 0, 0))
    b.known.append(Known(shapely.difference(floor, shapely.union_all(b.taken)), np.zeros(3)))
    parts = []
    for mesh in b.meshes:
        vertices, faces = np.array(mesh.vertices), np.array(mesh.faces)
        edge = random.uniform(0.15, 0.3) if rough else random.choice([0.3, 1.0, 10.0])
        vertices, faces = trimesh.remesh.subdivide_to_size(vertices, faces, edge, max_iter=20)
        own = trimesh.Trimesh(vertices, faces, process=True)
        vertices = np.array(own.vertices)
        if rough:
            vertices = vertices + random.normal(0, random.uniform(0.0005, 0.002), vertices.shape)
        parts.append((vertices, np.array(own.faces)))
    starts = np.cumsum([0, *(len(v) for v, _ in parts[:-1])])
    vertices = np.concatenate([v for v, _ in parts])
    faces = np.concatenate([f + s for (_, f), s in zip(parts, starts, strict=True)])
    # any place and heading in the world
    yaw, at = random.uniform(-np.pi, np.pi), random.uniform(-5, 5, 3)
    turned = [
        Known(translate(rotate(k.shape, yaw, origin=(0, 0), use_radians=True), at[0], at[1]), _turned(k.plane, yaw, at))
        for k in b.known
    ]
    vertices = vertices @ Rotation.from_euler("z", yaw).as_matrix().T + at
    return Scene(vertices, faces, turned, rough)


def _turned(plane, yaw, at):
    a, b, c = plane
    a, b = np.cos(yaw) * a - np.sin(yaw) * b, np.sin(yaw) * a + np.cos(yaw) * b
    return np.array([a, b, c + at[2] - a * at[0] - b * at[1]])
