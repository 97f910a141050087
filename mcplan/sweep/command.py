"""Commands ``mcplan sweep`` and ``mcplan check EXPERIMENT``, with progress and an estimate of the duration.

The estimate comes from cases in the store; without any, from typical times of HRP-2.
"""

import os
import sys
import time
from argparse import Namespace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from mcplan.errors import InputError, Problem
from mcplan.sweep.compare import compare, earlier_results
from mcplan.sweep.condition import judge
from mcplan.sweep.experiment import Experiment, load_experiment
from mcplan.sweep.report import print_results, write_report
from mcplan.sweep.sweep import Work, sweep, work_of
from mcplan.util.back_ends import BACK_ENDS
from mcplan.util.bars import BARS, note

PLAN_S = 2.0
"""Typical time to plan a bundled scenario and verify the plan (s); measured: 0.2 to 6 s."""


def estimate(experiment: Experiment, work: Work, workers: int | None) -> str:
    """Return the estimated duration of the cases to run, and the source of the estimate."""
    processes = workers or os.cpu_count() or 1
    if work.seconds is not None:
        seconds, source = work.seconds * len(work.todo), "from finished cases"
    else:
        seconds = sum(_typical_seconds(experiment, case.physics) for case in work.todo)
        source = "a guess: no case has run yet"
    return f"about {_format_duration(seconds / processes)} on {processes} worker{'s' * (processes > 1)} ({source})"


def _typical_seconds(experiment: Experiment, physics: str) -> float:
    """Return a typical duration (s) of a case."""
    return PLAN_S if experiment.spec.steps == "plan" else PLAN_S + BACK_ENDS[physics].seconds


def _format_duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def run_experiment(path: str | os.PathLike[str], arguments: Namespace) -> int:
    """Run the experiment of a file, print and write its results; return the exit status."""
    experiment = load_experiment(path, arguments.max_cases, arguments.seeds, elsewhere=bool(arguments.scheduler))
    directory = results_directory(experiment, arguments.output)
    old = earlier_results(arguments.against, directory) if arguments.against else None
    work = work_of(experiment, directory, arguments.only, arguments.retry_failed)
    note(_work_text(experiment, work, arguments.workers))
    if arguments.dry_run:
        for case in work.todo:
            print(", ".join(f"{name}={value}" for name, value in case.fields.items()))
        return 0
    with SweepProgress() as progress:
        results = sweep(
            experiment, directory, arguments.workers, arguments.scheduler, arguments.only, arguments.retry_failed,
            progress.update,
        )  # fmt: skip
    comparison = None if old is None else compare(old, results)
    verdicts = judge(experiment.spec, results.rows, experiment.known)
    print_results(results, verdicts, comparison)
    for path in write_report(results, verdicts, comparison, directory):
        print(path)
    threshold_failed = any(not verdict.passed for verdict in verdicts)
    return 1 if threshold_failed or (comparison is not None and comparison.regressions) else 0


def check_experiment(path: str) -> tuple[list[Problem], str]:
    """Return the problems of an experiment file; if there are none, also a summary: cases and estimated duration."""
    try:
        experiment = load_experiment(path, elsewhere=True)  # the workers' machines need the packages, not this one
        work = work_of(experiment, results_directory(experiment, None))
    except InputError as error:
        return list(error.problems), ""
    return [], f", {_work_text(experiment, work, None)}"


def results_directory(experiment: Experiment, output: str | None) -> Path:
    """Return the directory of an experiment's store and results."""
    return Path(output) if output else Path("runs") / "sweeps" / experiment.name


LINE_PERIOD_S = 60.0
"""Minimum time between two progress lines if stderr is not a terminal (s)."""


class SweepProgress:
    """Progress bar on stderr: cases done, failed, time left; lines of text if stderr is not a terminal."""

    def __init__(self) -> None:
        self._last_line = self._start = time.monotonic()
        self._bar = Progress(
            TextColumn("sweeping"), BarColumn(24), MofNCompleteColumn(), TextColumn("{task.fields[failed]}"),
            TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(elapsed_when_finished=False),
            console=Console(file=sys.stderr), transient=True, disable=not BARS.shown,
        )  # fmt: skip
        self._task = self._bar.add_task("", total=None, failed="")

    def update(self, done: int, total: int, failed: int) -> None:
        """Update the progress bar or, at most once per ``LINE_PERIOD_S``, print a line."""
        failures = f"{failed} failed" if failed else ""
        self._bar.update(self._task, completed=done, total=total, failed=failures)
        now = time.monotonic()
        if not self._bar.disable or now - self._last_line < LINE_PERIOD_S or not 0 < done < total:
            return
        self._last_line = now
        remaining = f"about {max(1, round((now - self._start) * (total / done - 1) / 60))} min left"
        note(", ".join(filter(None, (f"{done} of {total} done", failures, remaining))))

    def __enter__(self) -> "SweepProgress":
        self._bar.start()
        return self

    def __exit__(self, *_) -> None:
        self._bar.stop()


def _work_text(experiment: Experiment, work: Work, workers: int | None) -> str:
    """Return the numbers of cases, finished and to run, and the estimated duration."""
    count, todo = len(experiment), len(work.todo)
    parts = [f"{count:,} cases"]
    if work.left_out:
        parts.append(f"{work.left_out:,} left out")
    if work.finished:
        parts.append(f"{work.finished:,} finished")
    if work.failed:
        parts.append(f"{work.failed:,} failed (--retry-failed runs them again)")
    rerun = f" ({work.recoded:,} of them again, because the code has changed)" if work.recoded else ""
    parts.append(f"{todo:,} to run{rerun}")
    if todo:
        parts.append(estimate(experiment, work, workers))
    return "; ".join(parts)
