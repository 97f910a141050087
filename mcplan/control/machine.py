"""Finite-state machine: runs the states of a plan; the criterion that ends a state determines its successor."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from mcplan.control.criteria import Criterion, Measurement, criterion_of
from mcplan.control.motion import Motion
from mcplan.control.phases import CustomPhase, MeasuredState, Phase
from mcplan.control.program import State, find, following
from mcplan.errors import SimulationFailed

Result = TypeVar("Result")


@dataclass
class PhaseEvent:
    """Record of one executed phase.

    name : verb and patch.
    stance : index of the stance of the plan that it leads to.
    start, end : s; end is None during the phase.
    ended_by : label of the criterion that ended it; None during the phase.
    """

    name: str
    stance: int
    start: float
    end: float | None = None
    ended_by: str | None = None


class Machine:
    """Finite-state machine. A state replans its motion before it begins if the robot is too far from the plan.

    Parameters
    ----------
    states : in order; a bare phase is a state with its default criterion that leads to the next one.
    motion : references and contacts that the phases set.

    Attributes
    ----------
    events : the executed phases, the present one last.
    done : whether the last state has ended.
    """

    def __init__(self, states: Sequence[State | Phase], motion: Motion):
        self.motion = motion
        wrapped = (state if isinstance(state, State) else State(state) for state in states)
        self.states = tuple(map(self._with_criterion, wrapped))
        self.events: list[PhaseEvent] = []
        self.done = False
        self._index = -1
        self._criterion: Criterion | None = None
        self._taken: dict[tuple[int, str], int] = {}
        self._jumped = False

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases of the states."""
        return tuple(state.phase for state in self.states)

    @property
    def index(self) -> int:
        """Index of the present state."""
        return max(self._index, 0)

    @property
    def state(self) -> State:
        """The present state."""
        return self.states[self.index]

    @property
    def phase(self) -> Phase:
        """The present phase."""
        return self.state.phase

    @property
    def start_time(self) -> float:
        """Time at which the present phase began (s)."""
        return self.events[-1].start if self.events else 0.0

    def update(self, t: float, measurement: Measurement, now: MeasuredState) -> bool:
        """End the present state if its criterion is met, and enter the next; return whether a state began.

        Raises
        ------
        SimulationFailed
            The transition leads to ``fail``, or has been taken more often than allowed.
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
                self._attempt(t, lambda: self.phase.leave(self.motion, t, now))
            else:
                self._jumped = True
        if onward == len(self.states):
            self.done = True
            return False
        self._go_to(onward)
        self.phase.replan(self.motion, t, now)
        return self._begin(t, now)

    def _go_to(self, onward: int) -> None:
        """Make a state the present one; a state without stance gets that of the previous state."""
        state, stance = self.states[onward], self.phase.stance
        if state.anywhere and isinstance(state.phase, CustomPhase):
            here = replace(state, phase=replace(state.phase, stance=stance))
            self.states = (*self.states[:onward], here, *self.states[onward + 1 :])
        self._index = onward

    def divert(self, t: float, now: MeasuredState, phases: Sequence[Phase], why: str, onward: int) -> None:
        """Interrupt the present state at time t (s), run ``phases``, then continue with state ``onward``."""
        here = self._index
        new = [self._with_criterion(State(phase)) for phase in phases]
        moved = here + 1 + len(new) - onward
        self._taken = {(i + moved if i > here else i, label): n for (i, label), n in self._taken.items()}
        self.states = (*self.states[: here + 1], *new, *self.states[onward:])
        self.events[-1].end, self.events[-1].ended_by = t, why
        self._index = here + 1
        self._begin(t, now)

    def _with_criterion(self, state: State) -> State:
        """Return a state with its termination criterion, by default that of its phase: computed before the run."""
        return state if state.until is not None else replace(state, until=state.phase.until(self.motion.settings))

    def _begin(self, t: float, now: MeasuredState) -> bool:
        """Begin the present state."""
        duration = self._attempt(t, lambda: self.phase.enter(self.motion, t, now))
        assert self.state.until is not None
        self._criterion = criterion_of(self.state.until, duration)
        self.events.append(PhaseEvent(self.phase.name, self.phase.stance, t))
        return True

    def _attempt(self, t: float, action: Callable[[], Result]) -> Result:
        """Run the action of a state, and explain errors after a jump: patches may not be as the state needs them."""
        try:
            return action()
        except KeyError as error:
            if not self._jumped:
                raise
            state = f"{self.phase.name} of stance {self.phase.stance} at t = {t:g} s"
            lacks = f"{error.args[0]} is not in contact, or not in motion, as this state needs it"
            raise SimulationFailed(f"{state}: after a jump {lacks}") from error

    def _successor(self, label: str, t: float) -> int:
        """Return the index of the state after one that ended by a criterion; ``len(states)`` is the end."""
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
