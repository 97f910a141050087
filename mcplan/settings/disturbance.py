"""Settings of simulated disturbances unknown to the controller: pushes, payloads, model errors, noise."""

from typing import Annotated

from pydantic import Field

from mcplan.scene.spec import NotNegative, Positive, Spec, Triple


class Push(Spec):
    """A constant force on a link during an interval."""

    link: str
    """Link or patch."""
    force: Triple
    """Force in world axes, N."""
    start: NotNegative
    duration: Positive
    """Beginning and duration of the interval, s."""
    point: Triple = (0.0, 0.0, 0.0)
    """Point of application, in the link's frame, m."""


class Payload(Spec):
    """A point mass on a link, from the beginning."""

    link: str
    """Link that carries it."""
    mass: Positive
    """Mass, kg."""
    com: Triple = (0.0, 0.0, 0.0)
    """Position of the mass in the link's frame, m."""


class Imperfections(Spec):
    """Random model errors and noise of the simulation, drawn from the run's seed.

    Errors are drawn uniformly from ``[-error, error]`` once per body and run, noise from a normal distribution at each
    step.
    """

    mass_scale: Positive = 1.0
    mass_error: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Factor ``mass_scale (1 + error)`` on mass and inertia of every link, with one error per link."""
    friction_scale: Positive = 1.0
    friction_error: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Factor ``friction_scale (1 + error)`` on the friction of every surface, bar and object, with one error each."""
    ground_height: NotNegative = 0.0
    ground_tilt: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    """Errors of surfaces without contact at the start: shift along the normal, m, and rotation about both horizontal
    axes through the centre, rad; drawn separately for each surface."""
    torque_noise: NotNegative = 0.0
    """Standard deviation of each joint torque, as a fraction of its limit."""
    torque_delay: NotNegative = 0.0
    """Delay of the joint torques, s; rounded to steps."""
    position_noise: NotNegative = 0.0
    velocity_noise: NotNegative = 0.0
    """Standard deviation of every measured position (m, rad) and velocity (m/s, rad/s), those of the base included."""
