"""Candidate contacts of one patch on every support, sampled once per search.

On a surface they form a lattice in the polygon shrunk by the patch. The lattice includes the borders, and the contacts
of goal and start on this surface. On a bar candidates are evenly spaced. Coordinates specified by the goal are exact. A
candidate is a specification; it becomes a contact when it is checked.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.errors import InputError
from mcplan.planning.goal.item import Goal
from mcplan.planning.guide.path import GuidePath, poses_along, turns_over_surface
from mcplan.planning.posture.freedom import GRIP_MARGIN_M, POINT_SURROUNDINGS_M, Freedom
from mcplan.robot.pose import rotate_z
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Bar, Environment, Surface
from mcplan.scene.placement import MAX_OVERHANG_M, bar_rotation, make_contact, surface_rotation
from mcplan.scene.polygon import erode, nearest
from mcplan.scene.spec import ContactSpec

MAX_FREE_ORIENTATION_AREA_M2 = 0.01
"""A patch whose bounding rectangle has a smaller area than this has a free orientation (for HRP-2's size)."""

MIN_TREAD_NORMAL_Z = 0.5
"""Smallest vertical component of the normal of a surface on which the guide determines the yaw of a foot."""

MIN_UNLISTED_NORMAL_Z = 0.1
"""Smallest vertical component of the normal of a surface for a foot, if the goal does not list the surface."""

MAX_SIDESTEP_M = 0.02
"""Freedom of a nominal position across the guide: enough for patches to fit together, too little to drift away."""

MIN_BAR_STEP_M = 0.10
"""Smallest spacing of candidates along a bar."""

SOLE_BAR_OFFSET_M, SOLE_BAR_FREEDOM = 0.05, Freedom(along=0.03, offset=0.06, angle=np.inf)
"""Initial offset of a bar from the middle of a sole, and the free coordinates there."""

MAX_RUNG_SLOPE, MAX_RAIL_SLOPE = 0.3, 0.6
"""Largest vertical component of the direction of a bar for a sole (rung), and for a palm (rail)."""

MIN_HORIZONTAL_COMPONENT = 0.1
"""A bar with a smaller horizontal component of its direction is neither along nor across the guide."""

OTHER_YAWS_RAD = (0.5 * np.pi, -0.5 * np.pi, np.pi)
"""Other yaw angles of a patch on a support of the goal, if it does not fit in the guide's heading."""

MAX_PALM_OFFSET_SHARE = 0.4
"""Largest offset of a bar from the middle of a palm, as a share of its half-length: at the rim it slips off."""

BORDER_INSET_M = 1e-4
"""Inset from borders, since coordinates are rounded to four digits."""

MAX_HEIGHT_OFFSET_M = 0.05
"""A nominal position within this distance from the plane of a surface counts as on the surface."""


@dataclass(eq=False)
class Candidates:
    """The candidates of one patch.

    Attributes
    ----------
    specs : data of each candidate, as a contact in a file.
    positions : (k, 3) patch origins in the world (m).
    s, guide_distance : (k,) progress on the guide and distance from it (m).
    goal : (k,) whether each candidate meets the goal.
    freedom : coordinates of each candidate that the posture generator may choose.
    rolled : progress of contacts added by rolling, by index. Their ``s`` is inf, so that they are in no search window.
    """

    robot: Robot
    environment: Environment
    patch: str
    specs: list[dict]
    positions: np.ndarray
    s: np.ndarray
    guide_distance: np.ndarray
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
        """Return the progress of the goal candidate nearest to the end of a guide of this length (m)."""
        s = self.s[self.goal]
        return float(s[np.argmin(np.abs(s - length))])

    def nearby_contacts(self, i: int, distance: float) -> Iterator[Contact]:
        """Yield contacts a short distance (m) from candidate ``i`` on its surface, where the patch fits.

        In the middle of a tread a link longer than its sole may collide; a few millimetres to a side it does not.
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

    def add(self, contact: Contact, s: float, guide_distance: float, meets_goal: bool) -> int:
        """Append a contact outside the lattice, and return its index."""
        self.specs.append(contact.to_data())
        self.positions = np.vstack([self.positions, contact.p])
        self.s, self.guide_distance = np.append(self.s, np.inf), np.append(self.guide_distance, guide_distance)
        self.goal = np.append(self.goal, meets_goal)
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
    small = float(np.ptp(polygon, axis=0).prod()) < MAX_FREE_ORIENTATION_AREA_M2 * robot.scale.leg**2
    return len(polygon) < 3 or (small and patch not in robot.feet)


class Sample(NamedTuple):
    """A sampled candidate: specification, position (3,), free coordinates, and whether it is on a goal support."""

    spec: dict
    position: np.ndarray
    freedom: Freedom
    on_goal_support: bool


@dataclass(frozen=True, eq=False)
class Lattice:
    """Parameters of the sampling of one patch.

    Attributes
    ----------
    guide : path of the base.
    offset : (3,) nominal position of the patch in the heading frame of the base.
    R_start : (3, 3) rotation of the patch at the start in the heading frame of the base.
    grid : spacing of the candidates (m).
    start_contacts : contacts of the start; the lattice passes through them.
    movable : whether the posture generator may move a candidate within its cell.
    shift : (2,) shift of the lattice, as a share of the spacing.
    """

    robot: Robot
    patch: str
    guide: GuidePath
    offset: np.ndarray
    R_start: np.ndarray
    grid: float
    start_contacts: Sequence[Contact] = ()
    movable: bool = False
    shift: np.ndarray = field(default_factory=lambda: np.zeros(2))

    @property
    def size(self) -> float:
        """Size of the robot, 1 for HRP-2."""
        return self.robot.scale.leg

    @property
    def is_foot_like(self) -> bool:
        """Whether the patch belongs to a limb that the robot stands on."""
        limbs = self.robot.patches
        return limbs[self.patch].limb in {limbs[foot].limb for foot in self.robot.feet}

    def pose_at(self, position: np.ndarray) -> tuple[np.ndarray, float]:
        """Return base position (3,) and heading at the progress of a position (3,) of the patch."""
        s, _ = self.guide.progress(position[None], self.offset)
        return self.guide.at(float(s[0]))

    def nominal(self, base: np.ndarray, yaw: float) -> np.ndarray:
        """Return the nominal position (3,) of the patch for a pose of the base."""
        return base + rotate_z(yaw, self.offset)

    def yaw_freedom(self, polygon: np.ndarray, edge: float = 0.3) -> float:
        """Return the half-width of the yaw's range (rad): unbounded for a hand, ``edge`` for feet and edges."""
        return np.inf if not self.is_foot_like and len(polygon) > 2 else edge

    def yaw(self, surface: Surface, heading: float) -> float:
        """Return the yaw that keeps the patch's heading relative to the guide; on steep surfaces the current one."""
        if surface.normal[2] < MIN_TREAD_NORMAL_Z:
            R = surface.R.T @ Rotation.from_euler("z", self.guide.yaw[0]).as_matrix() @ self.R_start
            return float(np.arctan2(R[1, 0] + R[0, 1], R[0, 0] - R[1, 1]))
        ahead = surface.R.T @ np.array([np.cos(heading), np.sin(heading), 0.0])
        return float(np.arctan2(ahead[1], ahead[0])) + _yaw_offset(self.R_start)

    def anchor(self, surface: Surface) -> np.ndarray:
        """Return local coordinates (2,) of a point of the lattice."""
        for contact in self.start_contacts:
            if contact.patch == self.patch and contact.support == surface.name and "x" in contact.coordinates:
                return np.array([contact.coordinates["x"], contact.coordinates["y"]])
        position = self.nominal(*self.pose_at(surface.corners.mean(axis=0)))
        return (surface.R.T @ (position - surface.p))[:2]


def sample_candidates(lattice: Lattice, environment: Environment, goal: Goal) -> Candidates:
    """Return the candidates of a patch on all supports of an environment."""
    robot, patch = lattice.robot, lattice.patch
    samples: list[Sample] = []
    goal_spec = goal.specs.get(patch)
    for support in environment.supports.values():
        fixed_spec = goal_spec if goal_spec is not None and goal_spec.surface == support.name else None
        for fixed in (fixed_spec, None) if fixed_spec is not None and fixed_spec.given else (fixed_spec,):
            kind = (fixed.kind if fixed is not None else None) or robot.patches[patch].kind
            if isinstance(support, Bar):
                samples += _on_bar(lattice, support, kind, fixed)
            elif kind != "grasp":
                samples += _on_surface(lattice, support, kind, fixed)
    positions = np.array([sample.position for sample in samples]).reshape(-1, 3)
    s, d = lattice.guide.progress(positions, lattice.offset) if len(positions) else (np.zeros(0), np.zeros(0))
    specs, hits = [sample.spec for sample in samples], np.array([sample.on_goal_support for sample in samples], bool)
    freedoms = [sample.freedom if sample.freedom.names else None for sample in samples]
    return Candidates(robot, environment, patch, specs, positions, s, d, hits, freedoms)


def _on_surface(lattice: Lattice, surface: Surface, kind: str, fixed: ContactSpec | None) -> Iterator[Sample]:
    """Yield candidates on a surface; ``fixed`` is the spec of the goal for this surface, if any."""
    patch, guide, grid, on_goal_support = lattice.patch, lattice.guide, lattice.grid, fixed is not None
    if fixed is None and lattice.is_foot_like and surface.normal[2] <= MIN_UNLISTED_NORMAL_Z:
        return
    _, heading = guide.at(guide.length) if on_goal_support else lattice.pose_at(surface.corners.mean(axis=0))
    polygon = lattice.robot.patches[patch].polygon if kind == "surface" else lattice.size * POINT_SURROUNDINGS_M
    # in these cases only the origin of the patch has to be on the surface
    if fixed is not None and (fixed.overhang or (kind != "surface" and fixed.given)):
        polygon = np.zeros((1, 2))
    widths = {"x": grid / 2, "y": grid / 2, "yaw": lattice.yaw_freedom(polygon)} if lattice.movable else {}
    freedom = Freedom(**{name: w for name, w in widths.items() if fixed is None or name not in fixed.given})

    # if the guide turns over the surface: along the track of the patch
    level = surface.normal[2] >= MIN_TREAD_NORMAL_Z
    if level and (fixed is None or not fixed.given) and turns_over_surface(guide, surface, lattice.offset):
        poses = list(poses_along(guide, surface, polygon, lattice.offset, _yaw_offset(lattice.R_start), grid))
        for u, v, yaw in poses:
            spec = {"patch": patch, "surface": surface.name, "x": u, "y": v, "yaw": yaw}
            spec |= fixed.options if fixed is not None else {}
            yield Sample(spec, surface.p + surface.R[:, :2] @ np.array([u, v]), freedom, on_goal_support)
        if poses or fixed is None:
            return
    if fixed is None and lattice.movable:
        yield from _at_nominal_positions(lattice, surface, polygon)

    # on a lattice aligned with the heading; on a support of the goal also with other yaw angles, if nothing fits
    ahead = lattice.yaw(surface, heading)
    yaws = [ahead] if fixed is None else [ahead, *np.add(ahead, OTHER_YAWS_RAD)] if fixed.yaw is None else [fixed.yaw]
    specified = (None, None) if fixed is None else (fixed.x, fixed.y)
    for index, yaw in enumerate(yaws):
        A, b = erode(surface.polygon, polygon @ surface_rotation(yaw)[:2, :2].T)
        anchor = lattice.anchor(surface) + grid * lattice.shift
        axes = [_lines(surface.polygon[:, i], A, b, i, anchor[i], grid, specified[i]) for i in (0, 1)]
        x, y = (axis.ravel() for axis in np.meshgrid(*axes, indexing="ij"))
        inside = np.all(A @ np.array([x, y]) <= b[:, None] + (1e-9 if None in specified else MAX_OVERHANG_M), axis=0)
        unspecified = specified == (None, None)
        if unspecified and not inside.any() and (position := nearest(anchor, A, b - BORDER_INSET_M)) is not None:
            x, y, inside = position[:1], position[1:], np.ones(1, bool)  # no lattice point is inside slanted borders
        for u, v in zip(x[inside], y[inside], strict=True):
            spec = {"patch": patch, "surface": surface.name}
            spec |= {"x": round(float(u), 4), "y": round(float(v), 4), "yaw": round(float(yaw), 4)}
            if fixed is not None:
                spec |= fixed.given | fixed.options
            position = surface.p + surface.R[:, :2] @ np.array([spec["x"], spec["y"]])
            yield Sample(spec, position, freedom, on_goal_support)
        if index == 0 and inside.any():
            return


def _at_nominal_positions(lattice: Lattice, surface: Surface, polygon: np.ndarray) -> Iterator[Sample]:
    """Yield nominal positions along the guide: contacts of one limb fit together only close to them."""
    grid = lattice.grid
    for s in np.arange(0.0, lattice.guide.length + 0.5 * grid, grid):
        base, heading = lattice.guide.at(float(s))
        x, y, height = surface.R.T @ (lattice.nominal(base, heading) - surface.p)
        yaw = lattice.yaw(surface, heading)
        A, b = erode(surface.polygon, polygon @ surface_rotation(yaw)[:2, :2].T)
        if abs(height) < lattice.size * MAX_HEIGHT_OFFSET_M and np.all(A @ np.array([x, y]) <= b):
            c, n = np.cos(heading), np.sin(heading)
            along_share = np.abs(surface.R[:, :2].T @ [c, n, 0.0])
            across_share = np.abs(surface.R[:, :2].T @ [-n, c, 0.0])
            x_room, y_room = along_share * grid / 2 + across_share * lattice.size * MAX_SIDESTEP_M
            freedom = Freedom(x=x_room, y=y_room, yaw=lattice.yaw_freedom(polygon, 0.1))
            spec = {"patch": lattice.patch, "surface": surface.name, "x": round(float(x), 4), "y": round(float(y), 4)}
            position = surface.p + surface.R[:, :2] @ np.array([x, y])
            yield Sample(spec | {"yaw": round(float(yaw), 4)}, position, freedom, False)


def _on_bar(lattice: Lattice, bar: Bar, kind: str, fixed: ContactSpec | None) -> Iterator[Sample]:
    """Yield candidates along a bar, with the natural orientations of the limb."""
    robot, patch, is_foot_like = lattice.robot, lattice.robot.patches[lattice.patch], lattice.is_foot_like
    if kind == "ball" or (kind == "surface" and len(patch.polygon) < 3):
        return
    slope = MAX_RUNG_SLOPE if is_foot_like else MAX_RAIL_SLOPE
    if fixed is None and kind == "surface" and abs(bar.direction[2]) > slope:
        return
    end_margin = float(np.abs(patch.polygon[:, 1]).max()) if kind == "surface" else robot.scale.arm * GRIP_MARGIN_M
    low, high = end_margin, bar.length - end_margin
    if low > high:
        if fixed is None or not fixed.overhang:
            return
        low, high = 0.0, bar.length
    if fixed is not None and fixed.along is not None:
        alongs = np.array([fixed.along])
    else:
        step = max(MIN_BAR_STEP_M * lattice.size, lattice.grid)
        nominal_position = lattice.nominal(*lattice.pose_at(bar.ends.mean(axis=0)))
        nominal = float((nominal_position - bar.ends[0]) @ bar.direction) + step * lattice.shift[0]
        alongs = np.arange(nominal + np.ceil((low - nominal) / step) * step, high + 1e-9, step)
        ends = [end for end in (low, high) if np.abs(alongs - end).min(initial=step) > 0.5 * step]
        alongs = np.concatenate([alongs, ends])

    if kind == "surface":
        tip, bar_freedom = float(patch.polygon[:, 0].max()), SOLE_BAR_FREEDOM.times(lattice.size)
        bar_offset = min(SOLE_BAR_OFFSET_M * lattice.size, tip) if is_foot_like else 0.0
        offsets = {"offset": round(bar_offset, 4), "angle": 0.0}
        freedom = replace(
            bar_freedom, offset=min(bar_freedom.offset, tip if is_foot_like else MAX_PALM_OFFSET_SHARE * tip)
        )
    else:
        offsets, freedom = {"angle": 0.0}, Freedom(along=lattice.grid / 2, angle=np.inf)
    if fixed is not None:
        freedom = Freedom(**{n: w for n, w in vars(freedom).items() if w > 0 and n not in fixed.given})
    for flip in (False, True):
        if fixed is not None and fixed.flip is not None:
            if fixed.flip != flip:
                continue
        elif not _is_natural_orientation(bar_rotation(bar, 0.0, flip)[:, 1], lattice.guide, bar, lattice.offset):
            continue
        for along in alongs:
            spec: dict = {"patch": lattice.patch, "surface": bar.name, "along": round(float(along), 4), "flip": flip}
            spec |= offsets
            if fixed is not None:
                spec |= fixed.given | fixed.options
            yield Sample(spec, bar.ends[0] + spec["along"] * bar.direction, freedom, fixed is not None)


def _is_natural_orientation(y: np.ndarray, guide: GuidePath, bar: Bar, offset: np.ndarray) -> bool:
    """Whether a patch with the y axis ``y`` (3,) has an orientation that is natural for its limb.

    On a bar across the guide, y points to the right; on one along it, backward on the left side and forward on the
    right side. On an upright bar it may point up or down. ``offset`` (3,) is the nominal position of the patch.
    """
    s, _ = guide.progress(bar.ends.mean(axis=0)[None], offset)
    _, yaw = guide.at(float(s[0]))
    longitudinal = y[0] * np.cos(yaw) + y[1] * np.sin(yaw)
    lateral = y[1] * np.cos(yaw) - y[0] * np.sin(yaw)
    if np.hypot(longitudinal, lateral) < MIN_HORIZONTAL_COMPONENT:
        return True
    if abs(lateral) >= abs(longitudinal):
        return bool(lateral < 0.0)
    return bool((longitudinal < 0.0) == (offset[1] > 0.0))


def _yaw_offset(R: np.ndarray) -> float:
    """Return the yaw from the heading to the x axis of a patch when it lies flat: 0 or pi, or +-pi/2 if it is flat now.

    A knee's x axis points back along the shank. ``R`` (3, 3) is the rotation of the patch in the heading frame.
    """
    angle = float(np.arctan2(R[1, 0] + R[0, 1], R[0, 0] - R[1, 1]))
    angle = (angle + np.pi) % (2 * np.pi) - np.pi
    if abs(angle) > 0.75 * np.pi:
        return np.pi
    return float(np.copysign(0.5 * np.pi, angle)) if abs(angle) > 0.25 * np.pi and R[2, 2] < -0.99 else 0.0


def _lines(corners: np.ndarray, A, b, axis: int, anchor: float, grid: float, given: float | None) -> np.ndarray:
    """Return the coordinates of the lattice lines along one axis: even steps through ``anchor``, and both borders.

    Parameters
    ----------
    corners : coordinates of the polygon's corners along the axis.
    A, b : half-planes ``A x <= b`` of the shrunk polygon.
    axis : 0 or 1.
    given : specified coordinate, if any: the only line.
    """
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
