"""SRDF: pairs that never collide, named postures, and where the file is looked for."""

import re

import numpy as np
import pytest

from mcplan.errors import RobotError
from mcplan.robot.description import RobotWarning
from mcplan.robot.robot_check import findings
from mcplan.robot.robot_file import load_robot

INERTIA = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
URDF = f'<robot name="arm"><link name="base"><inertial><mass value="2"/>{INERTIA}</inertial></link>{{}}</robot>'


def chain(count):
    parts = []
    for k in range(count):
        parent = "base" if k == 0 else f"l{k - 1}"
        parts.append(
            f'<joint name="j{k}" type="revolute"><parent link="{parent}"/><child link="l{k}"/><origin xyz="0 0 0.3"/>'
            f'<axis xyz="0 1 0"/><limit lower="0.1" upper="1" velocity="1" effort="1"/></joint>'
            f'<link name="l{k}"><inertial><mass value="1"/>'
            '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        )
    return URDF.format("".join(parts))


SRDF = """<robot name="arm">
  <group_state name="ready" group="all">
    <joint name="root" value="0.5 0 0.9 0 0 0.70710678 0.70710678"/>
    <joint name="j0" value="0.4"/><joint name="j1" value="7"/>
  </group_state>
  <group_state name="ready" group="rest"><joint name="j2" value="0.5403023 0.84147098"/></group_state>
  <disable_collisions link1="l0" link2="l2" reason="Never"/>
  <disable_collisions link1="l0" link2="of_another_urdf" reason="Never"/>
</robot>"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "urdf").mkdir()
    (tmp_path / "srdf").mkdir()
    (tmp_path / "urdf" / "arm.urdf").write_text(chain(3))
    return tmp_path


def check(robot):
    q = robot.posture("ready")
    np.testing.assert_allclose(q[:3], [0.5, 0, 0.9])
    np.testing.assert_allclose(robot.frame_pose(q, "base")[:3, 0], [0, 1, 0], atol=1e-7)
    np.testing.assert_allclose(q[7:], [0.4, 1.0, 1.0], atol=1e-7)  # in its limits, and by cosine and sine
    assert robot.collision_ignore == {frozenset({"l0", "l2"})}


@pytest.mark.parametrize("place", ["urdf/arm.srdf", "srdf/arm.srdf", "srdf/other.srdf"])
def test_an_srdf_beside_the_urdf_is_read(folder, place):
    (folder / place).write_text(SRDF)
    robot = load_robot(folder / "urdf" / "arm.urdf")
    check(robot)
    (folder / place).write_text(SRDF.replace("0.4", "0.5"))
    assert load_robot(folder / "urdf" / "arm.urdf").digest != robot.digest


def test_that_of_another_robot_is_not(folder):
    (folder / "srdf" / "other.srdf").write_text(SRDF.replace('"arm"', '"leg"'))
    assert load_robot(folder / "urdf" / "arm.urdf").postures == ()


def test_a_robot_file_names_it_and_its_own_postures_come_first(folder):
    (folder / "named.srdf").write_text(SRDF)
    text = "mcplan: 1\nurdf: urdf/arm.urdf\nsrdf: named.srdf\n"
    (folder / "robot.yaml").write_text(text)
    check(load_robot(folder / "robot.yaml"))
    own = "postures: {ready: {joints: {j0: 0.7, j1: 0.2, j2: 0.2}}}\n"
    (folder / "robot.yaml").write_text(text + own)
    assert load_robot(folder / "robot.yaml").posture("ready")[7] == 0.7
    (folder / "robot.yaml").write_text("mcplan: 1\nurdf: urdf/arm.urdf\nsrdf: absent.srdf\n")
    with pytest.raises(RobotError, match=r"robot.yaml:3: srdf: there is no file"):
        load_robot(folder / "robot.yaml")


def test_a_broken_one_is_a_doubt_beside_the_urdf_and_a_mistake_where_it_is_named(folder):
    (folder / "urdf" / "arm.srdf").write_text(SRDF.replace('value="0.4"', 'value="bent"'))
    with pytest.warns(RobotWarning, match=r"arm.srdf:4: ready: value='bent' is not finite numbers"):
        assert load_robot(folder / "urdf" / "arm.urdf").postures == ()
    (folder / "robot.yaml").write_text("mcplan: 1\nurdf: urdf/arm.urdf\nsrdf: urdf/arm.srdf\n")
    with pytest.raises(RobotError, match="value='bent'"):
        load_robot(folder / "robot.yaml")


def test_a_base_with_other_axes_is_the_same_mechanism_turned(folder):
    """What is at a place of the root link stays there; energy and torques do not ask for the base's axes."""
    (folder / "urdf" / "arm.srdf").write_text(SRDF)
    (folder / "robot.yaml").write_text("mcplan: 1\nurdf: urdf/arm.urdf\nforward: -z\nup: y\n")
    plain, turned = load_robot(folder / "urdf" / "arm.urdf"), load_robot(folder / "robot.yaml")
    for link in plain.link_names:
        np.testing.assert_allclose(
            turned.frame_pose(turned.posture("ready"), link), plain.frame_pose(plain.posture("ready"), link), atol=1e-7
        )
    X = turned.frame_pose(turned.neutral(), "base")
    np.testing.assert_allclose(X[:3, :3] @ [0, 0, -1], [1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(X[:3, :3] @ [0, 1, 0], [0, 0, 1], atol=1e-12)
    q0, q1 = plain.posture("ready"), turned.posture("ready")
    np.testing.assert_allclose(turned.mass_matrix(q1)[6:, 6:], plain.mass_matrix(q0)[6:, 6:], atol=1e-7)
    np.testing.assert_allclose(
        turned.nonlinear_effects(q1, np.zeros(9)), plain.nonlinear_effects(q0, np.zeros(9)), atol=1e-6
    )


@pytest.mark.parametrize(
    "lines", ["base: l0\n", "base: l2\n", "base: l1\nforward: -z\nup: y\n", "base: l2\nlocked: {j1: 0.7}\n"]
)
def test_the_pose_that_it_gives_is_that_of_the_root_whichever_link_is_the_base(folder, lines):
    """Of a joint that is locked its position counts, not that of the state."""
    (folder / "urdf" / "arm.srdf").write_text(SRDF)
    robots = []
    for name, line in (("plain", "locked: {j1: 0.7}\n" if "locked" in lines else ""), ("rerooted", lines)):
        (folder / f"{name}.yaml").write_text(f"mcplan: 1\nurdf: urdf/arm.urdf\n{line}")
        robots.append(load_robot(folder / f"{name}.yaml"))
    plain, rerooted = robots
    q, q_new = plain.posture("ready"), rerooted.posture("ready")
    assert np.abs(q_new[:7] - q[:7]).max() > 0.1
    for link in plain.link_names:
        np.testing.assert_allclose(rerooted.frame_pose(q_new, link), plain.frame_pose(q, link), atol=1e-7)


@pytest.mark.parametrize("axes", ["forward: z\nup: z\n", "forward: x\nup: -x\n"])
def test_forward_and_up_differ(folder, axes):
    (folder / "robot.yaml").write_text(f"mcplan: 1\nurdf: urdf/arm.urdf\n{axes}")
    with pytest.raises(RobotError, match=r"robot.yaml:3: forward: .* are along one axis"):
        load_robot(folder / "robot.yaml")


ROTORS = """<robot name="arm"><rotor_params>
  <joint name="j0" mass="1e-5" gear_ratio="100."/><joint name="j1" mass="{}" gear_ratio="0"/>
  <joint name="of_another_urdf" mass="1" gear_ratio="1"/>
</rotor_params></robot>"""


def test_rotors_are_felt_by_the_square_of_their_gear_ratio(folder):
    (folder / "urdf" / "arm.srdf").write_text(ROTORS.format(0.5))
    plain, q = load_robot(folder / "urdf" / "arm.urdf"), np.array([0, 0, 0, 1, 0, 0, 0, 0.3, 0.4, 0.5])
    np.testing.assert_allclose(plain.armature, [0.1, 0.0, 0.0])
    (folder / "urdf" / "arm.yaml").write_text("mcplan: 1\nurdf: arm.urdf\narmature: {j0: 0.7, j2: 0.2}\n")
    own = load_robot(folder / "urdf" / "arm.yaml")
    np.testing.assert_allclose(own.armature, [0.7, 0.0, 0.2])  # what a robot.yaml says goes first
    change = own.mass_matrix(q) - plain.mass_matrix(q)
    np.testing.assert_allclose(change, np.diag([0.0] * 6 + [0.6, 0.0, 0.2]), atol=1e-12)


def test_a_rotor_with_a_negative_inertia_is_a_mistake(folder):
    (folder / "urdf" / "arm.yaml").write_text("mcplan: 1\nurdf: arm.urdf\nsrdf: arm.srdf\n")
    (folder / "urdf" / "arm.srdf").write_text(ROTORS.format(-0.5))
    with pytest.raises(RobotError, match=r"arm\.srdf:2: rotor_params: j1: mass=-0\.5"):
        load_robot(folder / "urdf" / "arm.yaml")


def test_the_rotor_of_a_joint_that_follows_is_felt_where_it_is_led(folder):
    urdf = folder / "urdf" / "arm.urdf"
    limit = '<limit lower="0.1" upper="1" velocity="1" effort="1"/>'
    head, _, rest = urdf.read_text().partition('name="j2"')
    urdf.write_text(f'{head}name="j2"{rest.replace(limit, limit + chr(60) + MIMIC, 1)}')
    rotors = "".join(f'<joint name="j{k}" mass="{0.01 * (k + 1)}" gear_ratio="10"/>' for k in range(3))
    (folder / "urdf" / "arm.srdf").write_text(f'<robot name="arm"><rotor_params>{rotors}</rotor_params></robot>')
    robot = load_robot(urdf)
    assert robot.joint_names == ("j0", "j1")
    np.testing.assert_allclose(robot.armature, [1.0, 2.0 + 0.25 * 3.0])


MIMIC = 'mimic joint="j1" multiplier="-0.5" offset="0.7"/>'


def test_one_that_is_not_utf_8_is_a_doubt_beside_the_urdf(folder):
    text = '<?xml version="1.0" encoding="latin-1"?>' + SRDF.replace("Never", "Jamais \xe0 c\xf4t\xe9")
    (folder / "urdf" / "arm.srdf").write_bytes(text.encode("latin-1"))
    with pytest.warns(RobotWarning, match=r"arm\.srdf:7: byte 0xe0 is not UTF-8 text"):
        assert load_robot(folder / "urdf" / "arm.urdf").postures == ()


def test_postures_of_a_robot_file_are_checked_against_the_ground_and_those_of_the_srdf_are_not(folder):
    (folder / "urdf" / "arm.srdf").write_text(SRDF.replace('"0.5 0 0.9 ', '"0 0 -2 '))
    tip = "patches: {tip: {link: l2, kind: point}}\n"
    own = "postures: {mine: {base: {xyz: [0, 0, -2]}, joints: {j0: 0.1, j1: 0.1, j2: 0.1}}}\n"
    (folder / "robot.yaml").write_text(f"mcplan: 1\nurdf: urdf/arm.urdf\n{tip}{own}")
    robot = load_robot(folder / "robot.yaml")
    assert (set(robot.postures), robot.srdf_postures) == ({"ready", "mine"}, {"ready"})
    below = [finding for finding in findings(robot) if "below the ground" in finding]
    assert len(below) == 1
    assert below[0].startswith(f"{folder / 'robot.yaml'}:4: postures.mine: tip is ")


def test_what_is_doubtful_is_told_of_the_file_that_says_it(folder):
    """A posture of an SRDF is no line of the robot file, nor are limits of the URDF those of its `limits:`."""
    (folder / "urdf" / "arm.srdf").write_text(SRDF.replace('link1="l0" link2="l2"', 'link1="l1" link2="l2"'))
    ball = '<collision><geometry><sphere radius="0.28"/></geometry></collision>'
    text = re.sub('<link name="(l0|l2)">', rf"\g<0>{ball}", chain(3)).replace('effort="1"', 'effort="0"', 1)
    (folder / "urdf" / "arm.urdf").write_text(text)
    lines = "limits: {j1: {velocity: 0.5}}\npostures: {mine: {joints: {j0: 0.1, j1: 0.1, j2: 0.1}}}\n"
    (folder / "robot.yaml").write_text(f"mcplan: 1\nurdf: urdf/arm.urdf\n{lines}")
    with pytest.warns(RobotWarning, match="effort limit is 0"):
        found = findings(load_robot(folder / "robot.yaml"))
    assert [each for each in found if each.startswith(f"{folder / 'robot.yaml'}: limits.j0: the torque limit is 0")]
    srdf = folder / "urdf" / "arm.srdf"
    assert [each for each in found if each.startswith(f"{srdf}: group_state ready: l0 and l2 overlap")], found
