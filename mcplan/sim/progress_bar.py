"""Progress bar of a simulation."""

import time

from mcplan.control.machine import PhaseEvent
from mcplan.sim.observer import Observer, StepSample
from mcplan.util.bars import BARS, ProgressDisplay


class ProgressBar(Observer, ProgressDisplay):
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
