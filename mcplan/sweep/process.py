"""Child process that runs cases, with enforced limits of time and memory.

Messages are pickled over the pipes of the child; the end of the pipe marks the end of the process.
"""

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any

import psutil


class Channel:
    """Messages in both directions.

    A separate thread reads, so that the end of the other process is detected while this one computes.

    Parameters
    ----------
    reader, writer : binary streams.
    on_end : called in the reading thread when the other process has ended.
    """

    def __init__(self, reader: IO[bytes], writer: IO[bytes], on_end: Callable[[], None]):
        self._reader, self._writer, self._on_end = reader, writer, on_end
        self._messages: queue.Queue[Any] = queue.Queue()
        threading.Thread(target=self._read, daemon=True, name="mcplan-channel").start()

    def send(self, message: Any) -> None:
        """Send a message; OSError when the other process has ended."""
        pickle.dump(message, self._writer, protocol=pickle.HIGHEST_PROTOCOL)
        self._writer.flush()

    def receive(self, timeout: float | None = None) -> Any:
        """Return the next message; queue.Empty at the timeout."""
        return self._messages.get(timeout=timeout)

    def _read(self) -> None:
        try:
            while True:
                self._messages.put(pickle.load(self._reader))  # written by our own process, of the same code
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):
            self._on_end()


ONE_THREAD = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")}
"""Environment of a child process: linear algebra on one thread, since cases run in parallel, one per core."""

CHECK_PERIOD_S = 0.2
"""Time between two checks of the limits (s)."""


class CaseError(Exception):
    """A case ended without a result; the message gives the reason."""


class ProcessDied(CaseError):  # noqa: N818 - its name is a sentence
    """The process ended during the case."""


@dataclass(frozen=True)
class Limit:
    """Limits of a call: clock time (s) and resident memory (bytes)."""

    time: float = float("inf")
    memory: float = float("inf")


class CaseProcess:
    """A child process that answers calls."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "mcplan.sweep.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **ONE_THREAD},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._memory = psutil.Process(self._process.pid)
        self._ended = threading.Event()
        self._channel = Channel(self._process.stdout, self._process.stdin, on_end=self._ended.set)

    @property
    def alive(self) -> bool:
        """Whether the process is running."""
        return self._process.poll() is None and not self._ended.is_set()

    def call(self, name: str, argument: Any, limit: Limit) -> Any:
        """Call the function ``module:function`` in the process and return its result.

        Raises
        ------
        ProcessDied
            The process ended before it answered.
        CaseError
            A limit was exceeded (the process is then killed), or the function raised an exception.
        """
        start_time = time.monotonic()
        try:
            self._channel.send((name, argument))
        except OSError:
            raise ProcessDied(self._end_reason()) from None
        while True:
            remaining = limit.time - (time.monotonic() - start_time)
            try:
                kind, value = self._channel.receive(min(CHECK_PERIOD_S, max(remaining, 0.001)))
                break
            except queue.Empty:
                self._check_limits(remaining, limit)
        if kind == "error":
            raise CaseError(value)
        return value

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def _check_limits(self, remaining: float, limit: Limit) -> None:
        if self._ended.is_set():
            raise ProcessDied(self._end_reason())
        if remaining <= 0:
            self.close()
            raise CaseError(f"over its time limit of {limit.time:g} s")
        try:
            memory = self._memory.memory_info().rss
        except psutil.Error:
            return  # the process has just ended; the channel reports it
        if memory > limit.memory:
            self.close()
            raise CaseError(f"over its memory limit: {memory / 1e9:.2f} of {limit.memory / 1e9:g} GB")

    def _end_reason(self) -> str:
        code = self._process.wait()
        if code >= 0:
            return f"its process ended with status {code}"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"its process was ended by {name}"
