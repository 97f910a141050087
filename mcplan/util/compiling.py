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
"""Files of kernels that are only used on request."""

FIRST_RUN_SHARE = 0.5
"""A cache with less than this share of the kernels belongs to a first run."""

SECONDS_PER_KERNEL = {True: 0.45, False: 1.2}
"""Core seconds that a kernel takes to compile, with `mcplan.core.accelerator` and without."""

IDLE_TIME = 1.0
"""s without a compilation, after which all compilations count as finished."""

CHECK_INTERVAL = 0.2
"""s between two checks of the cache."""


class Compiling:
    """Monitor of the compilation in this process; `WATCH` is the only instance."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth, self._last = 0, 0.0
        self._thread: threading.Thread | None = None
        self._name = ""
        self._announced = False
        self._needed: frozenset[str] = frozenset()
        self.seconds = 0.0  # spent on compiling in this process
        self._since = 0.0

    def expect(self, physics: str | None) -> bool:
        """Return whether this is a first run; if so, show it at once, before Numba is imported."""
        folders = [folder for name, other in BACK_ENDS.items() if name != physics for folder in other.kernels]
        needed = declared_kernels((*folders, *ON_REQUEST))
        if len(needed & compiled_kernels(cache_directory())) >= FIRST_RUN_SHARE * len(needed):
            return False
        self._needed = frozenset(needed)
        self._show()
        return True

    def begins(self, name: str) -> None:
        """Count a kernel whose compilation begins."""
        self._depth += 1
        self._name = name
        if self._depth == 1:
            self._since = time.monotonic()
            self._show()

    def ends(self) -> None:
        """Count a kernel whose compilation ends."""
        self._depth -= 1
        self._last = time.monotonic()
        if self._depth == 0:
            self.seconds += self._last - self._since

    def _estimate(self) -> str:
        """Return an upper bound of the compilation time; a first run uses two processes."""
        missing = (self._needed or declared_kernels(ON_REQUEST)) - compiled_kernels(cache_directory())
        seconds = len(missing) * SECONDS_PER_KERNEL[accelerated()] / (2 if self._needed else 1)
        return f"up to {math.ceil(seconds / 60)} min" if seconds > 20.0 else "some seconds"

    def _show(self) -> None:
        with self._lock:
            self._last = time.monotonic()
            if not self._announced:
                self._announced = True
                if not BARS.shown:
                    note(f"compiling kernels, once per installation: {self._estimate()}")
            if self._thread is None and BARS.shown:
                self._thread = threading.Thread(target=self._bar, name="mcplan compiling", daemon=True)
                self._thread.start()

    def _bar(self) -> None:
        directory, task = cache_directory(), BARS.add("compiling")
        start_time, initial_count = time.monotonic(), len(compiled_kernels(directory))
        try:
            while True:
                self._update(task, directory, start_time, initial_count)
                time.sleep(CHECK_INTERVAL)
                with self._lock:
                    # a first run imports much between two kernels, while nothing else is shown yet
                    pause = 30 * IDLE_TIME if self._needed and BARS.count == 1 else IDLE_TIME
                    if not self._depth and time.monotonic() - self._last > pause:
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
