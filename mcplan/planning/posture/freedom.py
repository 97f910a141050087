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

COORDINATE_DIGITS = 9
"""Decimals (m, rad) of a chosen coordinate. Contacts of one limb constrain each other, and allow little rounding."""

GRIP_MARGIN_M = 0.02
"""Smallest distance of a grasp from the ends of its bar."""

POINT_SURROUNDINGS_M = 0.01 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1.0]])
"""Square around a point contact that must be on its surface, since the point rolls or slips by a little (m)."""

MAX_LEAN_RAD = np.deg2rad(50)
"""Largest lean of the leg of a ball: up to this angle `mcplan robot new` requires the link to be round."""

MAX_EDGE_DISTANCE_RADII = 3.0
"""Edges farther from a ball than this, in radii, are ignored: the ball rolls less when its leg leans."""

MAX_BOUND = 1e3
"""Finite value of an infinite bound (m, rad)."""


@dataclass(frozen=True)
class Freedom:
    """Half-widths (m, rad; ``inf`` allowed) of the range of a contact's coordinates; 0 fixes a coordinate.

    On a surface ``x``, ``y`` and ``yaw`` are used, and the patch stays within its border. On a bar ``along`` and
    ``angle`` are used, and ``offset`` for a flat patch. If ``offset`` or ``angle`` is free, a flat patch turns freely
    about the bar.
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
    mode : POSE_ROWS, POSITION_ROWS, LINE_ROWS or EDGE_ROWS.
    body : index of the body.
    frame : (24,) pose of the patch in its body, and target.
    select : (e, 6) constrained directions.
    cell : (k, 10) bounds of the other directions; the column CONTACT is set later.
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
        # it could roll, but then the friction directions would turn, and the bar would leave the loaded line
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
            free_twists, cell = _bar_cell(contact, support, freedom, robot.scale.arm * GRIP_MARGIN_M)
        else:
            free_twists, cell = _surface_cell(contact, support, freedom, robot.scale.leg)
        constrained_complement = _free_directions(contact.selection)
        select = constrained_directions([*constrained_complement, *free_twists])
    mode = POSE_ROWS if select[:, 3:].any() else POSITION_ROWS
    return FrameRows(mode, body, np.concatenate([offset, target]), select, cell)


def resolve_contact(
    robot: Robot, environment: Environment, contact: Contact, freedom: Freedom, near: tuple[np.ndarray, np.ndarray]
) -> Contact:
    """Return the contact nearest to the patch pose ``near`` (R, p), with rounded coordinates and none of them free.

    Raises
    ------
    InputError
        When the patch is not on its support at the rounded coordinates.
    """
    data = contact.to_data()
    fixed = {name: value for name, value in data.items() if name not in freedom.names}
    coordinates = make_contact(robot, environment, fixed, near).coordinates
    rounded = {
        name: round(float(coordinates[name]), COORDINATE_DIGITS) for name in freedom.names if name in coordinates
    }
    return make_contact(robot, environment, {**data, **rounded})


def _free_directions(selection: np.ndarray) -> np.ndarray:
    """Return orthonormal rows of the directions that a contact does not constrain."""
    if len(selection) == 6:
        return np.zeros((0, 6))
    return np.linalg.svd(selection)[2][len(selection) :]


def cell_row(linear: np.ndarray, angular: np.ndarray, low: float, high: float, kind: int = RELATIVE_POSE) -> np.ndarray:
    """Return a row (10,) of a cell, see `core.posture.rows`; infinite bounds become `MAX_BOUND`."""
    return np.concatenate([[0.0, kind], linear, angular, [max(low, -MAX_BOUND), min(high, MAX_BOUND)]])


def _surface_cell(
    contact: Contact, surface: Surface, freedom: Freedom, size: float = 1.0
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the free twists in patch axes, and the rows (k, 10) of the cell of a patch on a surface."""
    coordinates = contact.coordinates
    R = surface_rotation(float(coordinates["yaw"]))
    zero = np.zeros(3)
    free_twists, rows = [], []
    for axis, name in enumerate("xy"):
        width = getattr(freedom, name)
        if width > 0.0:
            free_twists.append(np.concatenate([R[axis], zero]))
            rows.append(cell_row(R[axis], zero, -width, width))
    if freedom.yaw > 0.0 and contact.selection[:, 3:].any():
        free_twists.append(np.eye(6)[5])
        # the patch's z axis points into the surface: yaw has the opposite sense
        rows.append(cell_row(zero, np.array([0.0, 0.0, -1.0]), -min(freedom.yaw, 3.0), min(freedom.yaw, 3.0)))
    if (freedom.x > 0.0 or freedom.y > 0.0) and not contact.options.get("overhang"):
        shape = contact.points[:, :2] @ R[:2, :2].T
        A, b = erode(surface.polygon, size * POINT_SURROUNDINGS_M if contact.kind == "point" else shape)
        room = b - A @ np.array([coordinates["x"], coordinates["y"]])
        reach = np.abs(A) @ np.minimum([freedom.x, freedom.y], MAX_BOUND)
        rows += [
            cell_row(a @ R[:2], zero, -MAX_BOUND, max(r, 0.0)) for a, r, m in zip(A, room, reach, strict=True) if r < m
        ]
    return free_twists, np.array(rows).reshape(-1, 10)


def _ball_cell(contact: Contact, environment: Environment, freedom: Freedom | None, size: float) -> np.ndarray:
    """Return the rows of a ball: on its support, at the position that it rolls to from its nominal one.

        n . (p - p_t) = 0,    p - p_t - r phi x n = 0 along the support, or within the cell,    phi = log(R R_t')

    with the centre p and rotation R of the ball, their nominal values p_t and R_t, its radius r and the normal n.

    Its leg leans at most by `MAX_LEAN_RAD`. The ball does not roll off its support: it keeps `POINT_SURROUNDINGS_M` on
    the support while its position is free, half of that later, but not more than at a given position.
    """
    r, surface = contact.radius, environment.support(contact.support)
    assert isinstance(surface, Surface)
    rows = [cell_row(np.eye(3)[2], np.zeros(3), 0.0, 0.0)]
    R, roll_map = surface_rotation(float(contact.coordinates["yaw"])), r * np.array([[0, 1.0, 0], [-1.0, 0, 0]])
    widths = [0.0 if freedom is None else freedom.x, 0.0 if freedom is None else freedom.y]
    rows += [cell_row(R[axis], R[axis, :2] @ roll_map, -width, width) for axis, width in enumerate(widths)]
    rows.append(cell_row(np.zeros(3), np.zeros(3), -np.inf, MAX_LEAN_RAD, ANGLE))
    A, b = erode(surface.polygon, size * POINT_SURROUNDINGS_M * (1.0 if max(widths) > 0.0 else 0.5))
    position = A @ np.array([contact.coordinates["x"], contact.coordinates["y"]])
    bounds = np.maximum(b, position) + A @ (surface.R.T @ surface.p)[:2]
    is_near = bounds - A @ (surface.R.T @ contact.p)[:2] < np.abs(A) @ widths + MAX_EDGE_DISTANCE_RADII * r
    normals = A @ surface.R[:, :2].T
    rows += [
        cell_row(n, np.zeros(3), -MAX_BOUND, high, POINT_HEIGHT)
        for n, high in zip(normals[is_near], bounds[is_near], strict=True)
    ]
    return np.array(rows)


def _edge_cell(contact: Contact, surface: Surface, freedom: Freedom, u: np.ndarray) -> np.ndarray:
    """Return the rows of the cell of an edge along ``u`` (3,); coordinates that are not free have the width 0."""
    R = surface_rotation(float(contact.coordinates["yaw"]))
    zero = np.zeros(3)
    _, cell = _surface_cell(contact, surface, replace(freedom, yaw=0.0))
    rows = list(cell)
    for axis, name in enumerate("xy"):
        if getattr(freedom, name) == 0.0:
            rows.append(cell_row(R[axis], zero, 0.0, 0.0))
    max_sine = np.sin(min(freedom.yaw, 0.5 * np.pi))
    rows.append(cell_row(np.cross([0.0, 0.0, 1.0], u), u, -max_sine, max_sine, EDGE_DIRECTION))
    return np.array(rows)


def _bar_cell(contact: Contact, bar: Bar, freedom: Freedom, grip: float) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the free twists and the rows of a patch on a bar that keeps its distance from the bar's axis.

    It slides along its y axis and turns about it. ``grip`` is the smallest distance from the ends of the bar (m).
    """
    free_twists, rows = [], []
    zero, y = np.zeros(3), np.array([0.0, 1.0, 0.0])
    sense = -1.0 if contact.coordinates.get("flip") else 1.0
    if freedom.along > 0.0:
        free_twists.append(np.concatenate([y, zero]))
        along = float(contact.coordinates["along"])
        low, high = min(grip - along, 0.0), max(bar.length - grip - along, 0.0)
        rows.append(cell_row(sense * y, zero, max(-freedom.along, low), min(freedom.along, high)))
    if freedom.angle > 0.0 and contact.selection[:, 3:].any():
        free_twists.append(np.concatenate([zero, y]))
        rows.append(cell_row(zero, y, -min(freedom.angle, 3.0), min(freedom.angle, 3.0)))
    return free_twists, np.array(rows).reshape(-1, 10)


def _line_cell(robot: Robot, contact: Contact, bar: Bar, freedom: Freedom) -> np.ndarray:
    """Return the rows that bound ``offset`` and ``along`` of a flat patch on a bar."""
    coordinates, zero = contact.coordinates, np.zeros(3)
    x = robot.patches[contact.patch].polygon[:, 0]
    half_width = float(np.abs(contact.points[:, 1]).max())
    offset, along = float(coordinates["offset"]), float(coordinates["along"])
    return np.array(
        [
            cell_row(zero, zero, max(offset - freedom.offset, x.min()),
                 min(offset + freedom.offset, x.max()), ACROSS_BAR),
            cell_row(zero, zero, max(along - freedom.along, min(half_width, along)),
                 min(along + freedom.along, max(bar.length - half_width, along)), ALONG_BAR),
        ]
    )  # fmt: skip
