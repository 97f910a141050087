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

POLL_S = 1.0
"""s: period of the queries of the list of workers."""

WARN_S = 120.0
"""s: time without a ready worker after which a message is printed."""


@dataclass(frozen=True)
class Runner:
    """Functions to run, ``module:function``: one for each case, one per machine before any case."""

    case: str = "mcplan.sweep.job:run_case"
    warm_up: str | None = "mcplan.sweep.job:warm_up"


class Workers:
    """The workers of a sweep: each is checked when it joins, and gets cases once its machine has compiled the kernels.

    Parameters
    ----------
    client : Dask client.
    runner : functions to run.
    argument : of the warm-up function.
    """

    def __init__(self, client: Any, runner: Runner, argument: Any):
        self.client, self.runner = client, runner
        self._argument = argument
        self._checked: set[str] = set()
        self._warm: set[str] = set()
        self._warming: dict[str, tuple[str, Any]] = {}

    @property
    def warming(self) -> bool:
        """Whether a machine is compiling kernels."""
        return bool(self._warming)

    def ready(self) -> list[str]:
        """Return the addresses of the workers that can take cases.

        Raises
        ------
        InputError
            A new worker has several threads, or runs another version of the code.
        JobFailed
            The kernels could not be compiled on its machine; the scheduler is lost.
        """
        found = _workers(self.client)
        if new := {address: about for address, about in found.items() if address not in self._checked}:
            self._check(new)
            self._checked.update(new)
        if self.runner.warm_up is None:
            return list(found)
        self._warm_up({address: about["host"] for address, about in found.items()})
        return [address for address, about in found.items() if about["host"] in self._warm]

    def _check(self, new: dict[str, Any]) -> None:
        for address, about in new.items():
            if about["nthreads"] != 1:
                threads = about["nthreads"]
                raise InputError(f"worker {address} has {threads} threads; a case needs one: dask worker --nthreads 1")
        try:
            versions = self.client.run(worker.version, workers=list(new), on_error="return")
        except (OSError, TimeoutError):
            raise JobFailed(_lost(self.client)) from None
        for address, version in versions.items():
            if isinstance(version, OSError):  # the worker is gone already
                continue
            if version != code_version():
                own = code_version()
                raise InputError(f"worker {address} has another version of mcplan ({version}), here it is {own}")

    def _warm_up(self, hosts: dict[str, str]) -> None:
        """Record machines that have compiled the kernels; start compiling with one worker of each other machine."""
        for host, (address, future) in list(self._warming.items()):
            if future.done():
                error = future.exception()
                if isinstance(error, InputError):
                    raise error
                if problem := error or future.result():
                    raise JobFailed(f"{host}: the kernels could not be compiled: {problem}")
                self._warm.add(host)
            elif address in hosts:
                continue
            del self._warming[host]
        task = (worker.prepare, self.runner.warm_up, self._argument, code_version())
        for address, host in hosts.items():
            if host not in self._warm and host not in self._warming:
                self._warming[host] = address, self.client.submit(*task, workers=[address], pure=False)


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
    while workers.warming:
        time.sleep(POLL_S / 10)
        workers.ready()
    return workers


class _Running(NamedTuple):
    """A submitted case: the workers that it may run on, and whether it was submitted a second time."""

    key: Any
    make: Callable[[], Any]
    future: Any
    places: frozenset[str]
    again: bool


def fan_out(
    workers: Workers, tasks: Iterable[tuple[Key, Callable[[], Any]]], limit: Limit
) -> Iterator[tuple[Key, CaseOutcome]]:
    """Yield the outcome of each task as it finishes; wait while no worker is ready, with a message.

    Parameters
    ----------
    workers : as `prepare` returns them.
    tasks : a key, and a function that builds the runner's argument once a worker is free.
    limit : time and memory limit of each case.

    Raises
    ------
    InputError
        A worker that came later has several threads, or runs another version of the code.
    JobFailed
        The scheduler is lost, or the kernels could not be compiled on the machine of a worker that came later.
    """
    client = workers.client
    done: queue.Queue[Any] = queue.Queue()
    running: dict[str, _Running] = {}
    waiting, case_numbers = iter(tasks), count(1)
    ready: list[str] = []
    queried, last_ready, warned = -POLL_S, time.monotonic(), False

    def submit(key: Key, make: Callable[[], Any], again: bool = False) -> None:
        call = (worker.work, workers.runner.case, make(), limit, code_version())
        future = client.submit(*call, key=f"case-{id(done)}-{next(case_numbers)}", workers=ready)
        running[future.key] = _Running(key, make, future, frozenset(ready), again)
        future.add_done_callback(done.put)

    task = next(waiting, None)
    try:
        while task is not None or running:
            # workers may join and leave during the sweep
            if time.monotonic() - queried >= POLL_S:
                ready, queried = workers.ready(), time.monotonic()
                if ready:
                    last_ready, warned = queried, False
                elif not warned and queried - last_ready >= WARN_S:
                    warned = True
                    note(f"no worker of {client.scheduler.address} has been ready for {WARN_S:g} s; waiting for one")
                for name, case in list(running.items()):
                    if not ready or not case.places.isdisjoint(ready) or case.future.done():
                        continue
                    case.future.cancel(force=True)
                    del running[name]
                    if case.again:  # the case itself may kill its workers
                        yield case.key, _failed("the workers that could run it have gone, and so have the next ones")
                    else:
                        submit(case.key, case.make, again=True)
            while task is not None and len(running) < len(ready):
                submit(*task)
                task = next(waiting, None)
            try:
                future = done.get(timeout=POLL_S)
            except queue.Empty:
                _check(client)
                continue
            if (finished_case := running.pop(future.key, None)) is not None:  # None: it was submitted again
                yield finished_case.key, _outcome(client, future)
    finally:
        for case in running.values():
            case.future.cancel(force=True)


def _outcome(client: Any, future: Any) -> CaseOutcome:
    if future.status == "finished":
        return future.result()
    _check(client)
    if future.status in ("cancelled", "lost"):
        raise JobFailed(_lost(client))
    from distributed import KilledWorker

    error = future.exception()
    if isinstance(error, InputError):  # the worker runs other code
        raise error
    if isinstance(error, KilledWorker):
        reason = f"the worker that ran it died, and so did the next one ({error.last_worker.address})"
    else:
        reason = f"its worker failed: {type(error).__name__}: {error}"
    return _failed(reason)


def _failed(reason: str) -> CaseOutcome:
    return CaseOutcome(FAILED, {"success": False, "stage": "case", "cause": "its worker failed", "failure": reason})


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
