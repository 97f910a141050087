"""Triangle meshes of an environment: welded, without degenerate triangles, normals outwards; height maps as meshes."""

import io
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.lib.format import read_array_header_1_0, read_array_header_2_0, read_magic
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from mcplan.errors import InputError

MAX_TRIANGLES = 500_000
"""Maximum number of triangles of an environment."""

WELD_DISTANCE_M = 1e-5
"""Vertices in the same cell of a grid with this spacing are merged; many files store each triangle's corners
separately, some with rounding."""

MIN_AREA_M2 = 1e-10
"""Smaller triangles are degenerate and are removed."""


@dataclass(frozen=True, eq=False)
class Triangles:
    """Triangles of an environment.

    Parameters
    ----------
    vertices : (k,3) m, in the world.
    faces : (m,3) indices, counter-clockwise seen from outside.
    """

    vertices: np.ndarray
    faces: np.ndarray

    @classmethod
    def of(cls, vertices: np.ndarray, faces: np.ndarray) -> "Triangles":
        """Return welded triangles with outward normals.

        Closed parts with inward normals are reversed, and so are open sheets that mostly face down: they are ground.

        Raises
        ------
        InputError
            No triangle has an area, values are not finite, or there are too many triangles.
        """
        import trimesh

        vertices, faces = np.asarray(vertices, float).reshape(-1, 3), np.asarray(faces, np.int64).reshape(-1, 3)
        if len(faces) > MAX_TRIANGLES:
            raise InputError(f"{len(faces)} triangles; at most {MAX_TRIANGLES} are allowed: make the mesh coarser")
        if not np.isfinite(vertices).all():
            raise InputError("holds vertices that are not finite")
        cells = np.round(vertices / WELD_DISTANCE_M).astype(np.int64)
        _, first, vertex_index = np.unique(cells, axis=0, return_index=True, return_inverse=True)
        vertices, faces = vertices[first], vertex_index.ravel()[faces]
        corners = vertices[faces]
        double_area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
        faces = faces[double_area > 2 * MIN_AREA_M2]
        if not len(faces):
            raise InputError("holds no triangles that have an area")
        mesh = trimesh.Trimesh(vertices, faces, process=False)
        if not mesh.is_winding_consistent:
            trimesh.repair.fix_winding(mesh)
        return cls(vertices, _oriented_faces(vertices, np.array(mesh.faces, np.int64)))

    def with_more(self, others: "Iterable[Triangles]") -> "Triangles":
        """Return these and other triangles, without connecting them."""
        return Triangles(*join_parts([(part.vertices, part.faces) for part in (self, *others)]))

    @cached_property
    def corners(self) -> np.ndarray:
        """Corners (m,3,3)."""
        return self.vertices[self.faces]

    @cached_property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest coordinates (m,3) of each triangle."""
        return self.corners.min(axis=1), self.corners.max(axis=1)

    @cached_property
    def normals_areas(self) -> tuple[np.ndarray, np.ndarray]:
        """Unit normals (m,3) and areas (m,), m²."""
        return normals_areas(self.corners)

    def within(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return a mask (m,) of triangles whose bounding box overlaps the box from ``low`` (3,) to ``high`` (3,)."""
        lower, upper = self.bounds
        return np.all((upper >= low) & (lower <= high), axis=1)

    def parts(self) -> np.ndarray:
        """Return the index (m,) of each triangle's connected part; triangles are connected by shared vertices."""
        return _parts(len(self.vertices), self.faces)


def join_parts(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Join parts, each with vertices and faces; return vertices (k,3) and faces (m,3)."""
    offsets = np.cumsum([0, *(len(vertices) for vertices, _ in parts[:-1])])
    faces = [faces + start for (_, faces), start in zip(parts, offsets, strict=True)]
    return np.concatenate([vertices for vertices, _ in parts]), np.concatenate(faces)


def normals_areas(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return unit normals (m,3) and areas (m,) of triangles (m,3,3)."""
    double_area = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    length = np.linalg.norm(double_area, axis=1)
    return double_area / np.maximum(length, 1e-300)[:, None], length / 2


def winding_number(point: np.ndarray, corners: np.ndarray) -> float:
    """Return the winding number of triangles (m,3,3) about a point (3,): 1 inside a solid, 0 outside, else near holes.

    With the vectors a, b, c from the point to the corners of a triangle and its solid angle omega:

        w = sum omega / 4 pi,   tan(omega / 2) = det(a b c) / (|a| |b| |c| + (a.b) |c| + (b.c) |a| + (c.a) |b|)

    (van Oosterom and Strackee 1983; Jacobson et al. 2013).
    """
    a, b, c = (corners[:, k] - point for k in range(3))
    la, lb, lc = (np.linalg.norm(x, axis=1) for x in (a, b, c))
    det = np.einsum("ij,ij->i", a, np.cross(b, c))
    dot = la * lb * lc + np.sum(a * b, 1) * lc + np.sum(b * c, 1) * la + np.sum(c * a, 1) * lb
    return float(np.sum(2 * np.arctan2(det, dot)) / (4 * np.pi))


def _parts(count: int, faces: np.ndarray) -> np.ndarray:
    """Return the index (m,) of each triangle's connected part, with ``count`` vertices."""
    rows, columns = np.concatenate([faces[:, 0], faces[:, 1]]), np.concatenate([faces[:, 1], faces[:, 2]])
    graph = coo_matrix((np.ones(len(rows)), (rows, columns)), shape=(count, count))
    return connected_components(graph, directed=False)[1][faces[:, 0]]


def _oriented_faces(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Return the faces with outward normals: the faces of inverted parts are reversed."""
    part = _parts(len(vertices), faces)
    corners = vertices[faces]
    normals, areas = normals_areas(corners)
    count = part.max() + 1
    middle: np.ndarray = np.stack([np.bincount(part, corners[:, :, k].sum(1) * areas, count) for k in range(3)], axis=1)
    middle = middle / np.maximum(3.0 * np.bincount(part, areas, count), 1e-300)[:, None]
    local = corners - middle[part][:, None]
    volume = np.bincount(part, np.einsum("ij,ij->i", local[:, 0], np.cross(local[:, 1], local[:, 2])) / 6, count)
    up_area = np.bincount(part, normals[:, 2] * areas, count)
    total_area = np.bincount(part, areas, count)
    is_closed = (
        np.linalg.norm(np.stack([np.bincount(part, normals[:, k] * areas, count) for k in range(3)], axis=1), axis=1)
        < 1e-3 * total_area
    )  # the vector areas of a closed surface sum to zero
    is_inverted = np.where(is_closed, volume < -1e-9 * total_area**1.5, up_area < -0.5 * total_area)
    return np.where(is_inverted[part][:, None], faces[:, ::-1], faces)


MAX_BYTES = 64_000_000
"""Maximum size of the file of a height map."""

MAX_SIDE = 500
"""Maximum number of points along a side of a height map; 500 by 500 reach the maximum number of triangles."""


def read_height_map(path: Path, cell: float, height: float) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices (k,3) and faces (m,3) of a height map, centred on its grid.

    Rows of an array follow y, columns x; an image is seen from above, with x to the right.

    Parameters
    ----------
    path : ``.npy`` and ``.csv`` hold heights in m, ``.png`` grey levels.
    cell : distance of the points, m.
    height : height of white above black in an image, m.

    Raises
    ------
    InputError
        The file is too large, or is no grid of finite numbers.
    """
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise InputError(f"{path.name}: has {size} bytes, at most {MAX_BYTES} are read")
    try:
        heights = _read_heights(path, height)
    except (OSError, ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise InputError(f"{path.name}: cannot be read as a grid of heights: {str(error)[:100]}") from None
    if heights.ndim != 2 or min(heights.shape) < 2 or max(heights.shape) > MAX_SIDE:
        raise InputError(f"{path.name}: has the shape {heights.shape}, expected 2 to {MAX_SIDE} rows and columns")
    if not np.isfinite(heights).all():
        raise InputError(f"{path.name}: holds heights that are not finite")
    return grid(heights, cell, cell)


def grid(heights: np.ndarray, dx: float, dy: float) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices (k,3) and upward faces (m,3) of heights (rows, columns) at spacings ``dx``, ``dy`` (m)."""
    rows, columns = heights.shape
    x = dx * (np.arange(columns) - (columns - 1) / 2)
    y = dy * (np.arange(rows) - (rows - 1) / 2)
    vertices = np.column_stack([np.tile(x, rows), np.repeat(y, columns), heights.ravel()])
    corner = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    lower_triangles = np.column_stack([corner, corner + 1, corner + columns + 1])
    return vertices, np.concatenate(
        [lower_triangles, np.column_stack([corner, corner + columns + 1, corner + columns])]
    )


def _read_heights(path: Path, height: float) -> np.ndarray:
    """Return the heights (rows, columns) in a file, m."""
    data = path.read_bytes()
    suffix = path.suffix.lower()
    if suffix == ".npy":
        _check_header(data)
        return np.asarray(np.load(io.BytesIO(data), allow_pickle=False), float)
    if suffix == ".csv":
        return np.loadtxt(io.StringIO(data.decode("utf-8")), delimiter=",", ndmin=2, max_rows=MAX_SIDE + 1)
    from PIL import Image

    try:
        with warnings.catch_warnings(action="ignore", category=Image.DecompressionBombWarning):
            image = Image.open(io.BytesIO(data), formats=["PNG"])  # reads only the header
        with image:
            if max(image.size) > MAX_SIDE:
                raise ValueError(f"{image.size[0]} by {image.size[1]} pixels, at most {MAX_SIDE} by {MAX_SIDE}")
            white = 65535.0 if image.mode.startswith("I") else 255.0
            levels = np.asarray(image if image.mode.startswith("I") else image.convert("L"), float)
    except Image.DecompressionBombError as error:
        raise ValueError(str(error)) from None
    return np.array(height * levels[::-1] / white)


def _check_header(data: bytes) -> None:
    """Check type and size of an array by the header of its file, before NumPy allocates memory."""
    stream = io.BytesIO(data)
    readers = {(1, 0): read_array_header_1_0, (2, 0): read_array_header_2_0}
    version = read_magic(stream)
    if version not in readers:
        raise ValueError(f"it is of the version {version} of the format, which no array of plain numbers needs")
    shape, _, dtype = readers[version](stream)
    if dtype.kind not in "biuf":
        raise ValueError(f"it holds {dtype.name[:40]}, not numbers")
    if max(shape, default=0) > MAX_SIDE or len(shape) != 2:
        raise ValueError(f"it has the shape {str(shape)[:60]}, expected 2 to {MAX_SIDE} rows and columns")
