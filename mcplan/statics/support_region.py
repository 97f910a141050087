"""Support region of contacts (CoM projections in static equilibrium), and ZMP support area.

    { (cx, cy) :  sum f + m g = 0,   sum r x f + c x m g = 0,   f within cones and limits }

is the projection of a polytope and does not depend on the height of the centre of mass. It is computed vertex by
vertex: a linear program gives the farthest point in a direction ``a``. The program along the normal of each edge either
confirms the edge or returns a point that splits it.

Source: Bretl & Lall, Testing static equilibrium for legged robots, IEEE T-RO 24(4), 2008.

ZMP support area: positions of the zero-tilting-moment point for contacts of any orientation. At constant CoM height and
angular momentum (the pendulum mode) the contact forces have a resultant ``(fx, fy, m g)`` through the centre of mass
``c``, which intersects the plane ``z = height`` at

    p = c_xy + (height - c_z) (fx, fy) / (m g),     c_xy'' = g (c_xy - p) / (c_z - height)

On flat ground with enough friction this is the hull of the contact points, wherever ``c`` is.

Source: Caron, Pham & Nakamura, ZMP support areas for multi-contact mobility under frictional constraints, IEEE T-RO
33(1), 2017.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mcplan.core.algebra.polygon import support_polygon
from mcplan.core.optimize import simplex
from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.errors import InputError, SolverFailed
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.polygon import clip
from mcplan.statics.contact_forces import ForceUnknowns, TorqueRows, moments_about
from mcplan.statics.static_program import StaticProgram
from mcplan.util.arguments import check_each, check_instance, check_vector

CLIP_M = 5.0
"""Half-width of the square around the contacts to which a region is clipped; between facing walls, which can squeeze
without limit, it is unbounded."""

SAME_POINT_M = 1e-7
"""Points closer than this count as one vertex."""

MAX_VERTICES = 1000
"""Capacity of a region; the solver reports an error beyond it."""


@dataclass(frozen=True, repr=False)
class SupportRegion:
    """A convex polygon in the horizontal plane; with one or two vertices a point or a segment.

    Attributes
    ----------
    vertices : (k, 2) counter-clockwise, m; empty if no position of the centre of mass can be balanced.
    A, b : (j, 2), (j,): the region is ``A c <= b`` with unit rows, b in m. A segment or point has four rows.
    bounded : False if the region was clipped (`CLIP_M`, for a ZMP support area `MAX_PUSH`).
    """

    vertices: np.ndarray
    A: np.ndarray
    b: np.ndarray
    bounded: bool = True

    @property
    def empty(self) -> bool:
        """Whether no position of the centre of mass can be balanced."""
        return len(self.vertices) == 0

    @cached_property
    def edges(self) -> np.ndarray:
        """Rows of A and b in one array (k, 3), for kernels."""
        return np.ascontiguousarray(np.column_stack([self.A, self.b]))

    @property
    def area(self) -> float:
        """Area of the polygon (m²)."""
        x, y = self.vertices.T if len(self.vertices) else (np.zeros(0), np.zeros(0))
        return float(0.5 * (x @ np.roll(y, -1) - y @ np.roll(x, -1)))

    @property
    def centre(self) -> np.ndarray:
        """Centroid (2,) of the area, or the midpoint of a segment."""
        area = self.area
        if area < 1e-10:
            return self.vertices.mean(axis=0)
        p, p_next = self.vertices, np.roll(self.vertices, -1, axis=0)
        weights = p[:, 0] * p_next[:, 1] - p[:, 1] * p_next[:, 0]
        return ((p + p_next) * weights[:, None]).sum(axis=0) / (6.0 * area)

    def __repr__(self) -> str:
        return f"SupportRegion({len(self.vertices)} vertices, {self.area:.4f} m²)"

    def _repr_svg_(self) -> str:
        """Outline from above for notebooks; `mcplan.plot` draws it with axes."""
        corners = self.vertices * [1.0, -1.0] if len(self.vertices) else np.zeros((1, 2))
        (left, top), (width, height) = corners.min(axis=0) - 0.02, np.ptp(corners, axis=0) + 0.04
        points = " ".join(f"{x:.4f},{y:.4f}" for x, y in corners)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="320" '
            f'viewBox="{left:.4f} {top:.4f} {width:.4f} {height:.4f}"><polygon points="{points}" '
            'fill="#1f77b4" fill-opacity="0.15" stroke="#1f77b4" stroke-width="0.002"/></svg>'
        )

    def depth(self, point: np.ndarray) -> float:
        """Return the smallest distance (m) of ``point`` (horizontal) from the lines of the edges; negative outside."""
        point_xy = check_vector("depth", "point", point, 2, 3)[:2]
        return -np.inf if self.empty else float((self.b - self.A @ point_xy).min())

    def inset(self, margin: float, share: float = 0.5) -> np.ndarray:
        """Return ``b`` of the region shrunk by ``margin`` (m).

        A thin region is shrunk less: each bound by at most ``share`` of half the region's width across it. If the
        shrunk region is empty, all margins are reduced until it contains a point.
        """
        if self.empty:
            return self.b
        widths = np.array([np.ptp(self.vertices @ a) for a in self.A])
        margins = np.minimum(margin, share * 0.5 * widths)
        for _ in range(20):
            if len(clip(self.vertices, self.A, self.b - margins + 1e-12)):
                return self.b - margins
            margins = 0.8 * margins
        return self.b.copy()


def support_region(
    contacts: Sequence[Contact], mass: float = 50.0, faces: int = 8, exact: bool = False, tolerance: float | None = None
) -> SupportRegion:
    """Project the equilibria of ``contacts`` onto the horizontal plane.

    Parameters
    ----------
    contacts : those that carry load.
    mass : kg; the region depends on it only with force limits, or with free objects as supports.
    faces : faces of each friction pyramid (with ``exact`` only for the initial rays).
    exact : use the exact cones; the region may have curved edges, which the polygon approximates from inside.
    tolerance : largest distance (m) of the true region beyond an edge of the polygon. By default 1e-7, or 1e-3 with
        ``exact``.
    """
    contacts = check_each("support_region", "contacts", contacts, Contact)
    forces = ForceUnknowns(contacts, faces, mass * GRAVITY)
    return _solve_region(forces, contacts, exact, tolerance)


def posture_support_region(
    robot: Robot, q: np.ndarray, contacts: Sequence[Contact], torque_share: float | None = None, exact: bool = False
) -> SupportRegion:
    """Return the support region of a robot in a posture, with its contacts at the patch poses of the posture.

    Parameters
    ----------
    q : (nq,) posture; it determines the poses of the contacts, also along their free directions.
    contacts : those that carry load.
    torque_share : usable fraction of the torque limits (`torque_support_region`); None: no torque limits.
    exact : use the exact friction cones instead of pyramids with 8 faces.
    """
    check_instance("support_region", "robot", robot, Robot)
    contacts = check_each("support_region", "contacts", contacts, Contact)
    moved_contacts = [
        contact.at(X[:3, :3], X[:3, 3]) for contact in contacts for X in [robot.frame_pose(q, contact.patch)]
    ]
    if torque_share is None:
        return support_region(moved_contacts, robot.mass, exact=exact)
    return torque_support_region(robot, q, moved_contacts, torque_share, exact=exact)


def has_support_region(contacts: Sequence[Contact], mass: float = 50.0, faces: int = 8) -> bool:
    """Return whether the support region is not empty, without computing it."""
    if not contacts:
        return False
    forces = ForceUnknowns(contacts, faces, mass * GRAVITY)
    rows, columns, rhs, _ = _equilibria(forces, contacts)
    return StaticProgram(forces, rows, columns, rhs, False, np.full(2, 2.0 * CLIP_M)).feasible


def torque_support_region(
    robot: Robot,
    q: np.ndarray,
    contacts: Sequence[Contact],
    torque_share: float = 1.0,
    faces: int = 8,
    exact: bool = False,
    tolerance: float | None = None,
) -> SupportRegion:
    """Project the equilibria within the torque limits of a posture.

        { (cx, cy) :  forces balance gravity at c,   |h(q) - sum J_i' f_i| <= share limit }

    The gravity torques h and Jacobians J of ``q`` are used for all positions of the centre of mass, so the region is
    exact at the centre of mass of ``q`` and an approximation around it.

    Parameters
    ----------
    torque_share : usable fraction of the torque limits.
    contacts, faces, exact, tolerance : see `support_region`.

    Source: Orsolino et al., Feasible region: an actuation-aware extension of the support region, IEEE T-RO 36(4), 2020.
    """
    check_instance("torque_support_region", "robot", robot, Robot)
    contacts = check_each("torque_support_region", "contacts", contacts, Contact)
    forces = ForceUnknowns(contacts, faces, robot.mass * GRAVITY)
    return _solve_region(forces, contacts, exact, tolerance, TorqueRows.at(robot, q, forces, torque_share))


def _solve_region(
    forces: ForceUnknowns,
    contacts: Sequence[Contact],
    exact: bool,
    tolerance: float | None,
    torque_rows: TorqueRows | None = None,
) -> SupportRegion:
    """Return the support region of the equilibria with ``forces``; parameters as for `support_region` and `project`."""
    if not contacts:
        return polygon_region(np.zeros((0, 2)), True)
    tolerance = (1e-3 if exact else SAME_POINT_M) if tolerance is None else tolerance
    rows, columns, rhs, reference = _equilibria(forces, contacts)
    u = project(forces, rows, columns, rhs, CLIP_M, exact, tolerance, torque_rows)
    return polygon_region(u + reference[:2], len(u) == 0 or bool(np.abs(u).max() < CLIP_M - 1e-6))


def _equilibria(forces: ForceUnknowns, contacts: Sequence[Contact]) -> tuple[np.ndarray, ...]:
    """Return ``rows, columns, rhs`` of all equilibria for `project`, and the mean contact position (3,), at u = 0."""
    reference = np.mean([contact.p for contact in contacts], axis=0)
    # moment of gravity about the reference: (c - reference) x (0, 0, -1) = (-u_y, u_x, 0); u = u' - CLIP_M, u' >= 0
    columns = np.zeros((6, 2))
    columns[3, 1], columns[4, 0] = -1.0, 1.0
    rhs = np.array([0.0, 0.0, 1.0, -CLIP_M, CLIP_M, 0.0])
    return moments_about(forces.map, reference) / forces.unit, columns, rhs, reference


def project(
    forces: ForceUnknowns,
    rows: np.ndarray,
    columns: np.ndarray,
    rhs: np.ndarray,
    bound: float,
    exact: bool,
    tolerance: float,
    torque_rows: TorqueRows | None = None,
) -> np.ndarray:
    """Return the vertices (k, 2), counter-clockwise, of the polygon of ``u`` with admissible forces.

        rows f + columns u' = rhs,   u' = u + bound,   -bound <= u <= bound

    Parameters
    ----------
    forces : the unknown forces f (size,).
    rows, columns, rhs : (6, size), (6, 2), (6,), scaled to the order of one.
    bound : half-width of the square to which the polygon is clipped, in the unit of u.
    exact, tolerance : see `support_region`; the tolerance in the unit of u.
    torque_rows : torque limits as additional constraints.
    """
    upper, slack = np.full(2, 2.0 * bound), np.full(len(rhs), -1)
    if torque_rows is not None:
        k = len(torque_rows.map)
        rows, rhs = np.vstack([rows, torque_rows.map]), np.concatenate([rhs, torque_rows.rhs])
        padded = np.zeros((6 + k, 2 + k))
        padded[:6, :2], padded[6:, 2:] = columns, np.eye(k)
        columns = padded
        upper = np.concatenate([upper, np.full(k, 2.0 * torque_rows.share)])
        slack = np.concatenate([slack, np.arange(2, 2 + k)])
    program = StaticProgram(forces, rows, columns, rhs, exact, upper, slack)
    if not program.feasible:
        return np.zeros((0, 2))
    vertices, confirmed = np.empty((MAX_VERTICES, 2)), np.empty(MAX_VERTICES, np.int64)
    count, status = support_polygon(
        program.work,
        exact,
        tolerance,
        SAME_POINT_M,
        program.cost,
        np.empty(len(program.cost)),
        vertices,
        confirmed,
    )
    if status != simplex.OPTIMAL:
        raise SolverFailed(f"the support region of {len(forces.blocks)} contacts was not found: status {status}")
    return vertices[:count] - bound


def polygon_region(p: np.ndarray, bounded: bool) -> SupportRegion:
    """Return the region of a polygon (k, 2), without vertices that lie on the line through their neighbours."""
    if not len(p):
        return SupportRegion(np.zeros((0, 2)), np.zeros((0, 2)), np.zeros(0), bounded)
    if len(p) > 2:
        edge_before, edge_after = p - np.roll(p, 1, axis=0), np.roll(p, -1, axis=0) - p
        cross = edge_before[:, 0] * edge_after[:, 1] - edge_before[:, 1] * edge_after[:, 0]
        corner = cross > 1e-9 * np.linalg.norm(np.roll(p, -1, axis=0) - np.roll(p, 1, axis=0), axis=1)
        # degenerate to a segment: its end points are the extremes along x, or along y if it is parallel to y
        p = p[corner] if corner.sum() > 2 else p[[int(np.argmin(p @ [1.0, 1e-3])), int(np.argmax(p @ [1.0, 1e-3]))]]
    if len(p) > 2:
        edge = np.roll(p, -1, axis=0) - p
        A = np.column_stack([edge[:, 1], -edge[:, 0]]) / np.linalg.norm(edge, axis=1, keepdims=True)
        b = np.einsum("ij,ij->i", A, p)
    else:
        direction = p[-1] - p[0]
        direction = direction / np.linalg.norm(direction) if np.linalg.norm(direction) > 0.0 else np.array([1.0, 0.0])
        normal = np.array([-direction[1], direction[0]])
        A = np.array([direction, -direction, normal, -normal])
        b = (A @ p.T).max(axis=1)
    return SupportRegion(p, A, b, bounded)


MAX_PUSH = 10.0
"""Largest horizontal force of the ZMP support area, in weights; facing walls can squeeze without limit."""


def zmp_area(
    com: np.ndarray,
    contacts: Sequence[Contact],
    mass: float,
    height: float = 0.0,
    faces: int = 8,
    exact: bool = False,
    tolerance: float | None = None,
) -> SupportRegion:
    """Return the ZMP support area (the module's docstring defines it).

    Parameters
    ----------
    com : (3,) centre of mass, m.
    contacts : those that carry load.
    mass : kg.
    height : of the horizontal plane in which the area lies, m; not that of the centre of mass.
    faces, exact, tolerance : as for `support_region`.

    Raises
    ------
    InputError
        The plane passes through the centre of mass.
    """
    c = check_vector("zmp_area", "com", com, 3)
    contacts = check_each("zmp_area", "contacts", contacts, Contact)
    lever = height - c[2]
    if abs(lever) < 1e-6:
        raise InputError(f"height {height} m: the plane passes through the centre of mass, where the ZMP is undefined")
    if not contacts:
        return polygon_region(np.zeros((0, 2)), True)
    forces = ForceUnknowns(contacts, faces, mass * GRAVITY)
    columns = np.zeros((6, 2))
    columns[0, 0] = columns[1, 1] = -1.0
    rhs = np.array([-MAX_PUSH, -MAX_PUSH, 1.0, 0.0, 0.0, 0.0])
    tolerance = (1e-3 if exact else SAME_POINT_M) if tolerance is None else tolerance
    rows = moments_about(forces.map, c) / forces.unit
    u = project(forces, rows, columns, rhs, MAX_PUSH, exact, tolerance / abs(lever))
    return polygon_region(c[:2] + lever * u, len(u) == 0 or bool(np.abs(u).max() < MAX_PUSH - 1e-6))
