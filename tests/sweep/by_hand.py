"""A Dask cluster whose scheduler and workers are processes of their own on loopback, started and killed by hand."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(ROOT), str(HERE)]),
    "OPENBLAS_NUM_THREADS": "1",
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
    "DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD": "spawn",
}


class Cluster:
    """One scheduler and some workers, each of them replaced by ``mend`` when it is gone."""

    def __init__(self, workers, log):
        self.port = _free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"
        self._log = open(log, "a")  # noqa: SIM115 - closed with the cluster
        self.scheduler = None
        self.workers = [None] * workers
        self.mend()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in [*self.workers, self.scheduler]:
            kill_tree(process)
        self._log.close()

    def mend(self):
        """Start what is not running."""
        local = ["--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"]
        if _ended(self.scheduler):
            self.scheduler = self.start("distributed.cli.dask_scheduler", *local, "--port", str(self.port))
            wait_for(lambda: _answers(self.port))
        for k, worker in enumerate(self.workers):
            if _ended(worker):
                self.workers[k] = self.start("distributed.cli.dask_worker", self.address, *local, "--nthreads", "1")

    def start(self, module, *arguments):
        command = [sys.executable, "-m", module, *arguments]
        return subprocess.Popen(command, env=ENVIRONMENT, stdout=self._log, stderr=self._log)

    def kill_worker(self, rng):
        """Kill the nanny of a worker, the worker, or the process of its case."""
        nanny = psutil.Process(rng.choice(self.workers).pid)
        try:
            victims = [nanny, *(p for p in nanny.children(recursive=True) if "tracker" not in " ".join(p.cmdline()))]
            rng.choice(victims).send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            pass  # it was just ending by itself

    def kill_scheduler(self):
        self.scheduler.kill()
        self.scheduler.wait()


def sweep_process(experiment, directory, runner, *options):
    """Start a sweep in a process of its own."""
    command = [sys.executable, str(HERE / "by_hand.py"), str(experiment), str(directory), runner, *options]
    with open(f"{directory}.log", "a") as log:
        return subprocess.Popen(command, env=ENVIRONMENT, stdout=log, stderr=log)


def kill_tree(process):
    """Kill a process and all below it."""
    if process is None or process.poll() is not None:
        return
    below = psutil.Process(process.pid).children(recursive=True)
    for one in [process, *below]:
        try:
            one.kill()
        except psutil.NoSuchProcess:
            continue
    process.wait()


def wait_for(true, timeout=60.0):
    end = time.monotonic() + timeout
    while not true():
        if time.monotonic() > end:
            raise TimeoutError("nothing came")
        time.sleep(0.05)


def _ended(process):
    return process is None or process.poll() is not None


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def main(experiment, directory, runner, *address):
    from mcplan.errors import JobFailed
    from mcplan.sweep.engine import Runner
    from mcplan.sweep.experiment import load_experiment
    from mcplan.sweep.sweep import sweep

    try:
        sweep(load_experiment(experiment), directory, 2, *address, runner=Runner(f"runners:{runner}", None))
    except JobFailed as failure:
        sys.exit(f"{failure}")


if __name__ == "__main__":
    main(*sys.argv[1:])
