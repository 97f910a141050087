"""A patch on a bar: grasped, as a line contact of a flat patch, or as a point contact.

``d`` is the bar's direction from its first end, ``s = -1`` if flipped, else 1. The patch's y axis is ``s d``; at
angle 0 its z axis is the direction nearest to down (to the world's x for a vertical bar), and ``angle`` turns it
about y:

    R_WP = [y0 x z0, y0, z0] Ry(angle),   y0 = s d
    grasp:  p_WP = e_0 + along d
    sole:   p_WP = e_0 + along d - R_WP [offset, 0, radius]
    point:  p_WP = e_0 + along d - R_WP [0, 0, radius]
"""

import numpy as np

from mcplan.errors import InputError
from mcplan.scene.environment import Bar
from mcplan.scene.place_surface import TOLERANCE, Place
from mcplan.scene.spec import ContactSpec

_COORDINATES = {
    "grasp": ("along", "angle", "flip"),
    "point": ("along", "angle", "flip"),
    "surface": ("along", "offset", "angle", "flip"),
}
# what must be given where no posture is known; the others are then 0 and false
_NEEDED = {"grasp": ("along", "angle"), "point": ("along", "angle"), "surface": ("along", "offset")}


def place_on_bar(
    spec: ContactSpec, kind: str, polygon: np.ndarray, bar: Bar, near: tuple[np.ndarray, np.ndarray] | None
) -> Place:
    """Place a patch with ``polygon`` (k,2; one point unless the kind is ``surface``) on a bar."""
    given = spec.given
    wrong = sorted(set(given) - set(_COORDINATES[kind]))
    if wrong:
        known = ", ".join(_COORDINATES[kind])
        raise InputError(f"{', '.join(wrong)}: a {kind} contact on the bar `{bar.name}` is given by {known}")
    if kind == "surface" and len(polygon) < 3:
        raise InputError(f"the edge `{spec.patch}` cannot rest on a bar; set `kind: point`, or use a flat patch")
    missing = [name for name in _NEEDED[kind] if name not in given]
    if near is None and missing:
        raise InputError(f"{', '.join(missing)} left out, and no posture is known to take the nearest place from")
    flip, angle = _turn(spec, bar, near)
    R = bar_rotation(bar, angle, flip)
    beyond_plane = 0.0 if kind == "grasp" else bar.radius
    along, offset = spec.along or 0.0, spec.offset or 0.0
    low, high = (polygon[:, 0].min(), polygon[:, 0].max()) if kind == "surface" else (0.0, 0.0)
    if near is not None:
        # p + R [offset, 0, beyond_plane] = e_0 + along d, with d and the patch's x axis at right angles
        reach = near[1] + beyond_plane * R[:, 2] - bar.ends[0]
        if spec.offset is None and kind == "surface":
            offset = float(np.clip(-reach @ R[:, 0], low, high))
        if spec.along is None:
            along = float(reach @ bar.direction)
    if kind == "surface" and not low - TOLERANCE <= offset <= high + TOLERANCE:
        raise InputError(f"offset {offset:.3f} is outside the patch `{spec.patch}` ({low:.3f} to {high:.3f})")
    points = _line(polygon, min(max(offset, low), high)) if kind == "surface" else np.zeros((1, 3))
    sense = -1.0 if flip else 1.0
    before, after = np.sort(sense * points[[0, -1], 1])
    if spec.along is None:
        along = _clamp(along, -before, bar.length - after, spec, bar)
    excess = max(-(along + before), along + after - bar.length)
    if spec.overhang and kind == "surface":
        span = np.sort(sense * (np.array([0.0, bar.length]) - along))
        points[:, 1] = np.clip(points[:, 1], *span)
        if np.ptp(points[:, 1]) < TOLERANCE:
            raise InputError(f"nothing of the patch `{spec.patch}` lies on `{bar.name}` here")
    elif excess > TOLERANCE:
        raise InputError(
            f"the patch `{spec.patch}` reaches {1000 * excess:.0f} mm beyond the end of `{bar.name}` at along "
            f"{along:.3f}; the bar is {bar.length:.3f} m long"
        )
    p = bar.ends[0] + along * bar.direction - R @ np.array([offset, 0.0, beyond_plane])
    values = {"along": along, "offset": offset, "angle": angle, "flip": flip}
    return Place(R, p, points, {name: values[name] for name in _COORDINATES[kind]})


def bar_rotation(bar: Bar, angle: float, flip: bool) -> np.ndarray:
    """Return ``R_WP`` (3,3) of a patch on a bar."""
    y = -bar.direction if flip else bar.direction
    level = np.hypot(y[0], y[1])
    wanted = np.array([0.0, 0.0, -1.0]) if level > 1e-6 else np.array([1.0, 0.0, 0.0])
    z = wanted - (wanted @ y) * y
    z = z / np.linalg.norm(z)
    c, s = np.cos(angle), np.sin(angle)
    return np.column_stack([np.cross(y, z), y, z]) @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])


def _turn(spec: ContactSpec, bar: Bar, near: tuple[np.ndarray, np.ndarray] | None) -> tuple[bool, float]:
    """Return flip and angle: as given, else those that turn the patch the least.

    The trace of ``(R_0 Ry(a))' R`` is ``M11 + cos(a) (M00 + M22) + sin(a) (M02 - M20)`` with ``M = R_0' R``.
    """
    if near is None:
        return bool(spec.flip), spec.angle or 0.0
    best, choice = -np.inf, (False, 0.0)
    for flip in (False, True) if spec.flip is None else (spec.flip,):
        M = bar_rotation(bar, 0.0, flip).T @ near[0]
        c, s = M[0, 0] + M[2, 2], M[0, 2] - M[2, 0]
        angle = float(np.arctan2(s, c)) if spec.angle is None else spec.angle
        trace = M[1, 1] + np.cos(angle) * c + np.sin(angle) * s
        if trace > best + 1e-12:
            best, choice = trace, (flip, angle)
    return choice


def _line(polygon: np.ndarray, offset: float) -> np.ndarray:
    """Return the two points (2,3) where the line ``x = offset`` crosses the polygon."""
    crossings = []
    for start, end in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        if min(start[0], end[0]) <= offset <= max(start[0], end[0]):
            share = (offset - start[0]) / (end[0] - start[0]) if end[0] != start[0] else np.array([0.0, 1.0])
            crossings += np.atleast_1d(start[1] + share * (end[1] - start[1])).tolist()
    return np.array([[offset, min(crossings), 0.0], [offset, max(crossings), 0.0]])


def _clamp(along: float, low: float, high: float, spec: ContactSpec, bar: Bar) -> float:
    if low > high:
        if not spec.overhang:
            raise InputError(f"the patch `{spec.patch}` is wider than the bar `{bar.name}` is long")
        low, high = 0.0, bar.length
    return float(min(max(along, low), high))
