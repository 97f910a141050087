"""Resting contacts of free objects: their support, carrier of contacts, and sliding.

An object rests on a face. The supporting area is the part of the face over the surfaces of one plane; the face may
overhang an edge, or span the seams of a floor that consists of several convex surfaces.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np
from scipy.spatial import ConvexHull

from mcplan.errors import InputError
from mcplan.robot.description import Box, MeshShape, Shape
from mcplan.robot.solid import shape_inertia
from mcplan.scene.contact import Carrier, Contact
from mcplan.scene.environment import Environment, FreeObject, Surface
from mcplan.scene.polygon import clip, half_planes, outside, uncovered

CONTACT_TOLERANCE = 2e-3
"""m: corners within this distance touch a surface; on a narrower support area, an edge, an object cannot rest."""

ROUNDING = 1e-6
"""m, rad: tolerance of height and orientation of a sliding object; poses in files are rounded."""


def resting_contact(thing: FreeObject, environment: Environment) -> Contact | None:
    """Return the contact of an object with the surfaces that it rests on; None if it is in the air or would tip.

    The contact has a patch with the object's name and frame, on the first of these surfaces; its points are the corners
    of the supporting area.

    Raises
    ------
    InputError
        The object has no corners: only boxes and meshes rest on a face.
    """
    return _resting(thing, environment.surfaces)


def _resting(thing: FreeObject, surfaces: Iterable[Surface]) -> Contact | None:
    com = thing.p + thing.R @ shape_inertia(thing.shape, thing.mass)[0]
    return next((contact for contact in _touching(thing, surfaces) if _supports_com(contact, com)), None)


def _supports_com(contact: Contact, com: np.ndarray) -> bool:
    """Whether the centre of mass (3,) projects vertically into the points of a contact; otherwise the object tips."""
    points, n = contact.world_points, contact.normal
    projection = com - [0.0, 0.0, n @ (com - points[0]) / n[2]]
    hull = ConvexHull((points - points[0]) @ contact.axes[:, :2])
    in_plane = (projection - points[0]) @ contact.axes[:, :2]
    return bool((hull.equations @ [*in_plane, 1.0]).max() <= CONTACT_TOLERANCE)


def _touching(thing: FreeObject, surfaces: Iterable[Surface]) -> Iterator[Contact]:
    """Yield the contacts of an object's faces with one surface below, or several coplanar ones."""
    corners = thing.p + _corners(thing) @ thing.R.T
    faces: dict[bytes, list[tuple[Surface, np.ndarray]]] = {}
    for surface in surfaces:
        local = (corners - surface.p) @ surface.R
        touching = np.abs(local[:, 2]) < CONTACT_TOLERANCE
        if surface.normal[2] < ROUNDING or _is_degenerate(local[touching, :2]):
            continue
        face = corners[touching][ConvexHull(local[touching, :2]).vertices]
        if outside(local[touching, :2], surface.polygon) <= CONTACT_TOLERANCE:
            yield _contact(thing, surface, face)
        else:
            faces.setdefault(touching.tobytes(), []).append((surface, face))
    for candidates in faces.values():
        parts = [(surface, _overlap(face, surface)) for surface, face in candidates]
        wide_parts = [(surface, part) for surface, part in parts if not _is_degenerate(part)]
        if wide_parts:
            surface = wide_parts[0][0]
            world = np.concatenate([part for _, part in wide_parts])
            yield _contact(thing, surface, world[ConvexHull((world - surface.p) @ surface.R[:, :2]).vertices])


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
    """Whether points (k,2), or coplanar points (k,3), are collinear or too few."""
    return len(points) < 3 or np.linalg.svd(points - points.mean(axis=0), compute_uv=False)[1] < CONTACT_TOLERANCE


@lru_cache(maxsize=64)
def carrier(environment: Environment, name: str) -> Carrier:
    """Return an object of an environment as the carrier of contacts on its surfaces, with its resting contact, if any.

    Raises
    ------
    InputError
        The environment lacks the object; or objects are stacked, which is neither planned nor simulated.
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
    return next(_touching(upper, [*lower.surfaces, *_tops(lower)]), None) is not None


def _tops(thing: FreeObject) -> Iterator[Surface]:
    """Yield the faces of a box, or of a mesh's hull, that can support an object: within 60 degrees of level."""
    if not isinstance(thing.shape, Box | MeshShape):
        return
    corners = thing.p + _corners(thing) @ thing.R.T
    planes = ConvexHull(corners, qhull_options="QJ").equations  # a flat mesh has a hull, too
    for plane in planes[planes[:, 2] > 0.5]:
        face = corners[np.abs(corners @ plane[:3] + plane[3]) < CONTACT_TOLERANCE]
        t1 = np.linalg.svd(plane[None, :3])[2][1]
        R = np.column_stack([t1, np.cross(plane[:3], t1), plane[:3]])
        local = (face - face[0]) @ R[:, :2]
        if not _is_degenerate(local):
            yield Surface(thing.name, R, face[0], local[ConvexHull(local).vertices])


def slides(before: Contact | None, after: Contact | None, environment: Environment) -> bool:
    """Whether an object slides along its support, without rotation, from one resting contact to another.

    Coplanar surfaces must support it along the whole path.
    """
    if before is None or after is None:
        return False
    rise = float(before.normal @ (after.p - before.p))
    if abs(rise) >= ROUNDING or not np.allclose(before.R, after.R, rtol=0.0, atol=ROUNDING):
        return False
    path = np.concatenate([before.world_points, before.world_points + after.p - before.p])
    origin, axes = before.world_points[0], before.axes[:, :2]
    swept = (path - origin) @ axes
    swept = swept[ConvexHull(swept).vertices]
    supporting = []
    for surface in environment.surfaces:
        distance = (path - surface.p) @ surface.normal
        if before.normal @ surface.normal > 0.0 and np.abs(distance).max() < CONTACT_TOLERANCE:
            A, b = half_planes((surface.corners - origin) @ axes)
            supporting.append((A, b + CONTACT_TOLERANCE))
    return uncovered(swept, supporting) < CONTACT_TOLERANCE**2


def _corners(thing: FreeObject) -> np.ndarray:
    shape: Shape = thing.shape
    if isinstance(shape, Box):
        return np.array(np.meshgrid(*[(-s / 2, s / 2) for s in shape.size], indexing="ij")).reshape(3, -1).T
    if isinstance(shape, MeshShape):
        return shape.vertices
    raise InputError(f"object {thing.name}: expected a box or a mesh; a {type(shape).__name__.lower()} has no corners")
