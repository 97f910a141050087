"""What a search decides by numbers alone: reach, friction, gaps, cells, budgets, and what is left to the goal."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.planning.goal.item import EXACT, Goal, deviation
from mcplan.planning.guide.path import GuidePath
from mcplan.planning.posture.continuity import shared_contacts
from mcplan.planning.search.node import Move
from mcplan.planning.search.ordering import GAP, away, beyond_failure, cell_of, overlap
from mcplan.planning.search.potential import TIE, Potential, Standing
from mcplan.planning.search.reachability import slippery, unreachable
from mcplan.planning.search.stance_search import StanceSearch, _larger
from mcplan.robot.anatomy import HRP2_SCALE, Limb
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
        specs=[{"surface": name} for name, _ in places], place=np.array([place for _, place in places], float)
    )
    return {"l": sampled, "r": sampled}


def reach_message(gaps):
    """Say what is unreachable where the next surface is each time so much farther."""
    places = [(f"s{k}", [sum(gaps[:k]), 0.0, 0.0]) for k in range(len(gaps) + 1)]
    robot = SimpleNamespace(patches={"l": SimpleNamespace(limb="left"), "r": SimpleNamespace(limb="right")})
    goal = goal_of(*(ContactSpec(patch=p, surface=places[-1][0]) for p in "lr"))
    start = [SimpleNamespace(support="s0", p=np.zeros(3))]
    return unreachable(robot, start, goal, legged(places), LEGS)


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
        sampled = SimpleNamespace(specs=[{"surface": "bar"}], place=np.array([[0.0, 0.0, height]]))
        none = SimpleNamespace(specs=[], place=np.zeros((0, 3)))
        message = unreachable(robot, start, goal, {"h": sampled, "l": none, "r": none}, limbs)
        assert (message == "") == reaches


def test_a_start_on_a_support_that_offers_no_other_place_is_what_the_gap_is_counted_from():
    """A ledge as large as the feet that stand on it."""
    robot = SimpleNamespace(patches={"l": SimpleNamespace(limb="left"), "r": SimpleNamespace(limb="right")})
    start = [SimpleNamespace(support="ledge", p=np.zeros(3))]
    far = legged([("far", [SPAN + 0.5, 0.0, 0.0])])
    message = unreachable(robot, start, goal_of(ContactSpec(patch="l", surface="far")), far, LEGS)
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
        message = slippery(environment, goal_of(ContactSpec(patch="l", surface="slope")), {})
        assert (message == "") == bears
        if not bears:
            assert "slope is tilted by 26.6 degrees with friction 0.49" in message
            assert "at least 0.50" in message


def test_two_slopes_that_face_each_other_bear_what_none_does_alone():
    walls = Environment((plate("left", 1.2, 0.4), plate("right", -1.2, 0.4)))
    one = goal_of(ContactSpec(patch="l", surface="left"), only=True)
    both = goal_of(ContactSpec(patch="l", surface="left"), ContactSpec(patch="r", surface="right"), only=True)
    assert slippery(walls, one, {})
    assert slippery(walls, both, {}) == ""


# -- the goal -------------------------------------------------------------------------------------------------------


def test_a_goal_is_hit_where_all_that_it_gives_is_met():
    spec = ContactSpec(patch="l", surface="floor", x=0.5, yaw=3.1)
    here = {"x": 0.5, "y": 7.0, "yaw": 3.1}
    assert deviation(spec, "floor", here) <= EXACT
    assert deviation(spec, "table", here) == np.inf
    assert deviation(spec, "floor", here | {"yaw": 3.1 - 2 * np.pi}) <= EXACT
    for name in ("x", "yaw"):
        for off in (-2e-6, 2e-6):
            assert deviation(spec, "floor", here | {name: here[name] + off}) > EXACT


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


# -- the potential --------------------------------------------------------------------------------------------------

LIMBS = LEGS | {"arm": limb("arm", ("hand",), [0, 0, 0.3], 0.6)}
STRIDE = 0.6


def potential(only=False, target=None):
    specs = [ContactSpec(patch=p, surface="floor") for p in "lr"]
    return Potential(goal_of(*specs, only=only), LIMBS, target or {"l": 1.2, "r": 1.2}, STRIDE)


def test_the_potential_is_its_formula():
    h = potential()
    left, right = Standing(0.3, 0.06, False), Standing(0.0, 0.0, False)
    legs = (0.9 + 0.06) / STRIDE + 0.2 + 1.2 / STRIDE + 0.2
    assert h({"l": left, "r": right}) == pytest.approx(legs + 0.5)  # the arm is in the air
    # an arm that touches behind the legs has so far to go; one ahead is only beside the way
    behind = legs + 0.1 / STRIDE + TIE * 0.1
    assert h({"l": left, "r": right, "hand": Standing(0.05, 0.1, False)}) == pytest.approx(behind)
    assert h({"l": left, "r": right, "hand": Standing(0.9, 0.1, False)}) == pytest.approx(legs + TIE * 0.1)
    # a leg in the air is where the others are on the mean, and takes a whole move more
    lifted = (1.2 - 0.3) / STRIDE + 1.7 + (0.9 + 0.06) / STRIDE + 0.2
    assert h({"l": left}) == pytest.approx(lifted + 0.5)
    assert h({"l": left, "r": right}, missing=1.5) == pytest.approx(legs + 0.5 + 1.5)
    hit = Standing(1.2, 0.05, True)
    assert h({"l": hit, "r": hit}) == pytest.approx(2 * TIE * 0.05 + 0.5)


def test_a_lead_costs_and_gains_nothing_in_the_goal():
    even, ahead = Standing(0.3, 0.0, False), Standing(0.6, 0.0, False)
    h, led = potential(), replace(potential(), lead=1.0)
    assert led({"l": even, "r": even}) == h({"l": even, "r": even})
    assert led({"l": ahead, "r": even}) == pytest.approx(h({"l": ahead, "r": even}) + 0.3 / STRIDE)
    assert led({"l": ahead, "r": even}) == pytest.approx(led({"l": even, "r": even}))  # the one behind goes first
    # beyond the least that the goal asks for is no lead: the one behind needs the room
    there, beyond = Standing(1.2, 0.0, True), Standing(1.6, 0.0, True)
    assert led({"l": beyond, "r": even}) == led({"l": there, "r": even})


def test_contacts_that_the_goal_forbids_and_limbs_on_one_edge_cost():
    there = Standing(1.2, 0.0, True)
    hand = Standing(1.2, 0.0, False)
    assert potential(only=True)({"l": there, "r": there, "hand": hand}) == pytest.approx(0.5)
    assert potential(only=True)({"l": there, "r": there}) == pytest.approx(0.0)
    on_edge = there._replace(line=True)
    assert potential()({"l": on_edge, "r": there, "hand": hand}) == pytest.approx(0.5)


def test_of_two_patches_of_one_limb_the_worse_counts_and_a_tenth_of_the_other():
    limbs = {"leg": limb("leg", ("knee", "toe"), [0, 0, 0], 0.7)}
    specs = [ContactSpec(patch=p, surface="floor") for p in ("knee", "toe")]
    h = Potential(goal_of(*specs), limbs, {"knee": 1.2, "toe": 0.9}, STRIDE)
    knee, toe = 1.2 / STRIDE + 0.2, 0.9 / STRIDE + 0.2
    both = {p: Standing(0.0, 0.0, False) for p in ("knee", "toe")}
    assert h(both) == pytest.approx(knee + 0.1 * toe)
    # the toe is where the knee is, and takes a move of its own
    assert h({"knee": both["knee"]}) == pytest.approx(0.9 / STRIDE + 1.2 + 0.1 * knee)


def test_overshooting_costs_like_falling_short():
    h = potential()
    short, far = (h({"l": Standing(s, 0, False), "r": Standing(1.2, 0, True)}) for s in (0.9, 1.5))
    assert short == pytest.approx(far)


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
    assert path.turns
    assert not GuidePath(np.zeros((2, 3)), np.array([0.0, 0.1])).turns


# -- the search -----------------------------------------------------------------------------------------------------


def test_soles_beside_each_other_keep_their_gap(scene):
    left = scene.contact("left_sole", x=0.2, y=0.1, yaw=0.0)
    other = scene.contact("right_sole", x=0.2, y=-0.1, yaw=0.0)
    room = float((left.world_points[:, 1]).min() - (other.world_points[:, 1]).max())
    for gap, overlaps in ((GAP + 1e-3, False), (GAP - 1e-3, True), (-0.05, True)):
        near = scene.contact("right_sole", x=0.2, y=-0.1 + room - gap, yaw=0.0)
        assert overlap(left, near) == overlaps
        assert overlap(near, left) == overlaps
    for height, overlaps in ((0.05, True), (0.1, False)):  # over each other: on one level, or on two steps
        higher = replace(left, patch="right_sole", p=left.p + height * left.normal)
        assert overlap(left, higher) == overlap(higher, left) == overlaps
    above = scene.contact("right_sole", "table", x=-0.1, y=0.1, yaw=0.0)
    assert not overlap(left, above)


def test_places_round_to_cells_and_those_of_the_goal_have_their_own(scene):
    a, b, c = (scene.contact("left_sole", x=x, y=0.1, yaw=yaw) for x, yaw in ((0.2, 0), (0.22, 0.04), (0.2, 0.3)))
    assert cell_of(a, False) == cell_of(b, False)
    assert cell_of(a, False) != cell_of(c, False)
    assert cell_of(a, False) != cell_of(a, True)
    for x, yaw in ((0.3, 0.0), (0.1, 0.0), (0.2, 0.1), (0.2, -0.1)):  # 10 cm or 6 degrees are another place
        assert cell_of(scene.contact("left_sole", x=x, y=0.1, yaw=yaw), False) != cell_of(a, False)
    ends = [cell_of(scene.contact("left_sole", x=x, y=0.1, yaw=0.0), False) for x in np.arange(0.0, 0.45, 0.1)]
    assert len(set(ends)) == len(ends)


def search_of(**space):
    return StanceSearch(SimpleNamespace(robot=SimpleNamespace(scale=HRP2_SCALE), **space), None)


def test_what_is_required_takes_a_move_to_touch_and_half_of_one_to_carry():
    asked = {"require": (frozenset("ab"), frozenset("c"), frozenset("d")), "prover": None}
    search = search_of(**asked, due=True)
    assert search._missing(frozenset(), ()) == 3.0
    assert search._missing(frozenset([2]), ("b",)) == 1.5
    assert search_of(**asked, due=False)._missing(frozenset(), ()) == 0.0  # until the last item of the goal


def test_beyond_a_place_that_was_out_of_reach_no_other_is_tried_first():
    guide = GuidePath(np.array([[0.0, 0, 0], [4, 0, 0]]), np.zeros(2))
    places = np.array([[1.5, 0.1, 0], [1.3, 0.1, 0], [1.6, 0.1, 0], [0.5, 0.1, 0], [1.0, 0.9, 0]])
    candidates, offsets = {"l": SimpleNamespace(place=places)}, {"l": np.array([0.0, 0.1, 0.0])}
    space = SimpleNamespace(guide=guide, offsets=offsets, candidates=candidates)
    node = SimpleNamespace(standing={"l": Standing(9, 0, False), "r": Standing(1.0, 0, False)}, failed={})
    moves = [Move("left", ("l",), (("l", i),)) for i in range(5)]
    here, distance = away(space, node, moves[0])  # the others, not the one that leaves, say where the robot is
    assert here == pytest.approx([1.0, 0, 0])
    assert distance == pytest.approx(0.5)
    node.failed["left"] = [(here, distance)]
    assert [beyond_failure(space, node, move) for move in moves] == [False, False, True, False, False]
    node.failed["left"] = [(here, 0.2)]
    assert [beyond_failure(space, node, move) for move in moves] == [True, True, True, False, False]


def test_of_two_wrenches_of_a_patch_the_one_of_greater_force_counts():
    weak, strong = np.array([0, 0, 3.0, 90, 0, 0]), np.array([0, 4.0, 0, 0, 0, 0])
    for one, other in ((weak, strong), (strong, weak)):
        assert _larger({"a": one}, {"a": other})["a"] is strong


def test_contacts_are_kept_where_they_are_at_the_same_place(scene):
    before, after = scene.feet(), (scene.feet()[0], scene.feet(0.3)[1])
    assert [contact.patch for contact in shared_contacts(before, after)] == ["left_sole"]
