"""How long an experiment will take: from its store where that has cases, else from what HRP-2 takes in general."""

import os

from mcplan.back_ends import BACK_ENDS
from mcplan.sweep.experiment import Experiment
from mcplan.sweep.sweep import Work

PLAN = 2.0
"""s to plan a bundled scenario, and to verify the plan: the middle of 0.2 to 6 s."""


def estimate(experiment: Experiment, work: Work, workers: int | None) -> str:
    """Return how long the cases that are to be run take, and where that is known from."""
    processes = workers or os.cpu_count() or 1
    if work.seconds is not None:
        seconds, source = work.seconds * len(work.todo), "as long as those before"
    else:
        seconds = sum(_guess(experiment, case.physics) for case in work.todo)
        source = "a guess: none has run yet"
    return f"about {_duration(seconds / processes)} on {processes} worker{'s' * (processes > 1)} ({source})"


def _guess(experiment: Experiment, physics: str) -> float:
    return PLAN if experiment.spec.steps == "plan" else PLAN + BACK_ENDS[physics].seconds


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
