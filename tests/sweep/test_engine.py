"""Who gets cases: workers of the same code on machines that are warm, whenever they come."""

from types import SimpleNamespace

import pytest

from mcplan.errors import InputError, JobFailed
from mcplan.sweep import engine, worker
from mcplan.sweep.case import code_version
from mcplan.sweep.child import load
from mcplan.sweep.engine import Runner, Workers, fan_out, prepare
from mcplan.sweep.process import CaseError, Limit
from mcplan.sweep.store import DONE, FAILED, CaseOutcome


class Future:
    """Of Dask: done at once, unless it waits."""

    def __init__(self, key, value=None, error=None, waits=False):
        self.key, self.value, self.error, self.waits = key, value, error, waits

    @property
    def status(self):
        return "pending" if self.waits else "error" if self.error else "finished"

    def done(self):
        return not self.waits

    def exception(self):
        return self.error

    def result(self):
        return self.value

    def add_done_callback(self, call):
        if not self.waits:
            call(self)

    def cancel(self, force=False):
        pass


class Client:
    """Of Dask, as far as the engine needs it; what its workers are, the test says."""

    def __init__(self, *addresses):
        self.status, self.scheduler = "running", SimpleNamespace(address="tcp://scheduler")
        self.workers, self.versions, self.warm_ups, self.cases, self.error = {}, {}, {}, [], None
        self.lost = 0
        """How many more cases never end, as their workers go."""
        for address in addresses:
            self.come(address)

    def come(self, address, version=None, threads=1):
        self.workers[address] = {"nthreads": threads, "host": address.partition(":")[0]}
        self.versions[address] = version or code_version()

    def wait_for_workers(self, number, timeout):
        assert self.workers

    def scheduler_info(self, n_workers):
        return {"workers": dict(self.workers)}

    def run(self, function, workers, on_error):
        return {address: self.versions[address] for address in workers}

    def submit(self, function, *arguments, workers=None, key=None, **options):
        if function is worker.prepare:
            (address,) = workers
            return self.warm_ups.setdefault(address, Future(key, ""))
        self.cases.append(workers)
        assert not options.get("allow_other_workers")
        if self.lost:
            self.lost -= 1
            for address in workers:
                del self.workers[address]
            return Future(key, waits=True)
        return Future(key, CaseOutcome(DONE, {}), self.error)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(engine, "POLL_PERIOD_S", 0.0)


def tasks(count):
    return ((number, lambda: None) for number in range(count))


@pytest.mark.parametrize(
    ("about", "said"),
    [({"version": "older"}, "another version of mcplan .older."), ({"threads": 2}, "has 2 threads")],
)
def test_a_worker_that_comes_while_cases_run_is_checked_as_the_first_ones_are(about, said):
    client = Client("a:1")
    outcomes = fan_out(prepare(client, Runner(), ()), tasks(9), Limit())
    next(outcomes)
    client.come("b:1", **about)
    with pytest.raises(InputError, match=f"worker b:1 .*{said}"):
        list(outcomes)


def test_a_worker_that_has_gone_before_it_is_asked_ends_nothing():
    client = Client("a:1")
    client.versions["a:1"] = OSError("no connection")
    assert Workers(client, Runner(warm_up=None), ()).ready() == ["a:1"]


def test_a_machine_gets_cases_once_it_is_warm_and_is_warmed_up_once():
    client = Client("a:1", "a:2")
    outcomes = fan_out(prepare(client, Runner(), ()), tasks(20), Limit())
    assert set(client.warm_ups) == {"a:1"}
    next(outcomes)
    client.warm_ups["b:1"] = cold = Future("b", "", waits=True)
    client.come("b:1")
    client.cases.clear()
    for _ in range(4):
        next(outcomes)
    assert {tuple(workers) for workers in client.cases} == {("a:1", "a:2")}
    cold.waits = False
    client.come("b:2")
    client.cases.clear()
    for _ in range(4):
        next(outcomes)
    assert client.cases[-1] == ["a:1", "a:2", "b:1", "b:2"]
    assert set(client.warm_ups) == {"a:1", "b:1"}


def test_another_worker_warms_its_machine_up_where_the_first_one_goes():
    client = Client("a:1", "b:1", "b:2")
    client.warm_ups["b:1"] = Future("b", "", waits=True)
    workers = Workers(client, Runner(), ())
    workers.ready()
    del client.workers["b:1"]
    workers.ready()
    assert workers.ready() == ["a:1", "b:2"]


def test_kernels_that_cannot_be_compiled_are_said_with_their_machine():
    client = Client("a:1")
    client.warm_ups["a:1"] = Future("a", "no compiler")
    with pytest.raises(JobFailed, match="a: the kernels could not be compiled: no compiler"):
        prepare(client, Runner(), ())


def test_that_nobody_is_there_is_said_once(monkeypatch):
    said, looks = [], []
    monkeypatch.setattr(engine, "note", said.append)
    monkeypatch.setattr(engine, "WARNING_DELAY_S", 0.0)
    client = Client()

    class Late(Workers):
        def ready(self):
            looks.append(client.cases[:])
            if len(looks) == 5:
                client.come("a:1")
            return super().ready()

    assert len(list(fan_out(Late(client, Runner(), ()), tasks(5), Limit()))) == 5
    assert said == ["no worker of tcp://scheduler has been ready for 0 s; waiting for one"]
    assert looks[:5] == [[]] * 5, "a case was handed out while nobody was ready"
    assert client.cases == [["a:1"]] * 5


@pytest.mark.parametrize(("lost", "status"), [(1, DONE), (2, FAILED)])
def test_a_case_whose_workers_have_all_gone_is_handed_out_once_more(lost, status):
    """Dask would wait for these workers for ever; their successors have other addresses."""
    client = Client("a:1")
    client.lost = lost

    class Nanny(Workers):
        def ready(self):
            ready = super().ready()
            if not client.workers:
                client.come(f"a:{len(client.cases) + 1}")
            return ready

    outcomes = dict(fan_out(Nanny(client, Runner(), ()), tasks(2), Limit()))
    assert [outcomes[key].status for key in (0, 1)] == [status, DONE]
    assert client.cases == [["a:1"], ["a:2"], ["a:3"] if lost == 2 else ["a:2"]]
    if status == FAILED:
        assert outcomes[0].result["failure"].startswith("the workers that could run it have gone")


def test_a_case_that_its_worker_refuses_ends_the_sweep():
    client = Client("a:1")
    client.error = InputError("a: another version of mcplan")
    with pytest.raises(InputError, match="a: another version"):
        list(fan_out(prepare(client, Runner(), ()), tasks(1), Limit()))


class Child:
    """A process of cases that has loaded ``code``."""

    code, made = "now", 0

    def __init__(self):
        Child.made += 1
        self.alive = True

    def call(self, name, argument, limit):
        if not Child.code:
            raise CaseError("out of memory")
        return Child.code if name.endswith(":load") else CaseOutcome(DONE, {"success": argument})

    def close(self):
        self.alive = False


def test_the_process_of_cases_is_of_the_code_that_a_call_asks_for(monkeypatch):
    """One that runs already is asked as well: files may have changed since it began. Of one that cannot be loaded none
    is known, whatever the one before was of."""
    monkeypatch.setattr(worker, "CaseProcess", Child)
    monkeypatch.setattr(Child, "code", "now")
    monkeypatch.setattr(Child, "made", 0)
    monkeypatch.setattr(worker, "_process", None)
    monkeypatch.setattr(worker, "_loaded_code", "")
    for _ in range(2):
        assert worker.work("some:case", True, Limit(), "now").result == {"success": True}
    assert Child.made == 1
    with pytest.raises(InputError, match=r"another version of mcplan \(now\) than where the sweep began \(later\)"):
        worker.work("some:case", True, Limit(), "later")
    Child.code = "later"
    assert worker.prepare("some:case", True, "later") == ""
    assert Child.made == 3
    worker._process.alive, Child.code = False, ""
    for _ in range(2):
        assert worker.prepare("some:case", True, "later") == "out of memory"
    assert Child.made == 5


def test_a_process_says_of_which_code_it_is():
    assert load("mcplan.sweep.store:Store") == code_version()
