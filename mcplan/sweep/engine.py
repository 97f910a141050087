"""Hand the cases out and take the outcomes in, one case per worker at a time.

A case is only handed to a worker that is free. So the scheduler's queue stays short however many cases there are, and
when a worker dies Dask blames the case that it was running and no other.
"""

import queue
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from mcplan.errors import InputError, JobFailed
from mcplan.sweep import worker
from mcplan.sweep.identity import code_version
from mcplan.sweep.process import Limit
from mcplan.sweep.store import FAILED, Outcome

Key = TypeVar("Key")

LOOK = 1.0
"""s between two looks at which workers there are."""


@dataclass(frozen=True)
class Runner:
    """What is run: ``module:function`` for a case, and once per machine before any case."""

    case: str = "mcplan.sweep.job:run_case"
    warm_up: str | None = "mcplan.sweep.job:warm_up"


def prepare(client: Any, runner: Runner, argument: Any, wait: float = 60.0) -> None:
    """Check the workers, and compile the kernels once on each machine.

    Raises
    ------
    InputError
        A worker has several threads, runs another version of the code, or there is none.
    JobFailed
        The kernels could not be compiled.
    """
    try:
        client.wait_for_workers(1, timeout=wait)
    except TimeoutError:
        raise InputError(f"no worker has come to the scheduler {client.scheduler.address} within {wait:g} s") from None
    known = _workers(client)
    for address, about in known.items():
        if about["nthreads"] != 1:
            threads = about["nthreads"]
            raise InputError(f"worker {address} has {threads} threads; a case needs one: dask worker --nthreads 1")
    versions = client.run(worker.version, on_error="return")
    for address, version in versions.items():
        if version != code_version():
            raise InputError(f"worker {address} has another version of mcplan ({version}), here it is {code_version()}")
    if runner.warm_up is None:
        return
    one_per_host = {about["host"]: address for address, about in known.items()}
    futures = [
        client.submit(worker.prepare, runner.warm_up, argument, workers=[address], pure=False)
        for address in one_per_host.values()
    ]
    for host, problem in zip(one_per_host, client.gather(futures), strict=True):
        if problem:
            raise JobFailed(f"{host}: the kernels could not be compiled: {problem}")


def fan_out(
    client: Any, tasks: Iterable[tuple[Key, Callable[[], Any]]], limit: Limit, runner: Runner
) -> Iterator[tuple[Key, Outcome]]:
    """Yield the outcome of each task as it comes.

    Parameters
    ----------
    client : of Dask.
    tasks : a key, and what makes the argument of the runner when a worker is free.
    limit : of each case.

    Raises
    ------
    JobFailed
        The scheduler is lost.
    """
    done: queue.Queue[Any] = queue.Queue()
    running: dict[str, tuple[Key, Any]] = {}
    waiting = iter(tasks)
    number, slots, looked, more = 0, 0, -LOOK, True
    try:
        while more or running:
            if time.monotonic() - looked >= LOOK:
                slots, looked = max(1, len(_workers(client))), time.monotonic()
            while more and len(running) < slots:
                task = next(waiting, None)
                if task is None:
                    more = False
                    break
                (key, make), number = task, number + 1
                future = client.submit(worker.work, runner.case, make(), limit, key=f"case-{id(done)}-{number}")
                running[future.key] = key, future
                future.add_done_callback(done.put)
            if not running:
                continue
            try:
                future = done.get(timeout=LOOK)
            except queue.Empty:
                _check(client)
                continue
            key, _ = running.pop(future.key)
            yield key, _outcome(client, future)
    finally:
        for _, future in running.values():
            future.cancel(force=True)


def _outcome(client: Any, future: Any) -> Outcome:
    if future.status == "finished":
        return future.result()
    _check(client)
    if future.status in ("cancelled", "lost"):
        raise JobFailed(_lost(client))
    from distributed import KilledWorker

    error = future.exception()
    if isinstance(error, KilledWorker):
        reason = f"the worker that ran it died, and so did the next one ({error.last_worker.address})"
    else:
        reason = f"its worker failed: {type(error).__name__}: {error}"
    return Outcome(FAILED, {"success": False, "stage": "case", "cause": "its worker failed", "failure": reason})


def _check(client: Any) -> None:
    if client.status != "running":
        raise JobFailed(_lost(client))


def _lost(client: Any) -> str:
    return f"the scheduler {client.scheduler.address} is lost; finished cases are stored: the same command continues"


def _workers(client: Any) -> dict[str, Any]:
    try:
        return client.scheduler_info(n_workers=-1)["workers"]
    except (OSError, TimeoutError):
        raise JobFailed(_lost(client)) from None
