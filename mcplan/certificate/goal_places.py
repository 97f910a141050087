"""How far a patch is from a contact with a surface or a bar, as the scenario describes it.

A surface's frame S has its normal along z; in contact ``R_SP = Rz(yaw) Rx(pi)`` and (x, y) is the patch's origin on it.
A bar's direction is the patch's y axis; ``angle`` turns about it from where z_P is nearest to down (to world x on a
vertical bar). What is left out is free; what a contact leaves free counts for nothing.
"""

import numpy as np

from mcplan.certificate.independent import rotation_of, rotation_vector
from mcplan.scene.environment import Bar, Surface
from mcplan.scene.spec import ContactSpec
from mcplan.sim.tolerances import ON_SUPPORT


def surface_errors(
    spec: ContactSpec,
    kind: str,
    polygon: np.ndarray,
    surface: Surface,
    R: np.ndarray,
    p: np.ndarray,
    carried: np.ndarray | None = None,
    radius: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Return errors (K,) in m and rad of a patch (polygon (k, 3) in its axes) on a surface.

    Parameters
    ----------
    R, p : (K, 3, 3), (K, 3) poses of the patch.
    carried : (K, 7) poses of the object that the surface is on; the surface is then given in the object's frame.
    radius : of a ball, whose centre p is, m.
    """
    local_R, local_p = surface.R.T @ R, (p - surface.p) @ surface.R
    if carried is not None:
        turn, at = rotation_of(carried[:, 3:].T).transpose(2, 0, 1), carried[:, :3]
        R_S, p_S = turn @ surface.R, at + np.einsum("kij,j->ki", turn, surface.p)
        local_R = R_S.transpose(0, 2, 1) @ R
        local_p = np.einsum("kji,kj->ki", R_S, p - p_S)
    local_touch = local_p[:, None]
    if radius:  # where its lowest point would be if it were upright: it rolls from there
        c, s = np.cos(spec.yaw or 0.0), np.sin(spec.yaw or 0.0)
        phi = rotation_vector(local_R @ np.array([[c, s, 0.0], [s, -c, 0.0], [0.0, 0.0, -1.0]]).T)
        local_p = local_p - radius * np.column_stack([phi[:, 1], -phi[:, 0], np.ones(len(phi))])
    corners = np.einsum("kij,cj->kci", local_R, polygon) + local_p[:, None]
    touching = local_touch if radius else corners
    flat = kind == "surface" and len(polygon) > 2
    height = np.abs(local_p[:, 2]) if flat else np.abs(corners[:, :, 2]).max(axis=1)
    tilt = _between(local_R[:, :, 2], np.array([0.0, 0.0, -1.0])) if flat else np.zeros(len(p))
    out = beyond(touching[..., :2], surface.polygon, spec.overhang) - ON_SUPPORT
    off = np.maximum(height, np.maximum(out, 0.0))
    given = np.zeros((len(p), 3))
    for i, value in enumerate((spec.x, spec.y)):
        if value is not None:
            given[:, i] = local_p[:, i] - value
    in_patch = np.einsum("kji,kj->ki", local_R, given)
    for axis in spec.slide:
        in_patch[:, "xyz".index(axis)] = 0.0
    off = np.maximum(off, np.linalg.norm(in_patch, axis=1))
    if spec.yaw is not None and kind == "surface" and "z" not in spec.hinge:
        along = np.array([1.0, 0.0, 0.0]) if flat else polygon[1] - polygon[0]
        c, s = np.cos(spec.yaw), np.sin(spec.yaw)
        aim = np.array([[c, s, 0.0], [s, -c, 0.0], [0.0, 0.0, -1.0]]) @ along
        tilt = np.maximum(tilt, _between(local_R @ along, aim))
    return off, tilt


def bar_errors(
    spec: ContactSpec, kind: str, polygon: np.ndarray, bar: Bar, R: np.ndarray, p: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return errors (K,) in m and rad of a patch on a bar: a grasp, a line under a flat patch, or a point."""
    d, reach = bar.direction, p - bar.ends[0]
    if kind == "point":
        along = reach @ d
        off = np.abs(np.linalg.norm(reach - along[:, None] * d, axis=1) - bar.radius)
        turn = np.zeros(len(p))
        if spec.angle is not None:  # where on its round: opposite to the z axis that a grasp there would have
            sides = [1.0, -1.0] if spec.flip is None else [-1.0 if spec.flip else 1.0]
            places = [along[:, None] * d - bar.radius * _grip(s * d[None], spec.angle) for s in sides]
            off = np.min([np.linalg.norm(reach - place, axis=1) for place in places], axis=0)
    else:
        sense = np.sign(R[:, :, 1] @ d)
        if spec.flip is not None:
            sense = np.full(len(p), -1.0 if spec.flip else 1.0)
        turn = _between(R[:, :, 1], sense[:, None] * d)
    if kind == "grasp":
        along = reach @ d
        off = np.linalg.norm(reach - along[:, None] * d, axis=1)
        if spec.angle is not None and "y" not in spec.hinge:
            turn = np.maximum(turn, _between(R[:, :, 2], _grip(sense[:, None] * d, spec.angle)))
    elif kind == "surface":
        # the axis in patch axes, where it passes the patch's x axis
        start, way = -np.einsum("kji,kj->ki", R, reach), np.einsum("kji,j->ki", R, d)
        t = -start[:, 1] / np.where(np.abs(way[:, 1]) > 1e-9, way[:, 1], 1e-9)
        here = start + t[:, None] * way
        off, along = np.abs(here[:, 2] - bar.radius), t
        off = np.maximum(off, np.maximum(polygon[:, 0].min() - here[:, 0], here[:, 0] - polygon[:, 0].max()))
        if spec.offset is not None:
            off = np.maximum(off, np.abs(here[:, 0] - spec.offset))
    off = np.maximum(off, np.maximum(-along, along - bar.length) - ON_SUPPORT)
    if spec.along is not None and "y" not in spec.slide:
        off = np.maximum(off, np.abs(along - spec.along))
    return off, turn


def _grip(y: np.ndarray, angle: float) -> np.ndarray:
    """Return the z axes (K, 3) of a grasp with y axes (K, 3): ``x0 sin(angle) + z0 cos(angle)``."""
    upright = np.hypot(y[:, 0], y[:, 1]) <= 1e-6
    wanted = np.where(upright[:, None], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0])
    z = wanted - np.sum(wanted * y, axis=1)[:, None] * y
    z /= np.linalg.norm(z, axis=1)[:, None]
    return np.asarray(np.cross(y, z) * np.sin(angle) + z * np.cos(angle))


def _between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the angles (K,) between vectors (K, 3) and (3,) or (K, 3)."""
    b = np.broadcast_to(b, a.shape)
    return np.arctan2(np.linalg.norm(np.cross(a, b), axis=1), np.sum(a * b, axis=1))


def beyond(corners: np.ndarray, polygon: np.ndarray, overhang: bool) -> np.ndarray:
    """Return how far corners (K, c, 2) reach out of a convex polygon; with ``overhang`` how far off it all are, m."""
    edge = np.roll(polygon, -1, axis=0) - polygon
    out = np.stack([edge[:, 1], -edge[:, 0]], axis=1) / np.linalg.norm(edge, axis=1)[:, None]
    far = np.einsum("kci,ei->kce", corners, out) - np.sum(polygon * out, axis=1)
    return np.asarray((far.min(axis=1) if overhang else far.max(axis=1)).max(axis=1))
