"""Progress on the terminal: of planning and of a simulation."""

import sys

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from mcplan.control.machine import PhaseEvent
from mcplan.sim.observer import Observer, StepSample


class PlanningProgress:
    """Shows clock time, stances and postures looked at, and how far the nearest stance is from the goal.

    It writes to standard error, and only where that is a terminal.
    """

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("planning"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[found]}"),
            console=Console(file=sys.stderr),
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        self._task = self._progress.add_task("", found="")

    def update(self, nodes: int, calls: int, least: float) -> None:
        """Show stances, calls of the posture generator, and the least potential so far (about the moves left)."""
        found = f"{nodes} stances, {calls} postures, about {max(least, 0.0):.1f} moves from the goal"
        self._progress.update(self._task, found=found)

    def __enter__(self) -> "PlanningProgress":
        self._progress.start()
        return self

    def __exit__(self, *_) -> None:
        self._progress.stop()


class ProgressBar(Observer):
    """Shows simulated time, clock time and the phase.

    It writes to standard error, so that standard output stays what the command prints.
    """

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("simulating"),
            BarColumn(24),
            TextColumn("{task.fields[t]:6.2f} s in"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[phase]}"),
            console=Console(file=sys.stderr),
            transient=True,
        )
        self._task = self._progress.add_task("", total=1.0, t=0.0, phase="")
        self._last = -1.0

    def on_step(self, sample: StepSample) -> None:
        """Show a sample; heard at every step, drawn ten times per simulated second."""
        if sample.t - self._last >= 0.1:
            self._last = sample.t
            self._progress.update(self._task, completed=sample.phase / max(sample.phases, 1), t=sample.t)

    def on_phase(self, event: PhaseEvent) -> None:
        """Show the phase that begins."""
        if event.ended_by is None:
            self._progress.update(self._task, phase=event.name)

    def __enter__(self) -> "ProgressBar":
        self._progress.start()
        return self

    def __exit__(self, *_) -> None:
        self._progress.stop()
