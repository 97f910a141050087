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
    plan : the robot counts as fallen if its centre of mass is ``FALL`` below the lowest planned one.
    dt : simulation step, s.
    max_infeasible_time : s, length of the time window in which failures of the control program are counted.
    """

    def __init__(self, plan: Plan, dt: float, max_infeasible_time: float):
        com = plan.scenario.robot.com(np.array([stance.q for stance in plan.stances]))
        self._min_com_height = -np.inf if plan.scenario.robot.fixed else float(com[:, 2].min()) - FALL
        self._window = max(1, round(max_infeasible_time / dt))
        self._step, self._failures = 0, deque[int]()  # steps in which the program failed, within the window
        self._failed_since, self._first_message = 0.0, ""

    def fell(self, com: np.ndarray, reference: np.ndarray) -> str:
        """Return a message if the robot has fallen, otherwise an empty string.

        Parameters
        ----------
        com, reference : (3,) centre of mass and its reference, m.
        """
        position = com.tolist()
        if position[2] < self._min_com_height:
            return f"fell: the centre of mass is at a height of {position[2]:.2f} m"
        distance = math.dist(position, reference.tolist())
        return f"fell: the centre of mass is {distance:.2f} m from its reference" if distance > MAX_COM_ERROR_M else ""

    def no_solution(self, t: float, status: int, message: str, violation: float = np.inf) -> str:
        """Count one step; return a message if the program failed in more than half of the steps of the window.

        An unsolved program (status other than 0) counts as a failure only if its constraint ``violation`` is not
        negligible: rounding errors at the contacts of a robot at rest are no failure.
        """
        self._step += 1
        if self._failures and self._failures[0] <= self._step - self._window:
            self._failures.popleft()
        if status != 0 and violation > NEGLIGIBLE_VIOLATION:
            if not self._failures:
                self._failed_since, self._first_message = t, message
            self._failures.append(self._step)
        if 2 * len(self._failures) <= self._window:
            return ""
        return f"the whole-body program has no solution since t = {self._failed_since:.3f} s: {self._first_message}"
