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
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from mcplan.certificate.independent import cross

GAP = 1e-7
"""m: difference of upper and lower bound at which a distance has converged."""

MAX_ITERATIONS, MAX_EXPANSIONS = 60, 80
"""Maximum number of iterations for the distance of separated solids, and for the depth of overlapping ones."""

FEW_CORNERS = 8
"""Solids with at most this many corners, as a box has, are evaluated together, others one after the other."""

MIN_RADIAL = 1e-8
"""A unit vector whose distance from the axis of a disc is smaller is along the axis."""


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
        return points + _on_disc(n, self.axis, self.disc) if self.disc else points


def _on_disc(n: np.ndarray, axis: np.ndarray, radius: np.ndarray | float) -> np.ndarray:
    """Return the farthest points (M, 3) of discs along unit vectors (M, 3); the centres where these are along the axis.

    There the difference from the axis is rounding, whose direction may even be the axis.
    """
    radial = n - np.sum(n * axis, axis=1, keepdims=True) * axis
    length = np.linalg.norm(radial, axis=1, keepdims=True)
    return np.asarray(np.where(length > MIN_RADIAL, radius * radial / np.maximum(length, MIN_RADIAL), 0.0))


class SolidTable(NamedTuple):
    """Parameters of S solids: corners (S, FEW_CORNERS, 3), repeated where there are fewer; balls, discs, axes, centres.

    ``large`` are the indices of solids with more corners.
    """

    corners: np.ndarray
    ball: np.ndarray
    disc: np.ndarray
    axis: np.ndarray
    centre: np.ndarray
    large: frozenset[int]


@lru_cache(maxsize=64)
def _table(solids: tuple[Convex, ...]) -> SolidTable:
    rows = np.arange(FEW_CORNERS)
    return SolidTable(
        np.array([solid.corners[np.minimum(rows, len(solid.corners) - 1)] for solid in solids]),
        np.array([solid.ball for solid in solids]),
        np.array([solid.disc for solid in solids]),
        np.array([solid.axis for solid in solids]),
        np.array([solid.bounds[0] for solid in solids]),
        frozenset(s for s, solid in enumerate(solids) if len(solid.corners) > FEW_CORNERS),
    )


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
        local, table = np.einsum("kji,kj->ki", self.R, n), _table(tuple(self.solids))
        corners = table.corners[self.solid_index]
        points = corners[np.arange(len(n)), np.argmax(np.einsum("kcj,kj->kc", corners, local), axis=1)]
        discs = np.flatnonzero(table.disc[self.solid_index])
        if len(discs):
            solids = self.solid_index[discs]
            points[discs] += _on_disc(local[discs], table.axis[solids], table.disc[solids, None])
        for s in table.large.intersection(self.solid_index.tolist()) if table.large else ():
            rows = self.solid_index == s
            points[rows] = self.solids[s].support(local[rows])
        return np.einsum("kij,kj->ki", self.R, points) + self.p

    @property
    def balls(self) -> np.ndarray:
        """Radii (M,) of the balls of the solids, m."""
        return _table(tuple(self.solids)).ball[self.solid_index]

    def support_of(self, i: int, n: np.ndarray) -> np.ndarray:
        """Return the farthest points (M, 3) of solid i without its ball, along directions (M, 3), world axes."""
        return np.asarray(self.solids[self.solid_index[i]].support(n @ self.R[i]) @ self.R[i].T + self.p[i])

    def centres(self) -> np.ndarray:
        """Return the centres (M, 3) of the solids."""
        centres = _table(tuple(self.solids)).centre[self.solid_index]
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


def signed_distances(
    a: Placed,
    b: Placed,
    sufficient: np.ndarray,
    compute_depth: bool = True,
    sufficient_overlap: np.ndarray | float = np.inf,
) -> DistanceBounds:
    """Return bounds on the signed distances of M pairs; within ``GAP`` for distances below ``sufficient``.

    Parameters
    ----------
    a, b : both solids of each pair.
    sufficient : (M,) m; the iteration of a pair stops when this distance is proven.
    compute_depth : whether to compute the depth of overlapping pairs; otherwise their lower bound stays rough.
    sufficient_overlap : (M,) m; a depth is not computed either if this distance, of overlapping pairs, is proven.
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
        sufficient = np.minimum(sufficient, sufficient_overlap)
        _compute_depths(a, b, np.flatnonzero(inside & (lower < sufficient)), sufficient, lower, upper, normal, radius)
    return DistanceBounds(lower, np.maximum(upper, lower), normal)


_SECOND, _THIRD = np.array([0, 0, 1]), np.array([1, 2, 2])
"""Edges from the newest corner of a tetrahedron (index 0) that span its three faces with this corner."""

_FACES = np.array([(0, 0, 0, 0), (0, 1, 0, 0), (0, 2, 0, 0), (0, 3, 0, 0), (0, 1, 2, 0), (0, 1, 3, 0), (0, 2, 3, 0)])
"""Corners of the vertex, edges and faces of a tetrahedron that contain its newest corner, filled up with zeros."""

_SIZES = np.array([1, 2, 2, 2, 3, 3, 3])
"""Numbers of their corners."""


def _nearest(simplex: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the points of simplices (M, 4, 3) nearest to the origin, with the faces that contain them.

    Candidates are the projections of the origin onto the faces with the newest corner, if they lie in the face.

    Returns
    -------
    points (M, 3); corners of the faces (M, 4, 3) and their number (M,); mask (M,) of simplices around the origin.
    """
    rows, newest = np.arange(len(simplex)), simplex[:, 0]
    edges = simplex[:, 1:] - newest[:, None]
    squares, along = np.einsum("kij,kij->ki", edges, edges), np.einsum("ki,kji->kj", newest, edges)
    share = -along / np.maximum(squares, np.finfo(float).tiny)
    exists = count[:, None] > np.arange(1, 4)
    is_inside = [np.ones((len(simplex), 1), bool), exists & (share > 0) & (share < 1)]
    points = [newest[:, None], newest[:, None] + share[..., None] * edges]
    d, e, dd, ee, ad, ae = (x[:, k] for x in (edges, squares, along) for k in (_SECOND, _THIRD))
    de = np.einsum("kij,kij->ki", d, e)
    det = dd * ee - de * de
    regular = det > 1e-14 * dd * ee
    det = np.where(regular, det, 1.0)
    s, t = (de * ae - ee * ad) / det, (de * ad - dd * ae) / det
    is_inside.append(exists[:, _THIRD] & regular & (s > 0) & (t > 0) & (s + t < 1))
    points.append(newest[:, None] + s[..., None] * d + t[..., None] * e)
    candidates = np.concatenate(points, axis=1)
    distances = np.where(np.concatenate(is_inside, axis=1), np.einsum("kij,kij->ki", candidates, candidates), np.inf)
    face = np.argmin(distances, axis=1)
    full = np.zeros(len(simplex), bool)
    tetrahedra = np.flatnonzero(count == 4)
    full[tetrahedra] = _encloses(simplex[tetrahedra])
    return candidates[rows, face], simplex[rows[:, None], _FACES[face]], _SIZES[face], full


def _encloses(simplex: np.ndarray) -> np.ndarray:
    """Return whether tetrahedra (M, 4, 3) contain the origin: it must be on the inner side of each face."""
    inside = np.ones(len(simplex), bool)
    for i in range(4):
        a, b, c = (simplex[:, (i + j) % 4] for j in (1, 2, 3))
        n = cross((b - a).T, (c - a).T).T
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
        n, depth = _depth(a, b, i)
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


def _depth(a: Placed, b: Placed, i: int) -> tuple[np.ndarray, float]:
    """Return the normal from B to A and the depth of the overlapping pair i, without balls.

    The polytope of differences ``A - B`` contains the origin; its nearest facet is moved outward until it converges.
    """

    def support(n: np.ndarray) -> np.ndarray:
        return a.support_of(i, n) - b.support_of(i, -n)

    directions = np.vstack([np.eye(3), -np.eye(3)])
    points = support(directions)
    distances = np.einsum("ki,ki->k", directions, points)
    nearest = int(np.argmin(distances))
    best, depth = directions[nearest], float(distances[nearest])
    for _ in range(MAX_EXPANSIONS):
        try:
            facets = ConvexHull(points).equations
        except QhullError:  # flat polytope: use the smallest depth so far
            break
        nearest = int(np.argmax(facets[:, 3]))
        n, inner = facets[nearest, :3], -float(facets[nearest, 3])
        points = np.vstack([points, support(n[None])])
        if (distance := float(n @ points[-1])) < depth:
            best, depth = n, distance
        if depth - inner <= GAP or distance - inner <= GAP:
            break
    return -best, depth
