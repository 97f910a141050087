"""What happens to a robot in a simulation that its controller knows nothing of."""

from typing import Annotated

from pydantic import Field

from mcplan.scene.spec import NotNegative, Positive, Spec, Triple


class Push(Spec):
    """A force on a link for a while."""

    link: str
    """A link or a patch."""
    force: Triple
    """World axes, N."""
    start: NotNegative
    duration: Positive
    """s."""
    point: Triple = (0.0, 0.0, 0.0)
    """Where it acts, in the link's frame, m."""


class Payload(Spec):
    """A mass that hangs on a link from the beginning, as a point."""

    link: str
    """Its name."""
    mass: Positive
    """kg."""
    com: Triple = (0.0, 0.0, 0.0)
    """Where it is, in the link's frame, m."""


class Imperfections(Spec):
    """How the simulated world differs from what planner and controller believe, drawn from the run's seed.

    Errors are drawn evenly from ``[-error, error]`` once per thing and run, noise from a normal distribution at each
    step.
    """

    mass_scale: Positive = 1.0
    mass_error: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Mass and inertia of every link times ``mass_scale (1 + error)``, an error for each link."""
    friction_scale: Positive = 1.0
    friction_error: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Friction of every surface, bar and object times ``friction_scale (1 + error)``, an error for each."""
    ground_height: NotNegative = 0.0
    ground_tilt: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    """Surfaces on which nothing stands at the start: shifted along their normal, m, and turned about both horizontal
    axes of their middle, rad, by errors of their own."""
    torque_noise: NotNegative = 0.0
    """Standard deviation of each joint torque, as a fraction of its limit."""
    torque_delay: NotNegative = 0.0
    """How late the joints follow the commanded torques, s; to the nearest step."""
    position_noise: NotNegative = 0.0
    velocity_noise: NotNegative = 0.0
    """Standard deviation of what the controller measures of every position (m, rad) and velocity (m/s, rad/s), those of
    the base included."""
