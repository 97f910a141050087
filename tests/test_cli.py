"""The command line: exit status, messages, and that nothing is written over."""

import errno
import gc
import json
import re
import signal
import subprocess
import sys
import tempfile
import warnings
from argparse import Namespace
from types import SimpleNamespace

import pytest

import mcplan as mc
from mcplan.api import new_directory, write_failure
from mcplan.certificate.report import Check, Report
from mcplan.cli import execution, info, plan as plan_command
from mcplan.cli.main import GC_THRESHOLD, _run, main
from mcplan.control.program import entries_of, machine_of
from mcplan.errors import InputError, PlanningFailed
from mcplan.planning.plan_file import save_plan
from mcplan.planning.search.tree import SearchTree, read_tree
from mcplan.util.kernel_cache import cache_directory
from tests import shared

BROKEN = """\
mcplan: 1
name: broken
robot: hrp2
environment:
  surfaces:
    - {name: floor, sise: [4, 2]}
start: {posture: half_siting}
"""


def test_help_needs_neither_numba_nor_cvxpy():
    code = (
        "import sys\nfrom mcplan.cli.main import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'numba', 'cvxpy', 'numpy', 'scipy', 'matplotlib', 'meshcat', 'pydantic'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "table_hand" in done.stdout


def test_help_of_simulate_is_about_a_plan(capsys):
    for command, place, refused in (("simulate", "PLAN|SCENARIO", 2), ("run", "SCENARIO", 0)):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        text = " ".join(capsys.readouterr().out.split())
        assert f"positional arguments: {place} " in text
        assert text.count("(not with a plan)") == refused


def test_python_runs_the_package_as_its_command():
    done = subprocess.run([sys.executable, "-m", "mcplan", "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"mcplan {mc.__version__}\n")
    done = subprocess.run([sys.executable, "-m", "mcplan", "fly"], capture_output=True, text=True, check=False)
    assert done.returncode == 2


def test_a_doubt_is_told_once(capsys):
    def twice(parsed):
        for text in ("a.urdf: odd", "a.urdf: odd", "b.urdf: odd"):
            warnings.warn(text, UserWarning, stacklevel=2)
        return 0

    assert _run(Namespace(quiet=False, command="info", execute=twice)) == 0
    assert capsys.readouterr().err.splitlines() == [f"{name}.urdf: odd (a warning, not an error)" for name in "ab"]


@pytest.mark.parametrize("arguments", [[], ["fly"], ["run"], ["run", "sway", "--physics", "magic"]])
def test_a_wrong_command_line_is_bad_input(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_check_names_every_mistake_with_line_and_closest_key(tmp_path, capsys):
    file = tmp_path / "broken.yaml"
    file.write_text(BROKEN)
    assert main(["check", str(file)]) == 2
    message = capsys.readouterr().err
    assert f"{file}:6" in message
    assert "size" in message
    assert "half_sitting" in message
    for files in (["sway", str(file)], [str(file), "sway"]):
        assert main(["check", *files]) == 2
        assert "sway: ok" in capsys.readouterr().out


def test_check_passes_what_is_bundled(capsys):
    assert main(["check", "sway", "table_hand"]) == 0
    assert capsys.readouterr().out == "sway: ok\ntable_hand: ok\n"


def test_check_looks_at_the_stances_and_motions_of_a_plan(tmp_path, capsys):
    file = tmp_path / "p.plan.yaml"
    assert main(["plan", "sway", "-o", str(file)]) == 0
    assert main(["check", str(file)]) == 0
    file.write_text(re.sub(r'knots: \["\S+ ', 'knots: ["here ', file.read_text(), count=1))
    capsys.readouterr()
    assert main(["check", str(file)]) == 2
    assert "stances[1]" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "no_such_scenario"],
        ["run", "sway", "--set", "environment.friction"],
        ["run", "sway", "--set", "simulation.dtt=0.001"],
        ["verify", "no_such_run"],
        ["replay", "no_such_run"],
        ["plot", "no_such_run"],
        ["info", "no_such_thing"],
        ["simulate", "no_such_plan.yaml"],
    ],
)
def test_bad_input_is_one_message_without_traceback(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    message = capsys.readouterr().err
    assert message.strip()
    assert "Traceback" not in message
    assert list(tmp_path.iterdir()) == []  # nothing was written


def test_an_internal_error_is_said_to_be_one(monkeypatch, capsys):
    monkeypatch.setattr(info, "run", lambda _: 1 / 0)
    assert main(["info"]) == 3
    assert "internal error" in capsys.readouterr().err


def test_a_command_that_is_interrupted_does_not_count_as_done(monkeypatch, capsys):
    def stopped(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(info, "run", stopped)
    assert main(["info"]) == 128 + signal.SIGINT  # as shells have it
    assert capsys.readouterr().err == "interrupted\n"


def test_garbage_is_looked_for_seldom_while_a_command_runs(monkeypatch):
    before, seen = gc.get_threshold(), []
    monkeypatch.setattr(info, "run", lambda _: seen.append(gc.get_threshold()) or 0)
    assert main(["info"]) == 0
    assert seen == [(GC_THRESHOLD, *before[1:])]
    assert gc.get_threshold() == before


def test_what_the_system_refuses_is_told_with_the_place(monkeypatch, capsys):
    """No permission, no room on the disk: no mistake of the program."""

    def refused(arguments):
        raise PermissionError(13, "Permission denied", "runs/walk")

    monkeypatch.setattr(info, "run", refused)
    assert main(["info", "sway"]) == 2
    assert capsys.readouterr().err == "runs/walk: Permission denied\n"


@pytest.mark.slow
def test_output_that_finds_no_room_is_no_mistake_of_the_program():
    """Neither what is written in between, nor what is left for the end."""
    for arguments in (["info"], ["check", "sway"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([sys.executable, "-m", "mcplan", *arguments], stdout=full, stderr=subprocess.PIPE)
        assert (done.returncode, done.stderr) == (2, b"output: No space left on device\n")


def test_output_of_which_a_full_disk_leaves_nothing_in_the_buffer_is_told_of_too():
    code = (
        "import sys\nfrom mcplan.cli.main import main\nfrom mcplan.cli import info\n"
        "info.run = lambda arguments: print('x' * 20_000)\nsys.exit(main(['info']))"
    )
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (2, b"output: No space left on device\n")


def test_a_full_disk_is_not_that_of_the_output_where_this_takes_more(monkeypatch, capfd):
    """Compiled kernels, temporary files: what writes them says no name."""

    def refused(arguments):
        print("found so far")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(info, "run", refused)
    temporary = tempfile.gettempdir()
    assert main(["info", "sway"]) == 2
    said = capfd.readouterr()
    assert said.out.split("\n")[0] == "found so far"
    kernels = f"the compiled kernels ({cache_directory()})"
    where = f"no room left on the disk of {temporary}, of {kernels}, or of the working directory"
    assert said.err == f"{where}: No space left on device\n"
    print("and on")
    assert capfd.readouterr().out == "and on\n"


def test_info_speaks_to_people_and_to_programs(capsys):
    assert main(["info"]) == 0
    assert "hrp2" in capsys.readouterr().out
    assert main(["info", "hrp2", "--json"]) == 0
    robot = json.loads(capsys.readouterr().out)
    assert robot["nv"] == 34
    assert robot["patches"]["left_sole"]["link"] == "LLEG_LINK5"
    assert main(["info", "table_hand", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["surfaces"] == ["floor", "table"]


@pytest.mark.parametrize("name", ["hrp2", "arm7"])
def test_info_of_a_robot_has_the_limits_of_its_joints_below_their_names(name, capsys):
    assert main(["info", name, "--json"]) == 0
    joints = json.loads(capsys.readouterr().out)["joints"]
    assert main(["info", name]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    (names,) = (words[1:5] for words in lines if words[:1] == ["joint"])
    limits = shared.robot(name).limits
    for index, joint in enumerate(shared.robot(name).joint_names):
        (values,) = (words[1:] for words in lines if words[:1] == [joint])
        for key, value in zip(names, values, strict=True):
            assert float(value) == pytest.approx(getattr(limits, key)[index], abs=0.06)
            assert joints[joint][key] == getattr(limits, key)[index]


@pytest.mark.parametrize("physics", ["qp", "contact"])
def test_a_state_machine_is_printed_with_the_criteria_of_the_physics_that_is_given(physics, tmp_path, capsys):
    plan = shared.planned("step")
    save_plan(plan, tmp_path / "step.plan.yaml")
    expected, *others = (
        entries_of(machine_of(plan), plan.scenario.control_in(name))
        for name in sorted(("qp", "contact"), key=physics.__ne__)
    )
    assert expected not in others
    assert main(["info", str(tmp_path / "step.plan.yaml"), "--fsm", "--json", "--physics", physics]) == 0
    assert json.loads(capsys.readouterr().out)["states"] == expected


def test_info_of_a_plan_tells_its_motions(tmp_path, capsys):
    """How long each takes, and which bodies come nearest."""
    file = tmp_path / "plan.yaml"
    assert main(["plan", "sway", "--set", "control.pace=slow", "-o", str(file)]) == 0
    capsys.readouterr()
    assert main(["info", str(file), "--json"]) == 0
    first, *motions = json.loads(capsys.readouterr().out)["motions"]
    assert first is None
    assert main(["info", str(file)]) == 0
    text = capsys.readouterr().out
    for motion in motions:
        assert motion["duration"] > 0.5
        line = (
            f"{motion['duration']:5.1f} s  {1e3 * motion['clearance']:.1f} mm between {' and '.join(motion['between'])}"
        )
        assert line in text


def test_a_plan_is_not_written_over(tmp_path, capsys):
    file = tmp_path / "plan.yaml"
    file.write_text("precious")
    assert main(["plan", "sway", "-o", str(file)]) == 2
    assert "--force" in capsys.readouterr().err
    assert file.read_text() == "precious"
    assert main(["plan", "sway", "-o", str(file), "--force"]) == 0
    assert main(["verify", str(file)]) == 0


@pytest.mark.parametrize("looked", [False, True])
def test_a_search_that_fails_keeps_the_plan_and_leaves_what_it_looked_at(looked, tmp_path, monkeypatch, capsys):
    scenario, tree = mc.load_scenario("sway"), SearchTree()
    if looked:
        tree.add_node(None, "start", scenario.start.contacts, scenario.start.q, 0.0, 1.0)

    def no_plan(scenario, seed):
        failure = PlanningFailed("sway: no plan")
        failure.tree = tree
        raise failure

    monkeypatch.setattr(plan_command, "plan_of", no_plan)
    file, beside = tmp_path / "p.plan.yaml", tmp_path / "p.plan.tree.json"
    file.write_text("precious")
    beside.write_text("of before")
    assert main(["plan", "sway", "-o", str(file), "--force"]) == 1
    said = capsys.readouterr().err
    assert file.read_text() == "precious"
    assert f"{file} is the one that was there before" in said
    if looked:
        assert read_tree(beside)[2] == "sway: no plan"
    else:
        assert not beside.exists()
        assert f"{beside}, of an earlier search, is removed" in said


def test_a_plan_that_is_run_is_said_to_be_planned_anew(tmp_path, monkeypatch, capsys):
    file = tmp_path / "p.yaml"
    assert main(["plan", "sway", "-o", str(file)]) == 0
    monkeypatch.setattr(execution, "execute", lambda plan, arguments: 0)
    assert main(["run", str(file)]) == 0
    assert "`mcplan simulate` executes it" in capsys.readouterr().err


def test_run_plans_simulates_certifies_and_writes_everything(tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "mcplan.cli.main", "run", "sway", "--set", "simulation.dt=0.005", "-o", str(out)]
    command += ["--seed", "7"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "slowest tick: " in done.stdout
    names = {path.name for path in out.iterdir()}
    assert names >= {"plan.yaml", "run.npz", "report.json", "replay.html"}
    assert json.loads((out / "report.json").read_text())["success"] is True
    assert (out / "replay.html").stat().st_size > 100_000
    assert mc.load_run(out).record.seed == 7
    assert main(["verify", str(out)]) == 0


@pytest.mark.parametrize("name", ["../elsewhere", "walks/first", "/", ".."])
def test_results_stay_below_runs_whatever_a_scenario_is_called(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = [new_directory(name, None, False) for _ in range(2)]
    assert len(set(made)) == 2
    assert all(path.resolve().parent == tmp_path / "runs" for path in made)


def test_no_results_of_an_earlier_run_are_left_where_one_finds_no_plan(tmp_path):
    for name in ("plan.yaml", "plan.tree.json", "run.npz", "report.json", "replay.html", "mine.txt"):
        (tmp_path / name).write_text("of before")
    write_failure(tmp_path, mc.load_scenario("sway"), PlanningFailed("no way"))
    assert {path.name for path in tmp_path.iterdir()} == {"scenario.yaml", "report.html", "mine.txt"}


@pytest.mark.parametrize("seed", ["-1", "x", "1.5", "²"])
def test_a_seed_is_a_whole_number(seed, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["plan", "sway", "--seed", seed])
    assert stop.value.code == 2
    assert "is not a whole number from 0 on" in capsys.readouterr().err


def test_a_physics_that_would_hold_what_may_slide_is_refused_before_any_work(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(execution, "plan_of", lambda *arguments: pytest.fail("it is planned"))
    file = tmp_path / "slide.yaml"
    file.write_text(
        "mcplan: 1\nname: slide\nrobot: hrp2\nenvironment:\n  surfaces:\n    - {name: floor, size: [4, 2]}\n"
        "start:\n  posture: half_sitting\n  base: {xyz: [0, 0, 0.649]}\n  contacts:\n"
        "    - {patch: left_sole, surface: floor, x: 0, y: 0.1, yaw: 0}\n"
        "    - {patch: right_sole, surface: floor, x: 0, y: -0.1, yaw: 0}\n"
        "goal:\n  contacts: [{patch: left_sole, surface: floor, slide: x}]\n"
    )
    assert main(["check", str(file)]) == 0
    assert main(["run", str(file), "--physics", "contact"]) == 2
    assert f"{file}:14: goal.contacts[0].slide: the physics contact and mujoco know no slide" in capsys.readouterr().err


@pytest.mark.parametrize(("freedom", "axes"), [("slide", "x"), ("hinge", "[x, y]"), ("hinge", "[z, x]")])
def test_a_grip_that_slides_or_has_two_hinges_is_refused_by_mujoco_before_any_work(freedom, axes, monkeypatch, capsys):
    monkeypatch.setattr(execution, "plan_of", lambda *arguments: pytest.fail("it is planned"))
    goal = f"goal.contacts=[{{patch: left_grip, surface: rung3, {freedom}: {axes}}}]"
    assert main(["run", "ladder", "--set", goal, "--physics", "mujoco"]) == 2
    assert f"goal.contacts[0].{freedom}: a grasp in the physics mujoco holds" in capsys.readouterr().err


def test_a_solver_that_is_not_installed_is_refused_before_any_work(monkeypatch, capsys):
    monkeypatch.setattr(execution, "plan_of", lambda *arguments: pytest.fail("it is planned"))
    monkeypatch.setattr("mcplan.whole_body.settings.find_spec", lambda name: None)
    assert main(["run", "sway", "--set", "control.solver=PIQP"]) == 2
    assert "control.solver: solver PIQP is not installed: pip install piqp" in capsys.readouterr().err


def test_what_was_changed_of_a_start_is_said(tmp_path, capsys):
    raised = "start.posture={name: half_sitting, joints: {LARM_JOINT1: -0.05}}"
    assert main(["plan", "sway", "--set", raised, "-o", str(tmp_path / "sway.plan.yaml")]) == 0
    output = capsys.readouterr()
    assert "start: " in output.err
    assert "LARM_JOINT1 by +0.0" in output.err
    assert "LARM_JOINT1" not in output.out


@pytest.mark.parametrize(
    "command",
    [
        ["run", "sway", "-o", "{file}/run"],
        ["plan", "sway", "-o", "{file}/sway.plan.yaml"],
        ["info", "sway", "--fsm", "-o", "{file}/machine.svg"],
        ["run", "sway", "-o", "{full}"],
        ["run", "sway", "-o", "{file}", "--force"],
        ["plan", "sway", "-o", "{folder}"],
        ["plan", "sway", "-o", "{folder}", "--force"],
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_any_work(command, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("mcplan.planning.plan", lambda *a, **k: pytest.fail("it is planned"))
    (tmp_path / "file").write_text("kept")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "something").write_text("kept")
    (tmp_path / "folder.yaml").mkdir()
    places = {"file": tmp_path / "file", "full": tmp_path / "full", "folder": tmp_path / "folder.yaml"}
    assert main([part.format(**places) for part in command]) == 2
    said = capsys.readouterr().err
    assert re.search("is a file|is a directory; expected the name of a file|exists and is kept", said)


def test_without_a_place_results_go_where_there_are_none_or_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = Namespace(physics=None, live=False, output=None, force=False)
    full = tmp_path / "runs" / "new"
    full.mkdir(parents=True)
    (full / "run.npz").write_text("of before")
    execution.check_before_work(mc.load_scenario("sway"), arguments)
    (full / "run.npz").unlink()
    full.rmdir()
    (tmp_path / "runs").rmdir()
    (tmp_path / "runs").write_text("no directory")
    with pytest.raises(InputError, match="runs: is a file; expected the name of a directory"):
        execution.check_before_work(mc.load_scenario("sway"), arguments)


@pytest.mark.parametrize("ending", [KeyboardInterrupt, InputError("no such physics")])
def test_a_simulation_that_records_nothing_leaves_no_directory(ending, tmp_path, monkeypatch, capsys):
    def ended(*_, **__):
        raise ending

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(execution, "certify_plan", lambda plan: True)
    monkeypatch.setattr("mcplan.sim.simulate.simulate", ended)
    arguments = Namespace(physics=None, live=False, output=None, force=False, seed=0)
    with pytest.raises((KeyboardInterrupt, InputError)):
        execution.execute(SimpleNamespace(scenario=mc.load_scenario("sway")), arguments)
    assert list(tmp_path.iterdir()) == []
    assert ("nothing is written" in capsys.readouterr().err) == (ending is KeyboardInterrupt)


@pytest.mark.parametrize("passed", [True, False])
@pytest.mark.parametrize("proven", [True, False])
def test_a_run_succeeds_where_the_certificates_of_plan_and_run_hold(proven, passed, short_run, tmp_path, monkeypatch):
    report = Report("sway", (Check("slip", 0.0, "m", "<= 1", True), Check("clearance", 0.0, "m", ">= 0", passed)), {})
    monkeypatch.setattr(execution, "certify_plan", lambda plan: proven)
    monkeypatch.setattr("mcplan.sim.simulate.simulate", lambda plan, **options: short_run)
    monkeypatch.setattr("mcplan.certificate.verify.verify", lambda run: report)
    monkeypatch.setattr("mcplan.api.write_results", lambda *results: None)
    arguments = Namespace(physics=None, live=False, output=str(tmp_path), force=False, seed=0, open=False)
    status = execution.execute(SimpleNamespace(scenario=mc.load_scenario("sway")), arguments)
    assert status == (0 if proven and passed else 1)


def test_directories_that_lead_to_a_plan_are_made(tmp_path):
    path = tmp_path / "new" / "folder" / "sway.plan.yaml"
    assert main(["plan", "sway", "-o", str(path)]) == 0
    assert path.is_file()
