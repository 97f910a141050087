"""Checks of the goal, of a run and of a plan, by the words of the scenario: each item, in order, each field.

Nothing here asks the planner what it took the goal to be: places of contacts come from the surfaces and bars that the
scenario describes, and are held against where the recorded motion has the patches. Item i is met at a state ``k_i``,
``k_1 <= k_2 <= ...``, the last one at the last state; states are the stances of a plan or the samples of a run. A
scenario without a goal asks for its hand-written sequence: contacts, centre of mass and objects of each item. (The
posture of such an item is a guide.)

How far a patch is from a contact with a surface or a bar, as the scenario describes it.

A surface's frame S has its normal along z; in contact ``R_SP = Rz(yaw) Rx(pi)`` and (x, y) is the patch's origin on it.
A bar's direction is the patch's y axis; ``angle`` turns about it from where z_P is nearest to down (to world x on a
vertical bar). What is left out is free; what a contact leaves free counts for nothing.
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


SOMETHING = "*"
"""What a patch of a run is in contact with: its place tells."""


class States(NamedTuple):
    """What goals are held against: K states in their order.

    Parameters
    ----------
    q, com : (K, 7+n), (K, 3).
    R, p : by patch, (K, 3, 3) and (K, 3): pose of its frame, m.
    supports : by patch, (K,) name of what it is in contact with; "" where it is free, SOMETHING where no more is known
        than that it is in contact.
    objects : by name, (K, 7) poses.
    name : of a state, as text.
    """

    q: np.ndarray
    com: np.ndarray
    R: Mapping[str, np.ndarray]
    p: Mapping[str, np.ndarray]
    supports: Mapping[str, np.ndarray]
    objects: Mapping[str, np.ndarray]
    name: Callable[[int], str]


class Allowed(NamedTuple):
    """Tolerances of goals: places of contacts (m, rad), centre of mass (m), objects (m, rad)."""

    place: float
    turn: float
    com: float
    object: float
    object_turn: float


class Field(NamedTuple):
    """One line of an item: how far each state (K,) is from it, how far it may be, the unit, and what it is about."""

    name: str
    off: np.ndarray
    bound: float
    unit: str
    text: str


class Judge:
    """Holds states against goals.

    Parameters
    ----------
    robot : its patches and joints.
    environment : surfaces and bars where they really are, and objects at their first pose.
    states, allowed : what is judged, and how exactly.
    posture : from what a document says of a posture to the joints (n,) that it asks for; NaN where it leaves one.
    """

    def __init__(
        self,
        robot: RobotRecord,
        environment: Environment,
        states: States,
        allowed: Allowed,
        posture: Callable[[Any], np.ndarray],
    ):
        self.robot, self.environment, self.states, self.allowed = robot, environment, states, allowed
        self._posture = posture
        self._patches = {patch.name: patch for patch in robot.patches}

    def checks(self, document: Mapping[str, Any]) -> Iterator[Check]:
        """Yield the lines of the certificate for the goal of a scenario's document."""
        try:
            items = goal_items(document)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            failure = f"the goal cannot be read: {type(error).__name__}: {error}"
            yield Check("goal", None, "", "met", False, "", failure)
            return
        start = 0
        for i, (title, item) in enumerate(items):
            fields = list(self._fields(item))
            last = i == len(items) - 1
            if not fields:
                continue
            met = np.all([field.off <= field.bound for field in fields], axis=0)
            worst = np.max([field.off / field.bound if field.bound else field.off for field in fields], axis=0)
            worst = np.where(np.isnan(worst), np.inf, worst)
            there = np.flatnonzero(met[start:])
            at = len(met) - 1 if last else start + int(np.argmin(worst[start:]))
            lines = [self._line(title, field, at, last) for field in fields]
            if title.startswith("item"):  # long sequences: what is wrong, or the nearest to being so
                wrong = [line for line in lines if not line.passed]
                lines = wrong or [lines[int(np.argmax([f.off[at] / f.bound if f.bound else 0.0 for f in fields]))]]
            yield from lines
            if not last and len(there):
                start += int(there[0])

    def start(self, document: Mapping[str, Any]) -> Iterator[Check]:
        """Yield the lines for the contacts of the scenario's start, at the first state; none where it gives none."""
        start = document.get("start")
        contacts = start.get("contacts") if isinstance(start, Mapping) else None
        if contacts:
            for field in self._fields({"contacts": contacts, "only": True}):
                yield self._line("start", field, 0, False)

    def _line(self, title: str, field: Field, at: int, last: bool) -> Check:
        value = float(field.off[at])
        passed = bool(value <= field.bound)
        where = self.states.name(at)
        name = f"{title}: {field.name}"
        nearest = "at the end" if last else "at the beginning" if title == "start" else f"at best, {where},"
        scale = np.rad2deg(1.0) if field.unit == "deg" else 1.0
        value, bound = scale * value, scale * field.bound
        shown = value if np.isfinite(value) else None
        amount = f"{nearest} {field.text}" + (f" is off by {value:.4g} {field.unit}" if np.isfinite(value) else "")
        failure = "" if passed else f"{name} is not reached: {amount}, allowed {bound:.4g} {field.unit}".rstrip()
        return Check(name, shown, field.unit, f"<= {bound:.4g}", passed, where, failure)

    def _fields(self, item: Mapping[str, Any]) -> Iterator[Field]:
        try:
            yield from self._contacts(item)
            yield from self._base(item)
            yield from self._joints(item)
            yield from self._centre(item)
            yield from self._objects(item)
        except (ValidationError, TypeError, ValueError, KeyError) as error:
            never = np.full(len(self.states.q), np.inf)
            yield Field("cannot be read", never, 0.0, "", f"{type(error).__name__}: {error}")

    def _contacts(self, item: Mapping[str, Any]) -> Iterator[Field]:
        wanted = [ContactSpec.model_validate(dict(spec)) for spec in item.get("contacts") or ()]
        K = len(self.states.q)
        if wanted:
            place, turn = np.zeros(K), np.zeros(K)
            for spec in wanted:
                off, angle = self._contact(spec)
                place, turn = np.maximum(place, off), np.maximum(turn, angle)
            names = ", ".join(f"{spec.patch} on {spec.surface}" for spec in wanted)
            yield Field("contacts", place, self.allowed.place, "m", names)
            yield Field("contacts, angle", turn, self.allowed.turn, "deg", names)
        if item.get("only"):
            others = set(self.states.supports) - {spec.patch for spec in wanted} - {MOUNT}
            count = np.zeros(K)
            for patch in others:
                count += self.states.supports[patch] != ""
            yield Field("no other contacts", count, 0.0, "", "the number of other contacts")

    def _contact(self, spec: ContactSpec) -> tuple[np.ndarray, np.ndarray]:
        """Return how far (K,) m and rad a patch is from a contact; infinite where it is free."""
        states, K = self.states, len(self.states.q)
        support = self.environment.supports.get(spec.surface)
        patch = self._patches.get(spec.patch)
        on = states.supports.get(spec.patch)
        if support is None or patch is None or on is None:
            return np.full(K, np.inf), np.full(K, np.inf)
        there = (on == spec.surface) | (on == SOMETHING)
        R, p = states.R[spec.patch], states.p[spec.patch]
        carried = None
        if isinstance(support, Surface) and support.owner is not None:
            thing = next(thing for thing in self.environment.objects if thing.name == support.owner)
            support = replace(support, R=thing.R.T @ support.R, p=thing.R.T @ (support.p - thing.p))
            carried = states.objects[thing.name]
        off, angle = place_errors(spec, patch, support, R, p, carried)
        return np.where(there, off, np.inf), np.where(there, angle, np.inf)

    def _base(self, item: Mapping[str, Any]) -> Iterator[Field]:
        base = item.get("base")
        if not base:
            return
        xyz = np.array(base["xyz"], float)
        off = np.linalg.norm(self.states.q[:, :3] - xyz, axis=1)
        tolerance = base.get("tolerance")
        yield Field("base", off, 0.05 if tolerance is None else float(tolerance), "m", "the base")
        if base.get("rpy") is not None:
            target = PoseSpec(rpy=tuple(base["rpy"])).R
            turned = self._turned(self.states.q[:, 3:7], target)
            angle = base.get("angle_tolerance")
            yield Field("base, angle", turned, 0.1 if angle is None else float(angle), "deg", "the base")

    def _joints(self, item: Mapping[str, Any]) -> Iterator[Field]:
        if item.get("posture") is None:
            return
        wanted = self._posture(item["posture"])
        off = np.abs(self.states.q[:, 7:] - wanted)
        off[:, np.isnan(wanted)] = 0.0
        tolerance = item.get("posture_tolerance")
        worst = int(np.argmax(off[-1])) if off.shape[1] else 0
        text = self.robot.coordinates[worst] if off.shape[1] else "the posture"
        most = off.max(axis=1) if off.shape[1] else np.zeros(len(off))
        unit = recorded_units(self.robot)[worst] if off.shape[1] else "rad"
        yield Field("posture", most, POSTURE if tolerance is None else float(tolerance), unit, text)

    def _centre(self, item: Mapping[str, Any]) -> Iterator[Field]:
        if item.get("com") is None:
            return
        com = np.array(item["com"], float)
        off = np.linalg.norm(self.states.com[:, : len(com)] - com, axis=1)
        tolerance = item.get("com_tolerance")
        yield Field("centre of mass", off, self.allowed.com if tolerance is None else float(tolerance), "m", "it")

    def _objects(self, item: Mapping[str, Any]) -> Iterator[Field]:
        wanted = item.get("objects") or {}
        if not wanted:
            return
        K = len(self.states.q)
        off, turn = np.zeros(K), np.zeros(K)
        for name, given in wanted.items():
            pose = PoseSpec.model_validate(dict(given))
            if name not in self.states.objects:
                off[:] = turn[:] = np.inf
                continue
            now = self.states.objects[name]
            off = np.maximum(off, np.linalg.norm(now[:, :3] - pose.p, axis=1))
            turn = np.maximum(turn, self._turned(now[:, 3:], pose.R))
        names = ", ".join(wanted)
        yield Field("objects", off, self.allowed.object, "m", names)
        yield Field("objects, angle", turn, self.allowed.object_turn, "deg", names)

    @staticmethod
    def _turned(quat_wxyz: np.ndarray, R: np.ndarray) -> np.ndarray:
        """Return the angles (K,) between orientations (K, 4) and one, rad."""
        now = rotation_of(quat_wxyz.T).transpose(2, 0, 1)
        return np.asarray(np.linalg.norm(rotation_vector(now @ R.T), axis=1))


def postures(robot: Robot) -> Callable[[Any], np.ndarray]:
    """Return what reads a posture of a document: a name, or a name and joints that differ, or joints alone."""

    def read(given: Any) -> np.ndarray:
        said: dict[str, Any] = {"name": given} if isinstance(given, str) else dict(given)
        wanted = np.full(robot.n, np.nan)
        if said.get("name") is not None:
            wanted[:] = robot.posture(said["name"])[7:]
        for joint, value in (said.get("joints") or {}).items():
            wanted[list(robot.joint_names).index(joint)] = float(value)
        return wanted

    return read


def place_errors(
    spec: ContactSpec,
    patch: PatchRecord,
    support: Surface | Bar,
    R: np.ndarray,
    p: np.ndarray,
    carried: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return how far (K,) m and rad patches at poses (K, 3, 3), (K, 3) are from a contact as a scenario describes it.

    Parameters
    ----------
    carried : (K, 7) poses of the object that the surface is on; the surface is then given in the object's frame.
    """
    kind = spec.kind or patch.kind
    polygon = np.array([[*corner[:2], 0.0] for corner in patch.polygon]) if kind == "surface" else np.zeros((1, 3))
    if isinstance(support, Surface):
        return surface_errors(spec, kind, polygon, support, R, p, carried, patch.radius)
    return bar_errors(spec, kind, polygon, support, R, p)


def goal_items(document: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the items of a scenario's goal with their titles; those of its hand-written sequence if it has no goal."""
    goal = document.get("goal")
    if isinstance(goal, Mapping):
        goal = [goal]
    if goal:
        count = len(goal)
        return [(f"goal {i} of {count}" if count > 1 else "goal", dict(item)) for i, item in enumerate(goal, 1)]
    stances = document.get("stances") or ()
    if any("q" in item for item in stances):  # of a plan: they are what was found; what was asked for stands beside
        stances = (document.get("plan") or {}).get("sequence") or ()
    return [(f"item {i} of {len(stances)}", item) for i, item in enumerate(_unfolded(stances), 1)]


def _unfolded(stances: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the items of a sequence with all their contacts, which are the only ones."""
    contacts: dict[str, Any] = {}
    for item in stances:
        if item.get("contacts") is not None:
            contacts = {spec["patch"]: spec for spec in item["contacts"]}
        if item.get("add") is not None:
            contacts = {**contacts, item["add"]["patch"]: item["add"]}
        if item.get("remove") is not None:
            contacts = {patch: spec for patch, spec in contacts.items() if patch != item["remove"]}
        kept = {key: item[key] for key in ("com", "objects") if item.get(key)}
        yield {"contacts": list(contacts.values()), "only": True, **kept}
