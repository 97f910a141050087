"""Interface of engines that recompute a run: coordinates, samples, distances, and the joints of a URDF.

An engine gets the robot of the record: every link with its own mass, and every movable joint with its own coordinate,
including locked and mimic joints. ``joints.py`` adds couplings and rotor inertias for all engines. So the engine's
model is a plain tree, and a new engine needs one file only.

The base has a free joint (in Pinocchio, a translation followed by a ball joint). State and velocity are::

    x = [base x y z, base quaternion w x y z, joints]     u = [velocity in world axes, rotation in base axes, rates]

Translation and rotation are integrated separately, so that ``x`` moves in R³ x SO(3), as in the run. A free flyer of
Pinocchio would take a twist in base axes, whose exponential is another curve.

Sources: MuJoCo, Computation, "floating objects"; Featherstone 2008, sec. 4.4 on free and ball joints.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from mcplan.record.records import RobotRecord, RunRecord

STANDARD_GRAVITY = 9.81
"""m/s², along -z."""


class EngineSample(NamedTuple):
    """Result of an engine for one sample, with m moving joints and P patches.

    Parameters
    ----------
    force : (6+m,) generalised force ``M a + h - sum J' w`` without rotor inertias, in the axes of ``u``; N, N m.
    com : (3,) centre of mass, m.
    R, p : (P, 3, 3), (P, 3) poses of the patch frames in the world, m.
    twist : (P, 6) velocity of the patch origin and rotation, world axes, m/s and rad/s.
    kinetic, potential : energy of the links, J.
    """

    force: np.ndarray
    com: np.ndarray
    R: np.ndarray
    p: np.ndarray
    twist: np.ndarray
    kinetic: float
    potential: float


BASE = "the base"
"""Name of the floating base in the joints of a URDF."""


class JointDescription(NamedTuple):
    """A joint read by an engine from a URDF, all joints at zero, in the axes of the base.

    Parameters
    ----------
    body : (10,) rigid body moved by the joint, see ``body_row``.
    place, axis : (3,) m, and unit vector; zero for the base.
    lower, upper, velocity, torque : limits, infinite if there is none, NaN if the engine does not report them;
        rad, rad/s, N m, or m, m/s, N.
    """

    body: np.ndarray
    place: np.ndarray
    axis: np.ndarray
    lower: float = np.nan
    upper: float = np.nan
    velocity: float = np.nan
    torque: float = np.nan


def body_row(mass: float, com: np.ndarray, inertia: np.ndarray, R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return mass, ``m c`` and inertia about the base origin (xx yy zz xy xz yz) of a link: (10,).

    The rows of the links of a rigid body add up to that of the body.

    Parameters
    ----------
    mass, com, inertia : kg; (3,) m; (3,3) kg m² about the centre of mass, in the link's axes.
    R, p : pose of the link in the base frame.
    """
    c = R @ com + p
    about = R @ inertia @ R.T + mass * ((c @ c) * np.eye(3) - np.outer(c, c))
    return np.concatenate([[mass], mass * c, about[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]])


class Unsupported(Exception):  # noqa: N818 - reads as the sentence that it is
    """An engine has no equivalent of a shape; the message names it."""


class EngineDistances(Protocol):
    """The collision shapes of a run in an engine that measures distances."""

    def distances(
        self, x: np.ndarray, objects: Mapping[str, np.ndarray], pairs: Iterable[tuple[str, str]], max_distance: float
    ) -> np.ndarray:
        """Return the signed distance of every pair of names, m; at most ``max_distance``.

        Parameters
        ----------
        x : (7+m,) state as in ``Engine``.
        objects : pose (7,) of every free object, position and quaternion w x y z.
        pairs : names of links, and of links, surfaces, bars, obstacles or objects.
        """


class Engine(ABC):
    """A robot in another engine.

    Parameters
    ----------
    robot : record of the robot; the joints of ``moving_joints`` have coordinates, in this order.
    patches : names of the P patches.
    """

    name: str
    """Name of the engine, as in ``--with``."""

    version: str
    """Version of its library."""

    @abstractmethod
    def __init__(self, robot: RobotRecord, patches: Sequence[str]): ...

    @abstractmethod
    def sample(self, x: np.ndarray, u: np.ndarray, a: np.ndarray, wrench: np.ndarray) -> EngineSample:
        """Recompute one sample.

        Parameters
        ----------
        x, u, a : (7+m,), (6+m,), (6+m,) state, velocity, and ``a = du/dt``; the quaternion has length one. A ball joint
            counts as three of the m joints; it has four numbers in x, its unit quaternion w x y z, and in u its angular
            velocity in the child's axes.
        wrench : (P, 6) wrenches of the environment on the patches at their origins, world axes.
        """

    @abstractmethod
    def energy(self, x: np.ndarray, u: np.ndarray) -> float:
        """Return kinetic and potential energy of the links, J."""

    @abstractmethod
    def integrate(self, x: np.ndarray, u: np.ndarray, dt: float) -> np.ndarray:
        """Return the state after the velocity u has acted for dt (s)."""

    @staticmethod
    @abstractmethod
    def read_urdf(urdf: str) -> dict[str, JointDescription]:
        """Return every moving joint by name, and ``BASE``, as read by the engine from a URDF text.

        Raises
        ------
        ValueError
            The engine refuses the text.
        """

    @staticmethod
    def shapes(record: RunRecord) -> EngineDistances | None:
        """Return the collision shapes of a run; None if the engine does not measure distances.

        Raises
        ------
        RunError
            The shapes in the run cannot be read.
        Unsupported
            The engine refuses one of them.
        """
        return None


def moving_joints(robot: RobotRecord) -> list[int]:
    """Return the indices of the joints that are not fixed, in depth-first order.

    Both engines store their joints in this order; that of the record may differ.
    """
    children: dict[int, list[int]] = {}
    for index, joint in enumerate(robot.joints):
        children.setdefault(joint.parent, []).append(index)
    order, stack = [], list(reversed(children.get(0, [])))
    while stack:
        index = stack.pop()
        joint = robot.joints[index]
        if joint.kind != "fixed":
            order.append(index)
        stack += reversed(children.get(joint.child, []))
    return order
