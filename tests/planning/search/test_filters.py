"""What a search decides by numbers alone: reach, friction, gaps, cells, budgets, and what is left to the goal."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.planning.goal.item import COORDINATE_TOLERANCE, Goal, deviation
from mcplan.planning.guide.path import GuidePath
from mcplan.planning.posture.continuity import shared_contacts
from mcplan.planning.search.failure import check_friction, check_reachable
from mcplan.planning.search.move_checks import FOOTPRINT_GAP_M, footprint_overlap
from mcplan.planning.search.moves import beyond_unreachable_position, offset_from_nominal
from mcplan.planning.search.node import ContactProgress, Move, contact_cell
from mcplan.robot.anatomy import Limb
from mcplan.scenario.schema import GoalItem
from mcplan.scene.environment import Environment, Surface
from mcplan.scene.spec import ContactSpec

SQUARE = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])


def goal_of(*specs, **options):
    return Goal.of(GoalItem(contacts=specs, **options))


# -- what cannot be -------------------------------------------------------------------------------------------------


def limb(name, patches, root, length):
    return Limb(name, patches, np.array(root, float), length)


LEGS = {"left": limb("left", ("l",), [0, 0.1, 0], 0.7), "right": limb("right", ("r",), [0, -0.1, 0], 0.7)}
SPAN = 2 * 0.7 + 0.2


def legged(places):
    """Candidates of both patches at places by surface."""
    sampled = SimpleNamespace(
        specs=[{"surface": name} for name, _ in places], positions=np.array([place for _, place in places], float)
    )
    return {"l": sampled, "r": sampled}


def reach_message(gaps):
    """Say what is unreachable where the next surface is each time so much farther."""
    places = [(f"s{k}", [sum(gaps[:k]), 0.0, 0.0]) for k in range(len(gaps) + 1)]
    robot = SimpleNamespace(patches={"l": SimpleNamespace(limb="left"), "r": SimpleNamespace(limb="right")})
    goal = goal_of(*(ContactSpec(patch=p, surface=places[-1][0]) for p in "lr"))
    start = [SimpleNamespace(support="s0", p=np.zeros(3))]
    return check_reachable(robot, start, goal, legged(places), LEGS)


def test_a_gap_is_too_wide_where_two_limbs_do_not_span_it():
    assert reach_message([SPAN - 0.01]) == ""
    message = reach_message([SPAN + 0.25])
    assert "l cannot come to s1: from s0" in message
    assert f"{SPAN + 0.25:.2f} m apart" in message
    assert f"spans {SPAN:.2f} m at most; 0.25 m are missing" in message


def test_a_hand_reaches_as_far_as_it_and_the_leg_that_stands():
    limbs = LEGS | {"arm": limb("arm", ("h",), [0, 0, 0.6], 0.65)}
    robot = SimpleNamespace(patches={"h": SimpleNamespace(limb="arm")})
    goal = goal_of(ContactSpec(patch="h", surface="bar"))
    start = [SimpleNamespace(support="floor", p=np.zeros(3))]
    for height, reaches in ((1.45, True), (2.1, False)):
        sampled = SimpleNamespace(specs=[{"surface": "bar"}], positions=np.array([[0.0, 0.0, height]]))
        none = SimpleNamespace(specs=[], positions=np.zeros((0, 3)))
        message = check_reachable(robot, start, goal, {"h": sampled, "l": none, "r": none}, limbs)
        assert (message == "") == reaches


def test_a_start_on_a_support_that_offers_no_other_place_is_what_the_gap_is_counted_from():
    """A ledge as large as the feet that stand on it."""
    robot = SimpleNamespace(patches={"l": SimpleNamespace(limb="left"), "r": SimpleNamespace(limb="right")})
    start = [SimpleNamespace(support="ledge", p=np.zeros(3))]
    far = legged([("far", [SPAN + 0.5, 0.0, 0.0])])
    message = check_reachable(robot, start, goal_of(ContactSpec(patch="l", surface="far")), far, LEGS)
    assert f"from ledge, the nearest support within reach, the places are {SPAN + 0.5:.2f} m apart" in message
    assert "0.50 m are missing" in message


def test_steps_between_bridge_a_gap():
    assert reach_message([SPAN - 0.1, SPAN - 0.1, SPAN - 0.1]) == ""
    assert "from s1" in reach_message([SPAN - 0.1, SPAN + 0.1])


def plate(name, tilt, friction, about=(0.0, 1.0, 0.0)):
    R = Rotation.from_rotvec(tilt * np.array(about)).as_matrix()
    return Surface(name, R, np.zeros(3), SQUARE, friction=friction)


def test_a_slope_bears_up_to_the_angle_of_its_friction():
    tilt = np.arctan(0.5)
    for friction, bears in ((0.51, True), (0.49, False)):
        environment = Environment((plate("slope", tilt, friction),))
        message = check_friction(environment, goal_of(ContactSpec(patch="l", surface="slope")), {})
        assert (message == "") == bears
        if not bears:
            assert "slope is tilted by 26.6 degrees with friction 0.49" in message
            assert "at least 0.50" in message


def test_two_slopes_that_face_each_other_bear_what_none_does_alone():
    walls = Environment((plate("left", 1.2, 0.4), plate("right", -1.2, 0.4)))
    one = goal_of(ContactSpec(patch="l", surface="left"), only=True)
    both = goal_of(ContactSpec(patch="l", surface="left"), ContactSpec(patch="r", surface="right"), only=True)
    assert check_friction(walls, one, {})
    assert check_friction(walls, both, {}) == ""


# -- the goal -------------------------------------------------------------------------------------------------------


def test_a_goal_is_hit_where_all_that_it_gives_is_met():
    spec = ContactSpec(patch="l", surface="floor", x=0.5, yaw=3.1)
    here = {"x": 0.5, "y": 7.0, "yaw": 3.1}
    assert deviation(spec, "floor", here) <= COORDINATE_TOLERANCE
    assert deviation(spec, "table", here) == np.inf
    assert deviation(spec, "floor", here | {"yaw": 3.1 - 2 * np.pi}) <= COORDINATE_TOLERANCE
    for name in ("x", "yaw"):
        for off in (-2e-6, 2e-6):
            assert deviation(spec, "floor", here | {name: here[name] + off}) > COORDINATE_TOLERANCE


def touching(**places):
    """Return contacts by patch on the floor at x."""
    return tuple(SimpleNamespace(patch=p, support="floor", coordinates={"x": x}) for p, x in places.items())


def test_a_goal_is_reached_with_all_of_its_contacts_and_no_others_where_it_says_so():
    specs = [ContactSpec(patch=p, surface="floor", x=1.0) for p in "lr"]
    open_, only = goal_of(*specs), goal_of(*specs, only=True)
    assert open_.reached(touching(l=1.0, r=1.0, hand=0.3))
    assert not open_.reached(touching(l=1.0, hand=1.0))
    assert not open_.reached(touching(l=1.0, r=0.9))
    assert only.reached(touching(l=1.0, r=1.0))
    assert not only.reached(touching(l=1.0, r=1.0, hand=0.3))


# -- the guide ------------------------------------------------------------------------------------------------------


def test_beyond_its_ends_the_guide_goes_on_straight_and_its_track_keeps_the_offset():
    path = GuidePath(np.array([[0.0, 0, 1], [2, 0, 1]]), np.array([0.0, 0.0]))
    offset = np.array([0.1, 0.2, -1.0])
    s, aside = path.progress([[-0.4, 0.2, 0.0], [2.6, 0.2, 0.0], [1.1, 0.5, 0.0], [1.1, 0.2, 0.4]], offset)
    assert s == pytest.approx([-0.5, 2.5, 1.0, 1.0])
    assert aside == pytest.approx([0.0, 0.0, 0.3, 0.4])
    assert path.at(-1.0)[0] == pytest.approx([0, 0, 1])
    assert path.at(9.0)[0] == pytest.approx([2, 0, 1])


def test_a_turn_on_the_spot_counts_as_way_and_swings_the_track_about_the_base():
    path = GuidePath(np.zeros((2, 3)), np.array([0.0, np.pi / 2]))
    assert path.length == pytest.approx(0.25 * np.pi)
    s, track = path.track(np.array([0.0, 0.3, -0.6]))
    yaw = s / 0.5
    assert track == pytest.approx(np.column_stack([-0.3 * np.sin(yaw), 0.3 * np.cos(yaw), np.full(len(s), -0.6)]))
    assert path.has_turns
    assert not GuidePath(np.zeros((2, 3)), np.array([0.0, 0.1])).has_turns


# -- the search -----------------------------------------------------------------------------------------------------


def test_soles_beside_each_other_keep_their_gap(scene):
    left = scene.contact("left_sole", x=0.2, y=0.1, yaw=0.0)
    other = scene.contact("right_sole", x=0.2, y=-0.1, yaw=0.0)
    room = float((left.world_points[:, 1]).min() - (other.world_points[:, 1]).max())
    for gap, overlaps in ((FOOTPRINT_GAP_M + 1e-3, False), (FOOTPRINT_GAP_M - 1e-3, True), (-0.05, True)):
        near = scene.contact("right_sole", x=0.2, y=-0.1 + room - gap, yaw=0.0)
        assert footprint_overlap(left, near) == overlaps
        assert footprint_overlap(near, left) == overlaps
    for height, overlaps in ((0.05, True), (0.1, False)):  # over each other: on one level, or on two steps
        higher = replace(left, patch="right_sole", p=left.p + height * left.normal)
        assert footprint_overlap(left, higher) == footprint_overlap(higher, left) == overlaps
    above = scene.contact("right_sole", "table", x=-0.1, y=0.1, yaw=0.0)
    assert not footprint_overlap(left, above)


def test_places_round_to_cells_and_those_of_the_goal_have_their_own(scene):
    a, b, c = (scene.contact("left_sole", x=x, y=0.1, yaw=yaw) for x, yaw in ((0.2, 0), (0.22, 0.04), (0.2, 0.3)))
    assert contact_cell(a, False) == contact_cell(b, False)
    assert contact_cell(a, False) != contact_cell(c, False)
    assert contact_cell(a, False) != contact_cell(a, True)
    for x, yaw in ((0.3, 0.0), (0.1, 0.0), (0.2, 0.1), (0.2, -0.1)):  # 10 cm or 6 degrees are another place
        assert contact_cell(scene.contact("left_sole", x=x, y=0.1, yaw=yaw), False) != contact_cell(a, False)
    ends = [contact_cell(scene.contact("left_sole", x=x, y=0.1, yaw=0.0), False) for x in np.arange(0.0, 0.45, 0.1)]
    assert len(set(ends)) == len(ends)


def test_beyond_a_place_that_was_out_of_reach_no_other_is_tried_first():
    guide = GuidePath(np.array([[0.0, 0, 0], [4, 0, 0]]), np.zeros(2))
    places = np.array([[1.5, 0.1, 0], [1.3, 0.1, 0], [1.6, 0.1, 0], [0.5, 0.1, 0], [1.0, 0.9, 0]])
    candidates, offsets = {"l": SimpleNamespace(positions=places)}, {"l": np.array([0.0, 0.1, 0.0])}
    space = SimpleNamespace(guide=guide, offsets=offsets, candidates=candidates)
    node = SimpleNamespace(
        progress={"l": ContactProgress(9, 0, False), "r": ContactProgress(1.0, 0, False)}, unreachable={}
    )
    moves = [Move("left", ("l",), (("l", i),)) for i in range(5)]
    # the others, not the one that leaves, give the place of the robot
    here, distance = offset_from_nominal(space, node, moves[0])
    assert here == pytest.approx([1.0, 0, 0])
    assert distance == pytest.approx(0.5)
    node.unreachable["left"] = [(here, distance)]
    assert [beyond_unreachable_position(space, node, move) for move in moves] == [False, False, True, False, False]
    node.unreachable["left"] = [(here, 0.2)]
    assert [beyond_unreachable_position(space, node, move) for move in moves] == [True, True, True, False, False]


def test_contacts_are_kept_where_they_are_at_the_same_place(scene):
    before, after = scene.feet(), (scene.feet()[0], scene.feet(0.3)[1])
    assert [contact.patch for contact in shared_contacts(before, after)] == ["left_sole"]
