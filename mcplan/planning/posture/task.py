"""The posture search as the kernels see it, and one call of it; a target of the base as rows of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mcplan.core.optimize.active_set import SLOTS
from mcplan.core.posture.frame import frame_scratch
from mcplan.core.posture.rows import ANGLE, DISTANCE, OF_POSE, PLACE_ROWS, PostureTargets
from mcplan.core.posture.search import (
    FOUND,
    REPORT,
    RULES,
    SOFT_STEPS,
    STEPS,
    WORST,
    PostureScratch,
    missed_rows,
    search_posture,
)
from mcplan.core.rigid_body.tree import MASS, PARENT, V, workspace
from mcplan.planning.posture.freedom import ContactRows, cell_row
from mcplan.planning.posture.settings import Weights
from mcplan.robot.robot import Robot
from mcplan.util.text import summary

TRUST = 0.4
"""m, rad: bound of one step in each coordinate."""

SHRINK = 0.15
"""Least relative gain of three steps together while constraints conflict."""

PENALTY = 1e4
"""Price of a squared violation while constraints conflict (the joints cost 1)."""

HEAVY = 40.0
"""Price of moving all of the mass by a joint, against moving none."""

WITHIN = 1e-6
"""m, rad: a base is sought this far inside its tolerances, which the accuracy of the search uses up."""


@dataclass(frozen=True, eq=False)
class BaseTarget:
    """Where the base of a posture is to be.

    Attributes
    ----------
    xyz : (3,) place of the base's origin in the world (m).
    tolerance : its distance from there at most (m).
    R : (3, 3) orientation, or None for any.
    angle_tolerance : angle of the turn between the two at most (rad).
    """

    xyz: np.ndarray
    tolerance: float
    R: np.ndarray | None = None
    angle_tolerance: float | None = None

    __repr__ = summary

    def rows(self) -> ContactRows:
        """Return the rows: the ball ``|p - xyz| <= tolerance`` and the cube around it, which leads into a small one.

        The orientation has the same of its rotation vector. The row of the length is the last of each.
        """
        R = np.eye(3) if self.R is None else np.asarray(self.R, dtype=float)
        cell = _ball(self.tolerance, 0, DISTANCE)
        if self.R is not None:
            if self.angle_tolerance is None:
                raise ValueError("a target orientation of the base needs an angle_tolerance")
            cell += _ball(self.angle_tolerance, 3, ANGLE)
        frame = np.concatenate([np.eye(3).ravel(), np.zeros(3), R.ravel(), np.asarray(self.xyz, dtype=float)])
        return ContactRows(PLACE_ROWS, 0, frame, np.zeros((0, 6)), np.array(cell))


def _ball(radius: float, first: int, length: int) -> list[np.ndarray]:
    """Return the rows of a ball of three coordinates, the first of them given, and of the cube around it."""
    radius = max(radius - WITHIN, 0.0)
    rows = [cell_row(axis[:3], axis[3:], -radius, radius, OF_POSE) for axis in np.eye(6)[first : first + 3]]
    return [*rows, cell_row(np.zeros(3), np.zeros(3), -np.inf, radius, length)]


def prices(robot: Robot, weights: Weights) -> np.ndarray:
    """Return the price (nv,) of each coordinate's squared distance to a guide.

    That of a joint grows with the mass beyond it, so that arms move before legs and trunk.
    """
    topology, mass = robot.tree.topology, robot.tree.inertia[:, MASS].copy()
    price = np.full(robot.nv, weights.joints)
    for body in range(len(topology) - 1, 0, -1):
        share, index = mass[body] / robot.mass, topology[body, V]
        price[index] = max(price[index], weights.joints * (1.0 + HEAVY * share**2))
        mass[topology[body, PARENT]] += mass[body]
    price[:3], price[3:6] = weights.base_position, weights.base_orientation
    return price


@dataclass(frozen=True)
class Search:
    """One answer of the search.

    Attributes
    ----------
    q : (nq,).
    found : whether all rows hold within the tolerance.
    worst : the largest violation (m, rad).
    missed : (rows,) violation of each row.
    contact_of : (e,) contact that each of the first rows belongs to; then come those of the centre of mass.
    first_cell : where the rows of the cells begin; then come region and linear rows.
    steps, soft_steps : see `Effort`.
    """

    q: np.ndarray
    found: bool
    worst: float
    missed: np.ndarray
    contact_of: np.ndarray
    first_cell: int
    steps: int
    soft_steps: int


class PostureSearch:
    """Calls the kernel for one robot.

    Parameters
    ----------
    robot : the robot.
    weight : (nv,) price of the squared distance to the guide.
    joint_margin : rad or m, of each joint half of its range at most: a jaw that has less stays in the middle.
    """

    def __init__(self, robot: Robot, weight: np.ndarray, joint_margin: float):
        self.robot = robot
        self.weight = np.ascontiguousarray(weight, dtype=float)
        lower, upper = robot.limits.lower, robot.limits.upper
        margin = np.minimum(joint_margin, 0.5 * (upper - lower))
        self.limit = np.ascontiguousarray([lower + margin, upper - margin])
        self._nothing = np.zeros((0, robot.nv + 1))
        self._scratch, self.report = self._allocate(96), np.zeros(REPORT)

    def _allocate(self, rows: int) -> PostureScratch:
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
            np.zeros((2, nv, nv)),
            np.zeros((2, rows)),
            np.zeros((4, nv)),
            np.zeros(rows + nv),
            np.zeros((SLOTS, rows + nv + 1)),
            np.zeros((2, nv + 1), np.int64),
            np.zeros(nq),
        )

    def task(
        self,
        contacts: Sequence[ContactRows],
        guide: np.ndarray,
        region: np.ndarray | None = None,
        hint: np.ndarray | None = None,
        linear: np.ndarray | None = None,
        linear_q: np.ndarray | None = None,
        centre: np.ndarray | None = None,
        limit: np.ndarray | None = None,
    ) -> PostureTargets:
        """Return the arrays of a search.

        Parameters
        ----------
        guide : (nq,); region : (k, 4); hint : (4,); linear : (l, nv + 1) about ``linear_q`` (nq,); centre : (e, 4).
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

    @staticmethod
    def rule(steps: int, tolerance: float, step_tolerance: float, trust: float = TRUST) -> np.ndarray:
        """Return the rule of a search; see `core.posture.search` for the tolerances."""
        rule = np.array([steps, trust, tolerance, step_tolerance, SHRINK, PENALTY])
        assert len(rule) == RULES
        return rule

    def room_for(self, task: PostureTargets, further: int) -> PostureScratch:
        """Return scratch space for the rows of a task, and so many linear rows besides."""
        rows = _rows(task) + further
        if rows > len(self._scratch.value):
            self._scratch = self._allocate(2 * rows)
        return self._scratch

    def missed(self, task: PostureTargets, q: np.ndarray) -> np.ndarray:
        """Return by how much a posture q (nq,) misses each row of a task, as it is (m, rad)."""
        missed = np.empty(_rows(task))
        missed_rows(self.robot.tree, task, q, self.room_for(task, 0), missed)
        return missed

    def run(
        self,
        task: PostureTargets,
        start: np.ndarray,
        steps: int,
        tolerance: float,
        step_tolerance: float,
        trust: float = TRUST,
    ) -> Search:
        """Search from ``start`` (nq,)."""
        s, report = self.room_for(task, 0), self.report
        q = np.array(start, dtype=float)
        status = search_posture(self.robot.tree, task, self.rule(steps, tolerance, step_tolerance, trust), q, s, report)
        rows = _rows(task)
        missed = np.maximum(0.0, np.maximum(s.low[:rows] - s.value[:rows], s.value[:rows] - s.high[:rows]))
        return Search(
            q,
            status == FOUND,
            float(report[WORST]),
            missed,
            np.repeat(np.arange(len(task.contact)), task.contact[:, 3]),
            len(task.select) + len(task.centre),
            int(report[STEPS]),
            int(report[SOFT_STEPS]),
        )


def _rows(task: PostureTargets) -> int:
    return len(task.select) + len(task.centre) + len(task.cell) + len(task.region) + len(task.linear)
