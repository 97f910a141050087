"""The bundled HRP-2: published figures, mirror symmetry, postures inside their limits."""

import numpy as np
import pytest

from mcplan.robot.robot_file import load_robot

MIRROR = np.diag([1.0, -1.0, 1.0])


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2", strict=True)


def mirrored(name):
    swap = {"RLEG": "LLEG", "LLEG": "RLEG", "RARM": "LARM", "LARM": "RARM", "left": "right", "right": "left"}
    head = name.split("_")[0]
    return name.replace(head, swap.get(head, head), 1)


def test_size_and_mass(robot):
    assert (robot.n, robot.nq, robot.nv) == (28, 35, 34)
    assert len(robot.description.joints) == 30
    assert robot.locked == {"RARM_JOINT6": 0.1, "LARM_JOINT6": 0.1}
    assert robot.mass == pytest.approx(56.037, abs=5e-4)


def test_half_sitting_stands_flat_on_the_floor(robot):
    q = robot.posture("half_sitting")
    for side, y in (("left", 0.095), ("right", -0.095)):
        X = robot.frame_pose(q, f"{side}_sole")
        np.testing.assert_allclose(X[:3, :3], np.diag([1, -1, -1]), atol=1e-9)
        assert X[1, 3] == pytest.approx(y, abs=1e-9)
        assert X[2, 3] == pytest.approx(0, abs=5e-7)
    np.testing.assert_allclose(robot.com(q), [0.0128, 0.0016, 0.8085], atol=5e-5)


def test_every_posture_is_within_the_limits(robot):
    for name in robot.postures:
        joints = robot.posture(name)[7:]
        assert (joints >= robot.limits.lower).all(), name
        assert (joints <= robot.limits.upper).all(), name


def test_limits_and_armature_mirror(robot):
    index = {name: i for i, name in enumerate(robot.joint_names)}
    axes = {name: robot.description.joints[name].axis for name in robot.joint_names}
    for name, i in index.items():
        j = index[mirrored(name)]
        sign = 1 if axes[name][1] else -1  # pitch keeps its sign in the mirror, roll and yaw change it
        ends = sorted([sign * robot.limits.lower[j], sign * robot.limits.upper[j]])
        np.testing.assert_array_equal([robot.limits.lower[i], robot.limits.upper[i]], ends, err_msg=name)
        assert robot.limits.velocity[i] == robot.limits.velocity[j]
        assert robot.limits.torque[i] == robot.limits.torque[j]
        assert robot.armature[i] == robot.armature[j]


def test_limbs_mirror_in_inertia_and_placement(robot):
    for name, link in robot.description.links.items():
        if not name.startswith("R"):
            continue
        other = robot.description.links[mirrored(name)].inertia
        assert link.inertia.mass == other.mass
        np.testing.assert_array_equal(MIRROR @ link.inertia.com, other.com)
        np.testing.assert_allclose(MIRROR @ link.inertia.matrix @ MIRROR, other.matrix, atol=1e-15)
    for name, joint in robot.description.joints.items():
        if name.startswith("R"):
            np.testing.assert_array_equal(MIRROR @ joint.p, robot.description.joints[mirrored(name)].p)


def test_geometry_mirrors_and_hands_end_at_the_patch(robot):
    for name, shapes in robot.geometry.items():
        if not name.startswith("R"):
            continue
        others = robot.geometry[mirrored(name)]
        assert len(shapes) == len(others)
        for a, b in zip(shapes, others, strict=True):
            assert a.shape == b.shape
            assert a.role == b.role
            assert a.color == b.color
            np.testing.assert_array_equal(MIRROR @ a.p, b.p)
    assert not [g for g in robot.geometry["LARM_LINK6"] if g.role != "visual"]
    (hand,) = (g for g in robot.geometry["LARM_LINK5"] if g.role == "collision")
    assert hand.p[2] - hand.shape.size[2] / 2 == pytest.approx(robot.patches["left_hand"].p[2])


def test_patches_mirror(robot):
    kinds = {"sole", "toe", "knee", "shin", "thigh", "hand", "grip", "forearm"}
    assert set(robot.patches) == {f"{side}_{kind}" for side in ("left", "right") for kind in kinds}
    for name, patch in robot.patches.items():
        other = robot.patches[mirrored(name)]
        assert patch.limb == mirrored(other.limb)
        points = patch.points @ patch.R.T + patch.p
        reflected = (other.points @ other.R.T + other.p) @ MIRROR
        gaps = np.linalg.norm(points[:, None] - reflected[None], axis=2)
        np.testing.assert_allclose(gaps.min(axis=1), 0, atol=1e-12, err_msg=name)
        np.testing.assert_allclose(patch.R[:, 2], MIRROR @ other.R[:, 2], atol=1e-12)


@pytest.mark.parametrize(
    ("kind", "z", "x"),
    [
        ("sole", [0, 0, -1], [1, 0, 0]),
        ("hand", [0, 0, -1], [1, 0, 0]),
        ("grip", [0, 0, -1], [1, 0, 0]),
        ("knee", [1, 0, 0], [0, 0, -1]),
        ("shin", [1, 0, 0], [0, 0, -1]),
        ("forearm", [1, 0, 0], [0, 0, -1]),
        ("thigh", [-1, 0, 0], [0, 0, -1]),
        ("toe", [0.5**0.5, 0, -(0.5**0.5)], [0.5**0.5, 0, 0.5**0.5]),
    ],
)
def test_patch_axes(robot, kind, z, x):
    for side in ("left", "right"):
        R = robot.patches[f"{side}_{kind}"].R
        np.testing.assert_allclose(R[:, 2], z, atol=1e-12)
        np.testing.assert_allclose(R[:, 0], x, atol=1e-12)
        assert np.linalg.det(R) == pytest.approx(1)


def test_sole_corners_in_the_link(robot):
    patch = robot.patches["left_sole"]
    corners = patch.points @ patch.R.T + patch.p
    np.testing.assert_allclose(corners.min(axis=0), [-0.1, -0.056, -0.105], atol=1e-12)
    np.testing.assert_allclose(corners.max(axis=0), [0.13, 0.075, -0.105], atol=1e-12)


@pytest.mark.parametrize(
    ("posture", "frame", "height"),
    [
        ("kneel", "left_knee", 0.0),
        ("kneel", "right_toe", 0.0),
        ("crawl", "left_hand", 0.0),
        ("crawl", "right_knee", 0.0),
        ("handstand", "left_hand", 0.0),
        ("sit", "left_thigh", 0.32),
        ("sit", "right_sole", 0.0),
        ("squat_hands", "right_hand", 0.0),
        ("lunge", "right_toe", 0.0),
        ("half_kneel", "right_knee", 0.0),
    ],
)
def test_key_postures_touch_where_they_should(robot, posture, frame, height):
    """The table is rounded to 0.1 degree, which moves contacts by 2 mm or so."""
    assert robot.frame_pose(robot.posture(posture), frame)[2, 3] == pytest.approx(height, abs=3e-3)
