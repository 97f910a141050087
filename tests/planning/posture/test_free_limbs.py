"""An arm that touches nothing stays on its side of a rail."""

import numpy as np
import pytest

from mcplan.collision.model import CollisionModel
from mcplan.planning.feasibility import Feasibility
from mcplan.planning.posture.limbs import MAX_OVERLAP_M, FreeLimbs
from mcplan.robot.anatomy import limb_joints, limb_links, limb_rates
from mcplan.scene.environment import Bar, Environment
from mcplan.settings.control import ControlSettings

SOLES = ("left_sole", "right_sole")


@pytest.fixture(scope="module")
def standing(scene):
    """Return the robot, a posture whose left arm hangs, and one whose left arm is lifted sideways."""
    robot = scene.ROBOT
    hanging = robot.posture("half_sitting").copy()
    lifted = hanging.copy()
    lifted[7 + robot.joint_names.index("LARM_JOINT1")] = 1.2
    return robot, hanging, lifted


def beside(scene, standing, below=0.0):
    """Return the scene with a rail that the left wrist passes half way between the two postures, or so far below."""
    robot, hanging, lifted = standing
    middle = robot.integrate(hanging, robot.difference(hanging, lifted), 0.5)
    place = robot.frame_pose(middle, "LARM_LINK4")[:3, 3] - [0.0, 0.0, below]
    ends = place + np.array([[-0.5, 0.0, 0.0], [0.5, 0.0, 0.0]])
    supports = scene.ENVIRONMENT
    return Environment(supports.surfaces, (*supports.bars, Bar("rail", ends, 0.02)))


@pytest.fixture(scope="module")
def feasibility(scene, standing):
    return Feasibility(scene.ROBOT, beside(scene, standing), standing[1], SOLES, ControlSettings())


def test_an_arm_that_would_go_through_a_rail_is_named(standing, feasibility):
    _, hanging, lifted = standing
    limbs = feasibility.postures.free_limbs
    assert limbs.crossing(SOLES, hanging, lifted) == ("left_arm",)
    assert limbs.crossing(SOLES, lifted, hanging) == ("left_arm",)
    assert limbs.crossing(SOLES, hanging, hanging) == ()


def test_an_arm_that_touches_is_left_to_its_planned_way(standing, feasibility):
    _, hanging, lifted = standing
    assert feasibility.postures.free_limbs.crossing((*SOLES, "left_grip"), hanging, lifted) == ()


def test_what_hardly_overlaps_is_got_around(scene, standing):
    robot, hanging, lifted = standing
    way, said = robot.difference(hanging, lifted), set()
    for below in np.arange(0.0, 0.5, 0.005):
        seen = CollisionModel(robot, beside(scene, standing, below))
        arm = [pair.b == "rail" and pair.a.startswith("LARM") for pair in seen.pairs]
        between = [robot.integrate(hanging, way, k / 8) for k in range(1, 8)]
        deep = -min(seen.least(q, np.where(arm, np.inf, -np.inf)).distance for q in between)
        crossing = FreeLimbs(robot, seen).crossing(SOLES, hanging, lifted)
        assert bool(crossing) == (deep > MAX_OVERLAP_M * robot.scale.arm)
        said.add((bool(crossing), deep > 0.0))
    assert said == {(True, True), (False, True), (False, False)}


def test_a_guide_takes_over_the_joints_of_the_limb_alone(standing, feasibility):
    robot, hanging, lifted = standing
    guide = robot.integrate(hanging, np.linspace(-0.1, 0.1, robot.nv), 1.0)
    kept = feasibility.postures.free_limbs.keep_limbs(["left_arm"], lifted, guide)
    arm = limb_joints(robot, "left_arm")
    np.testing.assert_allclose(kept[arm], lifted[arm], atol=1e-12)
    others = np.setdiff1d(np.arange(robot.nq), arm)
    np.testing.assert_allclose(kept[others], guide[others], atol=1e-12)


def test_a_limb_has_the_rates_of_its_joints_and_the_links_that_they_move(scene):
    robot = scene.ROBOT
    np.testing.assert_array_equal(limb_rates(robot, "left_arm"), limb_joints(robot, "left_arm") - 1)
    names = limb_links(robot, "left_arm")
    assert names == {name for name in robot.link_names if name.startswith("LARM") or name.startswith("LHAND")}


def test_the_next_posture_keeps_the_arm_where_the_reference_would_take_it_through(scene, standing, feasibility):
    robot, hanging, lifted = standing
    feet = scene.feet()
    freely = Feasibility(robot, scene.ENVIRONMENT, hanging, SOLES, ControlSettings()).postures.find(feet, (), lifted)
    arm = robot.joint_names.index("LARM_JOINT1")
    assert freely.q[7 + arm] < 0.5  # nothing is there: the reference has it hanging
    found = feasibility.postures.find(feet, (), lifted)
    assert found.found
    assert found.q[7 + arm] > 0.8
    assert feasibility.postures.free_limbs.crossing(SOLES, lifted, found.q) == ()
