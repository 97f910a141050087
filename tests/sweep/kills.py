"""Kill client, workers and scheduler of one experiment at random times; then every case is there, once, and right.

    python -m tests.sweep.kills [KILLS] [SEED]

Some minutes for 50 kills; the tests do it with a few.
"""

import random
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from mcplan.sweep.experiment import load_experiment
from mcplan.sweep.results import collect_results
from mcplan.sweep.store import FILE, Store
from tests.sweep.by_hand import Cluster, kill_tree, sweep_process
from tests.sweep.clockless import without_clock

TEXT = "mcplan: 1\nname: kills\nscenarios: [sway]\nsteps: plan\nseeds: {count: %d}\n"


def disturbed(directory, kills, cases, seed, runner="slow"):
    """Run the experiment to its end through ``kills`` kills; return how often what was killed.

    Raises
    ------
    AssertionError
        A row that was stored has changed, or has gone.
    """
    rng = random.Random(seed)
    killed = Counter()
    experiment = write_experiment(directory, cases)
    stored, client = {}, None
    with Cluster(2, directory / "cluster.log") as cluster:
        try:
            while True:
                if client is None or client.poll() is not None:
                    if client is not None and client.returncode == 0:
                        break
                    client = sweep_process(experiment, directory / "out", runner, cluster.address)
                time.sleep(rng.uniform(0.2, 3.0))
                if killed.total() < kills:
                    what = ("client", "worker", "scheduler")[killed.total() % 3]
                    killed[what] += 1
                    if what == "client":
                        kill_tree(client)
                    elif what == "worker":
                        cluster.kill_worker(rng)
                    else:
                        cluster.kill_scheduler()
                cluster.mend()
                stored = watch(directory / "out" / FILE, stored)
        finally:
            kill_tree(client)
    watch(directory / "out" / FILE, stored)
    return killed


def watch(file, stored):
    """Return the rows as they are now; those that were there before are there unchanged."""
    if not file.is_file():
        return stored
    with sqlite3.connect(file) as db:
        try:
            rows = dict(db.execute("select id, finished from cases"))
        except sqlite3.OperationalError:  # killed before the table was made
            return stored
    changed = [identity for identity, finished in stored.items() if rows.get(identity) != finished]
    assert not changed, f"rows changed or went: {changed}"
    return rows


def write_experiment(directory, cases):
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "kills.yaml"
    file.write_text(TEXT % cases)
    return file


def table(directory):
    """Return the rows without clock times, and how many there are in the store."""
    experiment = load_experiment(directory / "kills.yaml")
    with Store(directory / "out", read_only=True) as store:
        return [without_clock(row) for row in collect_results(experiment, store).rows], len(store.statuses())


def main(kills=50, seed=0):
    cases = 12 * kills
    with tempfile.TemporaryDirectory() as home:
        calm, rough = Path(home) / "calm", Path(home) / "rough"
        experiment = write_experiment(calm, cases)
        client = sweep_process(experiment, calm / "out", "quick")
        if client.wait() != 0:
            sys.exit(f"the undisturbed run failed: {(calm / 'out.log').read_text()}")
        began = time.monotonic()
        killed = disturbed(rough, kills, cases, seed)
        (expected, _), (found, count) = table(calm), table(rough)
        differing = [(a, b) for a, b in zip(expected, found, strict=True) if a != b]
        print(f"{killed.total()} kills ({dict(killed)}) in {time.monotonic() - began:.0f} s over {cases} cases")
        print(f"{count} rows, {len(differing)} differ from the undisturbed run")
        for a, b in differing[:5]:
            print(f"  {a}\n  {b}")
        return 0 if count == cases and not differing else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
