"""Contact placement: pose of a patch on a surface or bar; missing coordinates are taken from the nearest place.

On a surface, of a ball with the height of its radius:

    R_WP = R_WS R_SP,   R_SP = Rz(yaw) Rx(pi),   p_WP = p_WS + R_WS [x, y, 0]

On a bar ``d`` is its direction from its first end, ``s = -1`` if flipped, else 1. The patch's y axis is ``s d``; at
angle 0 its z axis is the direction nearest to down (to the world's x for a vertical bar), and ``angle`` turns it
about y:

    R_WP = [y0 x z0, y0, z0] Ry(angle),   y0 = s d
    grasp:  p_WP = e_0 + along d
    sole:   p_WP = e_0 + along d - R_WP [offset, 0, radius]
    point:  p_WP = e_0 + along d - R_WP [0, 0, radius]

The nearest place turns the patch by the smallest angle that aligns it with the support, then moves it by the smallest
distance that brings its polygon onto the support. A fixed base is in contact with the world at its pose, constrained in
all directions during the whole motion.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.document.document import Document
from mcplan.errors import InputError
from mcplan.robot.patch import MOUNT
from mcplan.robot.pose import quat_from_rotation
from mcplan.scene.contact import Contact, axis_freedoms, ball_selection, constrained_directions, rotation_about
from mcplan.scene.environment import Bar, Environment, Surface
from mcplan.scene.polygon import clip, erode, half_planes, nearest, outside
from mcplan.scene.resting import carrier
from mcplan.scene.spec import ContactSpec
from mcplan.util.arguments import describe
from mcplan.util.spelling import did_you_mean_or_all

if TYPE_CHECKING:
    from mcplan.robot.patch import Patch
    from mcplan.robot.robot import Robot


TOLERANCE = 1e-3
"""m: maximum overhang of a polygon beyond its support."""


class ContactPlace(NamedTuple):
    """Pose ``R`` (3,3), ``p`` (3,) of the patch in the world, ``points`` (k,3) in patch axes, and the coordinates."""

    R: np.ndarray
    p: np.ndarray
    points: np.ndarray
    coordinates: dict[str, float | bool]


def place_on_surface(
    spec: ContactSpec,
    kind: str,
    polygon: np.ndarray,
    surface: Surface,
    near: tuple[np.ndarray, np.ndarray] | None,
    radius: float = 0.0,
) -> ContactPlace:
    """Place a patch with ``polygon`` (k,2; one point for a point contact, or for a ball of ``radius``) on a surface."""
    if kind == "grasp":
        raise InputError(f"a grasp needs a bar, and `{surface.name}` is a surface; set `kind: point` to lean on it")
    unexpected = sorted(set(spec.given) & {"along", "angle", "flip", "offset"})
    if unexpected:
        raise InputError(f"{', '.join(unexpected)}: a place on the surface `{surface.name}` is given by x, y and yaw")
    # the yaw of a point contact is free, so it may be left out
    needed = ("x", "y") if kind in ("point", "ball") else ("x", "y", "yaw")
    missing = [name for name in needed if name not in spec.given]
    if near is None and missing:
        raise InputError(f"{', '.join(missing)} left out: without a posture the nearest place is unknown")
    yaw = spec.yaw
    if yaw is None:
        yaw = 0.0 if near is None else _nearest_yaw(surface.R.T @ near[0], polygon)
    R_SP = surface_rotation(yaw)
    shape = polygon @ R_SP[:2, :2].T
    if spec.x is not None and spec.y is not None:
        origin = np.array([spec.x, spec.y])
    else:
        assert near is not None
        target = (surface.R.T @ (near[1] - surface.p))[:2]
        if radius:  # undo the rolling: where the ball would be upright
            phi = Rotation.from_matrix(surface.R.T @ near[0] @ R_SP.T).as_rotvec()
            target -= radius * np.array([phi[1], -phi[0]])
        origin = _nearest_origin(spec, surface, shape, target)
    excess = outside(origin + shape, surface.polygon)
    points = polygon
    if spec.overhang:
        A, b = half_planes(surface.polygon)
        points = clip(polygon, A @ R_SP[:2, :2], b - A @ origin)
        if len(points) < min(len(polygon), 2):
            raise InputError(f"nothing of the patch `{spec.patch}` lies on `{surface.name}` here")
    elif excess > TOLERANCE:
        raise InputError(
            f"the patch `{spec.patch}` reaches {1000 * excess:.0f} mm beyond `{surface.name}` at x {origin[0]:.3f}, "
            f"y {origin[1]:.3f}, yaw {yaw:.3f}; at most 1 mm is allowed without `overhang: true`"
        )
    p = surface.p + surface.R @ np.append(origin, radius)
    coordinates: dict[str, float | bool] = {"x": float(origin[0]), "y": float(origin[1]), "yaw": float(yaw)}
    return ContactPlace(surface.R @ R_SP, p, np.column_stack([points, np.full(len(points), radius)]), coordinates)


def surface_rotation(yaw: float) -> np.ndarray:
    """Return ``R_SP = Rz(yaw) Rx(pi)`` (3,3)."""
    c, s = np.cos(yaw), np.sin(yaw)
    return np.array([[c, s, 0.0], [s, -c, 0.0], [0.0, 0.0, -1.0]])


def _nearest_yaw(R: np.ndarray, polygon: np.ndarray) -> float:
    """Return the yaw nearest to a patch with rotation ``R`` (3,3) in surface axes.

    The trace of ``R_SP(yaw)' R`` is ``cos(yaw) (R00 - R11) + sin(yaw) (R10 + R01)`` plus a constant. For an edge, its
    direction is projected on the surface.
    """
    if len(polygon) == 2:
        edge = polygon[1] - polygon[0]
        goal = R[:2, :2] @ edge
        if np.linalg.norm(goal) > 1e-9 * np.linalg.norm(edge):
            angle = np.arctan2(goal[1], goal[0]) - np.arctan2(-edge[1], edge[0])
            return float((angle + np.pi) % (2 * np.pi) - np.pi)
    return float(np.arctan2(R[1, 0] + R[0, 1], R[0, 0] - R[1, 1]))


def _nearest_origin(spec: ContactSpec, surface: Surface, shape: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the origin (2,) nearest to ``target`` with the shape on the surface; x or y may be fixed."""
    A, b = half_planes(surface.polygon) if spec.overhang else erode(surface.polygon, shape)
    fixed = spec.x if spec.x is not None else spec.y
    if fixed is None:
        origin = nearest(target, A, b)
        if origin is None:
            raise InputError(f"the patch `{spec.patch}` does not fit on `{surface.name}` in this direction")
        return origin
    free = 1 if spec.x is not None else 0
    slope, slack = A[:, free], b - A[:, 1 - free] * fixed
    bounding = np.abs(slope) > 1e-9
    ratio = slack[bounding] / slope[bounding]
    low = np.max(ratio[slope[bounding] < 0], initial=-np.inf)
    high = np.min(ratio[slope[bounding] > 0], initial=np.inf)
    if low > high + 1e-9:
        name = "xy"[1 - free]
        raise InputError(f"the patch `{spec.patch}` does not fit on `{surface.name}` at {name} {fixed:.3f}")
    origin = np.array([fixed, fixed])
    origin[free] = np.clip(target[free], low, max(low, high))
    return origin


_COORDINATES = {
    "grasp": ("along", "angle", "flip"),
    "point": ("along", "angle", "flip"),
    "surface": ("along", "offset", "angle", "flip"),
}
# required coordinates without a known posture; the others default to 0 and false
_NEEDED = {"grasp": ("along", "angle"), "point": ("along", "angle"), "surface": ("along", "offset")}


def place_on_bar(
    spec: ContactSpec, kind: str, polygon: np.ndarray, bar: Bar, near: tuple[np.ndarray, np.ndarray] | None
) -> ContactPlace:
    """Place a patch with ``polygon`` (k,2; one point unless the kind is ``surface``) on a bar."""
    given = spec.given
    unexpected = sorted(set(given) - set(_COORDINATES[kind]))
    if unexpected:
        known = ", ".join(_COORDINATES[kind])
        raise InputError(f"{', '.join(unexpected)}: a {kind} contact on the bar `{bar.name}` is given by {known}")
    if kind == "surface" and len(polygon) < 3:
        raise InputError(f"the edge `{spec.patch}` cannot rest on a bar; set `kind: point`, or use a flat patch")
    missing = [name for name in _NEEDED[kind] if name not in given]
    if near is None and missing:
        raise InputError(f"{', '.join(missing)} left out: without a posture the nearest place is unknown")
    flip, angle = _flip_and_angle(spec, bar, near)
    R = bar_rotation(bar, angle, flip)
    axis_distance = 0.0 if kind == "grasp" else bar.radius
    along, offset = spec.along or 0.0, spec.offset or 0.0
    low, high = (polygon[:, 0].min(), polygon[:, 0].max()) if kind == "surface" else (0.0, 0.0)
    if near is not None:
        # p + R [offset, 0, axis_distance] = e_0 + along d, with d perpendicular to the patch's x axis
        from_end = near[1] + axis_distance * R[:, 2] - bar.ends[0]
        if spec.offset is None and kind == "surface":
            offset = float(np.clip(-from_end @ R[:, 0], low, high))
        if spec.along is None:
            along = float(from_end @ bar.direction)
    if kind == "surface" and not low - TOLERANCE <= offset <= high + TOLERANCE:
        raise InputError(f"offset {offset:.3f} is outside the patch `{spec.patch}` ({low:.3f} to {high:.3f})")
    points = _line(polygon, min(max(offset, low), high)) if kind == "surface" else np.zeros((1, 3))
    sign = -1.0 if flip else 1.0
    before, after = np.sort(sign * points[[0, -1], 1])
    if spec.along is None:
        along = _clamp(along, -before, bar.length - after, spec, bar)
    excess = max(-(along + before), along + after - bar.length)
    if spec.overhang and kind == "surface":
        span = np.sort(sign * (np.array([0.0, bar.length]) - along))
        points[:, 1] = np.clip(points[:, 1], *span)
        if np.ptp(points[:, 1]) < TOLERANCE:
            raise InputError(f"nothing of the patch `{spec.patch}` lies on `{bar.name}` here")
    elif excess > TOLERANCE:
        raise InputError(
            f"the patch `{spec.patch}` reaches {1000 * excess:.0f} mm beyond the end of `{bar.name}` at along "
            f"{along:.3f}; the bar is {bar.length:.3f} m long"
        )
    p = bar.ends[0] + along * bar.direction - R @ np.array([offset, 0.0, axis_distance])
    values = {"along": along, "offset": offset, "angle": angle, "flip": flip}
    return ContactPlace(R, p, points, {name: values[name] for name in _COORDINATES[kind]})


def bar_rotation(bar: Bar, angle: float, flip: bool) -> np.ndarray:
    """Return ``R_WP`` (3,3) of a patch on a bar."""
    y = -bar.direction if flip else bar.direction
    level = np.hypot(y[0], y[1])
    target = np.array([0.0, 0.0, -1.0]) if level > 1e-6 else np.array([1.0, 0.0, 0.0])
    z = target - (target @ y) * y
    z = z / np.linalg.norm(z)
    c, s = np.cos(angle), np.sin(angle)
    return np.column_stack([np.cross(y, z), y, z]) @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])


def _flip_and_angle(spec: ContactSpec, bar: Bar, near: tuple[np.ndarray, np.ndarray] | None) -> tuple[bool, float]:
    """Return flip and angle: as specified, else those with the smallest rotation of the patch.

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


WORLD = "world"
"""Name of the support of a fixed base."""


def mount_contact(robot: "Robot", R: np.ndarray, p: np.ndarray) -> Contact:
    """Return the contact of a fixed base at R (3,3), p (3,)."""
    patch = robot.patches[MOUNT]
    pose = {"xyz": np.asarray(p).tolist(), "quat_wxyz": quat_from_rotation(R).tolist()}
    return Contact(
        patch=MOUNT,
        support=WORLD,
        kind="grasp",
        R=R,
        p=p,
        points=np.zeros((1, 3)),
        axes=R,
        friction=0.0,
        max_force=patch.max_force,
        max_moment=patch.max_moment,
        selection=np.eye(6),
        options={"pose": pose},
    )


PatchPose = tuple[np.ndarray, np.ndarray]
"""Rotation (3,3) and position (3,) of a patch frame in the world."""

FLIP_X = np.diag([1.0, -1.0, -1.0])
"""Rotation by half a turn about x."""


def make_contact(
    robot: "Robot", environment: Environment, spec: ContactSpec | Mapping[str, Any], near: PatchPose | None = None
) -> Contact:
    """Return the contact in world geometry.

    Parameters
    ----------
    robot : has ``patches``.
    environment : has the surface or bar.
    spec : the contact in the form of files.
    near : present pose of the patch frame, needed only for coordinates missing in ``spec`` without a pose.

    Raises
    ------
    InputError
        Unknown patch or support, a kind that they do not allow, missing coordinates, or a place beyond the support.
    """
    if not isinstance(spec, ContactSpec):
        spec = ContactSpec.model_validate(dict(spec))
    patch = robot.patches.get(spec.patch)
    if patch is None:
        raise InputError(
            f"robot {robot.name} has no patch `{spec.patch}`{did_you_mean_or_all(spec.patch, robot.patches)}"
        )
    if spec.patch == MOUNT:
        base_pose = near if spec.pose is None else (spec.pose.R, spec.pose.p)
        if base_pose is None:
            raise InputError(f"{MOUNT}: a pose is missing: where does the base stand?")
        return mount_contact(robot, *base_pose)
    support = environment.supports.get(spec.surface)
    if support is None:
        hint = did_you_mean_or_all(spec.surface, environment.supports)
        raise InputError(f"there is no surface or bar `{spec.surface}`{hint}")
    kind = spec.kind or patch.kind
    if near is None and spec.pose is not None:
        near = (spec.pose.R, spec.pose.p)
    if (kind == "ball") != (patch.kind == "ball"):
        raise InputError(f"the patch `{patch.name}` is a {patch.kind}, so it cannot be a contact of kind {kind}")
    if kind == "ball" and not isinstance(support, Surface):
        raise InputError(f"the ball `{patch.name}` rolls on surfaces, and `{support.name}` is a bar")
    polygon = _polygon(patch, kind)
    if isinstance(support, Surface):
        place = place_on_surface(spec, kind, polygon, support, near, patch.radius)
        axes = support.R
    else:
        place = place_on_bar(spec, kind, polygon, support, near)
        axes = place.R if kind == "grasp" else place.R @ FLIP_X
    max_force = patch.max_force if spec.max_force is None else spec.max_force
    if kind == "grasp" and spec.max_force is None and isinstance(support, Bar) and support.max_force is not None:
        max_force = support.max_force
    if kind == "grasp" != patch.kind:
        raise InputError(
            f"the patch `{patch.name}` is a {patch.kind}, so it cannot be a contact of kind grasp: a gripper needs "
            "`kind: grasp`, max_force and max_moment in robot.yaml"
        )
    free = axis_freedoms(spec.slide, spec.hinge)
    if kind == "point":
        free += axis_freedoms((), ("x", "y", "z"))
    elif kind == "surface" and len(place.points) == 2:
        edge = place.points[1] - place.points[0]
        free.append(rotation_about(edge / np.linalg.norm(edge), place.points[0]))
    return Contact(
        patch=spec.patch,
        support=spec.surface,
        kind=kind,
        R=place.R,
        p=place.p,
        points=place.points,
        axes=axes,
        friction=support.friction if spec.friction is None else spec.friction,
        max_force=float(max_force),
        max_moment=float(patch.max_moment) if kind == "grasp" else np.inf,
        selection=ball_selection(patch.radius) if kind == "ball" else constrained_directions(free),
        radius=patch.radius,
        coordinates=place.coordinates,
        options=spec.options,
        carrier=carrier(environment, support.owner) if isinstance(support, Surface) and support.owner else None,
    )


def contact(
    robot: "Robot",
    patch: str,
    support: "Surface | Bar | str",
    *,
    near: np.ndarray | None = None,
    environment: Environment | None = None,
    **place: Any,
) -> Contact:
    """Return a contact in world geometry.

        contact(robot, "left_sole", floor, x=0.01, y=0.095)
        contact(robot, "right_grip", rail, along=0.4, angle=0.0)

    Parameters
    ----------
    robot : has the patch.
    patch : its name.
    support : a surface or bar; or its name, with the ``environment`` that holds it.
    near : (nq,) a posture; missing coordinates are the nearest to the patch in this posture. Without it the
        orientations ``yaw``, ``angle`` and ``flip`` default to 0, and the others are required.
    environment : needed for the surfaces of free objects, and for names.
    place : ``x, y, yaw`` on a surface (m, rad); ``along, angle, flip, offset`` on a bar; ``kind``, ``friction``,
        ``max_force``, ``slide``, ``hinge``, ``overhang`` as in a file.

    Raises
    ------
    InputError
        Unknown patch or support, a kind that they do not allow, missing coordinates, or a place beyond the support.
    """
    if not hasattr(robot, "patches"):
        raise InputError(f"contact: robot: expected a Robot, not {describe(robot)}; mcplan.load_robot(...) gives one")
    if not isinstance(support, Surface | Bar | str):
        raise InputError(f"contact: support: expected a Surface, a Bar or the name of one, not {describe(support)}")
    scene = Environment([support]) if environment is None and isinstance(support, Surface | Bar) else environment
    if scene is None:
        raise InputError(f"support {support!r} is a name: give the environment that holds it too")
    name = support if isinstance(support, str) else support.name
    try:
        spec, problems = Document.of_values({"patch": patch, "surface": name, **place}).examine(ContactSpec)
    except InputError as error:  # a number that is not finite
        spec, problems = None, list(error.problems)
    if spec is None or problems:
        raise InputError(*(f"contact of {patch} on {name}: {p.key}: {p.message}" for p in problems))
    if near is not None:
        if patch not in robot.patches:
            raise InputError(f"robot {robot.name} has no patch `{patch}`{did_you_mean_or_all(patch, robot.patches)}")
        X = robot.frame_pose(near, patch)
        return make_contact(robot, scene, spec, (X[:3, :3], X[:3, 3]))
    orientations = ("yaw",) if isinstance(scene.supports.get(name), Surface) else ("angle", "flip")
    defaults = {key: 0.0 if key != "flip" else False for key in orientations if getattr(spec, key) is None}
    return make_contact(robot, scene, spec.model_copy(update=defaults))


def _polygon(patch: "Patch", kind: str) -> np.ndarray:
    if kind != "surface":
        return np.zeros((1, 2))
    polygon = np.zeros((0, 2)) if patch.polygon is None else np.asarray(patch.polygon, float).reshape(-1, 2)
    if len(polygon) < 2:
        raise InputError(f"patch `{patch.name}` has no polygon, so it cannot be a contact of kind surface")
    return polygon
