"""Posture search (inverse kinematics with constraints): settings, tasks for the kernel, and one call of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mcplan.core.optimize.active_set import SLOTS
from mcplan.core.posture.frame import frame_scratch
from mcplan.core.posture.knots import KnotTasks
from mcplan.core.posture.rows import ANGLE, CONTACT, DISTANCE, POSITION_ROWS, RELATIVE_POSE, PostureTargets
from mcplan.core.posture.search import (
    FOUND,
    REPORT_SIZE,
    RULE_SIZE,
    SOFT_STEPS,
    STEP_COUNT,
    WORST_VIOLATION,
    PostureScratch,
    row_violations,
    search_posture,
)
from mcplan.core.rigid_body.tree import MASS, PARENT, V, workspace
from mcplan.planning.posture.freedom import FrameRows, cell_row
from mcplan.robot.anatomy import RobotScale
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.settings.control import ControlSettings
from mcplan.util.arrays import aligned_zeros
from mcplan.util.text import summary

FRICTION_SHARE = 0.9
"""Share of the friction that a planned posture may use; reported margins refer to the full friction.

The rest is for motion: a tenth of the friction is 0.06 g of horizontal acceleration at 0.6. A larger reserve would
exclude common stances: in a valley of 35 degrees with a friction of 0.6 one foot and the opposite hand need 0.51.
"""

PYRAMID_FACES = 8
"""Number of faces of the friction pyramids for planned postures."""

FORCE_SHARE = 0.9
"""Share of the largest force and moment of a contact that a planned posture may use."""

TORQUE_SHARE = 0.9
"""Share of the torque limits that a planned posture may use."""


@dataclass(frozen=True)
class Weights:
    """Weights of squared distances (m, rad) to the guide posture.

    Attributes
    ----------
    base_position : small, so that the base moves freely between the contacts.
    base_orientation : keeps the trunk upright.
    joints : see `coordinate_weights`.
    com : weight of the horizontal distance of the centre of mass from its preferred position.
    comfort : weight of the distance outside the region shrunk by the comfort distance; at the edge of the region a
        contact carries no load, and lifts off.
    """

    base_position: float = 2.0
    base_orientation: float = 5.0
    joints: float = 1.0
    com: float = 20.0
    comfort: float = 400.0


@dataclass(frozen=True)
class PostureSettings:
    """Options of the posture generator; every one has a default, for a robot of the size of HRP-2.

    Attributes
    ----------
    joint_margin : distance to the joint limits (rad or m), at most half of a joint's range.
    bent : smallest bend of limbs in contact (rad), 0 for none: a straight limb cannot correct errors.
    com_inset : distance of the centre of mass to the edge of its support region (m); less if the region is thin.
    comfort : distance to the edge that is preferred, not required (m).
    friction_share, force_share, torque_share : usable share of the friction of contacts, of their largest force and
        moment, and of the torque limits.
    pressure_inset : distance of contact forces from the edges of a patch (m), as in the controller.
    clearance : least distance between links, and to the environment (m).
    steps : maximum number of steps of the inverse kinematics per stage.
    collision_rounds : maximum number of rounds that resolve a collision, each with new distances.
    torque_rounds : maximum number of steps that reduce torques of an otherwise feasible posture.
    weights : weights of the distance to the guide.
    """

    joint_margin: float = 0.02
    bent: float = 0.0
    com_inset: float = 0.02
    comfort: float = 0.05
    friction_share: float = FRICTION_SHARE
    force_share: float = FORCE_SHARE
    torque_share: float = TORQUE_SHARE
    pressure_inset: float = 0.005
    clearance: float = 0.003
    steps: int = 30
    collision_rounds: int = 12
    torque_rounds: int = 5
    weights: Weights = field(default_factory=Weights)

    def of(self, scale: RobotScale) -> "PostureSettings":
        """Return the settings for a robot of another size: lengths and weights of squared lengths are scaled."""
        w, inverse_area = self.weights, 1.0 / scale.leg**2
        return replace(
            self,
            com_inset=scale.sole * self.com_inset,
            comfort=scale.sole * self.comfort,
            pressure_inset=scale.sole * self.pressure_inset,
            clearance=scale.leg * self.clearance,
            weights=replace(
                w,
                base_position=inverse_area * w.base_position,
                com=inverse_area * w.com,
                comfort=inverse_area * w.comfort,
            ),
        )

    def with_margin(self, contact: Contact, share: float = 1.0) -> Contact:
        """Return a contact with its usable friction and force limits, multiplied by ``share``."""
        return contact.with_margin(share * self.friction_share, share * self.force_share)

    def within(self, control: ControlSettings) -> "PostureSettings":
        """Return the settings limited to the contact forces of the controller that will execute the plan.

        The controller uses the pyramid of ``friction_faces`` faces inscribed in the cone of ``friction_fraction`` times
        the friction. The pyramid of a posture, inscribed in the cone of ``share`` times the friction, lies inside if

            share <= friction_fraction cos(pi / friction_faces) / extent

        where the extent of a posture's pyramid along the normals of the controller's faces is cos(pi / PYRAMID_FACES)
        if it has faces with these normals, else at most 1. Forces of the controller stay ``pressure_margin`` from the
        edges of a patch, and use ``force_fraction`` of largest forces and moments.
        """
        extent = np.cos(np.pi / PYRAMID_FACES) if PYRAMID_FACES % control.contact.friction_faces == 0 else 1.0
        usable_share = control.contact.friction_fraction * np.cos(np.pi / control.contact.friction_faces) / extent
        return replace(
            self,
            friction_share=min(self.friction_share, float(usable_share)),
            force_share=min(self.force_share, control.contact.force_fraction),
            pressure_inset=max(self.pressure_inset, control.contact.pressure_margin),
        )


TRUST_RADIUS = 0.4
"""Largest change of each coordinate in one step (m, rad)."""

MIN_RELATIVE_GAIN = 0.15
"""Relative decrease of the violation in three steps below which a search with conflicting constraints ends."""

VIOLATION_WEIGHT = 1e4
"""Weight of a squared violation while constraints conflict; joints have the weight 1."""

DISTAL_MASS_WEIGHT = 40.0
"""Additional relative weight of a joint that moves the whole mass of the robot."""

TARGET_INSET_M = 1e-6
"""Reduction of the tolerances of the base (m, rad), for the accuracy of the search."""


@dataclass(frozen=True, eq=False)
class BaseTarget:
    """Target pose of the base.

    Attributes
    ----------
    xyz : (3,) position of the base's origin in the world (m).
    tolerance : largest distance from it (m).
    R : (3, 3) orientation, or None for any.
    angle_tolerance : largest angle to ``R`` (rad).
    """

    xyz: np.ndarray
    tolerance: float
    R: np.ndarray | None = None
    angle_tolerance: float | None = None

    __repr__ = summary

    def rows(self) -> FrameRows:
        """Return the rows of the ball ``|p - xyz| <= tolerance``, and of the cube around it, which helps to converge.

        The same applies to the rotation vector of the orientation. The row of the length is the last one of each.
        """
        R = np.eye(3) if self.R is None else np.asarray(self.R, dtype=float)
        cell = _ball_rows(self.tolerance, 0, DISTANCE)
        if self.R is not None:
            if self.angle_tolerance is None:
                raise ValueError("a target orientation of the base needs an angle_tolerance")
            cell += _ball_rows(self.angle_tolerance, 3, ANGLE)
        frame = np.concatenate([np.eye(3).ravel(), np.zeros(3), R.ravel(), np.asarray(self.xyz, dtype=float)])
        return FrameRows(POSITION_ROWS, 0, frame, np.zeros((0, 6)), np.array(cell))


def _ball_rows(radius: float, first: int, length: int) -> list[np.ndarray]:
    """Return the rows of a ball in three coordinates from index ``first``, and of the cube around it.

    ``length`` is the kind of the row that bounds the distance from the centre.
    """
    radius = max(radius - TARGET_INSET_M, 0.0)
    rows = [cell_row(axis[:3], axis[3:], -radius, radius, RELATIVE_POSE) for axis in np.eye(6)[first : first + 3]]
    return [*rows, cell_row(np.zeros(3), np.zeros(3), -np.inf, radius, length)]


def coordinate_weights(robot: Robot, weights: Weights) -> np.ndarray:
    """Return the weight (nv,) of each coordinate's squared distance to a guide.

    The weight of a joint grows with the mass distal to it, so that arms move before legs and trunk.
    """
    topology, mass = robot.tree.topology, robot.tree.inertia[:, MASS].copy()
    weight = np.full(robot.nv, weights.joints)
    for body in range(len(topology) - 1, 0, -1):
        share, index = mass[body] / robot.mass, topology[body, V]
        weight[index] = max(weight[index], weights.joints * (1.0 + DISTAL_MASS_WEIGHT * share**2))
        mass[topology[body, PARENT]] += mass[body]
    weight[:3], weight[3:6] = weights.base_position, weights.base_orientation
    return weight


@dataclass(frozen=True)
class SearchResult:
    """Result of one search.

    Attributes
    ----------
    q : (nq,) final posture.
    found : whether all rows hold within the tolerance.
    worst : the largest violation (m, rad).
    missed : (rows,) violation of each row (m, rad).
    row_contact : (e,) index of the contact of each of the first rows; the rows of the centre of mass follow.
    first_cell : index of the first row of the cells; region and linear rows follow after these.
    steps, soft_steps : see `result.Effort`.
    """

    q: np.ndarray
    found: bool
    worst: float
    missed: np.ndarray
    row_contact: np.ndarray
    first_cell: int
    steps: int
    soft_steps: int


class PostureSearch:
    """Posture search for one robot: arrays of the kernel, and calls of it.

    Parameters
    ----------
    robot : the robot.
    weight : (nv,) weight of the squared distance to the guide.
    joint_margin : distance to the joint limits (rad or m), at most half of a joint's range: a gripper joint with a
        smaller range stays in the middle.
    """

    def __init__(self, robot: Robot, weight: np.ndarray, joint_margin: float):
        self.robot = robot
        self.weight = np.ascontiguousarray(weight, dtype=float)
        lower, upper = robot.limits.lower, robot.limits.upper
        margin = np.minimum(joint_margin, 0.5 * (upper - lower))
        self.limit = np.ascontiguousarray([lower + margin, upper - margin])
        self._nothing = np.zeros((0, robot.nv + 1))
        self._scratch, self.report = self.scratch(96), np.zeros(REPORT_SIZE)

    def scratch(self, rows: int) -> PostureScratch:
        """Return new scratch space for a number of rows."""
        nv, nq = self.robot.nv, self.robot.nq
        return PostureScratch(
            workspace(self.robot.tree),
            frame_scratch(nv),
            np.zeros(rows),
            np.zeros(rows),
            np.zeros(rows),
            np.zeros((rows, nv)),
            np.zeros(3),
            np.zeros((3, nv)),
            np.zeros(nv),
            np.zeros((nv, nv)),
            aligned_zeros(2 * nv, nv).reshape(2, nv, -1),
            np.zeros((2, rows)),
            np.zeros((4, nv)),
            np.zeros(rows + nv),
            aligned_zeros(SLOTS, rows + nv + 1),
            np.zeros((2, nv + 1), np.int64),
            np.zeros(nq),
        )

    def task(
        self,
        contacts: Sequence[FrameRows],
        guide: np.ndarray,
        region: np.ndarray | None = None,
        hint: np.ndarray | None = None,
        linear: np.ndarray | None = None,
        linear_q: np.ndarray | None = None,
        centre: np.ndarray | None = None,
        limit: np.ndarray | None = None,
    ) -> PostureTargets:
        """Return the arrays of a search, see `core.posture.rows.PostureTargets`.

        Parameters
        ----------
        contacts : rows of the contacts and of further frames.
        guide : (nq,) preferred posture.
        region : (k, 4) rows of the support region, see `SupportData`.
        hint : (4,) preferred centre of mass (2), its weight, and the weight of the comfort distance.
        linear, linear_q : (l, nv + 1) linear rows, and the posture (nq,) that they are linearised at.
        centre : (e, 4) rows of the requested centre of mass.
        limit : (2, n) bounds of the joints; by default the limits less the margin.
        """
        counts = np.array([len(rows.select) for rows in contacts], dtype=np.int64)
        first = np.concatenate([[0], np.cumsum(counts)[:-1]]) if len(counts) else counts
        index = np.array(
            [(rows.body, rows.mode, f, n) for rows, f, n in zip(contacts, first, counts, strict=True)], dtype=np.int64
        ).reshape(-1, 4)
        cells = [rows.cell for rows in contacts]
        cell = np.vstack([np.zeros((0, 10)), *cells])
        if len(cell):
            cell[:, 0] = np.repeat(np.arange(len(contacts)), [len(c) for c in cells])
        guide = np.array(guide, dtype=float)
        return PostureTargets(
            index,
            np.array([rows.frame for rows in contacts]).reshape(-1, 24),
            np.vstack([np.zeros((0, 6)), *(rows.select for rows in contacts)]),
            cell,
            np.zeros((0, 4)) if centre is None else centre,
            np.zeros((0, 4)) if region is None else region,
            self._nothing if linear is None else linear,
            guide if linear_q is None else linear_q,
            guide,
            self.weight,
            self.limit if limit is None else np.ascontiguousarray(limit),
            np.zeros(4) if hint is None else hint,
        )

    def tasks(
        self,
        rows: Sequence[Sequence[FrameRows]],
        regions: Sequence[np.ndarray],
        hints: np.ndarray,
        limit: np.ndarray,
        *clearances: np.ndarray,
    ) -> KnotTasks:
        """Return the arrays of a search of K knots.

        Parameters
        ----------
        rows, regions, hints : of each knot, see `task`; all knots have the same number of contacts and further frames.
        limit : (2, n) bounds of the joints.
        clearances : the last fields of `KnotTasks`, from ``desired`` on.
        """
        counts = np.array([[len(frame.select) for frame in at_knot] for at_knot in rows], dtype=np.int64)
        cells = [[len(frame.cell) for frame in at_knot] for at_knot in rows]
        sizes = np.column_stack([counts.sum(axis=1), np.sum(cells, axis=1), [len(region) for region in regions]])
        index = np.array([[(frame.body, frame.mode) for frame in at_knot] for at_knot in rows], dtype=np.int64)
        frames = [frame for at_knot in rows for frame in at_knot]
        cell = np.vstack([np.zeros((0, 10)), *(frame.cell for frame in frames)])
        cell[:, CONTACT] = np.repeat(np.tile(np.arange(counts.shape[1]), len(rows)), np.ravel(cells))
        return KnotTasks(
            np.dstack([index, np.cumsum(counts, axis=1) - counts, counts]),
            np.array([frame.frame for frame in frames]).reshape(*counts.shape, 24),
            np.vstack([np.zeros((1, 3), np.int64), np.cumsum(sizes, axis=0, dtype=np.int64)]),
            np.vstack([np.zeros((0, 6)), *(frame.select for frame in frames)]),
            cell,
            np.vstack(regions),
            np.zeros((0, 4)),
            self.weight,
            np.repeat(limit[None], len(rows), axis=0),
            self.limit,
            hints,
            *clearances,
        )

    @staticmethod
    def rule(steps: int, tolerance: float, step_tolerance: float, trust: float = TRUST_RADIUS) -> np.ndarray:
        """Return the parameters of a search as an array, see `core.posture.search`."""
        rule = np.array([steps, trust, tolerance, step_tolerance, MIN_RELATIVE_GAIN, VIOLATION_WEIGHT])
        assert len(rule) == RULE_SIZE
        return rule

    def scratch_for(self, task: PostureTargets, additional: int) -> PostureScratch:
        """Return scratch space for the rows of a task and some additional linear rows."""
        rows = _rows(task) + additional
        if rows > len(self._scratch.value):
            self._scratch = self.scratch(2 * rows)
        return self._scratch

    def missed(self, task: PostureTargets, q: np.ndarray) -> np.ndarray:
        """Return the violation of each row of a task by a posture q (nq,) (m, rad)."""
        missed = np.empty(_rows(task))
        row_violations(self.robot.tree, task, q, self.scratch_for(task, 0), missed)
        return missed

    def run(
        self,
        task: PostureTargets,
        start: np.ndarray,
        steps: int,
        tolerance: float,
        step_tolerance: float,
        trust: float = TRUST_RADIUS,
    ) -> SearchResult:
        """Search from ``start`` (nq,)."""
        s, report = self.scratch_for(task, 0), self.report
        q = np.array(start, dtype=float)
        status = search_posture(self.robot.tree, task, self.rule(steps, tolerance, step_tolerance, trust), q, s, report)
        rows = _rows(task)
        missed = np.maximum(0.0, np.maximum(s.low[:rows] - s.value[:rows], s.value[:rows] - s.high[:rows]))
        return SearchResult(
            q,
            status == FOUND,
            float(report[WORST_VIOLATION]),
            missed,
            np.repeat(np.arange(len(task.contact)), task.contact[:, 3]),
            len(task.select) + len(task.centre),
            int(report[STEP_COUNT]),
            int(report[SOFT_STEPS]),
        )


def _rows(task: PostureTargets) -> int:
    return len(task.select) + len(task.centre) + len(task.cell) + len(task.region) + len(task.linear)
