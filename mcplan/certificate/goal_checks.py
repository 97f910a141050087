"""Goal checks of a run or a plan against the scenario: each item in order, each key.

The checks do not use the planner's representation of the goal: poses of contacts are computed from the surfaces and
bars of the scenario and compared with the recorded poses of the patches. A state is a stance of a plan or a sample of a
run. Item i must be reached at a state ``k_i`` with ``k_1 <= k_2 <= ...``, the last item at the last state. A scenario
without a goal is checked against its contact sequence: contacts, centre of mass and objects of each item.

Conventions. A surface frame S has z along the normal; the orientation of a patch P in contact is ``R_SP = Rz(yaw)
Rx(pi)``, and (x, y) is the patch's origin on the surface. On a bar the patch's y axis is along the bar, and ``angle``
is the rotation about it; at zero the patch's z axis is as close to straight down as possible (on a vertical bar, to
world x). Missing keys and the free directions of a contact are not checked.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from pydantic import ValidationError

from mcplan.certificate.independent import rotation_of, rotation_vector
from mcplan.certificate.report import Check
from mcplan.certificate.tolerances import ON_SUPPORT, POSTURE
from mcplan.record.records import PatchRecord, RobotRecord, recorded_units
from mcplan.robot.patch import MOUNT
from mcplan.robot.robot import Robot
from mcplan.scene.environment import Bar, Environment, Surface
from mcplan.scene.spec import ContactSpec, PoseSpec


def surface_errors(
    spec: ContactSpec,
    kind: str,
    polygon: np.ndarray,
    surface: Surface,
    R: np.ndarray,
    p: np.ndarray,
    object_poses: np.ndarray | None = None,
    radius: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the position and angle errors (K,), m and rad, of a patch on a surface.

    Parameters
    ----------
    spec, kind : contact in the scenario, and its kind.
    polygon : (k, 3) corners of the patch, in its axes, m.
    R, p : (K, 3, 3), (K, 3) poses of the patch.
    object_poses : (K, 7) poses of the object that the surface is on; the surface is then given in the object's frame.
    radius : of a spherical patch, whose centre is p, m.
    """
    local_R, local_p = surface.R.T @ R, (p - surface.p) @ surface.R
    if object_poses is not None:
        R_object, p_object = rotation_of(object_poses[:, 3:].T).transpose(2, 0, 1), object_poses[:, :3]
        R_S, p_S = R_object @ surface.R, p_object + np.einsum("kij,j->ki", R_object, surface.p)
        local_R = R_S.transpose(0, 2, 1) @ R
        local_p = np.einsum("kji,kj->ki", R_S, p - p_S)
    local_centre = local_p[:, None]
    if radius:  # the contact point of the sphere when upright, from which it has rolled to its present orientation
        c, s = np.cos(spec.yaw or 0.0), np.sin(spec.yaw or 0.0)
        phi = rotation_vector(local_R @ np.array([[c, s, 0.0], [s, -c, 0.0], [0.0, 0.0, -1.0]]).T)
        local_p = local_p - radius * np.column_stack([phi[:, 1], -phi[:, 0], np.ones(len(phi))])
    corners = np.einsum("kij,cj->kci", local_R, polygon) + local_p[:, None]
    contact_points = local_centre if radius else corners
    is_polygon = kind == "surface" and len(polygon) > 2
    height = np.abs(local_p[:, 2]) if is_polygon else np.abs(corners[:, :, 2]).max(axis=1)
    tilt = _angles_between(local_R[:, :, 2], np.array([0.0, 0.0, -1.0])) if is_polygon else np.zeros(len(p))
    overhang = distance_beyond(contact_points[..., :2], surface.polygon, spec.overhang) - ON_SUPPORT
    distance = np.maximum(height, np.maximum(overhang, 0.0))
    offset = np.zeros((len(p), 3))
    for i, value in enumerate((spec.x, spec.y)):
        if value is not None:
            offset[:, i] = local_p[:, i] - value
    offset_in_patch = np.einsum("kji,kj->ki", local_R, offset)
    for axis in spec.slide:
        offset_in_patch[:, "xyz".index(axis)] = 0.0
    distance = np.maximum(distance, np.linalg.norm(offset_in_patch, axis=1))
    if spec.yaw is not None and kind == "surface" and "z" not in spec.hinge:
        along = np.array([1.0, 0.0, 0.0]) if is_polygon else polygon[1] - polygon[0]
        c, s = np.cos(spec.yaw), np.sin(spec.yaw)
        direction = np.array([[c, s, 0.0], [s, -c, 0.0], [0.0, 0.0, -1.0]]) @ along
        tilt = np.maximum(tilt, _angles_between(local_R @ along, direction))
    return distance, tilt


def bar_errors(
    spec: ContactSpec, kind: str, polygon: np.ndarray, bar: Bar, R: np.ndarray, p: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the position and angle errors (K,), m and rad, of a patch on a bar: grasp, line contact or point."""
    d, offset = bar.direction, p - bar.ends[0]
    if kind == "point":
        along = offset @ d
        distance = np.abs(np.linalg.norm(offset - along[:, None] * d, axis=1) - bar.radius)
        angle = np.zeros(len(p))
        if spec.angle is not None:  # the point lies opposite to the z axis of a grasp with this angle
            sides = [1.0, -1.0] if spec.flip is None else [-1.0 if spec.flip else 1.0]
            centres = [along[:, None] * d - bar.radius * _grasp_axes(s * d[None], spec.angle) for s in sides]
            distance = np.min([np.linalg.norm(offset - place, axis=1) for place in centres], axis=0)
    else:
        sign = np.sign(R[:, :, 1] @ d)
        if spec.flip is not None:
            sign = np.full(len(p), -1.0 if spec.flip else 1.0)
        angle = _angles_between(R[:, :, 1], sign[:, None] * d)
    if kind == "grasp":
        along = offset @ d
        distance = np.linalg.norm(offset - along[:, None] * d, axis=1)
        if spec.angle is not None and "y" not in spec.hinge:
            angle = np.maximum(angle, _angles_between(R[:, :, 2], _grasp_axes(sign[:, None] * d, spec.angle)))
    elif kind == "surface":
        # intersection of the bar axis, in patch axes, with the plane y = 0
        origin, axis = -np.einsum("kji,kj->ki", R, offset), np.einsum("kji,j->ki", R, d)
        t = -origin[:, 1] / np.where(np.abs(axis[:, 1]) > 1e-9, axis[:, 1], 1e-9)
        intersection = origin + t[:, None] * axis
        distance, along = np.abs(intersection[:, 2] - bar.radius), t
        distance = np.maximum(
            distance, np.maximum(polygon[:, 0].min() - intersection[:, 0], intersection[:, 0] - polygon[:, 0].max())
        )
        if spec.offset is not None:
            distance = np.maximum(distance, np.abs(intersection[:, 0] - spec.offset))
    distance = np.maximum(distance, np.maximum(-along, along - bar.length) - ON_SUPPORT)
    if spec.along is not None and "y" not in spec.slide:
        distance = np.maximum(distance, np.abs(along - spec.along))
    return distance, angle


def _grasp_axes(y: np.ndarray, angle: float) -> np.ndarray:
    """Return the z axes (K, 3) of a grasp with y axes (K, 3): ``x0 sin(angle) + z0 cos(angle)``.

    x0 and z0 are the axes of the grasp at the angle 0.
    """
    upright = np.hypot(y[:, 0], y[:, 1]) <= 1e-6
    reference = np.where(upright[:, None], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0])
    z = reference - np.sum(reference * y, axis=1)[:, None] * y
    z /= np.linalg.norm(z, axis=1)[:, None]
    return np.asarray(np.cross(y, z) * np.sin(angle) + z * np.cos(angle))


def _angles_between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the angles (K,) between vectors (K, 3) and (3,) or (K, 3)."""
    b = np.broadcast_to(b, a.shape)
    return np.arctan2(np.linalg.norm(np.cross(a, b), axis=1), np.sum(a * b, axis=1))


def distance_beyond(corners: np.ndarray, polygon: np.ndarray, overhang: bool) -> np.ndarray:
    """Return how far (K,) the farthest corner (K, c, 2) is outside of a convex polygon, m; negative inside.

    With ``overhang`` a patch may extend beyond an edge as long as one of its corners is inside of this edge: for each
    edge the innermost corner counts.
    """
    edge = np.roll(polygon, -1, axis=0) - polygon
    normal = np.stack([edge[:, 1], -edge[:, 0]], axis=1) / np.linalg.norm(edge, axis=1)[:, None]
    distance = np.einsum("kci,ei->kce", corners, normal) - np.sum(polygon * normal, axis=1)
    return np.asarray((distance.min(axis=1) if overhang else distance.max(axis=1)).max(axis=1))


ANY_SUPPORT = "*"
"""Support of a patch in a run, where it is unknown: a run records only that a patch is in contact."""


class GoalStates(NamedTuple):
    """K consecutive states to compare with goals.

    Parameters
    ----------
    q, com : (K, 7+n), (K, 3).
    R, p : by patch, (K, 3, 3) and (K, 3): pose of its frame, m.
    supports : by patch, (K,) name of its support; "" without contact, ``ANY_SUPPORT`` if unknown.
    objects : by name, (K, 7) poses.
    name : function that returns the label of a state, for messages.
    """

    q: np.ndarray
    com: np.ndarray
    R: Mapping[str, np.ndarray]
    p: Mapping[str, np.ndarray]
    supports: Mapping[str, np.ndarray]
    objects: Mapping[str, np.ndarray]
    name: Callable[[int], str]


class GoalTolerances(NamedTuple):
    """Tolerances of goals: poses of contacts (m, rad), centre of mass (m), poses of objects (m, rad)."""

    place: float
    angle: float
    com: float
    object: float
    object_angle: float


class GoalError(NamedTuple):
    """One check of an item: its name, error of each state (K,), tolerance, unit, and subject of the message.

    Angles are in rad, even if ``unit`` is "deg": they are converted for messages.
    """

    name: str
    error: np.ndarray
    bound: float
    unit: str
    subject: str


class GoalChecker:
    """Comparison of states with goals.

    Parameters
    ----------
    record, robot : the robot's record, and the robot with its named postures.
    environment : surfaces and bars at their actual poses, and objects at their initial pose.
    states, tolerances : the states to check, and their tolerances.
    """

    def __init__(
        self,
        record: RobotRecord,
        robot: Robot,
        environment: Environment,
        states: GoalStates,
        tolerances: GoalTolerances,
    ):
        self.record, self.robot, self.environment = record, robot, environment
        self.states, self.tolerances = states, tolerances
        self.patches = {patch.name: patch for patch in record.patches}

    def checks(self, document: Mapping[str, Any]) -> Iterator[Check]:
        """Yield the checks of the start and goal in a scenario document."""
        start = document.get("start")
        contacts = start.get("contacts") if isinstance(start, Mapping) else None
        if contacts:
            for error in self._errors({"contacts": contacts, "only": True}):
                yield self._line("start", error, 0, False)
        try:
            items = goal_items(document)
        except (TypeError, ValueError, KeyError, AttributeError) as reason:
            failure = f"the goal cannot be read: {type(reason).__name__}: {reason}"
            yield Check("goal", None, "", "met", False, "", failure)
            return
        earliest = 0
        for i, (title, item) in enumerate(items):
            errors = list(self._errors(item))
            is_last = i == len(items) - 1
            if not errors:
                continue
            ratio = np.max([error.error / error.bound if error.bound else error.error for error in errors], axis=0)
            ratio = np.where(np.isnan(ratio), np.inf, ratio)
            state = len(ratio) - 1 if is_last else earliest + int(np.argmin(ratio[earliest:]))
            lines = [self._line(title, error, state, is_last) for error in errors]
            if title.startswith("item"):  # report the failures only, or else the check closest to its tolerance
                failed = [line for line in lines if not line.passed]
                shares = [error.error[state] / error.bound if error.bound else 0.0 for error in errors]
                lines = failed or [lines[int(np.argmax(shares))]]
            yield from lines
            reached = np.flatnonzero(np.all([error.error <= error.bound for error in errors], axis=0)[earliest:])
            if not is_last and len(reached):
                earliest += int(reached[0])

    def _errors(self, item: Mapping[str, Any]) -> Iterator[GoalError]:
        """Yield the errors of all keys of an item, for all states."""
        try:
            for key in KEYS:
                if item.get(key.name) is not None:
                    yield from key.errors(self, item[key.name], item)
        except (ValidationError, TypeError, ValueError, KeyError) as error:
            unreached = np.full(len(self.states.q), np.inf)
            yield GoalError("cannot be read", unreached, 0.0, "", f"{type(error).__name__}: {error}")

    def _line(self, title: str, error: GoalError, state: int, is_last: bool) -> Check:
        value, unit = float(error.error[state]), error.unit
        passed = bool(value <= error.bound)
        where = self.states.name(state)
        name = f"{title}: {error.name}"
        when = "at the end" if is_last else "at the beginning" if title == "start" else f"at best, {where},"
        scale = np.rad2deg(1.0) if unit == "deg" else 1.0
        value, bound = scale * value, scale * error.bound
        finite_value = value if np.isfinite(value) else None
        amount = f"{when} {error.subject}" + (f" is off by {value:.4g} {unit}" if np.isfinite(value) else "")
        failure = "" if passed else f"{name} is not reached: {amount}, allowed {bound:.4g} {unit}".rstrip()
        return Check(name, finite_value, unit, f"<= {bound:.4g}", passed, where, failure)

    def contact_errors(self, spec: ContactSpec) -> tuple[np.ndarray, np.ndarray]:
        """Return the position and angle errors (K,), m and rad, of a goal contact; infinite without contact."""
        states, K = self.states, len(self.states.q)
        support = self.environment.supports.get(spec.surface)
        patch = self.patches.get(spec.patch)
        support_names = states.supports.get(spec.patch)
        if support is None or patch is None or support_names is None:
            return np.full(K, np.inf), np.full(K, np.inf)
        in_contact = (support_names == spec.surface) | (support_names == ANY_SUPPORT)
        object_poses = None
        if isinstance(support, Surface) and support.owner is not None:
            item = next(item for item in self.environment.objects if item.name == support.owner)
            support = replace(support, R=item.R.T @ support.R, p=item.R.T @ (support.p - item.p))
            object_poses = states.objects[item.name]
        distance, angle = place_errors(spec, patch, support, states.R[spec.patch], states.p[spec.patch], object_poses)
        return np.where(in_contact, distance, np.inf), np.where(in_contact, angle, np.inf)


def _contact_errors(checker: GoalChecker, contacts: Any, item: Mapping[str, Any]) -> Iterator[GoalError]:
    distances = angles = np.zeros(len(checker.states.q))
    specs = _specs(contacts)
    for spec in specs:
        distance, angle = checker.contact_errors(spec)
        distances, angles = np.maximum(distances, distance), np.maximum(angles, angle)
    if specs:
        names = ", ".join(f"{spec.patch} on {spec.surface}" for spec in specs)
        yield GoalError("contacts", distances, checker.tolerances.place, "m", names)
        yield GoalError("contacts, angle", angles, checker.tolerances.angle, "deg", names)


def _only_errors(checker: GoalChecker, only: Any, item: Mapping[str, Any]) -> Iterator[GoalError]:
    if only:
        supports = checker.states.supports
        others = set(supports) - {spec.patch for spec in _specs(item.get("contacts"))} - {MOUNT}
        count = np.sum([np.zeros(len(checker.states.q)), *(supports[patch] != "" for patch in others)], axis=0)
        yield GoalError("no other contacts", count, 0.0, "", "the number of other contacts")


def _base_errors(checker: GoalChecker, base: Any, item: Mapping[str, Any]) -> Iterator[GoalError]:
    if not base:
        return
    q, tolerance = checker.states.q, base.get("tolerance")
    distance = np.linalg.norm(q[:, :3] - np.array(base["xyz"], float), axis=1)
    yield GoalError("base", distance, 0.05 if tolerance is None else float(tolerance), "m", "the base")
    if base.get("rpy") is not None:
        rotation = _rotation_angles(q[:, 3:7], PoseSpec(rpy=tuple(base["rpy"])).R)
        angle = base.get("angle_tolerance")
        yield GoalError("base, angle", rotation, 0.1 if angle is None else float(angle), "deg", "the base")


def _posture_errors(checker: GoalChecker, posture: Any, item: Mapping[str, Any]) -> Iterator[GoalError]:
    target = posture_joints(checker.robot, posture)
    error = np.abs(checker.states.q[:, 7:] - target)
    error[:, np.isnan(target)] = 0.0
    tolerance = item.get("posture_tolerance")
    bound = POSTURE if tolerance is None else float(tolerance)
    if not error.shape[1]:
        yield GoalError("posture", np.zeros(len(error)), bound, "rad", "the posture")
        return
    worst = int(np.argmax(error[-1]))
    unit, joint = recorded_units(checker.record)[worst], checker.record.coordinates[worst]
    yield GoalError("posture", error.max(axis=1), bound, unit, joint)


def _com_errors(checker: GoalChecker, com: Any, item: Mapping[str, Any]) -> Iterator[GoalError]:
    target = np.array(com, float)
    distance = np.linalg.norm(checker.states.com[:, : len(target)] - target, axis=1)
    tolerance = item.get("com_tolerance")
    bound = checker.tolerances.com if tolerance is None else float(tolerance)
    yield GoalError("centre of mass", distance, bound, "m", "it")


def _object_errors(checker: GoalChecker, objects: Any, item: Mapping[str, Any]) -> Iterator[GoalError]:
    states, tolerances = checker.states, checker.tolerances
    distances, angles = np.zeros(len(states.q)), np.zeros(len(states.q))
    for name, value in objects.items():
        pose = PoseSpec.model_validate(dict(value))
        actual = states.objects.get(name)
        if actual is None:
            distances[:] = angles[:] = np.inf
            continue
        distances = np.maximum(distances, np.linalg.norm(actual[:, :3] - pose.p, axis=1))
        angles = np.maximum(angles, _rotation_angles(actual[:, 3:], pose.R))
    if objects:
        names = ", ".join(objects)
        yield GoalError("objects", distances, tolerances.object, "m", names)
        yield GoalError("objects, angle", angles, tolerances.object_angle, "deg", names)


class KeySpec(NamedTuple):
    """Key of a goal item: its name, and a function (checker, value, item) that yields its errors."""

    name: str
    errors: Callable[[GoalChecker, Any, Mapping[str, Any]], Iterator[GoalError]]


KEYS = (
    KeySpec("contacts", _contact_errors),
    KeySpec("only", _only_errors),
    KeySpec("base", _base_errors),
    KeySpec("posture", _posture_errors),
    KeySpec("com", _com_errors),
    KeySpec("objects", _object_errors),
)
"""Keys in the order of the checks. A new kind of goal needs a row here."""


def _specs(contacts: Any) -> list[ContactSpec]:
    return [ContactSpec.model_validate(dict(spec)) for spec in contacts or ()]


def _rotation_angles(quat_wxyz: np.ndarray, R: np.ndarray) -> np.ndarray:
    """Return the angles (K,) between quaternions (K, 4) and a rotation matrix, rad."""
    actual = rotation_of(quat_wxyz.T).transpose(2, 0, 1)
    return np.asarray(np.linalg.norm(rotation_vector(actual @ R.T), axis=1))


def posture_joints(robot: Robot, posture: Any) -> np.ndarray:
    """Return the joint positions (n,) of a goal posture (its name, joint positions, or both); NaN for other joints."""
    spec: dict[str, Any] = {"name": posture} if isinstance(posture, str) else dict(posture)
    target = np.full(robot.n, np.nan)
    if spec.get("name") is not None:
        target[:] = robot.posture(spec["name"])[7:]
    for joint, value in (spec.get("joints") or {}).items():
        target[list(robot.joint_names).index(joint)] = float(value)
    return target


def place_errors(
    spec: ContactSpec,
    patch: PatchRecord,
    support: Surface | Bar,
    R: np.ndarray,
    p: np.ndarray,
    object_poses: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the position and angle errors (K,), m and rad, of patch poses (K, 3, 3), (K, 3) from a contact.

    Parameters
    ----------
    object_poses : (K, 7) poses of the object that the surface is on; the surface is then given in the object's frame.
    """
    kind = spec.kind or patch.kind
    polygon = np.array([[*corner[:2], 0.0] for corner in patch.polygon]) if kind == "surface" else np.zeros((1, 3))
    if isinstance(support, Surface):
        return surface_errors(spec, kind, polygon, support, R, p, object_poses, patch.radius)
    return bar_errors(spec, kind, polygon, support, R, p)


def goal_items(document: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return titles and items of the goal of a scenario; without a goal, those of its contact sequence."""
    goal = document.get("goal")
    if isinstance(goal, Mapping):
        goal = [goal]
    if goal:
        count = len(goal)
        return [(f"goal {i} of {count}" if count > 1 else "goal", dict(item)) for i, item in enumerate(goal, 1)]
    stances = document.get("stances") or ()
    if any("q" in item for item in stances):  # a plan file stores the user's sequence separately
        stances = (document.get("plan") or {}).get("sequence") or ()
    return [(f"item {i} of {len(stances)}", item) for i, item in enumerate(_with_all_contacts(stances), 1)]


def _with_all_contacts(stances: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the items of a sequence, each with its complete set of contacts (changes applied)."""
    contacts: dict[str, Any] = {}
    for item in stances:
        if item.get("contacts") is not None:
            contacts = {spec["patch"]: spec for spec in item["contacts"]}
        if item.get("add") is not None:
            contacts = {**contacts, item["add"]["patch"]: item["add"]}
        if item.get("remove") is not None:
            contacts = {patch: spec for patch, spec in contacts.items() if patch != item["remove"]}
        others = {key: item[key] for key in ("com", "objects") if item.get(key)}
        yield {"contacts": list(contacts.values()), "only": True, **others}
