"""Common part of the commands that plan or simulate: progress, certificates, output files."""

import shutil
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mcplan.cli.options import add_output, add_physics, add_scenario, check_port, open_in_browser, port_number
from mcplan.errors import PlanningFailed, SimulationFailed
from mcplan.util.files import check_writable

if TYPE_CHECKING:
    from mcplan.certificate.verify import Report
    from mcplan.planning.plan import Plan
    from mcplan.scenario.scenario import Scenario
    from mcplan.sim.observer import Observer
    from mcplan.view.live import LiveView


def plan_of(scenario: "Scenario", seed: int = 0) -> "Plan":
    """Plan a scenario, with progress.

    Raises
    ------
    PlanningFailed
        No plan was found; the error has the scenario's name and the search tree.
    """
    from mcplan.planning.planner import plan as make_plan
    from mcplan.util.bars import note

    note(f"planning {scenario.name} ...")
    try:
        plan = make_plan(scenario, seed=seed, progress=True)
        for notice in plan.notices:
            note(notice)
        return plan
    except PlanningFailed as failure:
        scenario_failure = PlanningFailed(f"{scenario.name}: no plan\n{failure}")
        scenario_failure.tree = failure.tree
        raise scenario_failure from failure


def plan_at(path: Path) -> "Plan":
    """Return the plan in a file, or plan its scenario."""
    from mcplan.planning.plan_file import is_plan_file, load_plan
    from mcplan.scenario.load import load_scenario
    from mcplan.util.bars import Working

    if not is_plan_file(path):
        return plan_of(load_scenario(path))
    with Working("reading"):  # motions missing in the file are computed
        return load_plan(path)


def certify_plan(plan: "Plan") -> bool:
    """Whether a plan's certificate holds, including its goal; print failed checks."""
    from mcplan.certificate.verify import verify as certify

    report = certify(plan)
    failures = report.failures or [str(item) for item in plan.goals if not item.met]
    for failure in failures:
        print(f"plan: {failure}", file=sys.stderr)
    return not failures


def add_execution(parser: ArgumentParser, plans: bool = False) -> None:
    """Add the arguments of an execution: physics, live view, output."""
    add_scenario(parser, plans)
    add_physics(parser)
    parser.add_argument("--live", action="store_true", help="show the motion while it is simulated, on 127.0.0.1")
    parser.add_argument("--port", type=port_number, default=0, help="port of --live (default: a free one)")
    add_output(parser, "directory of the results (default runs/NAME, runs/NAME-2, ...)")
    parser.add_argument("--open", action="store_true", help="open the replay (with --live also that) in the browser")


def check_before_work(scenario: "Scenario", arguments: Namespace) -> None:
    """Check physics and output before any work."""
    from mcplan.sim.disturbance import validate_disturbances
    from mcplan.sim.simulate import find_back_end

    physics = arguments.physics or scenario.simulation.physics
    find_back_end(physics)
    validate_disturbances(scenario, physics)
    if arguments.live:
        check_port(arguments.port)
    if arguments.output:
        check_writable(Path(arguments.output), arguments.force, folder=True)
    else:
        check_writable(Path("runs"), force=True, folder=True)  # results go into a new subdirectory


def plan_and_execute(scenario: "Scenario", arguments: Namespace) -> int:
    """Plan and simulate; in a first run a second process compiles the controller's kernels during planning."""
    from mcplan.sim.first_run import compiling_ahead  # takes a second: report mistakes of the scenario first

    check_before_work(scenario, arguments)
    with compiling_ahead(arguments.physics or scenario.simulation.physics):
        try:
            plan = plan_of(scenario, arguments.seed)
        except PlanningFailed as failure:
            _write_failure_report(scenario, failure, arguments)
            raise
        return execute(plan, arguments)


def _write_failure_report(scenario: "Scenario", failure: PlanningFailed, arguments: Namespace) -> None:
    """Write the report of a scenario without a plan; print its path."""
    from mcplan.api import new_directory, write_failure

    directory = new_directory(scenario.name, arguments.output, arguments.force)
    write_failure(directory, scenario, failure)
    print(f"report: {directory / 'report.html'}", file=sys.stderr)


def execute(plan: "Plan", arguments: Namespace) -> int:
    """Simulate, verify, write, and print the result."""
    from contextlib import ExitStack

    from mcplan.analysis.slowest_tick import describe_slowest_tick
    from mcplan.api import new_directory, write_results
    from mcplan.certificate.verify import verify as certify
    from mcplan.sim.progress_bar import ProgressBar
    from mcplan.sim.simulate import simulate
    from mcplan.util.bars import Working, note
    from mcplan.util.compiling import WATCH

    with Working("checking"):
        is_certified = certify_plan(plan)
    if not is_certified:
        note("the plan's own certificate does not hold (above); it is simulated nevertheless")
    with ExitStack() as stack:
        observers: list[Observer] = [stack.enter_context(ProgressBar())]
        if arguments.live:
            observers.append(stack.enter_context(_live(plan, arguments)))
        stopped: SimulationFailed | None = None
        try:
            result = simulate(plan, physics=arguments.physics, seed=arguments.seed, observers=observers)
        except SimulationFailed as failure:
            if failure.run is None:
                raise
            stopped, result = failure, failure.run
        except KeyboardInterrupt:
            note("nothing is written: a motion is recorded when it has ended")
            raise
    with Working("verifying"):
        report = certify(result)
    directory = new_directory(plan.scenario.name, arguments.output, arguments.force)  # only now: there are results
    with Working("writing"):
        write_results(directory, plan, result, report)
    _print_report(report, directory)
    if slowest := describe_slowest_tick(result):
        compiled = f"; kernels were compiled meanwhile, for {WATCH.seconds:.0f} s" if WATCH.seconds >= 1.0 else ""
        print(slowest + compiled)
    if stopped:
        print(stopped, file=sys.stderr)
    if arguments.open:
        open_in_browser(directory / "replay.html")
    return 0 if is_certified and report.success and not stopped else 1


def _live(plan: "Plan", arguments: Namespace) -> "LiveView":
    """Return a live view; print its address."""
    from mcplan.view.live import LiveView

    view = LiveView(plan, arguments.port)
    print(f"live: {view.address}", file=sys.stderr, flush=True)
    if arguments.open:
        open_in_browser(view.url)
    return view


def width() -> int | None:
    """Return the width of the terminal in characters, None without one."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _print_report(report: "Report", directory: Path) -> None:
    print(report.text(width()))
    files: Sequence[tuple[str, str]] = (
        ("report", "report.html"), ("replay", "replay.html"), ("record", "run.npz"), ("certificate", "report.json")
    )  # fmt: skip
    for content, name in files:
        print(f"{content}: {directory / name}")
