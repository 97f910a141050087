"""Other engines find the numbers of a run again, and find one that was changed by a thousandth of itself."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from mcplan.certificate.engine_checks import description_checks, distance_checks
from mcplan.certificate.engines import NAMES, PACKAGES, engine_class
from mcplan.certificate.engines.contract import moving_joints
from mcplan.certificate.recomputed_run import RecomputedRun
from mcplan.certificate.reproduction import AGREEMENT, Reproduction, reproduce
from mcplan.cli.main import main
from mcplan.errors import InputError, RunError, SimulationFailed
from mcplan.planning.plan import Plan
from mcplan.planning.planner import plan
from mcplan.record.records import LinkRecord, MeshRecord
from mcplan.scenario.load import load_scenario
from mcplan.sim.simulate import simulate
from tests import shared
from tests.certificate.random_run import free_run, with_a_mimic
from tests.sim.random_robots import random_record, urdf_text

EVERYWHERE = {"generalised forces", "equation of motion", "integration", "centre of mass", "energy", "power"}
OF_PATCHES = {"patch poses", "patch velocities"}


def found(run, *engines):
    """Lines by engine and by what they are about."""
    lines = reproduce(run, engines or NAMES)
    return {name: {check.name.removeprefix(f"{name}: "): check for check in lines[name]} for name in lines}


def failed(run):
    """Names of the lines that do not pass, by engine."""
    return {name: {what for what, check in lines.items() if not check.passed} for name, lines in found(run).items()}


def cut(whole, physics=None, seed=0):
    """The first moments of a simulation."""
    with pytest.raises(SimulationFailed, match="time limit") as stopped:
        simulate(whole, physics=physics, seed=seed)
    return stopped.value.run


def assert_agreement(run, expected):
    for name, lines in found(run).items():
        text = "\n".join(" ".join(check.row()) + check.failure for check in lines.values())
        assert all(check.passed for check in lines.values()), text
        assert set(lines) >= expected | EVERYWHERE, text
        for what in expected | EVERYWHERE:
            assert lines[what].value is not None, f"{name}: {what} is not compared"
            assert lines[what].value <= AGREEMENT, text


@pytest.fixture(scope="module")
def swaying():
    """Plan of HRP-2 on both feet."""
    return plan(load_scenario("sway", {"simulation.time_limit": 0.06}))


@pytest.fixture(scope="module")
def program_run(swaying):
    return cut(swaying)


@pytest.fixture(scope="module")
def mechanism_run():
    """A mechanism with revolute, prismatic, fixed, locked and mimic joints, which rotors and wrenches move."""
    return free_run(with_a_mimic(random_record(4, links=11)))


def test_a_run_of_the_program_is_found_again(program_run):
    assert_agreement(program_run, OF_PATCHES | {"links", "limits"})


def test_distances_are_found_again_by_mujoco(program_run):
    lines = found(program_run)
    assert "distances" not in lines["pinocchio"]
    assert lines["mujoco"]["distances"].value < 1e-8


def test_a_pushed_robot_with_payload_and_wrong_masses_is_found_again(swaying):
    """In ``contact``, where impacts make the accelerations, and links are not those that the robot's file says."""
    settings = swaying.scenario.simulation
    push = {"link": "BODY", "force": [30.0, -20.0, 0.0], "start": 0.01, "duration": 0.03, "point": [0, 0, 0.2]}
    changes = {
        "simulation.pushes": [push],
        "simulation.payloads": [{"link": "RARM_LINK5", "mass": 2.0, "com": [0.05, 0, -0.1]}],
        "simulation.imperfections.mass_error": 0.1,
        "simulation.time_limit": settings.time_limit,
    }
    scenario = load_scenario("sway", changes)
    run = cut(Plan(scenario, swaying.stances), "contact", seed=3)
    assert run.record.world.links
    assert np.abs(run.tau_ext).max() > 10
    assert_agreement(run, OF_PATCHES | {"limits"})
    honest = run.record.world.model_copy(update={"links": {}})
    forged = replace(run, record=run.record.model_copy(update={"world": honest}))
    assert all("equation of motion" in wrong for wrong in failed(forged).values())


@pytest.mark.slow
def test_a_box_in_mujoco_is_found_again():
    """Objects turn and slide by the rules of the robot's base."""
    scenario = load_scenario("push", {"simulation.time_limit": 0.05})
    run = cut(Plan(scenario, shared.planned("push").stances[3:5]), "mujoco")
    expected = OF_PATCHES | {"limits", "forces on objects", "integration of objects"}
    assert_agreement(run, expected)
    object_q = run.object_q.copy()
    object_q[20, 0, 0] *= 1.001
    assert all("integration of objects" in wrong for wrong in failed(replace(run, object_q=object_q)).values())


def test_a_mechanism_of_all_kinds_of_joints_is_found_again(mechanism_run):
    robot = mechanism_run.record.robot
    kinds = {joint.kind for joint in robot.joints}
    assert kinds == {"fixed", "revolute", "prismatic"}
    assert any(joint.kind != "fixed" and joint.coordinate < 0 for joint in robot.joints)
    assert any(joint.multiplier == -1.7 for joint in robot.joints)
    assert max(robot.armature) > 0.1
    assert_agreement(mechanism_run, OF_PATCHES)
    lines = found(mechanism_run)
    assert all(lines[name]["limits"].value is None for name in NAMES), "this run keeps no URDF to read limits in"


def test_links_without_mass_and_inertias_of_no_body_are_what_the_record_says():
    """A frame at the end of a chain has no mass; files of real robots hold A + B < C."""
    robot = random_record(2, links=7)
    links = list(robot.links)
    links[-1] = LinkRecord(name=links[-1].name, mass=0.0, com=[0, 0, 0], inertia=[[0.0] * 3] * 3)
    links[1] = links[1].model_copy(update={"inertia": np.diag([0.1, 0.2, 0.9]).tolist()})
    assert_agreement(free_run(robot.model_copy(update={"links": links})), OF_PATCHES)


def broken_lines(run):
    """What fails of the motion, by engine."""
    evidence = RecomputedRun(run)
    lines = {name: Reproduction(engine_class(name), evidence).checks() for name in NAMES}
    return {name: {check.name for check in checks if not check.passed} for name, checks in lines.items()}


@pytest.mark.parametrize(
    ("which", "name"),
    [(which, name) for which in ("program_run", "mechanism_run") for name in ("q", "v", "vd", "tau", "wrench", "com")]
    + [("mechanism_run", "tau_ext")],
)
def test_one_number_changed_by_a_thousandth_is_found_by_both(name, which, request):
    """Whatever is larger than the floors that the module states; of vd the last sample has another one."""
    run = request.getfixturevalue(which)
    array, rng = getattr(run, name), np.random.default_rng(7)
    floor = {"q": 1e-9, "v": 1e-9, "vd": 1e-9 / run.dt, "com": 1e-3}.get(name, 1e-8 * 600)
    rows = np.arange(len(run))[:, None] < len(run) - 1 if name == "vd" else True
    flat = array.reshape(len(run), -1)
    candidates = np.flatnonzero((np.abs(flat) > 2 * floor) & rows)
    assert len(candidates), f"the run has no number of {name} that could be changed"
    smallest = candidates[np.argmin(np.abs(flat.reshape(-1)[candidates]))]
    for index in (smallest, *rng.choice(candidates, 3)):
        changed = array.copy()
        changed.reshape(-1)[index] *= 1.001
        wrong = broken_lines(replace(run, **{name: changed}))
        assert all(wrong[engine] for engine in NAMES), f"{name}[{index}] = {array.reshape(-1)[index]:.3g}: {wrong}"


def test_the_line_says_where_and_when(program_run):
    tau = program_run.tau.copy()
    tau[30, 3] += 0.01
    check = found(replace(program_run, tau=tau), "mujoco")["mujoco"]["equation of motion"]
    joint = program_run.record.joints[3]
    assert check.where == f"{joint}, t = 0.030 s"
    expected = (
        f"mujoco: equation of motion off by 0.01 N (N m) at {joint}, t = 0.030 s (1 of {len(program_run)} samples)"
    )
    assert check.failure == expected


def of_another_robot(run, **changes):
    robot = run.record.robot.model_copy(update=changes)
    return replace(run, record=run.record.model_copy(update={"robot": robot}))


def test_a_limit_that_is_not_the_files_is_found(program_run):
    robot = program_run.record.robot
    for kind in ("lower", "torque"):
        limits = [1.001 * getattr(robot, kind)[0], *getattr(robot, kind)[1:]]
        assert failed(of_another_robot(program_run, **{kind: limits})) == {name: {"limits"} for name in NAMES}
    limits = [1.001 * robot.velocity[0], *robot.velocity[1:]]
    assert failed(of_another_robot(program_run, velocity=limits)) == {"pinocchio": {"limits"}, "mujoco": set()}


@pytest.mark.parametrize("seed", range(6))
def test_a_robot_is_what_an_engine_reads_in_its_file(seed):
    """Frames that are turned and shifted, fixed links, links that slide; and each of their numbers counts."""
    robot = with_file(random_record(seed, links=8))
    i = next(k for k, joint in enumerate(robot.joints) if joint.kind != "fixed")
    joint, link = robot.joints[i], robot.links[robot.joints[i].child]

    def with_joint(**changes):
        joints = [*robot.joints[:i], joint.model_copy(update=changes), *robot.joints[i + 1 :]]
        return robot.model_copy(update={"joints": joints})

    def with_link(**changes):
        links = [each.model_copy(update=changes) if each is link else each for each in robot.links]
        return robot.model_copy(update={"links": links})

    x, y, z = joint.p
    forged = [
        with_joint(p=[x, y + 1e-6, z]), with_joint(axis=[-value for value in joint.axis]), with_joint(name="other"),
        with_link(mass=link.mass * 1.00001), with_link(com=[link.com[0], link.com[1], link.com[2] + 1e-6]),
        with_link(inertia=(np.array(link.inertia) * 1.00001).tolist()), with_joint(kind="fixed"),
    ]  # fmt: skip
    for name in NAMES:
        links, limits = description_checks(engine_class(name), robot)
        assert links.passed, links.failure
        assert limits.passed, limits.failure
        assert links.value < 1e-12
        for other in forged:
            assert not next(description_checks(engine_class(name), other)).passed


def test_limits_that_robot_yaml_replaces_are_those_that_count():
    robot = with_file(random_record(0, links=5))
    first = robot.coordinates[0]
    changed = robot.model_copy(update={"torque": [50.0, *robot.torque[1:]]})
    files = {**robot.files, "robot.yaml": f"limits: {{{first}: {{torque: 50}}}}"}
    for name in NAMES:
        assert not list(description_checks(engine_class(name), changed))[1].passed
        both = list(description_checks(engine_class(name), changed.model_copy(update={"files": files})))
        assert both[1].passed, both[1].failure


def test_a_file_that_an_engine_cannot_read_is_a_failure():
    robot = random_record(0, links=4).model_copy(update={"files": {"robot.urdf": "<robot"}})
    for name in NAMES:
        checks = list(description_checks(engine_class(name), robot))
        assert not any(check.passed for check in checks)
        assert f"{name} cannot read the files of the robot" in checks[0].failure


def with_file(robot):
    """The robot with its URDF, whose locked joints move; the limits are those that ``urdf_text`` writes."""
    locked = [joint.name for joint in robot.joints if joint.kind != "fixed" and joint.coordinate < 0]
    names, count = [*robot.coordinates, *locked], len(robot.coordinates)
    joints = [
        joint.model_copy(update={"coordinate": count + locked.index(joint.name), "offset": 0.0})
        if joint.name in locked
        else joint
        for joint in robot.joints
    ]
    limits = {"lower": -9.0, "upper": 9.0, "velocity": 9.0, "torque": 999.0, "armature": 0.0}
    robot = robot.model_copy(
        update={"coordinates": names, "joints": joints, **{key: [value] * len(names) for key, value in limits.items()}}
    )
    return robot.model_copy(update={"files": {"robot.urdf": urdf_text(robot)}})


def test_a_shape_that_is_not_the_files_is_found(program_run):
    """The distances come from the URDF, and mcplan's from the robot that is rebuilt: here of another file."""
    robot = program_run.record.robot
    files = {**robot.files, "robot.urdf": robot.files["robot.urdf"].replace("0.231 0.138 0.035", "0.231 0.138 0.045")}
    assert files != robot.files
    assert failed(of_another_robot(program_run, files=files)) == {"pinocchio": set(), "mujoco": {"distances"}}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("0.231 0.138 0.035", "0.231 wide 0.035", "could not convert string to float: 'wide'"),
        ('<link name="LLEG_LINK5">', '<link name="FOOT">', "KeyError('FOOT')"),
        ("<robot ", "<!DOCTYPE robot><robot ", "has a DOCTYPE"),
    ],
)
def test_shapes_that_cannot_be_read_are_a_failure(old, new, said, program_run):
    text = program_run.record.robot.files["robot.urdf"]
    assert old in text
    forged = of_another_robot(program_run, files={"robot.urdf": text.replace(old, new)})
    (check,) = distance_checks(engine_class("mujoco"), RecomputedRun(forged))
    assert not check.passed
    assert said in check.failure


def test_a_shape_that_mujoco_does_not_have_is_named_without_failure(program_run):
    """A flat mesh has no volume."""
    robot = program_run.record.robot
    text = robot.files["robot.urdf"].replace(
        '<box size="0.231 0.138 0.035"/>', '<mesh filename="flat.stl"/>'
    )  # fmt: skip
    flat = {"flat.stl": MeshRecord(vertices=[[0, 0, 0], [1, 0, 0], [0, 1, 0]], faces=[[0, 1, 2]])}
    forged = of_another_robot(program_run, files={"robot.urdf": text}, meshes=flat)
    (check,) = distance_checks(engine_class("mujoco"), RecomputedRun(forged))
    assert check.passed
    assert check.row()[0] == "-"
    assert "not compared: MuJoCo refuses" in check.where


def test_a_robot_that_an_engine_refuses_is_named(mechanism_run):
    robot = mechanism_run.record.robot
    i = next(k for k, joint in enumerate(robot.joints) if joint.kind == "revolute")
    joints = [*robot.joints[:i], robot.joints[i].model_copy(update={"axis": [0.0] * 3}), *robot.joints[i + 1 :]]
    with pytest.raises(RunError, match="mujoco refuses the robot of this run: "):
        reproduce(of_another_robot(mechanism_run, joints=joints), ["mujoco"])


def test_what_follows_a_number_that_is_none_is_left_out(program_run):
    tau = program_run.tau.copy()
    tau[25, 0] = np.nan
    broken = replace(program_run, tau=tau)
    assert failed(broken) == {name: set() for name in NAMES}
    tau[0] = np.nan
    assert failed(replace(program_run, tau=tau)) == {name: {"samples"} for name in NAMES}


def test_joints_come_depth_first():
    robot = random_record(9, links=15)
    order = moving_joints(robot)
    assert sorted(order) == [i for i, joint in enumerate(robot.joints) if joint.kind != "fixed"]
    above = {joint.child: joint.parent for joint in robot.joints}

    def chain(i):
        links = [robot.joints[i].child]
        while links[-1] in above:
            links.append(above[links[-1]])
        return links

    for k, i in enumerate(order):
        beyond = [robot.joints[i].child in chain(j) for j in order[k:]]
        assert beyond == sorted(beyond, reverse=True), "what hangs on a joint follows it at once"


def test_the_command_adds_the_lines_and_the_key(program_run, tmp_path, capfd):
    program_run.save(tmp_path)
    status = main(["verify", str(tmp_path), "--with", "pinocchio", "--with", "mujoco", "--json"])
    content = json.loads(capfd.readouterr().out)
    assert set(content["engines"]) == set(NAMES)
    for name in NAMES:
        engine = content["engines"][name]
        assert engine["success"]
        assert engine["version"] == engine_class(name).version
        assert {"name", "value", "bound", "passed", "where"} <= set(engine["checks"][0])
    assert status == (0 if content["success"] else 1)
    assert main(["verify", str(tmp_path), "--with", "mujoco"]) == status
    assert "pass  mujoco: generalised forces" in capfd.readouterr().out


def test_the_command_fails_when_an_engine_does(program_run, tmp_path, capsys):
    """Moments about nothing: too small for the certificate's own bounds, and plain to an engine."""
    tau = program_run.tau.copy()
    tau[10, 5] += 1e-7
    replace(program_run, tau=tau).save(tmp_path)
    assert main(["verify", str(tmp_path), "--with", "pinocchio"]) == 1
    assert "broken: pinocchio: equation of motion off by 1e-07" in capsys.readouterr().out


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_engine_is_reported_with_the_command_that_installs_it(name, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"mcplan.certificate.engines.{name}", raising=False)
    assert main(["verify", str(tmp_path / "run.npz"), "--with", name]) == 2
    message = capsys.readouterr().err
    assert message == f"--with {name} needs the package {name}: pip install {PACKAGES[name]}\n"


def test_an_engine_that_does_not_exist_and_a_plan_are_refused(tmp_path, capsys):
    with pytest.raises(InputError, match="no such engine; there are: pinocchio, mujoco"):
        engine_class("bullet")
    (tmp_path / "plan.yaml").write_text("stances: [{q: []}]")
    assert main(["verify", str(tmp_path / "plan.yaml"), "--with", "mujoco"]) == 2
    assert "is a plan, which has no motion to recompute" in capsys.readouterr().err
