"""Robots with a fixed base: how they are said to be, what they are, and what stands in their way."""

import numpy as np
import pytest

import mcplan as mc
from mcplan.errors import RobotError, ScenarioError
from mcplan.robot.description import RobotWarning

ARM = mc.load_robot("arm7")
URDF = ARM.urdf_path.read_text()


def rooted_in_world():
    joint = '<link name="world"/><joint name="stand" type="fixed"><parent link="world"/><child link="base"/>'
    return URDF.replace('<link name="base">', joint + '<origin xyz="0 0 0.5"/></joint><link name="base">', 1)


def test_its_base_stands_still_and_bears_what_the_joints_leave():
    random = np.random.default_rng(0)
    for _ in range(5):
        q, v = ARM.random_configuration(random), np.concatenate([np.zeros(6), random.normal(size=7)])
        tau = random.normal(size=7) * 10
        vd = ARM.forward_dynamics(q, v, tau)
        np.testing.assert_array_equal(vd[:6], 0.0)
        np.testing.assert_allclose(ARM.inverse_dynamics(q, v, vd)[6:], tau, atol=1e-9)
    many = ARM.forward_dynamics(np.tile(q, (3, 1)), np.tile(v, (3, 1)), np.tile(tau, (3, 1)))
    np.testing.assert_allclose(many, np.tile(vd, (3, 1)), atol=1e-12)


@pytest.mark.parametrize(
    ("tau", "text"),
    [
        (np.zeros(ARM.n + 1), r"tau has the shape \(8,\); expected"),
        (np.zeros(1), r"tau has the shape \(1,\); expected"),
        (np.full(ARM.n, np.nan), r"tau\[6\] = nan is not finite"),
        (np.zeros((2, ARM.n)), "the leading axes differ"),
    ],
)
def test_torques_that_are_not_those_of_its_joints_are_refused(tau, text):
    q, v = np.tile(ARM.neutral(), (3, 1)), np.zeros((3, ARM.nv))
    with pytest.raises(mc.InputError, match=text):
        ARM.forward_dynamics(q, v, tau)


def test_at_rest_the_base_bears_the_weight():
    plan = mc.plan(mc.Scenario(ARM, mc.Environment([]), posture="ready"))
    h = ARM.nonlinear_effects(plan.stances[0].q, np.zeros(ARM.nv))
    np.testing.assert_allclose(plan.stances[0].wrenches["fixed_base"], h[:6], atol=1e-6)
    np.testing.assert_allclose(plan.stances[0].tau, h[6:], atol=1e-6)
    assert mc.verify(plan).success


def test_a_urdf_that_is_rooted_in_a_link_world_is_fixed(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(rooted_in_world())
    robot = mc.load_robot(path)
    assert robot.fixed
    assert "fixed base" in repr(robot)
    np.testing.assert_allclose(robot.frame_pose(robot.neutral(), "base")[2, 3], 0.5)
    path.write_text(URDF)
    assert not mc.load_robot(path).fixed
    (tmp_path / "robot.yaml").write_text("mcplan: 1\nurdf: arm.urdf\nfixed_base: true\n")
    assert mc.load_robot(tmp_path / "robot.yaml").fixed
    path.write_text(rooted_in_world())
    (tmp_path / "robot.yaml").write_text("mcplan: 1\nurdf: arm.urdf\nfixed_base: false\n")
    assert not mc.load_robot(tmp_path / "robot.yaml").fixed


@pytest.mark.parametrize(
    "lines",
    [
        "forward: y\n",
        "base: base\n",
        "base: base\nforward: y\n",
        "base: link3\nlocked: {joint1: 0, joint2: 0, joint3: 0}\n",
    ],
)
def test_it_is_fixed_whichever_of_the_links_that_stand_still_is_its_base_and_however_that_is_turned(tmp_path, lines):
    (tmp_path / "arm.urdf").write_text(rooted_in_world())
    (tmp_path / "robot.yaml").write_text("mcplan: 1\nurdf: arm.urdf\n" + lines)
    robot = mc.load_robot(tmp_path / "robot.yaml")
    assert robot.fixed
    np.testing.assert_array_equal(robot.frame_pose(robot.neutral(), "fixed_base"), np.eye(4))
    (tmp_path / "robot.yaml").write_text("mcplan: 1\nurdf: arm.urdf\nfixed_base: false\n" + lines)
    assert not mc.load_robot(tmp_path / "robot.yaml").fixed


def test_a_base_that_moves_against_the_world_is_said_to_be_fixed_or_not(tmp_path):
    (tmp_path / "arm.urdf").write_text(rooted_in_world())
    text = "mcplan: 1\nurdf: arm.urdf\nbase: link3\n"
    (tmp_path / "robot.yaml").write_text(text)
    with pytest.raises(RobotError, match=r"robot.yaml:3: base: .*moves against 'world'.*`fixed_base: true`"):
        mc.load_robot(tmp_path / "robot.yaml")
    for said in (True, False):
        (tmp_path / "robot.yaml").write_text(f"{text}fixed_base: {said}\n")
        assert mc.load_robot(tmp_path / "robot.yaml").fixed == said


def test_what_holds_it_has_a_limit_that_the_certificate_judges(tmp_path):
    (tmp_path / "arm.urdf").write_text(URDF)
    (tmp_path / "robot.yaml").write_text(
        "mcplan: 1\nurdf: arm.urdf\nfixed_base: {max_force: 100, max_moment: 50}\npostures: {up: {}}\n"
    )
    weak = mc.load_robot(tmp_path / "robot.yaml")
    with pytest.raises(mc.PlanningFailed):  # it weighs 214 N
        mc.plan(mc.Scenario(weak, mc.Environment([]), posture="up"))


def test_in_mujoco_a_fixed_base_with_a_grip_on_a_bar_is_refused_before_it_moves(tmp_path):
    (tmp_path / "arm.urdf").write_text(URDF)
    (tmp_path / "robot.yaml").write_text(
        "mcplan: 1\nurdf: arm.urdf\nfixed_base: true\npatches:\n"
        "  grip: {link: link7, kind: grasp, max_force: 100, max_moment: 10}\n"
    )
    robot, bar = mc.load_robot(tmp_path / "robot.yaml"), mc.Bar("rail", ends=[(0.5, -1, 1), (0.5, 1, 1)], radius=0.02)
    grasp = mc.contact(robot, "grip", bar, along=1.0, angle=0.0)
    scenario = mc.Scenario(robot, mc.Environment([bar]), [grasp])
    with pytest.raises(mc.InputError, match="has a fixed base and grasps; use the physics contact"):
        mc.make_physics(scenario, "mujoco")
    assert mc.make_physics(scenario, "contact").q.shape == (robot.nq,)


def test_a_patch_of_its_name_is_refused(tmp_path):
    (tmp_path / "arm.urdf").write_text(URDF)
    (tmp_path / "robot.yaml").write_text(
        "mcplan: 1\nurdf: arm.urdf\nfixed_base: true\npatches:\n  fixed_base: {link: link7, kind: point}\n"
    )
    with pytest.raises(RobotError, match="'fixed_base'; rename your own"):
        mc.load_robot(tmp_path / "robot.yaml")


def test_nothing_is_sought_for_it_and_its_base_is_not_removed():
    floor = mc.Surface("floor", size=(2, 2))
    with pytest.raises(ScenarioError, match="whose base is fixed"):
        mc.plan(mc.Scenario(ARM, mc.Environment([floor]), goal={"base": {"xyz": [1, 0, 0]}}, posture="ready"))
    with pytest.raises(ScenarioError, match="`fixed_base` cannot be removed"):
        mc.Scenario(ARM, mc.Environment([floor]), posture="ready", stances=[{"contacts": []}, {"remove": "fixed_base"}])


def test_it_stands_where_its_base_or_its_contact_says():
    stand = {"patch": "fixed_base", "surface": "world", "pose": {"xyz": [0.5, 0.0, 0.2], "rpy": [0.0, 0.0, 1.0]}}
    scenario = mc.Scenario(ARM, mc.Environment([]), [stand], posture="ready")
    np.testing.assert_allclose(scenario.start.q[:3], [0.5, 0.0, 0.2])
    again = scenario.replace(start=scenario.start.contacts)
    np.testing.assert_allclose(again.start.q, scenario.start.q, atol=1e-12)
    q = ARM.posture("ready")
    with pytest.raises(ScenarioError, match=r"is not where start.base has the base"):
        mc.Scenario(ARM, mc.Environment([]), [stand], posture=q)


def test_a_plan_of_it_is_written_and_read_again(tmp_path):
    floor = mc.Surface("floor", size=(2, 2))
    q = ARM.posture("ready")
    q[:3] = 0.3, -0.2, 0.1
    q[3:7] = np.cos(0.4), 0.0, 0.0, np.sin(0.4)
    plan = mc.plan(mc.Scenario(ARM, mc.Environment([floor]), posture=q))
    mc.save_plan(plan, tmp_path / "arm.plan.yaml")
    again = mc.load_plan(tmp_path / "arm.plan.yaml")
    assert again.stances[0].patches == ("fixed_base",)
    np.testing.assert_allclose(again.stances[0].contacts[0].p, q[:3], atol=1e-12)
    assert mc.verify(again).success
    moved = plan.stances[0]
    shifted = moved.contacts[0].at(moved.contacts[0].R, moved.contacts[0].p + 0.01)
    forged = type(plan)(plan.scenario, (type(moved)(**{**vars(moved), "contacts": (shifted,)}),))
    report = mc.verify(forged)
    assert not report.success
    assert any("off the base of the start" in failure for failure in report.failures)


@pytest.mark.parametrize("physics", ["qp", "contact", "mujoco"])
def test_it_reaches_a_wall_with_the_whole_body_program(physics):
    floor = mc.Surface("floor", size=(4, 4))
    wall = mc.Surface("wall", xyz=(0.5, 0, 0.9), rpy=(0, -np.pi / 2, 0), size=(1, 1), friction=0.5)
    touch = {"patch": "tip", "surface": "wall", "x": 0.0, "y": 0.0}
    stances = [{"contacts": []}, {"add": touch}]
    plan = mc.plan(mc.Scenario(ARM, mc.Environment([floor, wall]), posture="ready", stances=stances))
    run = mc.simulate(plan, physics=physics)
    report = mc.verify(run)
    assert report.success, report.failures
    assert run.wrench[:, run.patches.index("tip")].any()


@pytest.mark.parametrize("kind", ["continuous", "prismatic"])
@pytest.mark.parametrize("root", ["world", "base_link"])
def test_a_joint_on_a_base_without_mass_moves_where_the_base_is_held(tmp_path, root, kind):
    """Two links that turn and slide in a plane, on a root of which the file says no more than its name."""
    inertial = '<inertial><origin xyz="0 0 -0.5"/><mass value="2"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ' \
               'ixz="0" iyz="0"/></inertial>'  # fmt: skip
    joint = '<joint name="{}" type="{}"><parent link="{}"/><child link="{}"/><origin xyz="0 0 {}"/>' \
            '<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="9" velocity="9"/></joint>'  # fmt: skip
    (tmp_path / "two.urdf").write_text(
        f'<robot name="two"><link name="{root}"/><link name="a">{inertial}</link><link name="b">{inertial}</link>'
        f"{joint.format('first', kind, root, 'a', 0)}{joint.format('second', 'revolute', 'a', 'b', -1)}</robot>"
    )
    (tmp_path / "robot.yaml").write_text("mcplan: 1\nurdf: two.urdf\nfixed_base: true\n")
    robot = mc.load_robot(tmp_path / "robot.yaml")
    assert robot.joint_names == ("first", "second")
    q, v = np.append(robot.neutral()[:7], [0.3, 0.5]), np.append(np.zeros(6), [0.7, -0.2])
    for method in ("projected", "newton-euler", "lagrange"):
        found = mc.equations_of_motion(robot, q, v, method)
        np.testing.assert_allclose(found.M, robot.mass_matrix(q), atol=1e-8)
        vd = np.linalg.solve(found.M[6:, 6:], -(found.b + found.g)[6:])
        np.testing.assert_allclose(robot.forward_dynamics(q, v, np.zeros(2))[6:], vd, rtol=1e-6, atol=1e-6)
    h = robot.nonlinear_effects(q, np.zeros(8))
    np.testing.assert_allclose(h[:3], [0.0, 0.0, 4 * 9.81], atol=1e-12)  # the base weighs nothing
    I_C = mc.coordinates.locked_inertia(robot, q)
    np.testing.assert_allclose(I_C[:3, :3], 4.0 * np.eye(3), atol=1e-9)
    of_com = mc.coordinates.to_com(robot, q, v).velocity(v)[:3]
    np.testing.assert_allclose(of_com, robot.com_jacobian(q) @ v, atol=1e-9)
    held = mc.coordinates.fixed_base(robot, q, v[6:], root)
    np.testing.assert_allclose(held.acceleration(np.zeros(2)), vd, rtol=1e-6, atol=1e-6)
    for free in (lambda: mc.coordinates.Lagrangian(robot), lambda: mc.coordinates.fixed_base(robot, q, v[6:], "b")):
        with pytest.raises(mc.InputError, match=f"two: the root link '{root}' has no mass: its free motion"):
            free()
    (tmp_path / "robot.yaml").write_text("mcplan: 1\nurdf: two.urdf\nfixed_base: false\n")
    with pytest.warns(RobotWarning, match="move nothing with inertia are locked: first = 0"):
        assert mc.load_robot(tmp_path / "robot.yaml").joint_names == ("second",)
