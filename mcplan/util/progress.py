"""Progress reports of long work: the current step, and the finished share if it is known.

Any function may call `report_progress`; outside of a `progress_listener` it does nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, float | None], None]
"""Called with the step and the finished share (0 to 1, or None)."""

ProgressCallback = Callable[[int, int, float], None]
"""Called by the planner with the numbers of nodes and of posture calculations, and the least potential so far."""

_listener: ContextVar[Listener | None] = ContextVar("_listener", default=None)


def report_progress(step: str, k: int | None = None, n: int = 0) -> None:
    """Report that a step begins, the ``k``-th of ``n`` steps (counted from 1) if given."""
    listener = _listener.get()
    if listener is None:
        return
    if k is None:
        listener(step, None)
    else:
        listener(f"{step} {k} of {n}", (k - 1) / max(n, 1))


@contextmanager
def progress_listener(listener: Listener) -> Iterator[None]:
    """Call a function with each report made inside the block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
