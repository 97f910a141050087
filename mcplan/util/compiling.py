"""Progress of kernel compilation: a bar with the remaining time in a first run, one line without a terminal.

A process compiles the kernels that the cache lacks, once per installation. A first run takes some minutes, the first
use of a physics less. The progress is read from the cache, so it includes kernels that a second process compiles.
"""

import math
import threading
import time
from typing import TYPE_CHECKING

from mcplan.util.back_ends import BACK_ENDS
from mcplan.util.bars import BARS, note
from mcplan.util.kernel_cache import accelerated, cache_directory, compiled_kernels, declared_kernels

if TYPE_CHECKING:
    from rich.progress import TaskID

ON_REQUEST = ("rigid_body/batch", "rigid_body/lagrangian", "algebra/cholesky", "algebra/impedance")
"""Files whose kernels no run needs; they are compiled when a function of the library calls them."""

FIRST_RUN_SHARE = 0.5
"""If the cache has less than this share of the needed kernels, this is a first run."""

SECONDS_PER_KERNEL = {True: 0.45, False: 1.2}
"""Processor time to compile a kernel (s), with `mcplan.core.accelerator` (True) and without."""

IDLE_TIME_S = 1.0
"""Time without a compilation after which all compilations count as finished (s)."""

CHECK_INTERVAL_S = 0.2
"""Time between two checks of the cache (s)."""


class Compiling:
    """Monitor of the compilation in this process; `WATCH` is the only instance."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth, self._last_activity = 0, 0.0  # nested compilations; time when one started or ended
        self._thread: threading.Thread | None = None
        self._name = ""
        self._announced = False
        self._needed: frozenset[str] = frozenset()
        self.seconds = 0.0  # clock time of all compilations in this process
        self._start_time = 0.0

    def announce_first_run(self, physics: str | None) -> bool:
        """Return whether this is a first run; if so, show the progress at once, before Numba is imported."""
        unused = [folder for name, other in BACK_ENDS.items() if name != physics for folder in other.kernels]
        needed = declared_kernels(excluding=(*unused, *ON_REQUEST))
        if len(needed & compiled_kernels(cache_directory())) >= FIRST_RUN_SHARE * len(needed):
            return False
        self._needed = frozenset(needed)
        self._show()
        return True

    def compilation_started(self, name: str) -> None:
        """Record that the compilation of a kernel has started; one kernel may be compiled within another."""
        self._depth += 1
        self._name = name
        if self._depth == 1:
            self._start_time = time.monotonic()
            self._show()

    def compilation_ended(self) -> None:
        """Record that the compilation of a kernel has ended."""
        self._depth -= 1
        self._last_activity = time.monotonic()
        if self._depth == 0:
            self.seconds += self._last_activity - self._start_time

    def _estimate(self) -> str:
        """Return an upper bound of the compilation time; a first run uses two processes."""
        missing = (self._needed or declared_kernels(excluding=ON_REQUEST)) - compiled_kernels(cache_directory())
        seconds = len(missing) * SECONDS_PER_KERNEL[accelerated()] / (2 if self._needed else 1)
        return f"up to {math.ceil(seconds / 60)} min" if seconds > 20.0 else "some seconds"

    def _show(self) -> None:
        """Show the progress bar; without a terminal print one line, once."""
        with self._lock:
            self._last_activity = time.monotonic()
            if not self._announced:
                self._announced = True
                if not BARS.shown:
                    note(f"compiling kernels, once per installation: {self._estimate()}")
            if self._thread is None and BARS.shown:
                self._thread = threading.Thread(target=self._bar, name="mcplan compiling", daemon=True)
                self._thread.start()

    def _bar(self) -> None:
        """Update the progress bar, in a thread, until no kernel is being compiled."""
        directory, task = cache_directory(), BARS.add("compiling")
        start_time, initial_count = time.monotonic(), len(compiled_kernels(directory))
        try:
            while True:
                self._update(task, directory, start_time, initial_count)
                time.sleep(CHECK_INTERVAL_S)
                with self._lock:
                    # a first run may import for seconds between two kernels, before another bar is shown
                    pause = 30 * IDLE_TIME_S if self._needed and BARS.count == 1 else IDLE_TIME_S
                    if not self._depth and time.monotonic() - self._last_activity > pause:
                        self._thread = None
                        return
        finally:
            BARS.remove(task)

    def _update(self, task: "TaskID | None", directory: str, start_time: float, initial_count: int) -> None:
        cached = compiled_kernels(directory)
        done = len(cached) - initial_count
        if not self._needed:
            BARS.update(task, f"{done} kernels, once per installation: {self._name}")
            return
        total = len(self._needed)
        compiled = len(cached & self._needed)
        remaining = ""
        if done >= 10:
            seconds = (time.monotonic() - start_time) * (total - compiled) / done
            remaining = f", ~{seconds // 60:.0f}:{seconds % 60:02.0f} left"
        first = "" if done else f" (once: {self._estimate()})"
        BARS.update(task, f"{compiled} of {total} kernels{remaining}{first}", compiled / total)


WATCH = Compiling()
