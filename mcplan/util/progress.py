"""Progress of long work, reported to a listener: the postures of a plan, its motions.

The work reports from anywhere without holding a listener; without a listener nothing happens.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, float | None], None]

_listener: ContextVar[Listener | None] = ContextVar("_listener", default=None)


def doing(what: str, k: int | None = None, n: int = 0) -> None:
    """Say what begins.

    Parameters
    ----------
    what : in a few words.
    k, n : that it is the ``k``-th of ``n``, counted from 1.
    """
    listener = _listener.get()
    if listener is None:
        return
    if k is None:
        listener(what, None)
    else:
        listener(f"{what} {k} of {n}", (k - 1) / max(n, 1))


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Report progress to a function meanwhile: the present step, and the finished share or None."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
