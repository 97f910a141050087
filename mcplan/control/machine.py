"""The finite-state machine: the states of a plan, each until its criterion is met, which says what follows."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mcplan.control.criteria import Criterion, Measurement, criterion_of
from mcplan.control.motion import Motion
from mcplan.control.phases import Approach, Lift, Load, Now, Phase, Retract, Settle, Shift, Slide, Stand, Swing, Unload
from mcplan.control.program import State, find, following
from mcplan.errors import SimulationFailed
from mcplan.planning.plan import Plan, PlannedStance
from mcplan.scene.contact import Contact


@dataclass
class PhaseEvent:
    """One phase as it happened.

    name : verb and patch.
    stance : index of the stance of the plan that it leads to.
    start, end : s; end is None while it lasts.
    ended_by : label of the criterion that ended it, None while it lasts.
    """

    name: str
    stance: int
    start: float
    end: float | None = None
    ended_by: str | None = None


def phases_of(plan: Plan) -> list[Phase]:
    """Return the phases that carry out a plan, from standing on its first stance to rest on its last."""
    phases: list[Phase] = [Stand(0)]
    for k, stance in enumerate(plan.stances[1:], start=1):
        following = plan.stances[k + 1] if k + 1 < len(plan.stances) else None
        if moved := _moved(plan, k):
            environment = plan.scenario.environment.placed(stance.objects)
            phases.append(Slide(k, stance.q, stance.contacts, moved, environment))
            continue
        phases += _phases_of_stance(k, stance, following, _coming(plan, k), _rests(plan, k))
    return [*phases, Settle(len(plan.stances) - 1)]


def _moved(plan: Plan, k: int) -> dict[str, np.ndarray]:
    """Return the poses (7,) of the objects that stand elsewhere in stance ``k`` than in the one before."""
    if not plan.stances[k].objects:
        return {}
    at_start = {thing.name: thing.pose for thing in plan.scenario.environment.objects}
    before, now = at_start | plan.stances[k - 1].objects, at_start | plan.stances[k].objects
    return {name: pose for name, pose in now.items() if not np.allclose(pose, before[name], rtol=0.0, atol=1e-9)}


def _coming(plan: Plan, k: int) -> tuple[Contact, ...]:
    """Return the contacts that the limb of stance ``k`` makes right after the one of this stance: knee, then toe."""
    robot, coming = plan.scenario.robot, []
    for before, stance in pairwise(plan.stances[k:]):
        if stance.change != "add" or before.change != "add":
            break
        assert stance.moved is not None
        assert before.moved is not None
        if robot.patches[stance.moved].limb != robot.patches[before.moved].limb:
            break
        coming.append(_added(stance))
    return tuple(coming)


def _rests(plan: Plan, k: int) -> bool:
    """Say whether the limb of the patch that stance ``k`` removes rests on another patch: it cannot lift that off."""
    patches, moved = plan.scenario.robot.patches, plan.stances[k].moved
    if moved is None:
        return False
    return any(patches[contact.patch].limb == patches[moved].limb for contact in plan.stances[k].contacts)


def _added(stance: PlannedStance) -> Contact:
    return next(contact for contact in stance.contacts if contact.patch == stance.moved)


def _phases_of_stance(
    k: int, stance: PlannedStance, following: PlannedStance | None, coming: tuple[Contact, ...], rests: bool
) -> list[Phase]:
    if stance.change == "add":
        contact = _added(stance)
        return [
            Lift(k, contact, stance.q, coming),
            Swing(k, contact),
            Approach(k, contact),
            Load(k, contact.patch),
        ]
    if stance.change == "remove":
        assert stance.moved is not None
        phases: list[Phase] = [Shift(k, stance.q), Unload(k, stance.moved)]
        moves_on = following is not None and (following.change == "shift" or following.moved == stance.moved)
        if rests or not moves_on:
            phases.append(Retract(k, stance.moved))
        return phases
    return [Shift(k, stance.q)]


class Machine:
    """Runs states.

    Parameters
    ----------
    states : in their order; a phase alone is a state that ends as it says and leads to the next one.
    motion : what the phases command.

    Attributes
    ----------
    events : what has happened, the present state last.
    done : whether the machine has come to its end.
    """

    def __init__(self, states: Sequence[State | Phase], motion: Motion):
        self.states = tuple(state if isinstance(state, State) else State(state) for state in states)
        self.motion = motion
        self.events: list[PhaseEvent] = []
        self.done = False
        self._index = -1
        self._criterion: Criterion | None = None
        self._taken: dict[tuple[int, str], int] = {}

    @property
    def phases(self) -> tuple[Phase, ...]:
        """What the states do."""
        return tuple(state.phase for state in self.states)

    @property
    def state(self) -> State:
        """The present state."""
        return self.states[max(self._index, 0)]

    @property
    def phase(self) -> Phase:
        """The present phase."""
        return self.state.phase

    @property
    def start_time(self) -> float:
        """When the present phase began (s)."""
        return self.events[-1].start if self.events else 0.0

    def update(self, t: float, measurement: Measurement, now: Now) -> bool:
        """End the present state if its criterion is met, and enter the next; return whether a state began.

        Raises
        ------
        SimulationFailed
            Its transition is to fail, or has been taken as often as it may.
        """
        if self.done:
            return False
        if self._criterion is None:
            onward = following(self.states, self._index)
        else:
            label = self._criterion.met(measurement)
            if not label:
                return False
            onward = self._successor(label, t)
            self.events[-1].end, self.events[-1].ended_by = t, label
            if onward == following(self.states, self._index):
                self.phase.leave(self.motion, t, now)
        if onward == len(self.states):
            self.done = True
            return False
        self._index = onward
        duration = self.phase.enter(self.motion, t, now)
        self._criterion = criterion_of(self.state.until or self.phase.until(self.motion.settings), duration)
        self.events.append(PhaseEvent(self.phase.name, self.phase.stance, t))
        return True

    def _successor(self, label: str, t: float) -> int:
        """Return the state that follows one that ended by a criterion; their number is the end."""
        here, jump = self._index, self.state.jump(label)
        what = f"{self.phase.name} of stance {self.phase.stance} ended by {label} at t = {t:g} s"
        taken = self._taken[here, label] = self._taken.get((here, label), 0) + 1
        if jump.times is not None and taken > jump.times:
            raise SimulationFailed(f"{what}, after {jump.times} transitions to {jump.state}")
        if jump.state == "fail":
            raise SimulationFailed(what)
        words = {"next": following(self.states, here), "again": here, "end": len(self.states)}
        if jump.state in words:
            return words[jump.state]
        found = find(self.states, jump, here)
        assert found is not None, jump.state
        return found
