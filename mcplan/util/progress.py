"""What long work is at just now, told to whoever listens: a plan's postures, its motions, one by one.

The work says it wherever it is, without being handed anybody to say it to; where nobody listens, nothing happens.
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
    """Tell a function what is done meanwhile, and the share of it that lies behind, None where that is not known."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
