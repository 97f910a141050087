"""Physics ``qp``: integration of the accelerations of the whole-body program."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from mcplan.core.rigid_body.manifold import integrate
from mcplan.errors import InputError
from mcplan.record.world import World
from mcplan.robot.pose import quat_from_rotation
from mcplan.robot.robot import Robot
from mcplan.scene.environment import FreeObject
from mcplan.sim.physics import Action, StepOutcome
from mcplan.util.text import summary


class QpPhysics:
    """Physics back end that integrates the accelerations of the whole-body program on R³ x SO(3) x R^n.

        v+ = v + dt vd,   q+ = integrate(q, v+, dt)

    Contact forces are those of the program, so contacts slip and the robot falls only if the program allows it.
    The scheme is semi-implicit Euler, of first order in dt.

    Parameters
    ----------
    robot : the simulated robot.
    q : (7+n,) initial configuration.
    v : (6+n,) initial velocity; None: at rest.
    objects : free objects; those without accelerations in the program do not move.

    Source: S0, sec. 7 (the simulation by the program's accelerations).
    """

    name = "qp"

    __repr__ = summary

    def __init__(self, robot: Robot, q: np.ndarray, v: np.ndarray | None = None, objects: Sequence[FreeObject] = ()):
        self.object_q = np.array([[*thing.p, *quat_from_rotation(thing.R)] for thing in objects]).reshape(-1, 7)
        self.object_v = np.zeros((len(objects), 6))
        self.q = np.array(q, float)
        self.v = np.zeros(robot.nv) if v is None else np.array(v, float)

    @classmethod
    def of_world(cls, world: World) -> "QpPhysics":
        """Return the back end of a world."""
        return cls(world.robot, world.q, objects=world.environment.objects)

    def step(self, action: Action | ArrayLike, dt: float = 1e-3) -> StepOutcome:
        """Advance the state by dt (s).

        Raises
        ------
        InputError
            The action consists of torques only, without accelerations.
        """
        if not isinstance(action, Action):
            raise InputError("physics qp integrates the accelerations of a program; torques drive contact and mujoco")
        self.v = self.v + dt * action.vd
        q_start, self.q = self.q, np.empty_like(self.q)
        integrate(q_start, self.v, dt, self.q)
        if action.object_vd is not None:
            self.object_v = self.object_v + dt * action.object_vd
            self.object_q = self.object_q.copy()
            for pose, velocity in zip(self.object_q, self.object_v, strict=True):
                integrate(pose, velocity, dt, pose)
        return StepOutcome(action.vd, None, action.wrenches, action.forces, action.active, action.object_points)
