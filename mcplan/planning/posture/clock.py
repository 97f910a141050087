"""The time and the steps that one call of the posture generator takes."""

from time import perf_counter

from mcplan.planning.posture.result import Effort


class Clock:
    """Counts what a call takes."""

    def __init__(self) -> None:
        self._start = self._last = perf_counter()
        self._seconds: dict[str, float] = {}
        self.starts = self.steps = self.soft_steps = self.collision_checks = 0

    def lap(self, stage: str) -> None:
        """Book the time since the last lap on a stage."""
        now = perf_counter()
        self._seconds[stage] = self._seconds.get(stage, 0.0) + now - self._last
        self._last = now

    def effort(self) -> Effort:
        """Return the counts so far."""
        self._seconds["total"] = perf_counter() - self._start
        return Effort(self._seconds, self.starts, self.steps, self.soft_steps, self.collision_checks)
