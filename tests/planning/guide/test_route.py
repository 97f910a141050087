"""The guide found automatically: routes of the base, and whole plans where straight on is no way."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import mcplan
from mcplan.certificate.verify import verify
from mcplan.collision.model import CollisionModel
from mcplan.planning.guide.guide_search import _free_cost, find_route
from mcplan.planning.guide.passage import BasePose, Traversability
from mcplan.planning.guide.path import TURN_M_PER_RAD, GuidePath
from mcplan.planning.plan_file import save_plan
from mcplan.planning.planner import plan
from mcplan.planning.posture.limbs import nominal_offsets
from mcplan.robot.anatomy import limbs_of
from mcplan.robot.description import Box
from mcplan.scenario.load import load_scenario
from mcplan.scene.environment import Environment, Obstacle

HEADER = """
mcplan: 1
name: {name}
robot: hrp2
start:
  posture: half_sitting
  base: {{xyz: [0, 0, 0.649]}}
  contacts:
    - {{patch: left_sole, surface: floor, x: 0.01, y: 0.095, yaw: 0}}
    - {{patch: right_sole, surface: floor, x: 0.01, y: -0.095, yaw: 0}}
planner: {{patches: [left_sole, right_sole]}}
goal:
  only: true
  contacts:
"""
AHEAD = """
    - {patch: left_sole, surface: floor, x: 2.41, y: 0.095, yaw: 0}
    - {patch: right_sole, surface: floor, x: 2.41, y: -0.095, yaw: 0}
environment:
  surfaces: [{name: floor, polygon: [[-1, -2], [4, -2], [4, 2], [-1, 2]]}]
  obstacles:
"""
PILLAR = AHEAD + "    - {name: pillar, cylinder: {radius: 0.15, length: 1.8}, pose: {xyz: [1.2, 0, 0.9]}}"
DOOR = (
    AHEAD
    + """
    - {name: wall_left, box: {size: [0.1, 0.8, 2]}, pose: {xyz: [1.2, 1.6, 1]}}
    - {name: wall_right, box: {size: [0.1, 2.3, 2]}, pose: {xyz: [1.2, -0.85, 1]}}
"""
)
CORNER = """
    - {patch: left_sole, surface: aisle, x: -0.095, y: 0.5, yaw: =pi/2}
    - {patch: right_sole, surface: aisle, x: 0.095, y: 0.5, yaw: =pi/2}
environment:
  surfaces:
    - {name: floor, polygon: [[-0.5, -0.5], [2.5, -0.5], [2.5, 0.5], [-0.5, 0.5]]}
    - {name: aisle, pose: {xyz: [2, 1.5, 0]}, size: [1, 2]}
"""
HOLE = """
    - {patch: left_sole, surface: far, x: 0, y: 0.095, yaw: 0}
    - {patch: right_sole, surface: far, x: 0, y: -0.095, yaw: 0}
environment:
  surfaces:
    - {name: floor, size: [1.2, 4]}
    - {name: far, pose: {xyz: [2.4, 0, 0]}, size: [1.2, 4]}
    - {name: bridge, pose: {xyz: [1.2, 1.3, 0]}, size: [1.2, 1.4]}
"""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "text"), [("door", DOOR), ("hole", HOLE), ("pillar", PILLAR), ("corner", CORNER)])
def test_a_plan_is_found_where_the_straight_way_is_none_and_is_certified(name, text, tmp_path):
    (tmp_path / "scenario.yaml").write_text(HEADER.format(name=name) + text)
    found = plan(load_scenario(tmp_path / "scenario.yaml"))
    save_plan(found, tmp_path / "plan.yaml")
    report = verify(tmp_path / "plan.yaml")
    assert report.success, report.failures
    assert all(stance.margins["clearance"] > 0.0 for stance in found.stances[1:])


def test_a_patch_of_the_base_itself_bars_no_way(tmp_path):
    home = Path(mcplan.__file__).parent / "robot" / "bundled" / "hrp2"
    text = (home / "robot.yaml").read_text().replace("urdf: hrp2.urdf", f"urdf: {home / 'hrp2.urdf'}")
    belly = "  belly: {link: BODY, kind: point, pose: {xyz: [0.1, 0, 0]}}\n"
    (tmp_path / "robot.yaml").write_text(text.replace("\npatches:\n", f"\npatches:\n{belly}"))
    patches = ["left_sole", "right_sole", "belly"]
    found = plan(load_scenario("walk", {"robot": str(tmp_path / "robot.yaml"), "planner.patches": patches}))
    assert found.goal_reached


@pytest.fixture(scope="module")
def passage(scene):
    """Return a function that makes the passage among obstacles."""

    def make(*obstacles):
        q = scene.ROBOT.posture("half_sitting")
        patches = ("left_sole", "right_sole")
        limbs = limbs_of(scene.ROBOT, q, patches)
        surfaces = (scene.plane("floor", [1, 0, 0], [6, 4]),)
        around = Environment(surfaces=surfaces, obstacles=tuple(obstacles))
        offsets = nominal_offsets(scene.ROBOT, q, scene.feet(0.0), limbs)
        collisions = CollisionModel(scene.ROBOT, around)
        return Traversability(scene.ROBOT, around, collisions, q, scene.feet(0.0), limbs, offsets)

    return make


def block(p, size):
    return Obstacle("block", Box(size), np.eye(3), np.array(p, float))


START, GOAL = BasePose(0.0, 0.0, 0.649, 0.0), BasePose(2.4, 0.0, 0.649, 0.0)


def test_the_straight_way_is_kept_where_it_is_free(passage):
    assert find_route(passage(), START, GOAL).poses == (START, GOAL)


def test_a_route_keeps_the_body_clear_of_what_stands_in_the_straight_way(passage):
    ways = passage(block([1.2, 0.2, 1.0], (0.2, 1.0, 2.0)))
    assert np.isinf(ways.cost(BasePose(1.2, 0.0, 0.649, 0.0)))
    route = find_route(ways, START, GOAL)
    assert route.obstruction is None
    assert (route.poses[0], route.poses[-1]) == (START, GOAL)
    for a, b in pairwise(route.poses):
        for share in np.linspace(0.0, 1.0, 20):
            assert np.isfinite(ways.cost(BasePose(*(1 - share) * np.array(a) + share * np.array(b))))
    assert min(place.y for place in route.poses) < -0.4  # round the shorter side


def test_what_can_be_stepped_over_is_no_detour_and_what_cannot_is_named(passage):
    assert find_route(passage(block([1.2, 0.0, 0.1], (0.05, 3.9, 0.2))), START, GOAL).poses == (START, GOAL)
    closed = find_route(passage(block([1.2, 0.0, 1.0], (0.1, 4.6, 2.0))), START, GOAL)
    assert closed.poses == (START, GOAL)
    assert closed.obstruction is not None
    assert "inside block" in closed.obstruction.reason
    assert 1.0 < closed.obstruction.pose.x < 1.4


def test_a_turn_on_the_spot_costs_a_way_whichever_way_it_goes():
    for turn in (-1.0, 1.0):
        assert _free_cost(START, START._replace(yaw=turn), 0.8) == pytest.approx(0.8 * TURN_M_PER_RAD)
    ahead = _free_cost(START, GOAL, 1.0)
    assert ahead == pytest.approx(2.4)
    assert _free_cost(START, GOAL._replace(yaw=0.5), 1.0) > ahead + 0.5 * TURN_M_PER_RAD


def test_feet_are_looked_for_where_the_base_faces(passage):
    """The floor ends 2 m from its middle at either side and 3 m ahead and behind: at each edge a base that faces it
    and is 5 cm beyond it has to reach back as far. Its feet are a little ahead of it."""
    ways = passage()
    ways.feet = {limb: (offset + np.array([0.08, 0, 0]), reach) for limb, (offset, reach) in ways.feet.items()}
    edges = [(4.05, 0.0, 0.0), (1.0, 2.05, np.pi / 2), (-2.05, 0.0, np.pi), (1.0, -2.05, -np.pi / 2)]
    found = [ways.support(x, y, yaw, 0.649) for x, y, yaw in edges]
    assert [support.limb for support in found] == [""] * 4
    assert found[0].stretch > 0.0
    assert [support.stretch for support in found] == pytest.approx([found[0].stretch] * 4, rel=1e-6)


def test_a_metre_is_dearer_the_nearer_the_trunk_comes_to_an_obstacle(passage):
    ways = passage(block([1.2, 1.5, 1.0], (0.2, 2.0, 2.0)))
    costs = np.array([ways.cost(BasePose(1.2, y, 0.649, 0.0)) for y in np.arange(-1.0, 0.5, 0.02)])
    free = costs[np.isfinite(costs)]
    assert free[0] == 1.0
    assert np.isinf(costs[-1])
    assert (np.diff(free) >= 0.0).all()
    assert free[-1] > 2.0


def test_progress_runs_through_a_turn_on_the_spot():
    path = GuidePath(np.zeros((2, 3)), np.array([0.0, np.pi]))
    assert path.length == pytest.approx(TURN_M_PER_RAD * np.pi)
    for offset in (np.array([0.0, 0.1, -0.6]), np.array([0.05, -0.1, -0.6])):
        for share in (0.0, 0.3, 0.8, 1.0):
            c, n = np.cos(share * np.pi), np.sin(share * np.pi)
            place = np.array([c * offset[0] - n * offset[1], n * offset[0] + c * offset[1], offset[2]])
            s, _ = path.progress(place, offset)
            assert s[0] == pytest.approx(share * path.length, abs=0.01)


def test_progress_goes_on_beyond_the_ends_of_the_way():
    """What overshoots its goal is not there yet: it counts as so far beyond."""
    path, offset = GuidePath(np.array([[0.0, 0, 0], [2, 0, 0]]), np.zeros(2)), np.array([0.0, 0.1, 0.0])
    for x in (-0.5, 0.0, 0.7, 2.0, 2.5):
        s, distance = path.progress(np.array([x, 0.3, 0.0]), offset)
        assert (s[0], distance[0]) == pytest.approx((x, 0.2))
