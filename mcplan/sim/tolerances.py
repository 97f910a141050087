"""How much a run may deviate, by the physics that made it."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Tolerances:
    """Allowed deviations; the limits themselves come from the robot and the plan.

    Parameters
    ----------
    eom : equation of motion, N and N m.
    integration : state against the integrated previous one, m, rad, m/s, rad/s.
    force : friction, unilateral and grasp limits, and points against wrenches, N and N m.
    torque, velocity, position : beyond the joint limits, N m, rad/s, rad.
    point : contact points against the patch that they belong to, m.
    com : recorded centre of mass, m.
    slip, turn : drift of a contact from where it began and from its planned place, m and rad.
    goal, goal_turn : last contacts against their planned place, m and rad.
    object : objects at the end against their place in the goal, m.
    stray_force, stray_time : what an unplanned contact may carry, N, and for how long it may carry more, s.
    fall : how far the centre of mass may sink below the lowest planned one, m.
    impact : time over which the load of a contact is averaged before it is held against the contact's limit, s; 0 for
        none. Of an impact the impulse is known; what force it takes is a matter of how long it lasts.
    """

    eom: float = 1e-6
    integration: float = 1e-9
    force: float = 2e-6
    torque: float = 2e-6
    velocity: float = 2e-6
    position: float = 2e-6
    point: float = 1e-6
    com: float = 1e-9
    slip: float = 1e-3
    turn: float = float(np.deg2rad(0.5))
    goal: float = 1e-3
    goal_turn: float = float(np.deg2rad(0.5))
    object: float = 5e-3
    stray_force: float = 5.0
    stray_time: float = 0.020
    fall: float = 0.20
    impact: float = 0.0


LOADED = 1.0
"""N; friction is judged at points that carry more than this normal force."""

EXACT = Tolerances(stray_force=0.0, stray_time=0.0)
"""For ``qp``: the certificate is that of the quadratic program, whose solver keeps constraints to 1e-6."""

PHYSICAL = Tolerances(
    point=2e-3, slip=1e-2, turn=float(np.deg2rad(3)), goal=1e-2, goal_turn=float(np.deg2rad(3)), position=1e-3,
    object=2e-2,
    impact=0.01,
)  # fmt: skip
"""For physics that the controller does not own: contacts give, and touch down where they touch down. What the back end
reports must explain the motion as exactly as in ``qp``: equation of motion, integration, cones."""

BY_PHYSICS = {"qp": EXACT, "contact": PHYSICAL, "mujoco": PHYSICAL}
