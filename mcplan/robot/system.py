"""Multi-body system of a robot and manipulated free objects (S0, sec. 11).

Coordinates and velocities of the objects follow those of the robot. The mass matrix is block diagonal; only contacts
couple the blocks. The Jacobian of a contact between robot and object is relative, so that its transpose applies the
contact force to one and the reaction to the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mcplan.core.rigid_body.free_bodies import fill_free_bodies
from mcplan.core.rigid_body.terms import fill_terms
from mcplan.robot.robot import JointLimits, Robot
from mcplan.robot.terms import Terms


@dataclass(frozen=True, eq=False)
class FreeBody:
    """A free-floating rigid body.

    Parameters
    ----------
    name : name of the object, and of its frame.
    mass : kg.
    com : (3,) centre of mass in the body's frame, m.
    inertia : (3, 3) inertia about the centre of mass, in the axes of the body's frame, kg m².
    """

    name: str
    mass: float
    com: np.ndarray
    inertia: np.ndarray


@dataclass(frozen=True, eq=False)
class System:
    """A robot and free bodies.

    Parameters
    ----------
    robot : the robot.
    bodies : the free bodies, in the order of their coordinates.
    """

    robot: Robot
    bodies: tuple[FreeBody, ...] = ()

    @property
    def nv(self) -> int:
        """Size of a velocity: the robot's, and six for each body."""
        return self.robot.nv + 6 * len(self.bodies)

    @property
    def joint_names(self) -> Sequence[str]:
        """Names of the robot's joints."""
        return self.robot.joint_names

    @property
    def limits(self) -> JointLimits:
        """Limits of the robot's joints."""
        return self.robot.limits


def relative_frame(frame: str, body: str) -> str:
    """Return the name of a frame of the robot whose motion is relative to a body."""
    return f"{frame} on {body}"


class SystemTerms(Terms):
    """``Terms`` of a system: its ``q`` and ``v`` are those of the robot, followed by those of each body.

    A body's coordinates are those of its frame; its block of ``M`` and ``h`` is in world axes about the frame's origin,
    see `core.rigid_body.free_bodies`.

    ``J`` and ``velocity`` of a relative frame are those of the robot's frame minus those of the coincident point of the
    body; ``J vd + bias`` is zero while both move together. Pose and wrenches are in world axes. Centre of mass and
    momentum are those of the robot without the bodies.

    Parameters
    ----------
    system : the robot and the bodies.
    frames : names of links and patches.
    relative : pairs (frame, body) for relative frames, whose names are those of `relative_frame`.
    """

    def __init__(self, system: System, frames: Sequence[str] = (), relative: Sequence[tuple[str, str]] = ()):
        robot, bodies = system.robot, system.bodies
        self._system = system
        self._robot = Terms(robot, [*frames, *(frame for frame, _ in relative)])
        robot_frames = self._robot.frame_names
        self.frame_names = (
            *robot_frames,
            *(body.name for body in bodies),
            *(relative_frame(*pair) for pair in relative),
        )
        names = [body.name for body in bodies]
        pairs = [(robot_frames.index(frame), names.index(body)) for frame, body in relative]
        self._bodies = (
            np.array([body.mass for body in bodies], float),
            np.array([body.com for body in bodies], float).reshape(-1, 3),
            np.array([body.inertia for body in bodies], float).reshape(-1, 3, 3),
            np.array(pairs, np.int64).reshape(-1, 2),
        )
        self._allocate(robot.nq + 7 * len(bodies), system.nv)
        self._robot.set_state(self.q[: robot.nq], self.v[: robot.nv])
        first = len(robot_frames)
        for i in range(len(bodies)):
            columns = slice(robot.nv + 6 * i, robot.nv + 6 * i + 6)
            self._J[first + i, :, columns] = np.eye(6)
        self._body_arguments = self.q, self.v, *self._bodies, *self._robot.arrays[2:], *self.arrays[2:]

    def update(self, q: ArrayLike, v: ArrayLike) -> None:
        """Compute all terms for the state (q, v) of the system."""
        self.q[:], self.v[:] = q, v
        fill_terms(*self._robot.arguments)
        fill_free_bodies(*self._body_arguments)
