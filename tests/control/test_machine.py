from types import SimpleNamespace

import pytest

from mcplan.control.criteria import Measurement
from mcplan.control.machine import Machine
from mcplan.control.phases import Phase, phases_of
from mcplan.control.program import State
from mcplan.errors import SimulationFailed
from mcplan.planning.chain import separates_at_once
from mcplan.settings.states import Jump, Until

MOTION = SimpleNamespace(settings=None)


class Recorded(Phase):
    """A phase that writes down what happens to it."""

    def __init__(self, name, criterion, log):
        self.verb, self.stance, self.criterion, self.log = name, 0, criterion, log

    def replan(self, motion, t, now):
        self.log.append(("replan", self.name, t))

    def enter(self, motion, t, now):
        self.log.append(("enter", self.name, t))
        return 0.0

    def until(self, settings):
        return self.criterion

    def leave(self, motion, t, now):
        self.log.append(("leave", self.name, t))


def run(machine, errors, dt=0.1):
    for k, error in enumerate(errors):
        t = k * dt
        machine.update(t, Measurement(t - machine.start_time, {"com": error}), None)
        if machine.done:
            return


def test_phases_follow_each_other_and_record_what_ended_them():
    log = []
    first = Recorded("first", Until(any=(Until(error="com", below=0.1), Until(timeout=1.0))), log)
    second = Recorded("second", Until(elapsed=0.2), log)
    machine = Machine([first, second], MOTION)
    run(machine, [1.0, 1.0, 0.05, 1.0, 1.0, 1.0])
    assert [(e, n, pytest.approx(t)) for e, n, t in log] == [
        ("replan", "first", 0.0), ("enter", "first", 0.0), ("leave", "first", 0.2),
        ("replan", "second", 0.2), ("enter", "second", 0.2), ("leave", "second", 0.4),
    ]  # fmt: skip
    assert [event.ended_by for event in machine.events] == ["error com", "time"]
    assert machine.done


def test_a_state_that_lacks_what_it_needs_says_so_after_a_jump_and_is_a_mistake_before_one():
    class Lost(Recorded):
        def enter(self, motion, t, now):
            raise KeyError("left_hand")

    first, lost = Recorded("first", Until(elapsed=0.05), []), Lost("approach left_hand", Until(elapsed=0.1), [])
    with pytest.raises(KeyError):
        run(Machine([first, lost], MOTION), [1.0] * 5)
    onward = {"": Jump(state="approach left_hand")}
    states = [State(first, jumps=onward), State(Recorded("second", Until(elapsed=0.1), [])), State(lost)]
    with pytest.raises(SimulationFailed, match=r"approach left_hand of stance 0 .*after a jump left_hand is not in"):
        run(Machine(states, MOTION), [1.0] * 5)


def test_a_phase_that_does_not_get_there_ends_by_its_timeout():
    machine = Machine([Recorded("only", Until(any=(Until(error="com", below=0.1), Until(timeout=1.0))), [])], MOTION)
    run(machine, [1.0] * 20)
    assert machine.events[-1].ended_by == "timeout"
    assert machine.events[-1].end == pytest.approx(1.0)


def plan_of(*stances):
    """A plan without geometry: (change, moved) and the patches in contact, per stance."""
    made = []
    for change, moved, patches in stances:
        contacts = tuple(SimpleNamespace(patch=patch) for patch in patches)
        by_patch = {contact.patch: contact for contact in contacts}
        made.append(
            SimpleNamespace(
                change=change, moved=moved, contacts=contacts, patches=patches, objects={}, q=None, passing=None,
                contact=by_patch.__getitem__,
            )
        )  # fmt: skip
    limbs = {patch: SimpleNamespace(limb=patch.split("_")[0]) for _, _, patches in stances for patch in patches}
    robot = SimpleNamespace(patches=limbs)
    for k, stance in enumerate(made):
        segments = (SimpleNamespace(objects=None, law=None), SimpleNamespace(objects=None, law=None))
        stance.transition = SimpleNamespace(segments=segments, parts=separates_at_once(robot, made, k))
    return SimpleNamespace(stances=tuple(made), scenario=SimpleNamespace(robot=robot))


def test_a_state_that_is_broken_off_begins_again_after_what_comes_between():
    log = []
    first, between, last = (Recorded(name, Until(elapsed=0.2), log) for name in ("first", "between", "last"))
    machine = Machine([first, last], MOTION)
    for k in range(12):
        t = 0.1 * k
        if k == 1:
            machine.divert(t, None, [between], "falls", 0)
        else:
            machine.update(t, Measurement(t - machine.start_time), None)
    assert [event.name for event in machine.events] == ["first", "between", "first", "last"]
    assert [event.ended_by for event in machine.events] == ["falls", "time", "time", "time"]
    assert ("leave", "first", pytest.approx(0.1)) not in log
    assert machine.done


@pytest.mark.parametrize(("onward", "names"), [(0, ["a", "b", "x", "a", "b", "c"]), (2, ["a", "b", "x", "c"])])
def test_after_what_comes_between_another_state_may_follow(onward, names):
    log = []
    states = [Recorded(name, Until(elapsed=0.2), log) for name in "abc"]
    machine, between = Machine(states, MOTION), Recorded("x", Until(elapsed=0.2), log)
    for k in range(30):
        t = 0.1 * k
        if machine.events and machine.phase is states[1] and len(machine.events) == 2:
            machine.divert(t, None, [between], "falls", onward)
        else:
            machine.update(t, Measurement(t - machine.start_time), None)
    assert [event.name for event in machine.events] == names
    assert machine.done


def test_a_step_is_shift_unload_and_then_the_swing_of_the_foot():
    both = ["left", "right"]
    plan = plan_of(("start", None, both), ("remove", "right", ["left"]), ("add", "right", both))
    assert [phase.name for phase in phases_of(plan)] == [
        "stand", "shift", "unload right", "lift right", "swing right", "approach right", "load right", "settle",
    ]  # fmt: skip
    assert [phase.stance for phase in phases_of(plan)] == [0, 1, 1, 2, 2, 2, 2, 2]


def test_a_patch_with_nowhere_to_go_is_lifted_clear_at_once():
    plan = plan_of(("start", None, ["left", "right"]), ("remove", "right", ["left"]), ("add", "hand", ["left", "hand"]))
    assert [phase.name for phase in phases_of(plan)][1:4] == ["shift", "unload right", "retract right"]


def test_a_posture_in_the_air_follows_the_release_directly():
    plan = plan_of(("start", None, ["left", "right"]), ("remove", "right", ["left"]), ("shift", None, ["left"]))
    assert [phase.name for phase in phases_of(plan)] == ["stand", "shift", "unload right", "shift", "settle"]


def test_a_link_parts_from_its_support_before_the_limb_that_stands_on_another_patch_moves_on():
    plan = plan_of(
        ("start", None, ["leg_thigh", "leg_sole"]), ("remove", "leg_thigh", ["leg_sole"]), ("shift", None, ["leg_sole"])
    )
    assert [phase.name for phase in phases_of(plan)][1:4] == ["shift", "unload leg_thigh", "retract leg_thigh"]


def test_toes_that_follow_a_knee_are_announced():
    """What a limb touches next is known while it moves; another limb's contact, or a later one, is not."""
    plan = plan_of(
        ("start", None, ["foot"]),
        ("add", "leg_knee", ["foot", "leg_knee"]),
        ("add", "leg_toe", ["foot", "leg_knee", "leg_toe"]),
        ("add", "leg_ball", ["foot", "leg_knee", "leg_toe", "leg_ball"]),
        ("remove", "foot", ["leg_knee", "leg_toe", "leg_ball"]),
        ("add", "foot", ["leg_knee", "leg_toe", "leg_ball", "foot"]),
    )
    lifts = [phase for phase in phases_of(plan) if phase.name.startswith("lift")]
    assert [[c.patch for c in lift.next_contacts] for lift in lifts] == [["leg_toe", "leg_ball"], ["leg_ball"], [], []]
