"""Pace of a run: planned and actual durations of motions, their active limits, and the planned reference.

The planned reference is the motion of the plan, shifted to the times at which the phases of the run began.
"""

from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mcplan.analysis.active_limits import SMOOTHNESS, ActiveLimit, active_limits, time_shares
from mcplan.analysis.plan_motion import path_parameter
from mcplan.planning.timing.retiming import Retimer
from mcplan.planning.transition.transition import Segment
from mcplan.record.run import Run
from mcplan.scene.contact import Contact

FIRST_PHASES, SECOND_PHASES = ("shift", "slide", "carry", "lift"), ("retract",)
"""Kinds of phases at the start of the first, and of the second, motion of a transition."""


@dataclass(frozen=True)
class ReferenceInterval:
    """Interval of a run from sample ``begin`` (time ``t``, s) on: the segment of the plan that is tracked.

    Without a segment (None), the posture ``q`` is held.
    """

    begin: int
    t: float
    segment: Segment | None
    q: np.ndarray

    def path_parameter(self, t: float) -> float:
        """Return the path parameter (s) of the segment at time t (s); after its end, that of its end."""
        assert self.segment is not None
        return path_parameter(self.segment, t - self.t)


@dataclass(frozen=True, eq=False)
class PlannedReference:
    """Planned reference at each sample of a run.

    The actual reference differed where a motion was replanned during the run (a notice of the run), and where the
    controller slowed down its reference because the robot fell behind.

    Parameters
    ----------
    run : the run. With a custom controller, the reference is that of the plan, which the controller ignored.
    """

    run: Run

    @cached_property
    def intervals(self) -> list[ReferenceInterval]:
        """Intervals in order of time; the first one holds the start posture."""
        run, stances = self.run, self.run.plan.stances
        custom_states = {state.state for state in run.scenario.control.states if state.do is not None}
        found = [ReferenceInterval(0, float(run.t[0]), None, stances[0].q)]
        starts = np.concatenate([[0], np.flatnonzero(np.diff(run.phase)) + 1])
        for k in starts:
            phase = run.record.phases[run.phase[k]]
            kind = phase.name.split(" ")[0]
            transition = None if phase.stance is None else stances[phase.stance].transition
            if transition is None or phase.name in custom_states or kind not in (*FIRST_PHASES, *SECOND_PHASES):
                continue  # custom states do not follow the motion of the plan
            if kind in SECOND_PHASES and len(transition.segments) == 1:
                continue  # another patch of the limb keeps contact, so that nothing is retracted
            segment = transition.segments[0 if kind in FIRST_PHASES else -1]
            found.append(ReferenceInterval(int(k), float(run.t[k]), segment, segment.q[-1]))
        return found

    @property
    def has_motions(self) -> bool:
        """Whether the run executed motions of the plan (not only held its start posture)."""
        return len(self.intervals) > 1

    def com(self) -> np.ndarray:
        """Return the centre of mass of the planned reference, (N, 3), m."""
        robot, run = self.run.robot, self.run
        values = np.empty((len(run), 3))
        for interval, end in self._intervals_with_ends():
            if interval.segment is None:
                values[interval.begin : end] = robot.com(interval.q)
            else:
                centre = interval.segment.centre
                values[interval.begin : end] = [
                    centre.sample(interval.path_parameter(float(t))).value for t in run.t[interval.begin : end]
                ]
        return values

    def postures(self, rows: np.ndarray) -> np.ndarray:
        """Return the postures of the planned reference at some samples, (rows, nq)."""
        values = np.empty((len(rows), self.run.q.shape[1]))
        for interval, end in self._intervals_with_ends():
            inside = np.flatnonzero((rows >= interval.begin) & (rows < end))
            for i in inside:
                if interval.segment is None:
                    values[i] = interval.q
                else:
                    values[i] = interval.segment.posture.sample(interval.path_parameter(float(self.run.t[rows[i]]))).q
        return values

    def patch_reference(self, k: int, patch: str, q: np.ndarray) -> Contact | np.ndarray:
        """Return the reference of a patch at sample k: its planned contact, or in the air its pose (4, 4) in ``q``.

        On an object that moves, the contact is placed at the pose of the patch in ``q``.
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
        i = bisect_right(self.intervals, k, key=lambda interval: interval.begin) - 1
        segment = self.intervals[i].segment
        return (segment.objects or {}) if segment is not None else {}

    def _intervals_with_ends(self) -> list[tuple[ReferenceInterval, int]]:
        ends = [interval.begin for interval in self.intervals[1:]] + [len(self.run)]
        return list(zip(self.intervals, ends, strict=True))


MIN_LISTED_SHARE = 0.1
"""Limits that are active for a smaller share of a motion's time are not listed."""


@dataclass(frozen=True)
class MotionTiming:
    """Planned and actual timing of the motion to one stance.

    Attributes
    ----------
    stance : index of the stance that it leads to.
    name : title of that stance: its change of contacts.
    start : start time (s from the start of the run).
    actual_duration, planned_duration : s.
    limit_shares : share of the planned time in which each limit is active, the largest first.
    """

    stance: int
    name: str
    start: float
    actual_duration: float
    planned_duration: float
    limit_shares: dict[str, float]


@dataclass(frozen=True, eq=False)
class PaceOfRun:
    """Pace of a run that executed a plan.

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
    def has_active_limits(self) -> bool:
        """Whether motions have time parameterizations with active limits."""
        return self._retimer is not None and self.reference.has_motions

    @cached_property
    def _retimer(self) -> Retimer | None:
        settings = self.run.scenario.transition_settings
        return None if settings.pace is None else Retimer(self.run.scenario.robot, settings)

    @cached_property
    def limits_by_stance(self) -> list[list[tuple[ActiveLimit, ...]]]:
        """Active limits of each segment, by stance; empty at the pace ``slow``."""
        transitions = [stance.transition for stance in self.run.plan.stances]
        if self._retimer is None:
            return [[] for _ in transitions]
        return [
            [] if t is None else [active_limits(self._retimer, segment) for segment in t.segments] for t in transitions
        ]

    @cached_property
    def motions(self) -> list[MotionTiming]:
        """Motions that started in the run, in order."""
        run, found = self.run, []
        targets = np.array([-1 if phase.stance is None else phase.stance for phase in run.record.phases])[run.phase]
        for k, stance in enumerate(run.plan.stances):
            rows = np.flatnonzero(targets == k)
            if stance.transition is None or not len(rows):
                continue
            times: dict[str, float] = {}
            for segment, limits_of_segment in zip(stance.transition.segments, self.limits_by_stance[k], strict=False):
                for limit, share in time_shares(limits_of_segment, segment.time).items():
                    times[limit] = times.get(limit, 0.0) + share * segment.time
            total = sum(times.values())
            limit_shares = {limit: time / total for limit, time in sorted(times.items(), key=lambda item: -item[1])}
            start = float(run.t[rows[0]] - run.t[0])
            duration = stance.transition.duration
            found.append(MotionTiming(k, stance.title, start, len(rows) * run.dt, duration, limit_shares))
        return found

    @property
    def planned_duration(self) -> float:
        """Planned duration of all motions that started (s)."""
        return sum(motion.planned_duration for motion in self.motions)

    @property
    def actual_duration(self) -> float:
        """Actual duration of all motions that started (s)."""
        return sum(motion.actual_duration for motion in self.motions)

    def delays(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the times at which motions start and end (s), and the accumulated delay to the plan then (s)."""
        motions = self.motions
        if not motions:
            return np.zeros(0), np.zeros(0)
        t = [motions[0].start, *(motion.start + motion.actual_duration for motion in motions)]
        return np.array(t), np.cumsum([0.0, *(motion.actual_duration - motion.planned_duration for motion in motions)])

    def active_limits_at(self, samples: np.ndarray) -> list[ActiveLimit | None]:
        """Return the active limit of the planned motion at each sample; None without a time parameterization."""
        run, found = self.run, []
        intervals = self.reference.intervals
        begins = np.array([interval.begin for interval in intervals])
        limits_of = {
            id(segment): part
            for stance, parts in zip(run.plan.stances, self.limits_by_stance, strict=True)
            if stance.transition is not None
            for segment, part in zip(stance.transition.segments, parts, strict=False)
        }
        for k in samples.tolist():
            interval = intervals[int(np.searchsorted(begins, k, side="right")) - 1]
            segment_limits = limits_of.get(id(interval.segment), ())
            elapsed = float(run.t[k]) - interval.t
            finished = interval.segment is None or elapsed > interval.segment.time
            found.append(
                None
                if finished or not segment_limits
                else min(segment_limits, key=lambda limit: abs(limit.t - elapsed))
            )
        return found


def limits_text(limit_shares: dict[str, float]) -> str:
    """Format the active limits of a motion: ``torque, RLEG_JOINT3 60 %; friction, left_sole 20 %``."""
    listed = [
        (limit, share) for limit, share in limit_shares.items() if share >= MIN_LISTED_SHARE and limit != SMOOTHNESS
    ]
    return "; ".join(f"{limit} {100 * share:.0f} %" for limit, share in listed)
