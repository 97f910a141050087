"""Distribution of cases to Dask workers, one case per worker at a time.

A case is submitted only when a worker is free. So the scheduler's queue stays short, and when a worker dies Dask
blames only the case that it was running.

A case may run only on the workers that were ready when it was submitted: others may lack compiled kernels or run other
code. If all of these workers are gone, Dask would wait for ever; the case is then submitted once more.
"""

import queue
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple, TypeVar

from mcplan.errors import InputError, JobFailed
from mcplan.sweep import worker
from mcplan.sweep.case import code_version
from mcplan.sweep.process import Limit
from mcplan.sweep.store import FAILED, CaseOutcome
from mcplan.util.bars import note

Key = TypeVar("Key")

POLL_PERIOD_S = 1.0
"""Period of the queries of the list of workers (s)."""

WARNING_DELAY_S = 120.0
"""Time without a ready worker after which a message is printed (s)."""


@dataclass(frozen=True)
class Runner:
    """Functions to run, as ``module:function``: ``case`` for each case, ``warm_up`` once per machine before them."""

    case: str = "mcplan.sweep.job:run_case"
    warm_up: str | None = "mcplan.sweep.job:warm_up"


class Workers:
    """The workers of a sweep: each is checked when it joins, and gets cases once its machine has compiled the kernels.

    Parameters
    ----------
    client : Dask client.
    runner : functions to run.
    argument : argument of the warm-up function.
    """

    def __init__(self, client: Any, runner: Runner, argument: Any):
        self.client, self.runner = client, runner
        self._argument = argument
        self._checked: set[str] = set()
        self._warm_hosts: set[str] = set()
        self._warm_ups: dict[str, tuple[str, Any]] = {}

    @property
    def is_warming_up(self) -> bool:
        """Whether a machine is compiling kernels."""
        return bool(self._warm_ups)

    def ready(self) -> list[str]:
        """Return the addresses of the workers that can take cases.

        Raises
        ------
        InputError
            A new worker has several threads, or runs another version of the code.
        JobFailed
            The kernels could not be compiled on its machine; the scheduler is lost.
        """
        workers = _workers(self.client)
        if new := {address: info for address, info in workers.items() if address not in self._checked}:
            self._check_new(new)
            self._checked.update(new)
        if self.runner.warm_up is None:
            return list(workers)
        self._warm_up({address: info["host"] for address, info in workers.items()})
        return [address for address, info in workers.items() if info["host"] in self._warm_hosts]

    def _check_new(self, new: dict[str, Any]) -> None:
        for address, info in new.items():
            if info["nthreads"] != 1:
                threads = info["nthreads"]
                raise InputError(f"worker {address} has {threads} threads; a case needs one: dask worker --nthreads 1")
        try:
            versions = self.client.run(worker.version, workers=list(new), on_error="return")
        except (OSError, TimeoutError):
            raise JobFailed(_lost_message(self.client)) from None
        for address, version in versions.items():
            if isinstance(version, OSError):  # the worker is gone already
                continue
            if version != code_version():
                expected = code_version()
                raise InputError(f"worker {address} has another version of mcplan ({version}), here it is {expected}")

    def _warm_up(self, hosts: dict[str, str]) -> None:
        """Record machines that have compiled the kernels; start compiling with one worker of each other machine."""
        for host, (address, future) in list(self._warm_ups.items()):
            if future.done():
                error = future.exception()
                if isinstance(error, InputError):
                    raise error
                if problem := error or future.result():
                    raise JobFailed(f"{host}: the kernels could not be compiled: {problem}")
                self._warm_hosts.add(host)
            elif address in hosts:
                continue
            del self._warm_ups[host]
        task = (worker.prepare, self.runner.warm_up, self._argument, code_version())
        for address, host in hosts.items():
            if host not in self._warm_hosts and host not in self._warm_ups:
                self._warm_ups[host] = address, self.client.submit(*task, workers=[address], pure=False)


def prepare(client: Any, runner: Runner, argument: Any, wait: float = 60.0) -> Workers:
    """Wait for a worker, check all workers, and compile the kernels once on each machine.

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
    workers = Workers(client, runner, argument)
    workers.ready()
    while workers.is_warming_up:
        time.sleep(POLL_PERIOD_S / 10)
        workers.ready()
    return workers


class _Running(NamedTuple):
    """A submitted case: its key and argument, the workers that may run it, whether it was submitted a second time."""

    key: Any
    make_argument: Callable[[], Any]
    future: Any
    workers: frozenset[str]
    is_resubmitted: bool


def fan_out(
    workers: Workers, tasks: Iterable[tuple[Key, Callable[[], Any]]], limit: Limit
) -> Iterator[tuple[Key, CaseOutcome]]:
    """Run cases in parallel; yield the outcome of each as it finishes. Print a message while no worker is ready.

    Parameters
    ----------
    workers : as `prepare` returns them.
    tasks : for each case a key, and a function that builds the runner's argument once a worker is free.
    limit : time and memory limit of each case.

    Raises
    ------
    InputError
        A worker that came later has several threads, or runs another version of the code.
    JobFailed
        The scheduler is lost, or the kernels could not be compiled on the machine of a worker that came later.
    """
    client = workers.client
    finished: queue.Queue[Any] = queue.Queue()
    running: dict[str, _Running] = {}
    waiting, case_numbers = iter(tasks), count(1)
    ready: list[str] = []
    queried, last_ready, warned = -POLL_PERIOD_S, time.monotonic(), False

    def submit(key: Key, make_argument: Callable[[], Any], is_resubmitted: bool = False) -> None:
        call = (worker.work, workers.runner.case, make_argument(), limit, code_version())
        future = client.submit(*call, key=f"case-{id(finished)}-{next(case_numbers)}", workers=ready)
        running[future.key] = _Running(key, make_argument, future, frozenset(ready), is_resubmitted)
        future.add_done_callback(finished.put)

    task = next(waiting, None)
    try:
        while task is not None or running:
            # workers may join and leave during the sweep
            if time.monotonic() - queried >= POLL_PERIOD_S:
                ready, queried = workers.ready(), time.monotonic()
                if ready:
                    last_ready, warned = queried, False
                elif not warned and queried - last_ready >= WARNING_DELAY_S:
                    warned = True
                    address = client.scheduler.address
                    note(f"no worker of {address} has been ready for {WARNING_DELAY_S:g} s; waiting for one")
                for name, case in list(running.items()):
                    if not ready or not case.workers.isdisjoint(ready) or case.future.done():
                        continue
                    case.future.cancel(force=True)
                    del running[name]
                    if case.is_resubmitted:  # the case itself may kill its workers
                        reason = "the workers that could run it have gone, and so have the next ones"
                        yield case.key, _failed_outcome(reason)
                    else:
                        submit(case.key, case.make_argument, is_resubmitted=True)
            while task is not None and len(running) < len(ready):
                submit(*task)
                task = next(waiting, None)
            try:
                future = finished.get(timeout=POLL_PERIOD_S)
            except queue.Empty:
                _check_scheduler(client)
                continue
            if (finished_case := running.pop(future.key, None)) is not None:  # None: it was submitted again
                yield finished_case.key, _outcome(client, future)
    finally:
        for case in running.values():
            case.future.cancel(force=True)


def _outcome(client: Any, future: Any) -> CaseOutcome:
    if future.status == "finished":
        return future.result()
    _check_scheduler(client)
    if future.status in ("cancelled", "lost"):
        raise JobFailed(_lost_message(client))
    from distributed import KilledWorker

    error = future.exception()
    if isinstance(error, InputError):  # the worker runs other code
        raise error
    if isinstance(error, KilledWorker):
        reason = f"the worker that ran it died, and so did the next one ({error.last_worker.address})"
    else:
        reason = f"its worker failed: {type(error).__name__}: {error}"
    return _failed_outcome(reason)


def _failed_outcome(reason: str) -> CaseOutcome:
    return CaseOutcome(FAILED, {"success": False, "stage": "case", "cause": "its worker failed", "failure": reason})


def _check_scheduler(client: Any) -> None:
    if client.status != "running":
        raise JobFailed(_lost_message(client))


def _lost_message(client: Any) -> str:
    return f"the scheduler {client.scheduler.address} is lost; finished cases are stored: the same command continues"


def _workers(client: Any) -> dict[str, Any]:
    try:
        return client.scheduler_info(n_workers=-1)["workers"]
    except (OSError, TimeoutError):
        raise JobFailed(_lost_message(client)) from None
