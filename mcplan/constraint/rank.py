"""How far contacts determine a robot's motion: the ranks of their Jacobian.

    J_c = [J_cb  J_cj]            rank J_c            independent constraints
                                  rank J_cb           constraints of the base; 6: the joints control where it is
                                  rank J_c - rank J_cb   internal constraints: limbs that cannot move against each other

Source: S1, sec. 2.10.4, eq. 2.255-2.256 and figures 2.16-2.17.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mcplan.arguments import each, instance
from mcplan.constraint.contact_rows import contact_rows
from mcplan.model.robot import Robot
from mcplan.scene.contact import Contact

NEGLIGIBLE = 1e-7
"""Singular values below this share of the largest are rounding: rows are of the order of 1 m."""


@dataclass(frozen=True)
class StanceRank:
    """What the contacts of a stance constrain at a posture.

    Attributes
    ----------
    rows : constraints, dependent ones included.
    constraints : independent ones, ``rank J_c``.
    base : constraints of the base, ``rank J_cb``, 6 at most.
    freedom : directions in which the robot can still move, ``nv - rank J_c``.
    """

    rows: int
    constraints: int
    base: int
    freedom: int

    @property
    def base_controllable(self) -> bool:
        """Whether the joints alone can move the base in all directions."""
        return self.base == 6

    @property
    def internal(self) -> int:
        """Constraints between the limbs, ``rank J_c - rank J_cb``: as many internal forces can be chosen."""
        return self.constraints - self.base

    def __str__(self) -> str:
        controlled = "controllable" if self.base_controllable else f"controllable in {self.base} of 6 directions"
        return (
            f"{self.constraints} independent constraints, base {controlled}, {self.internal} internal, "
            f"{self.freedom} directions free"
        )


def stance_rank(robot: Robot, q: ArrayLike, contacts: Sequence[Contact]) -> StanceRank:
    """Return the ranks of a stance: how much its contacts hold, and what they leave free.

    Parameters
    ----------
    robot, q : Robot, and its posture (nq,).
    contacts : of the stance.
    """
    instance("stance_rank", "robot", robot, Robot)
    contacts = each("stance_rank", "contacts", contacts, Contact)
    J = contact_rows(robot, q, np.zeros(robot.nv), contacts).J
    constraints = _rank(J)
    return StanceRank(len(J), constraints, _rank(J[:, :6]), robot.nv - constraints)


def _rank(J: np.ndarray) -> int:
    if not J.size:
        return 0
    values = np.linalg.svd(J, compute_uv=False)
    return int(np.count_nonzero(values > NEGLIGIBLE * max(values[0], np.finfo(float).tiny)))
