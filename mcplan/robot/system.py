"""Multi-body system of a robot and manipulated free objects (S0, sec. 11).

Coordinates and velocities of the objects follow those of the robot. The mass matrix is block diagonal; only contacts
couple the blocks. The Jacobian of a contact between robot and object is relative, so that its transpose applies the
contact force to one and the reaction to the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.robot.pose import cross, cross_matrix, rotation_from_quat
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

    A body's coordinates are those of its frame. ``M`` and ``h`` of its block follow from the Newton-Euler equations
    about the frame's origin, in world axes (S1 sec. 3.4)::

        m (a + wd x r + w x (w x r)) = f + m g        I wd + w x I w + m r x (a - g) = n

    with the acceleration ``a`` of the origin, the angular velocity ``w``, the centre of mass at ``r`` from the origin,
    ``I = I_c - m [r][r]`` with the inertia ``I_c`` about the centre of mass, and the external wrench ``(f, n)``.

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
        self._pairs = [(robot_frames.index(frame), names.index(body)) for frame, body in relative]
        self._allocate(robot.nq + 7 * len(bodies), system.nv)
        first = len(robot_frames)
        for i in range(len(bodies)):
            columns = slice(robot.nv + 6 * i, robot.nv + 6 * i + 6)
            self._J[first + i, :, columns] = np.eye(6)

    def update(self, q: ArrayLike, v: ArrayLike) -> None:
        """Compute all terms for the state (q, v) of the system."""
        robot, robot_terms = self._system.robot, self._robot
        self.q[:], self.v[:] = q, v
        robot_terms.update(self.q[: robot.nq], self.v[: robot.nv])
        for target, source in zip(self.arrays[2:], robot_terms.arrays[2:], strict=True):
            target[tuple(slice(size) for size in source.shape)] = source
        for i, body in enumerate(self._system.bodies):
            self._fill_body(i, body)
        for k, pair in enumerate(self._pairs, start=len(robot_terms.frame_names) + len(self._system.bodies)):
            self._fill_relative(k, *pair)

    def _fill_body(self, i: int, body: FreeBody) -> None:
        robot = self._system.robot
        q, rows = self.q[robot.nq + 7 * i :][:7], slice(robot.nv + 6 * i, robot.nv + 6 * i + 6)
        frame, v = self.frame(body.name), self.v[rows]
        frame.R[:], frame.p[:], frame.velocity[:] = rotation_from_quat(q[3:]), q[:3], v
        m, r, w = body.mass, frame.R @ body.com, v[3:]
        K, M, h = cross_matrix(r), self.M[rows, rows], self.h[rows]
        weight = np.array([0.0, 0.0, m * GRAVITY])
        M[0, 0] = M[1, 1] = M[2, 2] = m
        M[:3, 3:], M[3:, :3] = -m * K, m * K
        M[3:, 3:] = frame.R @ body.inertia @ frame.R.T - m * K @ K
        h[:3] = m * cross(w, cross(w, r)) + weight
        h[3:] = cross(w, M[3:, 3:] @ w) + cross(r, weight)

    def _fill_relative(self, k: int, frame_index: int, i: int) -> None:
        robot, body = self._system.robot, self.frame(self._system.bodies[i].name)
        absolute, relative = self.frame(self.frame_names[frame_index]), self.frame(self.frame_names[k])
        r, w = absolute.p - body.p, body.velocity[3:]
        transport = np.eye(6)
        transport[:3, 3:] = -cross_matrix(r)
        relative.R[:], relative.p[:] = absolute.R, absolute.p
        relative.J[:] = absolute.J
        relative.J[:, robot.nv + 6 * i : robot.nv + 6 * i + 6] = -transport
        relative.velocity[:] = absolute.velocity - transport @ body.velocity
        relative.bias[:] = absolute.bias
        relative.bias[:3] -= cross(w, cross(w, r))
