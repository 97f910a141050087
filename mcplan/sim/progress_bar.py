"""Progress bars of planning and simulation."""

import time
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from mcplan.control.machine import PhaseEvent
from mcplan.sim.observer import Observer, StepSample
from mcplan.util.bars import BARS
from mcplan.util.progress import progress_listener

if TYPE_CHECKING:
    from rich.progress import TaskID


class _ProgressDisplay:
    """Context manager that displays one task and the activities reported while it runs."""

    name: str

    def __init__(self) -> None:
        self._task: TaskID | None = None
        self._listener: AbstractContextManager[None] = nullcontext()

    def __enter__(self):
        self._task = BARS.add(self.name)
        if self._task is not None:
            self._listener = progress_listener(self.show)
        self._listener.__enter__()
        return self

    def __exit__(self, *_) -> None:
        self._listener.__exit__(None, None, None)
        BARS.remove(self._task)

    def show(self, activity: str, share: float | None) -> None:
        """Show the present activity and its progress."""
        BARS.update(self._task, activity, share)


class Working(_ProgressDisplay):
    """Progress display of an activity of unknown length: name and elapsed time."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class PlanningProgress(_ProgressDisplay):
    """Progress display of planning: elapsed time, examined stances and postures, estimated moves to the goal."""

    name = "planning"

    def update(self, nodes: int, calls: int, min_potential: float) -> None:
        """Show the state of the stance search.

        Parameters
        ----------
        nodes : number of stances examined.
        calls : number of calls of the posture generator.
        min_potential : smallest potential so far, about the number of moves to the goal.
        """
        BARS.update(self._task, f"{nodes} stances, {calls} postures, ~{max(min_potential, 0.0):.1f} moves to go")


class ProgressBar(Observer, _ProgressDisplay):
    """Observer that shows the progress of a simulation: simulated time, real-time factor, remaining time, phase."""

    name = "simulating"

    def __init__(self) -> None:
        super().__init__()
        self._phase, self._start_time, self._last_update = "", time.monotonic(), -1.0

    def on_start(self, steps_per_second: float, phases: int) -> None:
        """Start the clock."""
        self._start_time = time.monotonic()

    def on_step(self, sample: StepSample) -> None:
        """Show a sample; called at every step, drawn ten times per second."""
        now = time.monotonic()
        if now - self._last_update < 0.1:
            return
        self._last_update = now
        clock, share = max(now - self._start_time, 1e-9), sample.phase / max(sample.phases, 1)
        remaining_text = f", ~{clock * (1.0 - share) / share:.0f} s left" if 0.05 < share < 1.0 else ""
        text = f"t {sample.t:.2f} s, {sample.t / clock:.1f} x real time{remaining_text}, {self._phase}"
        BARS.update(self._task, text, min(share, 1.0))

    def on_phase(self, event: PhaseEvent) -> None:
        """Show the phase that begins."""
        if event.ended_by is None:
            self._phase = event.name
