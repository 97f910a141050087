"""Free coordinates of contacts: rows and bounds (cells) for the posture search."""

from dataclasses import dataclass, replace

import numpy as np

from mcplan.core.posture.rows import (
    ACROSS_BAR,
    ALONG_BAR,
    ANGLE,
    EDGE_DIRECTION,
    EDGE_ROWS,
    LINE_ROWS,
    POINT_HEIGHT,
    POSE_ROWS,
    POSITION_ROWS,
    RELATIVE_POSE,
)
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact, constrained_directions
from mcplan.scene.environment import Bar, Environment, Surface
from mcplan.scene.placement import make_contact, surface_rotation
from mcplan.scene.polygon import erode

DIGITS = 9
"""Decimals (m, rad) of a chosen coordinate: contacts of one limb constrain each other, and allow little rounding."""

GRIP_MARGIN_M = 0.02
"""m: a grasp stays this far from the ends of its bar."""

POINT_SURROUNDINGS_M = 0.01 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1.0]])
"""m: required surroundings of a point on its surface, since it rolls or slips by a little."""

MAX_LEAN_RAD = np.deg2rad(50)
"""Largest lean of the leg of a ball: up to this angle `mcplan robot new` requires the link to be round."""

NEAR_EDGE_RADII = 3.0
"""In radii: edges of the support farther from a ball than it can roll when the leg turns by this angle are ignored."""

UNBOUNDED = 1e3
"""m, rad: stands for an infinite half-width."""


@dataclass(frozen=True)
class Freedom:
    """Half-widths (m, rad; ``inf`` allowed) of the range of a contact's coordinates; 0 fixes a coordinate.

    On a surface ``x, y, yaw`` count, and the patch stays on it. On a bar ``along, angle`` count, and for a flat patch
    ``offset``; a flat patch whose ``offset`` or ``angle`` is free turns about the bar as it likes.
    """

    x: float = 0.0
    y: float = 0.0
    yaw: float = 0.0
    along: float = 0.0
    angle: float = 0.0
    offset: float = 0.0

    def times(self, size: float) -> "Freedom":
        """Return the freedom with lengths scaled by a robot's size; angles stay."""
        return Freedom(size * self.x, size * self.y, self.yaw, size * self.along, self.angle, size * self.offset)

    @property
    def names(self) -> tuple[str, ...]:
        """The coordinates that are free."""
        return tuple(name for name in ("x", "y", "yaw", "along", "angle", "offset") if getattr(self, name) > 0.0)


@dataclass(frozen=True, eq=False)
class FrameRows:
    """Rows of one contact for the kernel, see `core.posture.rows`.

    Attributes
    ----------
    mode : POSE_ROWS, POSITION_ROWS or LINE_ROWS.
    frame : (24,) patch in its body, target.
    body : index of the body.
    select : (e, 6) constrained directions.
    cell : (k, 10) bounds of the others; the owner is set later.
    """

    mode: int
    body: int
    frame: np.ndarray
    select: np.ndarray
    cell: np.ndarray


def contact_rows(robot: Robot, environment: Environment, contact: Contact, freedom: Freedom | None) -> FrameRows:
    """Return the rows of a contact, with the coordinates of ``freedom`` free within their bounds."""
    body, offset = robot.frame(contact.patch)
    target = np.concatenate([contact.R.ravel(), contact.p])
    if contact.radius:
        frame, cell = np.concatenate([offset, target]), _ball_cell(contact, environment, freedom, robot.scale.leg)
        return FrameRows(POSITION_ROWS, body, frame, np.zeros((0, 6)), cell)
    select, cell = contact.selection, np.zeros((0, 10))
    if contact.rolls and len(select) == 5:
        # it could roll, but friction directions would turn with it, and the bar would leave the loaded line
        select = np.eye(6)
    if freedom is not None and freedom.names:
        support = environment.support(contact.support)
        if isinstance(support, Bar) and contact.kind == "surface" and (freedom.offset > 0.0 or freedom.angle > 0.0):
            target = np.concatenate([support.ends[0], support.direction, [support.radius], np.zeros(5)])
            frame = np.concatenate([offset, target])
            return FrameRows(LINE_ROWS, body, frame, np.zeros((3, 6)), _line_cell(robot, contact, support, freedom))
        if isinstance(support, Surface) and contact.kind == "surface" and len(contact.points) == 2:
            u = contact.points[1] - contact.points[0]
            u = u / np.linalg.norm(u)
            select = np.array([[0.0, 0.0, 1.0, 0.0, 0.0, 0.0], np.concatenate([np.zeros(3), u])])
            cell = _edge_cell(contact, support, freedom, u)
            return FrameRows(EDGE_ROWS, body, np.concatenate([offset, target]), select, cell)
        if isinstance(support, Bar):
            free, cell = _bar_cell(contact, support, freedom, robot.scale.arm * GRIP_MARGIN_M)
        else:
            free, cell = _cell(contact, support, freedom, robot.scale.leg)
        taken = _complement(contact.selection)
        select = constrained_directions([*taken, *free])
    mode = POSE_ROWS if select[:, 3:].any() else POSITION_ROWS
    return FrameRows(mode, body, np.concatenate([offset, target]), select, cell)


def resolve_contact(
    robot: Robot, environment: Environment, contact: Contact, freedom: Freedom, near: tuple[np.ndarray, np.ndarray]
) -> Contact:
    """Return the contact fixed at the place nearest the patch pose ``near`` (R, p), its coordinates rounded.

    Raises
    ------
    InputError
        When the rounded place is off the support.
    """
    data = contact.to_data()
    open_ = {name: value for name, value in data.items() if name not in freedom.names}
    place = make_contact(robot, environment, open_, near).coordinates
    rounded = {name: round(float(place[name]), DIGITS) for name in freedom.names if name in place}
    return make_contact(robot, environment, {**data, **rounded})


def _complement(selection: np.ndarray) -> np.ndarray:
    """Return orthonormal rows of the directions that a contact leaves free."""
    if len(selection) == 6:
        return np.zeros((0, 6))
    return np.linalg.svd(selection)[2][len(selection) :]


def cell_row(linear: np.ndarray, angular: np.ndarray, low: float, high: float, kind: int = RELATIVE_POSE) -> np.ndarray:
    """Return a row (10,) of a cell, see `core.posture.rows`; infinite bounds become large ones."""
    return np.concatenate([[0.0, kind], linear, angular, [max(low, -UNBOUNDED), min(high, UNBOUNDED)]])


def _cell(
    contact: Contact, surface: Surface, freedom: Freedom, size: float = 1.0
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the free twists in patch axes, and the rows of the cell on a surface."""
    place = contact.coordinates
    R = surface_rotation(float(place["yaw"]))
    zero = np.zeros(3)
    free, rows = [], []
    for axis, name in enumerate("xy"):
        width = getattr(freedom, name)
        if width > 0.0:
            free.append(np.concatenate([R[axis], zero]))
            rows.append(cell_row(R[axis], zero, -width, width))
    if freedom.yaw > 0.0 and contact.selection[:, 3:].any():
        free.append(np.eye(6)[5])
        # the patch's z axis points into the surface: yaw has the opposite sense
        rows.append(cell_row(zero, np.array([0.0, 0.0, -1.0]), -min(freedom.yaw, 3.0), min(freedom.yaw, 3.0)))
    if (freedom.x > 0.0 or freedom.y > 0.0) and not contact.options.get("overhang"):
        shape = contact.points[:, :2] @ R[:2, :2].T
        A, b = erode(surface.polygon, size * POINT_SURROUNDINGS_M if contact.kind == "point" else shape)
        room = b - A @ np.array([place["x"], place["y"]])
        most = np.abs(A) @ np.minimum([freedom.x, freedom.y], UNBOUNDED)
        rows += [
            cell_row(a @ R[:2], zero, -UNBOUNDED, max(r, 0.0)) for a, r, m in zip(A, room, most, strict=True) if r < m
        ]
    return free, np.array(rows).reshape(-1, 10)


def _ball_cell(contact: Contact, environment: Environment, freedom: Freedom | None, size: float) -> np.ndarray:
    """Return the rows of a ball: on its support, at the place that it rolls to from its nominal one.

    n . (p - p_t) = 0,    p - p_t - r phi x n = 0 along the support, or within the cell,    phi = log(R R_t')

    Its leg leans no farther than its link is round. It does not roll off its support either: where it touches,
    ``POINT_SURROUNDINGS_M`` is left to the edge where its place is free, half of that later, and no more than a given
    place has.
    """
    r, surface = contact.radius, environment.support(contact.support)
    assert isinstance(surface, Surface)
    rows = [cell_row(np.eye(3)[2], np.zeros(3), 0.0, 0.0)]
    R, spins = surface_rotation(float(contact.coordinates["yaw"])), r * np.array([[0, 1.0, 0], [-1.0, 0, 0]])
    widths = [0.0 if freedom is None else freedom.x, 0.0 if freedom is None else freedom.y]
    rows += [cell_row(R[axis], R[axis, :2] @ spins, -width, width) for axis, width in enumerate(widths)]
    rows.append(cell_row(np.zeros(3), np.zeros(3), -np.inf, MAX_LEAN_RAD, ANGLE))
    A, b = erode(surface.polygon, size * POINT_SURROUNDINGS_M * (1.0 if max(widths) > 0.0 else 0.5))
    place = A @ np.array([contact.coordinates["x"], contact.coordinates["y"]])
    most = np.maximum(b, place) + A @ (surface.R.T @ surface.p)[:2]
    near = most - A @ (surface.R.T @ contact.p)[:2] < np.abs(A) @ widths + NEAR_EDGE_RADII * r
    normals = A @ surface.R[:, :2].T
    rows += [
        cell_row(n, np.zeros(3), -UNBOUNDED, high, POINT_HEIGHT)
        for n, high in zip(normals[near], most[near], strict=True)
    ]
    return np.array(rows)


def _edge_cell(contact: Contact, surface: Surface, freedom: Freedom, u: np.ndarray) -> np.ndarray:
    """Return the rows of the cell of an edge along ``u``; coordinates that are not free have cells without width."""
    R = surface_rotation(float(contact.coordinates["yaw"]))
    zero = np.zeros(3)
    _, cell = _cell(contact, surface, replace(freedom, yaw=0.0))
    rows = list(cell)
    for axis, name in enumerate("xy"):
        if getattr(freedom, name) == 0.0:
            rows.append(cell_row(R[axis], zero, 0.0, 0.0))
    turn = np.sin(min(freedom.yaw, 0.5 * np.pi))
    rows.append(cell_row(np.cross([0.0, 0.0, 1.0], u), u, -turn, turn, EDGE_DIRECTION))
    return np.array(rows)


def _bar_cell(contact: Contact, bar: Bar, freedom: Freedom, grip: float) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the same for a patch that keeps its distance to the axis of a bar: it slides along and turns about y."""
    free, rows = [], []
    zero, y = np.zeros(3), np.array([0.0, 1.0, 0.0])
    sense = -1.0 if contact.coordinates.get("flip") else 1.0
    if freedom.along > 0.0:
        free.append(np.concatenate([y, zero]))
        along = float(contact.coordinates["along"])
        low, high = min(grip - along, 0.0), max(bar.length - grip - along, 0.0)
        rows.append(cell_row(sense * y, zero, max(-freedom.along, low), min(freedom.along, high)))
    if freedom.angle > 0.0 and contact.selection[:, 3:].any():
        free.append(np.concatenate([zero, y]))
        rows.append(cell_row(zero, y, -min(freedom.angle, 3.0), min(freedom.angle, 3.0)))
    return free, np.array(rows).reshape(-1, 10)


def _line_cell(robot: Robot, contact: Contact, bar: Bar, freedom: Freedom) -> np.ndarray:
    """Return the bounds of offset and along of a flat patch on a bar."""
    place, zero = contact.coordinates, np.zeros(3)
    x = robot.patches[contact.patch].polygon[:, 0]
    half = float(np.abs(contact.points[:, 1]).max())
    offset, along = float(place["offset"]), float(place["along"])
    return np.array(
        [
            cell_row(zero, zero, max(offset - freedom.offset, x.min()),
                 min(offset + freedom.offset, x.max()), ACROSS_BAR),
            cell_row(zero, zero, max(along - freedom.along, min(half, along)),
                 min(along + freedom.along, max(bar.length - half, along)), ALONG_BAR),
        ]
    )  # fmt: skip
