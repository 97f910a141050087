"""Constraints of contact forces and torques in the whole-body program.

``D f_t + margin <= mu f_n`` for every contact point: friction pyramid, which also keeps normal forces positive. With
``margin = mu f_0 + e``, ``f_0`` is the point's share of the preload. The preload is a lower bound of the normal force,
and only the force beyond it provides friction.

``f_min <= sum f_n <= f_max`` for every surface or point contact: limits of its normal force.

``D3 f <= r_f, D3 m <= r_m`` for every grasp: limits of its force and moment, balls approximated by polytopes.

``|tau - tau_0| <= step``: limits of the change of torque, for example since the last tick.
"""

from collections.abc import Iterator
from typing import NamedTuple

import cvxpy as cp
import numpy as np

from mcplan.optimize.polytope import ball_polytope, friction_pyramid
from mcplan.robot.robot import Robot
from mcplan.whole_body.problem_data import ProblemData
from mcplan.whole_body.rows.block import Array, Conflict, Failure, Gradient, RowBlock, Rows, Values

MIN_REPORTED_SLIP_FORCE_N = 1e-5
"""Smaller violations of a friction cone are not reported (N)."""


class FrictionConeRows(RowBlock):
    """Friction pyramids and limits of the normal force of all contacts except grasps.

    Maps from force unknowns: of each face of a pyramid to the tangential force along it and the normal force of its
    point, of each contact to the total normal force. ``_point_of_face`` (faces, points) is 1 at the point of each face.
    """

    def __init__(self, d: ProblemData):
        shapes = zip(d.structure.shapes, d.structure.slices(), strict=True)
        cones = [(shape, force_slice) for shape, force_slice in shapes if not shape.grasp]
        if not cones:
            return
        size, points = d.unknowns, sum(shape.points for shape, _ in cones)
        faces = sum(shape.points * shape.faces for shape, _ in cones)
        self._tangential_map, self._normal_map, self._point_of_face = (
            np.zeros((faces, size)),
            np.zeros((faces, size)),
            np.zeros((faces, points)),
        )
        self._total_normal_map = np.zeros((len(cones), size))
        row = point = 0
        for i, (shape, force_slice) in enumerate(cones):
            D = friction_pyramid(shape.faces, shape.pyramid)
            self._total_normal_map[i, force_slice.start + 2 : force_slice.stop : 3] = 1.0
            for k in range(shape.points):
                first, block = force_slice.start + 3 * k, slice(row, row + shape.faces)
                (
                    self._tangential_map[block, first : first + 2],
                    self._normal_map[block, first + 2],
                    self._point_of_face[block, point],
                ) = D, 1.0, 1.0
                row, point = row + shape.faces, point + 1
        mu = d.parameter("friction", points, nonneg=True)
        margin = d.parameter("friction_margin", points, nonneg=True)
        low, high = d.parameter("normal_min", len(cones)), d.parameter("normal_max", len(cones))
        normal, total = self._normal_map @ d.force, self._total_normal_map @ d.force
        friction = (
            self._tangential_map @ d.force
            - cp.multiply(self._point_of_face @ mu, normal)
            + self._point_of_face @ margin
        )
        self.rows = [
            Rows("friction", friction, False, slack_map=self._point_of_face),
            Rows("normal_min", low - total, False, penalty=1.0),
            Rows("normal_max", total - high, False, penalty=1.0),
        ]

    def add_gradient(self, data: Values, y: Values, gradient: Gradient) -> None:
        """Add the gradient of the friction pyramids and of the limits of normal forces."""
        if self.rows:
            mu = self._point_of_face @ data["friction"]
            gradient.f.append(self._tangential_map.T @ y["friction"] - self._normal_map.T @ (mu * y["friction"]))
            gradient.f.append(self._total_normal_map.T @ (y["normal_max"] - y["normal_min"]))

    def conflicts(self, failure: Failure) -> Iterator[Conflict]:
        """Yield pulling forces, violated friction cones, and normal forces outside their limits."""
        slack, i = failure.slack, 0
        for contact, force_slice in zip(failure.contacts, failure.force_slices, strict=True):
            if contact.shape.grasp:
                continue
            f = failure.force[force_slice].reshape(-1, 3)
            pull = float(np.sum(np.maximum(-f[:, 2], 0.0)))
            yield Conflict(f"unilateral force at {contact.patch}", pull, "N")
            if contact.preload > 0.0:
                yield Conflict(f"preload of {contact.patch}", contact.preload - float(np.sum(f[:, 2])), "N")
            if np.any(slack["friction"] > MIN_REPORTED_SLIP_FORCE_N):
                excess = np.hypot(f[:, 0], f[:, 1]) - contact.friction * np.maximum(f[:, 2], 0.0)
                yield Conflict(f"friction at {contact.patch}", float(np.sum(np.maximum(excess, 0.0))), "N")
            if contact.min_force > 0:
                yield Conflict(f"smallest force at {contact.patch}", float(slack["normal_min"][i]), "N")
            yield Conflict(f"largest force at {contact.patch}", float(slack["normal_max"][i]), "N")
            i += 1


WRENCH_PARTS = (("grasp_force", slice(0, 3)), ("grasp_moment", slice(3, 6)))
"""Names of the rows of grasp limits, each with its part of a wrench."""


class GraspBallRows(RowBlock):
    """Limits of grasp forces, then of grasp moments, by polytopes of balls."""

    def __init__(self, d: ProblemData):
        shapes = zip(d.structure.shapes, d.structure.slices(), strict=True)
        grasps = [(shape, force_slice) for shape, force_slice in shapes if shape.grasp]
        if not grasps:
            return
        D, self.rows, self._faces = ball_polytope(3), [], dict[str, Array]()
        slack_map: Array = np.repeat(np.eye(len(grasps)), len(D), axis=0)
        for name, part in WRENCH_PARTS:
            self._faces[name] = G = np.zeros((len(grasps) * len(D), d.unknowns))
            for i, (shape, force_slice) in enumerate(grasps):
                G[i * len(D) : (i + 1) * len(D), force_slice] = D @ shape.wrench_basis[part]
            radius = d.parameter(name, len(grasps))
            self.rows.append(Rows(name, G @ d.force - slack_map @ radius, False, slack_map=slack_map))

    def add_gradient(self, data: Values, y: Values, gradient: Gradient) -> None:
        """Add the gradient of the grasp limits."""
        gradient.f.extend(self._faces[rows.name].T @ y[rows.name] for rows in self.rows)

    def conflicts(self, failure: Failure) -> Iterator[Conflict]:
        """Yield grasp forces and moments above their limits."""
        grasps = [contact for contact in failure.contacts if contact.shape.grasp]
        for i, contact in enumerate(grasps):
            for (name, _), quantity, unit in zip(WRENCH_PARTS, ("force", "moment"), ("N", "N m"), strict=True):
                yield Conflict(f"grasping {quantity} at {contact.patch}", float(failure.slack[name][i]), unit)


LOWER, UPPER = "torque_min", "torque_max"
"""Names of the rows with the torque band, and of their parameters."""

PRISMATIC_LEVER_M = 0.2
"""Lever arm that converts the force of a prismatic joint to a torque (m, for a robot of HRP-2's size). It is about a
third of the length of a limb, a typical lever arm of revolute joints."""


class TorqueBand(NamedTuple):
    """Interval of each torque, its centre ``torque`` (n,) and half width ``step`` (n,): N m, for prismatic joints N."""

    torque: Array
    step: Array


class TorqueStepRows(RowBlock):
    """Rows ``|tau - tau_0| <= step`` of the torque band, if the settings have one.

    They are never relaxed: if they make the program infeasible, it is solved without them.
    """

    def __init__(self, d: ProblemData):
        if d.structure.settings.torque_band:
            lower, upper = (d.parameter(name, d.structure.n) for name in (LOWER, UPPER))
            self.rows = [Rows(LOWER, lower - d.tau, False), Rows(UPPER, d.tau - upper, False)]

    def add_gradient(self, data: Values, y: Values, gradient: Gradient) -> None:
        """Add the gradient of the torque band."""
        if self.rows:
            gradient.tau.append(y[UPPER] - y[LOWER])


def torque_steps(robot: Robot, max_step: float) -> Array:
    """Return the allowed change (n,) of joint torques: ``max_step`` N m, of prismatic joints divided by a lever arm."""
    prismatic = [robot.description.joints[name].type == "prismatic" for name in robot.joint_names]
    return np.where(prismatic, max_step / (PRISMATIC_LEVER_M * robot.scale.leg), max_step)
