"""Entry point of a sweep: run the cases of an experiment that its store does not have yet."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mcplan.sweep.case import Case, code_version, commit, mesh_digests
from mcplan.sweep.condition import Condition
from mcplan.sweep.engine import Runner, fan_out, prepare
from mcplan.sweep.experiment import Experiment
from mcplan.sweep.job import Job, can_share_plan, plans_first
from mcplan.sweep.process import Limit
from mcplan.sweep.results import Results, collect_results
from mcplan.sweep.store import FAILED, FILE, Store
from mcplan.sweep.worker import connect

SweepCallback = Callable[[int, int, int], None]
"""Called with cases done, cases to do, and failed cases."""


@dataclass(frozen=True)
class Work:
    """Cases that a sweep would run, and counts of the others.

    Parameters
    ----------
    todo : cases to run.
    finished : number of cases in the store.
    failed : number of failed cases that are not run again.
    recoded : number of cases to run that an older code version has run already.
    left_out : number of cases that the condition excludes.
    seconds : mean clock time of a case in this store; None if it is empty.
    """

    todo: tuple[Case, ...]
    finished: int
    failed: int
    recoded: int
    left_out: int
    seconds: float | None


def work_of(
    experiment: Experiment, directory: str | os.PathLike[str], only: str = "", retry_failed: bool = False
) -> Work:
    """Return the cases to run, without running them.

    Parameters
    ----------
    only : condition on the fields of a case; empty: all.
    retry_failed : whether cases that failed are run again.
    """
    condition = Condition(only, experiment.fields) if only else None
    statuses: dict[str, str] = {}
    before: set[str] = set()
    seconds = None
    if (Path(directory) / FILE).is_file():
        with Store(directory, read_only=True) as store:
            statuses, before = store.statuses(), store.configurations()
            mean, count = store.mean_seconds()
            seconds = mean if count else None
    todo: dict[str, Case] = {}
    finished = failed = left_out = 0
    for case in experiment.cases:
        if condition is not None and not condition.holds(case.fields):
            left_out += 1
        elif statuses.get(case.id) is None or (retry_failed and statuses[case.id] == FAILED):
            todo[case.id] = case
        elif statuses[case.id] == FAILED:
            failed += 1
        else:
            finished += 1
    recoded = sum(case.configuration in before and case.id not in statuses for case in todo.values())
    return Work(tuple(todo.values()), finished, failed, recoded, left_out, seconds)


def sweep(
    experiment: Experiment,
    directory: str | os.PathLike[str],
    workers: int | None = None,
    scheduler: str | None = None,
    only: str = "",
    retry_failed: bool = False,
    progress: SweepCallback | None = None,
    runner: Runner | None = None,
) -> Results:
    """Run the missing cases, and return the results of all cases of the experiment in the store.

    Parameters
    ----------
    experiment : the experiment.
    directory : of the store; its finished cases are not run again.
    workers : processes on this machine; None: one per core.
    scheduler : address of a running Dask scheduler instead.
    only : condition on the fields of a case.
    retry_failed : run cases again that ended without a verdict.
    progress : called after every case.
    runner : functions to run instead of planning and simulation.

    Raises
    ------
    InputError
        Before any case runs: invalid condition, store or cluster.
    JobFailed
        The scheduler is lost; finished cases are stored.
    """
    runner = runner or Runner()
    with Store(directory) as store:
        work = work_of(experiment, directory, only, retry_failed)
        if work.todo:
            store.note_code(code_version(), commit())
            _run(experiment, store, work.todo, workers, scheduler, progress, runner)
        return collect_results(experiment, store)


def _run(
    experiment: Experiment,
    store: Store,
    todo: tuple[Case, ...],
    workers: int | None,
    scheduler: str | None,
    progress: SweepCallback | None,
    runner: Runner,
) -> None:
    spec, failed = experiment.spec, 0
    limit = Limit(spec.limits.time, spec.limits.memory_gb * 1e9)
    with connect(min(os.cpu_count() or 1 if workers is None else workers, len(todo)), scheduler) as client:
        if progress is not None:
            progress(0, len(todo), 0)
        physics = tuple(dict.fromkeys(case.physics for case in todo)) if spec.steps == "simulate" else ()
        ready = prepare(client, runner, physics)
        plans = str(store.plans) if spec.steps == "simulate" and can_share_plan(experiment.swept) else ""
        todo = plans_first(todo) if plans else todo
        folder = store.folder
        tasks = ((case, lambda case=case: job_of(case, spec.keep, plans, folder(case.id).resolve())) for case in todo)
        for done, (case, outcome) in enumerate(fan_out(ready, tasks, limit), 1):
            store.put(case, outcome, code_version())
            failed += outcome.status == FAILED
            if progress is not None:
                progress(done, len(todo), failed)
    shutil.rmtree(store.plans, ignore_errors=True)


def job_of(case: Case, keep: tuple[str, ...], plans: str = "", output_directory: Path | None = None) -> Job:
    """Return the job of a case, which is sent to a worker.

    Parameters
    ----------
    plans : directory of the plans that cases share.
    output_directory : directory of the case's output files; None: that of its scenario.
    """
    document = case.document()
    path = str(Path(document.path).resolve())
    folder = str(output_directory or Path(path).parent)
    meshes = mesh_digests(document)
    return Job(document.data, path, case.robot, case.seed, case.steps, tuple(keep), folder, plans, meshes)
