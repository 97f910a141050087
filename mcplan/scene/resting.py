"""How a free object lies on the surfaces around it, and what it is to a contact on one of its own."""

from functools import lru_cache

import numpy as np
from scipy.spatial import ConvexHull

from mcplan.errors import InputError
from mcplan.model.geometry import Box, MeshShape, Shape
from mcplan.model.shape_inertia import shape_inertia
from mcplan.scene.contact import Carrier, Contact
from mcplan.scene.environment import Environment, FreeObject
from mcplan.scene.polygon import outside

TOUCHING = 2e-3
"""m: a corner so near to a surface rests on it."""

LEVEL = 1e-6
"""m, rad: what slides keeps its height and its orientation so well, as files write them."""


def resting_contact(thing: FreeObject, environment: Environment) -> Contact | None:
    """Return the contact of an object with the surface that it lies on, or None when no surface is below it.

    It is written as a contact of a patch that has the object's name and frame: the corners that touch are its points.

    Raises
    ------
    InputError
        The object has no corners: only boxes and meshes lie on a face.
    """
    corners = thing.p + _corners(thing) @ thing.R.T
    for surface in environment.surfaces:
        local = (corners - surface.p) @ surface.R
        touching = np.abs(local[:, 2]) < TOUCHING
        if touching.sum() < 3 or outside(local[touching, :2], surface.polygon) > TOUCHING:
            continue
        found = corners[touching][ConvexHull(local[touching, :2]).vertices]
        return Contact(
            patch=thing.name, support=surface.name, kind="surface", R=thing.R, p=thing.p,
            points=(found - thing.p) @ thing.R, axes=surface.R, friction=thing.friction,
            max_force=np.inf, max_moment=np.inf, selection=np.eye(6),
        )  # fmt: skip
    return None


@lru_cache(maxsize=64)
def carrier(environment: Environment, name: str) -> Carrier:
    """Return an object of an environment as what carries contacts on its surfaces; in the air it rests on nothing.

    Raises
    ------
    InputError
        The environment does not hold the object.
    """
    thing = next((thing for thing in environment.objects if thing.name == name), None)
    if thing is None:
        raise InputError(
            f"the surface of a contact is one of the object {name}, which is not there: give `environment=`, with the "
            "object and what it lies on"
        )
    com, _ = shape_inertia(thing.shape, thing.mass)
    return Carrier(name, thing.mass, thing.p + thing.R @ com, resting_contact(thing, environment))


def slides(before: Contact | None, after: Contact | None) -> bool:
    """Say whether an object that goes straight from one rest to another stays on its support: along it, unturned."""
    if before is None or after is None or before.support != after.support:
        return False
    rise = float(before.normal @ (after.p - before.p))
    return abs(rise) < LEVEL and np.allclose(before.R, after.R, rtol=0.0, atol=LEVEL)


def _corners(thing: FreeObject) -> np.ndarray:
    shape: Shape = thing.shape
    if isinstance(shape, Box):
        return np.array(np.meshgrid(*[(-s / 2, s / 2) for s in shape.size], indexing="ij")).reshape(3, -1).T
    if isinstance(shape, MeshShape):
        return shape.vertices
    raise InputError(f"object {thing.name}: expected a box or a mesh; a {type(shape).__name__.lower()} has no corners")
