"""Inverse kinematics: a configuration in which frames reach target poses (S1 section 2.9.3, algorithm 1).

::

    import mcplan as mc
    robot = mc.load_robot("hrp2")
    q = robot.posture("half_sitting")
    soles = {name: robot.frame_pose(q, name) for name in ("left_sole", "right_sole")}
    targets = soles | {"right_hand": [0.45, -0.2, 0.8]}
    answer = mc.inverse_kinematics(robot, targets, start=q)
    assert answer.reached, answer.message
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

LARGEST_STEP = 0.5
"""rad or m: largest change of a coordinate in one step, for which the linearisation is accurate enough."""

BIAS = 1e-3
"""Damping at zero error. With the error e its square grows by ``|e|^2 / 2``, about the curvature of the forward
kinematics, which matters if a target is out of reach (Sugihara 2011)."""

STALLED = 1e-10
"""Step size (rad, m) below which the search stops."""


@dataclass(frozen=True, eq=False)
class InverseKinematics:
    """Result of inverse kinematics.

    Attributes
    ----------
    q : (nq,) configuration, joints within their limits.
    reached : whether all targets are reached.
    errors : of each target: m, and rad of the shortest rotation.
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
    fixed_base : only the joints move; default: whether the robot has a fixed base.
    method : ``damped`` (its damping falls with the error), ``pseudo_inverse`` (S1 algorithm 1), ``transpose``
        (S1 eq. 2.231).
    gain : step length factor: k of S1 eq. 2.230 and 2.237; for ``transpose`` relative to the optimal step.
    weights : of the squared errors of targets, 1 by default.
    priorities : 0 for the first priority (default), 1 for the next, which acts in the null space of the first, and so
        on (S1 eq. 2.207). Targets of equal priority are weighted.
    posture : (nq,) desired joints, at the last priority (S1 eq. 2.197).
    rotation : chart whose parameter difference is the rotation error, as in S1's algorithm 1; by default the shortest
        rotation, without singularities (S1 eq. 2.237).
    limits : keep the joints within their limits.
    tolerance : m and rad.
    max_iterations : largest number of steps from one start.
    attempts : largest number of starts: the given one, then its base with random joints. If all fail, the result is the
        one with the smallest error of the first priority, then of the second.
    seed : of the random joints.

    Raises
    ------
    InputError : an invalid target, name or option, or a singularity of the chart during the search. Unreachable targets
        raise no exception: see ``reached`` and ``message`` of the result.
    """
    aims = [frame_target(robot, name, value, rotation) for name, value in targets.items()]
    if not aims:
        raise InputError("inverse kinematics: no targets")
    if method not in ("damped", "pseudo_inverse", "transpose"):
        raise InputError(f"method {method!r}; expected damped, pseudo_inverse or transpose")
    gain, tolerance = numbers([gain, tolerance], (2,), "gain and tolerance").tolist()
    if not (0.0 < gain <= 1.0 and tolerance > 0.0 and max_iterations >= 1 and attempts >= 1):
        raise InputError(
            f"gain = {gain}, tolerance = {tolerance}, max_iterations = {max_iterations}, attempts = {attempts}; "
            "expected 0 < gain <= 1, tolerance > 0, and one or more of the others"
        )
    levels = _levels(aims, weights or {}, priorities or {})
    if method == "transpose" and (len(levels) > 1 or posture is not None):
        raise InputError("method 'transpose' has no priorities and no posture: use 'damped' or 'pseudo_inverse'")
    desired_posture = None if posture is None else _checked(robot, posture, "posture")
    search = _Search(robot, levels, desired_posture, method, limits, robot.fixed if fixed_base is None else fixed_base)
    q = robot.neutral() if start is None else _checked(robot, start, "start")
    found: list[InverseKinematics] = []
    random = np.random.default_rng(seed)
    while len(found) < attempts and not (found and found[-1].reached):
        found.append(_result(robot, aims, tolerance, search.path(q, aims, gain, tolerance, max_iterations)))
        q = np.concatenate([q[:7], robot.random_configuration(random)[7:]])

    def error_by_priority(answer: InverseKinematics) -> list[float]:
        worst = [max(max(answer.errors[aim.frame]) for aim, _ in level) for level in levels]
        return [0.0 if error <= tolerance else error for error in worst]

    return min(found, key=error_by_priority)


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

    def path(self, q: Array, aims: list[FrameTarget], gain: float, tolerance: float, max_steps: int) -> Array:
        """Return the configurations (., nq) from q on, until the targets are reached and the posture has converged."""
        before = np.zeros(self.robot.nv)
        path, max_step = [self.moved(q, before)], LARGEST_STEP
        for _ in range(max_steps):
            q = path[-1]
            reached_all = _reached(self.robot, q, aims, tolerance)
            if reached_all and self.posture is None:
                break
            dq = self.step(q, gain, max_step)
            # oscillating steps are too long for the linearisation; with unreachable targets they would never end
            max_step = 0.5 * max_step if before @ dq < 0.0 else min(LARGEST_STEP, 1.5 * max_step)
            before = dq
            if np.abs(dq).max() < (tolerance if reached_all else STALLED):
                break
            path.append(self.moved(q, dq))
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
        now = np.concatenate([np.zeros(6), q[7:]])
        low, high = self._lower - now, self._upper - now
        fixed, value = low >= high, np.zeros(self.robot.nv)
        while True:
            rest = [VelocityTask(np.where(fixed, 0.0, t.J), gain * t.w - t.J[:, fixed] @ value[fixed]) for t in tasks]
            dq = np.where(fixed, value, self._solve(rest, damping))
            dq *= min(1.0, max_step / max(float(np.abs(dq).max()), 1e-300))
            over = ~fixed & ((dq < low) | (dq > high))
            if not over.any():
                return dq
            value, fixed = np.where(over, np.clip(dq, low, high), value), fixed | over

    def moved(self, q: Array, dq: Array) -> Array:
        """Return q after a step, with joints clipped to their limits."""
        q = self.robot.integrate(q, dq, 1.0)
        q[7:] = np.clip(q[7:], self._lower[6:], self._upper[6:])
        return q

    def _level(self, q: Array, level: list[tuple[FrameTarget, float]]) -> VelocityTask:
        """Return the stacked tasks of one priority, each multiplied by the root of its weight."""
        parts = [(aim.task(self.robot, q), np.sqrt(weight)) for aim, weight in level]
        return VelocityTask(np.vstack([r * t.J for t, r in parts]), np.concatenate([r * t.w for t, r in parts]))

    def _damping(self, tasks: list[VelocityTask]) -> list[float]:
        """Return the damping of each task; the posture task is linear and needs only the minimum."""
        if self.method != "damped":
            return [0.0] * len(tasks)
        errors = [float(np.linalg.norm(t.w)) for t in tasks[: len(self.levels)]]
        return [float(np.hypot(BIAS, e / np.sqrt(2.0))) for e in errors] + [BIAS] * (len(tasks) - len(errors))

    def _solve(self, tasks: list[VelocityTask], damping: list[float]) -> Array:
        if self.method != "transpose":
            return prioritised(tasks, damping)
        J, w = np.vstack([t.J for t in tasks]), np.concatenate([t.w for t in tasks])
        pull = J.T @ w
        effect = J @ pull
        # the step along J'w of minimum error; S1's alpha converges up to twice that step
        return np.asarray(pull * float(effect @ w) / max(float(effect @ effect), 1e-300))


def _levels(
    aims: list[FrameTarget], weights: Mapping[str, float], priorities: Mapping[str, int]
) -> list[list[tuple[FrameTarget, float]]]:
    """Return targets and weights by priority."""
    names = [aim.frame for aim in aims]
    for table, what in ((weights, "weights"), (priorities, "priorities")):
        unknown = sorted(set(table) - set(names))
        if unknown:
            raise InputError(f"{what} of {unknown[0]!r}, which is no target; targets are {', '.join(names)}")
    bad = [f"{name} = {weights[name]}" for name in weights if not real(weights[name], f"weight of {name!r}") > 0.0]
    if bad:
        raise InputError(f"weights: {bad[0]}; expected positive")
    ranks = sorted({priorities.get(name, 0) for name in names})
    return [[(a, float(weights.get(a.frame, 1.0))) for a in aims if priorities.get(a.frame, 0) == r] for r in ranks]


def _reached(robot: Robot, q: Array, aims: list[FrameTarget], tolerance: float) -> bool:
    return all(max(aim.errors(robot.frame_pose(q, aim.frame))) <= tolerance for aim in aims)


def _result(robot: Robot, aims: list[FrameTarget], tolerance: float, path: Array) -> InverseKinematics:
    q = path[-1]
    errors = {aim.frame: aim.errors(robot.frame_pose(q, aim.frame)) for aim in aims}
    worst = max(errors, key=lambda name: max(errors[name]))
    reached, steps = max(errors[worst]) <= tolerance, len(path) - 1
    distance, angle = errors[worst]
    word = "reached" if reached else "missed"
    message = f"{word} after {steps} steps: {worst} is {distance:.3g} m and {angle:.3g} rad off"
    at = [n for n, x, a, b in zip(robot.joint_names, q[7:], robot.limits.lower, robot.limits.upper, strict=True)
          if x <= a or x >= b]  # fmt: skip
    if not reached and at:
        message += f"; at their limits: {', '.join(at)}"
    return InverseKinematics(q, reached, errors, steps, path, message)


def _checked(robot: Robot, q: ArrayLike, what: str) -> Array:
    q = numbers(q, (robot.nq,), what).copy()
    norm = float(np.linalg.norm(q[3:7]))
    if abs(norm - 1.0) > 1e-6:
        raise InputError(f"{what}[3:7], the base quaternion w x y z, has the length {norm:.9g}; expected 1")
    return q
