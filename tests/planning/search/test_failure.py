"""What a search that found nothing says would have to change."""

from types import SimpleNamespace

import numpy as np
import pytest

from mcplan.planning.posture.result import Violation
from mcplan.planning.search.failure import explain_blocked_path, explain_failure, suggest_remedy
from mcplan.planning.search.tree import SearchTree
from mcplan.robot.robot_file import load_robot

CROWDED = ("link", Violation("collision", "RLEG_LINK5 and plane", 0.004))
SLIPS = ("lift, region", Violation("friction", "left_sole", 135.0))
FAR = ("place, balance", Violation("reach", "left_sole", 0.2))


def tree_of(*rejections, ahead=()):
    """A tree of moves that were rejected at its root, so many of each, and ``ahead`` where it is nearer to its goal."""
    tree = SearchTree()
    root, near = (tree.add_node(None, "", (), np.zeros(7), 0.0, h) for h in (5.0, 1.0))
    for parent, moves in ((root, rejections), (near, ahead)):
        for count, (stage, violation) in moves:
            for _ in range(count):
                tree.reject(parent, "move left_sole", stage, (violation,))
    return tree


def test_balance_weighs_more_than_many_places_that_are_taken():
    assert suggest_remedy(tree_of((900, CROWDED), (100, FAR), (5, SLIPS)), None).startswith(
        "more friction under left_sole, less tilt, or a contact to hold on to (135 N are missing)"
    )


def test_what_is_out_of_reach_weighs_more_than_places_that_are_taken():
    assert "so that left_sole reaches them (200 mm)" in suggest_remedy(tree_of((900, CROWDED), (5, FAR)), None)


def test_how_much_is_missing_is_told_of_where_the_search_came_nearest_to_its_goal():
    far, near = (("forces", Violation("torque", "RARM_JOINT4", amount)) for amount in (0.003, 0.4))
    assert "RARM_JOINT4 (40.0% of its limit)" in suggest_remedy(tree_of((20, far), ahead=((2, near),)), None)


def test_places_that_are_taken_are_the_reason_where_there_is_no_other():
    assert suggest_remedy(tree_of((3, CROWDED)), None) == "more room between RLEG_LINK5 and plane (4 mm)"


@pytest.mark.parametrize(("thing", "advised"), [("CHEST_LINK1 and RARM_LINK4", True), ("CHEST_LINK1 and wall", False)])
def test_of_two_links_that_are_in_each_others_way_the_robots_file_can_say_that_they_are_not(thing, advised):
    tree = tree_of((3, ("lift", Violation("collision", thing, 0.004))))
    text = explain_failure(load_robot("hrp2"), tree, None, None, "")
    assert f"more room between {thing} (4 mm)" in text
    assert ("`collision: {ignore: [[CHEST_LINK1, RARM_LINK4]]}`" in text) == advised


def test_nothing_is_said_of_a_search_that_refused_nothing():
    assert suggest_remedy(SearchTree(), None) == ""


@pytest.mark.parametrize(
    ("thing", "told", "advised"),
    [
        ("step1 and LLEG_LINK3", "come 41 mm too close", "41 mm more room between step1 and LLEG_LINK3"),
        ("left_sole", "contacts or limits are exceeded by 41 mm", "another place for left_sole"),
    ],
)
def test_a_barred_motion_speaks_of_two_bodies_where_there_are_two(thing, told, advised):
    motion = SimpleNamespace(motion="left_sole from step1 to step2", violations=(Violation("passage", thing, 0.041),))
    text = explain_blocked_path(SimpleNamespace(path=[0, 1, 2], motions=[motion]), "")
    assert told in text
    assert f"what would have to change: {advised}, or a larger budget" in text


def test_where_contacts_do_not_hold_the_robot_on_a_way_others_are_asked_for():
    lacks = (Violation("torque", "LARM_JOINT4", 0.02),)
    motion = SimpleNamespace(motion=SimpleNamespace(patch="right_grip"), violations=lacks)
    text = explain_blocked_path(SimpleNamespace(path=[0, 1, 2], motions=[motion]), "")
    assert "LARM_JOINT4 needs 2% of its torque limit more than allowed" in text
    assert "what would have to change: contacts that hold the robot while right_grip moves, or a larger" in text
