"""A patch on a surface.

R_WP = R_WS R_SP,   R_SP = Rz(yaw) Rx(pi),   p_WP = p_WS + R_WS [x, y, 0], of a ball [x, y, radius]
"""

from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.errors import InputError
from mcplan.scene.environment import Surface
from mcplan.scene.polygon import clip, erode, half_planes, nearest, outside
from mcplan.scene.spec import ContactSpec

TOLERANCE = 1e-3
"""How far a polygon may reach beyond its support (m)."""


class Place(NamedTuple):
    """Pose ``R`` (3,3), ``p`` (3,) of the patch in the world, ``points`` (k,3) in patch axes, and the coordinates."""

    R: np.ndarray
    p: np.ndarray
    points: np.ndarray
    coordinates: dict[str, float | bool]


def place_on_surface(
    spec: ContactSpec, kind: str, polygon: np.ndarray, surface: Surface, near: tuple[np.ndarray, np.ndarray] | None,
    radius: float = 0.0,
) -> Place:
    """Place a patch with ``polygon`` (k,2; one point for a point contact, or for a ball of ``radius``) on a surface."""
    if kind == "grasp":
        raise InputError(f"a grasp needs a bar, and `{surface.name}` is a surface; set `kind: point` to lean on it")
    wrong = sorted(set(spec.given) & {"along", "angle", "flip", "offset"})
    if wrong:
        raise InputError(f"{', '.join(wrong)}: a place on the surface `{surface.name}` is given by x, y and yaw")
    # the yaw of a point contact is free, so it may be left out
    needed = ("x", "y") if kind in ("point", "ball") else ("x", "y", "yaw")
    missing = [name for name in needed if name not in spec.given]
    if near is None and missing:
        raise InputError(f"{', '.join(missing)} left out, and no posture is known to take the nearest place from")
    yaw = spec.yaw
    if yaw is None:
        yaw = 0.0 if near is None else _nearest_yaw(surface.R.T @ near[0], polygon)
    turn = surface_rotation(yaw)
    shape = polygon @ turn[:2, :2].T
    if spec.x is not None and spec.y is not None:
        origin = np.array([spec.x, spec.y])
    else:
        assert near is not None
        here = (surface.R.T @ (near[1] - surface.p))[:2]
        if radius:  # where it would be upright: it has rolled from there
            phi = Rotation.from_matrix(surface.R.T @ near[0] @ turn.T).as_rotvec()
            here -= radius * np.array([phi[1], -phi[0]])
        origin = _nearest_origin(spec, surface, shape, here)
    beyond = outside(origin + shape, surface.polygon)
    points = polygon
    if spec.overhang:
        A, b = half_planes(surface.polygon)
        points = clip(polygon, A @ turn[:2, :2], b - A @ origin)
        if len(points) < min(len(polygon), 2):
            raise InputError(f"nothing of the patch `{spec.patch}` lies on `{surface.name}` here")
    elif beyond > TOLERANCE:
        raise InputError(
            f"the patch `{spec.patch}` reaches {1000 * beyond:.0f} mm beyond `{surface.name}` at x {origin[0]:.3f}, "
            f"y {origin[1]:.3f}, yaw {yaw:.3f}; at most 1 mm is allowed without `overhang: true`"
        )
    p = surface.p + surface.R @ np.append(origin, radius)
    coordinates: dict[str, float | bool] = {"x": float(origin[0]), "y": float(origin[1]), "yaw": float(yaw)}
    return Place(surface.R @ turn, p, np.column_stack([points, np.full(len(points), radius)]), coordinates)


def surface_rotation(yaw: float) -> np.ndarray:
    """Return ``R_SP = Rz(yaw) Rx(pi)`` (3,3)."""
    c, s = np.cos(yaw), np.sin(yaw)
    return np.array([[c, s, 0.0], [s, -c, 0.0], [0.0, 0.0, -1.0]])


def _nearest_yaw(R: np.ndarray, polygon: np.ndarray) -> float:
    """Return the yaw that turns a patch with rotation ``R`` (3,3) in the surface the least.

    The trace of ``R_SP(yaw)' R`` is ``cos(yaw) (R00 - R11) + sin(yaw) (R10 + R01)`` and a constant. For an edge only
    its direction counts: it is projected on the surface.
    """
    if len(polygon) == 2:
        edge = polygon[1] - polygon[0]
        goal = R[:2, :2] @ edge
        if np.linalg.norm(goal) > 1e-9 * np.linalg.norm(edge):
            angle = np.arctan2(goal[1], goal[0]) - np.arctan2(-edge[1], edge[0])
            return float((angle + np.pi) % (2 * np.pi) - np.pi)
    return float(np.arctan2(R[1, 0] + R[0, 1], R[0, 0] - R[1, 1]))


def _nearest_origin(spec: ContactSpec, surface: Surface, shape: np.ndarray, here: np.ndarray) -> np.ndarray:
    """Return the origin (2,) nearest to ``here`` with the shape on the surface, and x or y as given."""
    A, b = half_planes(surface.polygon) if spec.overhang else erode(surface.polygon, shape)
    fixed = spec.x if spec.x is not None else spec.y
    if fixed is None:
        origin = nearest(here, A, b)
        if origin is None:
            raise InputError(f"the patch `{spec.patch}` does not fit on `{surface.name}` in this direction")
        return origin
    free = 1 if spec.x is not None else 0
    slope, room = A[:, free], b - A[:, 1 - free] * fixed
    steep = np.abs(slope) > 1e-9
    ratio = room[steep] / slope[steep]
    low = np.max(ratio[slope[steep] < 0], initial=-np.inf)
    high = np.min(ratio[slope[steep] > 0], initial=np.inf)
    if low > high + 1e-9:
        name = "xy"[1 - free]
        raise InputError(f"the patch `{spec.patch}` does not fit on `{surface.name}` at {name} {fixed:.3f}")
    origin = np.array([fixed, fixed])
    origin[free] = np.clip(here[free], low, max(low, high))
    return origin
