"""What each command does: read the arguments, call the library, say the result. One function per command."""

import json
import os
import shutil
import sys
import webbrowser
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mcplan.errors import InputError, PlanningFailed, SimulationFailed

if TYPE_CHECKING:
    from mcplan.certificate.verify import Report
    from mcplan.planning import Plan
    from mcplan.scene import Scenario
    from mcplan.sim.observer import Observer
    from mcplan.sim.run import Run
    from mcplan.view.live import LiveView
    from mcplan.view.page import Page


def run(arguments: Namespace) -> int:
    """Plan, simulate, verify, and write everything."""
    from mcplan.bars import note
    from mcplan.planning.plan_file import is_plan

    scenario = _scenario(arguments)
    if is_plan(scenario.document):
        note(f"{arguments.scenario} is a plan and planned anew; `mcplan simulate` carries it out")
    return _plan_and_execute(scenario, arguments)


def simulate(arguments: Namespace) -> int:
    """Simulate a plan file, or plan a scenario first."""
    from mcplan.planning import is_plan_file, read_plan
    from mcplan.recognise import PLAN, SCENARIO, find

    path = find(arguments.scenario, SCENARIO, PLAN)
    if not is_plan_file(path):
        return _plan_and_execute(_scenario(arguments), arguments)
    if arguments.variant is not None:
        raise InputError(f"--variant {arguments.variant}: {path} is a plan; give its scenario")
    plan = read_plan(path, overrides=_overrides(arguments))
    _refuse_early(plan.scenario, arguments)
    return _execute(plan, arguments)


def plan(arguments: Namespace) -> int:
    """Plan a scenario and write the plan file."""
    from mcplan.planning import write_plan
    from mcplan.planning.search.tree_file import tree_path, write_tree
    from mcplan.progress import Working
    from mcplan.run_directory import check_writable

    scenario = _scenario(arguments)
    path = Path(arguments.output or f"{scenario.name}.plan.yaml")
    check_writable(path, arguments.force)
    try:
        result = _plan(scenario, arguments)
    except PlanningFailed as failure:
        if failure.tree is not None:
            write_tree(failure.tree, scenario, tree_path(path), str(failure))
            print(f"search: {tree_path(path)}", file=sys.stderr)
        raise
    write_plan(result, path)
    if result.tree is not None:
        write_tree(result.tree, scenario, tree_path(path))
    print(result.summary())
    print(f"plan: {path}")
    with Working("checking"):
        return 0 if _proven(result) else 1


def verify(arguments: Namespace) -> int:
    """Recompute a run and print its certificate."""
    from mcplan.certificate.verify import verify as certify
    from mcplan.progress import Working
    from mcplan.recognise import PLAN, RUN, find

    if arguments.engines:
        from mcplan.certificate.engines import engine_class

        for name in arguments.engines:
            engine_class(name)  # what is not there is said before any work
    path = find(arguments.run, RUN, PLAN)
    with Working("verifying"):
        if not arguments.engines:
            report = certify(path)
            content = report.to_json() if arguments.json else {}
        else:
            from mcplan.certificate.reproduction import with_engines

            report, engines = with_engines(str(path), arguments.engines)
            content = report.to_json() | {"engines": engines}
    print(json.dumps(content, indent=1) if arguments.json else report.text(_width()))
    return 0 if report.success else 1


def replay(arguments: Namespace) -> int:
    """Write the replay as a page or as pictures, or serve it on loopback until interrupted."""
    from mcplan.progress import Working
    from mcplan.replay_files import refuse_files, wanted_files, write_files

    files = wanted_files(arguments)
    refuse_files(files, arguments.force, arguments.speed)
    with Working("drawing"):
        # pictures show no certificate
        page = _replay_page(arguments.run, not files or any(file.kind == "html" for file in files))
    if files:
        with Working("drawing"):
            write_files(page, files, arguments.speed)
        for file in files:
            print(f"replay: {file.path}")
        if arguments.open:
            webbrowser.open(files[0].path.resolve().as_uri())
        return 0
    from mcplan.view.server import PageServer, address_text

    try:
        server = PageServer(page.text(), arguments.port)
    except (OSError, OverflowError) as error:
        raise InputError(f"port {arguments.port} of 127.0.0.1 cannot be used: {error}") from error
    with server:
        print(f"replay: {address_text(server.url)}\nstop with Ctrl-C", flush=True)
        if arguments.open:
            webbrowser.open(server.url)
        server.wait()
    return 0


def report(arguments: Namespace) -> int:
    """Write the report of a run that is there."""
    from mcplan.progress import Working
    from mcplan.recognise import RUN, find
    from mcplan.run_directory import check_writable, save_report

    run = find(arguments.run, RUN)
    home = run if run.is_dir() else run.parent
    path = Path(arguments.output) if arguments.output else home / "report.html"
    check_writable(path, arguments.force)
    with Working("verifying"):
        save_report(_recorded(run), path)
    print(f"report: {path}")
    if arguments.open:
        webbrowser.open(path.resolve().as_uri())
    return 0


def plot(arguments: Namespace) -> int:
    """Plot runs."""
    from dataclasses import replace

    from mcplan.recognise import RUN, find
    from mcplan.run_directory import check_writable
    from mcplan.sim.run_file import load_run, load_timing
    from mcplan.view.plots import FIGURES, save_plots

    if arguments.together:
        return _plot_together(arguments)
    places: list[tuple[Path, Path]] = []
    for name in arguments.runs:
        path = find(name, RUN)
        home = path if path.is_dir() else path.parent
        directory = Path(arguments.output) if arguments.output else home / "plots"
        if arguments.output and len(arguments.runs) > 1:
            directory = directory / home.name
        for title in FIGURES:
            check_writable(directory / f"{title}.{arguments.format}", arguments.force)
        if directory in [place for _, place in places]:
            raise InputError(f"two runs are called {home.name}: plot them into directories of their own")
        places.append((path, directory))
    for path, directory in places:
        for figure in save_plots(replace(load_run(path), timing=load_timing(path)), directory, arguments.format):
            print(figure)
    return 0


def _plot_together(arguments: Namespace) -> int:
    """Plot several runs into one figure."""
    from mcplan.recognise import RUN, find
    from mcplan.run_directory import check_writable
    from mcplan.view.plots import save_together

    path = Path(arguments.together)
    if path.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise InputError(f"--together {path}: expected .png, .pdf or .svg")
    check_writable(path, arguments.force)
    found = [find(name, RUN) for name in arguments.runs]
    names = [(run if run.is_dir() else run.parent).name for run in found]
    if len(set(names)) < len(names):  # then their places tell them apart
        names = [str(run) for run in found]
    save_together([(name, _recorded(run)) for name, run in zip(names, found, strict=True)], path)
    print(path)
    return 0


def export(arguments: Namespace) -> int:
    """Write a run in the format of another program."""
    from mcplan.export import export_run, refuse_missing
    from mcplan.recognise import RUN, find
    from mcplan.run_directory import check_writable
    from mcplan.sim.run_file import load_run

    path = Path(arguments.output)
    check_writable(path, arguments.force)
    refuse_missing(arguments.to, arguments.rate)
    for file in export_run(load_run(find(arguments.run, RUN)), arguments.to, path, arguments.rate):
        print(file)
    return 0


def check(arguments: Namespace) -> int:
    """Print every problem of every file."""
    from mcplan.recognise import EXPERIMENT, PLAN, ROBOT, SCENARIO, find, kind_of
    from mcplan.scene.load import check_file, doubts_of
    from mcplan.sweep.command import check_experiment

    found = 0
    for file in arguments.files:
        about, doubts = "", []
        try:
            path = find(file, SCENARIO, PLAN, ROBOT, EXPERIMENT)
        except InputError as error:  # what cannot be read at all is said, and the next file is looked at
            problems = list(error.problems)
        else:
            if kind_of(path) == EXPERIMENT:
                problems, about = check_experiment(str(path))
            else:
                problems, doubts = check_file(path), doubts_of(path)
        found += len(problems)
        for problem in problems:
            print(problem, file=sys.stderr)
        for doubt in doubts:
            print(f"{doubt} (a doubt, not a mistake)", file=sys.stderr)
        if not problems:
            print(f"{file}: ok{about}")
    return 2 if found else 0


def sweep(arguments: Namespace) -> int:
    """Run an experiment and write its results."""
    from mcplan.recognise import EXPERIMENT, find
    from mcplan.sweep.command import run_experiment

    return run_experiment(find(arguments.experiment, EXPERIMENT), arguments)


def info(arguments: Namespace) -> int:
    """Describe a robot or a scenario, or list the bundled ones."""
    from mcplan.describe import bundled, describe

    if arguments.fsm:
        return _machine(arguments)
    if arguments.stance is not None:
        return _stance(arguments)
    if arguments.output or arguments.physics:
        raise InputError("-o and --physics are about a state machine or a stance: add --fsm or --stance K")
    description = describe(arguments.name, arguments.package_dir) if arguments.name else bundled()
    if arguments.json:
        print(json.dumps(description.to_json(), indent=1))
    else:
        print(description.text())
    return 0


def _machine(arguments: Namespace) -> int:
    """Print the state machine of a scenario or plan, and draw it."""
    from mcplan.control.listing import entries_of, listing, machine_of
    from mcplan.planning import is_plan_file, plan, read_plan
    from mcplan.recognise import PLAN, SCENARIO, find
    from mcplan.run_directory import check_writable
    from mcplan.scene.load import load_scenario

    if not arguments.name:
        raise InputError("--fsm: the machine of what? Name a scenario or a plan")
    if arguments.output:
        from mcplan.view.machine import check_suffix

        check_suffix(Path(arguments.output))
        check_writable(Path(arguments.output), arguments.force)
    path = find(arguments.name, SCENARIO, PLAN)
    made = read_plan(path) if is_plan_file(path) else plan(load_scenario(path))
    if made.scenario.control.type != "whole_body":
        raise InputError(f"--fsm: {made.scenario.name} is driven by {made.scenario.control.type}, which has no states")
    scenario, states = made.scenario, machine_of(made)
    settings = scenario.control_in(arguments.physics or scenario.simulation.physics)
    if arguments.json:
        print(json.dumps({"states": entries_of(states, settings)}, indent=1))
    else:
        print(listing(states, settings))
    if arguments.output:
        from mcplan.view.machine import save_machine

        path = Path(arguments.output)
        save_machine(states, settings, path, scenario.name)
        print(f"drawn: {path}", file=sys.stderr)
    return 0


def robot(arguments: Namespace) -> int:
    """Propose, check or show a robot file."""
    from mcplan import robot_commands

    return getattr(robot_commands, arguments.action)(arguments)


def scene(arguments: Namespace) -> int:
    """Make a scenario around a mesh, or show one."""
    from mcplan import scene_commands

    return getattr(scene_commands, arguments.action)(arguments)


def _stance(arguments: Namespace) -> int:
    """Print the statics of a stance of a plan or scenario, and draw its regions."""
    from mcplan.describe_stance import stance_lines, stance_statics, stance_values
    from mcplan.planning import is_plan_file, plan, read_plan
    from mcplan.recognise import PLAN, SCENARIO, find
    from mcplan.run_directory import check_writable
    from mcplan.scene.load import load_scenario

    if not arguments.name:
        raise InputError("--stance: of what? Name a plan or a scenario")
    if arguments.physics:
        raise InputError("--physics is about a state machine: add --fsm")
    if arguments.output:
        if Path(arguments.output).suffix.lower() not in (".svg", ".png", ".pdf"):
            raise InputError(f"-o {arguments.output}: a stance is drawn as .svg, .png or .pdf")
        check_writable(Path(arguments.output), arguments.force)
    path = find(arguments.name, SCENARIO, PLAN)
    made = read_plan(path) if is_plan_file(path) else plan(load_scenario(path))
    found = stance_statics(made, arguments.stance)
    if arguments.json:
        print(json.dumps(stance_values(found, arguments.stance), indent=1))
    else:
        print("\n".join(stance_lines(found, arguments.stance)))
    if arguments.output:
        from mcplan.view.plots.stance import save_stance

        regions = {"region": found.region, "within torque limits": found.torque_region}
        regions |= {} if found.zmp is None else {"ZMP": found.zmp}
        title = f"{made.scenario.name}, stance {arguments.stance}: {found.name}"
        save_stance(Path(arguments.output), title, found.contacts, found.com, regions)
        print(f"drawn: {arguments.output}", file=sys.stderr)
    return 0


def bench(arguments: Namespace) -> int:
    """Measure, and compare with the peers."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported
    from mcplan.bench.measure import measure
    from mcplan.bench.peers import Peers
    from mcplan.bench.settings import QUICK, BenchSettings
    from mcplan.bench.table import show

    peers = Peers.find(arguments.peers) if arguments.peers else None
    report = measure(QUICK if arguments.quick else BenchSettings(), peers, lambda text: print(text, file=sys.stderr))
    if arguments.json:
        print(json.dumps(report.to_json(), indent=1))
    else:
        show(report)
    for failure in report.failures:
        print(failure, file=sys.stderr)
    return 1 if report.failures else 0


def _replay_page(name: str, judged: bool) -> "Page":
    """Return the page of a run, of a plan with its search tree if that lies beside it, or of a search tree.

    Parameters
    ----------
    judged : whether the page says what the certificate says.
    """
    from mcplan.certificate.verify import verify as certify
    from mcplan.planning import read_plan
    from mcplan.planning.search.tree_file import read_tree, tree_path
    from mcplan.recognise import PLAN, RUN, TREE, find, kind_of
    from mcplan.view.plan_replay import search_page, stances_page
    from mcplan.view.replay import run_page

    path = find(name, RUN, PLAN, TREE)
    kind = kind_of(path)
    if kind == TREE:
        return search_page(*read_tree(path))
    if kind == PLAN:
        beside, plan = tree_path(path), read_plan(path)
        return stances_page(plan, read_tree(beside)[1] if beside.is_file() else None, certify(plan) if judged else None)
    run = _recorded(path)
    return run_page(run, certify(run) if judged else None)


def _recorded(path: Path) -> "Run":
    """Return a run with its clock times, where they are beside it."""
    from dataclasses import replace

    from mcplan.sim.run_file import load_run, load_timing

    return replace(load_run(path), timing=load_timing(path))


def _overrides(arguments: Namespace) -> dict[str, str]:
    overrides = {}
    for item in arguments.overrides:
        key, equals, value = item.partition("=")
        if not equals or not key.strip():
            raise InputError(f"--set {item}: expected KEY=VALUE, for example environment.friction=0.4")
        overrides[key.strip()] = value
    return overrides


def _scenario(arguments: Namespace) -> "Scenario":
    from mcplan.bars import note
    from mcplan.recognise import PLAN, SCENARIO, find
    from mcplan.scene.doubts import replaced_friction
    from mcplan.scene.load import load_scenario

    overrides = _overrides(arguments)
    if arguments.robot is not None:
        # a path is meant from here, and not from the scenario's folder
        is_path = Path(arguments.robot).suffix or len(Path(arguments.robot).parts) > 1
        overrides["robot"] = str(Path(arguments.robot).resolve()) if is_path else arguments.robot
    scenario = load_scenario(find(arguments.scenario, SCENARIO, PLAN), overrides, arguments.variant)
    if "environment.friction" in overrides and (replaced := replaced_friction(scenario.document)):
        note(str(replaced))
    return scenario


def _refuse_early(scenario: "Scenario", arguments: Namespace) -> None:
    """Refuse what could not be simulated or written, before any work."""
    from mcplan.run_directory import check_writable
    from mcplan.sim.disturbance import refuse_what_is_not_there
    from mcplan.sim.simulate import refuse_physics

    physics = arguments.physics or scenario.simulation.physics
    refuse_physics(physics)
    refuse_what_is_not_there(scenario, physics)
    check_writable(Path(arguments.output or Path("runs") / scenario.name / "new"), arguments.force)


def _plan_and_execute(scenario: "Scenario", arguments: Namespace) -> int:
    """Plan and simulate, while a second process compiles what control will need, if this is a first run."""
    from mcplan.sim.first_run import compiling_ahead  # takes a second: what is wrong with the scenario is said before

    _refuse_early(scenario, arguments)
    with compiling_ahead(arguments.physics or scenario.simulation.physics):
        try:
            made = _plan(scenario, arguments)
        except PlanningFailed as failure:
            _keep_failure(scenario, failure, arguments)
            raise
        return _execute(made, arguments)


def _keep_failure(scenario: "Scenario", failure: PlanningFailed, arguments: Namespace) -> None:
    """Write the report of a scenario that has no plan; say where it is."""
    from mcplan.run_directory import new_directory, write_failure

    directory = new_directory(scenario.name, arguments.output, arguments.force)
    write_failure(directory, scenario, failure)
    print(f"report: {directory / 'report.html'}", file=sys.stderr)


def _plan(scenario: "Scenario", arguments: Namespace) -> "Plan":
    from mcplan.bars import note
    from mcplan.compiling import WATCH
    from mcplan.planning import plan as make_plan
    from mcplan.progress import PlanningProgress

    WATCH.watch()
    note(f"planning {scenario.name} ...")
    try:
        with PlanningProgress() as progress:
            made = make_plan(scenario, seed=arguments.seed, progress=progress.update)
        for notice in made.notices:
            note(notice)
        return made
    except PlanningFailed as failure:
        said = PlanningFailed(f"{scenario.name}: no plan\n{failure}")
        said.tree = failure.tree
        raise said from failure


def _proven(plan: "Plan") -> bool:
    """Whether a plan's certificate holds, its goal included; what does not hold is printed."""
    from mcplan.certificate.verify import verify as certify

    report = certify(plan)
    broken = report.failures or [str(item) for item in plan.goals if not item.met]
    for failure in broken:
        print(f"plan: {failure}", file=sys.stderr)
    return not broken


def _execute(plan: "Plan", arguments: Namespace) -> int:
    """Simulate, verify, write, and say how it went."""
    from contextlib import ExitStack

    from mcplan.bars import note
    from mcplan.certificate.verify import verify as certify
    from mcplan.compiling import WATCH
    from mcplan.progress import ProgressBar, Working
    from mcplan.run_directory import new_directory, write_results
    from mcplan.sim.simulate import simulate as execute
    from mcplan.sim.slowest_tick import slowest_tick

    WATCH.watch()
    with Working("checking"):
        proven = _proven(plan)
    if not proven:
        note("the plan's own certificate does not hold (above); it is simulated all the same")
    with ExitStack() as shown:
        observers: list[Observer] = [shown.enter_context(ProgressBar())]
        if arguments.live:
            observers.append(shown.enter_context(_live(plan, arguments)))
        directory = new_directory(plan.scenario.name, arguments.output, arguments.force)
        stopped: SimulationFailed | None = None
        try:
            result = execute(plan, physics=arguments.physics, seed=arguments.seed, observers=observers)
        except SimulationFailed as failure:
            if failure.run is None:
                raise
            stopped, result = failure, failure.run
    with Working("verifying"):
        report = certify(result)
    with Working("writing"):
        write_results(directory, plan, result, report)
    _say(report, directory)
    if slowest := slowest_tick(result):
        compiled = f"; kernels were compiled meanwhile, for {WATCH.seconds:.0f} s" if WATCH.seconds >= 1.0 else ""
        print(slowest + compiled)
    if stopped:
        print(stopped, file=sys.stderr)
    if arguments.open:
        webbrowser.open((directory / "replay.html").resolve().as_uri())
    return 0 if proven and report.success and not stopped else 1


def _live(plan: "Plan", arguments: Namespace) -> "LiveView":
    """Return a live view; where it is to be seen is printed."""
    from mcplan.view.live import LiveView

    view = LiveView(plan, arguments.port)
    print(f"live: {view.address}", file=sys.stderr, flush=True)
    if arguments.open:
        webbrowser.open(view.url)
    return view


def _width() -> int | None:
    """Return how many characters a line has on the terminal, None where nobody looks at one."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _say(report: "Report", directory: Path) -> None:
    print(report.text(_width()))
    files: Sequence[tuple[str, str]] = (
        ("report", "report.html"), ("replay", "replay.html"), ("record", "run.npz"), ("certificate", "report.json")
    )  # fmt: skip
    for what, name in files:
        print(f"{what}: {directory / name}")
