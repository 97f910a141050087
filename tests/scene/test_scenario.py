"""Scenario files: what a good one becomes, and what is said about a bad one."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mcplan.document.document import dump_document, read_document
from mcplan.errors import PlanningFailed, ScenarioError
from mcplan.planning.planner import plan
from mcplan.robot.description import Box, Capsule, MeshShape
from mcplan.scenario.load import check_file, find_scenario, load_scenario
from mcplan.scenario.schema import StanceItem
from mcplan.scene.placement import make_contact
from mcplan.scene.spec import PoseSpec
from mcplan.util.bundled import ROBOTS, bundled_scenarios

HEAD = """\
mcplan: 1
name: trial
robot: hrp2
environment:
  surfaces:
    - {name: floor, size: [4, 2], friction: 0.7}
"""
FEET = "  - {contacts: [{patch: left_sole, surface: floor}, {patch: right_sole, surface: floor}]}\n"


def write(tmp_path, text, name="trial.yaml"):
    path = tmp_path / name
    path.write_text(text)
    return path


def said(path):
    return [(problem.line, problem.key) for problem in check_file(path)]


def test_an_orientation_of_the_base_has_a_default_tolerance(tmp_path):
    goal = "goal: {base: {xyz: [0, 0, 0.65], rpy: [0, 0, 0.2]}}\n"
    base = load_scenario(write(tmp_path, HEAD + goal)).goal[0].base
    assert (base.tolerance, base.angle_tolerance) == (0.05, 0.1)


@pytest.mark.parametrize("name", ["sway", "single_support", "step", "table_hand"])
def test_bundled_scenarios_are_sound(name):
    assert check_file(name) == []
    scenario = load_scenario(name)
    assert scenario.name == name == find_scenario(name).stem
    assert {contact.patch for contact in scenario.start.contacts} == {"left_sole", "right_sole"}
    for contact in scenario.start.contacts:
        # the start is within what inverse kinematics may correct
        X = scenario.robot.frame_pose(scenario.start.q, contact.patch)
        assert np.linalg.norm(X[:3, 3] - contact.p) < 0.01
    assert scenario.stances[0].contacts is not None
    assert name in bundled_scenarios()


def test_everything_in_a_scenario(tmp_path):
    (tmp_path / "tetra.off").write_text("OFF\n4 4 6\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n3 0 2 1\n3 0 1 3\n3 1 2 3\n3 2 0 3\n")
    text = HEAD + """\
    - {name: ramp, pose: {xyz: [1, 0, 0], rpy: [0, -0.2, 0]}, polygon: [[0, 0], [0, 1], [1, 1], [1, 0]], thickness: 0}
  bars:
    - {name: rail, ends: [[0, 0.5, 0.9], [1, 0.5, 0.9]], radius: 0.02}
  obstacles:
    - {name: post, box: {size: [0.1, 0.1, 1]}, pose: {xyz: [2, 0, 0.5]}}
    - {name: pipe, capsule: {radius: 0.1, length: 1}}
    - {name: rock, mesh: {file: tetra.off, scale: 0.5}}
  objects:
    - {name: crate, box: {size: [0.8, 0.6, 1.0]}, mass: 20, pose: {xyz: [1, 0, 0.5], rpy: [0, 0, 1.5707963267948966]},
       friction: 0.4,
       surfaces: [{name: front, pose: {xyz: [-0.4, 0, 0], rpy: [0, -1.5707963267948966, 0]}, size: [1, 0.6]}]}
start:
  posture: {name: half_sitting, joints: {HEAD_JOINT0: 0.1}}
  base: {xyz: [0.3, 0, 0.65], rpy: [0, 0, 0.2]}
  contacts: [{patch: left_sole, surface: floor}, {patch: right_sole, surface: floor, yaw: 0}]
goal:
  - contacts: [{patch: left_grip, surface: rail}]
    base: {xyz: [1, 0, 0.6], tolerance: 0.1}
  - {posture: half_sitting, posture_tolerance: 0.1, objects: {crate: {xyz: [1.5, 0, 0.5]}}}
planner: {require: [left_hand, [right_hand, right_grip]]}
control: {solver: OSQP}
simulation: {dt: 2e-3}
stances:
""" + FEET + """\
  - {add: {patch: left_grip, surface: rail, along: 0.4, hinge: y, max_force: 100}}
  - {com: [0.1, 0]}
  - {remove: left_grip, posture: {joints: {HEAD_JOINT1: 0.2}}}
"""  # fmt: skip
    scenario = load_scenario(write(tmp_path, text))
    environment, robot = scenario.environment, scenario.robot
    assert np.allclose(environment.support("ramp").R @ [1, 0, 0], [np.cos(0.2), 0, np.sin(0.2)])
    post, pipe, rock = environment.obstacles
    assert post.shape == Box((0.1, 0.1, 1))
    assert pipe.shape == Capsule(0.1, 1)
    assert isinstance(rock.shape, MeshShape)
    assert rock.shape.vertices.max() == 0.5
    # a quarter turn to the left: the crate's -x face looks to the robot's right
    front = environment.support("front")
    assert front.owner == "crate"
    assert np.allclose(front.normal, [0, -1, 0])
    assert np.allclose(front.p, [1, -0.4, 0.5])
    q = scenario.start.q
    assert q[7 + robot.joint_names.index("HEAD_JOINT0")] == 0.1
    assert np.allclose(q[:7], [0.3, 0, 0.65, np.cos(0.1), 0, 0, np.sin(0.1)])
    left, right = scenario.start.contacts
    assert left.coordinates["yaw"] == pytest.approx(0.2)
    assert right.coordinates["yaw"] == 0
    assert len(scenario.goal) == 2
    assert scenario.goal[1].posture.name == "half_sitting"
    assert scenario.planner.require == ("left_hand", ("right_hand", "right_grip"))
    assert (scenario.control.solver, scenario.simulation.dt) == ("OSQP", 0.002)
    grasp = scenario.stances[1].add
    assert (grasp.hinge, grasp.max_force, grasp.given) == (("y",), 100, {"along": 0.4})
    changed = scenario.stances[3].posture.apply(robot, q)
    assert np.count_nonzero(changed != q) == 1
    there = scenario.goal[1].posture.apply(robot, changed)  # a posture is one of joints: the base stays where it is
    assert np.array_equal(there, [*q[:7], *robot.posture("half_sitting")[7:]])
    assert scenario.digest != load_scenario(scenario.path, {"simulation.dt": 0.001}).digest


def test_the_first_item_may_be_left_out_where_the_start_gives_the_contacts(tmp_path):
    start = "start: {contacts: [{patch: left_sole, surface: floor}, {patch: right_sole, surface: floor}]}\n"
    moves = "  - {com: [0.015, 0.04]}\n  - {com: [0.015, 0], posture: half_sitting}\n"
    scenario = load_scenario(write(tmp_path, HEAD + start + "stances:\n" + moves))
    assert scenario.stances[0] == StanceItem(contacts=scenario.stances[0].contacts)
    assert [item.com for item in scenario.stances[1:]] == [(0.015, 0.04), (0.015, 0.0)]
    full = load_scenario(write(tmp_path, HEAD + start + "stances:\n" + FEET + moves))
    assert (full.stances, full.digest) == (scenario.stances, scenario.digest)
    assert load_scenario(scenario.data()).stances == full.stances
    other = scenario.replace(start=[{"patch": "left_sole", "surface": "floor"}])
    assert [spec.patch for spec in other.stances[0].contacts] == ["left_sole"]
    assert other.stances[1:] == scenario.stances[1:]

    path = write(tmp_path, HEAD + start.replace("left_sole", "left_sol") + "stances:\n" + moves)
    assert [problem.key for problem in check_file(path)] == ["start.contacts[0].patch"]
    path = write(tmp_path, HEAD + start + "stances:\n" + moves + "  - {remove: left_hand}\n")
    (problem,) = check_file(path)  # in the file's own count, and line
    assert (problem.line, problem.key) == (HEAD.count("\n") + 5, "stances[2].remove")
    with pytest.raises(PlanningFailed, match=r"^stances\[0\]: .* outside the region"):
        plan(load_scenario(write(tmp_path, HEAD + start + "stances: [{com: [3, 0]}]\n")))


def test_overrides(tmp_path):
    path = write(
        tmp_path,
        HEAD + "  bars: [{name: rail, ends: [[0, 0, 1], [1, 0, 1]], radius: 0.02, friction: 0.3}]\nstances:\n" + FEET,
    )
    scenario = load_scenario(path, {"environment.friction": "0.45", "environment.surfaces[floor].size": "[3, 3]"})
    assert {support.friction for support in scenario.environment.supports.values()} == {0.45}
    assert scenario.environment.support("floor").polygon.max() == 1.5
    # what is kept with a run says the same again
    again = load_scenario(write(tmp_path, scenario.document.text(), "again.yaml"))
    assert again.digest == scenario.digest
    assert load_scenario(path).document.text() == path.read_text()
    with pytest.raises(ScenarioError, match=r"^override: simulation.dt: expected a number > 0, got -1$"):
        load_scenario(path, {"simulation.dt": "-1"})
    with pytest.raises(ScenarioError, match="unknown key; did you mean `dt`"):
        load_scenario(path, {"simulation.d": 1})


def test_a_planned_sequence_reads_back(tmp_path):
    path = write(tmp_path, HEAD + "stances:\n" + FEET + "  - {remove: left_sole}\n")
    scenario = load_scenario(path)
    data = dict(scenario.document.data)
    contacts = [
        {**c.to_data(), "pose": {"xyz": c.p, "quat_wxyz": [0.0, 1.0, 0.0, 0.0]}} for c in scenario.start.contacts
    ]
    q, tau = scenario.start.q, np.zeros(scenario.robot.n)
    wrenches = {"left_sole": np.zeros(6)}
    data["stances"] = [
        {
            "contacts": contacts,
            "change": "start",
            "q": q,
            "tau": tau,
            "wrenches": wrenches,
            "margins": {"friction": 1.5},
        },
        {"contacts": contacts[1:], "change": "remove", "moved": "left_sole", "q": q},
    ]
    plan = load_scenario(write(tmp_path, dump_document(data), "plan.yaml"))
    assert np.array_equal(plan.stances[0].q, q)
    for spec, contact in zip(plan.stances[0].contacts, scenario.start.contacts, strict=True):
        assert np.array_equal(make_contact(plan.robot, plan.environment, spec).p, contact.p)
    data["stances"][0]["q"] = [*q[:-1]]
    data["stances"][1]["q"] = [*q[:3], 1, 1, 0, 0, *q[7:]]
    data["stances"][1]["contacts"][0]["pose"]["xyz"] = [0, 0, 1]
    keys = [key for _, key in said(write(tmp_path, dump_document(data), "broken.yaml"))]
    assert keys[:1] == ["stances[0].contacts[1].pose"]
    assert {"stances[0].q", "stances[1].contacts[0].pose", "stances[1].q"} <= set(keys)


def test_all_mistakes_at_once(tmp_path):
    text = (
        HEAD.replace("friction", "frction")
        + """\
    - {name: floor, size: [1, 1]}
  obstacles: [{name: rock, mesh: {file: nothing.stl}}]
start:
  posture: half_siting
  contacts:
    - {patch: left_sole, surface: flor}
    - {patch: left_sol, surface: floor}
    - {patch: right_sole, surface: floor, x: 2.0, y: 0, yaw: 0}
goal: {contacts: [{patch: left_hand, surface: rail}], objects: {crate: {}}}
planner: {require: [[right_han, right_grip]]}
stances:
  - {contacts: [{patch: left_sole, surface: floor}, {patch: right_sole, surface: floor}]}
  - {add: {patch: left_sole, surface: floor}}
  - {remove: right_hand}
  - {posture: {joints: {LLEG_JOINT3: 9, LLEG_JONT3: 1}}}
  - {remove: right_sole}
  - {remove: left_sole}
"""
    )
    path = write(tmp_path, text)
    assert said(path) == [
        (6, "environment.surfaces[0].frction"),
        (7, "environment.surfaces[1].name"),
        (8, "environment.obstacles[0].mesh.file"),
        (10, "start.posture"),
        (12, "start.contacts[0].surface"),
        (13, "start.contacts[1].patch"),
        (14, "start.contacts[2]"),
        (15, "goal.contacts[0].surface"),
        (15, "goal.objects.crate"),
        (16, "planner.require[0]"),
        (19, "stances[1].add.patch"),
        (20, "stances[2].remove"),
        (21, "stances[3].posture.joints.LLEG_JOINT3"),
        (21, "stances[3].posture.joints.LLEG_JONT3"),
        (23, "stances[5].remove"),
    ]
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    assert list(caught.value.problems) == check_file(path)
    words = str(caught.value)
    assert f"{path}:10: start.posture: unknown posture `half_siting`; did you mean `half_sitting`?" in words
    assert "mm beyond `floor`" in words


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("    - {name: a, pose: {quat_wxyz: [1, 1, 0, 0]}, size: [1, 1]}", "length 1.41421, expected 1"),
        ("    - {name: a, pose: {rpy: [0, 0, 0], quat_wxyz: [1, 0, 0, 0]}, size: [1, 1]}", "not both"),
        ("    - {name: a, polygon: [[0, 0], [1, 0], [0.2, 0.2], [0, 1]]}", "not convex"),
        ("    - {name: a, polygon: [[0, 0], [1, 0], [1, 1], [0, 0]]}", "has corners 4 and 1 in the same place"),
        ("    - {name: a, polygon: [[0, 0], [1, 0], [1, 0], [1, 1]]}", "has corners 2 and 3 in the same place"),
        ("    - {name: a, polygon: [[0, 0], [1, 0]]}", "expected at least 3"),
        ("    - {name: a}", "either size"),
        ("    - {name: a, size: [1, -1]}", "expected a number > 0, got -1"),
        ("    - {name: a, size: [1, .inf]}", "not a finite number"),
        ("  bars: [{name: b, ends: [[0, 0, 1], [0, 0, 1]], radius: 0.1}]", "same point"),
        ("  obstacles: [{name: o, box: {size: [1, 1, 1]}, sphere: {radius: 1}}]", "exactly one of"),
        ("  objects: [{name: o, sphere: {radius: 1}}]", "mass: missing"),
        ("robot: hrp3", "robot"),
        ("simulation: {physics: mujco}", "did you mean `mujoco`"),
        ("control: {solver: DAPQ}", "did you mean `DAQP`"),
        ("control: {solver: FOO}", "DAQP, OSQP, CLARABEL or PIQP"),
        ("control: {contact: {friction_faces: 5}}", "that is a multiple of 2, got 5"),
        ("control: {contact: {friction_faces: 3}}", "got 3"),
        ("control: {contact: {friction_faces: 2}}", "expected a number >= 4"),
        ("goal: {base: {xyz: [0, 0, 0], angle_tolerance: 0.2}}", "angle_tolerance without rpy"),
        ("start: {posture: {joints: {LLEG_JOINT3: 9}}}", "start.posture.joints.LLEG_JOINT3"),
        ("start: {posture: {joints: {LLEG_JOINT3: -9}}}", "start.posture.joints.LLEG_JOINT3"),
        (
            "goal: {contacts: [{patch: left_sole, surface: floor}, {patch: right_sole, surface: flor}]}",
            "goal.contacts[1].surface",
        ),
        ("goal: [{com: [0, 0]}, {contacts: [{patch: left_sol, surface: floor}]}]", "goal[1].contacts[0].patch"),
        ("stances: [{add: {patch: left_sole, surface: floor, hinge: w}}]", "expected x, y or z, got 'w'"),
        ("stances: [{add: {patch: left_sole, surface: floor}}]", "must give the contacts at the start"),
        ("stances: [{remove: left_sole, add: {patch: left_sole, surface: floor}}]", "differs from the one before"),
        ("mcplan: 2", "mcplan"),
    ],
)
def test_each_mistake_is_named(tmp_path, line, says):
    head = HEAD.replace("robot: hrp2\n", "") if line.startswith("robot") else HEAD
    with pytest.raises(ScenarioError) as caught:
        load_scenario(write(tmp_path, head + line + "\n"))
    assert says in str(caught.value)
    assert all(problem.line is not None for problem in caught.value.problems)


def test_roll_pitch_and_yaw_turn_about_the_axes_of_the_world_in_this_order():
    roll, pitch, yaw = 0.3, -0.5, 0.7
    about = [
        Rotation.from_euler(axis, angle).as_matrix() for axis, angle in zip("xyz", (roll, pitch, yaw), strict=True)
    ]
    pose = PoseSpec.model_validate({"rpy": [roll, pitch, yaw]})
    assert np.allclose(pose.R, about[2] @ about[1] @ about[0])
    assert np.allclose(PoseSpec.model_validate({"quat_wxyz": pose.array[3:].tolist()}).R, pose.R)


def test_names_and_paths(tmp_path, monkeypatch):
    with pytest.raises(ScenarioError, match="did you mean `step`"):
        load_scenario("stpe")
    with pytest.raises(ScenarioError, match="no such file"):
        load_scenario("nowhere/step.yaml")
    assert check_file("hrp2") == []
    with monkeypatch.context() as patched:  # a bundled robot whose package is not installed is no file that is missing
        patched.setattr("mcplan.robot.mesh_file.find_package", lambda name: None)
        (problem,) = check_file("talos")
        assert "pip install 'mcplan[robots]'" in problem.message
    (problem,) = check_file("nothing")
    assert "no such file" in problem.message
    urdf = write(tmp_path, "<robot name='a'><link name='b'>", "broken.urdf")
    assert len(check_file(urdf)) == 1
    robot = write(tmp_path, "mcplan: 1\nname: x\nurdf: broken.urdf\nbase: b\n", "robot.yaml")
    assert len(check_file(robot)) == 1


def test_a_start_in_a_named_posture_is_where_the_robot_file_has_that(tmp_path):
    """On hands, knees and toes: what rests on the floor there is in contact."""
    floor = "environment: {surfaces: [{name: floor, size: [4, 4]}]}\n"
    text = f"mcplan: 1\nname: trial\nrobot: hrp2\n{floor}start: {{posture: crawl}}\ngoal: {{com: [1, 0]}}\n"
    scenario = load_scenario(write(tmp_path, text))
    np.testing.assert_allclose(scenario.start.q[:7], scenario.robot.posture("crawl")[:7], atol=2e-3)
    patches = {f"{side}_{part}" for side in ("left", "right") for part in ("hand", "knee", "toe")}
    assert {contact.patch for contact in scenario.start.contacts} == patches


def test_a_robot_path_is_relative_to_the_scenario(tmp_path):
    (tmp_path / "robots").mkdir()
    inertial = "<inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/></inertial>"
    write(tmp_path / "robots", f"<robot name='box'><link name='base'>{inertial}</link></robot>", "box.urdf")
    write(
        tmp_path / "robots",
        "mcplan: 1\nname: box\nurdf: box.urdf\nbase: base\npatches:\n  under: {link: base, limb: "
        "body, pose: {xyz: [0, 0, 0], quat_wxyz: [0, 1, 0, 0]}, polygon: [[0, 0], [0.1, 0], [0, 0.1]]}\n",
        "box.yaml",
    )
    text = HEAD.replace("hrp2", "robots/box.yaml") + "start: {contacts: [{patch: under, surface: floor}]}\n"
    scenario = load_scenario(write(tmp_path, text))
    assert scenario.robot.name == "box"
    assert scenario.start.contacts[0].patch == "under"
    assert load_scenario(scenario.path).digest == scenario.digest
    heavier = (tmp_path / "robots" / "box.urdf").read_text().replace("<mass value='1'/>", "<mass value='2'/>")
    write(tmp_path / "robots", heavier, "box.urdf")
    assert load_scenario(scenario.path).digest != scenario.digest, "the same words about another robot"


def test_a_typo_in_every_key_of_a_bundled_file_is_named(tmp_path):
    """Each key misspelt, one at a time: one message in its line, and the right key offered where it is known."""
    source = find_scenario("table_hand").read_text()
    document = read_document(find_scenario("table_hand"))
    for key in ("robot", "environment", "surfaces", "polygon", "thickness", "posture", "contacts", "patch", "stances"):
        text = source.replace(f"{key}:", f"{key}x:", 1)
        line = next(k for k, row in enumerate(text.splitlines(), 1) if f"{key}x:" in row)
        problems = check_file(write(tmp_path, text))
        assert any(p.line == line and f"did you mean `{key}`?" in p.message for p in problems), key
    assert document.problems == ()


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("start: {contacts: [{patch: left_sole, surface: floor, slide: x}]}", "start.contacts[0].slide"),
        ("goal: {contacts: [{patch: left_sole, surface: floor, hinge: y}]}", "goal.contacts[0].hinge"),
        ("goal: [{contacts: [{patch: left_hand, surface: floor, slide: [x, y]}]}]", "goal[0].contacts[0].slide"),
        (
            "stances: [{contacts: [{patch: left_sole, surface: floor}]}, "
            "{add: {patch: right_sole, surface: floor, hinge: x}}]",
            "stances[1].add.hinge",
        ),
    ],
)
def test_soles_that_slide_or_hinge_are_refused_where_the_physics_would_hold_them(tmp_path, line, key):
    head = HEAD if line.startswith("start") else HEAD + "start: {contacts: [{patch: left_sole, surface: floor}]}\n"
    for physics in ("contact", "mujoco"):
        file = write(tmp_path, head + line + f"\nsimulation: {{physics: {physics}}}\n")
        said = [str(problem) for problem in check_file(file)]
        assert any(f"{file}:" in text and f": {key}: the physics contact and" in text for text in said), said
    assert not any("know no" in str(problem) for problem in check_file(write(tmp_path, head + line + "\n")))


@pytest.mark.parametrize(("off", "wrong"), [(0.0005, False), (0.002, True), (-0.002, True)])
def test_a_pose_beside_coordinates_must_agree_with_them(tmp_path, off, wrong):
    goal = (
        "start: {base: {xyz: [0, 0, 0.65]}, contacts: [{patch: left_sole, surface: floor, x: 0, y: 0.1, yaw: 0}]}\n"
        "goal: {contacts: [{patch: left_sole, surface: floor, x: 0.3, y: 0.1, yaw: 0, "
        f"pose: {{xyz: [{0.3 + off}, 0.1, 0], quat_wxyz: [0, 1, 0, 0]}}}}]}}\n"
    )
    problems = check_file(write(tmp_path, HEAD + goal))
    assert [problem.key for problem in problems] == (["goal.contacts[0].pose"] if wrong else [])
    assert all("is 2 mm away from the coordinates" in problem.message for problem in problems)


@pytest.mark.parametrize(
    ("after", "problems"),
    [
        (["left_sole"], []),
        (["left_sole", "right_sole", "left_hand"], []),
        (["left_sole", "left_hand"], [(9, "stances[1].contacts")]),  # one goes and one comes
        (["left_hand", "left_sole", "right_sole", "right_hand"], [(9, "stances[1].contacts")]),
    ],
)
def test_one_contact_changes_from_stance_to_stance(tmp_path, after, problems):
    contacts = ", ".join(f"{{patch: {patch}, surface: floor}}" for patch in after)
    path = write(tmp_path, HEAD + "stances:\n" + FEET + f"  - {{contacts: [{contacts}]}}\n")
    assert said(path) == problems


@pytest.mark.parametrize("names", [("left_sole", "left_sole"), ("left_sole", "right_sole", "left_sole")])
@pytest.mark.parametrize(("text", "key"), [("goal:", "goal"), ("start:", "start"), ("stances:\n  -", "stances[0]")])
def test_a_patch_that_a_list_of_contacts_has_twice_is_named_wherever_it_stands(tmp_path, names, text, key):
    contacts = ", ".join(f"{{patch: {name}, surface: floor}}" for name in names)
    problems = check_file(write(tmp_path, HEAD + f"{text} {{contacts: [{contacts}]}}\n"))
    assert (f"{key}.contacts[{len(names) - 1}].patch", "`left_sole` is listed twice") in [
        (problem.key, problem.message) for problem in problems
    ]


def test_a_sequence_without_contacts_at_the_start_is_one_mistake(tmp_path):
    """Its posture, in the air, is not asked where it rests."""
    text = (
        HEAD + "start: {base: {xyz: [0, 0, 2]}}\nstances:\n  - {add: {patch: left_sole, surface: floor, x: 0, y: 0}}\n"
    )
    assert said(write(tmp_path, text)) == [(9, "stances[0]")]


@pytest.mark.parametrize("name", ["goals", "gaol"])
def test_a_misspelt_goal_is_named_and_what_it_says_is_checked(tmp_path, name):
    text = HEAD + "stances:\n" + FEET + "goal: {contacts: [{patch: left_sole, surface: floor}]}\n"
    assert said(write(tmp_path, text)) == []
    text = text.replace("goal:", f"{name}:")
    assert said(write(tmp_path, text)) == [(9, name)]
    keys = [key for _, key in said(write(tmp_path, text.replace("floor}]}\n", "flor}]}\n")))]
    assert sorted(keys) == sorted([name, "goal.contacts[0].surface", "stances[0].contacts[1].surface"])


def test_a_robot_without_patches_is_said_to_have_none_and_how_it_gets_some():
    bare = ROBOTS / "hrp2" / "hrp2.urdf"
    with pytest.raises(ScenarioError, match=rf"robot: hrp2 has no patches.*`mcplan robot new {bare}` proposes some"):
        load_scenario("sway", {"robot": str(bare)})


def test_a_name_that_is_given_twice_in_an_override_has_no_line(tmp_path):
    surfaces = "[{name: floor, size: [4, 2]}, {name: floor, size: [1, 1]}]"
    with pytest.raises(ScenarioError, match=r"^override: environment.surfaces\[1\].name: `floor` is named already$"):
        load_scenario(write(tmp_path, HEAD + "stances:\n" + FEET), {"environment.surfaces": surfaces})


@pytest.mark.parametrize(
    ("key", "meant"),
    [("com_kp", "gains.com_kp"), ("com_weight", "weights.com"), ("avoid_pairs", "avoidance.pairs"), ("rat", "rate")],
)
def test_a_key_outside_its_group_is_refused_with_the_key_in_the_group(key, meant):
    with pytest.raises(ScenarioError, match=f"control.{key}: unknown key; did you mean `{meant}`"):
        load_scenario("step", {f"control.{key}": 3})
