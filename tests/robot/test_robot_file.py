"""robot.yaml: everything wrong in it is named with its line; what it says reaches the Robot."""

import re

import numpy as np
import pytest

from mcplan.errors import InputError, RobotError
from mcplan.robot.robot_file import load_robot
from mcplan.robot.robot_schema import RobotSection

URDF = """<robot name="walker">
  <link name="trunk"><inertial><mass value="5"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hip" type="revolute"><origin xyz="0 0 -0.1"/><parent link="trunk"/><child link="leg"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="1" velocity="2" effort="30"/></joint>
  <link name="leg"><inertial><mass value="1"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="ankle" type="revolute"><origin xyz="0 0 -0.4"/><parent link="leg"/><child link="foot"/>
    <axis xyz="0 1 0"/><limit lower="-0.5" upper="0.5" velocity="2" effort="30"/></joint>
  <link name="foot"><inertial><origin xyz="0.05 0 0"/><mass value="0.5"/>
    <inertia ixx="0.001" iyy="0.002" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="toe" type="revolute"><origin xyz="0.1 0 0"/><parent link="foot"/><child link="tip"/>
    <axis xyz="0 1 0"/><limit lower="-0.5" upper="0.5" velocity="2" effort="3"/><mimic joint="ankle"/></joint>
  <link name="tip"><inertial><mass value="0.1"/>
    <inertia ixx="0.0001" iyy="0.0001" izz="0.0001" ixy="0" ixz="0" iyz="0"/></inertial></link>
</robot>
"""
YAML = """mcplan: 1
urdf: walker.urdf
base: trunk
armature: {hip: 0.2}
limits: {hip: {upper: 0.8, torque: 25}}
collision: {ignore: [[trunk, leg]]}
patches:
  sole:
    link: foot
    pose: {xyz: [0, 0, -0.05], rpy: [3.141592653589793, 0, 0]}
    polygon: [[-0.05, -0.03], [-0.05, 0.03], [0.1, 0.03], [0.1, -0.03]]
  grip: {link: tip, kind: grasp, max_force: 100, max_moment: 5}
postures:
  stand: {base: {xyz: [0, 0, 0.55], quat_wxyz: [1, 0, 0, 0]}, joints: {hip: 0.1, ankle: -0.1}}
"""


def load(folder, text=YAML):
    (folder / "walker.urdf").write_text(URDF)
    (folder / "robot.yaml").write_text(text)
    return load_robot(folder / "robot.yaml", strict=True)


def test_what_the_file_says_reaches_the_robot(tmp_path):
    robot = load(tmp_path)
    assert robot.name == "walker"
    assert robot.joint_names == ("hip", "ankle")
    np.testing.assert_array_equal(robot.armature, [0.2, 0])
    np.testing.assert_array_equal(robot.limits.upper, [0.8, 0.5])
    np.testing.assert_array_equal(robot.limits.torque, [25, 30])
    np.testing.assert_array_equal(robot.posture("stand"), [0, 0, 0.55, 1, 0, 0, 0, 0.1, -0.1])
    assert robot.collision_ignore == {frozenset({"trunk", "leg"})}
    sole = robot.patches["sole"]
    assert (sole.kind, sole.limb, sole.max_force) == ("surface", "foot", np.inf)
    # clockwise corners are turned round
    area = np.cross(np.roll(sole.points, -1, axis=0), sole.points)[:, 2].sum() / -2
    assert area == pytest.approx(0.15 * 0.06)
    assert robot.patches["grip"].points.shape == (1, 3)
    assert robot.frame_names == ("trunk", "leg", "foot", "tip", "sole", "grip")
    assert robot.urdf_path.is_file()


def test_armature_adds_to_the_mass_matrix(tmp_path):
    robot = load(tmp_path)
    bare = load(tmp_path, YAML.replace("armature: {hip: 0.2}\n", ""))
    q = robot.posture("stand")
    difference = robot.mass_matrix(q) - bare.mass_matrix(q)
    np.testing.assert_allclose(difference, np.diag([0] * 6 + [0.2, 0]), atol=1e-14)


def test_a_locked_joint_is_a_joint_that_stands_still(tmp_path):
    """Its mimics stand still with it, and M, h are those rows and columns of the free robot."""
    free = load(tmp_path)
    text = YAML.replace("base: trunk\n", "base: trunk\nlocked: {ankle: -0.1}\n")
    robot = load(tmp_path, text)
    assert robot.joint_names == ("hip",)
    assert robot.locked == {"ankle": -0.1, "toe": -0.1}
    q, q_free = robot.posture("stand"), free.posture("stand")
    keep = np.arange(7)
    v = np.linspace(-1, 1, 7)
    np.testing.assert_allclose(robot.mass_matrix(q), free.mass_matrix(q_free)[np.ix_(keep, keep)], atol=1e-12)
    expected = free.nonlinear_effects(q_free, np.append(v, 0))[keep]
    np.testing.assert_allclose(robot.nonlinear_effects(q, v), expected, atol=1e-12)
    for frame in robot.frame_names:
        np.testing.assert_allclose(robot.frame_pose(q, frame), free.frame_pose(q_free, frame), atol=1e-12)


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("mcplan: 1", "mcplan: 2", 1, "1"),
        ("walker.urdf", "absent.urdf", 2, "there is no file"),
        ("base: trunk", "base: leg2", 3, "the URDF has no link 'leg2'"),
        ("base: trunk", "bas: trunk", 3, "base"),
        ("{hip: 0.2}", "{hop: 0.2}", 4, "no joint 'hop'; did you mean `hip`"),
        ("{hip: 0.2}", "{toe: 0.2}", 4, "'toe' mimics 'ankle'; name that one"),
        ("{hip: 0.2}", "{hip: -0.2}", 4, "0"),
        ("upper: 0.8", "upper: -2", 5, "lower limit -1 is above the upper limit -2"),
        ("[[trunk, leg]]", "[[trunk, log]]", 6, "no link 'log'; did you mean `leg`"),
        ("link: foot", "link: foo", 9, "no link 'foo'; did you mean `foot`"),
        ("rpy: [3.141592653589793, 0, 0]", "quat_wxyz: [1, 1, 0, 0]", 10, "length 1.41421; expected 1"),
        ("rpy:", "quat_wxyz: [1, 0, 0, 0], rpy:", 10, "not both"),
        ("[0.1, 0.03], [0.1, -0.03]", "[0.1, -0.03], [0.1, 0.03]", 11, "convex"),
        ("polygon:", "max_moment: 3\n    polygon:", 11, "no max_moment"),
        ("max_moment: 5", "", 12, "a grasp needs max_force"),
        ("  grip:", "  leg:", 12, "a link has the same name"),
        ("grasp,", "hold,", 12, "grasp"),
        ("hip: 0.1", "hip: 0.9", 14, r"joint hip = 0.9, outside \[-1, 0.8\]"),
        ("hip: 0.1", "hip: -1.1", 14, r"joint hip = -1.1, outside \[-1, 0.8\]"),
        ("hip: 0.1", "knee: 0.1", 14, "no joint 'knee'"),
        ("hip: 0.1", "hip: .nan", 14, "."),
        ("base: trunk", "base: trunk\nlocked: {ankle: 2}", 4, r"joint ankle = 2, outside \[-0.5, 0.5\]"),
        ("base: trunk", "base: trunk\nlocked: {ankle: 0.2}", 15, "joint 'ankle' is locked at 0.2"),
        ("base: trunk", "base: trunk\nlocked: {hip: 0.2}", 5, "joint 'hip' is locked"),
    ],
)
def test_mistakes_are_named_with_their_line(tmp_path, old, new, line, words):
    assert old in YAML
    with pytest.raises(RobotError) as caught:
        load(tmp_path, YAML.replace(old, new, 1))
    places = [(problem.line, str(problem)) for problem in caught.value.problems]
    assert any(number == line and re.search(words, text) for number, text in places), places


def test_several_mistakes_come_at_once(tmp_path):
    text = YAML.replace("[0, 0, 0.55]", "[0, 0, 0.55], rpy: [0, 0, 0]").replace("link: foot", "link: feet")
    with pytest.raises(RobotError) as caught:
        load(tmp_path, text)
    assert [problem.line for problem in caught.value.problems] == [9, 14]


def test_mistakes_of_keys_do_not_hide_those_of_names_nor_bring_others(tmp_path):
    """A radius that is none is not said to be missing, too."""
    text = YAML
    for old, new in (
        ("armature:", "armatur:"),
        ("{hip: 0.2}", "{hop: 0.2}"),
        ("torque: 25", "effort: 25"),
        ("link: foot", "link: foo"),
        ("grip: {link: tip, kind: grasp, max_force: 100, max_moment: 5}", "grip: {link: tip, kind: ball, radius: -1}"),
        ("ankle: -0.1", "ankel: -0.1"),
        ("base: trunk", "base: trunk\nlocked: {left_kne: 0}"),
    ):
        assert old in text
        text = text.replace(old, new)
    with pytest.raises(RobotError) as caught:
        load(tmp_path, text)
    places = [problem.key for problem in caught.value.problems]
    assert sorted(places) == [
        "armatur", "armature.hop", "limits.hip.effort", "locked.left_kne", "patches.grip.radius", "patches.sole.link",
        "postures.stand.joints.ankel",
    ]  # fmt: skip
    with pytest.raises(RobotError, match=r"(?s)armatur: unknown key.*there is no file"):
        load(tmp_path, text.replace("walker.urdf", "absent.urdf"))


def test_packages_that_are_none_do_not_make_a_package_seem_not_to_be_installed(tmp_path):
    text = YAML.replace("urdf: walker.urdf", "urdf: package://walkers/walker.urdf\npackages: walkers")
    assert text != YAML
    with pytest.raises(RobotError) as caught:
        load(tmp_path, text)
    assert [problem.key for problem in caught.value.problems] == ["packages"]


def test_the_digest_covers_both_files(tmp_path):
    first = load(tmp_path).digest
    assert re.fullmatch("[0-9a-f]{64}", first)
    assert load(tmp_path).digest == first
    assert load(tmp_path, YAML + "# \n").digest != first
    assert load_robot(tmp_path / "walker.urdf").digest != first


def test_every_section_has_its_place_in_the_schema():
    assert set(RobotSection.model_fields) >= {"urdf", "base", "patches", "postures", "locked", "armature", "collision"}


@pytest.mark.parametrize(
    ("multiplier", "offset", "lower", "upper"),
    [(2.0, 0.1, -0.3, 0.2), (-2.0, 0.1, -0.2, 0.3), (-0.5, 0.0, -0.5, 0.5), (-1.0, 0.2, -0.3, 0.5)],
)
def test_a_joint_keeps_the_limits_of_what_mimics_it_whichever_way_that_turns(
    tmp_path, multiplier, offset, lower, upper
):
    """The toe turns within [-0.5, 0.5], as the ankle does by itself: toe = multiplier * ankle + offset."""
    mimic = f'<mimic joint="ankle" multiplier="{multiplier}" offset="{offset}"/>'
    (tmp_path / "walker.urdf").write_text(URDF.replace('<mimic joint="ankle"/>', mimic))
    limits = load_robot(tmp_path / "walker.urdf").limits
    assert (limits.lower[1], limits.upper[1]) == pytest.approx((lower, upper))


SLIDER = """<robot name="slider"><link name="base"><inertial><mass value="2"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="slide"><inertial><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="joint" type="KIND"><origin xyz="0.1 0.2 0.3" rpy="0.4 -0.5 0.6"/><parent link="base"/><child link="slide"/>
<axis xyz="0.6 0 0.8"/><limit lower="-1" upper="1" velocity="2" effort="3"/></joint></robot>"""


@pytest.mark.parametrize("kind", ["prismatic", "revolute"])
def test_a_locked_joint_holds_its_link_where_the_same_joint_takes_it(tmp_path, kind):
    (tmp_path / "slider.urdf").write_text(SLIDER.replace("KIND", kind))
    (tmp_path / "robot.yaml").write_text("mcplan: 1\nurdf: slider.urdf\nlocked: {joint: 0.7}\n")
    free, locked = load_robot(tmp_path / "slider.urdf"), load_robot(tmp_path / "robot.yaml")
    q = free.neutral()
    q[7] = 0.7
    assert locked.n == 0
    np.testing.assert_allclose(locked.frame_pose(locked.neutral(), "slide"), free.frame_pose(q, "slide"), atol=1e-12)
    np.testing.assert_allclose(locked.com(locked.neutral()), free.com(q), atol=1e-12)


@pytest.mark.parametrize(("lower", "upper", "expected"), [(-2.0, -0.5, -0.5), (0.3, 1.0, 0.3), (-1.0, 1.0, 0.0)])
def test_the_neutral_posture_is_zero_or_as_near_to_it_as_limits_allow(tmp_path, lower, upper, expected):
    limits = f'lower="{lower}" upper="{upper}"'
    (tmp_path / "slider.urdf").write_text(SLIDER.replace("KIND", "revolute").replace('lower="-1" upper="1"', limits))
    assert load_robot(tmp_path / "slider.urdf").neutral()[7] == expected


@pytest.mark.parametrize("length", [0.9, 1.1])
def test_a_base_whose_quaternion_is_not_of_unit_length_is_refused(tmp_path, length):
    (tmp_path / "slider.urdf").write_text(SLIDER.replace("KIND", "revolute"))
    robot = load_robot(tmp_path / "slider.urdf")
    q = robot.neutral()
    q[3:7] *= length
    with pytest.raises(InputError, match="quaternion"):
        robot.com(q)


def test_a_robot_has_no_more_shapes_than_can_be_paired(tmp_path, monkeypatch):
    shape = "<collision><geometry><sphere radius='0.01'/></geometry></collision>"
    text = URDF.replace("</inertial></link>", f"</inertial>{shape * 3}</link>")
    (tmp_path / "walker.urdf").write_text(text)
    monkeypatch.setattr("mcplan.robot.robot_file.MAX_SHAPES", 12)
    assert load_robot(tmp_path / "walker.urdf").n == 2
    monkeypatch.setattr("mcplan.robot.robot_file.MAX_SHAPES", 8)
    with pytest.raises(RobotError, match="foot: more than 8 shapes that collide") as caught:
        load_robot(tmp_path / "walker.urdf")
    assert caught.value.problems[0].line == 10


@pytest.mark.parametrize("name", [r"urdf\walker.urdf", r'"urdf\b.urdf"'])
def test_paths_with_backslashes_are_told_to_use_slashes(tmp_path, name):
    (tmp_path / "walker.yaml").write_text(f"mcplan: 1\nurdf: {name}\n")
    with pytest.raises(RobotError) as caught:
        load_robot(tmp_path / "walker.yaml")
    (problem,) = caught.value.problems
    assert (problem.line, problem.key) == (2, "urdf")
    assert "write / between folders" in problem.message
