"""Contacts of free objects with the surfaces on which they rest, and sliding along them.

An object rests on a face. The supporting area is the part of the face over the surfaces of one plane; the face may
overhang an edge, or span the seams of a floor that consists of several convex surfaces.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from mcplan.errors import InputError
from mcplan.robot.description import Box, MeshShape, Shape
from mcplan.robot.solid import shape_inertia
from mcplan.scene.contact import Carrier, Contact
from mcplan.scene.environment import Environment, FreeObject, Surface
from mcplan.scene.polygon import clip, half_planes, max_excess, uncovered_area

if TYPE_CHECKING:
    from scipy.spatial import ConvexHull

CONTACT_TOLERANCE = 2e-3
"""Corners within this distance (m) of a surface touch it; an object does not rest on an area narrower than this."""

POSE_ROUNDING = 1e-6
"""Tolerance of height (m) and rotation matrix of a sliding object, since poses in files are rounded. Faces whose normal
has a smaller vertical component support no object."""


def resting_contact(thing: FreeObject, environment: Environment) -> Contact | None:
    """Return the contact of an object with the surfaces that it rests on; None if it is in the air or would tip.

    The patch of the contact has the object's name and frame, its support is the first of these surfaces, and its points
    are the corners of the supporting area.

    Raises
    ------
    InputError
        The object has no corners: only boxes and meshes rest on a face.
    """
    return _stable_contact(thing, environment.surfaces)


def _stable_contact(thing: FreeObject, surfaces: Iterable[Surface]) -> Contact | None:
    """Return the first contact with some of the surfaces on which the object does not tip, or None."""
    com = thing.p + thing.R @ shape_inertia(thing.shape, thing.mass)[0]
    return next((contact for contact in _face_contacts(thing, surfaces) if _supports_com(contact, com)), None)


def _supports_com(contact: Contact, com: np.ndarray) -> bool:
    """Whether the centre of mass (3,) projects vertically into the hull of a contact's points; else the object tips."""
    points, n = contact.world_points, contact.normal
    projection = com - [0.0, 0.0, n @ (com - points[0]) / n[2]]
    hull = _hull((points - points[0]) @ contact.axes[:, :2])
    in_plane = (projection - points[0]) @ contact.axes[:, :2]
    return bool((hull.equations @ [*in_plane, 1.0]).max() <= CONTACT_TOLERANCE)


def _face_contacts(thing: FreeObject, surfaces: Iterable[Surface]) -> Iterator[Contact]:
    """Yield the contacts of an object's faces with one surface below, or several coplanar ones."""
    corners = thing.p + _corners(thing) @ thing.R.T
    faces: dict[bytes, list[tuple[Surface, np.ndarray]]] = {}
    for surface in surfaces:
        local = (corners - surface.p) @ surface.R
        touches = np.abs(local[:, 2]) < CONTACT_TOLERANCE
        if surface.normal[2] < POSE_ROUNDING or _is_degenerate(local[touches, :2]):
            continue
        face_corners = corners[touches][_hull(local[touches, :2]).vertices]
        if max_excess(local[touches, :2], surface.polygon) <= CONTACT_TOLERANCE:
            yield _contact(thing, surface, face_corners)
        else:
            faces.setdefault(touches.tobytes(), []).append((surface, face_corners))
    for candidates in faces.values():
        parts = [(surface, _overlap(face_corners, surface)) for surface, face_corners in candidates]
        wide_parts = [(surface, part) for surface, part in parts if not _is_degenerate(part)]
        if wide_parts:
            surface = wide_parts[0][0]
            world = np.concatenate([part for _, part in wide_parts])
            yield _contact(thing, surface, world[_hull((world - surface.p) @ surface.R[:, :2]).vertices])


def _contact(thing: FreeObject, surface: Surface, points: np.ndarray) -> Contact:
    """Return the contact of an object with a surface at points (k,3) in the world."""
    return Contact(
        patch=thing.name, support=surface.name, kind="surface", R=thing.R, p=thing.p,
        points=(points - thing.p) @ thing.R, axes=surface.R, friction=thing.friction,
        max_force=np.inf, max_moment=np.inf, selection=np.eye(6),
    )  # fmt: skip


def _overlap(face: np.ndarray, surface: Surface) -> np.ndarray:
    """Return the corners (j,3) in the world of the part of a convex face (k,3) over a surface, in its plane."""
    part = clip((face - surface.p) @ surface.R[:, :2], *half_planes(surface.polygon))
    return np.asarray(surface.p + part @ surface.R[:, :2].T)


def _is_degenerate(points: np.ndarray) -> bool:
    """Whether points (k,2), or coplanar points (k,3), are fewer than three or almost collinear."""
    return len(points) < 3 or np.linalg.svd(points - points.mean(axis=0), compute_uv=False)[1] < CONTACT_TOLERANCE


@lru_cache(maxsize=64)
def carrier(environment: Environment, name: str) -> Carrier:
    """Return an object of an environment as the carrier of contacts on its surfaces, with its resting contact, if any.

    Raises
    ------
    InputError
        The environment lacks the object, or it is stacked with another one: mcplan does not plan or simulate stacks.
    """
    thing = next((thing for thing in environment.objects if thing.name == name), None)
    if thing is None:
        raise InputError(
            f"a contact is on a surface of the object {name}, which is not in the environment: give `environment=` "
            "with the object and its support"
        )
    for other in environment.objects:
        for upper, lower in ((thing, other), (other, thing)):
            if other is not thing and lies_on(upper, lower):
                raise InputError(
                    f"the object {upper.name} lies on the object {lower.name}: contacts on stacked objects are neither "
                    "planned nor simulated"
                )
    com, _ = shape_inertia(thing.shape, thing.mass)
    return Carrier(name, thing.mass, thing.p + thing.R @ com, resting_contact(thing, environment))


def lies_on(upper: FreeObject, lower: FreeObject) -> bool:
    """Whether an object touches the top of another one from above, also outside of its surfaces."""
    if not isinstance(upper.shape, Box | MeshShape):
        return False
    return next(_face_contacts(upper, [*lower.surfaces, *_tops(lower)]), None) is not None


def _tops(thing: FreeObject) -> Iterator[Surface]:
    """Yield the faces of a box, or of a mesh's hull, that can support an object: within 60 degrees of level."""
    if not isinstance(thing.shape, Box | MeshShape):
        return
    corners = thing.p + _corners(thing) @ thing.R.T
    planes = _hull(corners, "QJ").equations  # a flat mesh has a hull, too
    for plane in planes[planes[:, 2] > 0.5]:
        face = corners[np.abs(corners @ plane[:3] + plane[3]) < CONTACT_TOLERANCE]
        t1 = np.linalg.svd(plane[None, :3])[2][1]
        R = np.column_stack([t1, np.cross(plane[:3], t1), plane[:3]])
        local = (face - face[0]) @ R[:, :2]
        if not _is_degenerate(local):
            yield Surface(thing.name, R, face[0], local[_hull(local).vertices])


def slides(begin: Contact | None, end: Contact | None, environment: Environment) -> bool:
    """Whether an object can slide along its support, without rotation, from one resting contact to another.

    Coplanar surfaces must support it along the whole path.
    """
    if begin is None or end is None:
        return False
    height_change = float(begin.normal @ (end.p - begin.p))
    if abs(height_change) >= POSE_ROUNDING or not np.allclose(begin.R, end.R, rtol=0.0, atol=POSE_ROUNDING):
        return False
    path = np.concatenate([begin.world_points, begin.world_points + end.p - begin.p])
    origin, axes = begin.world_points[0], begin.axes[:, :2]
    swept = (path - origin) @ axes
    swept = swept[_hull(swept).vertices]
    supporting = []
    for surface in environment.surfaces:
        distance = (path - surface.p) @ surface.normal
        if begin.normal @ surface.normal > 0.0 and np.abs(distance).max() < CONTACT_TOLERANCE:
            A, b = half_planes((surface.corners - origin) @ axes)
            supporting.append((A, b + CONTACT_TOLERANCE))
    return uncovered_area(swept, supporting) < CONTACT_TOLERANCE**2


def _corners(thing: FreeObject) -> np.ndarray:
    """Return the corners (k,3) of an object in its own axes."""
    shape: Shape = thing.shape
    if isinstance(shape, Box):
        return np.array(np.meshgrid(*[(-s / 2, s / 2) for s in shape.size], indexing="ij")).reshape(3, -1).T
    if isinstance(shape, MeshShape):
        return shape.vertices
    raise InputError(f"object {thing.name}: expected a box or a mesh; a {type(shape).__name__.lower()} has no corners")


def _hull(points: np.ndarray, options: str | None = None) -> "ConvexHull":
    """Return the convex hull of points (k,d), computed with options of Qhull."""
    from scipy.spatial import ConvexHull  # slow import, not needed without objects

    return ConvexHull(points, qhull_options=options)
