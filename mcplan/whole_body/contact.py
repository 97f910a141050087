"""Contact constraint of the whole-body program: constrained accelerations, friction cone and force limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mcplan.core.algebra import rotation as core
from mcplan.errors import InputError
from mcplan.optimize.dense import solve_dense
from mcplan.robot.terms import Terms
from mcplan.whole_body.packed import FlatParameters, NumberView, View

if TYPE_CHECKING:
    from mcplan.scene.contact import Contact


def rotation_error(target: ArrayLike, R: ArrayLike) -> NDArray[np.float64]:
    """Return ``log(R* R')``: the rotation vector, in world axes, turning ``R`` onto ``R*`` (rad, at most pi long)."""
    error = np.empty(3)
    matrices = [np.ascontiguousarray(matrix, dtype=np.float64).reshape(9) for matrix in (target, R)]
    core.rotation_error(matrices[0], matrices[1], np.empty(13), error)
    return error


def rotation_error_rate(error: ArrayLike, angular_velocity: ArrayLike) -> NDArray[np.float64]:
    """Return ``-d/dt log(R* R')`` (rad/s) at an error, where R rotates with ``angular_velocity`` (3,), world axes."""
    rate = np.empty(3)
    core.rotation_error_rate(np.asarray(error, float), np.asarray(angular_velocity, float), rate)
    return rate


Array = NDArray[np.float64]

MIN_FRICTION = 1e-3
"""Smallest friction coefficient of a contact: with a smaller one the cone lies within the inner margin of the rows."""


MIN_INDEPENDENCE = 1e-2
"""A contact row is dropped if at most this fraction of it is independent of all other contact rows. Redundant contacts
with errors of millimetres have almost dependent rows."""

FORCE_NORM_WEIGHT = 1e-6
"""Weight of the squared force norm relative to the squared wrench error in `least_forces`, if an exact solution would
need pulling points."""


@dataclass(frozen=True)
class ContactShape:
    """Structure of a contact constraint: contacts of equal structure share a declared problem."""

    grasp: bool
    points: int  # number of contact points; 1 for a grasp
    rows: int  # number of constrained directions
    ball: bool  # whether it is a ball that rolls: its axes stay those of the support
    free_rows: int  # free directions in which point forces must cancel; see `ContactConstraint`
    faces: int  # number of faces of the friction pyramid
    pyramid: str  # whether the pyramid is `inscribed` in the cone or `circumscribed`
    selection: tuple[float, ...]  # of a grasp: its wrench is selection' x unknowns

    @property
    def unknowns(self) -> int:
        """Number of force unknowns."""
        return self.rows if self.grasp else 3 * self.points

    @property
    def wrench_basis(self) -> Array:
        """(6, rows) wrench in patch axes of each unknown of a grasp."""
        return np.array(self.selection).reshape(self.rows, 6).T


class ContactConstraint(FlatParameters):
    """Contact at a patch: ``S R' (J vd + Jdot v) = S (kp e - kd V)`` and forces within their cone.

    ``R`` and ``p`` are the patch's pose, ``R*`` and ``p*`` the pose to hold. ``S`` selects the constrained directions
    in patch axes, ``e = (R'(p* - p), R' log(R* R'))`` is the drift from the pose to hold, ``V`` the patch's velocity in
    its axes. The unknowns of a ``surface`` or ``point`` contact are the forces of its points along the contact's axes
    ``(t1, t2, n)``; those of a grasp its wrench in patch axes along the rows of ``S``.

    For a ball R is R*, upright: it touches below its centre at any orientation of its link. With drift feedback the
    angular part of ``V`` is the rate of the drift: rolling is measured by the rotation from upright.

    A direction that ``S`` leaves free carries no force. A foot with ``slide: [x]`` slides without friction along x, as
    on rollers: the forces of its points cancel there, and each stays in its cone. A grasp with ``hinge: y`` bears no
    moment about y.

    Parameters
    ----------
    contact : resolved contact of the scene.
    kp, kd : feedback on the drift, 1/s² and 1/s: one number, or (6,) in patch axes (linear, angular; z is along the
        normal).
    min_force, max_force : bounds on the normal force of the whole contact, N. ``max_force`` applies in addition to that
        of the contact. For a grasp it bounds the magnitude of the force.
    faces, pyramid : friction pyramid, see ``friction_pyramid``.
    frame : frame of the terms whose motion is constrained; by default the patch. For a contact on a free object the
        relative frame.
    slip : unit vector along which the patch is sliding, in the plane of the support, or None. Its points then exert
        ``fn (n - mu slip)``, the edge of the cone that opposes the motion (up to ``MIN_FRICTION``).

    Attributes
    ----------
    R, p : pose to hold; initially that of the contact. May be changed, like gains, bounds and ``friction``.
    min_independence : (6,) in patch axes; a row is dropped if at most this fraction of it is independent of all
        other contact rows. Initially ``MIN_INDEPENDENCE``.
    own_max_force : largest normal force of the contact itself (grasp: of the magnitude), N.
    free_directions : (k, 6) free directions in which the forces of the points must cancel, in patch axes.
    max_moment : largest magnitude of a grasp's moment, N m.
    lever : m; the program weights a grasp's moment ``m`` like a force ``m / lever``. Initially largest moment over
        largest force of the contact, so that both are used alike; 1 if one of them is unlimited.
    preload : N, least normal force, distributed equally over the points; only the rest counts for friction. Initially
        zero.
    """

    kp, kd, min_independence, R, p = View(), View(), View(), View(), View()
    min_force, max_force, max_moment, friction = NumberView(), NumberView(), NumberView(), NumberView()
    own_max_force, lever, preload = NumberView(), NumberView(), NumberView()
    axes, selection, points, free_directions = View(), View(), View(), View()

    def __init__(
        self,
        contact: Contact,
        kp: float | Array = 100.0,
        kd: float | Array = 20.0,
        min_force: float = 0.0,
        max_force: float = np.inf,
        faces: int = 8,
        pyramid: str = "inscribed",
        frame: str | None = None,
        slip: Array | None = None,
    ):
        self.contact, self.patch, self.frame = contact, contact.patch, frame or contact.patch
        grasp = contact.kind == "grasp"
        if not grasp and contact.friction < MIN_FRICTION:
            raise InputError(f"contact of {self.patch}: friction {contact.friction}, expected {MIN_FRICTION} or more")
        points = np.zeros((1, 3)) if grasp else np.asarray(contact.points, dtype=np.float64)
        selection = np.asarray(contact.selection, dtype=np.float64)
        is_exempt = grasp or slip is not None
        free_directions = np.zeros((0, 6)) if is_exempt else _directions_without_force(contact, points, selection)
        # in the order of core.whole_body.layout
        self.allocate(
            kp=6, kd=6, min_independence=6, R=(3, 3), p=3, min_force=(), max_force=(), own_max_force=(), max_moment=(),
            friction=(), lever=(), preload=(), axes=(3, 3), selection=selection.shape, points=points.shape,
            free_directions=free_directions.shape,
        )  # fmt: skip
        self.kp, self.kd, self.R, self.p = kp, kd, contact.R, contact.p
        self.min_independence = MIN_INDEPENDENCE
        self.min_force, self.max_force, self.friction = min_force, max_force, contact.friction
        self.own_max_force = np.inf if contact.max_force is None else contact.max_force
        self.max_moment = np.inf if contact.max_moment is None else contact.max_moment
        has_both_limits = 0.0 < self.own_max_force < np.inf and 0.0 < self.max_moment < np.inf
        self.lever = self.max_moment / self.own_max_force if has_both_limits else 1.0
        self.preload = 0.0
        self.axes, self.selection, self.points, self.free_directions = (
            contact.axes,
            selection,
            points,
            free_directions,
        )
        if slip is not None:
            self.slide(slip)
            self.friction = MIN_FRICTION
        self.shape = ContactShape(
            grasp,
            len(points),
            len(selection),
            contact.radius > 0.0,
            len(free_directions),
            faces,
            pyramid,
            tuple(selection.ravel().tolist()) if grasp else (),
        )
        self.sort_key = (repr(self.shape), self.patch)

    def slide(self, slip: Array) -> None:
        """Set ``slip``: the points exert ``fn (n - mu slip)``. Only for a contact created with a ``slip``."""
        self.axes[:, 2] = self.contact.axes[:, 2] - self.contact.friction * slip

    @property
    def limit(self) -> float:
        """Largest normal force (grasp: magnitude of the force) at present, N."""
        return min(self.max_force, self.own_max_force)

    def wrench_map(self, terms: Terms) -> Array:
        """Return ``G (6, unknowns)``: the wrench at the patch origin, world axes, is ``G f``."""
        R = self.R if self.shape.ball else terms.frame(self.frame).R
        if self.shape.grasp:
            return _rotate(R, self.selection.T)
        return _wrench_map(R, self.axes, self.points)

    def force_map(self, terms: Terms) -> Array:
        """Return the map (nv, unknowns) from force unknowns to the generalised force."""
        return terms.frame(self.frame).J.T @ self.wrench_map(terms)

    def rows(self, terms: Terms) -> tuple[Array, Array]:
        """Return ``A (m, nv)`` and ``b (m,)`` of ``A vd = b``."""
        frame = terms.frame(self.frame)
        Rt = self.R.T if self.shape.ball else frame.R.T
        SR = np.hstack([self.selection[:, :3] @ Rt, self.selection[:, 3:] @ Rt])
        drift, speed = np.empty(6), np.empty(6)
        drift[:3] = Rt @ (self.p - frame.p)
        error, angular_velocity = rotation_error(self.R, frame.R), frame.velocity[3:]
        if self.shape.ball and self.kp[3] > 0.0:
            angular_velocity = rotation_error_rate(error, angular_velocity)
        drift[3:] = Rt @ error
        speed[:3] = Rt @ frame.velocity[:3]
        speed[3:] = Rt @ angular_velocity
        return SR @ frame.J, self.selection @ (self.kp * drift - self.kd * speed) - SR @ frame.bias

    def point_forces(self, terms: Terms, f: Array) -> Array:
        """Return (k, 3) forces of the environment on the robot, world axes, N (grasp: its force at the origin)."""
        if self.shape.grasp:
            return (self.wrench_map(terms)[:3] @ f).reshape(1, 3)
        return f.reshape(-1, 3) @ self.axes.T


def _directions_without_force(contact: Contact, points: Array, selection: Array) -> Array:
    """Return the free directions (k, 6), patch axes, in which point forces could do work and so have to cancel."""
    if len(selection) == 6:
        return np.zeros((0, 6))
    free = np.linalg.svd(selection)[2][len(selection) :]
    U, s, _ = np.linalg.svd(free @ _rotate(contact.R.T, _wrench_map(contact.R, contact.axes, points)), False)
    return U[:, s > 1e-9].T @ free


def count_unknowns(contact: Contact) -> int:
    """Return the number of force unknowns of a contact."""
    return len(contact.selection) if contact.kind == "grasp" else 3 * len(contact.points)


def least_forces(contact: Contact, wrench: Array) -> Array:
    """Return the minimum-norm force unknowns of a contact at its planned pose that produce a wrench (6,).

    No point pulls: a wrench that would need pulling points is approximated by pressing ones (least squares).
    """
    if contact.kind == "grasp":
        return np.linalg.pinv(_rotate(contact.R, contact.selection.T)) @ wrench
    G = _wrench_map(contact.R, contact.axes, contact.points)
    min_norm = np.linalg.pinv(G) @ wrench
    if min_norm[2::3].min() >= 0.0:
        return min_norm
    lower = np.tile([-np.inf, -np.inf, 0.0], len(contact.points))
    pressing_forces = solve_dense(G.T @ G + FORCE_NORM_WEIGHT * np.eye(len(lower)), -G.T @ wrench, x_lower=lower)
    return pressing_forces.x if pressing_forces.ok else min_norm


def _wrench_map(R: Array, t: Array, points: Array) -> Array:
    """Return (6, 3k): wrench at the patch origin, world axes, of the forces of points along the axes ``t``."""
    arms = points @ R.T
    G = np.empty((6, len(points), 3))
    G[:3] = t[:, None, :]
    # cross product of each lever arm with each axis; np.cross is ten times as slow
    G[3] = arms[:, 1:2] * t[2] - arms[:, 2:3] * t[1]
    G[4] = arms[:, 2:3] * t[0] - arms[:, 0:1] * t[2]
    G[5] = arms[:, 0:1] * t[1] - arms[:, 1:2] * t[0]
    return G.reshape(6, -1)


def _rotate(R: Array, columns: Array) -> Array:
    """Rotate both halves of 6-vectors."""
    return np.vstack([R @ columns[:3], R @ columns[3:]])
