"""Transitions between stances: found by the planner, judged by the certificate, executed by the controller.

A transition has one or two segments, each on constant contacts. A contact that opens divides it: in the first segment
the body shifts over the remaining contacts; in the second, a patch without a next contact is lifted clear of its
support. A segment is a quintic spline through whole-body knots, with the swings of patches in the air. It begins and
ends at rest, unless the robot passes a stance in motion (`BoundaryState`).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from mcplan.core.rigid_body.tree import GRAVITY
from mcplan.motion.spline import PostureSpline, Spline
from mcplan.motion.time_parameterization import TimeParameterization
from mcplan.planning.transition.knots import NO_VIOLATION, PathViolation
from mcplan.robot.robot import Robot
from mcplan.scene.contact import Contact
from mcplan.util.html_table import html_of, html_table
from mcplan.util.text import summary


class BoundaryState(NamedTuple):
    """State in which the robot passes a stance without coming to rest.

    Attributes
    ----------
    v, vd : (nv,) generalised velocity and acceleration.
    velocity, acceleration : (3,) of the centre of mass, m/s and m/s².
    """

    v: np.ndarray
    vd: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray

    @classmethod
    def at(cls, robot: Robot, q: np.ndarray, v: np.ndarray, vd: np.ndarray) -> "BoundaryState":
        """Return the state at a posture q (nq,) with v and vd (nv,)."""
        acceleration = robot.inverse_dynamics(q, v, vd)[:3] / robot.mass - [0.0, 0.0, GRAVITY]
        return cls(np.asarray(v, float), np.asarray(vd, float), robot.com_jacobian(q) @ v, acceleration)

    @property
    def posture(self) -> tuple[np.ndarray, np.ndarray]:
        """Generalised velocity and acceleration."""
        return self.v, self.vd

    @property
    def centre(self) -> tuple[np.ndarray, np.ndarray]:
        """Velocity and acceleration of the centre of mass."""
        return self.velocity, self.acceleration

    def along(self, rate: float, change: float) -> "BoundaryState":
        """Return the derivatives by the path parameter s, with the time derivatives sd = ``rate``, sdd = ``change``."""
        v, velocity = self.v / rate, self.velocity / rate
        vd, acceleration = self.vd - change * v, self.acceleration - change * velocity
        return BoundaryState(v, vd / rate**2, velocity, acceleration / rate**2)


class ClosestApproach(NamedTuple):
    """Closest approach of bodies along a segment: distance (m; None: no bodies are near), and the two bodies."""

    distance: float | None
    bodies: tuple[str, ...]


NO_APPROACH = ClosestApproach(None, ())
"""Value for a segment without bodies that are near."""


@dataclass(frozen=True, eq=False)
class SwingSpec:
    """Swing of a patch along a segment.

    Attributes
    ----------
    patch : name of the patch.
    lead : what defines the reference of the patch: ``own``: a separate path, which the knots follow too; ``body``: the
        body motion through the knots.
    lift : (3,) displacement along the normal of the old support (m); zero if the patch starts in the air.
    approach : (3,) offset from the target, along its normal, from which the patch comes down (m).
    lifts_off : whether the patch rests on its old support at the beginning.
    target : the new contact; None if the patch stays in the air.
    hold : whether the patch waits above the target, which closes in a later transition of the limb.
    """

    patch: str
    lead: Literal["own", "body"]
    lift: np.ndarray
    approach: np.ndarray
    lifts_off: bool = False
    target: Contact | None = None
    hold: bool = False


@dataclass(frozen=True, eq=False)
class Segment:
    """A motion of the whole body on constant contacts.

    Attributes
    ----------
    contacts : closed contacts, at their poses at the end of the segment.
    times : (k,) times of the knots at the nominal speed, the first 0 (s).
    q : (k, nq) postures at these times.
    com : (k, 3) centres of mass of the postures (m).
    courses : swings of patches that leave or reach a support; all other patches in the air move with the body.
    objects : {name: (7,)} poses of moved objects at the end; None if no object moves.
    near : closest approach of bodies.
    missed : greatest clearance deficit (m); 0 if there is none.
    worst : share of the path and bodies of the greatest deficit.
    held : whether the robot is in static equilibrium everywhere, with margins similar to those at the ends.
    law : time parameterization; None: nominal speed.
    retiming_failure : reason why no time parameterization was found.
    begin, finish : states at both ends, derivatives by the nominal time; None: at rest.
    """

    contacts: tuple[Contact, ...]
    times: np.ndarray
    q: np.ndarray
    com: np.ndarray
    courses: tuple[SwingSpec, ...] = ()
    objects: dict[str, np.ndarray] | None = None
    near: ClosestApproach = NO_APPROACH
    missed: float = 0.0
    worst: PathViolation = NO_VIOLATION
    held: bool = True
    law: TimeParameterization | None = None
    retiming_failure: str = ""
    begin: BoundaryState | None = None
    finish: BoundaryState | None = None

    __repr__ = summary

    @property
    def duration(self) -> float:
        """Duration (s) at the nominal speed."""
        return float(self.times[-1])

    @property
    def time(self) -> float:
        """Duration (s) with the time parameterization."""
        return self.duration if self.law is None else self.law.duration

    @cached_property
    def posture(self) -> PostureSpline:
        """The curve of the whole body."""
        begin, finish = (end and end.posture for end in (self.begin, self.finish))
        return PostureSpline(self.times, self.q, begin, finish)

    @cached_property
    def centre(self) -> Spline:
        """The curve of the centre of mass."""
        begin, finish = (end and end.centre for end in (self.begin, self.finish))
        return Spline(self.times, self.com, begin, finish)

    @property
    def passes(self) -> bool:
        """Whether the segment begins or ends in motion."""
        return self.begin is not None or self.finish is not None

    @property
    def shortfall(self) -> str:
        """Clearance deficit of a motion in collision as text."""
        location = f"between {' and '.join(self.worst.bodies)}" if self.worst.bodies else "at the contacts"
        return f"{1000 * self.missed:.0f} mm are missing {location}, {100 * self.worst.share:.0f} % along it"

    def course(self, patch: str) -> SwingSpec | None:
        """Return the swing of a patch, or None."""
        return next((course for course in self.courses if course.patch == patch), None)


@dataclass(frozen=True, eq=False)
class Transition:
    """The motion from one stance to the next.

    Attributes
    ----------
    patch : the patch whose contact is added or removed; None if the contacts stay the same.
    segments : the segments in order.
    ramp : duration of the force ramp of the patch (s): to zero before its contact opens, or up to its limit after it
        closes.
    parts : whether the patch of an opened contact leaves its support before the next transition.
    """

    patch: str | None
    segments: tuple[Segment, ...]
    ramp: float = 0.0
    parts: bool = False

    def _repr_html_(self) -> str:
        """Return its segments as a table for notebooks."""
        rows = (
            (k, segment.time, segment.near.distance, " and ".join(segment.near.bodies))
            for k, segment in enumerate(self.segments)
        )
        return html_of(self, html_table(["segment", "takes (s)", "least distance (m)", "between"], rows))

    @property
    def duration(self) -> float:
        """Duration (s), without waiting for touchdown.

        With a time parameterization the force of an opening patch ramps down while the body is still shifting.
        """
        first = self.segments[0]
        unloads = first.law is not None and any(contact.patch == self.patch for contact in first.contacts)
        unload_time = first.time if unloads else 0.0
        return sum(segment.time for segment in self.segments) + max(self.ramp - unload_time, 0.0)

    @property
    def start(self) -> np.ndarray:
        """Posture (nq,) at its beginning."""
        return self.segments[0].q[0]

    @property
    def end(self) -> np.ndarray:
        """Posture (nq,) at its end."""
        return self.segments[-1].q[-1]

    @property
    def near(self) -> ClosestApproach:
        """Closest approach of bodies over all segments."""
        distances = [segment.near for segment in self.segments if segment.near.distance is not None]
        return min(distances, key=lambda near: near.distance or 0.0, default=ClosestApproach(None, ()))

    @property
    def missed(self) -> float:
        """Greatest clearance deficit (m); 0 if there is none."""
        return max(segment.missed for segment in self.segments)

    def summary(self) -> str:
        """Return duration and smallest distance of bodies: ``2.3 s, 12 mm``."""
        distance = self.near.distance
        return f"{self.duration:.1f} s" + ("" if distance is None else f", {1e3 * distance:z.0f} mm")

    def __repr__(self) -> str:
        distance = self.near.distance
        subject = "shift" if self.patch is None else self.patch
        clearance = "-" if distance is None else f"{1e3 * distance:z.0f} mm"
        return f"Transition({subject}, {self.duration:.2f} s, clearance {clearance})"
