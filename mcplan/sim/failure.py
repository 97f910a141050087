"""Failure detection in a simulation: falls, and a whole-body program that stays infeasible."""

import math
from collections import deque

import numpy as np

from mcplan.certificate.tolerances import FALL, NEGLIGIBLE_VIOLATION
from mcplan.planning.plan import Plan

MAX_COM_ERROR_M = 0.3
"""Distance of the centre of mass from its reference beyond which the robot counts as fallen."""


class FailureDetector:
    """Detects failures of a simulation.

    Parameters
    ----------
    plan : Plan; the robot has fallen if its centre of mass is far below the lowest planned one.
    dt : s.
    max_infeasible_time : s, length of the time window in which failures of the program are counted.
    """

    def __init__(self, plan: Plan, dt: float, max_infeasible_time: float):
        com = plan.scenario.robot.com(np.array([stance.q for stance in plan.stances]))
        self._lowest = -np.inf if plan.scenario.robot.fixed else float(com[:, 2].min()) - FALL
        self._failed: deque[bool] = deque(maxlen=max(1, round(max_infeasible_time / dt)))
        self._count = 0
        self._since, self._why = 0.0, ""

    def fell(self, com: np.ndarray, reference: np.ndarray) -> str:
        """Return a message if the robot has fallen, else an empty text; centre of mass and its reference (3,), m."""
        position = com.tolist()
        if position[2] < self._lowest:
            return f"fell: the centre of mass is at a height of {position[2]:.2f} m"
        distance = math.dist(position, reference.tolist())
        return f"fell: the centre of mass is {distance:.2f} m from its reference" if distance > MAX_COM_ERROR_M else ""

    def no_solution(self, t: float, status: int, message: str, violation: float = np.inf) -> str:
        """Count failures of the program (status 0: solved); return a message once half of the window has failed.

        A step fails only if its constraint ``violation`` is not negligible, whatever its status: rounding errors of the
        contacts of a robot at rest are no failure.
        """
        failed = status != 0 and violation > NEGLIGIBLE_VIOLATION
        if failed and not self._count:
            self._since, self._why = t, message
        window = self._failed.maxlen or 0
        if len(self._failed) == window:
            self._count -= self._failed[0]
        self._failed.append(failed)
        self._count += self._failed[-1]
        if 2 * self._count <= window:
            return ""
        return f"the whole-body program has no solution since t = {self._since:.3f} s: {self._why}"
