"""Physics ``qp``: the accelerations of the whole-body program come true."""

import numpy as np

from mcplan.core.manifold import integrate
from mcplan.model.robot import Robot
from mcplan.sim.physics import Action, Outcome


class QpPhysics:
    """Integrates the commanded accelerations on R³ x SO(3) x R^n.

        v+ = v + dt vd,   q+ = integrate(q, v+, dt)

    The contacts exert what the program says, so nothing slips or falls unless the program lets it. Semi-implicit Euler:
    first order in dt.

    Parameters
    ----------
    robot : Robot
    q : (7+n,) first configuration.
    v : (6+n,) first velocity; None is rest.

    Source: S0, sec. 7 (the simulation by the program's accelerations).
    """

    name = "qp"

    def __init__(self, robot: Robot, q: np.ndarray, v: np.ndarray | None = None):
        self.q = np.array(q, float)
        self.v = np.zeros(robot.nv) if v is None else np.array(v, float)

    def step(self, action: Action, dt: float) -> Outcome:
        """Advance the state by dt (s)."""
        self.v = self.v + dt * action.vd
        before, self.q = self.q, np.empty_like(self.q)
        integrate(before, self.v, dt, self.q)
        return Outcome(action.vd, None, action.wrenches, action.forces, action.active)
