"""Progress bars on stderr for compilation, planning, simulation and sweeps, in terminals and notebooks.

On a terminal they are redrawn ten times a second; in a notebook one line is rewritten once a second; elsewhere only
``note`` prints. ``be_quiet`` silences all output.
"""

import atexit
import sys
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from mcplan.util.progress import progress_listener

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_state: dict[str, bool] = {"quiet": False}


def be_quiet(quiet: bool = True) -> None:
    """Switch output of this module to stderr off (or on)."""
    _state["quiet"] = quiet


def note(text: str) -> None:
    """Print to stderr unless --quiet."""
    if not _state["quiet"]:
        print(text, file=sys.stderr)


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this process."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and "IPKernelApp" in getattr(shell, "config", {})


class Bars:
    """Progress bars of this process; `BARS` is the only instance, since a terminal has one last line."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._progress: Progress | None = None
        self._last_write = -1.0

    @property
    def shown(self) -> bool:
        """Whether bars are shown: stderr is a terminal or a notebook, and not --quiet."""
        return not _state["quiet"] and (sys.stderr.isatty() or in_notebook())

    @property
    def count(self) -> int:
        """Number of tasks on the screen."""
        with self._lock:
            return len(self._progress.tasks) if self._progress is not None else 0

    def add(self, name: str) -> "TaskID | None":
        """Show a task; return its handle for `update` and `remove`, or None if bars are not shown."""
        if not self.shown:
            return None
        with self._lock:
            if self._progress is None:
                self._progress = self._new()
                self._progress.start()
                if not sys.stderr.isatty():
                    threading.Thread(target=self._redraw_loop, args=(self._progress,), daemon=True).start()
                atexit.register(self.close)  # so that the terminal shows its cursor again
            return self._progress.add_task(name, total=None, text="")

    def update(self, task: "TaskID | None", text: str, share: float | None = None) -> None:
        """Update a task: text, and finished share if known."""
        with self._lock:
            if task is None or self._progress is None or task not in self._progress.task_ids:
                return
            self._progress.update(task, text=text, total=None if share is None else 1.0, completed=share or 0.0)
            if not sys.stderr.isatty():
                self._write_line()

    def _write_line(self) -> None:
        """Rewrite the line of a notebook, at most once per second."""
        with self._lock:
            if self._progress is None or not self._progress.tasks or time.monotonic() - self._last_write < 1.0:
                return
            self._last_write = time.monotonic()
            task = self._progress.tasks[-1]
            line = f"{task.description} {task.elapsed or 0.0:.0f} s {task.fields['text']}"
            print(f"\r{line:<79}", end="", file=sys.stderr, flush=True)

    def _redraw_loop(self, progress: "Progress") -> None:
        """Rewrite the line until all tasks have ended, since the work may report nothing for long."""
        while self._progress is progress:
            self._write_line()
            time.sleep(0.25)

    def remove(self, task: "TaskID | None") -> None:
        """Remove a task from the terminal."""
        with self._lock:
            if task is None or self._progress is None or task not in self._progress.task_ids:
                return
            self._progress.remove_task(task)
            if not self._progress.tasks:
                self.close()

    def close(self) -> None:
        """Remove all tasks."""
        with self._lock:
            if self._progress is not None:
                self._progress.stop()
                self._progress = None
                atexit.unregister(self.close)
            if self._last_write > 0.0:
                print(f"\r{'':79}\r", end="", file=sys.stderr, flush=True)
                self._last_write = -1.0

    def _new(self) -> "Progress":
        """Return the display of rich, which is imported only when a bar is shown."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        return Progress(
            TextColumn("{task.description:<10}"), BarColumn(12), TimeElapsedColumn(), TextColumn("{task.fields[text]}"),
            console=Console(file=sys.stderr), transient=True, disable=not sys.stderr.isatty(),
        )  # fmt: skip


BARS = Bars()


class ProgressDisplay:
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


class Working(ProgressDisplay):
    """Progress display of an activity of unknown length: name and elapsed time."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class PlanningProgress(ProgressDisplay):
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
