"""High-level Python API: simulation, sweeps, result folders and pages, with progress and a live view."""

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
from mcplan.sim.progress_bar import ProgressBar
from mcplan.sim.simulate import simulate as run_simulation
from mcplan.util.arguments import check_instance, check_integer, file_name, file_path
from mcplan.util.bars import BARS, in_notebook, note
from mcplan.util.files import check_writable, write_text
from mcplan.view.replay import replay_page
from mcplan.view.report_page import failure_page, report_page
from mcplan.view.show import page_text
from mcplan.whole_body.declaration import Extra
from mcplan.whole_body.tasks.task import Task

if TYPE_CHECKING:
    from mcplan.sim.physics import Maker
    from mcplan.sweep.experiment import Experiment
    from mcplan.sweep.results import Results


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
    physics : back end: ``qp``, ``contact`` or ``mujoco``; None: that of the scenario; or a custom class that is
        constructed from a ``World`` (`mcplan.sim.simulate.back_end`).
    observers : receive every step and phase (`mcplan.Observer`).
    seed : of all random numbers.
    tasks : tasks in addition to those of the plan (`mcplan.Task`): any class with ``rows``.
    extra : additional terms of the control program, in CVXPY.
    controller : computes the torques instead of the whole-body controller: an object with ``torque(t, terms,
        wrenches)``, for example `mcplan.InverseDynamicsControl`; for physics ``contact`` or ``mujoco``.
    duration : s, of a run with such a controller; None: that of the scenario.
    progress : show time, real-time factor, expected end and phase.
    live : show the motion during the simulation, on a page at 127.0.0.1 that opens in the browser (in a notebook below
        the cell); a number is the port.

    Raises
    ------
    InputError
        The plan has the wrong type, or a physics or task does not exist.
    SimulationFailed
        The simulation had to stop; ``run`` of the exception is the record up to that time, or None if it is empty.
    """
    from mcplan.document.file_kind import is_plan
    from mcplan.planning.plan_file import plan_of

    if isinstance(plan, str | PathLike | Mapping):
        scenario = load_scenario(plan)
        plan = plan_of(scenario) if is_plan(scenario.document) else make_plan(scenario)
    elif isinstance(plan, Scenario):
        plan = make_plan(plan)
    observers = list(observers) if isinstance(observers, Iterable) else observers
    with ExitStack() as open_contexts:
        if live is not False and isinstance(plan, Plan):
            observers = [*observers, open_contexts.enter_context(_open_live_view(plan, live))]
        if progress and BARS.shown:
            observers = [*observers, open_contexts.enter_context(ProgressBar())]
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
    """Run the cases of an experiment that are not in its store, in separate processes; return the table of all cases.

        results = mc.sweep({"mcplan": 1, "name": "walks", "scenarios": ["walk"], "steps": "plan",
                            "variants": True, "seeds": {"from": 0, "count": 20}})
        table = results.to_pandas()

    In a script, call it below ``if __name__ == "__main__":``, because it starts Python processes.

    Parameters
    ----------
    experiment : the path of a file, its content as a dictionary, or an Experiment (`mcplan.load_experiment`).
    directory : of store and results; ``runs/sweeps/NAME`` by default. Cases in its store are not run again.
    workers : processes on this machine; one per core by default.
    only : condition on the fields of a case: ``'scenario == "walk" and seed < 3'``.
    retry_failed : run cases without a verdict again.
    progress : True shows a bar; or a function of cases done, cases to do, and failed cases.

    Raises
    ------
    InputError
        The experiment is invalid (all errors, before any case runs), or Dask is not installed.
    JobFailed
        The workers are lost; finished cases are stored.
    """
    from mcplan.sweep.command import SweepProgress, results_directory
    from mcplan.sweep.experiment import Experiment, load_experiment
    from mcplan.sweep.sweep import sweep as run_missing

    if workers is not None:
        check_integer("sweep", "workers", workers)
    loaded = experiment if isinstance(experiment, Experiment) else load_experiment(experiment)
    place = results_directory(loaded, None) if directory is None else file_path("sweep", directory)
    if progress is not True:
        return run_missing(loaded, place, workers, None, only, retry_failed, progress or None)
    with SweepProgress() as shown:
        return run_missing(loaded, place, workers, None, only, retry_failed, shown.update)


def _open_live_view(plan: Plan, live: bool | int):
    """Open a live view of the simulation of a plan."""
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
        ``output`` is a file, is not empty (without ``force``), or cannot be created.
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
        raise InputError(f"{path}: cannot be created: {error.strerror}") from error
    return path


RESULTS = ("plan.yaml", "run.npz", "timing.npz", "report.json", "replay.html")
"""Output files of a run, without scenario and report."""


def write_results(directory: Path, plan: Plan, run: Run, report: Report) -> None:
    """Write scenario, plan, run, certificate, replay and the report around them."""
    tree_path(directory / "plan.yaml").unlink(missing_ok=True)  # left by an earlier failed search
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

    Files of an earlier run are deleted, because they belong to another plan.
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

    Result in one sentence, closest calls, replay, charts, certificate and timings.

    Parameters
    ----------
    run : Run.
    path : of the file; an existing file is replaced, missing folders are created.
    report : the certificate of the run; None: it is computed.

    Returns
    -------
    The path.

    Raises
    ------
    InputError
        ``run`` is not a Run, or the path is invalid, a directory, or not writable.
    """
    run, place = check_instance("save_report", "run", run, Run), file_path("save_report", path)
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
    path : of the file; an existing file is replaced, missing folders are created.
    report : the certificate of a run or plan, for its page; None: it is computed.

    Returns
    -------
    The path.

    Raises
    ------
    InputError
        ``what`` is none of these, or the path is invalid, a directory, or not writable.
    """
    place = file_path("save_html", path)
    check_writable(place, force=True)
    certificate = verify(what) if report is None and isinstance(what, Run | Plan) else report
    write_text(place, page_text(what, certificate=certificate, where="save_html"))
    return place
