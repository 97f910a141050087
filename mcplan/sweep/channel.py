"""Pickled messages over the pipes of a child process, and the end of the pipe as the end of the process."""

import pickle
import queue
import threading
from collections.abc import Callable
from typing import IO, Any


class Channel:
    """Messages in both directions.

    A thread of its own reads, so that the end of the other side is noticed while this side computes.

    Parameters
    ----------
    reader, writer : binary streams.
    on_end : called in the reading thread when the other side is gone.
    """

    def __init__(self, reader: IO[bytes], writer: IO[bytes], on_end: Callable[[], None]):
        self._reader, self._writer, self._on_end = reader, writer, on_end
        self._messages: queue.Queue[Any] = queue.Queue()
        threading.Thread(target=self._read, daemon=True, name="mcplan-channel").start()

    def send(self, message: Any) -> None:
        """Send a message; OSError when the other side is gone."""
        pickle.dump(message, self._writer, protocol=pickle.HIGHEST_PROTOCOL)
        self._writer.flush()

    def receive(self, timeout: float | None = None) -> Any:
        """Return the next message; queue.Empty when there is none in time."""
        return self._messages.get(timeout=timeout)

    def _read(self) -> None:
        try:
            while True:
                self._messages.put(pickle.load(self._reader))  # written by our own process, of the same code
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):
            self._on_end()
