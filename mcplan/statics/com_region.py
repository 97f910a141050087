"""Robust CoM region in three dimensions: positions of the centre of mass that contacts balance while it accelerates.

    { c :  for each of `DIRECTIONS` vectors d,  forces within cones and limits have the resultant m g d through c }

    d = (a_x, a_y, g) / g,   |a| = acceleration

At rest the height of the centre of mass does not matter; under acceleration (or a push) the region shrinks with the
height. For one ``d`` it is a prism along ``d``, whose section is computed like the support region; the region is the
intersection of the prisms.

Source: Audren & Kheddar, 3-D robust stability polyhedron in multicontact, IEEE T-RO 34(2), 2018.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.spatial import HalfspaceIntersection

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.errors import InputError
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.polygon import clip
from mcplan.statics.contact_forces import ForceUnknowns, TorqueRows, moments_about
from mcplan.statics.support_region import CLIP_M, SAME_POINT_M, SupportRegion, polygon_region, project
from mcplan.util.arguments import check_each, check_vector
from mcplan.util.text import summary

DIRECTIONS = 8
"""Number of horizontal directions in which the centre of mass may accelerate."""


@dataclass(frozen=True)
class ComPolyhedron:
    """A convex region of the centre of mass.

    Attributes
    ----------
    A, b : (k, 3), (k,): ``A c <= b``, m; rows of unit length. An empty region has one unsatisfiable row.
    acceleration : m/s², in any horizontal direction, that the contacts balance anywhere in it.
    reference : (3,) mean position of the contacts, m; at its height, each prism is clipped to `CLIP_M` around it.
    cut : (k,) whether a face comes from clipping at `CLIP_M`, not from the contacts.
    """

    A: np.ndarray
    b: np.ndarray
    acceleration: float
    reference: np.ndarray
    cut: np.ndarray

    __repr__ = summary

    def depth(self, point: np.ndarray) -> float:
        """Return the distance (m) from a point (3,) to the nearest face; negative outside."""
        return float((self.b - self.A @ check_vector("depth", "point", point, 3)).min())

    def section(self, height: float) -> SupportRegion:
        """Return the horizontal section of the region at a height (m)."""
        A, b = self.A[:, :2], self.b - self.A[:, 2] * height
        norms = np.linalg.norm(A, axis=1)
        if (b[norms < 1e-9] < 0.0).any():
            return polygon_region(np.zeros((0, 2)), True)
        is_sloped = norms >= 1e-9
        A, b, is_cut = A[is_sloped] / norms[is_sloped, None], b[is_sloped] / norms[is_sloped], self.cut[is_sloped]
        # clip a square that contains the section: prisms of opposite accelerations lean in opposite directions, so that
        # their intersection stays within CLIP_M
        square = self.reference[:2] + 2.0 * CLIP_M * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
        corners = np.asarray(clip(square, A, b)).reshape(-1, 2)
        return polygon_region(corners, not bool((corners @ A[is_cut].T > b[is_cut] - 1e-6).any()))

    def vertices(self, low: float, high: float) -> np.ndarray:
        """Return the corners (j, 3) of the part between two heights (m); none if it is empty or flat."""
        if np.isneginf(self.b).any():
            return np.zeros((0, 3))
        A = np.vstack([self.A, [0.0, 0.0, -1.0], [0.0, 0.0, 1.0]])
        b = np.concatenate([self.b, [-low, high]])
        # Qhull needs an interior point: the Chebyshev centre
        norms = np.linalg.norm(A, axis=1)
        optimum = linprog(
            [0.0, 0.0, 0.0, -1.0], np.column_stack([A, norms]), b, bounds=[(None, None)] * 3 + [(0.0, 1.0)]
        )
        if not optimum.success or optimum.x[3] < 1e-9:
            return np.zeros((0, 3))
        return np.asarray(HalfspaceIntersection(np.column_stack([A, -b]), optimum.x[:3]).intersections)


def com_polyhedron(
    contacts: Sequence[Contact],
    mass: float,
    acceleration: float = 0.5,
    faces: int = 8,
    limited: tuple[Robot, np.ndarray, float] | None = None,
) -> ComPolyhedron:
    """Return the region of the centre of mass that contacts balance while it accelerates.

    Parameters
    ----------
    contacts : those that carry load.
    mass : kg.
    acceleration : m/s², in any horizontal direction; equivalent to a push of ``mass * acceleration``.
    faces : faces of each friction pyramid.
    limited : robot, posture (nq,) and usable fraction of the torque limits, as additional constraints; see
        `mcplan.statics.support_region.torque_support_region`.

    Raises
    ------
    InputError
        There are no contacts, or the acceleration is negative.
    """
    contacts = check_each("com_polyhedron", "contacts", contacts, Contact)
    if not contacts:
        raise InputError("com_polyhedron: there are no contacts")
    if not acceleration >= 0.0:
        raise InputError(f"acceleration = {acceleration}, expected 0 m/s² or more")
    forces = ForceUnknowns(contacts, faces, mass * GRAVITY)
    reference = np.mean([contact.p for contact in contacts], axis=0)
    rows = moments_about(forces.map, reference) / forces.unit
    torque_rows = None if limited is None else TorqueRows.at(limited[0], limited[1], forces, limited[2])
    angles = 2.0 * np.pi * np.arange(DIRECTIONS if acceleration > 0.0 else 1) / DIRECTIONS
    A, b, is_cut = [], [], []
    for angle in angles:
        d = acceleration / GRAVITY * np.array([np.cos(angle), np.sin(angle)])
        # resultant (d, 1) through reference + (u, 0): its moment about the reference is (u, 0) x (d, 1)
        columns = np.zeros((6, 2))
        columns[3, 1], columns[4, 0], columns[5] = -1.0, 1.0, (-d[1], d[0])
        rhs = np.concatenate([d, [1.0], columns[3:] @ [CLIP_M, CLIP_M]])
        polygon = polygon_region(project(forces, rows, columns, rhs, CLIP_M, False, SAME_POINT_M, torque_rows), True)
        if polygon.empty:
            empty_rows = np.array([[0.0, 0.0, 1.0]]), np.array([-np.inf])
            return ComPolyhedron(*empty_rows, acceleration, reference, np.zeros(1, bool))
        normals = np.column_stack([polygon.A, -polygon.A @ d])
        norms = np.linalg.norm(normals, axis=1)
        A.append(normals / norms[:, None])
        b.append((polygon.b + polygon.A @ (reference[:2] - reference[2] * d)) / norms)
        is_cut.append(_cut_faces(polygon))
    return ComPolyhedron(np.vstack(A), np.concatenate(b), acceleration, reference, np.concatenate(is_cut))


def _cut_faces(polygon: SupportRegion) -> np.ndarray:
    """Return a mask (k,) of the faces whose corners all lie on one side of the square of half-width `CLIP_M`.

    The test uses corners, not normals: the end face of a segment has one corner and need not be parallel to that side.
    """
    is_not_corner = polygon.b[:, None] - polygon.A @ polygon.vertices.T > SAME_POINT_M
    is_on_side = np.vstack([polygon.vertices.T, -polygon.vertices.T]) > CLIP_M - 1e-6
    return np.asarray((is_not_corner[:, None] | is_on_side).all(axis=2).any(axis=1))
