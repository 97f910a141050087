"""What the search knows about limbs does not depend on where the robot stands, and is what the robot measures."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.planning.posture.limbs import CONTACT_AHEAD_M, nominal_offsets
from mcplan.robot.anatomy import STIFF_SHARE, far_links, limb_joints, limbs_of

PATCHES = ("left_sole", "left_toe", "right_sole", "left_hand", "left_grip", "right_hand")


@pytest.fixture(scope="module")
def standing(scene):
    robot, q = scene.ROBOT, scene.ROBOT.posture("half_sitting")
    return robot, q, limbs_of(robot, q, PATCHES)


def limb_of(limbs, patch):
    return next(limb for limb in limbs.values() if patch in limb.patches)


def test_each_limb_has_its_patches_in_the_robots_order(standing):
    robot, _, limbs = standing
    assert sorted(patch for limb in limbs.values() for patch in limb.patches) == sorted(PATCHES)
    for limb in limbs.values():
        assert [patch for patch in robot.patches if patch in limb.patches] == list(limb.patches)
        assert {robot.patches[patch].limb for patch in limb.patches} == {limb.name}


def test_a_leg_is_as_long_as_its_segments_and_begins_at_its_hip(standing):
    robot, q, limbs = standing
    leg = limb_of(limbs, "left_sole")
    links = [f"LLEG_LINK{k}" for k in range(6)]
    places = [robot.frame_pose(q, link)[:3, 3] for link in links] + [robot.frame_pose(q, "left_toe")[:3, 3]]
    toe = sum(np.linalg.norm(b - a) for a, b in pairwise(places))
    sole = toe - np.linalg.norm(places[-1] - places[-2])
    sole += np.linalg.norm(robot.frame_pose(q, "left_sole")[:3, 3] - places[-2])
    assert leg.length == pytest.approx(max(toe, sole), abs=1e-9)
    assert leg.root == pytest.approx(places[0] - q[:3])
    # no posture reaches farther from the hip than the leg is long
    for seed in range(20):
        other = robot.random_configuration(seed)
        hip, tip = (robot.frame_pose(other, name)[:3, 3] for name in ("LLEG_LINK0", "left_toe"))
        assert np.linalg.norm(tip - hip) <= leg.length + 1e-9


def test_a_limb_is_as_long_as_to_the_farthest_of_its_patches(standing):
    robot, q, _ = standing
    for name, limb in limbs_of(robot, q, tuple(robot.patches)).items():
        alone = [limbs_of(robot, q, (patch,))[name].length for patch in limb.patches]
        assert limb.length == pytest.approx(max(alone))


def test_a_leg_with_slides_is_as_long_as_they_may_be_drawn_out(telescopic):
    q, patches = telescopic.posture("ready"), ("port_plate", "starboard_plate")
    leg = limb_of(limbs_of(telescopic, q, patches), "port_plate")
    farthest = 0.0
    for seed in range(20):
        other = telescopic.random_configuration(seed)
        other[7 + telescopic.joint_names.index("port_h_yaw")] = 0.1
        other[7 + telescopic.joint_names.index("port_knee")] = -0.02
        hip, tip = (telescopic.frame_pose(other, name)[:3, 3] for name in ("port_hip1", "port_plate"))
        farthest = max(farthest, np.linalg.norm(tip - hip))
    assert farthest <= leg.length < farthest + 0.05


def test_roots_and_offsets_are_in_the_heading_of_the_base(scene, standing):
    robot, q, limbs = standing
    turn = Rotation.from_euler("z", 1.1)
    turned = q.copy()
    turned[:3] = [2.0, -1.0, q[2]]
    turned[3:7] = (turn * Rotation.from_quat(q[[4, 5, 6, 3]])).as_quat(scalar_first=True)
    there = limbs_of(robot, turned, PATCHES)
    for name, limb in limbs.items():
        assert there[name].root == pytest.approx(limb.root, abs=1e-9)
        assert there[name].length == pytest.approx(limb.length)
    feet = scene.feet(0.05)
    moved = [
        replace(c, R=turn.as_matrix() @ c.R, p=turn.apply(c.p - q[:3]) + turned[:3]) for c in feet
    ]  # fmt: skip
    here, gone = nominal_offsets(robot, q, feet, limbs), nominal_offsets(robot, turned, tuple(moved), there)
    for patch in PATCHES:
        assert gone[patch] == pytest.approx(here[patch], abs=1e-9)
    assert here["left_sole"] == pytest.approx(feet[0].p - q[:3])
    # another patch of a limb that touches: where it is, at the height of what touches
    toe = robot.frame_pose(q, "left_toe")[:3, 3] - q[:3]
    assert here["left_toe"] == pytest.approx([toe[0], toe[1], here["left_sole"][2]])
    # a limb in the air is expected to touch ahead of its root
    assert here["left_hand"] == pytest.approx(limb_of(limbs, "left_hand").root + np.array([CONTACT_AHEAD_M, 0.0, -0.1]))


@pytest.mark.parametrize("height", [0.3, -0.3])
def test_a_further_patch_of_a_limb_is_expected_at_the_lower_of_those_that_touch(scene, standing, height):
    robot, q, _ = standing
    foot, limbs = scene.feet(0.05)[0], limbs_of(robot, q, ("left_sole", "left_knee", "left_toe"))
    knee = replace(foot, patch="left_knee", p=foot.p + np.array([0.2, 0.0, height]))
    for contacts in ((foot, knee), (knee, foot)):
        offset = nominal_offsets(robot, q, contacts, limbs)["left_toe"]
        assert offset[2] == pytest.approx(min(foot.p[2], knee.p[2]) - q[2])


def test_the_far_part_of_a_limb_begins_beyond_a_part_of_its_length(standing):
    robot, q, limbs = standing
    far = far_links(robot, q, limbs)
    assert {"LLEG_LINK5", "RLEG_LINK5"} <= far
    assert not far & {"BODY", "LLEG_LINK0", "RLEG_LINK0"}
    leg = limb_of(limbs, "left_sole")
    way, last = 0.0, robot.frame_pose(q, "LLEG_LINK0")[:3, 3]
    for k in range(6):
        place = robot.frame_pose(q, f"LLEG_LINK{k}")[:3, 3]
        way, last = way + np.linalg.norm(place - last), place
        assert (f"LLEG_LINK{k}" in far) == (way > STIFF_SHARE * leg.length)


def test_the_joints_of_a_limb_move_its_patches_and_no_others(standing):
    robot, q, limbs = standing
    for limb in limbs.values():
        joints = limb_joints(robot, limb.name)
        own = robot.frame_jacobian(q, limb.patches[0])[:, joints - 1]
        assert np.all(np.abs(own).max(axis=0) > 0.0)
        for other in limbs.values():
            if other is not limb:
                assert not robot.frame_jacobian(q, other.patches[0])[:, joints - 1].any()
