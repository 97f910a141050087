"""What is refused, with which line and which words; what is accepted, as yourdfpy reads it."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import yourdfpy
from hypothesis import given, settings, strategies as st
from scipy.spatial.transform import Rotation

from mcplan.errors import RobotError
from mcplan.robot.description import RobotWarning
from mcplan.robot.robot_file import load_robot
from mcplan.robot.urdf import parse_urdf
from mcplan.util.bundled import ROBOTS

HRP2 = ROBOTS / "hrp2" / "hrp2.urdf"

TWO_LINKS = """<robot name="two">
  <link name="base">
    <inertial><mass value="2"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><geometry><box size="1 2 3"/></geometry></visual>
  </link>
  <joint name="hinge" type="revolute">
    <origin xyz="0 0 1" rpy="0 0 0"/><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" velocity="2" effort="3"/>
  </joint>
  <link name="arm">
    <inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
</robot>
"""
THIRD = """  <joint name="second" type="continuous"><parent link="arm"/><child link="tip"/>{}</joint>
  <link name="tip"/>
</robot>"""


def read(text, strict=False):
    return parse_urdf(text.encode(), Path("two.urdf"), strict)


def refused(text, line, words, strict=False):
    with pytest.raises(RobotError) as caught:
        read(text, strict)
    found = [p for p in caught.value.problems if re.search(words, p.message)]
    assert found, caught.value
    assert found[0].file == "two.urdf"
    assert found[0].line == line
    assert str(found[0]).startswith(f"two.urdf:{line}: ")
    return caught.value


@pytest.mark.parametrize("shape", ['box size="0 0 0"', 'sphere radius="0.00"', 'cylinder radius="0.1" length="0"'])
def test_shapes_without_size_are_left_out_with_a_doubt(shape):
    with pytest.warns(RobotWarning, match="the shape is left out"):
        model = read(TWO_LINKS.replace('box size="1 2 3"', shape))
    assert model.links["base"].geometry == ()
    refused(TWO_LINKS.replace('box size="1 2 3"', shape), 4, "the shape is left out", strict=True)


def test_a_floating_joint_from_an_empty_root_is_left_out_with_a_notice():
    joint = '<joint name="root" type="floating"><parent link="world"/><child link="base"/></joint><link name="world"/>'
    with pytest.warns(RobotWarning, match="floating joint from the empty link 'world' is left out"):
        model = read(TWO_LINKS.replace("</robot>", f"{joint}</robot>"))
    assert (model.root, list(model.joints)) == ("base", ["hinge"])
    held = joint.replace('<link name="world"/>', '<link name="world"><visual/></link>')
    refused(TWO_LINKS.replace("</robot>", f"{held}</robot>"), 13, "the base floats by itself: delete the joint")


def test_the_sound_file_is_read():
    model = read(TWO_LINKS, strict=True)
    assert model.root == "base"
    assert list(model.links) == ["base", "arm"]
    assert model.joints["hinge"].effort == 3


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('mass value="2"', 'mass value="-2"', 3, "mass -2 kg is negative"),
        ('mass value="2"', 'mass value="nan"', 3, "not finite"),
        ('mass value="2"', 'mass value="inf"', 3, "not finite"),
        ('mass value="2"', 'mass value="1e999"', 3, "not finite"),
        ('mass value="2"', 'mass value="1_0"', 3, "not finite"),
        ('mass value="2"', 'mass value="1e12"', 3, "beyond 1e\\+09"),
        ('mass value="2"', "mass", 3, "<mass> needs the attribute value"),
        ('<mass value="2"/>', "", 3, "<inertial> needs a <mass>"),
        (' izz="0.1"', "", 3, "<inertia> needs the attribute izz"),
        ("0 1 0", "0 0 0", 7, "axis 0, 0, 0 has no direction"),
        ("0 1 0", "0 1", 7, "should be 3 numbers"),
        ("0 0 1", "0 0 one", 7, "not finite"),
        ('lower="-1"', 'lower="2"', 8, "lower limit 2 is above the upper limit 1"),
        ('velocity="2"', 'velocity="-2"', 8, "velocity limit -2 is negative"),
        ('effort="3"', "", 8, "needs the attribute effort"),
        ('<limit lower="-1" upper="1" velocity="2" effort="3"/>', "", 6, "<joint> needs a <limit>"),
        ('type="revolute"', 'type="hinge"', 6, "joint type 'hinge' is not one of revolute"),
        ('type="revolute"', 'type="floating"', 6, "the base floats by itself"),
        ('type="revolute"', "", 6, "needs the attribute type"),
        ('child link="arm"', 'child link="arn"', 6, "child link 'arn' does not exist; did you mean `arm`"),
        ('parent link="base"', 'parent link="bass"', 6, "parent link 'bass' does not exist; did you mean `base`"),
        ('parent link="base"', 'parent link="arm"', 6, "same link 'arm'"),
        ('<child link="arm"/>', "", 6, "<joint> needs a <child>"),
        ('link name="arm"', 'link name="base"', 10, "second link of this name.*line 2"),
        ('link name="arm"', "link", 10, "<link> needs the attribute name"),
        ("</robot>", '<link name="loose"/></robot>', 13, "falls apart: 2 links have no parent"),
        ("1 2 3", "1 -2 3", 4, "should be positive"),
        ('box size="1 2 3"', "cone", 4, "should hold one of box, sphere"),
        ('box size="1 2 3"', 'sphere radius="-1"', 4, "<sphere>, -1, should be positive"),
        ('size="1 2 3"', 'size="${a} 2 3"', 4, "unexpanded xacro"),
        ("<robot ", "<!DOCTYPE robot><robot ", 1, "document type"),
        ("<robot ", '<!DOCTYPE r [<!ENTITY a "b">]><robot ', 1, "document type"),
        ("robot", "model", 1, "root element is <model>, not <robot>"),
        ("</visual>", "", 5, "mismatched tag.*<visual>, which begins on line 4"),
        ('<robot name="two">', '<robot name="two"><xacro:include filename="a"/>', 1, "run `xacro"),
        ("<robot ", '<?xml version="1.0" encoding="nonsense"?><robot ', 1, "encoding"),
        ('name="base"', 'name="base" name="base"', 2, "duplicate attribute"),
    ],
)
def test_broken_files_are_refused(old, new, line, words):
    assert old in TWO_LINKS
    refused(TWO_LINKS.replace(old, new, 1 if old != "robot" else -1), line, words)


def test_names_may_not_repeat_among_joints():
    joint = '<joint name="hinge" type="fixed"><parent link="arm"/><child link="tip"/></joint><link name="tip"/></robot>'
    refused(TWO_LINKS.replace("</robot>", joint), 13, "second joint of this name.*line 6")


def test_a_link_hangs_on_one_joint():
    joint = '<joint name="again" type="fixed"><parent link="base"/><child link="arm"/></joint></robot>'
    refused(TWO_LINKS.replace("</robot>", joint), 13, "'arm' already hangs on joint 'hinge'")


@pytest.mark.parametrize("links", [("base", "arm"), ("x", "y")])
def test_cycles(links):
    a, b = links
    if a == "base":
        text = TWO_LINKS.replace(
            "</robot>", '<joint name="back" type="fixed"><parent link="arm"/><child link="base"/></joint></robot>'
        )
        refused(text, 13, "cycle: (base -> arm|arm -> base)")
    else:
        ring = "".join(
            f'<joint name="{p}{c}" type="fixed"><parent link="{p}"/><child link="{c}"/></joint><link name="{c}"/>'
            for p, c in ((a, b), (b, a))
        )
        refused(TWO_LINKS.replace("</robot>", f"{ring}</robot>"), 13, "cycle: (x -> y -> x|y -> x -> y)")


@pytest.mark.parametrize(
    ("mimic", "words"),
    [
        ('<mimic joint="hinges"/>', "mimics joint 'hinges', which does not exist; did you mean `hinge`"),
        ('<mimic joint="second"/>', "mimics itself"),
        ('<mimic joint="hinge" multiplier="x"/>', "not finite"),
        ("<mimic/>", "needs the attribute joint"),
    ],
)
def test_mimic_joints_lead_somewhere(mimic, words):
    refused(TWO_LINKS.replace("</robot>", THIRD.format(mimic)), 13, words)


def test_mimic_cycles_and_fixed_masters():
    text = TWO_LINKS.replace("</robot>", THIRD.format('<mimic joint="hinge"/>'))
    refused(text.replace("<axis xyz", '<mimic joint="second"/><axis xyz'), 6, "mimics itself through")
    refused(text.replace("revolute", "fixed"), 13, "mimics joint 'hinge', which does not move")


def test_all_problems_come_at_once_in_the_order_of_the_file():
    text = TWO_LINKS.replace('mass value="1"', 'mass value="-1"').replace("0 1 0", "0 0 0").replace("1 2 3", "1 2")
    error = refused(text, 7, "no direction")
    assert [problem.line for problem in error.problems] == [4, 7, 11]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ('ixx="0.1" iyy="0.1" izz="0.5"', "triangle inequality"),
        ('ixx="-0.1" iyy="0.1" izz="0.1"', "not positive definite"),
        ('ixx="0" iyy="0" izz="0"', "not positive definite"),
    ],
)
def test_inertias_of_no_body_warn_and_are_refused_when_strict(values, words):
    text = TWO_LINKS.replace('ixx="0.1" iyy="0.1" izz="0.1"', values, 1)
    with pytest.warns(RobotWarning, match=f"two.urdf:3: base: .*{words}"):
        read(text)
    refused(text, 3, words, strict=True)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("<inertial>", "<inertail>", "unknown element <inertail> is ignored; did you mean `inertial`"),
        ('effort="3"', 'effort="0"', "the joint cannot be used"),
        ('lower="-1"', 'lower="1"', "the joint cannot move"),
        ("</visual>", '<material name="gold"/></visual>', "material 'gold' is defined nowhere"),
        ("</visual>", '<material name="x"><color rgba="2 0 0 1"/></material></visual>', "between 0 and 1"),
        ("<visual>", '<visual><geometry><mesh filename="a.stl"/></geometry></visual><visual>', "there is no such file"),
    ],
)
def test_doubtful_files_warn_and_are_refused_when_strict(old, new, words):
    text = TWO_LINKS.replace(old, new, 1)
    if old == "<inertial>":
        text = text.replace("</inertial>", "</inertail>", 1)
    with pytest.warns(RobotWarning, match=words):
        read(text)
    with pytest.raises(RobotError, match=words):
        read(text, strict=True)


def test_caps_on_size_depth_and_count(monkeypatch):
    refused("<robot>" + "<a>" * 40 + "</a>" * 40 + "</robot>", 1, "nested more than 32 deep")
    from mcplan.robot import xml_reader

    monkeypatch.setattr(xml_reader, "MAX_ELEMENTS", 50)
    refused("<robot>" + "<a/>" * 60 + "</robot>", 1, "more than 50 elements")
    monkeypatch.setattr(xml_reader, "MAX_BYTES", 100)
    refused(TWO_LINKS, 1, "at most 100 are read")


def test_an_inertial_without_mass_is_that_of_a_frame():
    inertial = '<inertial><mass value="0"/><inertia ixx="{}" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial>'
    link = f'<robot><link name="tip">{inertial}</link></robot>'
    assert read(link.format(0)).links["tip"].inertia is None
    with pytest.warns(RobotWarning, match="tip: inertia without mass"):
        model = read(link.format(1))
    assert model.links["tip"].inertia is None


def test_a_chain_of_thousands_of_links_needs_no_stack():
    links = "".join(f'<link name="l{i}"/>' for i in range(3000))
    joints = "".join(
        f'<joint name="j{i}" type="fixed"><parent link="l{i}"/><child link="l{i + 1}"/></joint>' for i in range(2999)
    )
    assert len(read(f"<robot>{links}{joints}</robot>").links) == 3000


def test_no_mechanism_that_cannot_be_solved(tmp_path):
    """A joint that moves no mass has no acceleration and is locked; a robot without mass has none at all."""
    path = tmp_path / "two.urdf"
    inertial = re.search(r"    <inertial>.*1.*</inertial>\n", TWO_LINKS[TWO_LINKS.index('"arm">') :]).group()
    path.write_text(TWO_LINKS.replace(inertial, ""))
    with pytest.raises(RobotError, match=r"two.urdf:6: hinge: nothing that it moves has inertia"):
        load_robot(path, strict=True)
    with pytest.warns(RobotWarning, match="joints that move nothing with inertia are locked: hinge = 0"):
        assert dict(load_robot(path).locked) == {"hinge": 0.0}
    path.write_text(re.sub("<inertial>.*</inertial>", "", TWO_LINKS))
    with pytest.raises(RobotError, match="no link has mass"):
        load_robot(path)
    # a massless base is no better: the hinge turns it freely
    path.write_text(re.sub("<inertial>.*</inertial>", "", TWO_LINKS, count=1))
    with pytest.warns(RobotWarning, match="locked: hinge = 0"):
        assert load_robot(path).n == 0


def test_missing_and_unreadable_files_are_named(tmp_path):
    for path in (tmp_path / "absent.urdf", tmp_path, Path("nul\0.urdf")):
        with pytest.raises(RobotError, match="cannot be read"):
            load_robot(path)
    with pytest.raises(RobotError, match=r"no robot is called 'hrp3'.*did you mean `hrp2`"):
        load_robot("hrp3")


def test_two_hundred_beginnings_of_a_robot_are_refused():
    """Any prefix that cuts something off is refused with a line; tolerant readers make a lighter robot of it."""
    data = HRP2.read_bytes().rstrip()
    for size in np.linspace(0, len(data) - 1, 200).astype(int):
        with pytest.raises(RobotError) as caught:
            parse_urdf(data[:size], HRP2)
        assert all(problem.line >= 1 and problem.file == str(HRP2) for problem in caught.value.problems)


def test_hrp2_reads_as_yourdfpy_reads_it():
    ours = parse_urdf(HRP2.read_bytes(), HRP2, strict=True)
    theirs = yourdfpy.URDF.load(str(HRP2), load_meshes=False, build_scene_graph=True).robot
    assert set(ours.links) == {link.name for link in theirs.links}
    for link in theirs.links:
        inertia = ours.links[link.name].inertia
        assert inertia.mass == link.inertial.mass
        np.testing.assert_allclose(inertia.com, link.inertial.origin[:3, 3])
        np.testing.assert_allclose(inertia.matrix, link.inertial.inertia)
        roles = [geometry.role for geometry in ours.links[link.name].geometry]
        assert roles == ["visual"] * len(link.visuals) + ["collision"] * len(link.collisions)
        for mine, other in zip(ours.links[link.name].geometry, [*link.visuals, *link.collisions], strict=True):
            X = np.eye(4) if other.origin is None else other.origin
            np.testing.assert_allclose(mine.R, X[:3, :3], atol=1e-12)
            np.testing.assert_allclose(mine.p, X[:3, 3])
    assert [joint.name for joint in theirs.joints] == list(ours.joints)
    for joint in theirs.joints:
        mine = ours.joints[joint.name]
        assert (mine.parent, mine.child, mine.type) == (joint.parent, joint.child, joint.type)
        np.testing.assert_allclose(mine.p, np.zeros(3) if joint.origin is None else joint.origin[:3, 3])
        np.testing.assert_allclose(mine.axis, joint.axis)
        limit = joint.limit
        assert (mine.lower, mine.upper, mine.effort) == (limit.lower, limit.upper, limit.effort)
        assert mine.velocity == limit.velocity


@pytest.fixture(scope="module")
def mutant_path(tmp_path_factory):
    return tmp_path_factory.mktemp("mutants") / "mutant.urdf"


def settles(data, path):
    """Anything but a RobotError or success (with warnings) is a defect."""
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobotWarning)
        problems = []
        try:
            load_robot(path)
        except RobotError as error:
            problems = error.problems or [None]
    assert all(problem.line is not None for problem in problems)


GRIPPER_XML = TWO_LINKS.replace("</robot>", THIRD.format('<mimic joint="hinge" multiplier="2" offset="0.1"/>')).encode()
TOKENS = [
    b"-",
    b"1e308",
    b"nan",
    b'"',
    b"<",
    b">",
    b"/>",
    b"&",
    b"\0",
    b"\xff",
    b"<!--",
    b"]]>",
    b"link",
    b"${x}",
    b" ",
]
TOKENS += [b'name="arm"', b"<origin/>", b"</joint>", b"<inertial/>", b'"1 2 3"', b"999999999999999999999999"]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.data())
def test_mutated_bytes_never_surprise(mutant_path, data):
    mutant = bytearray(GRIPPER_XML)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(mutant)))
        stop = min(len(mutant), start + data.draw(st.integers(0, 30)))
        mutant[start:stop] = data.draw(st.sampled_from(TOKENS) | st.binary(max_size=6))
    settles(bytes(mutant), mutant_path)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.data())
def test_mutated_values_never_surprise(mutant_path, data):
    """Well-formed files with strange values in one or two attributes, which reach the checks behind the XML."""
    places = list(re.finditer(rb'"[^"]*"', GRIPPER_XML))
    words = [
        "0",
        "-1",
        "1e308",
        "-1e308",
        "1e-308",
        "nan",
        "base",
        "arm",
        "tip",
        "",
        "0 0 0",
        "1 1 1e300",
        "a b c",
        "é",
    ]
    chosen = data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=3, unique_by=lambda m: m.start()))
    mutant = GRIPPER_XML
    for place in sorted(chosen, key=lambda m: -m.start()):
        text = data.draw(st.sampled_from(words) | st.floats().map(repr) | st.text(alphabet="ab0. -", max_size=8))
        mutant = mutant[: place.start()] + b'"' + text.encode() + b'"' + mutant[place.end() :]
    settles(mutant, mutant_path)


def test_warnings_point_at_the_caller(tmp_path):
    path = tmp_path / "two.urdf"
    path.write_text(TWO_LINKS.replace('izz="0.1"', 'izz="0.5"', 1))
    with pytest.warns(RobotWarning) as caught:
        load_robot(path)
    assert [warning.filename for warning in caught] == [__file__]


def test_doubts_of_one_kind_are_one_warning_that_names_them_all():
    text = TWO_LINKS.replace('ixx="0.1" iyy="0.1" izz="0.1"', 'ixx="0" iyy="0" izz="0"')
    with pytest.warns(RobotWarning) as said:
        read(text.replace('effort="3"', 'effort="0"'))
    assert len(said) == 2
    assert sum("base: inertia is not positive definite" in str(w.message) for w in said) == 1
    assert sum("(and 1 more like it: arm)" in str(w.message) for w in said) == 1


def test_an_inertia_is_given_in_the_axes_of_its_origin_and_an_axis_has_unit_length():
    turned = (
        '<inertial><origin xyz="0.1 0 0" rpy="0.3 -0.4 0.5"/><mass value="2"/><inertia ixx="0.1" iyy="0.2" izz="0.25"'
    )
    text = TWO_LINKS.replace('<inertial><mass value="2"/><inertia ixx="0.1" iyy="0.1" izz="0.1"', turned)
    model = read(text.replace('<axis xyz="0 1 0"/>', '<axis xyz="0 3 4"/>'))
    R = Rotation.from_euler("xyz", [0.3, -0.4, 0.5]).as_matrix()
    np.testing.assert_allclose(model.links["base"].inertia.matrix, R @ np.diag([0.1, 0.2, 0.25]) @ R.T, atol=1e-12)
    np.testing.assert_allclose(model.joints["hinge"].axis, [0.0, 0.6, 0.8])


GERMAN = TWO_LINKS.replace("hinge", "h\xe4nge")


@pytest.mark.parametrize(
    ("data", "line", "words"),
    [
        (GERMAN.encode("latin-1"), 6, "invalid token"),
        (f'<?xml version="1.0" encoding="latin-1"?>{GERMAN}'.encode("latin-1"), 6, "byte 0xe4 is not UTF-8 text: save"),
        (f'<?xml version="1.0" encoding="ISO-8859-1"?>{GERMAN}'.encode(), 1, "'ISO-8859-1' is declared"),
        (TWO_LINKS.encode("utf-16"), 1, "not UTF-8"),
    ],
)
def test_a_file_that_is_not_utf_8_is_refused(data, line, words):
    with pytest.raises(RobotError, match=words) as caught:
        parse_urdf(data, Path("two.urdf"))
    assert caught.value.problems[0].line == line


@pytest.mark.parametrize("encoding", ["utf-8", "UTF-8", "US-ASCII", "ISO-8859-1"])
def test_text_that_is_the_same_in_utf_8_may_declare_anything(encoding):
    assert read(f'<?xml version="1.0" encoding="{encoding}"?>' + TWO_LINKS, strict=True).root == "base"


def test_damping_and_friction_of_a_joint_that_follows_are_felt_where_it_is_led():
    """``tip = 3 second``, ``second = -2 hinge + 0.1``: of equal power are ``d k²`` and ``f |k|``."""
    follows = '<mimic joint="{}" multiplier="{}" offset="0.1"/><dynamics damping="{}" friction="{}"/>'
    text = TWO_LINKS.replace('effort="3"/>', 'effort="3"/><dynamics damping="0.5" friction="0.25"/>')
    text = text.replace("</robot>", THIRD.format(follows.format("hinge", -2, 0.1, 0.2)))
    last = '<joint name="third" type="continuous"><parent link="tip"/><child link="end"/>{}</joint><link name="end"/>'
    text = text.replace("</robot>", last.format(follows.format("second", 3, 0.01, 0.02)) + "</robot>")
    joints = read(text, strict=True).joints
    assert joints["hinge"].damping == pytest.approx(0.5 + 4 * 0.1 + 36 * 0.01)
    assert joints["hinge"].friction == pytest.approx(0.25 + 2 * 0.2 + 6 * 0.02)
    assert [(joints[name].damping, joints[name].friction) for name in ("second", "third")] == [(0.0, 0.0)] * 2


@pytest.mark.parametrize(
    ("soft", "doubtful"),
    [
        ('soft_lower_limit="-0.9" soft_upper_limit="1"', True),
        ('soft_upper_limit="0.5"', True),
        ('soft_lower_limit="" soft_upper_limit="inf"', True),
        ('soft_lower_limit="-1" soft_upper_limit="1" k_velocity="10"', False),
        ('k_velocity="10"', False),
    ],
)
def test_soft_limits_that_are_narrower_are_a_doubt(soft, doubtful):
    text = TWO_LINKS.replace('effort="3"/>', f'effort="3"/>\n<safety_controller {soft}/>')
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert read(text).joints["hinge"].lower == -1
    said = [str(each.message) for each in caught]
    assert len(said) == doubtful
    assert all("two.urdf:9: hinge: soft limits" in each and "<safety_controller> are not read" in each for each in said)
