"""Tasks on contact forces and joint torques."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mcplan.errors import InputError
from mcplan.robot.terms import Terms
from mcplan.util.arguments import describe
from mcplan.util.text import summary
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.tasks.task import Array

AXES = ("world", "contact", "patch")
"""Axes in which a contact force can be given."""


class ContactForceTask:
    """``(R' w)_i = w*_i`` for chosen components i of a contact's wrench w at the patch origin, in axes ``R``.

    The program's unknowns are the forces ``f`` of the contact's points, or the wrench of a grasp; with ``w = G f`` the
    rows are ``A f = b``, ``A = (R' G)_i``. The task is weighed against other tasks, within the friction cone.

    Parameters
    ----------
    patch : name of the patch; it must be in contact.
    components : which of (force x, y, z, moment x, y, z).
    axes : ``world``; ``contact``: the axes (t1, t2, n) of its support (patch axes for a grasp); ``patch``: patch axes.
    weight : cost weight, 1/N² (1/(N m)² for moments): one number, or one per component.

    Attributes
    ----------
    wrench : (6,) reference of the wrench of the environment on the robot, N and N m. It may be changed at any time.
    """

    unknown = "force"
    diagonal = False

    __repr__ = summary

    def __init__(
        self,
        patch: str,
        components: Sequence[int] = (0, 1, 2),
        axes: str = "contact",
        weight: float | Array = 1e-2,
    ):
        if axes not in AXES:
            raise ValueError(f"task on the force of {patch}: axes {axes!r}, one of {', '.join(AXES)}")
        self.patch, self.axes, self.weight = patch, axes, weight
        self.components = np.asarray(components)
        if not np.isin(self.components, range(6)).all():
            raise InputError(f"task on the force of {patch}: components {describe(components)}, expected of 0 to 5")
        self.wrench = np.zeros(6)

    @property
    def frames(self) -> tuple[str, ...]:
        """The patch."""
        return (self.patch,)

    @property
    def dimension(self) -> int:
        """Number of components."""
        return len(self.components)

    @property
    def key(self) -> tuple:
        """Structure key; see `Task.key`."""
        return ("contact force", self.dimension)

    def rows(self, terms: Terms, contact: ContactConstraint) -> tuple[Array, Array]:
        """Return ``A (m, unknowns)`` and ``b (m,)``."""
        G = contact.wrench_map(terms)
        if self.axes != "world":
            in_patch = self.axes == "patch" or contact.shape.grasp
            R = terms.frame(self.patch).R if in_patch else contact.axes
            G = np.vstack([R.T @ G[:3], R.T @ G[3:]])
        return G[self.components], self.wrench[self.components]


class TorqueTask:
    """``tau = tau*`` for every joint, with the cost ``sum_j w_j (tau_j - tau*_j)²``.

    Parameters
    ----------
    joints : number of joints ``n``.
    weight : 1/(N m)²: one number, or one per joint; ``1 / limit²`` weighs every joint by its limit.

    Attributes
    ----------
    torque : (n,) reference, N m; zero until set. It may be changed at any time.
    """

    unknown = "torque"
    diagonal = True
    frames: tuple[str, ...] = ()

    __repr__ = summary

    def __init__(self, joints: int, weight: float | Array = 1e-4):
        self.weight = weight
        self.torque = np.zeros(joints)
        self._index = np.arange(joints)

    @property
    def dimension(self) -> int:
        """Number of joints."""
        return len(self.torque)

    @property
    def key(self) -> tuple:
        """Structure key; see `Task.key`."""
        return ("torque", self.dimension)

    def rows(self, terms: Terms) -> tuple[NDArray, Array]:
        """Return the indices in ``tau`` and the reference."""
        return self._index, self.torque
