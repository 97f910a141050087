"""The replay of a plan and of its search tree: what is drawn is what the plan and the tree say."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from mcplan.analysis.plan_motion import linking_contacts, motion_time, segment_at, segments_to_next
from mcplan.cli.main import main
from mcplan.errors import InputError
from mcplan.planning.plan_file import save_plan
from mcplan.planning.planner import plan
from mcplan.planning.search.tree import SearchTree, tree_path, write_tree
from mcplan.robot.description import Box
from mcplan.scenario.load import load_scenario
from mcplan.scene.environment import FreeObject
from mcplan.statics.support_region import support_region
from mcplan.view.plan_film import (
    FRAME_INTERVAL_S,
    MIN_FRAMES_BETWEEN,
    TREE_GAP,
    _object_poses_at,
    film,
    node_frames,
    stance_frames,
    trails,
)
from mcplan.view.plan_replay import plan_page, search_page, stances_page, tree_page
from mcplan.view.support import support_polygon
from mcplan.view.tree_panel import MAX_DRAWN_NODES, drawn_nodes, nearest_to_goal, tree_panel
from tests import shared
from tests.view.tracks import at, tracks_of


@pytest.fixture(scope="module")
def planned():
    return shared.planned("stairs")


@pytest.fixture(scope="module")
def page(planned):
    return plan_page(planned)


def data_of(page):
    return json.loads(re.search(r"^const data = (.*);$", page, re.MULTILINE)[1])


@pytest.fixture(scope="module")
def tracks(page):
    return tracks_of(data_of(page)["tracks"])


def shows(track, t):
    times, values = track
    return bool(values[np.searchsorted(times, t + 1e-6) - 1])


def test_stances_stand_at_whole_numbers(planned, tracks):
    robot = planned.scenario.robot
    for k, stance in enumerate(planned.stances):
        for link in ("BODY", "RLEG_LINK5", "LARM_LINK3"):
            expected = robot.frame_pose(stance.q, link)[:3, 3]
            assert at(tracks[f"robot/n:{link}"][".position"], k) == pytest.approx(expected, abs=1e-6)


def test_the_contact_that_moves_is_marked_and_the_others_are_not(planned, tracks):
    robot = planned.scenario.robot
    for k, stance in enumerate(planned.stances):
        touching = {c.patch for c in linking_contacts(planned.stances[k - 1] if k else None, stance)}
        for patch in ("left_sole", "right_sole"):
            link = f"robot/n:{robot.patches[patch].link}"
            assert shows(tracks[f"{link}/moved {patch}"][".visible"], k) == (patch == stance.moved)
            assert shows(tracks[f"{link}/patch {patch}"][".visible"], k) == (patch in touching - {stance.moved})


def test_forces_act_at_the_centre_of_pressure_within_the_patch(planned):
    for frame in stance_frames(planned):
        for contact in frame.carrying:
            if contact.patch not in frame.forces:
                continue
            place, force, normal, friction = frame.forces[contact.patch]
            local = contact.R.T @ (place - contact.p)
            low, high = contact.points.min(axis=0), contact.points.max(axis=0)
            assert np.all(local >= low - 1e-6)
            assert np.all(local <= high + 1e-6)
            pressure = normal @ force
            assert np.linalg.norm(force - pressure * normal) <= friction * pressure + 1e-5


def frames_between(planned, k):
    """The frames between the posture of a stance and that of the next."""
    found = [frame for frame in stance_frames(planned) if k < frame.time < k + 1]
    assert len(found) == max(MIN_FRAMES_BETWEEN, int(motion_time(segments_to_next(planned, k)) / FRAME_INTERVAL_S))
    return found


@pytest.mark.parametrize("pace", ["as planned", "fast"])
def test_between_stances_the_plans_own_motion_is_drawn(planned, pace):
    """At each share of the time of its segments, where their curve and their law have the robot then."""
    if pace == "fast":
        planned = plan(load_scenario("sway", {"control.pace": "fast"}))
        assert all(segment.law is not None for segment in planned.segments)
    for k in range(len(planned.stances) - 1):
        segments = segments_to_next(planned, k)
        assert segments[0].q[0] == pytest.approx(planned.stances[k].q, abs=1e-9)
        assert segments[-1].q[-1] == pytest.approx(planned.stances[k + 1].q, abs=1e-9)
        total = sum(segment.time for segment in segments)
        for frame in frames_between(planned, k):
            t = (frame.time - k) * total
            if len(segments) == 1:
                s = t if segments[0].law is None else segments[0].law.at(t)[0]
                assert frame.q == pytest.approx(segments[0].posture.sample(s).q, abs=1e-9)
            assert np.linalg.norm(frame.q[3:7]) == pytest.approx(1.0)


def test_segments_follow_each_other_in_their_own_time():
    law = SimpleNamespace(at=lambda t: (2.0 * t, 2.0, 0.0))  # in half the time of the path as it was planned
    for speed, own in ((1.0, None), (2.0, law)):
        first, second = (SimpleNamespace(time=time, duration=speed * time, law=own) for time in (1.0, 3.0))
        for share, segment, t in ((0.1, first, 0.4), (0.25, first, 1.0), (0.5, second, 1.0), (1.0, second, 3.0)):
            assert segment_at([first, second], share) == (segment, pytest.approx(speed * t))


def test_a_plan_is_played_at_the_speed_of_its_motions(planned):
    """Its time line counts stances; each takes on it the seconds that its motion takes."""
    page = stances_page(planned)
    assert page.length == pytest.approx(
        sum(motion_time(segments_to_next(planned, k)) for k in range(len(planned.stances) - 1))
    )
    for k, second in enumerate(page.seconds):
        assert page.at(second) == pytest.approx(k)
    assert page.at(0.5 * (page.seconds[2] + page.seconds[3])) == pytest.approx(2.5)


def test_a_foot_goes_over_what_is_between_its_places_and_leaves_a_trail(planned):
    robot, stances = planned.scenario.robot, planned.stances
    k = next(k for k, stance in enumerate(stances[:-1]) if stance.change == "remove")
    patch = stances[k].moved
    ends = [robot.frame_pose(stances[i].q, patch)[:3, 3] for i in (k, k + 1)]
    heights = [robot.frame_pose(frame.q, patch)[2, 3] for frame in frames_between(planned, k)]
    assert max(heights) > max(ends[0][2], ends[1][2]) + 0.02
    swings = sum(len(part.courses) for stance in stances[1:] for part in stance.transition.segments)
    ways = trails(planned)
    assert len(ways) == swings
    way = next(w for w in ways if np.allclose(w[0], ends[0], atol=1e-6) and np.allclose(w[-1], ends[1], atol=1e-6))
    assert way[:, 2].max() >= max(heights) - 1e-3


def test_a_plan_without_its_motions_cannot_be_drawn(planned):
    bare = replace(planned, stances=tuple(replace(stance, transition=None) for stance in planned.stances))
    with pytest.raises(InputError, match="stance 1 of the plan has no transition"):
        plan_page(bare)


def test_what_is_pushed_is_drawn_where_it_is_pushed_to():
    planned = shared.planned("push")
    k = next(k for k, stance in enumerate(planned.stances) if stance.objects)
    poses = [frame.objects for frame in stance_frames(planned) if k - 1 <= frame.time <= k]
    assert poses[0] == {}
    (name,) = poses[-1]
    start = next(thing.pose for thing in planned.scenario.environment.objects if thing.name == name)
    ways = [float(np.linalg.norm(pose.get(name, start)[:3] - start[:3])) for pose in poses]
    assert ways == sorted(ways)
    assert poses[-1][name] == pytest.approx(planned.stances[k].objects[name])
    drawn = film(planned.scenario, stance_frames(planned))
    assert drawn.object_q.shape == (len(drawn.times), len(planned.scenario.environment.objects), 7)


def test_the_panel_lists_every_node_and_every_rejected_move(planned, page):
    panel, tree = data_of(page)["tree"], planned.tree
    assert len(panel["nodes"]) == len(tree.nodes)
    assert [move["reason"] for move in panel["rejected"]] == [move["reason"] for move in tree.rejected]
    assert sum(count for _, count in panel["kinds"]) == len(tree.rejected)
    on_plan = [i for i, node in enumerate(panel["nodes"]) if node["state"] == "path"]
    assert on_plan == sorted(tree.path)


def test_choosing_a_node_shows_its_posture(planned, page, tracks):
    robot = planned.scenario.robot
    for node, shown in zip(planned.tree.nodes, data_of(page)["tree"]["nodes"], strict=True):
        assert shown["time"] >= len(planned.stances) - 1 + TREE_GAP
        expected = robot.frame_pose(np.array(node["q"]), "LLEG_LINK5")[:3, 3]
        assert at(tracks["robot/n:LLEG_LINK5"][".position"], shown["time"]) == pytest.approx(expected, abs=1e-6)


def test_the_postures_of_a_large_tree_are_bounded_and_the_plan_is_among_them(planned):
    tree = planned.tree
    nodes = [*tree.nodes, *({**tree.nodes[1], "index": len(tree.nodes) + i} for i in range(2 * MAX_DRAWN_NODES))]
    nodes.append({**tree.nodes[0], "index": len(nodes), "parent": 0})
    large = type(tree)(nodes, [], tree.skipped, 0, [0, len(nodes) - 1])
    shown = drawn_nodes(large)
    assert len(shown) == MAX_DRAWN_NODES
    assert {0, len(nodes) - 1} <= set(shown)
    assert shown == sorted(set(shown))


def test_of_a_failed_search_the_way_that_came_nearest_to_the_goal_is_shown_however_late_it_was_found():
    """Each node is a child of the one before, but for a branch at the end that is nearest."""
    count = 3 * MAX_DRAWN_NODES
    nodes = [{"index": k, "parent": k - 1 if k else None, "h": 10.0 + k} for k in range(count)]
    nodes += [{"index": count, "parent": 1, "h": 5.0}, {"index": count + 1, "parent": count, "h": 2.0}]
    tree = SimpleNamespace(nodes=nodes, path=[])
    assert nearest_to_goal(tree) == count + 1
    assert {0, 1, count, count + 1} <= set(drawn_nodes(tree))


def test_bands_name_what_changes_and_tell_the_margins(planned, page):
    bands = data_of(page)["bands"]
    assert len(bands) == len(planned.stances)
    for k, (band, stance) in enumerate(zip(bands, planned.stances, strict=True)):
        assert band["begin"] <= k <= band["end"]
        assert stance.change in band["name"]
        values = dict(row[:2] for row in band["facts"]["values"])
        assert values["resisted push"] == f"{stance.margins['equilibrium']:.1f} N"
        assert values["clearance"] == f"{1000 * stance.margins['clearance']:.1f} mm"
        assert values["torque used"] == f"{stance.margins['torque']:.0%}"


def test_a_region_without_bounds_is_cut_and_another_is_kept(planned):
    feet = planned.stances[0].contacts
    assert np.array_equal(support_polygon(feet, 55.0), support_region(feet, 55.0).vertices)
    wedge = load_scenario("wedge")
    hands = [
        {"patch": f"{side}_hand", "surface": f"{side}_wall", "x": 0.0, "y": 0.0, "yaw": 0.0}
        for side in ("left", "right")
    ]
    from mcplan.scene.placement import make_contact

    walls = [make_contact(wedge.robot, wedge.environment, hand) for hand in hands]
    assert not support_region(walls, 55.0).bounded
    polygon = support_polygon(walls, 55.0)
    assert len(polygon) >= 3
    assert np.ptp(polygon, axis=0).max() < 3.0
    away = np.array([5.0, -3.0, 0.0])
    there = support_polygon([replace(wall, p=wall.p + away) for wall in walls], 55.0)
    np.testing.assert_allclose(np.sort(there, axis=0), np.sort(polygon + away[:2], axis=0), atol=1e-6)


def test_a_tree_alone_makes_a_page_with_its_failure(planned):
    page = tree_page(planned.scenario, planned.tree, "no plan: </script><b>step6 is too high")
    data = data_of(page)
    assert data["bands"] == []
    assert data["tree"]["failure"].endswith("step6 is too high")
    assert "</script><b>" not in page
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", page)


def test_a_search_that_looked_at_nothing_is_answered_with_its_failure(planned):
    for failure, said in (("it falls over", "it falls over"), ("", "stairs: the search has no nodes")):
        with pytest.raises(InputError, match=said):
            search_page(planned.scenario, SearchTree(), failure)


def test_a_patch_that_a_move_has_put_down_is_marked_whatever_it_is_called(planned):
    known = {"q": planned.stances[0].q.tolist(), "g": 0.0, "h": 1.0, "expanded": False}
    left, right = ({"patch": f"{side} sole", "surface": "floor on top", "x": 0.0} for side in ("left", "right"))
    nodes = [
        {"index": 0, "parent": None, "move": "start", "contacts": [left], **known},
        {"index": 1, "parent": 0, "move": "add right sole", "contacts": [left, right], **known},
    ]
    panel = tree_panel(planned.scenario, SearchTree(nodes), [0, 1], 0.0, "")
    assert [[(what, moved) for what, _, moved in node["contacts"]] for node in panel["nodes"]] == [
        [("left sole on floor on top", "")],
        [("left sole on floor on top", ""), ("right sole on floor on top", "moved")],
    ]


def test_an_object_turns_about_one_axis_evenly_as_in_the_motion():
    """A quarter turn about z of minimum jerk: p(s) = p0 + s (p1 - p0), R(s) = exp(s log R)."""
    crate = FreeObject("crate", Box((0.2, 0.3, 0.4)), np.eye(3), np.array([1.0, 0.0, 0.2]), 5.0, 0.4)
    scenario = SimpleNamespace(environment=SimpleNamespace(objects=[crate]))
    end = np.array([1.4, 0.0, 0.2, *-np.array([np.cos(np.pi / 4), 0, 0, np.sin(np.pi / 4)])])
    segment = SimpleNamespace(objects={"crate": end}, duration=2.0)
    for t in (0.0, 0.5, 1.5, 2.0):
        u = t / 2.0
        s = u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
        pose = _object_poses_at(scenario, SimpleNamespace(objects={}), segment, t)["crate"]
        assert pose[:3] == pytest.approx([1.0 + 0.4 * s, 0.0, 0.2], abs=1e-12)
        turned = np.array([np.cos(s * np.pi / 4), 0.0, 0.0, np.sin(s * np.pi / 4)])
        assert abs(pose[3:] @ turned) == pytest.approx(1.0, abs=1e-12)


def test_node_frames_mark_what_a_move_added(planned):
    tree = planned.tree
    frames = node_frames(planned.scenario, tree, [0, 1], 5.0)
    assert frames[0].moved == frozenset()
    assert [f.time for f in frames] == [5.0, 6.0]
    assert frames[1].moved == {c["patch"] for c in tree.nodes[1]["contacts"]} - {c.patch for c in frames[1].carrying}
    assert film(planned.scenario, frames).q.shape == (2, planned.scenario.robot.nq)


@pytest.mark.slow
def test_the_command_takes_plans_with_and_without_tree_and_trees_alone(planned, tmp_path, capsys):
    file = tmp_path / "stairs.yaml"
    save_plan(planned, file)
    assert main(["replay", str(file), "--html", str(tmp_path / "alone.html")]) == 0
    assert data_of((tmp_path / "alone.html").read_text())["tree"] is None
    write_tree(planned.tree, planned.scenario, tree_path(file))
    assert main(["replay", str(file), "--html", str(tmp_path / "both.html")]) == 0
    assert data_of((tmp_path / "both.html").read_text())["tree"]["nodes"]
    # a search that has failed led to no plan, so what lies beside it is another's
    write_tree(planned.tree, planned.scenario, tree_path(file), "stopped")
    assert main(["replay", str(file), "--html", str(tmp_path / "kept.html")]) == 0
    assert data_of((tmp_path / "kept.html").read_text())["tree"] is None
    assert main(["replay", str(tree_path(file)), "--html", str(tmp_path / "tree.html")]) == 0
    assert data_of((tmp_path / "tree.html").read_text())["tree"]["failure"] == "stopped"
    assert main(["replay", str(tmp_path / "missing.tree.json")]) == 2
    assert "there is no such file" in capsys.readouterr().err
