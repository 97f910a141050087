"""Import of contact frames from other programs as surfaces, bars and contacts.

Contact frames of other programs have the origin in the middle of the contact, z along the outward normal of the
support, and x along the foot. In mcplan a patch has its own origin, and its z axis points out of the link. So the
middle of the patch is placed at the origin of the imported frame, with aligned x axes.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from mcplan.errors import InputError
from mcplan.robot.pose import rotation_from_rpy
from mcplan.robot.robot import Robot
from mcplan.scene.environment import Surface
from mcplan.scene.polygon import half_planes

SURFACE_MARGIN = 0.05
"""m: a created surface extends this far beyond its contacts."""

PLANE_TOLERANCE = 1e-4
"""m and rad: contacts whose planes differ by less are on a common plane."""


@dataclass(frozen=True, eq=False)
class ContactFrame:
    """A contact frame of another program.

    Parameters
    ----------
    patch : patch of mcplan's robot that makes the contact.
    R, p : (3,3), (3,) pose of the frame in the world, m.
    friction : coefficient of Coulomb friction.
    """

    patch: str
    R: np.ndarray
    p: np.ndarray
    friction: float


def pose_of(translation: Any, rotation: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Return rotation and position of ``[x, y, z]`` (m) and ``[roll, pitch, yaw]`` (rad); None if invalid."""
    p, rpy = numbers(translation, 3), numbers(rotation, 3)
    return None if p is None or rpy is None else (rotation_from_rpy(rpy), p)


def numbers(value: Any, size: int) -> np.ndarray | None:
    """Return a value of a file as ``size`` finite numbers; None if it is not such a list."""
    try:
        found = np.array(value, float)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if found.shape == (size,) and np.isfinite(found).all() else None


def number(value: Any, minimum: float = -np.inf) -> float | None:
    """Return a value of a file as a finite number of at least ``minimum``; None if it is not such a number."""
    found = None if isinstance(value, bool) else numbers([value], 1)
    return None if found is None or found[0] < minimum else float(found[0])


def surfaces_for(
    frames: list[ContactFrame], robot: Robot, existing: Sequence[Surface] = (), used_names: Container[str] = ()
) -> tuple[list[Surface], list[dict[str, Any]]]:
    """Return the surfaces that the contacts need in addition to the existing ones, and the data of each contact.

    All frames in one plane share a surface.

    Parameters
    ----------
    frames : of the contacts.
    existing : surfaces of the environment.
    used_names : names that new surfaces must not have.
    """
    planes: list[list[int]] = []
    on_existing: dict[int, dict[str, Any]] = {}
    for k, frame in enumerate(frames):
        found = (data for surface in existing if (data := _data_on(surface, robot, frame)) is not None)
        if (data := next(found, None)) is not None:
            on_existing[k] = data
            continue
        for members in planes:
            reference = frames[members[0]]
            distance = abs(reference.R[:, 2] @ (frame.p - reference.p))
            if distance < PLANE_TOLERANCE and reference.R[:, 2] @ frame.R[:, 2] > 1.0 - PLANE_TOLERANCE**2:
                members.append(k)
                break
        else:
            planes.append([k])
    surfaces, contacts = [], [on_existing.get(k, {}) for k in range(len(frames))]
    names = (name for number in count() if (name := f"surface{number}") not in used_names)
    for name, members in zip(names, planes, strict=False):
        reference = frames[members[0]]
        axes = _axes(reference.R)
        corners = []
        for k in members:
            contacts[k], outline = _contact_data(name, axes, reference.p, robot, frames[k])
            corners.append(outline)
        low, high = np.vstack(corners).min(axis=0) - SURFACE_MARGIN, np.vstack(corners).max(axis=0) + SURFACE_MARGIN
        rectangle = [(low[0], low[1]), (high[0], low[1]), (high[0], high[1]), (low[0], high[1])]
        friction = min(frames[k].friction for k in members)
        surfaces.append(Surface(name, axes, reference.p, rectangle, friction=friction))
    return surfaces, contacts


def _contact_data(
    name: str, axes: np.ndarray, p: np.ndarray, robot: Robot, frame: ContactFrame
) -> tuple[dict[str, Any], np.ndarray]:
    """Return the data of a contact on a surface with the pose (axes, p), and the outline (k,2) of the contact."""
    yaw = _yaw(axes, frame.R)
    outline, centre = _outline(robot, frame)
    rotation = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
    origin = (axes.T @ (frame.p - p))[:2] - rotation @ centre
    data = {"patch": frame.patch, "surface": name, "x": float(origin[0]), "y": float(origin[1]), "yaw": yaw}
    return data | {"friction": frame.friction}, origin + outline @ rotation.T


def _data_on(surface: Surface, robot: Robot, frame: ContactFrame) -> dict[str, Any] | None:
    """Return the data of a contact on an existing surface; None if the contact is not on it."""
    if (
        abs(surface.normal @ (frame.p - surface.p)) > PLANE_TOLERANCE
        or surface.normal @ frame.R[:, 2] < 1 - PLANE_TOLERANCE**2
    ):
        return None
    data, outline = _contact_data(surface.name, surface.R, surface.p, robot, frame)
    A, b = half_planes(surface.polygon)
    return data if np.all(outline @ A.T <= b) else None


def _axes(R: np.ndarray) -> np.ndarray:
    """Return axes (3,3) of a plane: z along its normal, x along the projection of the world's x axis.

    If the normal is within 26 degrees of the world's x axis, the y axis is projected instead.
    """
    z = R[:, 2]
    x = np.array([1.0, 0.0, 0.0]) if abs(z[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
    x = x - (x @ z) * z
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def _yaw(axes: np.ndarray, R: np.ndarray) -> float:
    """Return the angle (rad) of the x axis of ``R`` in a plane with these axes."""
    forward = axes.T @ R[:, 0]
    return float(np.arctan2(forward[1], forward[0]))


def _outline(robot: Robot, frame: ContactFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return outline (k,2) and centre (2,) of a patch in contact: turned by 180 degrees about its x axis."""
    if frame.patch not in robot.patches:
        raise InputError(f"robot {robot.name} has no patch `{frame.patch}`; there are: {', '.join(robot.patches)}")
    polygon = np.asarray(robot.patches[frame.patch].polygon, float).reshape(-1, 2) * [1.0, -1.0]
    if not len(polygon):
        return np.zeros((1, 2)), np.zeros(2)
    return polygon, (polygon.min(axis=0) + polygon.max(axis=0)) / 2.0
