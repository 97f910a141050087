"""High-level Python API: planning, simulation, sweeps, reports, with progress and a live view.

Result folders: scenario, plan, record, report and replay of a run; single pages.
"""

import json
import os
import webbrowser
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcplan.analysis.readings import Readings
from mcplan.certificate.verify import Report, verify
from mcplan.control.torque_driven import TorqueController
from mcplan.errors import InputError, PlanningFailed
from mcplan.planning.plan import Plan
from mcplan.planning.plan_file import save_plan
from mcplan.planning.planner import plan as make_plan
from mcplan.planning.search.tree import tree_path, write_tree
from mcplan.record.run import Run
from mcplan.robot.robot import Robot
from mcplan.scenario.load import load_scenario
from mcplan.scenario.scenario import Scenario
from mcplan.sim.observer import Observer
from mcplan.sim.progress_bar import PlanningProgress, ProgressBar
from mcplan.sim.simulate import simulate as run_simulation
from mcplan.util.arguments import file_name, file_path, instance, whole
from mcplan.util.bars import BARS, in_notebook, note
from mcplan.util.files import check_writable, write_text
from mcplan.util.progress import ProgressCallback
from mcplan.view.replay import replay_page
from mcplan.view.report_page import failure_page, report_page
from mcplan.view.show import page_text
from mcplan.whole_body.declaration import Extra
from mcplan.whole_body.tasks.task import Task

if TYPE_CHECKING:
    from mcplan.sim.physics import Maker
    from mcplan.sweep.experiment import Experiment
    from mcplan.sweep.results import Results


def plan(
    scenario: Scenario | str | PathLike[str] | Mapping[str, Any],
    seed: int = 0,
    progress: bool | ProgressCallback = False,
) -> Plan:
    """Plan a scenario: complete its contact sequence, or search one from start and goal.

    >>> import mcplan as mc
    >>> mc.plan("sway")
    Plan('sway', hrp2, 5 stances)

    Parameters
    ----------
    scenario : a Scenario; or what `mcplan.load_scenario` takes: a bundled name, a path, a dictionary.
    seed : of the search: 0 takes candidates in their own order, another one rerolls those that are nearly as good; the
        same seed gives the same plan. A hand-written sequence leaves nothing to draw.
    progress : True shows nodes, postures, distance to the goal and time; or a function that is called with nodes, calls
        of the posture generator, and the least potential so far (about the moves that are left).

    Raises
    ------
    ScenarioError
        The scenario is not sound, or has neither ``stances`` nor ``goal``.
    PlanningFailed
        No plan is found, with what stopped it; its ``tree`` holds the record of the search.
    """
    if progress is not True:
        return make_plan(scenario, seed, progress or None)
    with PlanningProgress() as shown:
        return make_plan(scenario, seed, shown.update)


def simulate(
    plan: Plan | Scenario | str | PathLike[str] | Mapping[str, Any],
    physics: "str | Maker | None" = None,
    observers: Iterable[Observer] = (),
    seed: int = 0,
    tasks: Sequence[Task] = (),
    extra: Extra | None = None,
    controller: TorqueController | None = None,
    duration: float | None = None,
    *,
    progress: bool = False,
    live: bool | int = False,
) -> Run:
    """Execute a plan from its first stance to its end; a scenario is planned first.

    >>> import mcplan as mc
    >>> run = mc.simulate("sway")
    >>> mc.verify(run).success
    True

    Parameters
    ----------
    plan : a Plan; or a Scenario, a bundled name, or a plan or scenario by its path or as a dictionary.
    physics : back end: ``qp``, ``contact`` or ``mujoco``; None takes the scenario's; or a custom class that is
        made of a ``World`` (`mcplan.sim.simulate.back_end`).
    observers : receive every step and phase (`mcplan.Observer`).
    seed : of everything random.
    tasks : further tasks beside those of the plan (`mcplan.Task`): a class with ``rows`` is one.
    extra : further terms of each tick's program, in CVXPY.
    controller : gives the torques in place of the whole-body controller: an object with ``torque(t, terms, wrenches)``,
        as `mcplan.InverseDynamicsControl` and its like are; physics ``contact`` or ``mujoco``.
    duration : s, of a run under such a controller; None takes the scenario's.
    progress : show time, real-time factor, expected end and phase.
    live : show the motion while it is simulated, on a page of 127.0.0.1 that this opens (in a notebook below the cell);
        a number is the port.

    Raises
    ------
    InputError
        Something else than a plan, a physics or a task that is not there.
    SimulationFailed
        The simulation had to stop; ``run`` of the exception is the record up to there, or None if there is nothing.
    """
    from mcplan.document.file_kind import is_plan
    from mcplan.planning.plan_file import plan_of

    if isinstance(plan, str | PathLike | Mapping):
        scenario = load_scenario(plan)
        plan = plan_of(scenario) if is_plan(scenario.document) else make_plan(scenario)
    elif isinstance(plan, Scenario):
        plan = make_plan(plan)
    observers = list(observers) if isinstance(observers, Iterable) else observers
    with ExitStack() as open_ones:
        if live is not False and isinstance(plan, Plan):
            observers = [*observers, open_ones.enter_context(_opened(plan, live))]
        if progress and BARS.shown:
            observers = [*observers, open_ones.enter_context(ProgressBar())]
        return run_simulation(plan, physics, observers, seed, tasks, extra, controller, duration)


def sweep(
    experiment: "Experiment | str | PathLike[str] | Mapping[str, Any]",
    directory: str | PathLike[str] | None = None,
    workers: int | None = None,
    *,
    only: str = "",
    retry_failed: bool = False,
    progress: bool | Callable[[int, int, int], None] = False,
) -> "Results":
    """Run the cases that an experiment's store lacks, in separate processes, and return the table of all.

        results = mc.sweep({"mcplan": 1, "name": "walks", "scenarios": ["walk"], "steps": "plan",
                            "variants": True, "seeds": {"from": 0, "count": 20}})
        table = results.to_pandas()

    In a script this stands below ``if __name__ == "__main__":``, as with everything that starts Python processes.

    Parameters
    ----------
    experiment : the path of a file, the same as a dictionary, or an Experiment (`mcplan.load_experiment`).
    directory : of store and results; ``runs/sweeps/NAME`` by default. Cases that it holds are not run again.
    workers : processes on this machine; one per core by default.
    only : condition on the fields of a case: ``'scenario == "walk" and seed < 3'``.
    retry_failed : run cases again that did not come to a verdict.
    progress : True shows a bar; or a function of cases done, cases to do, and failed cases.

    Raises
    ------
    InputError
        Everything that is wrong with the experiment, before anything runs; Dask is not installed.
    JobFailed
        The workers are lost; finished cases are stored.
    """
    from mcplan.sweep.command import SweepProgress, results_directory
    from mcplan.sweep.experiment import Experiment, load_experiment
    from mcplan.sweep.sweep import sweep as run_missing

    if workers is not None:
        whole("sweep", "workers", workers)
    made = experiment if isinstance(experiment, Experiment) else load_experiment(experiment)
    place = results_directory(made, None) if directory is None else file_path("sweep", directory)
    if progress is not True:
        return run_missing(made, place, workers, None, only, retry_failed, progress or None)
    with SweepProgress() as shown:
        return run_missing(made, place, workers, None, only, retry_failed, shown.update)


def _opened(plan: Plan, live: bool | int):
    """Open a live view."""
    from mcplan.view.live import LiveView

    view = LiveView(plan, 0 if live is True else live)
    if in_notebook():
        from IPython.display import IFrame, display

        display(IFrame(view.url, "100%", 500))
    else:
        note(f"live: {view.address}")
        webbrowser.open(view.url)
    return view


def new_directory(name: str, output: str | None, force: bool) -> Path:
    """Create the directory of a run.

    Without ``output`` it is ``runs/NAME``, or the first of ``runs/NAME-2``, ``runs/NAME-3``, ... that does not exist.

    Raises
    ------
    InputError
        When ``output`` is a file, holds something and ``force`` is not given, or cannot be made.
    """
    if output is None:
        base, number = Path("runs") / file_name(name), 1
        while True:
            path = base if number == 1 else base.with_name(f"{base.name}-{number}")
            try:
                path.mkdir(parents=True)
                return path
            except FileExistsError:
                number += 1
    path = Path(output)
    check_writable(path, force, folder=True)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be made: {error.strerror}") from error
    return path


RESULTS = ("plan.yaml", "run.npz", "timing.npz", "report.json", "replay.html")
"""Output files of a run, without scenario and report."""


def write_results(directory: Path, plan: Plan, run: Run, report: Report) -> None:
    """Write scenario, plan, run, certificate, replay and the report around them."""
    tree_path(directory / "plan.yaml").unlink(missing_ok=True)  # of a search that failed there before
    plan.scenario.save(directory / "scenario.yaml")
    save_plan(plan, directory / "plan.yaml")
    run.save(directory / "run.npz")
    write_text(directory / "report.json", json.dumps(report.to_json(), indent=1) + "\n")
    readings = Readings(run)
    replay = replay_page(run, report, readings)
    write_text(directory / "replay.html", replay)
    write_text(directory / "report.html", report_page(run, report, replay, readings))


def write_failure(directory: Path, scenario: Scenario, failure: PlanningFailed) -> None:
    """Write the results of a failed planning: the scenario, the search, and a report with the reason.

    What an earlier run has left there goes: it is of another plan.
    """
    for name in RESULTS:
        (directory / name).unlink(missing_ok=True)
    tree_path(directory / "plan.yaml").unlink(missing_ok=True)
    scenario.save(directory / "scenario.yaml")
    if failure.tree is not None and failure.tree.nodes:
        write_tree(failure.tree, scenario, tree_path(directory / "plan.yaml"), str(failure))
    write_text(directory / "report.html", failure_page(scenario, str(failure), failure.tree))


def save_report(run: Run, path: str | os.PathLike[str], report: Report | None = None) -> Path:
    """Write the report of a run: one self-contained HTML file.

    What happened in a sentence, the closest calls, replay, charts, certificate and timings.

    Parameters
    ----------
    run : Run.
    path : of the file; an existing one is replaced, missing folders are made.
    report : the run's certificate, if `verify` has been called; it is otherwise.

    Returns
    -------
    The path.

    Raises
    ------
    InputError
        No Run, or a path that is none, of a directory, or of what cannot be written.
    """
    run, place = instance("save_report", "run", run, Run), file_path("save_report", path)
    check_writable(place, force=True)
    write_text(place, report_page(run, verify(run) if report is None else report))
    return place


def save_html(what: Run | Plan | Scenario | Robot, path: str | os.PathLike[str], report: Report | None = None) -> Path:
    """Write a run, a plan, a scenario at its start, or a robot as one self-contained HTML file.

    >>> import tempfile, mcplan as mc
    >>> mc.save_html(mc.load_scenario("walk"), tempfile.mkdtemp() + "/walk.html").name
    'walk.html'

    Parameters
    ----------
    what : Run, Plan, Scenario or Robot.
    path : of the file; an existing one is replaced, missing folders are made.
    report : the certificate of a run or plan, which its page shows, if `verify` has been called; it is otherwise.

    Returns
    -------
    The path.

    Raises
    ------
    InputError
        Something else, or a path that is none, of a directory, or of what cannot be written.
    """
    place = file_path("save_html", path)
    check_writable(place, force=True)
    certificate = verify(what) if report is None and isinstance(what, Run | Plan) else report
    write_text(place, page_text(what, certificate=certificate, where="save_html"))
    return place
