"""Tasks of a robot in strict order, as least squares over accelerations, contact forces and torques.

    x = (vd, f, tau)                                                        (3.108)
    [M  -J'  -S'] x = -h                 equation of motion                 (3.109)
    [J   0    0 ] x = -Jdot v            contacts                           (3.60)
    [A   0    0 ] x = b                  tasks, level by level              (3.110)
    [0   0    1 ] x = 0                  least torques                      (3.112)

``f`` is what the environment exerts on the robot, along the directions that its contacts constrain. By algorithm 2
nothing bounds forces and torques; as a sequence of programs torques keep their limits.

Source: S1, sec. 3.10.4.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from mcplan.constraint.contact_rows import contact_rows
from mcplan.control.classical.hierarchy import Level, hierarchical_least_squares, sequence_of_programs
from mcplan.errors import InputError
from mcplan.model.robot import Robot
from mcplan.model.terms import Terms
from mcplan.scene.contact import Contact
from mcplan.short import short
from mcplan.whole_body.tasks.task import Task, unknown_of

Method = Literal["least squares", "programs"]


class TaskHierarchy:
    """Gives the torques that fulfil tasks in strict order, the first level first.

    Parameters
    ----------
    robot : Robot
    contacts : what holds; of a fixed base its ``fixed_base``.
    levels : tasks of the accelerations (`mcplan.Task`), of each level; within one they weigh what their weights say.
    method : ``least squares`` (algorithm 2), or ``programs`` (3.107), which keeps the torque limits.

    Raises
    ------
    InputError
        A task is about forces or torques, or the method is neither.
    """

    __repr__ = short

    def __init__(
        self,
        robot: Robot,
        contacts: Sequence[Contact],
        levels: Sequence[Sequence[Task]],
        method: Method = "least squares",
    ):
        if method not in ("least squares", "programs"):
            raise InputError(f"method {method!r}: expected 'least squares' or 'programs'")
        wrong = [type(task).__name__ for level in levels for task in level if unknown_of(task) != "vd"]
        if wrong:
            raise InputError(f"{wrong[0]} is no task of the accelerations")
        self.robot, self.contacts, self.levels, self.method = robot, tuple(contacts), [list(x) for x in levels], method
        self.frames = tuple(dict.fromkeys(frame for level in levels for task in level for frame in task.frames))

    def torque(self, t: float, terms: Terms, wrenches: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the torques (n,)."""
        for level in self.levels:
            for task in level:
                if (follow := getattr(task, "follow", None)) is not None:
                    follow(t)
        levels, n = self.programs(terms), self.robot.n
        if self.method == "least squares":
            return hierarchical_least_squares(levels)[-n:]
        limit = self.robot.limits.torque
        bounded = np.flatnonzero(np.isfinite(limit))
        G = np.zeros((len(bounded), np.shape(levels[0][0])[1]))
        G[np.arange(len(bounded)), G.shape[1] - n + bounded] = 1.0
        return sequence_of_programs(levels, np.vstack([G, -G]), np.tile(limit[bounded], 2))[-n:]

    def programs(self, terms: Terms) -> list[Level]:
        """Return ``A`` and ``b`` of every level at a state: motion and contacts, the tasks, least torques."""
        rows = contact_rows(self.robot, terms.q, terms.v, self.contacts)
        nv, k, n = self.robot.nv, len(rows), self.robot.n
        S = np.hstack([np.zeros((n, 6)), np.eye(n)])
        motion = np.hstack([terms.M, -rows.J.T, -S.T])
        still = np.hstack([rows.J, np.zeros((k, k + n))])
        levels: list[Level] = [(np.vstack([motion, still]), np.concatenate([-terms.h, -rows.bias]))]
        for level in self.levels:
            A, b = [np.zeros((0, nv))], [np.zeros(0)]
            for task in level:
                J, wish = task.rows(terms)
                matrix = np.eye(nv)[J] if task.diagonal else np.asarray(J)
                root = np.sqrt(np.broadcast_to(np.asarray(task.weight, float), (len(matrix),)))
                A.append(root[:, None] * matrix)
                b.append(root * wish)
            levels.append((np.hstack([np.vstack(A), np.zeros((sum(map(len, A)), k + n))]), np.concatenate(b)))
        return [*levels, (np.hstack([np.zeros((n, nv + k)), np.eye(n)]), np.zeros(n))]
