"""The finite-state machine: the phases of a plan, one after the other, each until its criterion is met."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from mcplan.control.criteria import Criterion, Measurement
from mcplan.control.motion import Motion
from mcplan.control.phases import Approach, Lift, Load, Now, Phase, Retract, Settle, Shift, Stand, Swing, Unload
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
        phases += _phases_of_stance(k, stance, following, _coming(plan, k))
    return [*phases, Settle(len(plan.stances) - 1)]


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


def _added(stance: PlannedStance) -> Contact:
    return next(contact for contact in stance.contacts if contact.patch == stance.moved)


def _phases_of_stance(
    k: int, stance: PlannedStance, following: PlannedStance | None, coming: tuple[Contact, ...]
) -> list[Phase]:
    if stance.change == "add":
        contact = _added(stance)
        return [
            Lift(k, contact, stance.q, coming),
            Swing(k, contact.patch),
            Approach(k, contact),
            Load(k, contact.patch),
        ]
    if stance.change == "remove":
        assert stance.moved is not None
        phases: list[Phase] = [Shift(k, stance.q), Unload(k, stance.moved)]
        if following is None or not (following.change == "shift" or following.moved == stance.moved):
            phases.append(Retract(k, stance.moved))
        return phases
    return [Shift(k, stance.q)]


class Machine:
    """Runs phases.

    Parameters
    ----------
    phases : in their order.
    motion : what the phases command.

    Attributes
    ----------
    events : what has happened, the present phase last.
    done : whether the last phase has ended.
    """

    def __init__(self, phases: Sequence[Phase], motion: Motion):
        self.phases, self.motion = tuple(phases), motion
        self.events: list[PhaseEvent] = []
        self.done = False
        self._index = -1
        self._criterion: Criterion | None = None

    @property
    def phase(self) -> Phase:
        """The present phase."""
        return self.phases[max(self._index, 0)]

    @property
    def start_time(self) -> float:
        """When the present phase began (s)."""
        return self.events[-1].start if self.events else 0.0

    def update(self, t: float, measurement: Measurement, now: Now) -> bool:
        """End the present phase if its criterion is met, and enter the next; return whether a phase began."""
        if self.done:
            return False
        if self._criterion is not None:
            label = self._criterion.met(measurement)
            if not label:
                return False
            self.phase.leave(self.motion, t, now)
            self.events[-1].end, self.events[-1].ended_by = t, label
        if self._index + 1 == len(self.phases):
            self.done = True
            return False
        self._index += 1
        self._criterion = self.phase.enter(self.motion, t, now)
        self.events.append(PhaseEvent(self.phase.name, self.phase.stance, t))
        return True
