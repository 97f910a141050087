"""Inverse kinematics: a configuration in which frames reach target poses (S1 section 2.9.3, algorithm 1).

::

    import mcplan as mc
    robot = mc.load_robot("hrp2")
    q = robot.posture("half_sitting")
    soles = {name: robot.frame_pose(q, name) for name in ("left_sole", "right_sole")}
    targets = soles | {"right_hand": [0.45, -0.2, 0.8]}
    answer = mc.inverse_kinematics(robot, targets, start=q)
    assert answer.reached, answer.message

S1: `docs/sources.md`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from mcplan.errors import InputError
from mcplan.robot.robot import Robot
from mcplan.textbook.coordinates.chart import Array, RotationChart, numbers, real
from mcplan.textbook.kinematics.differential import VelocityTask, prioritised
from mcplan.textbook.kinematics.frame_error import FrameTarget, frame_target

Method = Literal["damped", "pseudo_inverse", "transpose"]

MAX_STEP = 0.5
"""Largest change of a coordinate in one step (rad or m), for which the linearisation is accurate enough."""

MIN_DAMPING = 1e-3
"""Damping at zero error. Its square grows with the error e by ``|e|^2 / 2``, approximately the curvature of the forward
kinematics, which matters if a target is out of reach (Sugihara 2011)."""

MIN_STEP = 1e-10
"""Size of a step (rad, m) below which the search stops."""


@dataclass(frozen=True, eq=False)
class InverseKinematics:
    """Result of inverse kinematics.

    Attributes
    ----------
    q : (nq,) configuration, joints within their limits.
    reached : whether all targets are reached.
    errors : errors of each target: distance in m, and angle of the shortest rotation in rad.
    iterations : number of steps.
    path : (iterations + 1, nq) configurations from the start on.
    message : summary with the largest error.
    """

    q: Array
    reached: bool
    errors: Mapping[str, tuple[float, float]]
    iterations: int
    path: Array
    message: str

    def __repr__(self) -> str:
        return f"InverseKinematics({self.message})"


def inverse_kinematics(
    robot: Robot,
    targets: Mapping[str, ArrayLike],
    start: ArrayLike | None = None,
    *,
    fixed_base: bool | None = None,
    method: Method = "damped",
    gain: float = 1.0,
    weights: Mapping[str, float] | None = None,
    priorities: Mapping[str, int] | None = None,
    posture: ArrayLike | None = None,
    rotation: RotationChart | None = None,
    limits: bool = True,
    tolerance: float = 1e-6,
    max_iterations: int = 200,
    attempts: int = 5,
    seed: int = 0,
) -> InverseKinematics:
    """Find a configuration in which links and patches reach their targets.

    Parameters
    ----------
    robot : the robot.
    targets : for each link or patch a pose (4, 4), a position (3,) or a rotation (3, 3) in the world.
    start : (nq,) initial configuration; default: the neutral one.
    fixed_base : whether only the joints move; default: whether the robot has a fixed base.
    method : ``damped`` (its damping falls with the error), ``pseudo_inverse`` (S1 algorithm 1), ``transpose``
        (S1 eq. 2.231).
    gain : step length factor: k of S1 eq. 2.230 and 2.237; for ``transpose`` relative to the optimal step.
    weights : weights of the squared errors of targets, 1 by default.
    priorities : 0 for the first priority (default), 1 for the next, which acts in the null space of the first, and so
        on (S1 eq. 2.207). Targets of equal priority are weighted.
    posture : (nq,) desired joints, at the last priority (S1 eq. 2.197).
    rotation : chart whose parameter difference is the rotation error, as in S1's algorithm 1; by default the shortest
        rotation, without singularities (S1 eq. 2.237).
    limits : whether to keep the joints within their limits.
    tolerance : largest error of a reached target, m and rad.
    max_iterations : largest number of steps from one start.
    attempts : largest number of starts: the given one, then its base with random joints. If all fail, the result is the
        one with the smallest error of the first priority, then of the second.
    seed : seed of the random joints.

    Raises
    ------
    InputError : an invalid target, name or option, or a singularity of the chart during the search. Unreachable targets
        raise no exception: see ``reached`` and ``message`` of the result.
    """
    frame_targets = [frame_target(robot, name, value, rotation) for name, value in targets.items()]
    if not frame_targets:
        raise InputError("inverse kinematics: no targets")
    if method not in ("damped", "pseudo_inverse", "transpose"):
        raise InputError(f"method {method!r}; expected damped, pseudo_inverse or transpose")
    gain, tolerance = numbers([gain, tolerance], (2,), "gain and tolerance").tolist()
    if not (0.0 < gain <= 1.0 and tolerance > 0.0 and max_iterations >= 1 and attempts >= 1):
        raise InputError(
            f"gain = {gain}, tolerance = {tolerance}, max_iterations = {max_iterations}, attempts = {attempts}; "
            "expected 0 < gain <= 1, tolerance > 0, and one or more of the others"
        )
    levels = _levels(frame_targets, weights or {}, priorities or {})
    if method == "transpose" and (len(levels) > 1 or posture is not None):
        raise InputError("method 'transpose' has no priorities and no posture: use 'damped' or 'pseudo_inverse'")
    desired_posture = None if posture is None else _checked(robot, posture, "posture")
    search = _Search(robot, levels, desired_posture, method, limits, robot.fixed if fixed_base is None else fixed_base)
    q = robot.neutral() if start is None else _checked(robot, start, "start")
    answers: list[InverseKinematics] = []
    random = np.random.default_rng(seed)
    while len(answers) < attempts and not (answers and answers[-1].reached):
        answers.append(
            _result(robot, frame_targets, tolerance, search.path(q, frame_targets, gain, tolerance, max_iterations))
        )
        q = np.concatenate([q[:7], robot.random_configuration(random)[7:]])

    def error_by_priority(answer: InverseKinematics) -> list[float]:
        worst = [max(max(answer.errors[target.frame]) for target, _ in level) for level in levels]
        return [0.0 if error <= tolerance else error for error in worst]

    return min(answers, key=error_by_priority)


class _Search:
    """Iterative search from one start, within the joint limits."""

    def __init__(
        self,
        robot: Robot,
        levels: list[list[tuple[FrameTarget, float]]],
        posture: Array | None,
        method: Method,
        limits: bool,
        fixed_base: bool,
    ):
        self.robot, self.levels, self.posture, self.method = robot, levels, posture, method
        base = np.full(6, 0.0 if fixed_base else np.inf)
        free = np.full(robot.n, np.inf)
        lower, upper = (robot.limits.lower, robot.limits.upper) if limits else (-free, free)
        self._lower, self._upper = np.concatenate([-base, lower]), np.concatenate([base, upper])

    def path(self, q: Array, frame_targets: list[FrameTarget], gain: float, tolerance: float, max_steps: int) -> Array:
        """Return the configurations (., nq) from q on, until the targets are reached and the posture has converged."""
        previous_step = np.zeros(self.robot.nv)
        path, max_step = [self.apply_step(q, previous_step)], MAX_STEP
        for _ in range(max_steps):
            q = path[-1]
            reached_all = _reached(self.robot, q, frame_targets, tolerance)
            if reached_all and self.posture is None:
                break
            dq = self.step(q, gain, max_step)
            # oscillating steps are too long for the linearisation; with unreachable targets they would never end
            max_step = 0.5 * max_step if previous_step @ dq < 0.0 else min(MAX_STEP, 1.5 * max_step)
            previous_step = dq
            if np.abs(dq).max() < (tolerance if reached_all else MIN_STEP):
                break
            path.append(self.apply_step(q, dq))
        return np.array(path)

    def step(self, q: Array, gain: float, max_step: float) -> Array:
        """Return the step (nv,) from q, as for ``integrate``: ``gain`` times the full step.

        No coordinate moves by more than ``max_step``. A joint that would leave its range stops at its limit, and the
        step of the other joints is computed without it.
        """
        tasks = [self._level(q, level) for level in self.levels]
        if self.posture is not None:
            tasks.append(VelocityTask(np.eye(self.robot.nv)[6:], self.posture[7:] - q[7:]))
        damping = self._damping(tasks)
        position = np.concatenate([np.zeros(6), q[7:]])
        low, high = self._lower - position, self._upper - position
        fixed, value = low >= high, np.zeros(self.robot.nv)
        while True:
            reduced = [
                VelocityTask(np.where(fixed, 0.0, t.J), gain * t.w - t.J[:, fixed] @ value[fixed]) for t in tasks
            ]
            dq = np.where(fixed, value, self._solve(reduced, damping))
            dq *= min(1.0, max_step / max(float(np.abs(dq).max()), 1e-300))
            is_violated = ~fixed & ((dq < low) | (dq > high))
            if not is_violated.any():
                return dq
            value, fixed = np.where(is_violated, np.clip(dq, low, high), value), fixed | is_violated

    def apply_step(self, q: Array, dq: Array) -> Array:
        """Return q after a step, with joints clipped to their limits."""
        q = self.robot.integrate(q, dq, 1.0)
        q[7:] = np.clip(q[7:], self._lower[6:], self._upper[6:])
        return q

    def _level(self, q: Array, level: list[tuple[FrameTarget, float]]) -> VelocityTask:
        """Return the stacked tasks of one priority, each multiplied by the root of its weight."""
        parts = [(target.task(self.robot, q), np.sqrt(weight)) for target, weight in level]
        return VelocityTask(np.vstack([r * t.J for t, r in parts]), np.concatenate([r * t.w for t, r in parts]))

    def _damping(self, tasks: list[VelocityTask]) -> list[float]:
        """Return the damping of each task; the posture task is linear and needs only the minimum."""
        if self.method != "damped":
            return [0.0] * len(tasks)
        errors = [float(np.linalg.norm(t.w)) for t in tasks[: len(self.levels)]]
        return [float(np.hypot(MIN_DAMPING, e / np.sqrt(2.0))) for e in errors] + [MIN_DAMPING] * (
            len(tasks) - len(errors)
        )

    def _solve(self, tasks: list[VelocityTask], damping: list[float]) -> Array:
        """Return the step (nv,) of the tasks in order of priority."""
        if self.method != "transpose":
            return prioritised(tasks, damping)
        J, w = np.vstack([t.J for t in tasks]), np.concatenate([t.w for t in tasks])
        direction = J.T @ w
        effect = J @ direction
        # step of minimum error along J'w; the factor alpha of S1 may be up to twice as large
        return np.asarray(direction * float(effect @ w) / max(float(effect @ effect), 1e-300))


def _levels(
    frame_targets: list[FrameTarget], weights: Mapping[str, float], priorities: Mapping[str, int]
) -> list[list[tuple[FrameTarget, float]]]:
    """Return targets and weights by priority."""
    names = [target.frame for target in frame_targets]
    for table, option in ((weights, "weights"), (priorities, "priorities")):
        unknown = sorted(set(table) - set(names))
        if unknown:
            raise InputError(f"{option} of {unknown[0]!r}, which is no target; targets are {', '.join(names)}")
    invalid = [f"{name} = {weights[name]}" for name in weights if not real(weights[name], f"weight of {name!r}") > 0.0]
    if invalid:
        raise InputError(f"weights: {invalid[0]}; expected positive")
    ranks = sorted({priorities.get(name, 0) for name in names})
    return [
        [(a, float(weights.get(a.frame, 1.0))) for a in frame_targets if priorities.get(a.frame, 0) == r] for r in ranks
    ]


def _reached(robot: Robot, q: Array, frame_targets: list[FrameTarget], tolerance: float) -> bool:
    """Whether all targets are reached at a configuration."""
    return all(max(target.errors(robot.frame_pose(q, target.frame))) <= tolerance for target in frame_targets)


def _result(robot: Robot, frame_targets: list[FrameTarget], tolerance: float, path: Array) -> InverseKinematics:
    q = path[-1]
    errors = {target.frame: target.errors(robot.frame_pose(q, target.frame)) for target in frame_targets}
    worst = max(errors, key=lambda name: max(errors[name]))
    reached, steps = max(errors[worst]) <= tolerance, len(path) - 1
    distance, angle = errors[worst]
    word = "reached" if reached else "missed"
    message = f"{word} after {steps} steps: {worst} is {distance:.3g} m and {angle:.3g} rad off"
    joints = zip(robot.joint_names, q[7:], robot.limits.lower, robot.limits.upper, strict=True)
    at_limit = [name for name, position, lower, upper in joints if position <= lower or position >= upper]
    if not reached and at_limit:
        message += f"; at their limits: {', '.join(at_limit)}"
    return InverseKinematics(q, reached, errors, steps, path, message)


def _checked(robot: Robot, q: ArrayLike, name: str) -> Array:
    """Return a configuration (nq,), or raise an error if its base quaternion has not unit length."""
    q = numbers(q, (robot.nq,), name).copy()
    norm = float(np.linalg.norm(q[3:7]))
    if abs(norm - 1.0) > 1e-6:
        raise InputError(f"{name}[3:7], the base quaternion w x y z, has the length {norm:.9g}; expected 1")
    return q
