from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from mcplan.planning.goal.item import Goal
from mcplan.planning.guide.path import TURN_M_PER_RAD, GuidePath
from mcplan.planning.posture.limbs import nominal_offsets
from mcplan.planning.posture.reference import Mirror
from mcplan.planning.search.candidates import Candidates, Lattice, sample_candidates
from mcplan.planning.search.cost import Potential
from mcplan.planning.search.moves import rolled_contact
from mcplan.planning.search.node import ContactProgress
from mcplan.robot.anatomy import HRP2_SCALE, limbs_of
from mcplan.robot.pose import base_yaw
from mcplan.scenario.schema import GoalItem
from mcplan.scene.polygon import outside
from mcplan.scene.spec import ContactSpec

SOLES = ("left_sole", "right_sole")


@pytest.fixture(scope="module")
def standing_robot(scene):
    q = scene.ROBOT.posture("half_sitting")
    limbs = limbs_of(scene.ROBOT, q, SOLES)
    return q, limbs, nominal_offsets(scene.ROBOT, q, scene.feet(0.0), limbs)


def test_progress_of_a_nominal_contact_is_the_base_s_own_also_after_a_bend():
    path = GuidePath(np.array([[0.0, 0, 1], [1, 0, 1], [1, 1, 1]]), np.array([0.0, 0.0, np.pi / 2]))
    offset = np.array([0.1, 0.2, -0.6])
    assert path.length == pytest.approx(2.0 + TURN_M_PER_RAD * np.pi / 2)
    for s in (0.0, 0.4, 1.7, path.length):
        p, yaw = path.at(s)
        c, n = np.cos(yaw), np.sin(yaw)
        place = p + np.array([c * 0.1 - n * 0.2, n * 0.1 + c * 0.2, -0.6])
        found, aside = path.progress(place, offset)
        # the track of a turn is cut into straight pieces
        assert found[0] == pytest.approx(s, abs=0.01)
        assert aside[0] == pytest.approx(0.0, abs=2e-3)


def test_heading_of_a_base_that_stoops_is_that_of_its_way_ahead(scene):
    q = scene.ROBOT.posture("crawl")
    assert abs(base_yaw(q)) < 0.05


def test_candidates_fit_their_surface_and_hold_the_goal_exactly(scene, standing_robot):
    q, _, offsets = standing_robot
    spec = ContactSpec(patch="left_sole", surface="floor", x=0.777, y=0.101, yaw=0.02)
    goal = Goal.of(GoalItem(contacts=(spec,)))
    guide = GuidePath(np.array([q[:3], q[:3] + np.array([1.0, 0.0, 0.0])]), np.zeros(2))
    near = scene.ROBOT.frame_pose(q, "left_sole")[:3, :3]
    lattice = Lattice(scene.ROBOT, "left_sole", guide, offsets["left_sole"], near, 0.1, scene.feet(0.0))
    found = sample_candidates(lattice, scene.ENVIRONMENT, goal)
    assert found.goal.sum() == 1
    i = int(np.flatnonzero(found.goal)[0])
    assert found.contact(i).coordinates == {"x": 0.777, "y": 0.101, "yaw": 0.02}
    rng = np.random.default_rng(0)
    for i in rng.choice(len(found.specs), 20, replace=False):
        contact = found.contact(int(i))
        surface = scene.ENVIRONMENT.support(contact.support)
        local = (contact.world_points - surface.p) @ surface.R
        assert outside(local[:, :2], surface.polygon) < 1e-3
        assert np.allclose(contact.p, found.positions[i])
    start = [s for s in found.specs if s["surface"] == "floor" and abs(s["x"]) < 1e-9 and abs(s["y"] - 0.095) < 1e-9]
    assert start


def test_the_potential_counts_moves_and_vanishes_at_the_goal(standing_robot):
    _, limbs, _ = standing_robot
    specs = tuple(ContactSpec(patch=patch, surface="floor") for patch in SOLES)
    potential = Potential(Goal.of(GoalItem(contacts=specs)), limbs, dict.fromkeys(SOLES, 1.2))
    assert potential({patch: ContactProgress(1.2, 0.0, True) for patch in SOLES}) == 0.0
    far = potential({patch: ContactProgress(0.0, 0.0, False) for patch in SOLES})
    near = potential({"left_sole": ContactProgress(0.6, 0.0, False), "right_sole": ContactProgress(0.0, 0.0, False)})
    assert far > near > 0.0
    lifted = potential({"left_sole": ContactProgress(0.6, 0.0, False)})
    assert lifted > near
    assert potential({patch: ContactProgress(1.2, 0.0, True) for patch in SOLES}, requirement_moves=1) == 1.0


def test_of_the_places_of_a_goal_the_nearest_to_the_end_of_the_way_is_aimed_at():
    s, goal = np.array([1.5, 0.2, 1.3, 1.8, -2.0]), np.array([False, True, True, True, True])
    sampled = Candidates(None, None, "left_sole", [], np.zeros((5, 3)), s, np.zeros(5), goal, [])
    assert sampled.target(1.5) == 1.3


def test_a_sole_rolls_onto_its_toes_and_back(scene):
    sole = scene.contact("left_sole", x=0.2, y=0.1, yaw=0.3)
    toe = rolled_contact(scene.ROBOT, scene.ENVIRONMENT, sole, "left_toe")
    assert toe is not None
    q = scene.ROBOT.posture("half_sitting")
    X, Y = scene.ROBOT.frame_pose(q, "left_sole"), scene.ROBOT.frame_pose(q, "left_toe")
    there = sole.p + sole.R @ X[:3, :3].T @ (Y[:3, 3] - X[:3, 3])
    assert np.allclose(toe.p, there, atol=1e-6)
    back = rolled_contact(scene.ROBOT, scene.ENVIRONMENT, toe, "left_sole")
    assert back is not None
    assert back.same_place(sole, 1e-5)
    assert rolled_contact(scene.ROBOT, scene.ENVIRONMENT, sole, "left_knee") is None


@pytest.mark.parametrize("name", ["hrp2", "telescopic"])
def test_mirrored_postures_have_mirrored_patches(scene, telescopic, name):
    robot = telescopic if name == "telescopic" else scene.ROBOT
    mirror = Mirror.of(robot)
    assert mirror is not None
    assert all(mirror.patch[patch] != patch for patch in robot.patches)
    q = robot.random_configuration(3)
    twin = mirror.posture(q)
    for patch, image in mirror.patch.items():
        there = robot.frame_pose(twin, image)[:3, 3]
        assert np.allclose(there, robot.frame_pose(q, patch)[:3, 3] * [1, -1, 1], atol=1e-6)


def test_only_an_edge_in_the_plane_of_a_sole_takes_its_place(scene):
    sole = scene.contact("left_sole", x=0.2, y=0.1, yaw=0.3)
    toe, normal = scene.ROBOT.patches["left_toe"], scene.ROBOT.patches["left_sole"].R[:, 2]
    for lift, rolls in ((0.005, True), (0.015, False), (-0.015, False)):
        moved = scene.ROBOT.patches | {"left_toe": replace(toe, p=toe.p + lift * normal)}
        robot = SimpleNamespace(patches=moved, name="hrp2", scale=HRP2_SCALE)
        assert (rolled_contact(robot, scene.ENVIRONMENT, sole, "left_toe") is not None) == rolls
