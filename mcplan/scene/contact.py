"""Contacts: pose of a patch on a surface or bar in the world, constrained directions, friction and limits."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from mcplan.robot.pose import Pose, rotation_vector
from mcplan.robot.robot import Robot


@dataclass(frozen=True, eq=False)
class Carrier:
    """Free object that a contact of the robot loads.

    An object at rest on its support bears any load under which it neither slides nor tips.

    Parameters
    ----------
    name : of the object.
    mass : of the object, kg.
    com : (3,) its centre of mass in the world, m.
    rest : contact of the object with its support; the patch of this contact has the name and frame of the object. None
        in the air, where the robot's contacts on the object carry its weight.
    """

    name: str
    mass: float
    com: np.ndarray
    rest: "Contact | None"

    def with_margin(self, friction: float, force: float) -> "Carrier":
        """Return the object with friction and force limits of its resting contact scaled down."""
        return replace(self, rest=self.rest and self.rest.with_margin(friction, force))

    def moved(self, begin: Pose, end: Pose, stays: bool) -> "Carrier":
        """Return the object moved from one pose (R, p) to another; ``stays``: whether it stays on its support."""
        R = end[0] @ begin[0].T
        rest = self.rest.moved(begin, end) if stays and self.rest else None
        return replace(self, com=end[1] + R @ (self.com - begin[1]), rest=rest)


@dataclass(frozen=True, eq=False, repr=False)
class Contact:
    """A patch in contact with a support. P is the patch frame (z points out of the link), W the world frame.

    Parameters
    ----------
    patch : name of the robot's patch.
    support : name of the surface or bar.
    kind : ``surface`` (a polygon or an edge), ``point``, ``ball`` or ``grasp``.
    R, p : rotation (3,3) and position (3,) of the target pose ``X_WP``. Only the directions in ``selection`` are
        constrained. For a ball: upright, z into the support, independent of its link's rotation, and the position
        of its centre in that orientation.
    points : (k,3) relative to the patch origin, in patch axes (m): corners of the polygon (of its part on the surface
        if it overhangs), the two ends of an edge or of the line on a bar, the origin for a point and a grasp, the
        lowest point of a ball.
    axes : (3,3) with columns t1, t2 (tangents), n (outward normal of the support) in the world. For a grasp the patch
        axes.
    friction : Coulomb coefficient (unused for a grasp).
    max_force : largest normal force (N); for a grasp the largest norm of the force; inf if unlimited.
    max_moment : largest norm of the moment of a grasp (N m); inf if unlimited.
    selection : (m,6) orthonormal rows: the directions (linear, angular), in patch axes at the patch origin, in which
        the patch cannot move.
    coordinates : coordinates on the support as in files: ``x, y, yaw`` on a surface; ``along, angle, flip`` on a bar;
        ``along, offset, angle, flip`` for a sole on a bar.
    options : further keys of the file (``kind``, ``friction``, ``max_force``, ``slide``, ``hinge``, ``overhang``).
    radius : of a ball (m), else 0. When its link turns by the rotation vector ``phi`` from upright, the ball rolls: its
        centre is at ``p + radius phi x n``. It does not slip if ``v + radius n x w = 0``, with the velocity v of its
        centre and the angular velocity w.
    carrier : the free object that has the support as one of its surfaces, at its present pose; None for fixed supports.
    """

    patch: str
    support: str
    kind: str
    R: np.ndarray
    p: np.ndarray
    points: np.ndarray
    axes: np.ndarray
    friction: float
    max_force: float
    max_moment: float
    selection: np.ndarray
    coordinates: dict[str, float | bool] = field(default_factory=dict)
    options: dict[str, object] = field(default_factory=dict)
    radius: float = 0.0
    carrier: Carrier | None = None

    def __repr__(self) -> str:
        coordinates = ", ".join(f"{name}={value:.4g}" for name, value in self.coordinates.items())
        return f"Contact({self.patch!r} on {self.support!r}, {self.kind}, {coordinates})"

    def __post_init__(self):
        for name in _FIELDS:
            value = getattr(self, name)
            if isinstance(value, np.ndarray):
                object.__setattr__(self, name, _frozen(value))

    def _with(self, **changes: Any) -> "Contact":
        """Return a copy with some changes; it shares the other values, whose arrays are read-only."""
        copy, values = object.__new__(Contact), self.__dict__
        copy.__dict__.update({name: values[name] for name in _FIELDS}, **changes)
        return copy

    @property
    def normal(self) -> np.ndarray:
        """Unit vector (3,) along which the patch leaves its support: the outward normal, for a grasp ``-z_P``."""
        return -self.R[:, 2] if self.kind == "grasp" else self.axes[:, 2]

    @property
    def rolls(self) -> bool:
        """Whether the contact is a flat patch on a bar, which can roll; then the axes of the contact turn with it."""
        return self.kind == "surface" and "offset" in self.coordinates

    def axes_at(self, R: np.ndarray) -> np.ndarray:
        """Return the axes (3,3) for the patch rotation R (3,3); the axes of a rolling patch turn with it."""
        return R @ self.R.T @ self.axes if self.rolls else self.axes

    def turned(self, R: np.ndarray) -> np.ndarray:
        """Return the rotation of the axes of ``points`` and ``selection`` for the patch rotation R (..., 3, 3).

        These axes turn with the patch. Those of a ball are fixed: it touches below its centre in any orientation.
        """
        return np.broadcast_to(self.R, np.shape(R)) if self.radius else R

    def rolled(self, R: np.ndarray) -> np.ndarray:
        """Return the displacement (3,) of a ball that has rolled to the link rotation R (3,3): ``radius phi x n``."""
        if not self.radius:
            return np.zeros(3)
        return self.radius * np.cross(rotation_vector(R @ self.R.T), self.normal)

    def at(self, R: np.ndarray, p: np.ndarray) -> "Contact":
        """Return the contact at another pose of its patch, which may have turned about free axes, or rolled."""
        if self.radius:
            return self._with(p=_frozen(p))
        return self._with(R=_frozen(R), p=_frozen(p), axes=_frozen(self.axes_at(R)))

    def moved(self, begin: Pose, end: Pose) -> "Contact":
        """Return the contact after its support has moved from one pose (R, p) to another; its carrier is unchanged."""
        R = end[0] @ begin[0].T
        p = end[1] + R @ (self.p - begin[1])
        return self._with(R=_frozen(R @ self.R), p=_frozen(p), axes=_frozen(R @ self.axes))

    def with_margin(self, friction: float, force: float | None = None) -> "Contact":
        """Return the contact, and its carrier, with friction and force limits scaled down.

        The largest force and moment are scaled by ``force``, by default as ``friction``.
        """
        force = friction if force is None else force
        carrier = self.carrier and self.carrier.with_margin(friction, force)
        return self._with(
            friction=friction * self.friction,
            max_force=force * self.max_force,
            max_moment=force * self.max_moment,
            carrier=carrier,
        )

    def with_points(self, points: np.ndarray) -> "Contact":
        """Return the contact with other contact points (k, 3)."""
        return self._with(points=_frozen(points))

    @cached_property
    def free(self) -> np.ndarray:
        """Projection (6,6) of twists, linear then angular in patch axes, onto the free directions: ``1 - S' S``."""
        free = np.eye(6) - self.selection.T @ self.selection
        free.flags.writeable = False
        return free

    @cached_property
    def world_points(self) -> np.ndarray:
        """Contact points (k,3) in the world, at the target pose."""
        points = self.p + self.points @ self.R.T
        points.flags.writeable = False
        return points

    @cached_property
    def ground(self) -> float:
        """Height of the lowest contact point in the world (m)."""
        return float(self.world_points[:, 2].min())

    def same_place(self, other: "Contact", tolerance: float = 1e-6) -> bool:
        """Return whether the same patch touches the same support at the same pose (within ``tolerance``, m and rad).

        Free directions are ignored.
        """
        if (self.patch, self.support, self.kind) != (other.patch, other.support, other.kind):
            return False
        if self.selection.shape != other.selection.shape:
            return False
        R_rel = self.R.T @ other.R
        # twice the sine of the angle, which also vanishes at half a turn; there the trace is negative
        sines = np.array([R_rel[2, 1] - R_rel[1, 2], R_rel[0, 2] - R_rel[2, 0], R_rel[1, 0] - R_rel[0, 1]])
        if self.selection.shape[0] == 6 and np.trace(R_rel) < 0:
            return False
        difference = np.concatenate([self.R.T @ (other.p - self.p), sines / 2])
        return bool(np.max(np.abs(self.selection @ difference)) <= tolerance)

    def to_data(self) -> dict[str, object]:
        """Return the contact as a mapping with the keys of files."""
        return {"patch": self.patch, "surface": self.support, **self.coordinates, **self.options}


_FIELDS = tuple(item.name for item in fields(Contact))


def _frozen(value: np.ndarray) -> np.ndarray:
    """Return a read-only copy of an array, as floats."""
    value = np.array(value, float)
    value.flags.writeable = False
    return value


def contact_of(contacts: Iterable[Contact], patch: str) -> Contact:
    """Find the contact of a patch; raise a ``KeyError`` if there is none."""
    for contact in contacts:
        if contact.patch == patch:
            return contact
    raise KeyError(patch)


_AXIS_INDEX = {"x": 0, "y": 1, "z": 2}


def constrained_directions(free: Sequence[np.ndarray]) -> np.ndarray:
    """Return orthonormal rows (m,6) that span the complement of the ``free`` twists (6,).

    The unit vectors are projected in order, so that rows along patch axes are preserved.
    """
    basis: list[np.ndarray] = []
    for twist in free:
        remainder = _orthogonal_part(np.array(twist, float), basis)
        if np.linalg.norm(remainder) > 1e-9:
            basis.append(remainder / np.linalg.norm(remainder))
    free_count = len(basis)
    for unit in np.eye(6):
        remainder = _orthogonal_part(_orthogonal_part(unit, basis), basis)
        if np.linalg.norm(remainder) > 1e-6 and len(basis) < 6:
            basis.append(remainder / np.linalg.norm(remainder))
    return np.array(basis[free_count:]).reshape(-1, 6)


def ball_selection(radius: float) -> np.ndarray:
    """Return ``selection`` (3,6) of a rolling ball, whose lowest point, at ``radius`` along z, is at rest.

    The point's velocity is ``v + w x (0, 0, r) = (vx + r wy, vy - r wx, vz)``, in the axes of the contact.
    """
    rows = np.eye(6)[:3]
    rows[0, 4], rows[1, 3] = radius, -radius
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def rotation_about(direction: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Return the twist (6,) at the patch origin of a rotation about the line along e through r: v = -e x r, w = e."""
    return np.concatenate([-np.cross(direction, point), direction])


def axis_freedoms(slide: Sequence[str], hinge: Sequence[str]) -> list[np.ndarray]:
    """Return the twists (6,) of translations along, and rotations about, the named patch axes."""
    return [np.eye(6)[_AXIS_INDEX[name]] for name in slide] + [np.eye(6)[3 + _AXIS_INDEX[name]] for name in hinge]


def _orthogonal_part(vector: np.ndarray, basis: Sequence[np.ndarray]) -> np.ndarray:
    """Return the component of a vector orthogonal to an orthonormal basis."""
    for unit in basis:
        vector = vector - (vector @ unit) * unit
    return vector


def largest_per_link(robot: Robot, contacts: Sequence[Contact]) -> tuple[Contact, ...]:
    """Return the contacts without the edges, points and balls of links that also have a flat contact.

    The toe of a foot on its sole is an example: it carries load only when the foot is about to tip over the sole's rim.
    """
    flat_bodies = {robot.frame(c.patch)[0] for c in contacts if len(c.points) > 2}
    return tuple(
        c for c in contacts if len(c.points) > 2 or c.kind == "grasp" or robot.frame(c.patch)[0] not in flat_bodies
    )
