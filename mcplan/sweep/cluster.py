"""The workers: a local cluster bound to loopback, or a Dask scheduler that runs already."""

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from multiprocessing import resource_tracker
from typing import Any

from mcplan.errors import InputError

LOOPBACK = "127.0.0.1"


@contextmanager
def connect(workers: int, scheduler: str | None = None) -> Iterator[Any]:
    """Yield a Dask client, and end with it what was begun with it.

    Parameters
    ----------
    workers : processes of the local cluster.
    scheduler : address of a running scheduler (``tcp://host:port``) instead.

    Raises
    ------
    InputError
        Dask is not installed, nobody answers at the address.
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
    for name in ("distributed", "distributed.client"):  # what is lost is said by the exceptions of the engine
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
        with _deaf_to_interrupts():
            local = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                host=LOOPBACK,
                dashboard_address=f"{LOOPBACK}:0",
                worker_dashboard_address=f"{LOOPBACK}:0",
                memory_limit=0,  # limits are those of the case
                silence_logs=logging.CRITICAL,
            )
        with local as cluster, Client(cluster, set_as_default=False) as client:
            yield client


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Keep Ctrl-C from the threads that begin meanwhile, and so from all processes that they ever start.

    A terminal sends it to every process of a command. The workers are ended by this one, which hears it when the block
    ends. Windows has no masks of signals: there the workers say that they were interrupted, too.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # it would begin with the first worker, and unblocks the signal as it does
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
