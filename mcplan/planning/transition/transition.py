"""Transitions between stances: what the planner finds, the certificate judges, and the controller follows.

A transition is one or two segments, each on contacts that stay closed. A contact that opens divides them: up to there
the body goes over what will bear it; after it a patch that has nowhere to go yet is lifted clear. A segment is a curve
of degree five through knots of the whole body, and says of each patch in the air how it goes along. It goes from rest
to rest; where the robot walks without coming to rest, it begins or ends as it passes its stance (`BoundaryState`).
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
    v, vd : (nv,) velocity and acceleration of the posture.
    velocity, acceleration : (3,) of the centre of mass.
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
        """Rates of the posture."""
        return self.v, self.vd

    @property
    def centre(self) -> tuple[np.ndarray, np.ndarray]:
        """Rates of the centre of mass."""
        return self.velocity, self.acceleration

    def along(self, rate: float, change: float) -> "BoundaryState":
        """Return the derivatives by the parameter s of the path, gone along with the rates sd and sdd."""
        v, velocity = self.v / rate, self.velocity / rate
        vd, acceleration = self.vd - change * v, self.acceleration - change * velocity
        return BoundaryState(v, vd / rate**2, velocity, acceleration / rate**2)


class ClosestApproach(NamedTuple):
    """Closest approach of bodies along a segment: distance (m; None: nothing is near), and the two bodies."""

    distance: float | None
    bodies: tuple[str, ...]


NO_APPROACH = ClosestApproach(None, ())


@dataclass(frozen=True, eq=False)
class SwingSpec:
    """Swing of a patch along a segment.

    Attributes
    ----------
    patch : its name.
    lead : its reference: a separate path, which the knots follow too (``own``), or the knots (``body``).
    lift : (3,) along the normal of the support that it leaves, m; zero where it comes from the air.
    approach : (3,) along the normal of the support that it comes to, from where it comes down, m.
    lifts_off : whether it rests on its old support at the beginning.
    target : the contact that it comes to, None where it stays in the air.
    hold : whether that contact closes in a later transition of its limb: until then it stays above it.
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
    """A motion of the whole body.

    Attributes
    ----------
    contacts : closed all along, where they are at its end.
    times : (k,) s since it began, the first 0, at the nominal speed.
    q : (k, nq) postures at these times.
    com : (k, 3) centres of mass of these (m).
    courses : of patches that leave a support or come to one; all others in the air go as the body takes them.
    objects : {name: (7,)} where objects that it moves are at its end.
    near : closest approach of bodies.
    missed : greatest deficit of clearance (m); 0 where there is none.
    worst : where that is.
    held : whether its contacts hold the robot all along, at rest, about as easily as at its ends.
    law : its time parameterization; None is the nominal speed.
    retiming_failure : why no time parameterization was found.
    begin, finish : states at its ends, derivatives by the nominal time; None is rest.
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
        """Nominal duration (s): the end of its path."""
        return float(self.times[-1])

    @property
    def time(self) -> float:
        """How long it takes (s)."""
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
        """Whether it begins or ends in motion."""
        return self.begin is not None or self.finish is not None

    @property
    def shortfall(self) -> str:
        """Deficit of a motion that is in collision, as text."""
        where = f"between {' and '.join(self.worst.bodies)}" if self.worst.bodies else "at the contacts"
        return f"{1000 * self.missed:.0f} mm are missing {where}, {100 * self.worst.share:.0f} % along it"

    def course(self, patch: str) -> SwingSpec | None:
        """Return the course of a patch, None where it has none."""
        return next((course for course in self.courses if course.patch == patch), None)


@dataclass(frozen=True, eq=False)
class Transition:
    """The motion from one stance to the next.

    Attributes
    ----------
    patch : that is set down or taken away, None where contacts stay.
    segments : in their order.
    ramp : how long the force of the patch takes to sink before it opens, or its limit to rise after it closed (s).
    parts : whether a patch that has opened leaves its support before the next transition.
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
        """Without the time that it takes until a support is felt (s).

        At a quick pace the force of a patch that opens sinks while the body still goes to what will bear it.
        """
        first = self.segments[0]
        sinks = first.law is not None and any(contact.patch == self.patch for contact in first.contacts)
        going = first.time if sinks else 0.0
        return sum(segment.time for segment in self.segments) + max(self.ramp - going, 0.0)

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
        """Where bodies come nearest."""
        known = [segment.near for segment in self.segments if segment.near.distance is not None]
        return min(known, key=lambda near: near.distance or 0.0, default=ClosestApproach(None, ()))

    @property
    def missed(self) -> float:
        """Greatest deficit of its clearance (m); 0 where there is none."""
        return max(segment.missed for segment in self.segments)

    def summary(self) -> str:
        """Return how long it takes and how near bodies come: ``2.3 s, 12 mm``."""
        near = self.near.distance
        return f"{self.duration:.1f} s" + ("" if near is None else f", {1e3 * near:z.0f} mm")

    def __repr__(self) -> str:
        near = self.near.distance
        what = "shift" if self.patch is None else self.patch
        clearance = "-" if near is None else f"{1e3 * near:z.0f} mm"
        return f"Transition({what}, {self.duration:.2f} s, clearance {clearance})"
