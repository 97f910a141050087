"""States of the finite-state machine: those of the plan, with the states and transitions of the scenario."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mcplan.control.criteria import labels_of
from mcplan.control.phases import Approach, CustomPhase, Phase, Unload, phases_of
from mcplan.document.document import dump_document
from mcplan.errors import Problem, ScenarioError
from mcplan.planning.plan import Plan
from mcplan.scenario.scenario import Scenario
from mcplan.settings.control import ControlSettings
from mcplan.settings.states import TRANSITION_TARGETS, Jump, StateSpec, Until
from mcplan.util.spelling import did_you_mean_or_all

Report = Callable[[int, str, str], None]
"""Callback that records a problem: number of the state in the file, key, message."""

NEXT_STATE = Jump(state="next")
"""Default successor of a state."""


@dataclass
class State:
    """A phase with the settings that the scenario gives it.

    Parameters
    ----------
    phase : action of the state.
    until : termination criterion; None: that of the phase.
    jumps : label of the criterion that ended the state (empty: any) -> successor.
    gains : weights and gains during the state, by their keys in ``control``, such as ``gains.com_kp``.
    by_transition_only : whether the state is entered by a transition only.
    in_any_stance : whether the state may be entered in any stance, and takes that of the previous state.
    """

    phase: Phase
    until: Until | None = None
    jumps: Mapping[str, Jump] = field(default_factory=dict)
    gains: Mapping[str, float] = field(default_factory=dict)
    by_transition_only: bool = False
    in_any_stance: bool = False

    @property
    def name(self) -> str:
        """Name of the phase."""
        return self.phase.name

    def jump(self, label: str) -> Jump:
        """Return the successor after a criterion."""
        return self.jumps.get(label, self.jumps.get("", NEXT_STATE))


def find_target(states: Sequence[State], jump: Jump, index: int) -> int | None:
    """Return the target of a jump from the state of index ``index``: in its stance, else ahead, else back."""
    stance = states[index].phase.stance
    matches = [k for k, state in enumerate(states) if _has_name(state, jump.state, jump.stance)]

    def rank(k: int) -> tuple[bool, bool, int]:
        """Return the order of preference of state k."""
        return states[k].phase.stance != stance, k <= index, abs(k - index)

    return min(matches, key=rank, default=None)


def next_index(states: Sequence[State], index: int) -> int:
    """Return the index of the state after ``index`` in the sequence; ``len(states)`` is the end."""
    return next((k for k in range(index + 1, len(states)) if not states[k].by_transition_only), len(states))


def program_of(phases: Sequence[Phase], scenario: Scenario, closed: Iterable[str]) -> list[State]:
    """Return the states of a plan with the changes of the scenario (``control.states``).

    Parameters
    ----------
    closed : patches in contact at the start.

    Raises
    ------
    ScenarioError
        With all problems, each with its line.
    """
    states = [State(phase) for phase in phases]
    specs, problems = scenario.control.states, list[Problem]()

    def report(k: int, key: str, message: str) -> None:
        problems.append(scenario.document.problem(("control", "states", k, *([key] if key else [])), message))

    for k, spec in enumerate(specs):
        if spec.do is not None:
            _insert_state(states, spec, k, report)
    for k, spec in enumerate(specs):
        chosen = [i for i, state in enumerate(states) if _has_name(state, spec.state, spec.stance)]
        if not chosen:
            report(k, "state", _unknown_state_message(states, spec.state, spec.stance))
        for i in chosen:
            state = states[i]
            states[i] = replace(
                state,
                until=spec.until or state.until,
                jumps={**state.jumps, **spec.jumps()},
                gains={**state.gains, **spec.task_values()},
            )
    for k, spec in enumerate(specs):
        _check_jumps(states, spec, scenario, k, report)
    _check_successors(states, scenario, report)
    _check_actions(states, scenario, set(closed), report)
    if problems:
        raise ScenarioError(*dict.fromkeys(problems))
    return states


def _insert_state(states: list[State], spec: StateSpec, k: int, report: Report) -> None:
    """Insert a new state, at every position that matches."""
    assert spec.do is not None
    assert spec.until is not None
    neighbour = spec.after or spec.before
    if neighbour is None:
        in_any_stance, last = (
            spec.stance is None,
            max(state.phase.stance for state in states if not state.by_transition_only),
        )
        if spec.stance is not None and spec.stance > last:
            report(k, "stance", f"there is no stance {spec.stance}; the plan has 0 to {last}")
        phase = CustomPhase(spec.stance or 0, spec.state, spec.do, spec.until)
        states.append(State(phase, by_transition_only=True, in_any_stance=in_any_stance))
        return
    indices = [i for i, state in enumerate(states) if _has_name(state, neighbour, spec.stance)]
    if not indices:
        report(k, "after" if spec.after else "before", _unknown_state_message(states, neighbour, spec.stance))
    for i in reversed(indices):
        stance = states[i].phase.stance
        new = State(CustomPhase(stance, spec.state, spec.do, spec.until))
        states.insert(i + 1 if spec.after else i, new)


def _check_jumps(states: list[State], spec: StateSpec, scenario: Scenario, k: int, report: Report) -> None:
    """Report transitions for criteria that cannot end a state, and to unknown states."""
    for i in (i for i, state in enumerate(states) if _has_name(state, spec.state, spec.stance)):
        until = states[i].until or states[i].phase.until(scenario.control)
        labels = labels_of(until)
        if not scenario.control.compliant and states[i].until is None:
            # with compliant contacts the same phase ends on other criteria
            labels |= labels_of(states[i].phase.until(scenario.control.under("contact")))
        for label, jump in spec.jumps().items():
            if label and label not in labels:
                known = ", ".join(sorted(labels))
                report(k, "next", f"state `{states[i].name}` never ends by `{label}`; it ends by: {known}")
            if jump.state not in TRANSITION_TARGETS and find_target(states, jump, i) is None:
                report(k, "next", _unknown_state_message(states, jump.state, jump.stance, TRANSITION_TARGETS))


def _check_successors(states: Sequence[State], scenario: Scenario, report: Report) -> None:
    """Report states without a successor, unless `end` is explicit: the run would end as if the plan were done."""
    for i, state in enumerate(states):
        if state.by_transition_only and next_index(states, i) == len(states):
            labels = labels_of(state.until or state.phase.until(scenario.control))
            if undefined := [label for label in sorted(labels) if state.jump(label).state == "next"]:
                ends = f"say where it goes when it ends by {' or '.join(undefined)}; `end` ends the run"
                text = f"nothing comes after state `{state.name}`, which is entered by a transition only: {ends}"
                report(_spec_index(state.phase, scenario), "next", text)


def _spec_index(phase: Phase, scenario: Scenario) -> int:
    """Return the index of a new state in ``control.states``."""
    assert isinstance(phase, CustomPhase)
    return next(k for k, spec in enumerate(scenario.control.states) if spec.do is phase.action)


def opened_by(phase: Phase) -> set[str]:
    """Return the patch whose contact a phase opens at its end."""
    return {phase.patch} if isinstance(phase, Unload) else set()


def closed_by(phase: Phase) -> set[str]:
    """Return the patch whose contact a phase closes at its end."""
    return {phase.contact.patch} if isinstance(phase, Approach) else set()


def _has_name(state: State, name: str, stance: int | None) -> bool:
    """Whether a state has this name, with or without its patch, and this stance if one is given."""
    return name in (state.name, state.phase.verb) and stance in (None, state.phase.stance)


def _unknown_state_message(states: Sequence[State], name: str, stance: int | None, further: Sequence[str] = ()) -> str:
    """Return the message that no state has this name, with the known names."""
    if stance is not None and any(_has_name(state, name, None) for state in states):
        has = sorted({state.phase.stance for state in states if _has_name(state, name, None)})
        return f"there is no state `{name}` in stance {stance}, but in: {', '.join(map(str, has))}"
    known = dict.fromkeys([*further, *(state.name for state in states)])
    return f"there is no state `{name}`{did_you_mean_or_all(name, known)}"


def _check_actions(states: Sequence[State], scenario: Scenario, closed: set[str], report: Report) -> None:
    """Report patches in contact that a new state moves, and patches not in contact whose force it limits.

    Parameters
    ----------
    closed : patches in contact at the start.
    """
    for state in states:
        phase = state.phase
        if isinstance(phase, CustomPhase) and not state.by_transition_only:
            k = _spec_index(phase, scenario)
            for patch in sorted(closed & set(phase.action.limbs)):
                report(k, "do", f"limbs: {patch} is in contact there (stance {phase.stance})")
            for patch in sorted(set(phase.action.forces) - closed):
                report(k, "do", f"forces: {patch} is not in contact there (stance {phase.stance})")
        closed = (closed - opened_by(phase)) | closed_by(phase)


def machine_of(plan: Plan) -> list[State]:
    """Return the states that execute a plan, including those of the scenario."""
    return program_of(phases_of(plan), plan.scenario, [contact.patch for contact in plan.stances[0].contacts])


def entries_of(states: Sequence[State], settings: ControlSettings) -> list[dict[str, Any]]:
    """Return the states as items of ``control.states``, with explicit criteria and transitions."""
    entries = []
    for state in states:
        entry: dict[str, Any] = {"state": state.name} | ({} if state.in_any_stance else {"stance": state.phase.stance})
        if isinstance(state.phase, CustomPhase):
            entry["do"] = state.phase.action.model_dump(mode="json", exclude_defaults=True)
        until = state.until or state.phase.until(settings)
        entry["until"] = until.model_dump(mode="json", exclude_none=True)
        if state.jumps:
            jumps = {label: jump.model_dump(mode="json", exclude_none=True) for label, jump in state.jumps.items()}
            default = jumps.get("", {})
            entry["next"] = default["state"] if len(jumps) == 1 and list(default) == ["state"] else jumps
        if state.gains:
            for key, value in state.gains.items():
                group, _, name = key.partition(".")
                entry.setdefault(group, {})[name] = value
        if isinstance(state.phase, CustomPhase) and not state.by_transition_only:
            stance, sequence = state.phase.stance, [s for s in states if not s.by_transition_only]
            i = next(i for i, other in enumerate(sequence) if other is state)
            if i and sequence[i - 1].phase.stance == stance:
                entry["after"] = sequence[i - 1].name
            else:
                planned = next((s for s in sequence[i + 1 :] if not isinstance(s.phase, CustomPhase)), None)
                entry |= {"before": planned.name} if planned is not None else {"after": sequence[i - 1].name}
        entries.append(entry)
    return entries


def listing(states: Sequence[State], settings: ControlSettings) -> str:
    """Return the machine as YAML: one item per state, with its action and successor as a comment."""
    lines = ["control:", "  states:"]
    for k, (state, entry) in enumerate(zip(states, entries_of(states, settings), strict=True)):
        index = next_index(states, k)
        successor = "end" if index == len(states) else states[index].name
        by_transition_only = ", entered by a transition only" if state.by_transition_only else ""
        lines.append(f"  # {state.phase.effect}; then {successor}{by_transition_only}")
        text = dump_document([entry]).rstrip()
        lines += ["  " + line for line in text.splitlines()]
    return "\n".join(lines)
