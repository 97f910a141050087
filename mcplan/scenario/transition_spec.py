"""The motion between two stances as plan files write it."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, field_validator

from mcplan.scene.spec import NotNegative, Spec, Triple


class CourseSpec(Spec):
    """How a patch in the air goes along, see `mcplan.planning.transition.transition.Course`."""

    patch: str
    """Its name."""
    leader: Literal["own", "body"]
    """On a path of its own, or as the knots take it."""
    lift: Triple = (0.0, 0.0, 0.0)
    """Along the normal that it leaves, m."""
    approach: Triple = (0.0, 0.0, 0.0)
    """Along the normal that it comes to, m."""
    leaves: bool = False
    """Whether it rests on its old support at the beginning."""
    meets: bool = False
    """Whether it comes to its new contact."""
    waits: bool = False
    """Whether that contact closes later."""


class NearSpec(Spec):
    """Where bodies come nearest."""

    distance: float | None = None
    """m."""
    between: tuple[str, ...] = ()
    """Names of the two bodies."""


class LawSpec(Spec):
    """When a segment is where, see `mcplan.motion.time_law.Law`; each node is a line ``t s sd sdd``."""

    kept: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Part of the reserve of its pace that it keeps."""
    nodes: Annotated[tuple[str, ...], Field(min_length=2, max_length=1000)]
    """Time, place on the path, rate and change of the rate."""

    def rows(self, length: float) -> np.ndarray:
        """Return the nodes (k, 4) of a law along a path of a length (s).

        Raises
        ------
        ValueError
            They are no law.
        """
        rows = [[float(word) for word in line.split()] for line in self.nodes]
        if any(len(row) != 4 for row in rows) or not np.isfinite(rows).all():
            raise ValueError("expected four finite numbers in each line: t s sd sdd")
        law = np.array(rows)
        if law[0, 0] != 0.0 or law[0, 1] != 0.0 or (np.diff(law[:, :2], axis=0) <= 0.0).any():
            raise ValueError("expected t and s that rise from 0")
        if not abs(law[-1, 1] - length) <= 1e-9 * length:
            raise ValueError(f"s ends at {law[-1, 1]:g}, expected {length:g}, where the times of the knots end")
        if not (law[:, 2] > 0.0).all():
            raise ValueError("a rate sd is not positive")
        return law


class SegmentSpec(Spec):
    """A motion of the whole body; ``knots`` are postures q, each a line of numbers.

    It begins and ends at rest, but where a stance has ``v`` and ``vd``: that is passed so.
    """

    times: Annotated[tuple[NotNegative, ...], Field(min_length=6, max_length=1000)]
    """Of the knots, s, from 0 on."""
    knots: Annotated[tuple[str, ...], Field(min_length=6, max_length=1000)]
    """Postures of the whole body."""
    courses: tuple[CourseSpec, ...] = ()
    """Of patches that leave a support or come to one."""
    near: NearSpec = NearSpec()
    """Where bodies come nearest."""
    missed: NotNegative = 0.0
    """By how much the least distance is missed, m."""
    held: bool = True
    """Whether its contacts hold the robot all along, at rest."""
    law: LawSpec | None = None
    """When it is where; without one, its knots are at their times."""
    unpaced: str = ""
    """Why it has no law where its plan has a pace."""

    @field_validator("times")
    @classmethod
    def _rising(cls, times: tuple[float, ...]) -> tuple[float, ...]:
        if times[0] != 0.0 or (np.diff(times) <= 0.0).any():
            raise ValueError("expected times that rise from 0")
        return times

    def postures(self) -> np.ndarray:
        """Return the knots (k, nq).

        Raises
        ------
        ValueError
            They are not numbers, not as many in each line, or not as many as there are times.
        """
        if len(self.knots) != len(self.times):
            raise ValueError(f"{len(self.knots)} knots and {len(self.times)} times; each knot has its time")
        rows = [[float(word) for word in line.split()] for line in self.knots]
        if len({len(row) for row in rows}) > 1:
            raise ValueError("knots have different numbers of values")
        q = np.array(rows)
        if not np.isfinite(q).all():
            raise ValueError("a knot holds a number that is not finite")
        return q


class TransitionSpec(Spec):
    """The motion from the stance before."""

    ramp: NotNegative = 0.0
    """How long a force sinks before its contact opens, or its limit rises after it closed, s."""
    parts: bool = False
    """Whether a patch that has opened leaves its support."""
    segments: Annotated[tuple[SegmentSpec, ...], Field(min_length=1, max_length=2)]
    """One or two."""
