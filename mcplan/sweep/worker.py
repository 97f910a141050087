"""Dask workers: they pass a case to a child process and return its outcome.

The worker does not run the case itself: a case that crashes, hangs or takes all memory would end the worker, and with
it the connection that reports the failure.

The cluster is local, bound to loopback, or a running Dask scheduler.
"""

import atexit
import logging
import platform
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from multiprocessing import resource_tracker
from typing import Any

from mcplan.errors import InputError
from mcplan.sweep.case import code_version
from mcplan.sweep.process import CaseError, CaseProcess, Limit, ProcessDied
from mcplan.sweep.store import FAILED, CaseOutcome

START_TIMEOUT_S = 600.0
"""Time limit for the start of a child process (s)."""

_process: CaseProcess | None = None
_loaded_code = ""
"""Code version that the child process has loaded."""


def work(function: str, argument: Any, limit: Limit, code: str) -> CaseOutcome:
    """Run a case; if its process dies, try once more.

    Raises
    ------
    InputError
        The version of the code on this machine is not ``code``.
    """
    start_time = time.perf_counter()
    for retry in (False, True):
        try:
            return _ready_process(function, code).call(function, argument, limit)
        except ProcessDied as error:
            reason = f"{error}, twice" if retry else ""
        except CaseError as error:
            reason = str(error)
            break
    row = {"success": False, "stage": "case", "cause": reason.partition("\n")[0], "failure": reason}
    return CaseOutcome(FAILED, row, time.perf_counter() - start_time)


def prepare(function: str, argument: Any, code: str) -> str:
    """Call a function once before any case, without limits; return the error message, empty on success.

    Raises
    ------
    InputError
        As `work`.
    """
    try:
        _ready_process(function, code).call(function, argument, Limit())
    except CaseError as error:
        return str(error)
    return ""


def version() -> str:
    """Return the code version of the files on this machine; the worker itself may have imported older ones."""
    return code_version.__wrapped__()


def _ready_process(function: str, code: str) -> CaseProcess:
    """Return a process that has already imported the function, so that limits apply to the case alone."""
    global _process, _loaded_code
    if _process is None or not _process.alive or _loaded_code != code:
        if _process is None:
            atexit.register(_close)
        elif _process.alive:
            _process.close()
        _process, _loaded_code = CaseProcess(), ""
        _loaded_code = _process.call("mcplan.sweep.child:load", function, Limit(time=START_TIMEOUT_S))
    if _loaded_code != code:
        raise InputError(
            f"{platform.node()}: another version of mcplan ({_loaded_code}) than where the sweep began ({code})"
        )
    return _process


def _close() -> None:
    if _process is not None:
        _process.close()


LOOPBACK = "127.0.0.1"
"""Address of the local cluster: other machines cannot connect to it."""


@contextmanager
def connect(workers: int, scheduler: str | None = None) -> Iterator[Any]:
    """Yield a Dask client; close it and a local cluster at the end.

    Parameters
    ----------
    workers : processes of the local cluster.
    scheduler : address of a running scheduler (``tcp://host:port``) instead.

    Raises
    ------
    InputError
        Dask is not installed, or no scheduler answers at the address.
    """
    if find_spec("distributed") is None:
        raise InputError("a sweep needs the package distributed: pip install dask distributed psutil pyarrow")
    import dask
    from distributed import Client, LocalCluster

    options = {
        "distributed.scheduler.allowed-failures": 1,
        "distributed.worker.multiprocessing-method": "spawn",
        "distributed.comm.timeouts.connect": "5s",
    }
    for name in ("distributed", "distributed.client"):  # the sweep itself reports lost connections
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with dask.config.set(options):
        if scheduler is not None:
            try:
                client = Client(scheduler, set_as_default=False, timeout="5s")
            except (OSError, ValueError, TimeoutError) as error:
                raise InputError(f"--scheduler {scheduler}: no Dask scheduler answers there: {error}") from error
            with client:
                yield client
            return
        if workers < 1:
            raise InputError(f"--workers {workers}: expected 1 or more")
        with _block_interrupts():
            local = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                host=LOOPBACK,
                dashboard_address=f"{LOOPBACK}:0",
                worker_dashboard_address=f"{LOOPBACK}:0",
                memory_limit=0,  # the case has its own limit
                silence_logs=logging.CRITICAL,
            )
        with local as cluster, Client(cluster, set_as_default=False) as client:
            yield client


@contextmanager
def _block_interrupts() -> Iterator[None]:
    """Block Ctrl-C in threads started meanwhile, and so in all processes that they start.

    A terminal sends it to every process of a command. Only this process handles it, after the block, and ends the
    workers. Windows has no signal masks: there the workers also report the interrupt.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # starting it later would unblock the signal
    mask_before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask_before)
