"""Packed convex shapes of the distance kernels: a core, centred in its own frame, rounded by a radius.

The signed distance of two rounded shapes is that of their cores minus both radii. A core is defined by its support
function: the farthest point in a direction.

==========  ============================  =======================
kind        core                          half sizes
==========  ============================  =======================
SPHERE      the origin                    --
CAPSULE     segment along z               0, 0, half length
BOX         box                           half edges
CYLINDER    cylinder along z              radius, radius, half length
HULL        convex hull of vertices       half extents of the vertices, centred
PLANE       half-space z <= 0             --
==========  ============================  =======================
"""

import math
from typing import NamedTuple

import numpy as np

from mcplan.core.jit import jit, jit_inline

SPHERE, CAPSULE, BOX, CYLINDER, HULL, PLANE = range(6)
"""Kinds of shape."""

KIND, BODY, FIRST, COUNT, GRAPH = range(5)
"""Columns of ``Shapes.index``: kind, body that carries the shape (-1: the world), first vertex, number of vertices, and
first entry of a hull's part in ``Shapes.graph`` (-1: it has none)."""

CELLS = 8
"""The sides of the cube of directions have CELLS x CELLS cells. For each cell the graph of a hull has the farthest
vertex in the direction of the cell's centre, as the start of a search."""

HALF_SIZE, RADIUS, BOUNDING_RADIUS = 0, 3, 4
"""Columns of ``Shapes.size``: half sizes of the core (3), radius around it, radius of the bounding sphere (m)."""


class Shapes(NamedTuple):
    """Packed shapes. All arrays are read-only and C-contiguous."""

    index: np.ndarray  # (S, 5) int64, columns KIND .. GRAPH
    size: np.ndarray  # (S, 5) float64, columns HALF .. BALL
    offset: np.ndarray  # (S, 12) rotation (row-major) and position in the body or in the world
    vertices: np.ndarray  # (K, 3) of the hulls, each in its shape's frame
    graph: np.ndarray  # (G,) int64, a part per hull: start vertices of the 6 CELLS² cells; position of each
    # vertex's first neighbour, and of the end (COUNT + 1, relative to the part); neighbours. Vertices count from FIRST


@jit
def move_shape(R0, p0, R, p, offset, turn, pose):
    """Move a shape in place with its body, whose frame moves from pose (R0, p0) to (R, p).

    The frame of the shape may differ from that of the body: ``offset`` (12,) is its pose in the world. ``turn`` (3, 3)
    and ``pose`` (12,) are scratch.
    """
    for i in range(3):
        for j in range(3):
            turn[i, j] = R[i, 0] * R0[j, 0] + R[i, 1] * R0[j, 1] + R[i, 2] * R0[j, 2]
    x, y, z = offset[9] - p0[0], offset[10] - p0[1], offset[11] - p0[2]
    for i in range(3):
        pose[9 + i] = p[i] + (turn[i, 0] * x + turn[i, 1] * y + turn[i, 2] * z)
        for j in range(3):
            pose[3 * i + j] = turn[i, 0] * offset[j] + turn[i, 1] * offset[3 + j] + turn[i, 2] * offset[6 + j]
    for k in range(12):
        offset[k] = pose[k]


RELATIVE, SIMPLEX, POLYTOPE, FACES, HORIZON = 0, 1, 6, 134, 390
"""First rows of the parts of the scratch: pose of shape a in shape b's frame; simplex; vertices, faces and horizon
edges of the polytope."""

SCRATCH_SHAPE = (518, 12)


def scratch() -> np.ndarray:
    """Allocate the scratch space of the distance kernels."""
    return np.zeros(SCRATCH_SHAPE)


@jit_inline
def cell_of(x, y, z):
    """Return the cell of a direction on the cube: by its side, and row and column from the other two coordinates."""
    ax, ay, az = abs(x), abs(y), abs(z)
    if ax >= ay and ax >= az:
        side, m, u, v = (0 if x >= 0.0 else 1), ax, y, z
    elif ay >= az:
        side, m, u, v = (2 if y >= 0.0 else 3), ay, z, x
    else:
        side, m, u, v = (4 if z >= 0.0 else 5), az, x, y
    scale = 0.5 * CELLS / m if m > 0.0 else 0.0
    row = max(0, min(int(u * scale + 0.5 * CELLS), CELLS - 1))  # NaN becomes any row
    column = max(0, min(int(v * scale + 0.5 * CELLS), CELLS - 1))
    return (side * CELLS + row) * CELLS + column


@jit_inline
def farthest_vertex(shapes, i, x, y, z):
    """Return the farthest vertex of a hull in a direction, by hill climbing along the edges of its graph.

    In a convex body a vertex that is at least as far as all its neighbours is the farthest one.
    """
    first, start = shapes.index[i, FIRST], shapes.index[i, GRAPH]
    fans = start + 6 * CELLS * CELLS
    farthest = shapes.graph[start + cell_of(x, y, z)]
    k = first + farthest
    max_height = x * shapes.vertices[k, 0] + y * shapes.vertices[k, 1] + z * shapes.vertices[k, 2]
    improved = True
    while improved:
        improved = False
        current = farthest
        for j in range(start + shapes.graph[fans + current], start + shapes.graph[fans + current + 1]):
            k = first + shapes.graph[j]
            height = x * shapes.vertices[k, 0] + y * shapes.vertices[k, 1] + z * shapes.vertices[k, 2]
            if height > max_height:
                farthest, max_height, improved = shapes.graph[j], height, True
    return farthest


@jit_inline
def core_support(shapes, i, x, y, z):
    """Return the farthest point (three scalars) of the core of shape i in a direction, both in the shape's frame."""
    kind = shapes.index[i, KIND]
    a, b, c = shapes.size[i, HALF_SIZE], shapes.size[i, HALF_SIZE + 1], shapes.size[i, HALF_SIZE + 2]
    if kind == BOX:
        return (a if x >= 0.0 else -a), (b if y >= 0.0 else -b), (c if z >= 0.0 else -c)
    if kind == CYLINDER:
        length = math.sqrt(x * x + y * y)
        scale = a / length if length > 0.0 else 0.0
        return scale * x, scale * y, (c if z >= 0.0 else -c)
    if kind == HULL:
        first = shapes.index[i, FIRST]
        if shapes.index[i, GRAPH] >= 0:
            farthest = first + farthest_vertex(shapes, i, x, y, z)
            return shapes.vertices[farthest, 0], shapes.vertices[farthest, 1], shapes.vertices[farthest, 2]
        farthest = first
        max_height = -np.inf
        for k in range(first, first + shapes.index[i, COUNT]):
            height = x * shapes.vertices[k, 0] + y * shapes.vertices[k, 1] + z * shapes.vertices[k, 2]
            if height > max_height:
                farthest, max_height = k, height
        return shapes.vertices[farthest, 0], shapes.vertices[farthest, 1], shapes.vertices[farthest, 2]
    return 0.0, 0.0, (c if z >= 0.0 else -c)  # a sphere's half length is 0


@jit_inline
def posed_support(shapes, i, work, x, y, z):
    """Return the support point of shape i; point and direction are in the frame in which row RELATIVE is its pose."""
    R = work[RELATIVE]
    px, py, pz = core_support(
        shapes,
        i,
        R[0] * x + R[3] * y + R[6] * z,
        R[1] * x + R[4] * y + R[7] * z,
        R[2] * x + R[5] * y + R[8] * z,
    )
    return (
        R[0] * px + R[1] * py + R[2] * pz + R[9],
        R[3] * px + R[4] * py + R[5] * pz + R[10],
        R[6] * px + R[7] * py + R[8] * pz + R[11],
    )


@jit_inline
def difference_support(shapes, a, b, work, row, x, y, z):
    """Write the support point of ``A - B`` (columns 0..2) and that of A (columns 3..5) into a row of the scratch."""
    ax, ay, az = posed_support(shapes, a, work, x, y, z)
    bx, by, bz = core_support(shapes, b, -x, -y, -z)
    work[row, 0] = ax - bx
    work[row, 1] = ay - by
    work[row, 2] = az - bz
    work[row, 3] = ax
    work[row, 4] = ay
    work[row, 5] = az


@jit_inline
def write_relative_pose(pose, a, b, work):
    """Write the pose of shape a in shape b's frame into row RELATIVE; ``pose`` (S, 12) holds both in common axes."""
    x, y, z = pose[a, 9] - pose[b, 9], pose[a, 10] - pose[b, 10], pose[a, 11] - pose[b, 11]
    for r in range(3):
        u, v, w = pose[b, r], pose[b, 3 + r], pose[b, 6 + r]
        for c in range(3):
            work[RELATIVE, 3 * r + c] = u * pose[a, c] + v * pose[a, 3 + c] + w * pose[a, 6 + c]
        work[RELATIVE, 9 + r] = u * x + v * y + w * z
