"""Values that are given for a thing of a scene, checked: what cannot be is refused with its thing and key."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from mcplan.arguments import instance, shown
from mcplan.errors import InputError
from mcplan.model.pose import rotation_from_quat, rotation_from_rpy

if TYPE_CHECKING:
    from mcplan.model.geometry import Shape


def assign(thing: object, **values: object) -> None:
    """Set attributes of a frozen instance that is being made."""
    for name, value in values.items():
        object.__setattr__(thing, name, value)


def named(name: str) -> str:
    """Return a name that can stand in a file."""
    if not instance("environment", "name", name, str):
        raise InputError("environment: name: expected a text that is not empty")
    return name


def solid_shape(what: str, shape: "Shape") -> "Shape":
    """Return a shape that can be: of a known kind, with lengths that are positive."""
    from mcplan.model.geometry import Box, Capsule, Cylinder, MeshShape, Sphere

    if not isinstance(shape, Box | Sphere | Capsule | Cylinder | MeshShape):
        raise InputError(f"{what}: shape: expected a Box, Sphere, Capsule, Cylinder or MeshShape, not {shown(shape)}")
    if isinstance(shape, Box):
        for length in vector(what, "size of its box", shape.size, 3):
            positive(what, "size of its box", length, "m")
    elif not isinstance(shape, MeshShape):
        positive(what, "radius", shape.radius, "m")
        if not isinstance(shape, Sphere):
            positive(what, "length", shape.length, "m")
    return shape


def numbers_of(what: str, key: str, value: ArrayLike) -> np.ndarray:
    """Return ``value`` as an array of floats; NaN where it is none."""
    try:
        return np.array(value, float)
    except (TypeError, ValueError):
        raise InputError(f"{what}: {key}: expected numbers in m, not {shown(value)}") from None


def vector(what: str, key: str, value: ArrayLike, size: int) -> np.ndarray:
    """Return ``value`` as a finite vector of floats."""
    vector = numbers_of(what, key, value)
    if vector.shape != (size,) or not np.isfinite(vector).all():
        raise InputError(f"{what}: {key} is {value!r:.60}, expected {size} finite numbers")
    return vector


def positive(what: str, key: str, value: float, unit: str) -> float:
    """Return a finite number above 0."""
    if number(what, key, value, unit) <= 0.0:
        raise InputError(f"{what}: {key} is {value:g}{unit and ' ' + unit}, expected more than 0")
    return float(value)


def not_negative(what: str, key: str, value: float, unit: str) -> float:
    """Return a finite number that is not negative."""
    if number(what, key, value, unit) < 0.0:
        raise InputError(f"{what}: {key} is {value:g}{unit and ' ' + unit}, expected 0 or more")
    return float(value)


def number(what: str, key: str, value: float, unit: str) -> float:
    """Return a finite number."""
    if not isinstance(value, int | float | np.floating | np.integer) or not np.isfinite(value):
        raise InputError(f"{what}: {key}: expected a finite number{unit and ' in ' + unit}, not {shown(value)}")
    return float(value)


def pose_of(
    what: str,
    R: ArrayLike | None,
    p: ArrayLike | None,
    xyz: ArrayLike | None,
    rpy: ArrayLike | None,
    quat_wxyz: ArrayLike | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return rotation (3,3) and position (3,), given one way or the other; axes and origin of the world by default."""
    if p is not None and xyz is not None:
        raise InputError(f"{what}: p and xyz are both given; they are the same position")
    if sum(turn is not None for turn in (R, rpy, quat_wxyz)) > 1:
        raise InputError(f"{what}: give one of R, rpy and quat_wxyz; they are the same orientation")
    place = np.zeros(3) if p is None and xyz is None else vector(what, "xyz", p if xyz is None else xyz, 3)  # type: ignore[arg-type]
    if rpy is not None:
        return rotation_from_rpy(vector(what, "rpy", rpy, 3)), place
    if quat_wxyz is not None:
        quat = vector(what, "quat_wxyz", quat_wxyz, 4)
        if abs(np.linalg.norm(quat) - 1.0) > 1e-3:
            raise InputError(f"{what}: quat_wxyz has length {np.linalg.norm(quat):.6g}, expected 1 (within 0.001)")
        return rotation_from_quat(quat), place
    turn = np.eye(3) if R is None else numbers_of(what, "R", R)
    if turn.shape != (3, 3) or not np.allclose(turn @ turn.T, np.eye(3), atol=1e-6):
        raise InputError(f"{what}: R is no rotation matrix (3, 3)")
    return turn, place
