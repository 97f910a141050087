"""Robots that the defaults were not made for plan and execute their scenarios by torques alone."""

import numpy as np
import pytest

from mcplan.certificate.verify import verify
from mcplan.collision.pairs import always_touching, protruding_patches
from mcplan.planning.planner import plan
from mcplan.robot.robot_file import load_robot
from mcplan.scenario.load import load_scenario
from mcplan.scene.environment import Environment
from mcplan.sim.mujoco.physics import MujocoPhysics
from mcplan.sim.physics import Action
from mcplan.sim.simulate import simulate
from tests.sim.other_robots import humanoid, quadruped

FEET = ("fl", "fr", "hl", "hr")


def scenario(robot, surfaces, posture, start, goal):
    """Write a scenario beside a robot.yaml and load it."""
    path = robot.with_name("scenario.yaml")
    patches = ", ".join(sorted({patch for patch, _ in start} | {patch for patch, _ in goal}))

    def contacts(items):
        return "[" + ", ".join(f"{{patch: {patch}, {place}}}" for patch, place in items) + "]"

    path.write_text(
        f"mcplan: 1\nname: other\ndescription: another robot\nrobot: {robot.name}\n"
        f"environment: {{surfaces: [{', '.join(surfaces)}]}}\n"
        f"start: {{posture: {posture}, contacts: {contacts(start)}}}\n"
        f"goal: {{contacts: {contacts(goal)}}}\nplanner: {{patches: [{patches}]}}\n"
    )
    return load_scenario(path)


def up_two_steps(directory, scale):
    s, soles = scale, ("left_sole", "right_sole")
    surfaces = [
        f"{{name: floor, size: [{0.6 * s}, {s}], friction: 0.6}}",
        f"{{name: first, pose: {{xyz: [{0.45 * s}, 0, {0.08 * s}]}}, size: [{0.26 * s}, {s}], friction: 0.6}}",
        f"{{name: second, pose: {{xyz: [{0.9 * s}, 0, {0.16 * s}]}}, size: [{0.6 * s}, {s}], friction: 0.6}}",
    ]
    start = [(sole, "surface: floor") for sole in soles]
    return scenario(humanoid(directory, s), surfaces, "ready", start, [(sole, "surface: second") for sole in soles])


def hands_on_a_wall(directory, scale):
    s = scale
    wall = f"pose: {{xyz: [{0.42 * s}, 0, {0.8 * s}], rpy: [0, -1.5707963, 0]}}, size: [{0.8 * s}, {1.2 * s}]"
    surfaces = ["{name: floor, size: [2, 2], friction: 0.6}", f"{{name: wall, {wall}, friction: 0.6}}"]
    start = [(f"{side}_sole", "surface: floor") for side in ("left", "right")]
    goal = [*start, *((f"{side}_hand", "surface: wall") for side in ("left", "right"))]
    return scenario(humanoid(directory, s), surfaces, "ready", start, goal)


def up_a_step_on_four_feet(directory, scale):
    surfaces = [
        "{name: floor, size: [1, 1], friction: 0.6}",
        "{name: step, pose: {xyz: [1.0, 0, 0.08]}, size: [0.96, 1], friction: 0.6}",
    ]
    start = [(f"{leg}_foot", "surface: floor") for leg in FEET]
    return scenario(quadruped(directory), surfaces, "stand", start, [(f"{leg}_foot", "surface: step") for leg in FEET])


@pytest.mark.parametrize(
    ("make", "scale", "physics", "pace"),
    [
        pytest.param(up_two_steps, 1.5, "contact", "fast", marks=pytest.mark.slow),
        pytest.param(up_two_steps, 1.0, "mujoco", "fast", marks=pytest.mark.slow),
        pytest.param(hands_on_a_wall, 0.5, "contact", "slow", marks=pytest.mark.slow),
        (hands_on_a_wall, 1.0, "mujoco", "fast"),
        pytest.param(up_a_step_on_four_feet, 1.0, "mujoco", "fast", marks=pytest.mark.slow),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_another_robot_executes_its_plan(tmp_path, make, scale, physics, pace):
    make(tmp_path, scale)
    asked = load_scenario(tmp_path / "scenario.yaml", {"control.pace": pace})
    report = verify(simulate(plan(asked), physics=physics))
    assert report.success, report.text()


def test_links_that_overlap_in_every_posture_do_not_push_each_other_apart(tmp_path):
    robot = load_robot(humanoid(tmp_path))
    assert frozenset(("pelvis", "l_hip2")) in always_touching(robot)
    q = robot.posture("ready")
    q[2] += 1.0
    physics = MujocoPhysics(robot, Environment(), q, np.zeros(robot.nv))
    physics.step(Action(np.zeros(robot.n), np.zeros(robot.nv), {}, {}, ()), 1e-3)
    assert np.abs(physics.v).max() < 0.2  # what gravity does in a millisecond


def test_points_that_stand_out_from_their_link_bear_alone(tmp_path):
    assert protruding_patches(load_robot(humanoid(tmp_path))) == {"left_hand", "right_hand"}
    assert protruding_patches(load_robot(quadruped(tmp_path))) == set()
    assert protruding_patches(load_robot("hrp2")) == set()


ROUND_FOOT = """<robot name="r"><link name="shin"/><joint name="weld" type="fixed"><parent link="shin"/>
<child link="a"/><origin xyz="0.1 0 0.2" rpy="{}"/></joint><link name="a"><inertial><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
<collision><geometry><cylinder radius="0.05" length="0.04"/></geometry></collision></link></robot>"""


@pytest.mark.parametrize("turned", ["0 0 0", "0.4 -0.7 1.1"])
@pytest.mark.parametrize(
    ("half", "depth", "stands_out"), [(0.03, 0.02, set()), (0.03, 0.03, {"sole"}), (0.05, 0.02, set())]
)
def test_a_polygon_touches_with_its_foot_or_where_corners_are_off_a_rounded_one_with_its_plate(
    tmp_path, half, depth, stands_out, turned
):
    """However its link is fixed to the one above."""
    (tmp_path / "r.urdf").write_text(ROUND_FOOT.format(turned))
    (tmp_path / "r.yaml").write_text(
        "mcplan: 1\nname: r\nurdf: r.urdf\npatches:\n  sole:\n    link: a\n    limb: leg\n"
        f"    pose: {{xyz: [0, 0, {-depth}], quat_wxyz: [0, 1, 0, 0]}}\n"
        f"    polygon: [[{-half}, {-half}], [{half}, {-half}], [{half}, {half}], [{-half}, {half}]]\n"
    )
    robot = load_robot(tmp_path / "r.yaml")
    assert len(robot.geometry["a"]) == 1 + (half > 0.05 / np.sqrt(2))  # corners off the cylinder: a plate
    assert protruding_patches(robot) == stands_out


def test_point_feet_are_planned_inside_the_borders_of_their_surfaces(tmp_path):
    planned = plan(up_a_step_on_four_feet(tmp_path, 1.0))
    border = 1.0 - 0.48  # where the step begins
    places = [c.p[0] for stance in planned.stances for c in stance.contacts if c.support == "step"]
    assert len(places) >= 4
    assert min(places) >= border + 0.01 - 1e-6
