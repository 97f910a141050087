"""Finite-state machine that executes a plan; the criterion that ends a state determines its successor."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from mcplan.control.criteria import Criterion, Measurement, criterion_of, earliest_time
from mcplan.control.motion import Motion
from mcplan.control.phases import CustomPhase, MeasuredState, Phase
from mcplan.control.program import State, find_target, next_index
from mcplan.errors import SimulationFailed

Result = TypeVar("Result")


@dataclass
class PhaseEvent:
    """Record of one executed phase.

    name : verb and patch.
    stance : index of the stance of the plan that the phase leads to.
    start, end : times, s; end is None during the phase.
    ended_by : label of the criterion that ended the phase; None during it.
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
    states : states or phases, in order. A phase gets its default criterion, and leads to the next state.
    motion : references and contacts that the phases set.

    Attributes
    ----------
    state : the present state.
    events : the executed phases, the present one last.
    done : whether the last state has ended.
    """

    def __init__(self, states: Sequence[State | Phase], motion: Motion):
        self.motion = motion
        wrapped = (state if isinstance(state, State) else State(state) for state in states)
        self.states = tuple(map(self._with_criterion, wrapped))
        self.events: list[PhaseEvent] = []
        self.done = False
        self._index, self.state = -1, self.states[0]
        self._criterion: Criterion | None = None
        self._earliest = 0.0
        self._jump_counts: dict[tuple[int, str], int] = {}
        self._has_jumped = False

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases of the states."""
        return tuple(state.phase for state in self.states)

    @property
    def index(self) -> int:
        """Index of the present state."""
        return max(self._index, 0)

    @property
    def phase(self) -> Phase:
        """The present phase."""
        return self.state.phase

    @property
    def start_time(self) -> float:
        """Time at which the present phase began (s)."""
        return self.events[-1].start if self.events else 0.0

    def update(self, t: float, measurement: Measurement, measured: MeasuredState) -> bool:
        """End the present state if its criterion is met, and enter the next; return whether a state began.

        Raises
        ------
        SimulationFailed
            The transition leads to ``fail``, or has been taken more often than allowed.
        """
        if self.done:
            return False
        if self._criterion is None:
            successor = next_index(self.states, self._index)
        else:
            if measurement.elapsed < self._earliest or not (label := self._criterion.evaluate(measurement)):
                return False
            successor = self._successor(label, t)
            self.events[-1].end, self.events[-1].ended_by = t, label
            if successor == next_index(self.states, self._index):
                self._run_action(t, lambda: self.phase.leave(self.motion, t, measured))
            else:
                self._has_jumped = True
        if successor == len(self.states):
            self.done = True
            return False
        self._go_to(successor)
        self.phase.replan(self.motion, t, measured)
        return self._begin(t, measured)

    def _go_to(self, successor: int) -> None:
        """Make a state the present one; a state without stance gets that of the previous state."""
        state, stance = self.states[successor], self.phase.stance
        if state.in_any_stance and isinstance(state.phase, CustomPhase):
            copy = replace(state, phase=replace(state.phase, stance=stance))
            self.states = (*self.states[:successor], copy, *self.states[successor + 1 :])
        self._index, self.state = successor, self.states[successor]

    def divert(self, t: float, measured: MeasuredState, phases: Sequence[Phase], reason: str, successor: int) -> None:
        """Interrupt the present state at time t (s), run ``phases``, then continue with state ``successor`` (index)."""
        index = self._index
        inserted = [self._with_criterion(State(phase)) for phase in phases]
        shift = index + 1 + len(inserted) - successor
        self._jump_counts = {(i + shift if i > index else i, label): n for (i, label), n in self._jump_counts.items()}
        self.states = (*self.states[: index + 1], *inserted, *self.states[successor:])
        self.events[-1].end, self.events[-1].ended_by = t, reason
        self._index, self.state = index + 1, self.states[index + 1]
        self._begin(t, measured)

    def _with_criterion(self, state: State) -> State:
        """Return a state with its termination criterion, by default that of its phase."""
        return state if state.until is not None else replace(state, until=state.phase.until(self.motion.settings))

    def _begin(self, t: float, measured: MeasuredState) -> bool:
        """Begin the present state."""
        duration = self._run_action(t, lambda: self.phase.enter(self.motion, t, measured))
        assert self.state.until is not None
        self._criterion = criterion_of(self.state.until, duration)
        self._earliest = earliest_time(self._criterion)
        self.events.append(PhaseEvent(self.phase.name, self.phase.stance, t))
        return True

    def _run_action(self, t: float, action: Callable[[], Result]) -> Result:
        """Run the action of a state. After a jump, explain a missing patch: it may not be in contact or in motion."""
        try:
            return action()
        except KeyError as error:
            if not self._has_jumped:
                raise
            state = f"{self.phase.name} of stance {self.phase.stance} at t = {t:g} s"
            problem = f"{error.args[0]} is not in contact, or not in motion, as this state needs it"
            raise SimulationFailed(f"{state}: after a jump {problem}") from error

    def _successor(self, label: str, t: float) -> int:
        """Return the index of the state that follows a criterion of the present one; ``len(states)`` is the end."""
        index, jump = self._index, self.state.jump(label)
        count = self._jump_counts[index, label] = self._jump_counts.get((index, label), 0) + 1
        is_exhausted = jump.times is not None and count > jump.times
        if is_exhausted or jump.state == "fail":
            message = f"{self.phase.name} of stance {self.phase.stance} ended by {label} at t = {t:g} s"
            if is_exhausted:
                message += f", after {jump.times} transitions to {jump.state}"
            raise SimulationFailed(message)
        targets = {"next": next_index(self.states, index), "again": index, "end": len(self.states)}
        if jump.state in targets:
            return targets[jump.state]
        target = find_target(self.states, jump, index)
        assert target is not None, jump.state
        return target
