"""What a case costs besides itself, and what a second worker brings.

python -m tests.sweep.throughput [CASES]
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from mcplan.sweep.engine import Runner
from mcplan.sweep.experiment import load_experiment
from mcplan.sweep.store import FILE
from mcplan.sweep.sweep import sweep

HERE = Path(__file__).parent
TEXT = "mcplan: 1\nname: throughput\nscenarios: [%s]\nsteps: plan\nvariants: true\nkeep: []\nseeds: {count: %d}\n"


def cases_per_second(home, scenario, cases, workers, runner=None):
    """Return the rate from the first outcome to the last: without the start of workers and the compilation."""
    file = home / "throughput.yaml"
    file.write_text(TEXT % (scenario, cases))
    times = []
    out = Path(tempfile.mkdtemp(dir=home))
    sweep(load_experiment(file), out, workers, progress=lambda *_: times.append(time.perf_counter()), runner=runner)
    first = 1 + workers  # each worker's first case also starts its process
    return (len(times) - 1 - first) / (times[-1] - times[first]), (out / FILE).stat().st_size / cases


def load():
    """Return what else this machine has to do."""
    return f" (load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores)"


def main(cases=40):
    sys.path.insert(0, str(HERE))
    quick = Runner("runners:quick", None)
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        rate, size = cases_per_second(home, "walk", 25 * cases, 1, quick)
        print(f"overhead: {1e3 / rate:.1f} ms per case, {size:.0f} bytes per case in the store{load()}")
        ratios = []
        for _ in range(4):
            one, _ = cases_per_second(home, "walk", cases, 1)
            two, _ = cases_per_second(home, "walk", cases, 2)
            ratios.append(two / one)
            print(f"plan walk: {one:.2f} cases/s on 1 worker, {two:.2f} on 2: {two / one:.2f} x{load()}")
        print(f"median {median(ratios):.2f} x")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
