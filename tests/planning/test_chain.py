"""Transitions of whole plans: each begins where the one before has ended, and a file brings back the same."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from mcplan.document.document import dump_document
from mcplan.errors import ScenarioError
from mcplan.planning.chain import displaced_objects, with_transitions
from mcplan.planning.plan_file import load_plan, plan_document, save_plan
from tests import shared


@pytest.fixture(scope="module")
def planned():
    """A sequence that lifts a hand that has nowhere to go."""
    return shared.planned("table_hand")


def test_each_motion_begins_where_the_one_before_has_ended_and_ends_at_its_stance(planned):
    q = planned.stances[0].q
    for stance in planned.stances[1:]:
        (segment,) = stance.transition.segments
        np.testing.assert_array_equal(segment.q[0], q)
        np.testing.assert_array_equal(segment.q[-1], stance.q)
        q = stance.transition.end
        assert stance.transition.patch == stance.moved


def test_a_hand_that_is_let_go_with_nowhere_to_go_is_lifted_and_what_follows_begins_there(planned):
    k = next(k for k, stance in enumerate(planned.stances) if (stance.change, stance.moved) == ("remove", "right_hand"))
    on = replace(planned.stances[3], change="remove", moved="left_sole")  # another limb moves next
    cut = with_transitions(planned.scenario, (*planned.stances[: k + 1], on))
    shift, lift = cut[k].transition.segments
    np.testing.assert_array_equal(lift.q[0], shift.q[-1])
    robot, table = planned.scenario.robot, planned.stances[k - 1].contact("right_hand")
    heights = [(robot.frame_pose(q, "right_hand")[:3, 3] - table.p) @ table.normal for q in lift.q]
    assert heights[-1] > 0.9 * planned.scenario.transition_settings.avoidance.swing_clearance
    assert abs(heights[0]) < 1e-3
    np.testing.assert_array_equal(cut[k + 1].transition.start, lift.q[-1])


def test_a_file_brings_back_the_same_motions(planned, tmp_path):
    save_plan(planned, tmp_path / "a.yaml")
    again = load_plan(tmp_path / "a.yaml")
    assert again.scenario.document.data["mcplan"] == 2
    for one, other in zip(planned.segments, again.segments, strict=True):
        np.testing.assert_array_equal(one.q, other.q)
        np.testing.assert_array_equal(one.times, other.times)
        assert [c.patch for c in one.contacts] == [c.patch for c in other.contacts]
        assert (one.near, one.missed, one.held) == (other.near, other.missed, other.held)
        for course, same in zip(one.courses, other.courses, strict=True):
            assert (course.patch, course.lead, course.lifts_off, course.hold) == (
                same.patch, same.lead, same.lifts_off, same.hold,
            )  # fmt: skip
            np.testing.assert_array_equal(course.lift, same.lift)
            assert (course.target is None) == (same.target is None)
    assert not again.notices


def test_motions_that_a_file_lacks_or_made_with_other_speeds_are_found_when_it_is_read(planned, tmp_path):
    short = replace(planned, stances=planned.stances[:3])
    data = plan_document(short, tmp_path)
    old = tmp_path / "old.yaml"
    save_plan(short, old)
    same = load_plan(old)
    bare = replace(short, stances=tuple(replace(stance, transition=None) for stance in short.stances))
    save_plan(bare, old)
    found = load_plan(old)
    for one, other in zip(same.segments, found.segments, strict=True):
        np.testing.assert_allclose(one.q, other.q, atol=1e-12)
    save_plan(short, old)
    # at the other paces limits of force and torque decide, whatever the speed
    usual = load_plan(old, {"control.pace": "slow"})
    slower = load_plan(old, {"control.pace": "slow", "control.timing.joint_speed": 0.1})
    durations = [sum(transition.duration for transition in one.transitions) for one in (slower, usual)]
    assert durations[0] > 1.5 * durations[1]
    (notice,) = slower.notices
    assert "control.timing.joint_speed" in notice
    assert data["plan"]["made_with"]["timing.com_speed"] == 0.25


def test_only_what_depends_on_a_changed_setting_is_computed_again(tmp_path):
    whole = shared.planned("step", control__pace="fast")
    file = tmp_path / "plan.yaml"
    save_plan(whole, file)
    assert not load_plan(file).notices
    for change, named in (
        ({"control.contact.preload_force": 30.0}, "control.contact.preload_force"),
        ({"control.gains.torque_rate": 900, "control.pace": "fastest"}, "control.gains.torque_rate, control.pace"),
        ({"control.timing.load_time": 0.1}, "control.timing.load_time"),
    ):
        assert load_plan(file, change).notices == (f"the times of motions were computed again: {named} changed",)
    (notice,) = load_plan(file, {"control.contact.friction_faces": 4}).notices
    assert notice == "the motions between stances were planned again: control.contact.friction_faces changed"


@pytest.mark.parametrize("name", ["made_with", "paced_with"])
def test_settings_that_are_no_mapping_are_an_error(planned, tmp_path, name):
    data = plan_document(planned, tmp_path)
    data["plan"][name] = [1]
    (tmp_path / "plan.yaml").write_text(dump_document(data))
    with pytest.raises(ScenarioError, match=rf"plan\.{name}: expected settings by name"):
        load_plan(tmp_path / "plan.yaml")


def test_an_object_that_nothing_moves_is_refused(tmp_path):
    whole = shared.planned("push")
    file = tmp_path / "plan.yaml"
    data = plan_document(replace(whole, stances=whole.stances[:2]), tmp_path)
    data["stances"][1]["objects"] = {"box": {"xyz": [1.2, 0.0, 0.5]}}
    data["stances"][1]["contacts"] = data["stances"][0]["contacts"]
    file.write_text(dump_document(data))
    with pytest.raises(ScenarioError, match="pose of box changed without a contact that could move it"):
        load_plan(file)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda segment: segment["knots"].pop(), "24 knots and 25 times"),
        (lambda segment: segment["knots"].__setitem__(3, "1 2 x"), "could not convert"),
        (lambda segment: segment["knots"].__setitem__(3, "1 2 3"), "different numbers"),
        (lambda segment: segment["knots"].__setitem__(3, segment["knots"][3].replace(" ", " nan ", 1)[4:]), "numbers"),
        (lambda segment: segment["times"].__setitem__(2, 0.0), "rise"),
        (lambda segment: segment["courses"].append({"patch": "tail", "leader": "body"}), "no patch `tail`"),
    ],
)
def test_a_motion_that_cannot_be_read_is_an_error_with_its_line(planned, tmp_path, change, message):
    from mcplan.document.document import dump_document

    data = plan_document(replace(planned, stances=planned.stances[:3]), tmp_path)
    change(data["stances"][1]["transition"]["segments"][0])
    (tmp_path / "bad.yaml").write_text(dump_document(data))
    with pytest.raises(ScenarioError) as refusal:
        load_plan(tmp_path / "bad.yaml")
    assert message in str(refusal.value)
    assert refusal.value.problems[0].line


def test_an_object_that_was_moved_before_is_not_moved_again():
    poses = {"a": np.array([0.0, 0, 0, 1, 0, 0, 0]), "b": np.array([1.0, 0, 0, 1, 0, 0, 0])}
    scene = SimpleNamespace(objects=tuple(SimpleNamespace(name=name, pose=pose) for name, pose in poses.items()))
    there = {"a": np.array([0.5, 0, 0, 1, 0, 0, 0.0])}
    stances = [SimpleNamespace(objects=objects) for objects in ({}, there, there)]
    assert list(displaced_objects(scene, *stances[:2])) == ["a"]
    assert displaced_objects(scene, *stances[1:]) == {}
