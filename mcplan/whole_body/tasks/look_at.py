"""Look-at task: an axis of a link points at a point of the world, or of another link."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mcplan.errors import InputError
from mcplan.robot.terms import Terms
from mcplan.util.text import summary
from mcplan.whole_body.tasks.task import Array, damping

MIN_TARGET_DISTANCE_M = 0.02
"""Lower bound of the target distance (m): the direction to a nearer target rotates too fast."""


class Point(NamedTuple):
    """A point of a link: position, velocity, Jacobian (3, nv) and ``Jdot v``, world axes."""

    p: Array
    velocity: Array
    J: Array
    bias: Array


class LookAtTask:
    """Task that drives the angle between an axis and the direction to a target to zero, by ``B' (w - w_s)``.

    With the eye point ``o`` and the target ``t``, ``D = |t - o|``, ``s = (t - o) / D``, ``u = tdot - odot`` and the
    axis ``a = R a_L`` of the link::

        w_s = s x u / D                                   angular velocity of the direction
        e = angle(a, s) * (a x s) / |a x s|               rotation vector from the axis to the direction
        B' (wd - wd_s) + B' (w x w_s) = kp B' e - kd B' (w - w_s)

    ``B (3, 2)`` spans the plane normal to the axis and is fixed in the link; the rotation about the axis stays free.
    ``wd_s = s x udot / D - 2 (s . u / D) (s x sdot)`` contains the accelerations of ``o`` and ``t``, hence of the
    robot. Opposite to the target, where ``a x s`` vanishes, ``e`` is half a turn about the first column of ``B``.

    Parameters
    ----------
    frame : name of the link with the axis.
    axis : (3,) the axis in the link, of any length.
    eye : (3,) origin of the axis in the link, m.
    target_frame : link or patch with the target; None: the target is in the world.
    weight, kp, kd : cost weight, stiffness (1/s²), damping (1/s; critical when None).

    Attributes
    ----------
    target : (3,) point in the world, or in ``target_frame``, m; zero until set.
    velocity, acceleration : (3,) of a target in the world. They may be changed at any time.
    """

    diagonal = False

    __repr__ = summary

    def __init__(
        self,
        frame: str,
        axis: ArrayLike = (1.0, 0.0, 0.0),
        eye: ArrayLike = (0.0, 0.0, 0.0),
        target_frame: str | None = None,
        weight: float | Array = 10.0,
        kp: float = 100.0,
        kd: float | None = None,
    ):
        self.frame, self.target_frame = frame, target_frame
        self.weight, self.kp, self.kd = weight, kp, damping(kp, kd)
        self.eye = np.array(eye, dtype=np.float64)
        self.axis = np.array(axis, dtype=np.float64)
        size = float(np.linalg.norm(self.axis))
        if not size > 0.0:
            raise InputError(f"task on {frame}: its axis has no direction")
        self.axis /= size
        self._plane = np.linalg.svd(self.axis[None, :])[2][1:].T
        self.target = np.zeros(3)
        self.velocity = np.zeros(3)
        self.acceleration = np.zeros(3)

    @property
    def frames(self) -> tuple[str, ...]:
        """The frame with the axis, and that of the target."""
        return (self.frame,) if self.target_frame is None else (self.frame, self.target_frame)

    @property
    def dimension(self) -> int:
        """Number of rows: 2."""
        return 2

    @property
    def key(self) -> tuple:
        """Structure key; see `Task.key`."""
        return ("look at", 2)

    def error(self, terms: Terms) -> Array:
        """Return ``B' e``, rad; its norm is the angle between the axis and the direction to the target."""
        return self._plane.T @ self._link_error(self._direction(terms)[0], terms)

    def rows(self, terms: Terms) -> tuple[Array, Array]:
        """Return ``A`` and ``b`` of the rows ``A vd = b``."""
        link = terms.frame(self.frame)
        B, w = link.R @ self._plane, link.velocity[3:]
        J, relative, bias = self.motion(terms)
        bias = bias + np.cross(w, w - relative)
        return B.T @ J, self.kp * self.error(terms) - self.kd * (B.T @ relative) - B.T @ bias

    def motion(self, terms: Terms) -> tuple[Array, Array, Array]:
        """Return ``J (3, nv)``, ``w - w_s`` and ``c`` of ``d/dt (w - w_s) = J vd + c``, world axes."""
        link, eye, target = terms.frame(self.frame), self._eye(terms), self._target(terms)
        s, D = self._direction(terms)
        u = target.velocity - eye.velocity
        closing = float(s @ u) / D
        s_dot = u / D - closing * s
        direction_rate = np.cross(s, s_dot)
        J = link.J[3:] - _cross_matrix(s / D) @ (target.J - eye.J)
        bias = link.bias[3:] - np.cross(s, target.bias - eye.bias) / D + 2 * closing * direction_rate
        return J, link.velocity[3:] - direction_rate, bias

    def _direction(self, terms: Terms) -> tuple[Array, float]:
        """Return the unit vector from eye to target (world), and their distance, at least the minimum (m)."""
        d = self._target(terms).p - self._eye(terms).p
        distance = float(np.linalg.norm(d))
        if distance < 1e-9:
            return terms.frame(self.frame).R @ self.axis, MIN_TARGET_DISTANCE_M
        return d / distance, max(distance, MIN_TARGET_DISTANCE_M)

    def _link_error(self, s: Array, terms: Terms) -> Array:
        """Return ``R' e``, in the link's axes."""
        s_L = terms.frame(self.frame).R.T @ s
        normal, cosine = np.cross(self.axis, s_L), float(self.axis @ s_L)
        sine = float(np.linalg.norm(normal))
        if sine < 1e-9:
            return normal if cosine > 0.0 else np.pi * self._plane[:, 0]
        return normal * (np.arctan2(sine, cosine) / sine)

    def _eye(self, terms: Terms) -> Point:
        return _point(terms, self.frame, self.eye)

    def _target(self, terms: Terms) -> Point:
        if self.target_frame is not None:
            return _point(terms, self.target_frame, self.target)
        return Point(self.target, self.velocity, np.zeros((3, len(terms.v))), self.acceleration)


def _point(terms: Terms, name: str, offset: Array) -> Point:
    """Return the point at ``offset`` (3,) in the frame ``name``."""
    frame = terms.frame(name)
    arm, w = frame.R @ offset, frame.velocity[3:]
    return Point(
        frame.p + arm,
        frame.velocity[:3] + np.cross(w, arm),
        frame.J[:3] - _cross_matrix(arm) @ frame.J[3:],
        frame.bias[:3] + np.cross(frame.bias[3:], arm) + np.cross(w, np.cross(w, arm)),
    )


def _cross_matrix(a: Array) -> Array:
    """Return the matrix of the cross product with ``a`` (3,)."""
    x, y, z = a
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
