"""Pace of a run: planned and actual durations of motions, their active limits, and the planned reference.

The planned reference is the motion of the plan, shifted to the times at which the phases of the run began.
"""

from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mcplan.analysis.bounding import SMOOTHNESS, Bound, bounds, shares
from mcplan.analysis.plan_motion import place_along
from mcplan.planning.timing.retiming import Retimer
from mcplan.planning.transition.transition import Segment
from mcplan.record.run import Run
from mcplan.scene.contact import Contact

FIRST_PHASES, SECOND_PHASES = ("shift", "slide", "carry", "lift"), ("retract",)
"""Kinds of phases at the start of the first, and of the second, motion of a transition."""


@dataclass(frozen=True)
class Stretch:
    """Interval from sample ``begin``: the plan segment tracked from time ``t`` (s) on; None: ``q`` is held."""

    begin: int
    t: float
    segment: Segment | None
    q: np.ndarray

    def place(self, t: float) -> float:
        """Return the time along the segment at time t (s), held at its end."""
        assert self.segment is not None
        return place_along(self.segment, t - self.t)


@dataclass(frozen=True, eq=False)
class PlannedReference:
    """Planned reference at each sample of a run.

    The actual reference differed where a motion was replanned during the run (a notice of the run), and where the
    controller slowed down its reference because the robot fell behind.

    Parameters
    ----------
    run : the run; a custom controller did not follow it.
    """

    run: Run

    @cached_property
    def stretches(self) -> list[Stretch]:
        """Intervals of the run, in order; the first holds the start posture."""
        run, stances = self.run, self.run.plan.stances
        custom_states = {state.state for state in run.scenario.control.states if state.do is not None}
        found = [Stretch(0, float(run.t[0]), None, stances[0].q)]
        starts = np.concatenate([[0], np.flatnonzero(np.diff(run.phase)) + 1])
        for k in starts:
            phase = run.record.phases[run.phase[k]]
            kind = phase.name.split(" ")[0]
            transition = None if phase.stance is None else stances[phase.stance].transition
            if transition is None or phase.name in custom_states or kind not in (*FIRST_PHASES, *SECOND_PHASES):
                continue  # custom states do not follow the motion of the plan
            if kind in SECOND_PHASES and len(transition.segments) == 1:
                continue  # the limb keeps contact by another patch: no motion
            segment = transition.segments[0 if kind in FIRST_PHASES else -1]
            found.append(Stretch(int(k), float(run.t[k]), segment, segment.q[-1]))
        return found

    @property
    def known(self) -> bool:
        """Whether the run executed motions of the plan."""
        return len(self.stretches) > 1

    def com(self) -> np.ndarray:
        """Return the centre of mass of the planned reference, (N, 3), m."""
        robot, run = self.run.robot, self.run
        out = np.empty((len(run), 3))
        for stretch, end in self._with_ends():
            if stretch.segment is None:
                out[stretch.begin : end] = robot.com(stretch.q)
            else:
                centre = stretch.segment.centre
                out[stretch.begin : end] = [
                    centre.sample(stretch.place(float(t))).value for t in run.t[stretch.begin : end]
                ]
        return out

    def postures(self, rows: np.ndarray) -> np.ndarray:
        """Return the postures of the planned reference at some samples, (rows, nq)."""
        out = np.empty((len(rows), self.run.q.shape[1]))
        for stretch, end in self._with_ends():
            inside = np.flatnonzero((rows >= stretch.begin) & (rows < end))
            for i in inside:
                if stretch.segment is None:
                    out[i] = stretch.q
                else:
                    out[i] = stretch.segment.posture.sample(stretch.place(float(self.run.t[rows[i]]))).q
        return out

    def place(self, k: int, patch: str, q: np.ndarray) -> Contact | np.ndarray:
        """Return the reference of a patch at sample k: its planned contact, or in the air its pose (4, 4) in ``q``.

        A contact on a moving object has the pose of the patch in ``q``.
        """
        run = self.run
        if not run.active[k, run.patches.index(patch)]:
            return run.robot.frame_pose(q, patch)
        contact = run.plan.stances[run.stance_of(k, patch)].contact(patch)
        if contact.carrier is None or contact.carrier.name not in self._moving_objects(k):
            return contact
        X = run.robot.frame_pose(q, patch)
        return replace(contact, R=X[:3, :3], p=X[:3, 3])

    def _moving_objects(self, k: int) -> dict[str, np.ndarray]:
        """Return the final poses of the objects that the segment tracked at sample k moves."""
        i = bisect_right(self.stretches, k, key=lambda stretch: stretch.begin) - 1
        segment = self.stretches[i].segment
        return (segment.objects or {}) if segment is not None else {}

    def _with_ends(self) -> list[tuple[Stretch, int]]:
        ends = [stretch.begin for stretch in self.stretches[1:]] + [len(self.run)]
        return list(zip(self.stretches, ends, strict=True))


MIN_NAMED_SHARE = 0.1
"""Minimum share of a motion's time for naming an active limit."""


@dataclass(frozen=True)
class MotionTiming:
    """The motion to one stance: planned and actual timing.

    Attributes
    ----------
    stance : index of the stance that it leads to.
    name : of that stance: its change of contacts.
    begin, took : its start (s from the start of the run), and actual duration (s).
    planned : planned duration (s).
    bound : share of the planned time in which each limit is active, the longest first.
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
    def reference(self) -> PlannedReference:
        """Reference motion."""
        return PlannedReference(self.run)

    @property
    def name(self) -> str:
        """Pace as the scenario names it, or its shares of the limits."""
        pace = self.run.scenario.document.data.get("control", {}).get("pace", "fast")
        return pace if isinstance(pace, str) else "fast, with custom margins"

    @property
    def bounded(self) -> bool:
        """Whether motions have time parameterizations with active limits."""
        return self._retimer is not None and self.reference.known

    @cached_property
    def _retimer(self) -> Retimer | None:
        settings = self.run.scenario.transition_settings
        return None if settings.pace is None else Retimer(self.run.scenario.robot, settings)

    @cached_property
    def bounds(self) -> list[list[tuple[Bound, ...]]]:
        """Active limits of each segment, by stance; empty at the pace ``slow``."""
        transitions = [stance.transition for stance in self.run.plan.stances]
        if self._retimer is None:
            return [[] for _ in transitions]
        return [[] if t is None else [bounds(self._retimer, segment) for segment in t.segments] for t in transitions]

    @cached_property
    def motions(self) -> list[MotionTiming]:
        """Motions begun in the run, in order."""
        run, found = self.run, []
        targets = np.array([-1 if phase.stance is None else phase.stance for phase in run.record.phases])[run.phase]
        for k, stance in enumerate(run.plan.stances):
            rows = np.flatnonzero(targets == k)
            if stance.transition is None or not len(rows):
                continue
            times: dict[str, float] = {}
            for segment, bounding in zip(stance.transition.segments, self.bounds[k], strict=False):
                for limit, share in shares(bounding, segment.time).items():
                    times[limit] = times.get(limit, 0.0) + share * segment.time
            total = sum(times.values())
            bound = {limit: time / total for limit, time in sorted(times.items(), key=lambda item: -item[1])}
            begin = float(run.t[rows[0]] - run.t[0])
            motion = MotionTiming(k, stance.title, begin, len(rows) * run.dt, stance.transition.duration, bound)
            found.append(motion)
        return found

    @property
    def planned(self) -> float:
        """Planned duration of all begun motions (s)."""
        return sum(motion.planned for motion in self.motions)

    @property
    def took(self) -> float:
        """Actual duration of all begun motions (s)."""
        return sum(motion.took for motion in self.motions)

    def behind(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the times of starts and ends of motions (s), and the accumulated delay to the plan there (s)."""
        motions = self.motions
        if not motions:
            return np.zeros(0), np.zeros(0)
        t = [motions[0].begin, *(motion.begin + motion.took for motion in motions)]
        return np.array(t), np.cumsum([0.0, *(motion.took - motion.planned for motion in motions)])

    def bound_at(self, samples: np.ndarray) -> list[Bound | None]:
        """Return the active limit of the planned motion at samples; None without a time parameterization."""
        run, found = self.run, []
        stretches = self.reference.stretches
        begins = np.array([stretch.begin for stretch in stretches])
        bounds_of_segment = {
            id(segment): part
            for stance, parts in zip(run.plan.stances, self.bounds, strict=True)
            if stance.transition is not None
            for segment, part in zip(stance.transition.segments, parts, strict=False)
        }
        for k in samples.tolist():
            stretch = stretches[int(np.searchsorted(begins, k, side="right")) - 1]
            segment_bounds = bounds_of_segment.get(id(stretch.segment), ())
            elapsed = float(run.t[k]) - stretch.t
            finished = stretch.segment is None or elapsed > stretch.segment.time
            found.append(
                None
                if finished or not segment_bounds
                else min(segment_bounds, key=lambda bound: abs(bound.t - elapsed))
            )
        return found


def bound_text(bound: dict[str, float]) -> str:
    """Format the active limits of a motion: ``torque, RLEG_JOINT3 60 %; friction, left_sole 20 %``."""
    named = [(limit, share) for limit, share in bound.items() if share >= MIN_NAMED_SHARE and limit != SMOOTHNESS]
    return "; ".join(f"{limit} {100 * share:.0f} %" for limit, share in named)
