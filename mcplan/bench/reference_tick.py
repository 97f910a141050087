"""Reference control tick for benchmarks, written with the public API, and its definition for all measured programs."""

import time
from dataclasses import asdict, dataclass, replace
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcplan.errors import SolverFailed
from mcplan.robot.robot import Robot
from mcplan.robot.terms import Terms
from mcplan.scene.contact import Contact
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.settings import QPSettings
from mcplan.whole_body.tasks.com import ComTask
from mcplan.whole_body.tasks.posture import PostureTask
from mcplan.whole_body.tasks.task import Task
from mcplan.whole_body.whole_body import WholeBodyQP


@dataclass(frozen=True)
class TickDefinition:
    """Double support in half-sitting; the centre of mass sways sideways: ``c* = c_0 + sway sin(2 pi frequency t) e_y``.

    Constraints: equation of motion; the six accelerations of each foot; ``|f_x|, |f_y| <= friction f_n`` at four
    corners per foot; bounds of the normal force of each foot; torque limits; velocity limits over one period. Costs:
    centre of mass, joint posture, ``force_weight |diag(force_scale) w|^2`` per foot with the wrench ``w`` at the origin
    and in the axes of the foot's link, and regularisation of all unknowns. There is no armature.

    Parameters
    ----------
    posture, patches : of the robot, and its patches in contact.
    dt : period, s.
    sway, frequency : amplitude and frequency of the centre of mass, m and Hz.
    friction : coefficient of the feet.
    contact_kp, contact_kd : feedback gains of the feet, 1/s² and 1/s.
    min_force, max_force : bounds of the normal force of each foot, N.
    com_weight, posture_weight : cost weights.
    kp : stiffness of both tasks, 1/s²; the damping is critical.
    force_weight, force_scale : weight of the wrench of a foot, and scale of each of its components.
    regularisation, torque_regularisation : weights of the squares of all unknowns, and of those that are torques.
    """

    posture: str = "half_sitting"
    patches: tuple[str, ...] = ("left_sole", "right_sole")
    dt: float = 1e-3
    sway: float = 0.02
    frequency: float = 0.5
    friction: float = 0.5
    min_force: float = 1.0
    max_force: float = 1000.0
    contact_kp: float = 100.0
    contact_kd: float = 20.0
    com_weight: float = 1.0
    posture_weight: float = 0.1
    kp: float = 10.0
    force_weight: float = 1e-5
    force_scale: tuple[float, ...] = (1.0, 1.0, 1e-3, 2.0, 2.0, 2.0)
    regularisation: float = 1e-8
    torque_regularisation: float = 1e-8

    @property
    def kd(self) -> float:
        """Critical damping of the tasks, 1/s."""
        return 2.0 * float(np.sqrt(self.kp))

    @property
    def wrench_weight(self) -> tuple[float, ...]:
        """Cost of each component of a foot's wrench squared."""
        return tuple(self.force_weight * scale**2 for scale in self.force_scale)

    def reference(self, t: float) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return the reference of the centre of mass at time t: displacement, velocity and acceleration (3,)."""
        w = 2 * np.pi * self.frequency
        s, c = np.sin(w * t), np.cos(w * t)
        y = np.array([0.0, self.sway, 0.0])
        return y * s, y * (w * c), y * (-w * w * s)

    def to_json(self) -> dict[str, Any]:
        """Return the definition as JSON values, for a peer."""
        return {**asdict(self), "kd": self.kd}


Array = NDArray[np.float64]


def without_armature(robot: Robot) -> Robot:
    """Return the robot without armature, as in the peers."""
    armature = np.zeros(robot.nv)
    armature.flags.writeable = False
    return replace(robot, tree=robot.tree._replace(armature=armature), _scratch=local())


def patch_contact(robot: Robot, patch: str, q: Array, friction: float, points: int) -> Contact:
    """Return the contact of a patch at its pose in q, with ``points`` points along the edges of its polygon."""
    terms = Terms(robot, [patch])
    terms.update(q, np.zeros(robot.nv))
    frame = terms.frame(patch)
    normal, x = -frame.R[:, 2], frame.R[:, 0]
    return Contact(
        patch=patch,
        support="floor",
        kind="surface",
        R=frame.R,
        p=frame.p,
        points=along_edges(robot.patches[patch].points, points),
        axes=np.column_stack([x, np.cross(normal, x), normal]),
        friction=friction,
        max_force=np.inf,
        max_moment=np.inf,
        selection=np.eye(6),
    )


def along_edges(corners: Array, count: int) -> Array:
    """Return ``count`` points on the edges of a polygon, the same number on each, corners included."""
    per_edge, rest = divmod(count, len(corners))
    if rest or not per_edge:
        raise ValueError(f"{count} points on {len(corners)} edges")
    share = np.arange(per_edge)[:, None] / per_edge
    following = np.roll(corners, -1, axis=0)
    return np.vstack([a + share * (b - a) for a, b in zip(corners, following, strict=True)])


@dataclass(frozen=True)
class TickTimes:
    """Clock times of ticks.

    Parameters
    ----------
    total : (ticks,) time from ``(q, v)`` to ``vd, tau, f``, including the check of residuals, µs.
    parts : (ticks,) times by name, µs: ``terms`` (dynamics and frames), ``fill`` (parameters), ``solve`` (with check).
    """

    total: Array
    parts: dict[str, Array]


class ReferenceTick:
    """The reference tick: it computes ``vd, tau, f`` from ``(q, v)``.

    Parameters
    ----------
    robot : a robot with the posture and patches of the definition.
    definition : definition of the tick.
    compiled : whether to solve the compiled form; otherwise ``problem.solve()`` of CVXPY.
    patches, points : patches in contact, and contact points of each; by default those of the definition, and 4.

    Attributes
    ----------
    q, v : state of the robot.
    """

    def __init__(
        self,
        robot: Robot,
        definition: TickDefinition | None = None,
        compiled: bool = True,
        patches: tuple[str, ...] | None = None,
        points: int = 4,
    ):
        self.robot = robot
        self.definition = d = definition or TickDefinition()
        names = d.patches if patches is None else patches
        links = {patch: robot.patches[patch].link for patch in names}
        self.q, self.v = robot.posture(d.posture), np.zeros(robot.nv)
        self.terms = Terms(robot, [*names, *links.values()])
        self.terms.update(self.q, self.v)
        self.contacts = [
            ContactConstraint(
                patch_contact(robot, patch, self.q, d.friction, points),
                kp=d.contact_kp,
                kd=d.contact_kd,
                min_force=d.min_force,
                max_force=d.max_force,
                faces=4,
                pyramid="circumscribed",
            )
            for patch in names
        ]
        self.com = ComTask(weight=d.com_weight, kp=d.kp, kd=d.kd)
        self.tasks: list[Task] = [self.com, PostureTask(self.q[7:], weight=d.posture_weight, kp=d.kp, kd=d.kd)]
        self._com_at_start = self.terms.com.copy()
        settings = QPSettings(
            dt=d.dt,
            acceleration_weight=d.regularisation,
            force_weight=d.regularisation,
            torque_weight=d.torque_regularisation,
            wrench_weight=d.wrench_weight,
            wrench_frame=links,
            position_limits=False,
            compiled=compiled,
            explain="never",
        )
        self.program = WholeBodyQP(robot, self.contacts, self.tasks, settings)

    def __call__(self, t: float) -> tuple[Array, Array, Array, tuple[float, float, float]]:
        """Return ``vd, tau, f`` at time t, and the times (µs) of terms, parameters, and solution with check."""
        displacement, self.com.velocity[:], self.com.acceleration[:] = self.definition.reference(t)
        np.add(self._com_at_start, displacement, out=self.com.position)
        begin = time.perf_counter()
        self.terms.update(self.q, self.v)
        terms_updated = time.perf_counter()
        self.program.update(self.terms, self.contacts, self.tasks)
        parameters_set = time.perf_counter()
        solution = self.program.solve()
        solved = time.perf_counter()
        if not solution.ok:
            raise SolverFailed(f"reference tick at t = {t:g} s: {solution.message}")
        return (
            solution.vd,
            solution.tau,
            solution.f,
            ((terms_updated - begin) * 1e6, (parameters_set - terms_updated) * 1e6, (solved - parameters_set) * 1e6),
        )

    def run(self, ticks: int, integrate: bool = True) -> TickTimes:
        """Run consecutive ticks; ``integrate``: whether to integrate the state between them (semi-implicit Euler)."""
        dt = self.definition.dt
        times = np.empty((ticks, 3))
        for i in range(ticks):
            vd, _, _, times[i] = self(i * dt)
            if integrate:
                self.v = self.v + dt * vd
                self.q = self.robot.integrate(self.q, self.v, dt)
        return TickTimes(times.sum(axis=1), dict(zip(("terms", "fill", "solve"), times.T, strict=True)))
