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


class SegmentSpec(Spec):
    """A motion of the whole body from rest to rest; ``knots`` are postures q, each a line of numbers."""

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
    """One or two, from rest to rest."""
