"""The motion between two stances as plan files write it."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, field_validator

from mcplan.scene.spec import NotNegative, Spec, Triple


class CourseSpec(Spec):
    """How a patch in the air goes along, see `mcplan.planning.transition.transition.Course`."""

    patch: str
    leader: Literal["own", "body"]
    lift: Triple = (0.0, 0.0, 0.0)
    approach: Triple = (0.0, 0.0, 0.0)
    leaves: bool = False
    meets: bool = False
    waits: bool = False


class NearSpec(Spec):
    """Where bodies come nearest."""

    distance: float | None = None
    between: tuple[str, ...] = ()


class LawSpec(Spec):
    """When a segment is where, see `mcplan.motion.law.Law`; each node is a line ``t s sd sdd``."""

    kept: Annotated[float, Field(ge=0, le=1)] = 1.0
    nodes: Annotated[tuple[str, ...], Field(min_length=2, max_length=1000)]

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
    """A motion of the whole body from rest to rest; ``knots`` are postures q, each a line of numbers."""

    times: Annotated[tuple[NotNegative, ...], Field(min_length=6, max_length=1000)]
    knots: Annotated[tuple[str, ...], Field(min_length=6, max_length=1000)]
    courses: tuple[CourseSpec, ...] = ()
    near: NearSpec = NearSpec()
    missed: NotNegative = 0.0
    held: bool = True
    law: LawSpec | None = None
    unpaced: str = ""

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
    parts: bool = False
    segments: Annotated[tuple[SegmentSpec, ...], Field(min_length=1, max_length=2)]
