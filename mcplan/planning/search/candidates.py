"""Candidate contacts: the places of one patch on every support, sampled once per search.

On a surface they form a lattice in the polygon shrunk by the patch, through the places of goal and start, if they are
on it, with its borders included; on a bar they are at even steps. Coordinates specified by the goal are exact. A
candidate is a specification; it becomes a contact when it is checked.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.errors import InputError
from mcplan.planning.goal.item import Goal
from mcplan.planning.guide.path import GuidePath, poses_along, turns_over
from mcplan.planning.posture.freedom import GRIP_MARGIN_M, POINT_SURROUNDINGS_M, Freedom
from mcplan.robot.pose import rotate_z
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Bar, Environment, Surface
from mcplan.scene.placement import MAX_OVERHANG_M, bar_rotation, make_contact, surface_rotation
from mcplan.scene.polygon import erode, nearest
from mcplan.scene.spec import ContactSpec

MAX_FREE_EXTENT_M2 = 0.01
"""Area of the extent of a patch, for a robot of the size of HRP-2, below which its orientation is free."""

MIN_TREAD_NORMAL_Z = 0.5
"""Smallest vertical component of the normal of a surface on which the guide determines the yaw of a foot."""

MIN_UNLISTED_NORMAL_Z = 0.1
"""Smallest vertical component of the normal of a surface for a foot, if the goal does not list the surface."""

MAX_SIDESTEP_M = 0.02
"""Freedom of a nominal place across the guide: enough for patches to fit together, too little to drift away."""

MIN_BAR_STEP_M = 0.10
"""Smallest spacing of places along a bar."""

TREAD_M, TREAD_FREEDOM = 0.05, Freedom(along=0.03, offset=0.06, angle=np.inf)
"""Initial offset of a bar from the middle of a sole, and the free coordinates there."""

MAX_RUNG_SLOPE, MAX_RAIL_SLOPE = 0.3, 0.6
"""Largest vertical component of the direction of a bar for a sole (rung), and for a palm (rail)."""

MIN_HORIZONTAL_PART = 0.1
"""A bar with a smaller horizontal component of its direction is neither along nor across the guide."""

OTHER_TURNS_RAD = (0.5 * np.pi, -0.5 * np.pi, np.pi)
"""Other yaw angles of a patch on a support of the goal, if it does not fit in the guide's heading."""

PALM_SHARE = 0.4
"""Largest offset of a bar from the middle of a palm, as a share of its half-length: at the rim it slips off."""

INSET_M = 1e-4
"""Inset from borders, for places rounded to four digits."""

MAX_HEIGHT_M = 0.05
"""A nominal place within this distance counts as on the surface."""


@dataclass(eq=False)
class Candidates:
    """The candidates of one patch.

    Attributes
    ----------
    specs : data of the contact as in a file, one per candidate.
    place : (k, 3) patch origins in the world, m.
    s, aside : (k,) progress on the guide and distance from it, m.
    goal : (k,) whether the candidate meets the goal.
    freedom : coordinates that the posture generator may choose, one per candidate.
    rolled : progress of contacts that rolling adds later; they have ``s = inf``, so that they are in no window.
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
        """Return candidate ``i`` as a contact, or None if the patch does not fit."""
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

        In the middle of a tread a link that is longer than its sole may collide; a little aside it does not.
        """
        spec = self.specs[i]
        if "x" not in spec or "y" not in spec or distance > self.robot.scale.leg * MAX_SIDESTEP_M:
            return
        for axis in ("x", "y"):
            for step in (-distance, distance):
                try:
                    yield make_contact(self.robot, self.environment, spec | {axis: spec[axis] + step})
                except InputError:
                    continue

    def add(self, contact: Contact, s: float, aside: float, hit: bool) -> int:
        """Append a contact outside the lattice, and return its index."""
        self.specs.append(contact.to_data())
        self.place = np.vstack([self.place, contact.p])
        self.s, self.aside = np.append(self.s, np.inf), np.append(self.aside, aside)
        self.goal = np.append(self.goal, hit)
        self.freedom.append(None)
        self._contacts[len(self.specs) - 1] = contact
        self.rolled[len(self.specs) - 1] = s
        return len(self.specs) - 1

    def progress(self, i: int) -> float:
        """Return the progress of candidate ``i`` on the guide (m)."""
        return float(self.rolled.get(i, self.s[i]))


def has_free_orientation(robot: Robot, patch: str) -> bool:
    """Whether the orientation of a patch is free: a small patch that is not a foot."""
    polygon = robot.patches[patch].polygon
    small = float(np.ptp(polygon, axis=0).prod()) < MAX_FREE_EXTENT_M2 * robot.scale.leg**2
    return len(polygon) < 3 or (small and patch not in robot.feet)


class Sample(NamedTuple):
    """A sampled candidate: specification, place (3,), free coordinates, and whether it is on a goal support."""

    spec: dict
    place: np.ndarray
    freedom: Freedom
    hit: bool


@dataclass(frozen=True, eq=False)
class Lattice:
    """Parameters of the sampling of one patch.

    Attributes
    ----------
    guide : path of the base; ``offset`` (3,) nominal place of the patch in its heading frame.
    near : (3, 3) rotation of the patch at the start in the heading frame of the base.
    grid : m, between candidates.
    known : contacts of the start: the lattice goes through their places.
    movable : whether the posture generator may move a candidate within its cell.
    shift : (2,) shift, as a share of the spacing.
    """

    robot: Robot
    patch: str
    guide: GuidePath
    offset: np.ndarray
    near: np.ndarray
    grid: float
    known: Sequence[Contact] = ()
    movable: bool = False
    shift: np.ndarray = field(default_factory=lambda: np.zeros(2))

    @property
    def size(self) -> float:
        """Size of the robot, 1 for HRP-2."""
        return self.robot.scale.leg

    @property
    def foot_like(self) -> bool:
        """Whether the patch belongs to a limb that the robot stands on."""
        limbs = self.robot.patches
        return limbs[self.patch].limb in {limbs[foot].limb for foot in self.robot.feet}

    def pose_at(self, place: np.ndarray) -> tuple[np.ndarray, float]:
        """Return base (3,) and heading at the progress of a place (3,) of the patch."""
        s, _ = self.guide.progress(place[None], self.offset)
        return self.guide.at(float(s[0]))

    def nominal(self, base: np.ndarray, yaw: float) -> np.ndarray:
        """Return the nominal place (3,) of the patch for a pose of the base."""
        return base + rotate_z(yaw, self.offset)

    def yaw_freedom(self, polygon: np.ndarray, edge: float = 0.3) -> float:
        """Return the freedom of the yaw (rad): unbounded for a hand, ``edge`` for feet and edges."""
        return np.inf if not self.foot_like and len(polygon) > 2 else edge

    def yaw(self, surface: Surface, heading: float) -> float:
        """Return the yaw that keeps the patch's heading relative to the guide; on steep surfaces the current one."""
        if surface.normal[2] < MIN_TREAD_NORMAL_Z:
            R = surface.R.T @ Rotation.from_euler("z", self.guide.yaw[0]).as_matrix() @ self.near
            return float(np.arctan2(R[1, 0] + R[0, 1], R[0, 0] - R[1, 1]))
        ahead = surface.R.T @ np.array([np.cos(heading), np.sin(heading), 0.0])
        return float(np.arctan2(ahead[1], ahead[0])) + _relative(self.near)

    def anchor(self, surface: Surface) -> np.ndarray:
        """Return local coordinates (2,) that the lattice goes through."""
        for contact in self.known:
            if contact.patch == self.patch and contact.support == surface.name and "x" in contact.coordinates:
                return np.array([contact.coordinates["x"], contact.coordinates["y"]])
        place = self.nominal(*self.pose_at(surface.corners.mean(axis=0)))
        return (surface.R.T @ (place - surface.p))[:2]


def sample_candidates(lattice: Lattice, environment: Environment, goal: Goal) -> Candidates:
    """Return the candidates of a patch on all supports of an environment."""
    robot, patch = lattice.robot, lattice.patch
    samples: list[Sample] = []
    wanted = goal.specs.get(patch)
    for support in environment.supports.values():
        mine = wanted if wanted is not None and wanted.surface == support.name else None
        for fixed in (mine, None) if mine is not None and mine.given else (mine,):
            kind = (fixed.kind if fixed is not None else None) or robot.patches[patch].kind
            if isinstance(support, Bar):
                samples += _on_bar(lattice, support, kind, fixed)
            elif kind != "grasp":
                samples += _on_surface(lattice, support, kind, fixed)
    place = np.array([sample.place for sample in samples]).reshape(-1, 3)
    s, aside = lattice.guide.progress(place, lattice.offset) if len(place) else (np.zeros(0), np.zeros(0))
    specs, hits = [sample.spec for sample in samples], np.array([sample.hit for sample in samples], bool)
    freedoms = [sample.freedom if sample.freedom.names else None for sample in samples]
    return Candidates(robot, environment, patch, specs, place, s, aside, hits, freedoms)


def _on_surface(lattice: Lattice, surface: Surface, kind: str, fixed: ContactSpec | None) -> Iterator[Sample]:
    """Yield places on a surface; ``fixed`` is the spec of the goal for this surface, if any."""
    patch, guide, grid, hit = lattice.patch, lattice.guide, lattice.grid, fixed is not None
    if fixed is None and lattice.foot_like and surface.normal[2] <= MIN_UNLISTED_NORMAL_Z:
        return
    _, heading = guide.at(guide.length) if hit else lattice.pose_at(surface.corners.mean(axis=0))
    polygon = lattice.robot.patches[patch].polygon if kind == "surface" else lattice.size * POINT_SURROUNDINGS_M
    if fixed is not None and (fixed.overhang or (kind != "surface" and fixed.given)):  # its origin is on the surface
        polygon = np.zeros((1, 2))
    widths = {"x": grid / 2, "y": grid / 2, "yaw": lattice.yaw_freedom(polygon)} if lattice.movable else {}
    freedom = Freedom(**{name: w for name, w in widths.items() if fixed is None or name not in fixed.given})

    # where the guide turns over the surface: along the track of the patch
    level = surface.normal[2] >= MIN_TREAD_NORMAL_Z
    if level and (fixed is None or not fixed.given) and turns_over(guide, surface, lattice.offset):
        along = list(poses_along(guide, surface, polygon, lattice.offset, _relative(lattice.near), grid))
        for u, v, yaw in along:
            spec = {"patch": patch, "surface": surface.name, "x": u, "y": v, "yaw": yaw}
            spec |= fixed.options if fixed is not None else {}
            yield Sample(spec, surface.p + surface.R[:, :2] @ np.array([u, v]), freedom, hit)
        if along or fixed is None:
            return
    if fixed is None and lattice.movable:
        yield from _in_nominal_places(lattice, surface, polygon)

    # on a lattice in the direction ahead; on a support of the goal in others too, if nothing fits ahead
    ahead = lattice.yaw(surface, heading)
    yaws = [ahead] if fixed is None else [ahead, *np.add(ahead, OTHER_TURNS_RAD)] if fixed.yaw is None else [fixed.yaw]
    given = (None, None) if fixed is None else (fixed.x, fixed.y)
    for number, yaw in enumerate(yaws):
        A, b = erode(surface.polygon, polygon @ surface_rotation(yaw)[:2, :2].T)
        anchor = lattice.anchor(surface) + grid * lattice.shift
        lines = [_lines(surface.polygon[:, i], A, b, i, anchor[i], grid, given[i]) for i in (0, 1)]
        x, y = (axis.ravel() for axis in np.meshgrid(*lines, indexing="ij"))
        inside = np.all(A @ np.array([x, y]) <= b[:, None] + (1e-9 if None in given else MAX_OVERHANG_M), axis=0)
        free = given == (None, None)
        if free and not inside.any() and (place := nearest(anchor, A, b - INSET_M)) is not None:
            x, y, inside = place[:1], place[1:], np.ones(1, bool)  # between borders that are not parallel to the axes
        for u, v in zip(x[inside], y[inside], strict=True):
            spec = {"patch": patch, "surface": surface.name}
            spec |= {"x": round(float(u), 4), "y": round(float(v), 4), "yaw": round(float(yaw), 4)}
            if fixed is not None:
                spec |= fixed.given | fixed.options
            place = surface.p + surface.R[:, :2] @ np.array([spec["x"], spec["y"]])
            yield Sample(spec, place, freedom, hit)
        if number == 0 and inside.any():
            return


def _in_nominal_places(lattice: Lattice, surface: Surface, polygon: np.ndarray) -> Iterator[Sample]:
    """Yield nominal places along the guide: contacts of one limb fit together only close to them."""
    grid = lattice.grid
    for s in np.arange(0.0, lattice.guide.length + 0.5 * grid, grid):
        base, heading = lattice.guide.at(float(s))
        x, y, height = surface.R.T @ (lattice.nominal(base, heading) - surface.p)
        yaw = lattice.yaw(surface, heading)
        A, b = erode(surface.polygon, polygon @ surface_rotation(yaw)[:2, :2].T)
        if abs(height) < lattice.size * MAX_HEIGHT_M and np.all(A @ np.array([x, y]) <= b):
            c, n = np.cos(heading), np.sin(heading)
            along = np.abs(surface.R[:, :2].T @ [c, n, 0.0])
            across = np.abs(surface.R[:, :2].T @ [-n, c, 0.0])
            x_room, y_room = along * grid / 2 + across * lattice.size * MAX_SIDESTEP_M
            freedom = Freedom(x=x_room, y=y_room, yaw=lattice.yaw_freedom(polygon, 0.1))
            spec = {"patch": lattice.patch, "surface": surface.name, "x": round(float(x), 4), "y": round(float(y), 4)}
            place = surface.p + surface.R[:, :2] @ np.array([x, y])
            yield Sample(spec | {"yaw": round(float(yaw), 4)}, place, freedom, False)


def _on_bar(lattice: Lattice, bar: Bar, kind: str, fixed: ContactSpec | None) -> Iterator[Sample]:
    """Yield places along a bar, with the natural orientations of the limb."""
    robot, patch, foot_like = lattice.robot, lattice.robot.patches[lattice.patch], lattice.foot_like
    if kind == "ball" or (kind == "surface" and len(patch.polygon) < 3):
        return
    slope = MAX_RUNG_SLOPE if foot_like else MAX_RAIL_SLOPE
    if fixed is None and kind == "surface" and abs(bar.direction[2]) > slope:
        return
    half = float(np.abs(patch.polygon[:, 1]).max()) if kind == "surface" else robot.scale.arm * GRIP_MARGIN_M
    low, high = half, bar.length - half
    if low > high:
        if fixed is None or not fixed.overhang:
            return
        low, high = 0.0, bar.length
    if fixed is not None and fixed.along is not None:
        alongs = np.array([fixed.along])
    else:
        step = max(MIN_BAR_STEP_M * lattice.size, lattice.grid)
        place = lattice.nominal(*lattice.pose_at(bar.ends.mean(axis=0)))
        nominal = float((place - bar.ends[0]) @ bar.direction) + step * lattice.shift[0]
        alongs = np.arange(nominal + np.ceil((low - nominal) / step) * step, high + 1e-9, step)
        ends = [end for end in (low, high) if np.abs(alongs - end).min(initial=step) > 0.5 * step]
        alongs = np.concatenate([alongs, ends])

    if kind == "surface":
        tip, rung = float(patch.polygon[:, 0].max()), TREAD_FREEDOM.times(lattice.size)
        tread = min(TREAD_M * lattice.size, tip) if foot_like else 0.0
        rest = {"offset": round(tread, 4), "angle": 0.0}
        freedom = replace(rung, offset=min(rung.offset, tip if foot_like else PALM_SHARE * tip))
    else:
        rest, freedom = {"angle": 0.0}, Freedom(along=lattice.grid / 2, angle=np.inf)
    if fixed is not None:
        freedom = Freedom(**{n: w for n, w in vars(freedom).items() if w > 0 and n not in fixed.given})
    for flip in (False, True):
        if fixed is not None and fixed.flip is not None:
            if fixed.flip != flip:
                continue
        elif not _natural(bar_rotation(bar, 0.0, flip)[:, 1], lattice.guide, bar, lattice.offset):
            continue
        for along in alongs:
            spec: dict = {"patch": lattice.patch, "surface": bar.name, "along": round(float(along), 4), "flip": flip}
            spec |= rest
            if fixed is not None:
                spec |= fixed.given | fixed.options
            yield Sample(spec, bar.ends[0] + spec["along"] * bar.direction, freedom, fixed is not None)


def _natural(y: np.ndarray, guide: GuidePath, bar: Bar, offset: np.ndarray) -> bool:
    """Whether a patch with the y axis ``y`` (3,) has an orientation that is natural for its limb.

    Across the guide, y points to the right; along it, backward on the left side and forward on the right one. On a bar
    that is upright it may point up or down.
    """
    s, _ = guide.progress(bar.ends.mean(axis=0)[None], offset)
    _, yaw = guide.at(float(s[0]))
    ahead = y[0] * np.cos(yaw) + y[1] * np.sin(yaw)
    left = y[1] * np.cos(yaw) - y[0] * np.sin(yaw)
    if np.hypot(ahead, left) < MIN_HORIZONTAL_PART:
        return True
    if abs(left) >= abs(ahead):
        return bool(left < 0.0)
    return bool((ahead < 0.0) == (offset[1] > 0.0))


def _relative(R: np.ndarray) -> float:
    """Return the angle from the heading to the x axis of a patch laid flat: 0, pi, or for a flat patch +-pi/2.

    A knee's x axis points back along the shank. Patches in the air do not count as turned aside.
    ``R`` (3, 3) is the rotation of the patch in the heading frame.
    """
    angle = float(np.arctan2(R[1, 0] + R[0, 1], R[0, 0] - R[1, 1]))
    angle = (angle + np.pi) % (2 * np.pi) - np.pi
    if abs(angle) > 0.75 * np.pi:
        return np.pi
    return float(np.copysign(0.5 * np.pi, angle)) if abs(angle) > 0.25 * np.pi and R[2, 2] < -0.99 else 0.0


def _lines(corners: np.ndarray, A, b, axis: int, anchor: float, grid: float, given: float | None) -> np.ndarray:
    """Return the lattice lines across one axis: even steps through ``anchor``, and the outermost possible lines."""
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
