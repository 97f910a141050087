"""The motion that a run was to follow: that of its plan, laid over the times at which its phases began."""

from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mcplan.planning.transition.transition import Segment
from mcplan.scene.contact import Contact
from mcplan.sim.run import Run

FIRST, LAST = ("shift", "slide", "carry", "lift"), ("retract",)
"""Kinds of phases that begin the first, and the second, motion of the transition to their stance."""


@dataclass(frozen=True)
class Stretch:
    """From a sample on, the segment of the plan that is followed, begun at time ``t`` (s); None: ``q`` is kept."""

    begin: int
    t: float
    segment: Segment | None
    q: np.ndarray

    def place(self, t: float) -> float:
        """Return how far along its segment it is at time t (s), by the segment's law of time; the end is held."""
        assert self.segment is not None
        elapsed, law = t - self.t, self.segment.law
        return min(elapsed if law is None else law.at(elapsed)[0], self.segment.duration)


@dataclass(frozen=True, eq=False)
class Reference:
    """What the plan says where the robot should be at each sample of a run.

    Where a motion was found anew while the robot moved, which a notice of the run says, the controller followed that;
    where the robot fell behind a law of time, it waited.

    Parameters
    ----------
    run : the run; of a controller of one's own it is not what was followed.
    """

    run: Run

    @cached_property
    def stretches(self) -> list[Stretch]:
        """Stretches of the run, in order; the first keeps the posture of the start."""
        run, stances = self.run, self.run.plan.stances
        own = {state.state for state in run.scenario.control.states if state.do is not None}
        found = [Stretch(0, float(run.t[0]), None, stances[0].q)]
        starts = np.concatenate([[0], np.flatnonzero(np.diff(run.phase)) + 1])
        for k in starts:
            phase = run.record.phases[run.phase[k]]
            kind = phase.name.split(" ")[0]
            transition = None if phase.stance is None else stances[phase.stance].transition
            if transition is None or phase.name in own or kind not in (*FIRST, *LAST):
                continue  # of the user's own states, none follows the plan's motion
            if kind in LAST and len(transition.segments) == 1:
                continue  # the limb goes on resting on another patch: nothing moves
            segment = transition.segments[0 if kind in FIRST else -1]
            found.append(Stretch(int(k), float(run.t[k]), segment, segment.q[-1]))
        return found

    @property
    def known(self) -> bool:
        """Whether the plan has motions that the run went through."""
        return len(self.stretches) > 1

    def com(self) -> np.ndarray:
        """Return the centre of mass of the plan's motion, (N, 3), m."""
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
        """Return the postures of the plan's motion at some samples, (rows, nq)."""
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
        """Return where a patch should be at sample k: its planned contact, or in the air its pose (4, 4) in ``q``.

        A contact on an object that is just being moved goes along with it, to where the patch is in ``q``.
        """
        run = self.run
        if not run.active[k, run.patches.index(patch)]:
            return run.robot.frame_pose(q, patch)
        contact = run.plan.stances[run.stance_of(k, patch)].contact(patch)
        if contact.carrier is None or contact.carrier.name not in self._moved(k):
            return contact
        X = run.robot.frame_pose(q, patch)
        return replace(contact, R=X[:3, :3], p=X[:3, 3])

    def _moved(self, k: int) -> dict[str, np.ndarray]:
        """Objects that the segment moves which is followed at sample k: where they are at its end."""
        i = bisect_right(self.stretches, k, key=lambda stretch: stretch.begin) - 1
        segment = self.stretches[i].segment
        return (segment.objects or {}) if segment is not None else {}

    def _with_ends(self) -> list[tuple[Stretch, int]]:
        ends = [stretch.begin for stretch in self.stretches[1:]] + [len(self.run)]
        return list(zip(self.stretches, ends, strict=True))
