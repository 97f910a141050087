"""Settings of the simulation: the section ``simulation`` of a scenario."""

from typing import Annotated

from pydantic import Field

from mcplan.scene.spec import NotNegative, Positive, Spec
from mcplan.settings.disturbance import Imperfections, Payload, Push
from mcplan.util.back_ends import PhysicsName


class ContactLaw(Spec):
    """Contact model of the physics ``contact``."""

    compliance: Annotated[float, Field(gt=0, le=1)] = 1e-4
    """Compliance of hard contacts, as a fraction of the effective inverse mass. It makes the forces of redundant
    contacts unique, without visible motion."""
    recovery: Annotated[float, Field(gt=0, le=1)] = 0.1
    recovery_speed: NotNegative = 0.2
    """Fraction of a penetration removed per step, and largest speed of that correction, m/s."""
    restitution: Annotated[float, Field(ge=0, le=1)] = 0.0
    bounce_speed: NotNegative = 0.02
    """Coefficient of restitution, for impacts faster than ``bounce_speed``, m/s."""
    soft: bool = False
    stiffness: Positive = 1e5
    damping: NotNegative = 1e3
    """Springs and dampers instead of hard contacts: N/m and N s/m per contact point, in all directions."""
    grasp_reach: NotNegative = 0.03
    """Largest distance from the surface of a bar at which a hand can close on it, m."""


class SimulationSettings(Spec):
    """Back end, time step, disturbances and model errors of a simulation."""

    physics: PhysicsName = "qp"
    """Back end: ``qp`` integrates the accelerations of the controller's program, with contacts exact; ``contact`` and
    ``mujoco`` are rigid-body physics driven by torques."""
    dt: Annotated[float, Field(gt=0, le=0.02)] = 0.001
    """Time step, s."""
    time_limit: Positive = 300.0
    """Duration after which the run stops even if the plan is not finished, s."""
    max_infeasible_time: Positive = 0.5
    """The run fails if the program is infeasible for more than half of this time, s."""

    contact: ContactLaw = ContactLaw()
    """Contact model of the physics ``contact``."""
    joint_friction: Annotated[float, Field(ge=0, le=1)] = 0.0
    joint_damping: NotNegative = 0.0
    """Coulomb friction as a fraction of the torque limit, and damping in N m s/rad, of every joint, in addition to
    those of the URDF."""
    torque_limits: bool = True
    """Whether motor torques are clipped to their limits (``contact``)."""
    pushes: tuple[Push, ...] = ()
    """External forces."""
    payloads: tuple[Payload, ...] = ()
    """Masses unknown to the controller."""
    imperfections: Imperfections = Imperfections()
    """Model errors and noise. These and the four settings above need a physics driven by torques: ``contact`` or
    ``mujoco``."""
