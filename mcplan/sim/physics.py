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
    """K contact points of a physics back end, in the world.

    Parameters
    ----------
    link : (K,) index into the robot's links, then the objects.
    patch : (K,) index into the recorder's patches, -1 for an unplanned contact.
    xyz : (K, 3) m.
    normal : (K, 3) unit, away from the support.
    force : (K, 3) on the link, N.
    """

    link: np.ndarray
    patch: np.ndarray
    xyz: np.ndarray
    normal: np.ndarray
    force: np.ndarray


class Action(NamedTuple):
    """Commands for one step; each back end uses the fields that apply to it.

    tau : (n,) joint torques (N m).
    vd : (6+n,) accelerations expected by a model-based controller.
    wrenches, forces : expected contact forces by patch; (6,) at the patch origin and (k,3) at the contact's points,
        world axes.
    active : patches in contact according to the controller.
    external : (6+n,) external generalised force on the robot, world axes, or None.
    object_vd : (O,6) expected accelerations of the free objects; None: there are none.
    object_points : expected forces of their supports.
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
    """Return the action; joint torques (n,) become an action without expected accelerations and forces.

    Raises
    ------
    InputError
        The torques have another shape, or are not finite.
    """
    if isinstance(action, Action):
        return action
    tau = np.asarray(action, float)
    if tau.shape != (n,) or not np.isfinite(tau).all():
        raise InputError(f"step: torques of shape {tau.shape}, expected ({n},), all finite")
    return Action(tau, np.zeros(6 + n), {}, {}, ())


class StepOutcome(NamedTuple):
    """Motion and forces of a step from the state (q, v).

    vd : (6+n,) with v+ = v + dt vd.
    tau_ext : (6+n,) generalised forces other than the commanded torques and the wrenches on patches, or None.
    wrenches : by patch, (6,) at the patch origin in world axes.
    forces : by patch (k,3) at the contact's points, or the contact points of the back end.
    active : patches in contact.
    object_points : contact points of the objects that are not among ``forces``.
    """

    vd: np.ndarray
    tau_ext: np.ndarray | None
    wrenches: Mapping[str, np.ndarray]
    forces: Mapping[str, np.ndarray] | PointForces
    active: tuple[str, ...]
    object_points: PointForces | None = None


class Physics(Protocol):
    """A back end of the simulation.

    q, v : state of the robot.
    object_q, object_v : (O, 7), (O, 6) of the free objects: position and quaternion of their frames, linear and angular
        velocity there, world axes.
    """

    name: str
    q: np.ndarray
    v: np.ndarray

    @property
    def object_q(self) -> np.ndarray:
        """Poses of the objects."""
        ...

    @property
    def object_v(self) -> np.ndarray:
        """Velocities of the objects."""
        ...

    def step(self, action: Action | ArrayLike, dt: float = 1e-3) -> StepOutcome:
        """Advance ``q`` and ``v`` by dt (s), under an action, or under joint torques (n,) if driven by torques."""
        ...


Maker = Callable[[World], Physics]
"""Factory of a back end."""
