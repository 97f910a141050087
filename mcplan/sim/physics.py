"""Interface of physics back ends: state, actions, and the outcome of each step.

Back ends are independent of plan and controller, so that they can validate both.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from mcplan.errors import InputError
from mcplan.record.world import World


class PointForces(NamedTuple):
    """K contact points of a physics back end, in world axes.

    Parameters
    ----------
    labels : (K, 2) integers: ``link`` and ``patch``.
    values : (K, 9): ``xyz``, ``normal`` and ``force``.
    """

    labels: np.ndarray
    values: np.ndarray

    @classmethod
    def of(
        cls, link: ArrayLike, patch: ArrayLike, xyz: ArrayLike, normal: ArrayLike, force: ArrayLike
    ) -> "PointForces":
        """Return the points with these links and patches (K,), positions, normals and forces (K, 3)."""
        return cls(np.stack([link, patch], axis=1, dtype=np.int64), np.concatenate([xyz, normal, force], axis=1))

    def joined(self, *others: "PointForces") -> "PointForces":
        """Return these points and those of others."""
        return PointForces(*map(np.concatenate, zip(self, *others, strict=True)))

    @property
    def link(self) -> np.ndarray:
        """Indices (K,) into the list of the robot's links followed by the objects."""
        return self.labels[:, 0]

    @property
    def patch(self) -> np.ndarray:
        """Indices (K,) into the recorder's patches; -1: unplanned contact."""
        return self.labels[:, 1]

    @property
    def xyz(self) -> np.ndarray:
        """Positions (K, 3), m."""
        return self.values[:, :3]

    @property
    def normal(self) -> np.ndarray:
        """Unit normals (K, 3), away from the support."""
        return self.values[:, 3:6]

    @property
    def force(self) -> np.ndarray:
        """Forces (K, 3) on the link, N."""
        return self.values[:, 6:]


class Action(NamedTuple):
    """Commands for one step. Torque-driven back ends use ``tau`` and ``external``, ``qp`` the expected values.

    tau : (n,) joint torques (N m).
    vd : (6+n,) accelerations expected by a model-based controller.
    wrenches, forces : contact forces expected by the controller, for each patch: the wrench (6,) at the patch origin,
        and the forces (k, 3) at the contact's points; world axes.
    active : names of the patches that the controller takes to be in contact.
    external : (6+n,) external generalised force on the robot, world axes; None: zero.
    object_vd : (O, 6) expected accelerations of the free objects, only for ``qp``; None: there are no objects.
    object_points : expected contact forces between the objects and their supports, only for ``qp``.
    """

    tau: np.ndarray
    vd: np.ndarray
    wrenches: Mapping[str, np.ndarray]
    forces: Mapping[str, np.ndarray]
    active: tuple[str, ...]
    external: np.ndarray | None = None
    object_vd: np.ndarray | None = None
    object_points: PointForces | None = None


def action_of(action: Action | ArrayLike, n: int) -> Action:
    """Return ``action``; joint torques (n,) are converted to an action with zero expected accelerations and no forces.

    Raises
    ------
    InputError
        The torques have the wrong shape or are not finite.
    """
    if isinstance(action, Action):
        return action
    tau = np.asarray(action, float)
    if tau.shape != (n,) or not np.isfinite(tau).all():
        raise InputError(f"step: torques of shape {tau.shape}, expected ({n},), all finite")
    return Action(tau, np.zeros(6 + n), {}, {}, ())


class StepOutcome(NamedTuple):
    """Motion and forces during a step from the state (q, v); a back end does not change it afterwards.

    vd : (6+n,) mean acceleration: v+ = v + dt vd.
    tau_ext : (6+n,) generalised forces other than the commanded torques and the wrenches on patches; None: zero.
    wrenches : wrench on each patch, (6,) at the patch origin in world axes.
    forces : forces on each patch at the contact's points, (k, 3), or all contact points of the back end.
    active : names of the patches in contact.
    object_points : contact points of the objects that are not among ``forces``.
    wrench_table : (P, 6) ``wrenches`` in the order of the recorder's patches, zero without contact, if there is one.
    """

    vd: np.ndarray
    tau_ext: np.ndarray | None
    wrenches: Mapping[str, np.ndarray]
    forces: Mapping[str, np.ndarray] | PointForces
    active: tuple[str, ...]
    object_points: PointForces | None = None
    wrench_table: np.ndarray | None = None


class Physics(Protocol):
    """Interface of a physics back end.

    name : name of the back end, as in scenarios.
    q, v : (7+n,), (6+n,) state of the robot.
    object_q, object_v : (O, 7), (O, 6) state of the free objects: position and quaternion of their frames, and linear
        and angular velocity at the frame origin, world axes.
    """

    name: str
    q: np.ndarray
    v: np.ndarray

    @property
    def object_q(self) -> np.ndarray:
        """Poses (O, 7) of the objects."""
        ...

    @property
    def object_v(self) -> np.ndarray:
        """Velocities (O, 6) of the objects."""
        ...

    def step(self, action: Action | ArrayLike, dt: float = 1e-3) -> StepOutcome:
        """Advance ``q`` and ``v`` by dt (s); torque-driven back ends also accept joint torques (n,) as the action."""
        ...


Maker = Callable[[World], Physics]
"""Factory of a back end: constructs it from the world that it simulates."""
