"""Robot files that are proposed: on robots whose soles, feet and balance are known because a test wrote them."""

import warnings

import numpy as np
import pytest
import trimesh
from scipy.spatial import ConvexHull

from mcplan.robot.description import Box, Sphere
from mcplan.robot.mesh_file import find_package
from mcplan.robot.proposal.surface import inscribed_rectangle, shape_points
from mcplan.robot.proposal.write import propose
from mcplan.robot.robot_check import findings, patch_distances
from mcplan.robot.robot_file import load_robot
from mcplan.util.bundled import bundled_robots
from tests.sim.other_robots import BALL, humanoid, quadruped


@pytest.fixture(scope="module", params=[0.5, 1.0, 1.5])
def two_legged(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("humanoid")
    humanoid(folder, request.param)
    (folder / "proposed.yaml").write_text(propose(folder / "humanoid.urdf", folder, "proposed"))
    return request.param, load_robot(folder / "proposed.yaml")


def test_soles_are_where_the_feet_end_whatever_the_size(two_legged):
    scale, robot = two_legged
    for side in ("left", "right"):
        patch = robot.patches[f"{side}_sole"]
        assert patch.limb == f"{side}_leg"
        assert patch.link == f"{side[0]}_foot"
        np.testing.assert_allclose(np.ptp(patch.polygon, axis=0), [0.2 * scale, 0.1 * scale], atol=2e-4)
        np.testing.assert_allclose(patch.R, np.diag([1, -1, -1]), atol=1e-7)
        middle = patch.p + patch.R @ [*patch.polygon.mean(axis=0), 0.0]
        np.testing.assert_allclose(middle, np.array([0.03, 0, -0.07]) * scale, atol=2e-4)


def test_it_stands_on_the_ground_in_balance_within_its_limits_and_nothing_is_doubtful(two_legged):
    scale, robot = two_legged
    q = robot.posture("half_sitting")
    soles = [robot.frame_pose(q, name) for name in ("left_sole", "right_sole")]
    corners = np.array([(X @ [*x, 1.0])[:3] for X, n in zip(soles, ("left", "right"), strict=True)
                        for x in robot.patches[f"{n}_sole"].points])  # fmt: skip
    assert np.abs(corners[:, 2]).max() < 1e-3 * max(scale, 1.0)
    low, high = corners[:, :2].min(axis=0), corners[:, :2].max(axis=0)
    share = (robot.com(q)[:2] - low) / (high - low)
    assert ((share > 0.2) & (share < 0.8)).all()
    knees = [q[7 + robot.joint_names.index(f"{n}_knee")] for n in "lr"]
    assert min(knees) > 0.4
    assert (q[7:] > robot.limits.lower).all()
    assert (q[7:] < robot.limits.upper).all()
    assert findings(robot) == []


def test_knees_and_hands_are_named_by_their_sides(two_legged):
    _, robot = two_legged
    assert set(robot.patches) == {f"{s}_{part}" for s in ("left", "right") for part in ("sole", "knee", "hand")}
    q = robot.posture("half_sitting")
    for name in robot.patches:
        assert np.sign(robot.frame_pose(q, name)[1, 3]) == (1 if name.startswith("left") else -1)
    assert robot.frame_pose(q, "left_knee")[0, 2] > 0.8  # faces ahead


@pytest.mark.parametrize("name", ["2024", "007", "UR5: left", "on"])
def test_whatever_names_a_robot_has_they_are_read_back(tmp_path, name):
    folder = tmp_path / "My Robots #2, [new]"
    folder.mkdir()
    humanoid(folder)
    text = (folder / "humanoid.urdf").read_text()
    for old, new in (("l_foot", "l, foot"), ("r_shank", "r: [shank"), ("l_knee", "l #knee"), ("r_knee", "true")):
        text = text.replace(f'"{old}"', f'"{new}"')
    (folder / "humanoid.urdf").write_text(text)
    (tmp_path / "proposed.yaml").write_text(propose(folder / "humanoid.urdf", tmp_path, name, [folder]))
    robot = load_robot(tmp_path / "proposed.yaml")
    assert robot.name == name
    assert robot.patches["left_sole"].link == "l, foot"
    assert robot.urdf_path.parent.name == folder.name
    q = robot.posture("half_sitting")
    assert min(q[7 + robot.joint_names.index(joint)] for joint in ("l #knee", "true")) > 0.4


@pytest.mark.parametrize("names", [("l_", "r_"), ("legl_", "legr_"), ("one_", "two_")])
def test_a_robot_that_faces_sideways_has_a_left_and_a_right_leg(tmp_path, names):
    """Legs along x: their names tell which is the left one; two equal legs without such names are told apart."""
    humanoid(tmp_path)
    file = tmp_path / "humanoid.urdf"
    text = file.read_text()
    root = '<link name="root"/><joint name="turn" type="fixed"><parent link="root"/><child link="pelvis"/>'
    turn = f'{root}<origin rpy="0 0 -1.5707963"/></joint></robot>'
    for old, new in zip(("l_", "r_"), names, strict=True):
        text = text.replace(f'"{old}', f'"{new}')
    file.write_text(text.replace("</robot>", turn))
    (tmp_path / "proposed.yaml").write_text(propose(file, tmp_path, "sideways"))
    robot = load_robot(tmp_path / "proposed.yaml")
    q = robot.posture("half_sitting")
    assert robot.frame_pose(q, "left_sole")[1, 3] > 0.05 > -0.05 > robot.frame_pose(q, "right_sole")[1, 3]
    if names[0] != "one_":
        assert robot.patches["left_sole"].link == f"{names[0]}foot"


def test_a_quadruped_with_balls_gets_four_that_roll(tmp_path):
    quadruped(tmp_path)
    (tmp_path / "proposed.yaml").write_text(propose(tmp_path / "quadruped.urdf", tmp_path, "proposed"))
    robot = load_robot(tmp_path / "proposed.yaml")
    ends = {f"{end}_{side}" for end in ("front", "hind") for side in ("left", "right")}
    assert set(robot.patches) == {f"{end}_foot" for end in ends}
    q = robot.posture("half_sitting")
    for name, patch in robot.patches.items():
        assert patch.kind == "ball"
        assert patch.radius == pytest.approx(BALL, rel=0.02)
        np.testing.assert_allclose(patch.p, 0.0, atol=0.02 * BALL)  # the shape's own centre
        X = robot.frame_pose(q, name)
        assert X[2, 3] == pytest.approx(patch.radius, abs=2e-3)
        assert (X[0, 3] > 0) == name.startswith("front")
    np.testing.assert_allclose(robot.com(q)[:2], [0, 0], atol=0.05)


def test_a_robot_without_legs_is_described_and_read_back(tmp_path):
    body = '<inertial><mass value="2"/><inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial>'
    wheels = "".join(
        f'<link name="{side}">{body}<collision><geometry><cylinder radius="0.1" length="0.05"/></geometry></collision>'
        f'</link><joint name="{side}_axle" type="revolute"><parent link="box"/><child link="{side}"/>'
        f'<axis xyz="0 1 0"/><origin xyz="0 {y} 0"/><limit lower="-3" upper="3" effort="9" velocity="9"/></joint>'
        for side, y in (("l", 0.3), ("r", -0.3))
    )
    box = f'<link name="box">{body}<collision><geometry><box size=".4 .4 .2"/></geometry></collision></link>'
    (tmp_path / "cart.urdf").write_text(f'<robot name="cart">{box}{wheels}</robot>')
    (tmp_path / "cart.yaml").write_text(propose(tmp_path / "cart.urdf", tmp_path, "cart"))
    robot = load_robot(tmp_path / "cart.yaml")
    assert not robot.patches
    assert not robot.posture("half_sitting")[7:].any()


def test_a_ball_is_that_of_its_shape_however_its_link_is_turned(tmp_path):
    """Each foot's sphere lies off its link's frame, which is turned against the shank."""
    quadruped(tmp_path)
    text = (tmp_path / "quadruped.urdf").read_text()
    for foot in ("fl", "fr", "hl", "hr"):
        at = text.index(f'<link name="{foot}_foot_link">')
        begin, end = text.index("<origin", at), text.index("/></joint>", at)
        mount = text[begin:end] + ' rpy="0.3 1.2 -0.4"'
        shape = text[at:begin].replace("<collision>", '<collision><origin xyz="0.004 -0.003 0.002"/>')
        text = text[:at] + shape + mount + text[end:]
    (tmp_path / "quadruped.urdf").write_text(text)
    (tmp_path / "proposed.yaml").write_text(propose(tmp_path / "quadruped.urdf", tmp_path, "proposed"))
    robot = load_robot(tmp_path / "proposed.yaml")
    assert len(robot.patches) == 4
    for patch in robot.patches.values():
        np.testing.assert_allclose(patch.p, [0.004, -0.003, 0.002], atol=1e-6)


def test_a_robot_that_faces_backwards_or_lies_is_set_upright(tmp_path):
    """The same humanoid about other axes: x ahead and z up are found again from feet and sides."""
    humanoid(tmp_path)
    text = (tmp_path / "humanoid.urdf").read_text().replace('<link name="pelvis">', '<link name="pelvis_">', 1)
    for name in ("waist", "l_hip_yaw", "r_hip_yaw"):  # the root link is turned against all that hangs on it
        text = text.replace(f'<joint name="{name}" type="revolute"><parent link="pelvis"/>',
                            f'<joint name="{name}" type="revolute"><parent link="pelvis_"/>')  # fmt: skip
    mount = '<link name="root"/><joint name="m" type="fixed"><parent link="root"/><child link="pelvis_"/>'
    text = text.replace("</robot>", mount + '<origin rpy="1.5707963267948966 0 3.141592653589793"/></joint></robot>')
    (tmp_path / "humanoid.urdf").write_text(text)
    (tmp_path / "proposed.yaml").write_text(propose(tmp_path / "humanoid.urdf", tmp_path, "proposed"))
    robot = load_robot(tmp_path / "proposed.yaml")
    q = robot.posture("half_sitting")
    assert robot.com(q)[2] > 0.5
    assert robot.frame_pose(q, "left_sole")[1, 3] > 0.05
    np.testing.assert_allclose(robot.frame_pose(q, "left_sole")[:3, 0], [1, 0, 0], atol=0.02)
    assert findings(robot) == []


def proposed_with(parts, tmp_path):
    """Return the humanoid with further links and joints, by the file that is proposed for it."""
    humanoid(tmp_path)
    text = (tmp_path / "humanoid.urdf").read_text()
    (tmp_path / "humanoid.urdf").write_text(text.replace("</robot>", parts + "</robot>"))
    (tmp_path / "proposed.yaml").write_text(propose(tmp_path / "humanoid.urdf", tmp_path, "proposed"))
    return load_robot(tmp_path / "proposed.yaml")


@pytest.mark.parametrize("kind", ["ball", "spherical"])
def test_of_light_joints_those_are_locked_that_are_no_ball(tmp_path, kind):
    inertia = '<inertia ixx="1e-5" iyy="1e-5" izz="1e-5" ixy="0" ixz="0" iyz="0"/>'
    limits = '<limit lower="-0.5" upper="0.5" velocity="1" effort="1"/>'
    parts = "".join(
        f'<link name="{name}"><inertial><mass value="0.02"/>{inertia}</inertial></link>'
        f'<joint name="{name}_joint" type="{type_}"><parent link="l_forearm"/><child link="{name}"/>'
        f'<origin xyz="{x} 0 -0.2"/>{axis}{limits}</joint>'
        for name, type_, x, axis in (("thumb", kind, 0.02, ""), ("finger", "revolute", -0.02, '<axis xyz="0 1 0"/>'))
    )
    robot = proposed_with(parts, tmp_path)
    assert set(robot.locked) == {"finger_joint"}
    assert {f"thumb_joint_{axis}" for axis in "xyz"} <= set(robot.joint_names)


def test_a_light_joint_whose_range_leaves_out_zero_is_locked_at_its_limit_to_the_last_digit(tmp_path):
    finger = (
        '<link name="finger"><inertial><mass value="0.02"/>'
        '<inertia ixx="1e-5" iyy="1e-5" izz="1e-5" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="finger_joint" type="revolute"><parent link="l_forearm"/><child link="finger"/>'
        '<origin xyz="0 0 -0.2"/><axis xyz="0 1 0"/>'
        '<limit lower="0.12345678901" upper="0.5" velocity="1" effort="1"/></joint>'
    )
    assert proposed_with(finger, tmp_path).locked == {"finger_joint": 0.12345678901}


def test_a_joint_with_little_room_stays_in_its_range_to_the_last_digit(tmp_path):
    tool = (
        '<link name="tool"><inertial><mass value="1"/>'
        '<inertia ixx="1e-3" iyy="1e-3" izz="1e-3" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="tool_joint" type="revolute"><parent link="l_forearm"/><child link="tool"/>'
        '<origin xyz="0 0 -0.2"/><axis xyz="0 1 0"/>'
        '<limit lower="0.12345678901" upper="0.1234568" velocity="1" effort="9"/></joint>'
    )
    robot = proposed_with(tool, tmp_path)
    assert robot.posture("half_sitting")[7 + robot.joint_names.index("tool_joint")] == 0.12345678901


def test_a_name_stays_in_its_comment(tmp_path):
    humanoid(tmp_path)
    text = (tmp_path / "humanoid.urdf").read_text()
    (tmp_path / "humanoid.urdf").write_text(text.replace('"l_foot"', '"l_foot&#10;locked: {waist: 0}"'))
    proposed = propose(tmp_path / "humanoid.urdf", tmp_path, "proposed")
    assert "\nlocked:" not in proposed
    (tmp_path / "proposed.yaml").write_text(proposed)
    robot = load_robot(tmp_path / "proposed.yaml")
    assert robot.patches["left_sole"].link == "l_foot\nlocked: {waist: 0}"
    assert not robot.locked


def test_the_inscribed_rectangle_is_inside_and_the_largest():
    random = np.random.default_rng(0)
    np.testing.assert_allclose(
        inscribed_rectangle(np.array([[0, 0], [2, 0], [2, 1], [0, 1.0]])), [[0, 0], [2, 1]], atol=1e-12
    )
    low, high = inscribed_rectangle(np.array([[0, 0], [1, 0], [0, 1.0]]), 201)  # half of a triangle, known from Euclid
    assert np.prod(high - low) == pytest.approx(0.25, abs=1e-3)
    for _ in range(20):
        points = random.normal(size=(12, 2))
        low, high = inscribed_rectangle(points)
        corners = np.array([[low[0], low[1]], [high[0], low[1]], [high[0], high[1]], [low[0], high[1]]])
        assert all(_in_hull(points, corner) for corner in corners)


def _in_hull(points, x):
    return (ConvexHull(points).equations @ [*x, 1.0]).max() < 1e-9


def test_a_patch_off_its_link_and_one_inside_it_are_told(tmp_path):
    path = humanoid(tmp_path)
    text = path.read_text()
    assert all("_sole" not in finding for finding in findings(load_robot(path)))
    path.write_text(
        text.replace("pose: {quat_wxyz: [0, 1, 0, 0]}", "pose: {xyz: [0, 0, -0.01], quat_wxyz: [0, 1, 0, 0]}")
    )
    robot = load_robot(path)
    assert patch_distances(robot)["left_sole"] == pytest.approx(0.01, abs=1e-6)
    assert any("left_sole: 10.0 mm off the shapes" in finding for finding in findings(robot))
    path.write_text(
        text.replace("pose: {quat_wxyz: [0, 1, 0, 0]}", "pose: {xyz: [0, 0, 0.01], quat_wxyz: [0, 1, 0, 0]}")
    )
    assert any("right_sole: 10.0 mm inside the shapes" in finding for finding in findings(load_robot(path)))


def test_a_posture_below_the_ground_and_one_without_balance_are_told(tmp_path):
    path = humanoid(tmp_path)
    text = path.read_text().replace("  ready:", "  half_sitting:")
    path.write_text(text.replace("0.64143", "0.6"))
    assert any("left_sole is 41 mm below the ground" in finding for finding in findings(load_robot(path)))
    path.write_text(text.replace("0.64143", "0.7"))
    assert any("is 59 mm above the ground" in finding for finding in findings(load_robot(path)))
    path.write_text(text)
    assert findings(load_robot(path)) == []
    for old, new in (("hip_pitch: -0.5", "hip_pitch: 0.3"), ("knee: 1.0", "knee: 0"), ("pitch: -0.5", "pitch: -0.3")):
        text = text.replace(old, new)
    path.write_text(text.replace("0.64143", "0.68499"))  # legs straight and to the rear, soles level
    assert any("the centre of mass is" in finding for finding in findings(load_robot(path)))


def test_soles_that_face_up_and_a_missing_posture_to_stand_in_are_told(tmp_path):
    path = humanoid(tmp_path)
    text = path.read_text()
    (missing,) = findings(load_robot(path))
    assert "postures: there is no half_sitting" in missing
    assert missing.endswith("`feet` are taken from `ready`")
    text = text.replace("  ready:", "  half_sitting:").replace("pose: {quat_wxyz: [0, 1, 0, 0]}", "pose: {}")
    path.write_text(text)
    line = text[: text.index("  left_sole:")].count("\n") + 1
    found = findings(load_robot(path))
    assert len(found) == 2
    assert found[0].startswith(f"{path}:{line}: patches.left_sole: its z axis points up")


def test_points_of_a_shape_span_it():
    points = shape_points(Sphere(0.02))
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 0.02)
    np.testing.assert_allclose([points[:, 2].min(), points[:, 2].max()], [-0.02, 0.02])
    np.testing.assert_allclose(np.ptp(shape_points(Box((1, 2, 3))), axis=0), [1, 2, 3])


needs_data = pytest.mark.skipif(find_package("example-robot-data") is None, reason="pip install 'mcplan[robots]'")


@needs_data
@pytest.mark.parametrize("name", ["g1", "go2"])
@pytest.mark.filterwarnings("ignore::mcplan.robot.description.RobotWarning")
def test_a_bundled_robot_is_read_from_where_it_is_installed_and_stands(name):
    assert name in bundled_robots()
    robot = load_robot(name)
    assert find_package("example-robot-data") in robot.urdf_path.parents
    assert findings(robot) == []


def test_without_the_package_the_robot_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr("mcplan.robot.mesh_file.find_package", lambda name: None)
    with pytest.raises(Exception, match=r"g1/robot.yaml:\d+: urdf: .*is not installed: pip install 'mcplan\[robots\]'"):
        load_robot("g1")


INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
MESH = '<geometry><mesh filename="cube.stl"/></geometry>'
CUBE = f"<collision>{MESH}</collision>"
TWO_CUBES = f"""<robot name="two"><link name="base">{INERTIAL}{CUBE}</link><link name="mid">{INERTIAL}</link>
  <link name="tip">{INERTIAL}{CUBE.replace("<geometry>", '<origin xyz="X 0 0"/><geometry>')}</link>
  <joint name="a" type="revolute"><parent link="base"/><child link="mid"/><origin xyz="0.3 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" velocity="1" effort="1"/></joint>
  <joint name="b" type="revolute"><parent link="mid"/><child link="tip"/><origin xyz="0.1 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" velocity="1" effort="1"/></joint></robot>"""


@pytest.mark.parametrize(("depth", "said"), [(0.008, "which is ignored"), (0.03, "block every motion"), (-0.002, None)])
def test_hulls_that_overlap_a_little_at_rest_are_taken_not_to_and_deep_ones_are_named(tmp_path, depth, said):
    trimesh.creation.box((0.1, 0.1, 0.1)).export(tmp_path / "cube.stl")
    (tmp_path / "two.urdf").write_text(TWO_CUBES.replace("X", f"{0.1 - depth - 0.4}"))
    (tmp_path / "two.yaml").write_text("mcplan: 1\nurdf: two.urdf\npatches: {end: {link: tip, kind: point}}\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        robot = load_robot(tmp_path / "two.yaml")
    assert [str(warning.message).count(f"[base, tip] {1000 * depth:.1f} mm") for warning in caught] == (
        [1] if said else []
    )
    assert all(said in str(warning.message) for warning in caught)
    assert robot.collision_ignore == ({frozenset({"base", "tip"})} if depth == 0.008 else set())


def test_boxes_that_overlap_at_rest_are_meant_and_stay(tmp_path):
    box = '<geometry><box size="0.1 0.1 0.1"/></geometry>'
    (tmp_path / "two.urdf").write_text(TWO_CUBES.replace(MESH, box).replace("X", "-0.305"))
    assert load_robot(tmp_path / "two.urdf").collision_ignore == set()
