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

ONWARD = Jump(state="next")


@dataclass
class State:
    """A phase with the settings that the scenario gives it.

    Parameters
    ----------
    phase : its action.
    until : termination criterion; None: that of the phase.
    jumps : successor by label of the criterion that ended it (empty: any).
    gains : weights and gains during the state, by their keys in ``control``, such as ``gains.com_kp``.
    aside : whether it is entered by a transition only.
    anywhere : whether it may be entered in any stance: it then takes the stance of the previous state.
    """

    phase: Phase
    until: Until | None = None
    jumps: Mapping[str, Jump] = field(default_factory=dict)
    gains: Mapping[str, float] = field(default_factory=dict)
    aside: bool = False
    anywhere: bool = False

    @property
    def name(self) -> str:
        """Name of the phase."""
        return self.phase.name

    def jump(self, label: str) -> Jump:
        """Return the successor after a criterion."""
        return self.jumps.get(label, self.jumps.get("", ONWARD))


def find(states: Sequence[State], jump: Jump, here: int) -> int | None:
    """Return the target of a jump from state ``here``: first in its stance, else ahead, else back."""
    stance = states[here].phase.stance
    named = [k for k, state in enumerate(states) if _called(state, jump.state, jump.stance)]

    def rank(k: int) -> tuple[bool, bool, int]:
        return states[k].phase.stance != stance, k <= here, abs(k - here)

    return min(named, key=rank, default=None)


def following(states: Sequence[State], here: int) -> int:
    """Return the index of the next state of the sequence; ``len(states)`` is the end."""
    return next((k for k in range(here + 1, len(states)) if not states[k].aside), len(states))


def program_of(phases: Sequence[Phase], scenario: Scenario, closed: Iterable[str]) -> list[State]:
    """Return the states of a plan with the changes of the scenario.

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
            _add(states, spec, k, report)
    for k, spec in enumerate(specs):
        chosen = [i for i, state in enumerate(states) if _called(state, spec.state, spec.stance)]
        if not chosen:
            report(k, "state", _unknown(states, spec.state, spec.stance))
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


def _add(states: list[State], spec: StateSpec, k: int, report: Report) -> None:
    """Insert a new state, at every position that matches."""
    assert spec.do is not None
    assert spec.until is not None
    beside = spec.after or spec.before
    if beside is None:
        anywhere, last = spec.stance is None, max(state.phase.stance for state in states if not state.aside)
        if spec.stance is not None and spec.stance > last:
            report(k, "stance", f"there is no stance {spec.stance}; the plan has 0 to {last}")
        phase = CustomPhase(spec.stance or 0, spec.state, spec.do, spec.until)
        states.append(State(phase, aside=True, anywhere=anywhere))
        return
    places = [i for i, state in enumerate(states) if _called(state, beside, spec.stance)]
    if not places:
        report(k, "after" if spec.after else "before", _unknown(states, beside, spec.stance))
    for i in reversed(places):
        stance = states[i].phase.stance
        new = State(CustomPhase(stance, spec.state, spec.do, spec.until))
        states.insert(i + 1 if spec.after else i, new)


def _check_jumps(states: list[State], spec: StateSpec, scenario: Scenario, k: int, report: Report) -> None:
    for i in (i for i, state in enumerate(states) if _called(state, spec.state, spec.stance)):
        until = states[i].until or states[i].phase.until(scenario.control)
        labels = labels_of(until)
        if not scenario.control.compliant and states[i].until is None:
            # with compliant contacts the same phase ends on other criteria
            labels |= labels_of(states[i].phase.until(scenario.control.under("contact")))
        for label, jump in spec.jumps().items():
            if label and label not in labels:
                known = ", ".join(sorted(labels))
                report(k, "next", f"state `{states[i].name}` never ends by `{label}`; it ends by: {known}")
            if jump.state not in TRANSITION_TARGETS and find(states, jump, i) is None:
                report(k, "next", _unknown(states, jump.state, jump.stance, TRANSITION_TARGETS))


def _check_successors(states: Sequence[State], scenario: Scenario, report: Report) -> None:
    """Report states without a successor, unless `end` is explicit: the run would end as if the plan were done."""
    for i, state in enumerate(states):
        if state.aside and following(states, i) == len(states):
            labels = labels_of(state.until or state.phase.until(scenario.control))
            if undefined := [label for label in sorted(labels) if state.jump(label).state == "next"]:
                ends = f"say where it goes when it ends by {' or '.join(undefined)}; `end` ends the run"
                text = f"nothing comes after state `{state.name}`, which is entered by a transition only: {ends}"
                report(_number(state.phase, scenario), "next", text)


def _number(phase: Phase, scenario: Scenario) -> int:
    """Return the index in the file of a new state."""
    assert isinstance(phase, CustomPhase)
    return next(k for k, spec in enumerate(scenario.control.states) if spec.do is phase.action)


def opened_by(phase: Phase) -> set[str]:
    """Return the patch whose contact a phase opens at its end."""
    return {phase.patch} if isinstance(phase, Unload) else set()


def closed_by(phase: Phase) -> set[str]:
    """Return the patch whose contact a phase closes at its end."""
    return {phase.contact.patch} if isinstance(phase, Approach) else set()


def _called(state: State, name: str, stance: int | None) -> bool:
    """Whether a state has this name, with or without its patch, and this stance if one is given."""
    return name in (state.name, state.phase.verb) and stance in (None, state.phase.stance)


def _unknown(states: Sequence[State], name: str, stance: int | None, more: Sequence[str] = ()) -> str:
    if stance is not None and any(_called(state, name, None) for state in states):
        has = sorted({state.phase.stance for state in states if _called(state, name, None)})
        return f"there is no state `{name}` in stance {stance}, but in: {', '.join(map(str, has))}"
    known = dict.fromkeys([*more, *(state.name for state in states)])
    return f"there is no state `{name}`{did_you_mean_or_all(name, known)}"


def _check_actions(states: Sequence[State], scenario: Scenario, closed: set[str], report: Report) -> None:
    """Report patches in contact that a new state moves, and patches not in contact whose force it limits.

    Parameters
    ----------
    closed : patches in contact at the start.
    """
    for state in states:
        phase = state.phase
        if isinstance(phase, CustomPhase) and not state.aside:
            k = _number(phase, scenario)
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
        entry: dict[str, Any] = {"state": state.name} | ({} if state.anywhere else {"stance": state.phase.stance})
        if isinstance(state.phase, CustomPhase):
            entry["do"] = state.phase.action.model_dump(mode="json", exclude_defaults=True)
        until = state.until or state.phase.until(settings)
        entry["until"] = until.model_dump(mode="json", exclude_none=True)
        if state.jumps:
            jumps = {label: jump.model_dump(mode="json", exclude_none=True) for label, jump in state.jumps.items()}
            always = jumps.get("", {})
            entry["next"] = always["state"] if len(jumps) == 1 and list(always) == ["state"] else jumps
        if state.gains:
            for key, value in state.gains.items():
                group, _, name = key.partition(".")
                entry.setdefault(group, {})[name] = value
        if isinstance(state.phase, CustomPhase) and not state.aside:
            here, beside = state.phase.stance, [s for s in states if not s.aside]
            i = next(i for i, other in enumerate(beside) if other is state)
            if i and beside[i - 1].phase.stance == here:
                entry["after"] = beside[i - 1].name
            else:
                plain = next((s for s in beside[i + 1 :] if not isinstance(s.phase, CustomPhase)), None)
                entry |= {"before": plain.name} if plain is not None else {"after": beside[i - 1].name}
        entries.append(entry)
    return entries


def listing(states: Sequence[State], settings: ControlSettings) -> str:
    """Return the machine as YAML: one item per state, its action and successor as a comment."""
    lines = ["control:", "  states:"]
    for k, (state, entry) in enumerate(zip(states, entries_of(states, settings), strict=True)):
        after = following(states, k)
        onward = "end" if after == len(states) else states[after].name
        aside = ", entered by a transition only" if state.aside else ""
        lines.append(f"  # {state.phase.does}; then {onward}{aside}")
        text = dump_document([entry]).rstrip()
        lines += ["  " + line for line in text.splitlines()]
    return "\n".join(lines)
