"""Signed distances of convex solids (GJK and expanding polytope), many pairs at once, without the planner's kernels.

A solid is the Minkowski sum of the convex hull of corners, ``conv{c_1 .. c_k}``, an optional disc about an axis, and a
ball of radius r. Boxes, hulls and prisms have corners only; a cylinder has two corners and a disc, a capsule two
corners and a ball, a sphere one corner and a ball. With the support functions ``h_A(n) = max_{a in A} n'a``, every unit
vector n bounds the signed distance from below::

    distance(A, B) = max_n -(h_A(-n) + h_B(n))

So a plane between two solids proves a distance, whatever algorithm found it. For separated solids planes are found by
the algorithm of Gilbert, Johnson and Keerthi, for all pairs in the same array operations. For overlapping solids the
polytope of their differences is expanded with Qhull.

Sources: E. Gilbert, D. Johnson & S. Keerthi, IEEE J. Robotics and Automation 4 (1988); G. van den Bergen, GDC 2001.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.spatial import ConvexHull, QhullError

GAP = 1e-7
"""m: difference of upper and lower bound at which a distance has converged."""

MAX_ITERATIONS, MAX_EXPANSIONS = 60, 80
"""Maximum number of iterations for the distance of separated solids, and for the depth of overlapping ones."""


@dataclass(frozen=True, eq=False)
class Convex:
    """A convex solid in a frame.

    Parameters
    ----------
    corners : (k, 3) m.
    ball : radius of the ball that is added to the solid, m.
    disc, axis : radius of the disc that is added, m (0: none), and its axis (3,), a unit vector.
    """

    corners: np.ndarray
    ball: float = 0.0
    disc: float = 0.0
    axis: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))

    @property
    def reach(self) -> float:
        """Upper bound of the distance of the farthest point from the origin of the frame (m)."""
        return float(np.linalg.norm(self.corners, axis=1).max()) + self.disc + self.ball

    @cached_property
    def bounds(self) -> tuple[np.ndarray, float]:
        """Centre (3,) and radius of a bounding ball (m)."""
        centre = (self.corners.min(axis=0) + self.corners.max(axis=0)) / 2
        radius = float(np.linalg.norm(self.corners - centre, axis=1).max())
        if self.disc:
            # a cylinder: the ball through its rims is smaller than the sum of both radii
            on_axis = np.abs(np.cross(self.corners - centre, self.axis)).max() < 1e-12
            radius = float(np.hypot(radius, self.disc)) if on_axis else radius + self.disc
        return centre, radius + self.ball

    def at(self, R: np.ndarray, p: np.ndarray) -> "Convex":
        """Return the solid in another frame, in which its own frame has the pose (R, p)."""
        return replace(self, corners=self.corners @ R.T + p, axis=R @ self.axis)

    def support(self, n: np.ndarray) -> np.ndarray:
        """Return the farthest points (M, 3) of the solid without its ball, along directions (M, 3)."""
        points = self.corners[np.argmax(n @ self.corners.T, axis=1)]
        if self.disc:
            radial = n - (n @ self.axis)[:, None] * self.axis
            length = np.linalg.norm(radial, axis=1, keepdims=True)
            points = points + self.disc * radial / np.maximum(length, np.finfo(float).tiny)
        return points


class Placed(NamedTuple):
    """M placed convex solids: index of each in ``solids`` (M,), and the pose R (M, 3, 3), p (M, 3) of its frame."""

    solids: Sequence[Convex]
    solid_index: np.ndarray
    R: np.ndarray
    p: np.ndarray

    def select(self, rows: np.ndarray) -> "Placed":
        """Return some of the placed solids."""
        return self._replace(solid_index=self.solid_index[rows], R=self.R[rows], p=self.p[rows])

    def support(self, n: np.ndarray) -> np.ndarray:
        """Return the farthest points (M, 3) without balls along directions (M, 3), world axes."""
        local = np.einsum("kji,kj->ki", self.R, n)
        points = np.empty_like(local)
        present = set(self.solid_index.tolist())
        for s in present:
            rows = self.solid_index == s if len(present) > 1 else slice(None)
            points[rows] = self.solids[s].support(local[rows])
        return np.einsum("kij,kj->ki", self.R, points) + self.p

    @property
    def balls(self) -> np.ndarray:
        """Radii (M,) of the balls of the solids, m."""
        return np.array([solid.ball for solid in self.solids])[self.solid_index]

    def centres(self) -> np.ndarray:
        """Return the centres (M, 3) of the solids."""
        centres = np.array([solid.bounds[0] for solid in self.solids])[self.solid_index]
        return np.asarray(np.einsum("kij,kj->ki", self.R, centres) + self.p)


class DistanceBounds(NamedTuple):
    """Bounds (M,) on signed distances (m); the plane with the normal (M, 3), from B to A, proves ``lower``."""

    lower: np.ndarray
    upper: np.ndarray
    normal: np.ndarray


def plane_bound(a: Placed, b: Placed, n: np.ndarray) -> np.ndarray:
    """Return lower bounds (M,) on signed distances, proven by planes with unit normals (M, 3)."""
    gap = np.einsum("ki,ki->k", n, a.support(-n) - b.support(n))
    return np.asarray(gap - a.balls - b.balls)


def signed_distances(a: Placed, b: Placed, sufficient: np.ndarray, compute_depth: bool = True) -> DistanceBounds:
    """Return bounds on the signed distances of M pairs; within ``GAP`` for distances below ``sufficient``.

    Parameters
    ----------
    a, b : both solids of each pair.
    sufficient : (M,) m; the iteration of a pair stops when this distance is proven.
    compute_depth : whether to compute the depth of overlapping pairs; otherwise their lower bound stays rough.
    """
    M = len(a.solid_index)
    radius = a.balls + b.balls
    v = a.centres() - b.centres()
    size = np.linalg.norm(v, axis=1)
    v[size < GAP] = [0.0, 0.0, 1.0]
    lower, upper = np.full(M, -np.inf), np.full(M, np.inf)
    normal = v / np.linalg.norm(v, axis=1, keepdims=True)
    simplex, count = np.zeros((M, 4, 3)), np.zeros(M, int)
    inside = np.zeros(M, bool)
    active = np.arange(M)
    for _ in range(MAX_ITERATIONS):
        if not len(active):
            break
        direction = v[active]
        length = np.linalg.norm(direction, axis=1)
        n = direction / length[:, None]
        w = a.select(active).support(-n) - b.select(active).support(n)
        bound = np.einsum("ki,ki->k", n, w) - radius[active]
        improved = bound > lower[active]
        lower[active[improved]], normal[active[improved]] = bound[improved], n[improved]
        converged = (lower[active] >= sufficient[active]) | (upper[active] - lower[active] <= GAP)
        active, w = active[~converged], w[~converged]
        if not len(active):
            break
        simplex[active, 1:] = simplex[active, :3]
        simplex[active, 0] = w
        count[active] = np.minimum(count[active] + 1, 4)
        v[active], simplex[active], count[active], full = _nearest(simplex[active], count[active])
        length = np.linalg.norm(v[active], axis=1)
        upper[active] = np.minimum(upper[active], length - radius[active])
        overlap = full | (length < GAP)
        inside[active[overlap]] = True
        active = active[~overlap]
    if compute_depth:
        _compute_depths(a, b, np.flatnonzero(inside & (lower < sufficient)), sufficient, lower, upper, normal, radius)
    return DistanceBounds(lower, np.maximum(upper, lower), normal)


_FACES = ((0,), (0, 1), (0, 2), (0, 3), (0, 1, 2), (0, 1, 3), (0, 2, 3))
"""Faces of a tetrahedron that contain its newest corner (index 0)."""


def _nearest(simplex: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the points of simplices (M, 4, 3) nearest to the origin, with the faces that contain them.

    Candidates are the projections of the origin onto the faces with the newest corner, if they lie in the face.

    Returns
    -------
    points (M, 3); corners of the faces (M, 4, 3) and their number (M,); mask (M,) of simplices around the origin.
    """
    M = len(simplex)
    best, point, face = np.full(M, np.inf), simplex[:, 0].copy(), np.zeros(M, int)
    for f, corners in enumerate(_FACES):
        exists = count > max(corners)
        if not exists.any():
            continue
        projection, in_face = _projection(simplex[:, corners])
        square = np.einsum("ki,ki->k", projection, projection)
        improved = exists & in_face & (square < best)
        best[improved], point[improved], face[improved] = square[improved], projection[improved], f
    faces = np.zeros_like(simplex)
    size = np.zeros(M, int)
    for f, corners in enumerate(_FACES):
        rows = face == f
        faces[rows, : len(corners)] = simplex[rows][:, corners]
        size[rows] = len(corners)
    return point, faces, size, (count == 4) & _encloses(simplex)


def _projection(face: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Project the origin onto the planes or lines of faces (M, k, 3); return the points and whether they are inside."""
    a, k = face[:, 0], face.shape[1]
    if k == 1:
        return a, np.ones(len(a), bool)
    d = face[:, 1] - a
    if k == 2:
        length = np.einsum("ki,ki->k", d, d)
        s = -np.einsum("ki,ki->k", a, d) / np.maximum(length, np.finfo(float).tiny)
        return a + s[:, None] * d, (s > 0) & (s < 1)
    e = face[:, 2] - a
    dd, ee, de = (np.einsum("ki,ki->k", x, y) for x, y in ((d, d), (e, e), (d, e)))
    ad, ae = np.einsum("ki,ki->k", a, d), np.einsum("ki,ki->k", a, e)
    det = dd * ee - de * de
    regular = det > 1e-14 * dd * ee
    det = np.where(regular, det, 1.0)
    s, t = (de * ae - ee * ad) / det, (de * ad - dd * ae) / det
    return a + s[:, None] * d + t[:, None] * e, regular & (s > 0) & (t > 0) & (s + t < 1)


def _encloses(simplex: np.ndarray) -> np.ndarray:
    """Return whether tetrahedra (M, 4, 3) contain the origin: it must be on the inner side of each face."""
    inside = np.ones(len(simplex), bool)
    for i in range(4):
        a, b, c = (simplex[:, (i + j) % 4] for j in (1, 2, 3))
        n = np.cross(b - a, c - a)
        apex, origin = np.einsum("ki,ki->k", n, simplex[:, i] - a), -np.einsum("ki,ki->k", n, a)
        inside &= (apex * origin > 0) | ((origin == 0) & (apex != 0))
    return inside


def _compute_depths(
    a: Placed,
    b: Placed,
    rows: np.ndarray,
    sufficient: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    normal: np.ndarray,
    radius: np.ndarray,
) -> None:
    """Compute the depth of overlapping pairs, each in turn; each plane found is also tried on all remaining pairs.

    Parameters
    ----------
    rows : indices of the overlapping pairs.
    sufficient : (M,) pairs with this proven distance need no depth, m.
    lower, upper, normal : results of all pairs, updated in place.
    radius : (M,) sum of the radii of the balls of each pair, m.
    """
    while len(rows):
        i = rows[0]
        n, depth = _depth(a.select(rows[:1]), b.select(rows[:1]))
        lower[i], normal[i] = -depth - radius[i], n
        upper[i] = lower[i]
        rows = rows[1:]
        if not len(rows):
            break
        planes = np.broadcast_to(n, (len(rows), 3))
        bound = plane_bound(a.select(rows), b.select(rows), planes)
        improved = bound > lower[rows]
        lower[rows[improved]], normal[rows[improved]] = bound[improved], n
        rows = rows[lower[rows] < sufficient[rows]]


def _depth(a: Placed, b: Placed) -> tuple[np.ndarray, float]:
    """Return the normal from B to A and the depth of one overlapping pair, without balls.

    The polytope of differences ``A - B`` contains the origin; its nearest facet is moved outward until it converges.
    """

    def support(n: np.ndarray) -> np.ndarray:
        return a.support(n[None])[0] - b.support(-n[None])[0]

    best, depth = np.array([0.0, 0.0, 1.0]), np.inf
    directions = [sign * axis for axis in np.eye(3) for sign in (-1.0, 1.0)]
    points = []
    for n in directions:
        points.append(support(n))
        if (distance := float(n @ points[-1])) < depth:
            best, depth = n, distance
    for _ in range(MAX_EXPANSIONS):
        try:
            facets = ConvexHull(np.array(points)).equations
        except QhullError:  # flat polytope: use the smallest depth so far
            break
        nearest = int(np.argmax(facets[:, 3]))
        n, inner = facets[nearest, :3], -float(facets[nearest, 3])
        points.append(support(n))
        if (distance := float(n @ points[-1])) < depth:
            best, depth = n, distance
        if depth - inner <= GAP or distance - inner <= GAP:
            break
    return -best, depth
