"""What is written of a run: its directory, in which nothing is lost, the report, and pages of other things too."""

import json
import os
from pathlib import Path

from mcplan.arguments import file_name, file_path, instance
from mcplan.certificate.verify import Report, verify
from mcplan.errors import InputError, PlanningFailed
from mcplan.model.robot import Robot
from mcplan.planning import Plan, write_plan
from mcplan.planning.search.tree_file import tree_path, write_tree
from mcplan.scene.scenario import Scenario
from mcplan.sim.run import Run
from mcplan.view.readings import Readings
from mcplan.view.replay import replay_page
from mcplan.view.report_page import failure_page, report_page
from mcplan.view.show import page_text
from mcplan.whole_file import check_writable, write_text


def new_directory(name: str, output: str | None, force: bool) -> Path:
    """Make the directory of a run.

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
"""What there is of a run beside its scenario and its report."""


def write_results(directory: Path, plan: Plan, run: Run, report: Report) -> None:
    """Write scenario, plan, run, certificate, replay and the report around them."""
    tree_path(directory / "plan.yaml").unlink(missing_ok=True)  # of a search that failed there before
    plan.scenario.save(directory / "scenario.yaml")
    write_plan(plan, directory / "plan.yaml")
    run.save(directory / "run.npz")
    write_text(directory / "report.json", json.dumps(report.to_json(), indent=1) + "\n")
    readings = Readings(run)
    replay = replay_page(run, report, readings)
    write_text(directory / "replay.html", replay)
    write_text(directory / "report.html", report_page(run, report, replay, readings))


def write_failure(directory: Path, scenario: Scenario, failure: PlanningFailed) -> None:
    """Write what is known of a scenario that has no plan: itself, the search, and a report that says why.

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
    """Write the report of a run: one HTML file that needs no network, for somebody who was not there.

    What happened in a sentence, the closest calls, replay, charts, certificate and timings.

    Parameters
    ----------
    run : Run.
    path : of the file; one that is there is replaced, folders on the way are made.
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
    """Write a run, a plan, a scenario at its start, or a robot as one HTML file that needs no network.

    >>> import tempfile, mcplan as mc
    >>> mc.save_html(mc.load_scenario("walk"), tempfile.mkdtemp() + "/walk.html").name
    'walk.html'

    Parameters
    ----------
    what : Run, Plan, Scenario or Robot.
    path : of the file; one that is there is replaced, folders on the way are made.
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
