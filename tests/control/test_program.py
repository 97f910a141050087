"""States of the user's own, criteria and transitions: what the scenario says is what the machine does."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

from mcplan.certificate.verify import verify
from mcplan.control import phases as phase_module
from mcplan.control.criteria import Measurement, criterion_of, labels_of
from mcplan.control.machine import Machine
from mcplan.control.phases import Phase
from mcplan.control.program import State, entries_of, listing, machine_of
from mcplan.errors import ScenarioError, SimulationFailed
from mcplan.planning.planner import plan as make_plan
from mcplan.scenario.load import load_scenario
from mcplan.settings.states import VERBS, Jump, Until
from mcplan.sim.simulate import Simulation, simulate
from mcplan.view.machine import arrows_of, machine_dot
from tests import shared


def load(tmp_path, states, name="sway"):
    """A bundled scenario with states of the machine as YAML text."""
    text = load_scenario(name).document.text()
    file = tmp_path / "mine.yaml"
    file.write_text(f"{text}\ncontrol:\n  states:\n{states}")
    return load_scenario(file), len(text.splitlines()) + 3


def carrying(plan, scenario):
    return replace(plan, scenario=scenario)


@pytest.fixture(scope="module")
def plan():
    return make_plan(load_scenario("sway"))


class Waiting(Phase):
    """A phase that ends by the measured error of its name."""

    stance, until_ = 0, Until(any=(Until(error="com", below=0.1, label="near"), Until(timeout=1.0)))

    def __init__(self, name, log):
        self.verb, self.log = name, log

    def enter(self, motion, t, now):
        self.log.append(f"+{self.name}")
        return 0.0

    def until(self, settings):
        return self.until_

    def leave(self, motion, t, now):
        self.log.append(f"-{self.name}")


def driven(jumps, errors, dt=0.5):
    """Run states a, b (with jumps) and c on a list of errors, and say what they did."""
    log = []
    states = [State(Waiting("a", log)), State(Waiting("b", log), jumps=jumps), State(Waiting("c", log))]
    machine = Machine(states, SimpleNamespace(settings=None))
    for k, error in enumerate(errors):
        machine.update(k * dt, Measurement(k * dt - machine.start_time, {"com": error}), None)
    return log, machine


FAR, NEAR = 1.0, 0.0


@pytest.mark.parametrize(
    ("to", "done"),
    [
        ("next", ["+a", "-a", "+b", "-b", "+c"]),
        ("again", ["+a", "-a", "+b", "+b"]),
        ("a", ["+a", "-a", "+b", "+a"]),
        ("end", ["+a", "-a", "+b"]),
    ],
)
def test_the_criterion_that_ended_a_state_selects_what_follows(to, done):
    """Only the transition to the next state runs the final action of a state."""
    log, machine = driven({"timeout": Jump(state=to)}, [FAR, NEAR, FAR, FAR])
    assert log == done
    assert machine.done == (to == "end")
    other, _ = driven({"timeout": Jump(state=to)}, [FAR, NEAR, NEAR])
    assert other == ["+a", "-a", "+b", "-b", "+c"]


def test_a_transition_may_fail_at_once_or_when_it_was_taken_too_often():
    with pytest.raises(SimulationFailed, match=r"b of stance 0 ended by timeout at t = 1\.5 s"):
        driven({"timeout": Jump(state="fail")}, [FAR, NEAR, FAR, FAR])
    again = {"timeout": Jump(state="again", times=2)}
    log, _ = driven(again, [FAR, NEAR, *[FAR] * 5])
    assert log == ["+a", "-a", "+b", "+b", "+b"]
    with pytest.raises(SimulationFailed, match="after 2 transitions to again"):
        driven(again, [FAR, NEAR, *[FAR] * 7])


def test_each_criterion_holds_within_its_bound():
    """Each criterion on either side of its bound; a custom label wins; time counts unbroken or altogether."""
    at = Measurement(1.0, {"com": 0.2}, {"com": 0.3, "joints": 4.0}, {"hand": 50.0}, {"foot": 0.02})
    for met, missed in (
        ({"elapsed": 1.0}, {"elapsed": 1.1}),
        ({"finished": 0.6}, {"finished": 0.7}),
        ({"timeout": 0.6}, {"timeout": 0.7}),
        ({"error": "com", "below": 0.2}, {"error": "com", "below": 0.1}),
        ({"speed": "joints", "below": 4}, {"speed": "joints", "below": 3}),
        ({"force": "hand", "above": 50}, {"force": "hand", "above": 51}),
        ({"force": "hand", "below": 50}, {"force": "hand", "below": 49}),
        ({"over": "foot", "below": 0.02}, {"over": "foot", "below": 0.01}),
        ({"over": "foot", "below": 0.02}, {"over": "hand", "below": 9.0}),
    ):
        yes, no = Until(**met), Until(**missed)
        assert criterion_of(yes, 0.4).evaluate(at) in labels_of(yes)
        assert not criterion_of(no, 0.4).evaluate(at)
        both, either = Until(all=(yes, no)), Until(any=(no, Until(all=(yes, yes), label="mine")))
        assert not criterion_of(both, 0.4).evaluate(at)
        assert criterion_of(either, 0.4).evaluate(at) == "mine"
        assert labels_of(either) == {"mine", *labels_of(no)}
    both = Until(all=[Until(finished=0.0), Until(any=[Until(force="left_sole", above=30.0), Until(timeout=2.0)])])
    assert labels_of(both) == {"time and force left_sole", "time and timeout"}
    forces = [20, 20, 5, 20, 20, 20]
    for how, first in (("lasting", 5), ("altogether", 4)):
        held = criterion_of(Until(force="hand", above=10, **{how: 0.2}), 0.0)
        seen = [bool(held.evaluate(Measurement(0.1 * k, force={"hand": f}))) for k, f in enumerate(forces)]
        assert seen == [k >= first for k in range(len(forces))]


STATES = """\
    - state: nod
      after: shift
      stance: 1
      do: {posture: {joints: {HEAD_JOINT1: 0.3}}, com: [0.015, 0.03, 0.79], over: 0.4}
      until: {any: [{all: [{finished: 0.05}, {error: com, below: 0.005}], label: there}, {timeout: 2}]}
      next: {timeout: fail}
    - {state: pause, do: {}, until: {elapsed: 0.1}, next: {"": {state: shift, stance: 2}}}
    - {state: nod, next: {there: pause}}
    - {state: shift, stance: 2, gains: {com_kp: 90}, weights: {posture: 0.01}}
    - {state: settle, until: {elapsed: 0.1}}
"""


def test_custom_states_are_executed(tmp_path, plan):
    """The machine goes stand, shift, nod, aside to pause, back, and on; references and gains are what the file says."""
    scenario, _ = load(tmp_path, STATES)
    simulation = Simulation(carrying(plan, scenario), "qp")
    controller, head = simulation.controller, list(scenario.robot.joint_names).index("HEAD_JOINT1")
    kps, seen = {}, {}
    while simulation.step() is not None:
        event = controller.machine.events[-1]
        kps[event.name, event.stance] = float(controller.tasks.com.kp[0])
        if event.name == "nod":
            seen["head"] = simulation.physics.q[7 + head]
    run, events = simulation.finish(), controller.machine.events
    assert any("replanned" in notice.text for notice in run.record.notices)  # a nodded head is off the plan
    assert [e.name for e in events] == ["stand", "shift", "nod", "pause", "shift", "shift", "shift", "settle"]
    assert [e.ended_by for e in events[2:4]] == ["there", "time"]
    assert events[3].end - events[3].start == pytest.approx(0.1)
    assert kps["nod", 1] == kps["shift", 3] == scenario.control.gains.com_kp
    assert kps["shift", 2] == 90.0
    assert seen["head"] == pytest.approx(0.3, abs=0.01)
    end = next(k for k in range(len(run)) if run.phases[run.phase[k]] == "pause")
    np.testing.assert_allclose(run.com[end], [0.015, 0.03, 0.79], atol=5e-3)
    assert verify(run).success


def test_what_is_printed_is_what_one_may_write(tmp_path, plan):
    """The listing, pasted into the scenario, is the same machine; so is that of a machine with custom states."""
    for states in ("", STATES):
        scenario = load(tmp_path, states)[0] if states else plan.scenario
        own = machine_of(carrying(plan, scenario))
        printed = yaml.safe_load(listing(own, scenario.control))["control"]["states"]
        assert printed == entries_of(own, scenario.control)
        again, _ = load(tmp_path, "".join(f"    - {item}\n" for item in printed))
        pasted = machine_of(carrying(plan, again))
        assert [s.name for s in pasted] == [s.name for s in own]
        assert list(arrows_of(pasted, scenario.control)) == list(arrows_of(own, scenario.control))
        assert entries_of(pasted, scenario.control) == printed


def test_the_drawing_has_every_state_and_every_transition(tmp_path, plan):
    scenario, _ = load(tmp_path, STATES)
    states = machine_of(carrying(plan, scenario))
    arrows = list(arrows_of(states, scenario.control))
    names = [state.name for state in states]
    nod, pause = names.index("nod"), names.index("pause")
    assert {(nod, "fail", "timeout"), (nod, pause, "there"), (pause, names.index("shift", nod), "")} <= set(arrows)
    usual = {here: to for here, to, label in list(arrows_of(machine_of(plan), plan.scenario.control)) if not label}
    last = len(machine_of(plan)) - 1
    assert usual == {k: k + 1 for k in range(last)} | {last: "end"}
    dot = machine_dot(states, scenario.control, "mine")
    assert f's{nod} -> s{pause} [label="there"];' in dot
    assert dot.count("->") == len(arrows)


def test_a_hand_goes_where_it_is_sent_and_a_contact_carries_no_more_than_it_may(tmp_path):
    """On ``table_hand`` the free left hand is raised, and the right one on the table is limited to 15 N."""
    whole = shared.planned("table_hand")
    hand = next(stance.moved for stance in whole.stances if stance.change == "add")
    free = "left_hand" if hand == "right_hand" else "right_hand"
    load_state = next(s for s in machine_of(whole) if s.name == f"load {hand}")
    states = f"""\
    - state: raise
      after: load {hand}
      stance: {load_state.phase.stance}
      do: {{limbs: {{{free}: {{by: [0, 0, 0.04]}}}}, forces: {{{hand}: 15}}, over: 0.5}}
      until: {{finished: 0.2}}
      next: end
"""
    scenario, _ = load(tmp_path, states, "table_hand")
    run = simulate(carrying(whole, scenario), "qp")
    first = next(k for k in range(len(run)) if run.phases[run.phase[k]] == "raise")
    places = [scenario.robot.frame_pose(run.q[k], free)[:3, 3] for k in (first, -1)]
    np.testing.assert_allclose(places[1] - places[0], [0, 0, 0.04], atol=5e-3)
    normal = whole.stances[load_state.phase.stance].contacts
    normal = next(contact.axes[:, 2] for contact in normal if contact.patch == hand)
    assert run.wrench[-1, run.patches.index(hand), :3] @ normal <= 15.0 + 1e-6


def test_an_own_state_before_another_is_printed_as_that(tmp_path, plan):
    """After the state before it, in its own stance, is another place where that leads to another stance."""
    scenario, _ = load(tmp_path, "    - {state: wait, before: shift, stance: 2, do: {}, until: {elapsed: 1}}\n")
    own = machine_of(carrying(plan, scenario))
    printed = entries_of(own, scenario.control)
    assert next(item for item in printed if item["state"] == "wait")["before"] == "shift"
    pasted = machine_of(carrying(plan, load(tmp_path, "".join(f"    - {item}\n" for item in printed))[0]))
    assert [(s.name, s.phase.stance) for s in pasted] == [(s.name, s.phase.stance) for s in own]


def test_a_state_that_belongs_to_no_stance_is_in_that_from_which_it_is_entered(tmp_path, plan):
    states = """\
    - {state: pause, do: {}, until: {elapsed: 0.1}, next: shift}
    - {state: nod, after: shift, stance: 1, do: {}, until: {elapsed: 0.1}, next: pause}
"""
    scenario, _ = load(tmp_path, states)
    simulation = Simulation(carrying(plan, scenario), "qp")
    for _ in range(6000):
        if simulation.step() is None:
            break
        events = [(e.name, e.stance) for e in simulation.controller.machine.events]
        if len(events) > 4:
            break
    assert events[:5] == [("stand", 0), ("shift", 1), ("nod", 1), ("pause", 1), ("shift", 1)]


@pytest.mark.parametrize(
    ("states", "line", "message"),
    [
        ("    - {state: swing, gains: {com_kp: 1}}\n", 1, "there is no state `swing`; there are: stand, shift, settle"),
        ("    - {state: shift, stance: 9, gains: {com_kp: 1}}\n", 1, "no state `shift` in stance 9, but in: 1, 2, 3"),
        ("    - {state: shift, next: {tiemout: fail}}\n", 1, "never ends by `tiemout`; it ends by"),
        ("    - {state: shift, next: {timeout: load}}\n", 1, "there is no state `load`"),
        ("    - {state: a, after: lift, do: {}, until: {elapsed: 1}}\n", 1, "there is no state `lift`"),
        ("    - state: a\n      after: shift\n      do: {limbs: {left_sole: {by: [0, 0, 1]}}}\n"
         "      until: {elapsed: 1}\n", 3, "left_sole is in contact there"),
        ("    - {state: a, stance: 9, do: {}, until: {elapsed: 1}, next: end}\n", 1, "no stance 9; the plan has 0 to"),
        ("    - {state: a, do: {}, until: {any: [{elapsed: 1}, {timeout: 2}]}, next: {timeout: fail}}\n", 1,
         "nothing comes after state `a`, which is entered by a transition only: say where it goes when it ends by"),
        ("    - {state: a, do: {}, until: {elapsed: 1}, next: next}\n", 1, "`end` ends the run"),
        ("    - state: a\n      after: shift\n      do: {forces: {left_hand: 5}}\n      until: {elapsed: 1}\n", 3,
         "left_hand is not in contact there"),
    ],
)  # fmt: skip
def test_states_that_the_plan_lacks_are_reported_with_their_line(tmp_path, plan, states, line, message):
    scenario, before = load(tmp_path, states)
    with pytest.raises(ScenarioError) as refusal:
        machine_of(carrying(plan, scenario))
    problem = refusal.value.problems[0]
    assert message in problem.message
    assert problem.line == before + line


def test_every_phase_of_a_plan_has_a_verb_that_scenarios_know_and_a_description():
    kinds = [kind for kind in vars(phase_module).values() if isinstance(kind, type) and issubclass(kind, Phase)]
    assert {kind.verb for kind in kinds if kind.verb} | {"slide", "carry"} == set(VERBS)
    assert all(kind.effect for kind in kinds if kind.verb)


@pytest.mark.parametrize(
    ("states", "message"),
    [
        ("{state: shfit left_sole, gains: {com_kp: 1}}", "unknown state `shfit`; did you mean `shift`?"),
        ("{state: shift, next: {timeout: setle}}", "states[0].next.timeout: unknown state `setle`; did you mean"),
        ("{state: a, after: nowhere, do: {}, until: {elapsed: 1}}", "after: unknown state `nowhere`; there are"),
        ("{state: shift, untl: {elapsed: 1}}", "unknown key; did you mean `until`?"),
        ("{state: shift, until: {elapsed: 1, timeout: 2}}", "expected exactly one of all, any"),
        ("{state: shift, until: {error: com}}", "`error` takes `below`; given: none"),
        ("{state: shift, until: {force: left_sole}}", "a force is either `above` or `below` a bound"),
        (
            "{state: shift, until: {elapsed: 1, lasting: 1, altogether: 1}}",
            "a criterion is either `lasting` or met `altogether` for so long",
        ),
        ("{state: shift, until: {force: left_soul, above: 1}}", "unknown patch `left_soul`; did you mean"),
        ("{state: shift, until: {any: []}}", "`any` needs at least one criterion"),
        ("{state: shift, after: stand}", "which needs `do`"),
        ("{state: a, do: {}}", "a new state needs `until`"),
        ("{state: shift, gains: {com_kq: 3}}", "unknown key; did you mean `com_kp`?"),
        ("{state: a, do: {posture: {joints: {HEAD_JOINT0: 9}}}, until: {elapsed: 1}}", "outside the joint's range"),
        ("{state: a, do: {limbs: {left_hand: {}}}, until: {elapsed: 1}}", "give either `to`, a pose, or `by`"),
    ],
)
def test_mistakes_are_reported_with_their_line(tmp_path, states, message):
    with pytest.raises(ScenarioError) as refusal:
        load(tmp_path, f"    - {states}\n")
    assert any(message in str(problem) for problem in refusal.value.problems), refusal.value
    assert all(problem.line for problem in refusal.value.problems)


def test_the_bundled_example_does_what_it_says_under_torques_alone():
    run = simulate(make_plan(load_scenario("sway_own_states")), "contact")
    report = verify(run)
    assert report.success, report.text()
    done = [(phase.name, phase.ended_by) for phase in run.record.phases]
    assert done[1:5] == [("shift", "near"), ("nod", "nodded"), ("raise", "up"), ("shift", "near")]
    assert done[-2][0] == "wait"
    joint = run.record.joints.index("HEAD_JOINT1")
    nodding = run.phase == [phase.name for phase in run.record.phases].index("nod")
    assert run.q[nodding, 7 + joint].max() == pytest.approx(0.4, abs=0.05)
