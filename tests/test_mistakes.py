"""What people get wrong, from Python and on the command line, and what each mistake has to be answered with.

Every answer names what is wrong and what was expected; none is a traceback from inside, and none comes after the work.
"""

import re
import socket
from importlib import import_module

import numpy as np
import pytest

import mcplan as mc
from mcplan.cli.main import main
from mcplan.errors import InputError, ScenarioWarning

PYTHON = {
    # names of the package
    "mc.Scenaro": r"no attribute 'Scenaro'; did you mean `Scenario`\?",
    "mc.solve_postur": r"did you mean `solve_posture`\?",
    # robots
    "mc.load_robot('hrp3')": r"no robot is called 'hrp3'; bundled: .*hrp2.*; did you mean `hrp2`\?",
    "mc.load_robot('no.urdf')": r"no\.urdf: cannot be read: No such file",
    "mc.load_robot(3)": r"load_robot: expected a bundled name or the path of a file, not 3",
    "robot.posture('half_siting')": r"no posture 'half_siting'; did you mean `half_sitting`\?",
    "robot.frame_pose(q, 'left_sol')": r"no link or patch 'left_sol'; did you mean `left_sole`\?",
    "robot.com(q[7:])": r"q has the shape \(28,\); expected \(35,\)",
    "robot.com('half_sitting')": r"q should be an array of 35 numbers",
    "robot.mass_matrix(0 * q)": r"base quaternion w x y z, has the length 0; expected 1",
    # things
    "mc.Surface('floor')": r"give either size=\(length, width\) or polygon=",
    "mc.Surface('floor', size=4)": r"surface `floor`: size: expected 2 finite numbers, not 4",
    "mc.Surface('floor', size=(4, np.nan))": r"size: expected 2 finite numbers, not \(4, nan\)",
    "mc.Surface('floor', size=(-np.inf, 4))": r"size: expected 2 finite numbers, not \(-inf, 4\)",
    "mc.Surface('floor', size=(4, -4))": r"size is -4 m, expected more than 0",
    "mc.Surface('floor', size=('a', 4))": r"size: expected 2 finite numbers, not \('a', 4\)",
    "mc.Surface('floor', size=(4, 4), friction=-1)": r"friction is -1, expected 0 or more",
    "mc.Surface('floor', size=(4, 4), friction=np.inf)": r"friction: expected a finite number, not inf",
    "mc.Surface('floor', size=(4, 4), friction='ice')": r"friction: expected a finite number, not 'ice'",
    "mc.Surface('floor', size=(4, 4), xyz=(0, 0))": r"xyz: expected 3 finite numbers, not \(0, 0\)",
    "mc.Surface('floor', size=(4, 4), quat_wxyz=(1, 1, 0, 0))": r"quat_wxyz has length 1\.41421, expected 1",
    "mc.Surface('floor', size=(4, 4), quat_wxyz=(0.9, 0, 0, 0))": r"quat_wxyz has length 0\.9, expected 1",
    "mc.Surface(3, size=(4, 4))": r"name: expected a text, not 3",
    "mc.Bar('rail', ends=((0, 0, 1), (0, 0, 1)), radius=0.02)": r"the two ends are the same point",
    "mc.Bar('rail', ends=((0, 0, 1), (1, 0, 1)), radius=-1)": r"radius is -1 m, expected more than 0",
    "mc.Obstacle('post', 'box')": r"shape: expected a Box, Sphere, .* not 'box'",
    "mc.Obstacle('post', mc.Box((1, 1)))": r"size of its box: expected 3 finite numbers, not \(1, 1\)",
    "mc.Obstacle('ball', mc.Sphere(-1))": r"radius is -1 m, expected more than 0",
    "mc.FreeObject('box', mc.Box((1, 1, 1)), mass=0)": r"mass is 0 kg, expected more than 0",
    "mc.Environment(floor)": r"expected a list, \[floor, table\], not Surface\('floor'",
    "mc.Environment(['floor'])": r"holds surfaces, bars, obstacles and free objects, not 'floor'",
    "mc.Scenario(robot, mc.Environment([floor, floor]), start=soles)": r"two things are called `floor`",
    # contacts
    "mc.contact('hrp2', 'left_sole', floor, x=0, y=0)": r"robot: expected a Robot, not 'hrp2'; mcplan\.load_robot",
    "mc.contact(robot, 'left_sol', floor, x=0, y=0)": r"no patch `left_sol`; did you mean `left_sole`\?",
    "mc.contact(robot, 'left_sole', 'floor', x=0, y=0)": r"'floor' is a name: give the environment",
    "mc.contact(robot, 'left_sole', 3, x=0, y=0)": r"support: expected a Surface, a Bar or the name of one, not 3",
    "mc.contact(robot, 'left_sole', floor)": r"x, y left out: without a posture the nearest place is unknown",
    "mc.contact(robot, 'left_sole', floor, x=9, y=0)": r"reaches 7130 mm beyond `floor`",
    "mc.contact(robot, 'left_sole', floor, x='0', y=0)": r"left_sole on floor: x: expected a number, got '0'",
    "mc.contact(robot, 'left_sole', floor, x=0, y=np.nan)": r"left_sole on floor: y: nan is not a finite number",
    "mc.contact(robot, 'left_sole', floor, z=0)": r"z: unknown key; there are: .*x, y, yaw",
    "mc.contact(robot, 'left_sole', floor, near=q[:5])": r"q has the shape \(5,\); expected \(35,\)",
    # scenarios
    "mc.Scenario('hrp2', env, start=soles)": r"Scenario: robot: expected a Robot, not 'hrp2'",
    "mc.Scenario(env, robot, start=soles)": r"Scenario: robot: expected a Robot, not Environment\(floor, table\)",
    "mc.Scenario(robot, [floor], start=soles)": r"environment: expected an Environment, not \[Surface",
    "mc.Scenario(robot, env, start=soles[0])": r"expected a list of contacts, not Contact\('left_sole'",
    "mc.Scenario(robot, env, start=['left_sole'])": r"expected a contact .* not 'left_sole'",
    "mc.Scenario(robot, mc.Environment([table]), goal={'com': [0, 0, 1]})": r"start: no contacts are given, and",
    "mc.Scenario(robot, env, start=soles, goal='left_hand')": r"goal: expected a list of contacts, .* not 'left_hand'",
    "mc.Scenario(robot, env, start=soles, goal=3)": r"goal: expected a list of contacts, .* not 3",
    "mc.Scenario(robot, env, start=soles, colour=3)": r"no argument 'colour'; there are: .*simulation",
    "mc.Scenario(robot, env, start=soles, posture='half_siting')": r"did you mean `half_sitting`\?",
    "mc.Scenario(robot, env, start=soles, posture=q[:3])": r"posture: expected 35 finite numbers, not the array",
    "mc.Scenario(robot, env, start=soles, simulation={'dtt': 1})": r"simulation\.dtt: unknown key; did you mean `dt`\?",
    "mc.Scenario(robot, env, start=soles, simulation={'dt': np.inf})": r"simulation\.dt: inf is not a finite number",
    "mc.Scenario(robot, env, start=soles, simulation=3)": r"expected SimulationSettings or a dictionary, not 3",
    "mc.load_scenario('sway', [1])": r"overrides: expected a dictionary \{key path: value\}, not \[1\]",
    "mc.load_scenario('step', {'environment.obstacles': [{'name': 'a', 'box': [1, 1]}]})": r"mapping \{size: ",
    "mc.load_scenario('stp')": r"no scenario `stp`; did you mean `step`\?",
    "mc.load_scenario(3)": r"name of a bundled scenario, the path of a file, or a dictionary, not 3",
    "mc.load_scenario({'mcplan': 1})": r"name: missing; this key is required\n.*robot: missing",
    "mc.load_scenario('step', {'simulation.dtt': 1})": r"simulation\.dtt: unknown key; did you mean `dt`\?",
    "mc.load_scenario('step', {'control.solver': 'OSPQ'})": r"expected DAQP, .* did you mean `OSQP`\?",
    "mc.load_scenario('walk', variant='a')": r"variant: expected a whole number from 0 on, not 'a'",
    "scenario.replace(envronment=env)": r"no part 'envronment'; did you mean `environment`\?",
    "scenario.replace(environment=floor)": r"environment: expected an Environment, not Surface\('floor'",
    "scenario.save(3)": r"save: expected the path of a file, not 3",
    "mc.support_region(robot, q, [*soles, 'floor'])": r"contacts\[2\]: expected a Contact, not 'floor'",
    # plans and runs
    "mc.plan('stp')": r"no scenario `stp`; did you mean `step`\?",
    "mc.plan(robot)": r"plan: expected a Scenario, .* not Robot\('hrp2'",
    "mc.plan(mc.Scenario(robot, env, start=soles))": r"neither `goal:` nor `stances:`; there is nothing to plan",
    "mc.plan('sway', seed=-1)": r"plan: seed: expected a whole number from 0 on, not -1",
    "mc.plan('sway', seed=True)": r"plan: seed: expected a whole number from 0 on, not True",
    "mc.load_plan('step')": r"not an item of a plan; plan the scenario first",
    "mc.load_plan(scenario)": r"load_plan: expected the path of a file, not Scenario\('sway'",
    "mc.load_run('nothing')": r"nothing: no such run",
    "mc.load_run(3)": r"load_run: expected the path of a file, not 3",
    "mc.save_plan(plan, 3)": r"save_plan: expected the path of a file, not 3",
    "mc.simulate(robot)": r"expected a Plan, a Scenario or a name, not Robot\('hrp2'",
    "mc.simulate({'mcplan': 1})": r"name: missing; this key is required",
    "mc.make_physics('sway', 'contact')": r"make_physics: scenario: expected a Scenario, not 'sway'; mcplan",
    "mc.simulate(plan, physics='mujco')": r"no physics 'mujco'; did you mean `mujoco`\?",
    "mc.simulate(plan, seed='a')": r"seed: expected a whole number from 0 on, not 'a'",
    "mc.simulate(plan, tasks=['com'])": r"tasks\[0\]: 'com' is not a task: it has no weight, .* rows",
    "mc.simulate(plan, tasks=mc.ComTask())": r"tasks: expected a list of tasks",
    "mc.simulate(plan, observers=[print])": r"observers\[0\]: expected an Observer",
    "mc.Simulation(scenario)": r"plan: expected a Plan, not Scenario\('sway'.*; mcplan\.plan\(\.\.\.\)",
    "mc.verify(scenario)": r"verify: expected a Run, a Plan, or the path of one, not Scenario",
    "mc.show(q)": r"show: expected a Run, Plan, Scenario or Robot, not an array of shape \(35,\)",
    "mc.show(robot, q[:3])": r"q has the shape \(3,\); hrp2 has \(35,\)",
    "mc.show(robot, contacts=['left_sole'])": r"show: contacts\[0\]: expected a Contact, not 'left_sole'; mcplan",
    "mc.show(scenario, q)": r"q, contacts and environment are for a robot",
    "mc.save_html(3, 'x.html')": r"save_html: expected a Run, Plan, Scenario or Robot, not 3",
    "mc.save_html(plan, '.')": r"^\.: is a directory; expected the name of a file",
    "mc.save_plots(plan, 'plots')": r"save_plots: run: expected a Run, not Plan\('sway'",
    "mc.export_run(plan, 'csv', 'x.csv', rate='50')": r"rate '50': expected a positive number of samples per second",
    "mc.export_run(plan, 'csv', 'x.csv')": r"export_run: run: expected a Run, not Plan\('sway'",
    "mc.LiveView('step')": r"LiveView: plan: expected a Plan, not 'step'",
    "mc.sweep('nothing.yaml')": r"nothing\.yaml: cannot be read: no such file",
    "mc.sweep({'mcplan': 1, 'name': 'x', 'scenarios': ['wlak']})": r"did you mean `walk`\?",
    "mc.sweep('nothing.yaml', 'x', workers='2')": r"sweep: workers: expected a whole number from 0 on, not '2'",
    "mc.load_experiment({'mcplan': 1, 'name': 'x', 'scenarios': ['walk'], 'seed': 3})": r"did you mean `seeds`\?",
    # postures, statics, tasks
    "mc.solve_posture('hrp2', env, soles)": r"solve_posture: robot: expected a Robot, not 'hrp2'",
    "mc.solve_posture(robot, floor, soles)": r"solve_posture: environment: expected an Environment",
    "mc.solve_posture(robot, env, soles[0])": r"expected a list of Contact, .*; put it into a list: \[\.\.\.\]",
    "mc.solve_posture(robot, env, [])": r"expected contacts of different patches, not none",
    "mc.solve_posture(robot, env, soles, near='half_siting')": r"did you mean `half_sitting`\?",
    "mc.solve_posture(robot, env, soles, com=3)": r"com: expected 2 or 3 finite numbers, not 3",
    "mc.support_region(q, robot, soles)": r"support_region: robot: expected a Robot, not an array of shape \(35,\)",
    "mc.support_region(robot, q, soles).depth(3)": r"point: expected 2 or 3 finite numbers, not 3",
    "mc.balance(robot, q, ['left_sole'])": r"contacts\[0\]: expected a Contact, not 'left_sole'; mcplan",
    "mc.PostureTask(3)": r"position \(q\[7:\] of a posture\): expected a list of finite numbers, not 3",
}

DOUBTS = {
    "mc.Scenario(robot, env, start=turned)": r"yaw: 90 rad is more than a whole turn; angles are in radians",
    "mc.load_scenario('walk', {'parameters.friction': 6})": r"friction coefficient of 6; rubber on dry concrete has",
    "mc.load_scenario('walk', {'environment.surfaces[0].size': [4000, 2]})": r"4000 m is very far; lengths are in",
}

COMMANDS = {
    "rnu step": r"there is no command `rnu`; did you mean `run`\?",
    "step": r"there is no command `step`; to plan and simulate it: mcplan run step",
    "run": r"the following arguments are required: SCENARIO",
    "run stp": r"no scenario or plan `stp`; did you mean `step`\?",
    "run no.yaml": r"no\.yaml: there is no such file; expected a scenario or plan",
    "run hrp2": r"hrp2 is a robot, expected a scenario or plan: a scenario names its robot: `robot: hrp2`",
    "run step --physics conact": r"--physics: there is no `conact`; did you mean `contact`\?",
    "run step --set simulation.dt": r"expected KEY=VALUE, for example",
    "run step --set simulation.dtt=1": r"simulation\.dtt: unknown key; did you mean `dt`\?",
    "run step --set simulation.dt=0": r"simulation\.dt: expected a number > 0, got 0",
    "run step --variant 3": r"variants",
    "run step --variant -1": r"--variant: '-1' is not a whole number from 0 on",
    "run step --live --port 99999": r"--port: 99999: expected a port from 0 .* to 65535",
    "run step --live --port {taken}": r"port \d+ of 127\.0\.0\.1 cannot be used: Address already in use",
    "replay {plan} --port {taken}": r"port \d+ of 127\.0\.0\.1 cannot be used: Address already in use",
    "robot new package://mine/x.urdf -o {new}.yaml": r"package://mine/x\.urdf: the package 'mine' is not installed",
    "run step --seed -1": r"'-1' is not a whole number from 0 on",
    "run step -o {file}/run": r"is a file, so nothing can be put into it",
    "run step -o {full}": r"exists and is kept; choose another path, or overwrite it with --force",
    "plan stepp": r"no scenario or plan `stepp`; did you mean `step`\?",
    "plan step -o {kept}": r"exists and is kept; .*--force",
    "plan step -o {new}": r"-o .*new: expected a name that ends in \.yaml or \.yml",
    "simulate {run_like}": r"no file of mcplan; expected a scenario or plan|a directory without run\.npz",
    "simulate {plan} --variant 3": r"--variant 3: .*sway\.plan\.yaml is a plan; give its scenario",
    "simulate {plan} --robot g1": r"--robot g1: .*sway\.plan\.yaml is a plan; give its scenario",
    "verify sway": r"sway is a scenario, expected a run or plan: `mcplan run sway` makes a run of it",
    "verify nothing": r"no run or plan `nothing`",
    "verify {full}": r"a directory without run\.npz; expected a run or plan",
    "verify {file}": r"no file of mcplan; expected a run or plan",
    "replay sway": r"sway is a scenario, expected a run, plan or search tree: `mcplan run sway`",
    "replay {plan} --html {file}/x.html": r"is a file, so nothing can be put into it",
    "plot {plan}": r"is a plan, expected a run: `mcplan simulate .*` makes a run of it",
    "plot sway --format gif": r"--format: there is no `gif`; there are: png, pdf, svg",
    "export {plan} --to csv -o {new}": r"is a plan, expected a run",
    "export {plan} --to cvs -o {new}": r"--to: there is no `cvs`; did you mean `csv`\?",
    "export {plan} --to csv -o {new} --rate -5": r"rate -5\.0: expected a positive number",
    "sweep walk": r"walk is a scenario, expected an experiment: an experiment lists scenarios under `scenarios:`",
    "sweep no.yaml": r"there is no such file; expected an experiment",
    "check hrp3": r"no scenario, plan, robot or experiment `hrp3`; did you mean `hrp2`\?",
    "check {file}": r"no file of mcplan; expected a scenario, plan, robot or experiment",
    "info wlak": r"no robot, scenario or plan `wlak`; did you mean `walk`\?",
    "info step --fsm -o {new}.txt": r"expected a name that ends in \.svg, \.png, \.pdf or \.dot",
    "plot sway --together {new}.gif": r"--together .*gif: expected a name that ends in \.png, \.pdf or \.svg",
    "info step -o {new}": r"-o and --physics are about a state machine or a stance: add --fsm or --stance",
    "scene new {mesh} --friction -1": r"^--friction: expected a number >= 0, got -1",
    "scene new {mesh} --scale 0": r"^--scale: expected a number > 0, got 0",
    "scene new {mesh} --slope 2": r"^--slope: expected a number < 1\.5, got 2",
    "scene show {mesh} --cell 0 --height -1": r"^--cell: expected .* > 0, got 0.*\n--height: expected .*, got -1",
    "scene new {mesh} --room 0 0.2": r"^--room: expected a number > 0, got 0",
    "scene new {mesh} --clearance inf": r"--clearance: 'inf' is not a finite number",
    "scene new {mesh} --scale mm": r"--scale: 'mm' is not a finite number",
    "bench --peers {file}": r"--peers",
}


@pytest.fixture(scope="module")
def names():
    robot = mc.load_robot("hrp2")
    floor, table = mc.Surface("floor", size=(4, 4)), mc.Surface("table", xyz=(0.6, 0, 0.9), size=(0.4, 1.2))
    soles = [mc.contact(robot, f"{side}_sole", floor, x=0.01, y=y) for side, y in (("left", 0.095), ("right", -0.095))]
    turned = [mc.contact(robot, "left_sole", floor, x=0, y=0, yaw=90)]
    plan, env = mc.plan("sway"), mc.Environment([floor, table])
    return dict(
        mc=mc, np=np, robot=robot, floor=floor, table=table, env=env, soles=soles, turned=turned, plan=plan,
        scenario=plan.scenario, q=robot.posture("half_sitting"),
    )  # fmt: skip


@pytest.fixture(scope="module")
def places(tmp_path_factory, names):
    home = tmp_path_factory.mktemp("places")
    for name in ("file", "kept.yaml", "mesh.stl"):
        (home / name).write_text("kept")
    (home / "full").mkdir()
    (home / "full" / "something").write_text("kept")
    mc.save_plan(names["plan"], home / "sway.plan.yaml")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield _named(home, taken.getsockname()[1])


def _named(home, taken):
    return {
        "taken": taken, "file": home / "file", "kept": home / "kept.yaml",
        "full": home / "full", "run_like": home / "full" / "something",
        "plan": home / "sway.plan.yaml", "new": home / "new", "mesh": home / "mesh.stl",
    }  # fmt: skip


@pytest.mark.parametrize("text", PYTHON)
def test_a_mistake_in_python_is_answered_with_what_was_expected(text, names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((InputError, AttributeError, TypeError), match=PYTHON[text]) as raised:
        eval(text, dict(names))
    if raised.type is not InputError and not issubclass(raised.type, InputError):
        assert re.search("no attribute|no argument|no part", str(raised.value)), "an accident inside"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", DOUBTS)
def test_what_is_hardly_meant_is_warned_of(text, names):
    with pytest.warns(ScenarioWarning, match=DOUBTS[text]):
        eval(text, dict(names))


@pytest.mark.parametrize("text", COMMANDS)
def test_a_mistake_on_the_command_line_is_answered_before_any_work(text, places, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for module, work in (("planning", "plan"), ("sim.simulate", "simulate"), ("sweep.sweep", "sweep")):
        monkeypatch.setattr(import_module(f"mcplan.{module}"), work, lambda *a, **k: pytest.fail("it works already"))
    try:
        status = main([part.format(**places) for part in text.split()])
    except SystemExit as stop:
        status = stop.code
    said = capsys.readouterr()
    assert status == 2
    assert re.search(COMMANDS[text], said.err), said.err
    assert said.out == ""
    assert "Traceback" not in said.err
    assert list(tmp_path.iterdir()) == [], "nothing was written"


@pytest.mark.parametrize("length", [1, 78, 79, 500])
def test_a_value_is_quoted_whole_unless_it_is_longer_than_a_line(length):
    with pytest.raises(InputError) as refusal:
        mc.Surface("floor", size="x" * length)
    quoted = "'" + "x" * length + "'"
    assert str(refusal.value).endswith(f", not {quoted if len(quoted) <= 80 else quoted[:77] + '...'}")


def test_the_list_is_long_enough():
    assert len(PYTHON) + len(DOUBTS) + len(COMMANDS) >= 60
