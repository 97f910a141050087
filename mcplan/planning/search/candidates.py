"""Candidate contacts: the places of one patch on every support, computed once per search.

On a surface they stand on a lattice of the polygon shrunk by the patch, through the places of the goal and of the start
where these are on it, its borders always included; on a bar at even steps. Coordinates that the goal gives are taken
exactly. A candidate is only numbers until its turn comes; then it becomes a contact.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.errors import InputError
from mcplan.planning.goal.item import Goal
from mcplan.planning.guide.path import GuidePath, places_along, turns_on
from mcplan.planning.posture.freedom import GRIP_MARGIN_M, POINT_SURROUNDINGS_M, Freedom
from mcplan.robot.pose import rotate_z
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Bar, Environment, Surface
from mcplan.scene.placement import TOLERANCE, bar_rotation, make_contact, surface_rotation
from mcplan.scene.polygon import erode, nearest
from mcplan.scene.spec import ContactSpec

LOOSE = 0.01
"""m²: extent of a patch, for a robot of the size of HRP-2, below which it is put down in any direction."""

FLAT = 0.5
"""Least vertical part of the normal of a surface that a foot stands on."""

ASIDE = 0.02
"""m: room across the way of a place on the guide: enough for patches to fit together, too little to drift away."""

ALONG = 0.10
"""m: least distance of places along a bar."""

TREAD, RUNG = 0.05, Freedom(along=0.03, offset=0.06, angle=np.inf)
"""m: where under a sole a bar is at first, from the middle, and what is free about it."""

WALL = 0.1
"""Vertical part of the normal of the steepest surface that a foot is set on where the goal does not say so."""

STEEP, RAIL = 0.3, 0.6
"""The same of the direction of a bar for a sole, as on a rung, and for a palm, as on a rail."""

UPRIGHT = 0.1
"""Horizontal part of the direction of a bar below which it runs neither along the way nor across it."""

ASTRAY = (0.5 * np.pi, -0.5 * np.pi, np.pi)
"""rad: how a patch is turned on a support of the goal that it does not fit on as it lies ahead."""

INNER = 0.4
"""Share of a palm within which a bar lies under it: at its rim it slips off."""

INSET = 1e-4
"""m: so far within borders is a place that is written with four digits."""

LEVEL = 0.05
"""m: a nominal place this near to a surface is on it."""


@dataclass(eq=False)
class Candidates:
    """The candidates of one patch.

    Attributes
    ----------
    specs : what a file would write, one per candidate.
    place : (k, 3) patch origins in the world, m.
    s, aside : (k,) progress on the guide and distance from it, m.
    goal : (k,) whether the goal is met.
    freedom : what the posture generator may still choose, one per candidate.
    rolled : progress of those that were added later; their entry in ``s`` is infinite, so that no window holds them.
    """

    robot: Robot
    environment: Environment
    patch: str
    specs: list[dict]
    place: np.ndarray
    s: np.ndarray
    aside: np.ndarray
    goal: np.ndarray
    freedom: list[Freedom | None]
    rolled: dict[int, float] = field(default_factory=dict)
    _contacts: dict[int, Contact | None] = field(default_factory=dict)

    def contact(self, i: int) -> Contact | None:
        """Return candidate ``i`` as a contact, or None where the patch does not fit."""
        if i not in self._contacts:
            try:
                self._contacts[i] = make_contact(self.robot, self.environment, self.specs[i])
            except InputError:
                self._contacts[i] = None
        return self._contacts[i]

    def target(self, length: float) -> float:
        """Return the progress of the place that meets the goal nearest to the end of a guide of this length (m)."""
        s = self.s[self.goal]
        return float(s[np.argmin(np.abs(s - length))])

    def beside(self, i: int, distance: float) -> Iterator[Contact]:
        """Yield contacts a short distance (m) from candidate ``i`` on its surface, where the patch fits.

        A lattice goes through the middle of a tread, and a link may reach farther ahead than its sole.
        """
        spec = self.specs[i]
        if "x" not in spec or "y" not in spec or distance > self.robot.scale.leg * ASIDE:
            return
        for axis in ("x", "y"):
            for step in (-distance, distance):
                try:
                    yield make_contact(self.robot, self.environment, spec | {axis: spec[axis] + step})
                except InputError:
                    continue

    def add(self, contact: Contact, s: float, aside: float, hit: bool) -> int:
        """Append a contact that belongs to no lattice, and return its index."""
        self.specs.append(contact.to_data())
        self.place = np.vstack([self.place, contact.p])
        self.s, self.aside = np.append(self.s, np.inf), np.append(self.aside, aside)
        self.goal = np.append(self.goal, hit)
        self.freedom.append(None)
        self._contacts[len(self.specs) - 1] = contact
        self.rolled[len(self.specs) - 1] = s
        return len(self.specs) - 1

    def progress(self, i: int) -> float:
        """Return the progress of candidate ``i``."""
        return float(self.rolled.get(i, self.s[i]))


def loose(robot: Robot, patch: str) -> bool:
    """Whether a patch that is no foot is too small to say by its direction how it is put down."""
    polygon = robot.patches[patch].polygon
    small = float(np.ptp(polygon, axis=0).prod()) < LOOSE * robot.scale.leg**2
    return len(polygon) < 3 or (small and patch not in robot.feet)


def candidates(
    robot: Robot,
    environment: Environment,
    patch: str,
    guide: GuidePath,
    offset: np.ndarray,
    goal: Goal,
    known: Sequence[Contact],
    grid: float,
    near: np.ndarray,
    loose: bool,
    shift: np.ndarray | None = None,
) -> Candidates:
    """Return the candidates of a patch.

    Parameters
    ----------
    guide : path of the base; ``offset`` (3,) nominal place of the patch in its heading frame.
    known : contacts of the start: the lattice goes through their places.
    grid : m, between candidates.
    near : (3, 3) rotation of the patch at the start in the heading frame of the base, which tells how it lies.
    loose : whether the posture generator may move a candidate within its cell.
    shift : (2,) by which part of their spacing lattices are shifted; None for none.
    """
    shift = np.zeros(2) if shift is None else shift
    specs: list[dict] = []
    places: list[np.ndarray] = []
    freedoms: list[Freedom | None] = []
    hits: list[bool] = []

    def put(spec: dict, place: np.ndarray, freedom: Freedom | None, hit: bool) -> None:
        specs.append(spec)
        places.append(place)
        freedoms.append(freedom if freedom is not None and freedom.names else None)
        hits.append(hit)

    wanted = goal.specs.get(patch)
    for support in environment.supports.values():
        mine = wanted if wanted is not None and wanted.surface == support.name else None
        for fixed in (mine, None) if mine is not None and mine.given else (mine,):
            kind = (fixed.kind if fixed is not None else None) or robot.patches[patch].kind
            if isinstance(support, Bar):
                _on_bar(robot, patch, support, kind, guide, offset, fixed, grid, shift, put)
            elif kind != "grasp":
                _on_surface(robot, patch, support, kind, guide, offset, fixed, known, grid, near, loose, shift, put)
    place = np.array(places).reshape(-1, 3)
    s, aside = guide.progress(place, offset) if len(place) else (np.zeros(0), np.zeros(0))
    return Candidates(robot, environment, patch, specs, place, s, aside, np.array(hits, bool), freedoms)


def _on_surface(
    robot, patch, surface: Surface, kind, guide, offset, fixed, known, grid, near, loose, shift, put
) -> None:
    arm, size = not _foot_like(robot, patch), robot.scale.leg
    steep = surface.normal[2] < FLAT
    if fixed is None and not arm and surface.normal[2] <= WALL:
        return
    centre = surface.corners.mean(axis=0)
    s, _ = guide.progress(np.array([centre]), offset)
    _, heading = guide.at(guide.length if fixed is not None else float(s[0]))
    polygon = robot.patches[patch].polygon if kind == "surface" else size * POINT_SURROUNDINGS_M
    if fixed is not None and (fixed.overhang or (kind != "surface" and fixed.given)):  # its origin is on the surface
        polygon = np.zeros((1, 2))
    widths = {"x": grid / 2, "y": grid / 2, "yaw": _turning(arm, polygon)} if loose else {}
    freedom = Freedom(**{name: w for name, w in widths.items() if fixed is None or name not in fixed.given})
    if not steep and (fixed is None or not fixed.given) and turns_on(guide, surface, offset):
        along = list(places_along(guide, surface, polygon, offset, _relative(near), grid))
        for u, v, yaw in along:
            spec = {"patch": patch, "surface": surface.name, "x": u, "y": v, "yaw": yaw}
            spec |= fixed.options if fixed is not None else {}
            put(spec, surface.p + surface.R[:, :2] @ np.array([u, v]), freedom, fixed is not None)
        if along or fixed is None:
            return
    if fixed is None and loose:
        _along_guide(patch, surface, polygon, guide, offset, grid, near, steep, arm, size, put)
    ahead = _yaw(surface, heading, guide.yaw[0], near, steep)
    yaws = [ahead] if fixed is None else [ahead, *np.add(ahead, ASTRAY)] if fixed.yaw is None else [fixed.yaw]
    for number, yaw in enumerate(yaws):
        turn = surface_rotation(yaw)
        A, b = erode(surface.polygon, polygon @ turn[:2, :2].T)
        anchor = _anchor(surface, guide, offset, known, patch) + grid * shift
        lines = [
            _lines(surface.polygon[:, i], A, b, i, anchor[i], grid, None if fixed is None else (fixed.x, fixed.y)[i])
            for i in (0, 1)
        ]
        x, y = (axis.ravel() for axis in np.meshgrid(*lines, indexing="ij"))
        given_place = fixed is not None and fixed.x is not None and fixed.y is not None
        inside = np.all(A @ np.array([x, y]) <= b[:, None] + (TOLERANCE if given_place else 1e-9), axis=0)
        free = fixed is None or (fixed.x is None and fixed.y is None)
        if free and not inside.any() and (place := nearest(anchor, A, b - INSET)) is not None:
            x, y, inside = place[:1], place[1:], np.ones(1, bool)  # between borders that are at an angle
        for u, v in zip(x[inside], y[inside], strict=True):
            spec = {"patch": patch, "surface": surface.name}
            spec |= {"x": round(float(u), 4), "y": round(float(v), 4), "yaw": round(float(yaw), 4)}
            if fixed is not None:
                spec |= {name: value for name, value in fixed.given.items()}
                spec |= fixed.options
            place = surface.p + surface.R[:, :2] @ np.array([spec["x"], spec["y"]])
            put(spec, place, freedom, fixed is not None)
        if number == 0 and inside.any():
            return


def _along_guide(patch, surface: Surface, polygon, guide: GuidePath, offset, grid, near, steep, arm, size, put) -> None:
    """Put candidates in the nominal places along the guide: patches that pin each other fit together only near them."""
    for s in np.arange(0.0, guide.length + 0.5 * grid, grid):
        base, heading = guide.at(float(s))
        c, n = np.cos(heading), np.sin(heading)
        place = base + rotate_z(heading, offset)
        x, y, height = surface.R.T @ (place - surface.p)
        yaw = _yaw(surface, heading, guide.yaw[0], near, steep)
        A, b = erode(surface.polygon, polygon @ surface_rotation(yaw)[:2, :2].T)
        if abs(height) < size * LEVEL and np.all(A @ np.array([x, y]) <= b):
            spec = {"patch": patch, "surface": surface.name, "x": round(float(x), 4), "y": round(float(y), 4)}
            along = np.abs(surface.R[:, :2].T @ [c, n, 0.0])
            across = np.abs(surface.R[:, :2].T @ [-n, c, 0.0])
            x_room, y_room = along * grid / 2 + across * size * ASIDE
            freedom = Freedom(x=x_room, y=y_room, yaw=_turning(arm, polygon, 0.1))
            put(spec | {"yaw": round(float(yaw), 4)}, surface.p + surface.R[:, :2] @ np.array([x, y]), freedom, False)


def _turning(arm: bool, polygon: np.ndarray, edge: float = 0.3) -> float:
    """Return how far a patch may turn in its place (rad): a hand as it likes, an edge not far from the way."""
    return np.inf if arm and len(polygon) > 2 else edge


def _on_bar(robot, patch, bar: Bar, kind, guide, offset, fixed: ContactSpec | None, grid, shift, put) -> None:
    if kind == "ball" or (kind == "surface" and len(robot.patches[patch].polygon) < 3):
        return
    arm = robot.scale.arm
    half = float(np.abs(robot.patches[patch].polygon[:, 1]).max()) if kind == "surface" else arm * GRIP_MARGIN_M
    rung = RUNG.times(robot.scale.leg)
    footlike = _foot_like(robot, patch)
    if fixed is None and kind == "surface" and abs(bar.direction[2]) > (STEEP if footlike else RAIL):
        return
    low, high = half, bar.length - half
    if low > high:
        if fixed is None or not fixed.overhang:
            return
        low, high = 0.0, bar.length
    if fixed is not None and fixed.along is not None:
        alongs = np.array([fixed.along])
    else:
        step = max(ALONG * robot.scale.leg, grid)
        s, _ = guide.progress(bar.ends.mean(axis=0)[None], offset)
        base, yaw = guide.at(float(s[0]))
        nominal = float((base + rotate_z(yaw, offset) - bar.ends[0]) @ bar.direction) + step * shift[0]
        alongs = np.arange(nominal + np.ceil((low - nominal) / step) * step, high + 1e-9, step)
        ends = [end for end in (low, high) if np.abs(alongs - end).min(initial=step) > 0.5 * step]
        alongs = np.concatenate([alongs, ends])
    tip = float(robot.patches[patch].polygon[:, 0].max())
    for flip in (False, True):
        if fixed is not None and fixed.flip is not None and fixed.flip != flip:
            continue
        chosen = fixed is not None and fixed.flip is not None
        if not chosen and not _natural(bar_rotation(bar, 0.0, flip)[:, 1], guide, bar, offset):
            continue
        for along in alongs:
            spec: dict = {"patch": patch, "surface": bar.name, "along": round(float(along), 4), "flip": flip}
            if kind == "surface":
                tread = min(TREAD * robot.scale.leg, tip) if footlike else 0.0
                spec |= {"offset": round(tread, 4), "angle": 0.0}
                freedom = replace(rung, offset=min(rung.offset, tip if footlike else INNER * tip))
            else:
                spec |= {"angle": 0.0}
                freedom = Freedom(along=grid / 2, angle=np.inf)
            if fixed is not None:
                spec |= dict(fixed.given) | fixed.options
                freedom = Freedom(**{n: w for n, w in vars(freedom).items() if w > 0 and n not in fixed.given})
            elif kind != robot.patches[patch].kind:
                spec |= {"kind": kind}
            put(spec, bar.ends[0] + spec["along"] * bar.direction, freedom, fixed is not None)


def _natural(y: np.ndarray, guide: GuidePath, bar: Bar, offset: np.ndarray) -> bool:
    """Whether a patch with the y axis ``y`` (3,) is turned as a limb likes it.

    Across the way, y points to the right; along it, backward on the left side and forward on the right one. On a bar
    that is upright it may point up or down.
    """
    s, _ = guide.progress(bar.ends.mean(axis=0)[None], offset)
    _, yaw = guide.at(float(s[0]))
    ahead = y[0] * np.cos(yaw) + y[1] * np.sin(yaw)
    left = y[1] * np.cos(yaw) - y[0] * np.sin(yaw)
    if np.hypot(ahead, left) < UPRIGHT:
        return True
    if abs(left) >= abs(ahead):
        return bool(left < 0.0)
    return bool((ahead < 0.0) == (offset[1] > 0.0))


def _foot_like(robot: Robot, patch: str) -> bool:
    """Whether a patch belongs to a limb that the robot stands on: one that reaches down, not around."""
    return robot.patches[patch].limb in {robot.patches[foot].limb for foot in robot.feet}


def _yaw(surface: Surface, heading: float, first: float, near: np.ndarray, steep: bool) -> float:
    """Return the yaw that keeps the patch's heading relative to the guide; on steep surfaces the nearest to now.

    Parameters
    ----------
    heading, first : of the guide, here and at its start.
    """
    if steep:
        R = surface.R.T @ Rotation.from_euler("z", first).as_matrix() @ near
        return float(np.arctan2(R[1, 0] + R[0, 1], R[0, 0] - R[1, 1]))
    ahead = surface.R.T @ np.array([np.cos(heading), np.sin(heading), 0.0])
    return float(np.arctan2(ahead[1], ahead[0])) + _relative(near)


def _relative(R: np.ndarray) -> float:
    """Return the angle from the heading to the x axis of a patch laid flat: ahead, back, or aside where it lies flat.

    A knee's x axis points back along the shank. Patches in the air hang any way; they are not taken for turned aside.
    ``R`` (3, 3) is the rotation of the patch in the heading frame.
    """
    angle = float(np.arctan2(R[1, 0] + R[0, 1], R[0, 0] - R[1, 1]))
    angle = (angle + np.pi) % (2 * np.pi) - np.pi
    if abs(angle) > 0.75 * np.pi:
        return np.pi
    return float(np.copysign(0.5 * np.pi, angle)) if abs(angle) > 0.25 * np.pi and R[2, 2] < -0.99 else 0.0


def _anchor(surface: Surface, guide: GuidePath, offset, known: Sequence[Contact], patch: str) -> np.ndarray:
    """Return local coordinates (2,) that the lattice goes through."""
    for contact in known:
        if contact.patch == patch and contact.support == surface.name and "x" in contact.coordinates:
            return np.array([contact.coordinates["x"], contact.coordinates["y"]])
    s, _ = guide.progress(np.array([surface.corners.mean(axis=0)]), offset)
    p, yaw = guide.at(float(s[0]))
    place = p + rotate_z(yaw, offset)
    return (surface.R.T @ (place - surface.p))[:2]


def _lines(corners: np.ndarray, A, b, axis: int, anchor: float, grid: float, given: float | None) -> np.ndarray:
    """Return the lattice lines across one axis: even steps through ``anchor``, and the outermost that are possible."""
    if given is not None:
        return np.array([given])
    low, high = float(corners.min()), float(corners.max())
    aligned = np.abs(A[:, 1 - axis]) < 1e-9
    for a, limit in zip(A[aligned, axis], b[aligned], strict=True):
        if a > 0:
            high = min(high, limit / a)
        else:
            low = max(low, limit / a)
    if low > high + 1e-9:
        return np.zeros(0)
    first = anchor + np.ceil((low - anchor) / grid - 1e-6) * grid
    lines = np.arange(first, high + 1e-9, grid)
    ends = [v for v in (low, high) if not len(lines) or np.abs(lines - v).min() > 0.25 * grid]
    return np.sort(np.concatenate([lines, ends]))
