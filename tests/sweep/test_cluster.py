"""Clusters: the same table whoever starts the workers, and nobody listens but on loopback."""

import signal

import psutil
import pytest

from mcplan.errors import InputError
from mcplan.sweep.engine import Runner, prepare
from mcplan.sweep.experiment import load_experiment
from mcplan.sweep.job import run_case
from mcplan.sweep.process import CaseProcess, Limit
from mcplan.sweep.sweep import job_of, sweep
from mcplan.sweep.worker import connect
from tests.sweep.by_hand import Cluster, kill_tree
from tests.sweep.clockless import without_clock

TEXT = "scenarios: [sway, single_support]\nsteps: plan\ngrid: {environment.friction: [0.5, 0.6]}\n"


@pytest.mark.slow
def test_scheduler_and_workers_started_by_hand_give_the_same_table(experiment_file, tmp_path):
    experiment = load_experiment(experiment_file(TEXT))
    with Cluster(2, tmp_path / "log") as cluster:
        by_hand = sweep(experiment, tmp_path / "by_hand", scheduler=cluster.address)
        with connect(1, cluster.address) as client:
            several = cluster.start("distributed.cli.dask_worker", cluster.address, "--nthreads", "2")
            try:
                client.wait_for_workers(3, timeout=60)
                with pytest.raises(InputError, match="has 2 threads"):
                    prepare(client, Runner(), ())
            finally:
                kill_tree(several)
    assert len(by_hand) == 4
    assert all(row["success"] for row in by_hand.rows)
    for case, row in zip(experiment.cases, map(without_clock, by_hand.rows), strict=True):
        here = run_case(job_of(case, ())).result
        assert row == {"case": case.id, **case.fields, **without_clock(here), "status": "done"}


def test_the_local_cluster_listens_on_loopback_alone():
    me = psutil.Process()
    before = {connection.laddr for connection in me.net_connections(kind="inet")}
    with connect(1) as client:
        client.wait_for_workers(1)
        processes = [me, *me.children(recursive=True)]
        listening = {
            connection.laddr
            for process in processes
            for connection in process.net_connections(kind="inet")
            if connection.status == psutil.CONN_LISTEN
        } - before
    assert len(listening) >= 3  # scheduler, nanny, worker
    assert {address.ip for address in listening} == {"127.0.0.1"}


def test_ctrl_c_is_heard_by_who_hands_out_the_cases_alone():
    """A terminal sends it to all; what a worker says to it would be pages of tracebacks."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with connect(1) as client:
        client.wait_for_workers(1)
        for process in psutil.Process().children(recursive=True):
            process.send_signal(signal.SIGINT)
        assert client.submit(sum, [1, 2]).result(timeout=10) == 3
        (worker,) = client.scheduler_info(n_workers=-1)["workers"]
        blocked = client.run(lambda: signal.pthread_sigmask(signal.SIG_BLOCK, ()), workers=[worker])[worker]
    assert signal.SIGINT in blocked, "what a worker starts is deaf from its first moment on"
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_where_signals_have_no_masks_workers_start_all_the_same(monkeypatch):
    monkeypatch.delattr(signal, "pthread_sigmask")  # Windows
    with connect(1) as client:
        assert client.submit(sum, [1, 2]).result(timeout=60) == 3


def test_the_process_of_cases_of_a_worker_started_by_hand_does_not_hear_ctrl_c():
    process = CaseProcess()
    try:
        code = process.call("mcplan.sweep.child:load", "mcplan.sweep.case:commit", Limit())
        process._process.send_signal(signal.SIGINT)
        assert process.call("mcplan.sweep.child:load", "mcplan.sweep.case:commit", Limit()) == code
    finally:
        process.close()
