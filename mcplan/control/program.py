"""The states of the machine: those of the plan, with what the scenario adds, replaces and connects."""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mcplan.control.criteria import labels_of
from mcplan.control.custom import Custom
from mcplan.control.phase import Phase
from mcplan.control.phases import Approach, Unload
from mcplan.errors import Problem, ScenarioError
from mcplan.scenario.scenario import Scenario
from mcplan.settings.states import WORDS, Jump, StateSpec, Until

Report = Callable[[int, str, str], None]
"""Notes a problem: number of the state in the file, key, message."""

ONWARD = Jump(state="next")


@dataclass
class State:
    """A phase, and what the scenario says about it.

    Parameters
    ----------
    phase : what it does.
    until : when it ends; None leaves that to the phase.
    jumps : by label of the criterion that ended it (empty: any), where it goes.
    gains : weights and gains while it lasts, by their names in ``control``.
    aside : whether it is entered by a transition only.
    anywhere : whether that may be in any stance: its own is then that from which it was entered.
    """

    phase: Phase
    until: Until | None = None
    jumps: Mapping[str, Jump] = field(default_factory=dict)
    gains: Mapping[str, float] = field(default_factory=dict)
    aside: bool = False
    anywhere: bool = False

    @property
    def name(self) -> str:
        """Of the phase."""
        return self.phase.name

    def jump(self, label: str) -> Jump:
        """Return where it goes after it has ended by a criterion."""
        return self.jumps.get(label, self.jumps.get("", ONWARD))


def find(states: Sequence[State], jump: Jump, here: int) -> int | None:
    """Return the state that a jump from state ``here`` leads to: one of its stance, else ahead, else back."""
    stance = states[here].phase.stance
    named = [k for k, state in enumerate(states) if _called(state, jump.state, jump.stance)]

    def rank(k: int) -> tuple[bool, bool, int]:
        return states[k].phase.stance != stance, k <= here, abs(k - here)

    return min(named, key=rank, default=None)


def following(states: Sequence[State], here: int) -> int:
    """Return the next state of the sequence; their number is the end."""
    return next((k for k in range(here + 1, len(states)) if not states[k].aside), len(states))


def program_of(phases: Sequence[Phase], scenario: Scenario, closed: Iterable[str]) -> list[State]:
    """Return the states of a plan as the scenario wants them.

    Parameters
    ----------
    closed : patches in contact at the start.

    Raises
    ------
    ScenarioError
        With all that is wrong, each with its line.
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
            gains = {} if spec.gains is None else spec.gains.model_dump(exclude_none=True)
            states[i] = replace(
                state,
                until=spec.until or state.until,
                jumps={**state.jumps, **spec.jumps()},
                gains={**state.gains, **gains},
            )
    for k, spec in enumerate(specs):
        _check_jumps(states, spec, scenario, k, report)
    _check_ways_on(states, scenario, report)
    _check_deeds(states, scenario, set(closed), report)
    if problems:
        raise ScenarioError(*dict.fromkeys(problems))
    return states


def _add(states: list[State], spec: StateSpec, k: int, report: Report) -> None:
    """Put a new state in its places."""
    assert spec.do is not None
    assert spec.until is not None
    beside = spec.after or spec.before
    if beside is None:
        anywhere, last = spec.stance is None, max(state.phase.stance for state in states if not state.aside)
        if spec.stance is not None and spec.stance > last:
            report(k, "stance", f"there is no stance {spec.stance}; the plan has 0 to {last}")
        states.append(State(Custom(spec.stance or 0, spec.state, spec.do, spec.until), aside=True, anywhere=anywhere))
        return
    places = [i for i, state in enumerate(states) if _called(state, beside, spec.stance)]
    if not places:
        report(k, "after" if spec.after else "before", _unknown(states, beside, spec.stance))
    for i in reversed(places):
        stance = states[i].phase.stance
        new = State(Custom(stance, spec.state, spec.do, spec.until))
        states.insert(i + 1 if spec.after else i, new)


def _check_jumps(states: list[State], spec: StateSpec, scenario: Scenario, k: int, report: Report) -> None:
    for i in (i for i, state in enumerate(states) if _called(state, spec.state, spec.stance)):
        until = states[i].until or states[i].phase.until(scenario.control)
        labels = labels_of(until)
        if not scenario.control.compliant and states[i].until is None:
            # where contacts give, the same phase ends on other criteria
            labels |= labels_of(states[i].phase.until(scenario.control.under("contact")))
        for label, jump in spec.jumps().items():
            if label and label not in labels:
                known = ", ".join(sorted(labels))
                report(k, "next", f"state `{states[i].name}` never ends by `{label}`; it ends by: {known}")
            if jump.state not in WORDS and find(states, jump, i) is None:
                report(k, "next", _unknown(states, jump.state, jump.stance, WORDS))


def _check_ways_on(states: Sequence[State], scenario: Scenario, report: Report) -> None:
    """Report states after which none comes, and that do not say so: the run would end as if the plan were done."""
    for i, state in enumerate(states):
        if state.aside and following(states, i) == len(states):
            labels = labels_of(state.until or state.phase.until(scenario.control))
            if unsaid := [label for label in sorted(labels) if state.jump(label).state == "next"]:
                ends = f"say where it goes when it ends by {' or '.join(unsaid)}; `end` ends the run"
                text = f"nothing comes after state `{state.name}`, which is entered by a transition only: {ends}"
                report(_number(state.phase, scenario), "next", text)


def _number(phase: Phase, scenario: Scenario) -> int:
    """Return which of the file's states a new one is."""
    assert isinstance(phase, Custom)
    return next(k for k, spec in enumerate(scenario.control.states) if spec.do is phase.deed)


def opened_by(phase: Phase) -> set[str]:
    """Return the patch whose contact a phase opens when it is left."""
    return {phase.patch} if isinstance(phase, Unload) else set()


def closed_by(phase: Phase) -> set[str]:
    """Return the patch whose contact a phase closes when it is left."""
    return {phase.contact.patch} if isinstance(phase, Approach) else set()


def _called(state: State, name: str, stance: int | None) -> bool:
    """Say whether a state has this name, in full or without its patch, and leads to this stance if one is given."""
    verb = getattr(state.phase, "verb", state.name)
    return name in (state.name, verb) and stance in (None, state.phase.stance)


def _unknown(states: Sequence[State], name: str, stance: int | None, more: Sequence[str] = ()) -> str:
    if stance is not None and any(_called(state, name, None) for state in states):
        has = sorted({state.phase.stance for state in states if _called(state, name, None)})
        return f"there is no state `{name}` in stance {stance}, but in: {', '.join(map(str, has))}"
    known = dict.fromkeys([*more, *(state.name for state in states)])
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"there are: {', '.join(known)}"
    return f"there is no state `{name}`; {hint}"


def _check_deeds(states: Sequence[State], scenario: Scenario, closed: set[str], report: Report) -> None:
    """Report patches that a new state moves although they touch, or whose force it limits although they do not.

    Parameters
    ----------
    closed : patches in contact at the start.
    """
    for state in states:
        phase = state.phase
        if isinstance(phase, Custom) and not state.aside:
            k = _number(phase, scenario)
            for patch in sorted(closed & set(phase.deed.limbs)):
                report(k, "do", f"limbs: {patch} is in contact there (stance {phase.stance})")
            for patch in sorted(set(phase.deed.forces) - closed):
                report(k, "do", f"forces: {patch} is not in contact there (stance {phase.stance})")
        closed = (closed - opened_by(phase)) | closed_by(phase)
