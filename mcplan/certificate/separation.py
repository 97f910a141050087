"""Signed distances of convex solids (GJK and expanding polytope), many pairs at once, without the planner's kernels.

A solid is the convex hull of corners, ``conv{c_1 .. c_k}``, plus (Minkowski sum) an optional disc about an axis, plus a
ball of radius r. Boxes, hulls and prisms have corners only, a cylinder two corners and a disc, a capsule two and a
ball, a sphere one and a ball. With the support functions ``h_A(n) = max_{a in A} n'a`` every unit vector bounds the
signed distance from below::

    distance(A, B) = max_n -(h_A(-n) + h_B(n))

so that a plane between two solids proves a distance, whatever the algorithm that found it. Separated solids: algorithm
of Gilbert, Johnson and Keerthi, all pairs in the same array operations. Overlapping solids: expansion of the polytope
of their differences by Qhull.

Sources: E. Gilbert, D. Johnson & S. Keerthi, IEEE J. Robotics and Automation 4 (1988); G. van den Bergen, GDC 2001.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.spatial import ConvexHull, QhullError

GAP = 1e-7
"""m: difference of upper and lower bound at which a distance has converged."""

MAX_ITERATIONS, MAX_EXPANSIONS = 60, 80
"""Maximum iterations for the distance of separated solids, and for the depth of overlapping ones."""


class Convex(NamedTuple):
    """A convex solid in a frame.

    Parameters
    ----------
    corners : (k, 3) m.
    ball : radius around it, m.
    disc, axis : radius (m) of a disc about the unit vector ``axis`` (3,) at every corner; 0 for none.
    """

    corners: np.ndarray
    ball: float = 0.0
    disc: float = 0.0
    axis: np.ndarray = np.array([0.0, 0.0, 1.0])

    @property
    def reach(self) -> float:
        """Upper bound of the distance of the farthest point from the origin of the frame (m)."""
        return float(np.linalg.norm(self.corners, axis=1).max()) + self.disc + self.ball

    @property
    def bounds(self) -> tuple[np.ndarray, float]:
        """Centre (3,) and radius of a bounding ball (m)."""
        centre = (self.corners.min(axis=0) + self.corners.max(axis=0)) / 2
        radius = float(np.linalg.norm(self.corners - centre, axis=1).max())
        if self.disc:
            # disc and corners at right angles about a common axis: the rim, not the sum
            on_axis = np.abs(np.cross(self.corners - centre, self.axis)).max() < 1e-12
            radius = float(np.hypot(radius, self.disc)) if on_axis else radius + self.disc
        return centre, radius + self.ball

    def at(self, R: np.ndarray, p: np.ndarray) -> "Convex":
        """Return the solid in another frame, in which its own frame has the pose (R, p)."""
        return self._replace(corners=self.corners @ R.T + p, axis=R @ self.axis)

    def support(self, n: np.ndarray) -> np.ndarray:
        """Return the farthest points (M, 3), without the ball, along directions (M, 3)."""
        points = self.corners[np.argmax(n @ self.corners.T, axis=1)]
        if self.disc:
            across = n - (n @ self.axis)[:, None] * self.axis
            length = np.linalg.norm(across, axis=1, keepdims=True)
            points = points + self.disc * across / np.maximum(length, np.finfo(float).tiny)
        return points


class Placed(NamedTuple):
    """M placed convex solids: index of each (M,), and the pose R (M, 3, 3), p (M, 3) of its frame."""

    solids: Sequence[Convex]
    which: np.ndarray
    R: np.ndarray
    p: np.ndarray

    def rows(self, rows: np.ndarray) -> "Placed":
        """Return some of the places."""
        return self._replace(which=self.which[rows], R=self.R[rows], p=self.p[rows])

    def support(self, n: np.ndarray) -> np.ndarray:
        """Return the farthest points (M, 3) along directions (M, 3), world axes."""
        local = np.einsum("kji,kj->ki", self.R, n)
        points = np.empty_like(local)
        for s in np.flatnonzero(np.bincount(self.which, minlength=len(self.solids))).tolist():
            rows = self.which == s
            points[rows] = self.solids[s].support(local[rows])
        return np.einsum("kij,kj->ki", self.R, points) + self.p

    @property
    def balls(self) -> np.ndarray:
        """Radii (M,) around the solids, m."""
        return np.array([solid.ball for solid in self.solids])[self.which]

    def middle(self) -> np.ndarray:
        """Return the middles (M, 3) of the solids."""
        middles = np.array([solid.bounds[0] for solid in self.solids])[self.which]
        return np.asarray(np.einsum("kij,kj->ki", self.R, middles) + self.p)


class DistanceBounds(NamedTuple):
    """Bounds (M,) on signed distances (m): ``lower`` is proven by the plane with the normal (M, 3), from B to A."""

    lower: np.ndarray
    upper: np.ndarray
    normal: np.ndarray


def plane_bound(a: Placed, b: Placed, n: np.ndarray) -> np.ndarray:
    """Return lower bounds (M,) on signed distances, proven by planes with unit normals (M, 3)."""
    gap = np.einsum("ki,ki->k", n, a.support(-n) - b.support(n))
    return np.asarray(gap - a.balls - b.balls)


def signed_distances(a: Placed, b: Placed, enough: np.ndarray, deep: bool = True) -> DistanceBounds:
    """Return bounds on the signed distances of M pairs; within ``GAP`` for distances below ``enough``.

    Parameters
    ----------
    a, b : the pairs.
    enough : (M,) m; iteration stops for a pair with this proven distance.
    deep : whether to compute the depth of overlapping pairs; otherwise they are only known to overlap.
    """
    M = len(a.which)
    radius = a.balls + b.balls
    v = a.middle() - b.middle()
    size = np.linalg.norm(v, axis=1)
    v[size < GAP] = [0.0, 0.0, 1.0]
    lower, upper = np.full(M, -np.inf), np.full(M, np.inf)
    normal = v / np.linalg.norm(v, axis=1, keepdims=True)
    simplex, count = np.zeros((M, 4, 3)), np.zeros(M, int)
    inside = np.zeros(M, bool)
    alive = np.arange(M)
    for _ in range(MAX_ITERATIONS):
        if not len(alive):
            break
        direction = v[alive]
        length = np.linalg.norm(direction, axis=1)
        n = direction / length[:, None]
        w = a.rows(alive).support(-n) - b.rows(alive).support(n)
        bound = np.einsum("ki,ki->k", n, w) - radius[alive]
        better = bound > lower[alive]
        lower[alive[better]], normal[alive[better]] = bound[better], n[better]
        converged = (lower[alive] >= enough[alive]) | (upper[alive] - lower[alive] <= GAP)
        alive, w = alive[~converged], w[~converged]
        if not len(alive):
            break
        simplex[alive, 1:] = simplex[alive, :3]
        simplex[alive, 0] = w
        count[alive] = np.minimum(count[alive] + 1, 4)
        v[alive], simplex[alive], count[alive], full = _nearest(simplex[alive], count[alive])
        length = np.linalg.norm(v[alive], axis=1)
        upper[alive] = np.minimum(upper[alive], length - radius[alive])
        overlap = full | (length < GAP)
        inside[alive[overlap]] = True
        alive = alive[~overlap]
    if deep:
        _deepen(a, b, np.flatnonzero(inside & (lower < enough)), enough, lower, upper, normal, radius)
    return DistanceBounds(lower, np.maximum(upper, lower), normal)


_FACES = ((0,), (0, 1), (0, 2), (0, 3), (0, 1, 2), (0, 1, 3), (0, 2, 3))
"""Faces of a tetrahedron that contain its newest corner, which is the first."""


def _nearest(simplex: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the points of simplices (M, 4, 3) nearest to the origin, their faces, and whether the origin is inside.

    Candidates are the projections of the origin onto the faces with the newest corner, if they are in the face.
    """
    M = len(simplex)
    best, point, face = np.full(M, np.inf), simplex[:, 0].copy(), np.zeros(M, int)
    for f, corners in enumerate(_FACES):
        exists = count > max(corners)
        if not exists.any():
            continue
        foot, in_face = _foot(simplex[:, corners])
        square = np.einsum("ki,ki->k", foot, foot)
        better = exists & in_face & (square < best)
        best[better], point[better], face[better] = square[better], foot[better], f
    faces = np.zeros_like(simplex)
    size = np.zeros(M, int)
    for f, corners in enumerate(_FACES):
        rows = face == f
        faces[rows, : len(corners)] = simplex[rows][:, corners]
        size[rows] = len(corners)
    return point, faces, size, (count == 4) & _encloses(simplex)


def _foot(face: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the points of the planes of faces (M, k, 3) nearest to the origin, and whether they are in the faces."""
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
    """Return whether tetrahedra (M, 4, 3) contain the origin: on the inner side of each face."""
    inside = np.ones(len(simplex), bool)
    for i in range(4):
        a, b, c = (simplex[:, (i + j) % 4] for j in (1, 2, 3))
        n = np.cross(b - a, c - a)
        apex, origin = np.einsum("ki,ki->k", n, simplex[:, i] - a), -np.einsum("ki,ki->k", n, a)
        inside &= (apex * origin > 0) | ((origin == 0) & (apex != 0))
    return inside


def _deepen(
    a: Placed,
    b: Placed,
    rows: np.ndarray,
    enough: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    normal: np.ndarray,
    radius: np.ndarray,
) -> None:
    """Compute the depth of overlapping pairs, one by one; each plane found is tried on all remaining pairs."""
    while len(rows):
        i = rows[0]
        n, depth = _depth(a.rows(rows[:1]), b.rows(rows[:1]))
        lower[i], normal[i] = -depth - radius[i], n
        upper[i] = lower[i]
        rows = rows[1:]
        if not len(rows):
            break
        planes = np.broadcast_to(n, (len(rows), 3))
        bound = plane_bound(a.rows(rows), b.rows(rows), planes)
        better = bound > lower[rows]
        lower[rows[better]], normal[rows[better]] = bound[better], n
        rows = rows[lower[rows] < enough[rows]]


def _depth(a: Placed, b: Placed) -> tuple[np.ndarray, float]:
    """Return the normal from B to A and the depth of one overlapping pair, without balls.

    The polytope of differences ``A - B`` contains the origin; its nearest facet is moved outward until it converges.
    """

    def support(n: np.ndarray) -> np.ndarray:
        return a.support(n[None])[0] - b.support(-n[None])[0]

    best, shortest = np.array([0.0, 0.0, 1.0]), np.inf
    directions = [sign * axis for axis in np.eye(3) for sign in (-1.0, 1.0)]
    points = []
    for n in directions:
        points.append(support(n))
        if (distance := float(n @ points[-1])) < shortest:
            best, shortest = n, distance
    for _ in range(MAX_EXPANSIONS):
        try:
            facets = ConvexHull(np.array(points)).equations
        except QhullError:  # flat: use the least depth along the directions so far
            break
        nearest = int(np.argmax(facets[:, 3]))
        n, inner = facets[nearest, :3], -float(facets[nearest, 3])
        points.append(support(n))
        if (distance := float(n @ points[-1])) < shortest:
            best, shortest = n, distance
        if shortest - inner <= GAP or distance - inner <= GAP:
            break
    return -best, shortest
