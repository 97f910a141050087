"""What a run's pages and plots tell of its pace: how long motions were to take and took, and what bounds them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mcplan.planning.transition.bounding import NOTHING, Bound, bounds, shares
from mcplan.planning.transition.retiming import Retimer
from mcplan.sim.run import Run
from mcplan.view.reference import Reference

NAMED = 0.1
"""Part of a motion's time in which a limit bounds it, from which it is named."""


@dataclass(frozen=True)
class Motion:
    """The motion to one stance, as it was planned and as it went.

    Attributes
    ----------
    stance : index of the stance that it leads to.
    name : what changes there.
    begin, took : when it began, and how long it took (s from the run's start, s).
    planned : how long it was to take (s).
    bound : the part of its planned time in which each limit bounds it, the longest first.
    """

    stance: int
    name: str
    begin: float
    took: float
    planned: float
    bound: dict[str, float]


@dataclass(frozen=True, eq=False)
class PaceOfRun:
    """The pace of a run that followed a plan.

    Parameters
    ----------
    run : the run.
    """

    run: Run

    @cached_property
    def reference(self) -> Reference:
        """The motion that was to be followed."""
        return Reference(self.run)

    @property
    def name(self) -> str:
        """How its scenario calls the pace: ``slow``, ``swift``, or what of the limits it uses."""
        given = self.run.scenario.document.data.get("control", {}).get("pace", "slow")
        return given if isinstance(given, str) else "swift, with margins of its own"

    @property
    def bounded(self) -> bool:
        """Whether it has laws of time, which something bounds."""
        return self._retimer is not None and self.reference.known

    @cached_property
    def _retimer(self) -> Retimer | None:
        settings = self.run.scenario.transition_settings
        return None if settings.pace is None else Retimer(self.run.scenario.robot, settings)

    @cached_property
    def bounds(self) -> list[list[tuple[Bound, ...]]]:
        """What bounds each segment of the transition to each stance; nothing at the pace ``slow``."""
        transitions = [stance.transition for stance in self.run.plan.stances]
        if self._retimer is None:
            return [[] for _ in transitions]
        return [[] if t is None else [bounds(self._retimer, segment) for segment in t.segments] for t in transitions]

    @cached_property
    def motions(self) -> list[Motion]:
        """The motions that the run has begun, in order."""
        run, found = self.run, []
        aims = np.array([-1 if phase.stance is None else phase.stance for phase in run.record.phases])[run.phase]
        for k, stance in enumerate(run.plan.stances):
            rows = np.flatnonzero(aims == k)
            if stance.transition is None or not len(rows):
                continue
            times: dict[str, float] = {}
            for segment, bounding in zip(stance.transition.segments, self.bounds[k], strict=False):
                for what, part in shares(bounding, segment.time).items():
                    times[what] = times.get(what, 0.0) + part * segment.time
            whole = sum(times.values())
            bound = {what: time / whole for what, time in sorted(times.items(), key=lambda item: -item[1])}
            begin = float(run.t[rows[0]] - run.t[0])
            motion = Motion(k, stance.title, begin, len(rows) * run.dt, stance.transition.duration, bound)
            found.append(motion)
        return found

    @property
    def planned(self) -> float:
        """How long all motions were to take that the run has begun (s)."""
        return sum(motion.planned for motion in self.motions)

    @property
    def took(self) -> float:
        """How long they took (s)."""
        return sum(motion.took for motion in self.motions)

    def behind(self) -> tuple[np.ndarray, np.ndarray]:
        """Return when motions began or ended (s), and by how much longer all until then had taken than planned (s)."""
        motions = self.motions
        if not motions:
            return np.zeros(0), np.zeros(0)
        t = [motions[0].begin, *(motion.begin + motion.took for motion in motions)]
        return np.array(t), np.cumsum([0.0, *(motion.took - motion.planned for motion in motions)])

    def bound_at(self, samples: np.ndarray) -> list[Bound | None]:
        """Return what bounds the planned motion at samples of the run; None where nothing moves by a law."""
        run, found = self.run, []
        stretches = self.reference.stretches
        begins = np.array([stretch.begin for stretch in stretches])
        known = {
            id(segment): part
            for stance, parts in zip(run.plan.stances, self.bounds, strict=True)
            if stance.transition is not None
            for segment, part in zip(stance.transition.segments, parts, strict=False)
        }
        for k in samples.tolist():
            stretch = stretches[int(np.searchsorted(begins, k, side="right")) - 1]
            here = known.get(id(stretch.segment), ())
            elapsed = float(run.t[k]) - stretch.t
            over = stretch.segment is None or elapsed > stretch.segment.time
            found.append(None if over or not here else min(here, key=lambda bound: abs(bound.t - elapsed)))
        return found


def said(bound: dict[str, float]) -> str:
    """Return in words what bounds a motion: ``torque, RLEG_JOINT3 60 %; friction, left_sole 20 %``."""
    named = [(what, part) for what, part in bound.items() if part >= NAMED and what != NOTHING]
    return "; ".join(f"{what} {100 * part:.0f} %" for what, part in named)
