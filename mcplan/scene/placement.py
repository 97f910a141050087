"""Contact placement: pose of a patch on a surface or bar; missing coordinates are those of the nearest pose in contact.

Frames: W world, P patch, S surface. On a surface (h = 0, for a ball the height of its centre: its radius):

    R_WP = R_WS R_SP,   R_SP = Rz(yaw) Rx(pi),   p_WP = p_WS + R_WS [x, y, h]

On a bar, e_0 is the first end, d the unit vector to the second end, s = -1 if flipped, else 1. The patch's y axis is
``y0 = s d``; at angle 0 its z axis z0 is the direction nearest to down (to the world's x for a vertical bar), and
``angle`` turns it about y:

    R_WP = [y0 x z0, y0, z0] Ry(angle)
    grasp:  p_WP = e_0 + along d
    sole:   p_WP = e_0 + along d - R_WP [offset, 0, radius]
    point:  p_WP = e_0 + along d - R_WP [0, 0, radius]

The nearest pose in contact turns the patch by the smallest angle that aligns it with the support, then moves it by the
smallest distance that brings its polygon onto the support. A fixed base is in contact with the world at its pose,
constrained in all directions during the whole motion.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mcplan.document.document import Document
from mcplan.errors import InputError
from mcplan.robot.patch import MOUNT
from mcplan.robot.pose import quat_from_rotation, rotation_vector
from mcplan.scene.contact import Contact, axis_freedoms, ball_selection, constrained_directions, rotation_about
from mcplan.scene.environment import Bar, Environment, Surface
from mcplan.scene.polygon import clip, erode, half_planes, max_excess, nearest
from mcplan.scene.resting import carrier
from mcplan.scene.spec import ContactSpec
from mcplan.util.arguments import describe
from mcplan.util.spelling import did_you_mean_or_all

if TYPE_CHECKING:
    from mcplan.robot.patch import Patch
    from mcplan.robot.robot import Robot


MAX_OVERHANG_M = 1e-3
"""Largest overhang of a polygon beyond its support that counts as none."""


class ContactPose(NamedTuple):
    """Pose ``R`` (3,3), ``p`` (3,) of a patch in the world, contact ``points`` (k,3) in patch axes, and coordinates."""

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
) -> ContactPose:
    """Place a patch with ``polygon`` (k,2) on a surface; a point contact, or a ball of ``radius``, has one point.

    Missing coordinates are those nearest to the pose ``near`` of the patch.
    """
    if kind == "grasp":
        raise InputError(f"a grasp needs a bar, and `{surface.name}` is a surface; set `kind: point` to lean on it")
    unexpected = sorted(set(spec.given) & {"along", "angle", "flip", "offset"})
    if unexpected:
        raise InputError(f"{', '.join(unexpected)}: a place on the surface `{surface.name}` is given by x, y and yaw")
    # the yaw of a point contact is free, so it may be left out
    required = ("x", "y") if kind in ("point", "ball") else ("x", "y", "yaw")
    missing = [name for name in required if name not in spec.given]
    if near is None and missing:
        raise InputError(f"{', '.join(missing)} left out: without a posture the nearest place is unknown")
    yaw = spec.yaw
    if yaw is None:
        yaw = 0.0 if near is None else _nearest_yaw(surface.R.T @ near[0], polygon)
    R_SP = surface_rotation(yaw)
    rotated_polygon = polygon @ R_SP[:2, :2].T
    if spec.x is not None and spec.y is not None:
        origin = np.array([spec.x, spec.y])
    else:
        assert near is not None
        target_xy = (surface.R.T @ (near[1] - surface.p))[:2]
        if radius:  # x and y are those of the upright ball: subtract the displacement by rolling
            phi = rotation_vector(surface.R.T @ near[0] @ R_SP.T)
            target_xy -= radius * np.array([phi[1], -phi[0]])
        origin = _nearest_origin(spec, surface, rotated_polygon, target_xy)
    excess = max_excess(origin + rotated_polygon, surface.polygon)
    points = polygon
    if spec.overhang:
        A, b = half_planes(surface.polygon)
        points = clip(polygon, A @ R_SP[:2, :2], b - A @ origin)
        if len(points) < min(len(polygon), 2):
            raise InputError(f"nothing of the patch `{spec.patch}` lies on `{surface.name}` here")
    elif excess > MAX_OVERHANG_M:
        raise InputError(
            f"the patch `{spec.patch}` reaches {1000 * excess:.0f} mm beyond `{surface.name}` at x {origin[0]:.3f}, "
            f"y {origin[1]:.3f}, yaw {yaw:.3f}; at most 1 mm is allowed without `overhang: true`"
        )
    p = surface.p + surface.R @ np.append(origin, radius)
    coordinates: dict[str, float | bool] = {"x": float(origin[0]), "y": float(origin[1]), "yaw": float(yaw)}
    return ContactPose(surface.R @ R_SP, p, np.column_stack([points, np.full(len(points), radius)]), coordinates)


def surface_rotation(yaw: float) -> np.ndarray:
    """Return the rotation of a patch in surface axes, ``R_SP = Rz(yaw) Rx(pi)`` (3,3)."""
    c, s = np.cos(yaw), np.sin(yaw)
    return np.array([[c, s, 0.0], [s, -c, 0.0], [0.0, 0.0, -1.0]])


def _nearest_yaw(R: np.ndarray, polygon: np.ndarray) -> float:
    """Return the yaw nearest to a patch with rotation ``R`` (3,3) in surface axes.

    It maximises the trace of ``R_SP(yaw)' R``: ``cos(yaw) (R00 - R11) + sin(yaw) (R10 + R01)`` plus a constant. The yaw
    of an edge is that of its projection on the surface.
    """
    if len(polygon) == 2:
        edge = polygon[1] - polygon[0]
        direction = R[:2, :2] @ edge
        if np.linalg.norm(direction) > 1e-9 * np.linalg.norm(edge):
            angle = np.arctan2(direction[1], direction[0]) - np.arctan2(-edge[1], edge[0])
            return float((angle + np.pi) % (2 * np.pi) - np.pi)
    return float(np.arctan2(R[1, 0] + R[0, 1], R[0, 0] - R[1, 1]))


def _nearest_origin(spec: ContactSpec, surface: Surface, polygon: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the patch origin (2,) nearest to ``target`` with the polygon on the surface; x or y may be fixed."""
    A, b = half_planes(surface.polygon) if spec.overhang else erode(surface.polygon, polygon)
    fixed_value = spec.x if spec.x is not None else spec.y
    if fixed_value is None:
        origin = nearest(target, A, b)
        if origin is None:
            raise InputError(f"the patch `{spec.patch}` does not fit on `{surface.name}` in this direction")
        return origin
    free_axis = 1 if spec.x is not None else 0
    slope, slack = A[:, free_axis], b - A[:, 1 - free_axis] * fixed_value
    is_bound = np.abs(slope) > 1e-9
    ratio = slack[is_bound] / slope[is_bound]
    low = np.max(ratio[slope[is_bound] < 0], initial=-np.inf)
    high = np.min(ratio[slope[is_bound] > 0], initial=np.inf)
    if low > high + 1e-9:
        name = "xy"[1 - free_axis]
        raise InputError(f"the patch `{spec.patch}` does not fit on `{surface.name}` at {name} {fixed_value:.3f}")
    origin = np.array([fixed_value, fixed_value])
    origin[free_axis] = np.clip(target[free_axis], low, max(low, high))
    return origin


# coordinates of a contact on a bar, by kind
_COORDINATES = {
    "grasp": ("along", "angle", "flip"),
    "point": ("along", "angle", "flip"),
    "surface": ("along", "offset", "angle", "flip"),
}
# coordinates that are required without a posture; the others default to 0 and false
_REQUIRED = {"grasp": ("along", "angle"), "point": ("along", "angle"), "surface": ("along", "offset")}


def place_on_bar(
    spec: ContactSpec, kind: str, polygon: np.ndarray, bar: Bar, near: tuple[np.ndarray, np.ndarray] | None
) -> ContactPose:
    """Place a patch with ``polygon`` (k,2) on a bar; without kind ``surface`` it has one point.

    Missing coordinates are those nearest to the pose ``near`` of the patch.
    """
    given = spec.given
    unexpected = sorted(set(given) - set(_COORDINATES[kind]))
    if unexpected:
        known = ", ".join(_COORDINATES[kind])
        raise InputError(f"{', '.join(unexpected)}: a {kind} contact on the bar `{bar.name}` is given by {known}")
    if kind == "surface" and len(polygon) < 3:
        raise InputError(f"the edge `{spec.patch}` cannot rest on a bar; set `kind: point`, or use a flat patch")
    missing = [name for name in _REQUIRED[kind] if name not in given]
    if near is None and missing:
        raise InputError(f"{', '.join(missing)} left out: without a posture the nearest place is unknown")
    flip, angle = _flip_and_angle(spec, bar, near)
    R = bar_rotation(bar, angle, flip)
    axis_distance = 0.0 if kind == "grasp" else bar.radius
    along, offset = spec.along or 0.0, spec.offset or 0.0
    low, high = (polygon[:, 0].min(), polygon[:, 0].max()) if kind == "surface" else (0.0, 0.0)
    if near is not None:
        # solve p + R [offset, 0, axis_distance] = e_0 + along d; d is perpendicular to the patch's x axis
        from_end = near[1] + axis_distance * R[:, 2] - bar.ends[0]
        if spec.offset is None and kind == "surface":
            offset = float(np.clip(-from_end @ R[:, 0], low, high))
        if spec.along is None:
            along = float(from_end @ bar.direction)
    if kind == "surface" and not low - MAX_OVERHANG_M <= offset <= high + MAX_OVERHANG_M:
        raise InputError(f"offset {offset:.3f} is outside the patch `{spec.patch}` ({low:.3f} to {high:.3f})")
    points = _crossing_line(polygon, min(max(offset, low), high)) if kind == "surface" else np.zeros((1, 3))
    sign = -1.0 if flip else 1.0
    y_min, y_max = np.sort(sign * points[[0, -1], 1])
    if spec.along is None:
        along = _clamp(along, -y_min, bar.length - y_max, spec, bar)
    excess = max(-(along + y_min), along + y_max - bar.length)
    if spec.overhang and kind == "surface":
        y_range = np.sort(sign * (np.array([0.0, bar.length]) - along))
        points[:, 1] = np.clip(points[:, 1], *y_range)
        if np.ptp(points[:, 1]) < MAX_OVERHANG_M:
            raise InputError(f"nothing of the patch `{spec.patch}` lies on `{bar.name}` here")
    elif excess > MAX_OVERHANG_M:
        raise InputError(
            f"the patch `{spec.patch}` reaches {1000 * excess:.0f} mm beyond the end of `{bar.name}` at along "
            f"{along:.3f}; the bar is {bar.length:.3f} m long"
        )
    p = bar.ends[0] + along * bar.direction - R @ np.array([offset, 0.0, axis_distance])
    values = {"along": along, "offset": offset, "angle": angle, "flip": flip}
    return ContactPose(R, p, points, {name: values[name] for name in _COORDINATES[kind]})


def bar_rotation(bar: Bar, angle: float, flip: bool) -> np.ndarray:
    """Return the rotation ``R_WP`` (3,3) of a patch on a bar."""
    y = -bar.direction if flip else bar.direction
    horizontal_length = np.hypot(y[0], y[1])
    z_target = np.array([0.0, 0.0, -1.0]) if horizontal_length > 1e-6 else np.array([1.0, 0.0, 0.0])
    z = z_target - (z_target @ y) * y
    z = z / np.linalg.norm(z)
    c, s = np.cos(angle), np.sin(angle)
    return np.column_stack([np.cross(y, z), y, z]) @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])


def _flip_and_angle(spec: ContactSpec, bar: Bar, near: tuple[np.ndarray, np.ndarray] | None) -> tuple[bool, float]:
    """Return flip and angle: as specified, else those nearest to the rotation R of the patch at ``near``.

    They maximise the trace of ``(R_0 Ry(a))' R``, R_0 the rotation at angle 0: with ``M = R_0' R`` it is
    ``M11 + cos(a) (M00 + M22) + sin(a) (M02 - M20)``.
    """
    if near is None:
        return bool(spec.flip), spec.angle or 0.0
    max_trace, result = -np.inf, (False, 0.0)
    for flip in (False, True) if spec.flip is None else (spec.flip,):
        M = bar_rotation(bar, 0.0, flip).T @ near[0]
        c, s = M[0, 0] + M[2, 2], M[0, 2] - M[2, 0]
        angle = float(np.arctan2(s, c)) if spec.angle is None else spec.angle
        trace = M[1, 1] + np.cos(angle) * c + np.sin(angle) * s
        if trace > max_trace + 1e-12:
            max_trace, result = trace, (flip, angle)
    return result


def _crossing_line(polygon: np.ndarray, offset: float) -> np.ndarray:
    """Return the two points (2,3) where the line ``x = offset`` crosses the polygon."""
    crossings = []
    for start, end in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        if min(start[0], end[0]) <= offset <= max(start[0], end[0]):
            share = (offset - start[0]) / (end[0] - start[0]) if end[0] != start[0] else np.array([0.0, 1.0])
            crossings += np.atleast_1d(start[1] + share * (end[1] - start[1])).tolist()
    return np.array([[offset, min(crossings), 0.0], [offset, max(crossings), 0.0]])


def _clamp(along: float, low: float, high: float, spec: ContactSpec, bar: Bar) -> float:
    """Clamp ``along`` (m) to the range of a patch on a bar; a patch that may overhang: to the bar."""
    if low > high:
        if not spec.overhang:
            raise InputError(f"the patch `{spec.patch}` is wider than the bar `{bar.name}` is long")
        low, high = 0.0, bar.length
    return float(min(max(along, low), high))


WORLD = "world"
"""Name of the support of a fixed base, which is no surface or bar."""


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
"""Rotation by half a turn about x, from patch axes (z into the support) to contact axes (z out of it)."""


def make_contact(
    robot: "Robot", environment: Environment, spec: ContactSpec | Mapping[str, Any], near: PatchPose | None = None
) -> Contact:
    """Return the contact in world geometry.

    Parameters
    ----------
    robot : the robot with the patch.
    environment : the scene with the surface or bar.
    spec : the contact in the form of files.
    near : pose of the patch frame; coordinates missing in ``spec`` are those nearest to it, unless ``spec`` has a pose.

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
        pose = place_on_surface(spec, kind, polygon, support, near, patch.radius)
        axes = support.R
    else:
        pose = place_on_bar(spec, kind, polygon, support, near)
        axes = pose.R if kind == "grasp" else pose.R @ FLIP_X
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
    elif kind == "surface" and len(pose.points) == 2:
        edge = pose.points[1] - pose.points[0]
        free.append(rotation_about(edge / np.linalg.norm(edge), pose.points[0]))
    return Contact(
        patch=spec.patch,
        support=spec.surface,
        kind=kind,
        R=pose.R,
        p=pose.p,
        points=pose.points,
        axes=axes,
        friction=support.friction if spec.friction is None else spec.friction,
        max_force=float(max_force),
        max_moment=float(patch.max_moment) if kind == "grasp" else np.inf,
        selection=ball_selection(patch.radius) if kind == "ball" else constrained_directions(free),
        radius=patch.radius,
        coordinates=pose.coordinates,
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
    robot : the robot with the patch.
    patch : name of the patch.
    support : a surface or bar; or its name, with the ``environment`` that holds it.
    near : (nq,) a posture; missing coordinates are those nearest to the patch in this posture. Without it ``yaw`` and
        ``angle`` default to 0, ``flip`` to False, and the others are required.
    environment : required if the support belongs to a free object, or is given by its name.
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
    """Return the polygon (k,2) of a patch for a kind of contact: the origin unless the kind is ``surface``."""
    if kind != "surface":
        return np.zeros((1, 2))
    polygon = np.zeros((0, 2)) if patch.polygon is None else np.asarray(patch.polygon, float).reshape(-1, 2)
    if len(polygon) < 2:
        raise InputError(f"patch `{patch.name}` has no polygon, so it cannot be a contact of kind surface")
    return polygon
