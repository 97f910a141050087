"""What a terminal shows during long work, seen through a pseudo-terminal; and that nothing else is shown anything."""

import itertools
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from mcplan.cli.main import main
from mcplan.core import jit
from mcplan.planning.planner import plan
from mcplan.util import bars
from mcplan.util.bars import BARS, PlanningProgress
from mcplan.util.compiling import SECONDS_PER_KERNEL, Compiling
from mcplan.util.kernel_cache import accelerated, cache_directory, compiled_kernels, declared_kernels
from mcplan.util.progress import progress_listener, report_progress

pytestmark = pytest.mark.skipif(not hasattr(os, "openpty"), reason="no pseudo-terminals on this system")


def shown(command, seconds, directory, **environment):
    """Run a command on a terminal of 80 columns; return what it showed with the time of each part, and its status.

    It is ended after ``seconds`` from the first sign of life on; the status is then negative.
    """
    terminal, other_end = os.openpty()
    parts, started = [], time.monotonic()
    command = [sys.executable, "-m", "mcplan.cli.main", *command]
    environment = os.environ | {"COLUMNS": "80", "TERM": "xterm"} | environment
    with subprocess.Popen(command, stdout=other_end, stderr=other_end, cwd=directory, env=environment) as running:
        os.close(other_end)
        try:
            while part := os.read(terminal, 65536):  # a terminal that nobody reads holds the program up
                text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", part.decode(errors="replace"))
                parts.append((time.monotonic() - started, text))
                if parts[-1][0] - parts[0][0] > seconds:
                    running.terminate()
                    break
        except OSError:  # the other end is closed: so some systems say it
            pass
    os.close(terminal)
    return parts, running.returncode


def test_a_first_run_shows_within_a_second_that_it_compiles_and_how_far_it_is(tmp_path):
    first = []
    for attempt in range(3):  # on a busy machine the best counts: it is this program's delay, not the machine's
        cache = str(tmp_path / str(attempt))
        parts, _ = shown(["run", "sway"], 2.0, tmp_path, XDG_CACHE_HOME=cache, NUMBA_CACHE_DIR="")
        text = "".join(part for _, part in parts)
        assert re.search(r"compiling .* \d+ of \d+ kernels", text), text
        first.append(parts[0][0])
        if first[-1] < 1.0:
            break
    assert min(first) < 1.0


@pytest.fixture(scope="module")
def told():
    """What a search tells. It compiles the kernels of planning, too, where nobody has: for a minute."""
    counts = []
    plan("stairs", progress=lambda *found: counts.append(found))
    return counts


@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "seconds"), [("stairs_rail", 5.0), ("stairs", 120.0)])
def test_planning_is_shown_at_least_once_a_second(scenario, seconds, tmp_path, told):
    """Whatever lasts is named; a search that is over between two drawings is not (its counts: the next test)."""
    parts, status = shown(["plan", scenario], seconds, tmp_path)
    text = "".join(part for _, part in parts)
    begun = next(k for k, (_, part) in enumerate(parts) if "0:00:0" in part)
    times = [when for when, _ in parts[begun:]]
    assert times[-1] - times[0] > 1.0
    assert max(b - a for a, b in itertools.pairwise(times)) < 1.0
    named = r"planning [^\r\n]* (moves to go|joining|checking the motion|finding motion|giving room|proving every)"
    assert re.search(named, text), text
    if seconds > 100.0:  # to its end
        assert status == 0, text
        assert re.search(r"checking .* judging the motions between them", text), text


def test_a_search_says_how_far_it_is(monkeypatch, told):
    """Stances and postures grow; the least estimate of what is left does not, and ends at the goal."""
    drawn = []
    nodes, calls, least = zip(*told, strict=True)
    assert list(nodes) == sorted(nodes)
    assert list(calls) == sorted(calls)
    assert nodes[-1] > nodes[0]
    assert calls[-1] > calls[0]
    assert least[-1] < least[0]
    monkeypatch.setattr(BARS, "update", lambda task, text, share=None: drawn.append(text))
    PlanningProgress().update(*told[0])
    assert re.fullmatch(rf"{nodes[0]} stances, {calls[0]} postures, ~\d+\.\d moves to go", drawn[0]), drawn


def test_what_is_done_is_said_one_by_one():
    """A sequence written by hand has no search: each posture and each motion is named, in order, none twice."""
    said = []
    with progress_listener(lambda what, share: said.append((what, share))):
        made = plan("step")
    n = len(made.stances) - 1
    for what in ("finding posture", "finding motion"):
        assert [text for text, _ in said if text.startswith(what)] == [f"{what} {k} of {n}" for k in range(1, n + 1)]
    assert [share for text, share in said if text.startswith("finding motion")] == [k / n for k in range(n)]
    count = len(said)
    report_progress("after")  # nobody listens any more
    assert len(said) == count


@pytest.mark.slow
def test_a_run_shows_how_fast_time_passes_and_leaves_the_terminal_as_it_was(tmp_path):
    parts, status = shown(["run", "sway", "--set", "simulation.dt=0.005"], 120.0, tmp_path)
    text = "".join(part for _, part in parts)
    assert status == 0, text
    assert re.search(r"simulating .* t \d+\.\d\d s, \d+\.\d x real time", text), text
    for line in text.replace("\r", "\n").splitlines():
        assert len(line) <= 80 or not line.startswith(("compiling", "planning", "simulating")), line
    assert "certificate holds" in text


def test_elsewhere_lines_say_what_begins_and_quiet_says_nothing(tmp_path, capsys):
    for number, (options, lines) in enumerate([([], ["planning sway ..."]), (["-q"], [])]):
        path = str(tmp_path / f"{number}.plan.yaml")
        assert main(["plan", "sway", "-o", path, *options]) == 0
        said = capsys.readouterr()
        assert [line for line in said.err.splitlines() if "kernels" not in line] == lines
        assert f"plan: {path}" in said.out


def test_a_notebook_gets_one_line_a_second(monkeypatch, capsys):
    monkeypatch.setattr(bars, "in_notebook", lambda: True)
    monkeypatch.setattr(bars.Bars, "_redraw_loop", lambda self, progress: None)  # it may write first
    one = bars.Bars()
    task = one.add("simulating")
    for _ in range(5):
        one.update(task, "t 1.00 s")
    assert capsys.readouterr().err.count("t 1.00 s") == 1
    one.remove(task)
    assert capsys.readouterr().err.strip() == ""


def test_kernels_that_are_compiled_are_among_those_that_are_declared():
    core = Path(jit.__file__).parent  # tests, and code beside it that uses its decorators, have kernels of their own
    compiled = {k for k in compiled_kernels(cache_directory()) if (core / f"{k.partition('.')[0]}.py").is_file()}
    assert len(compiled) > 50
    assert compiled <= declared_kernels()
    assert len(declared_kernels(["contact"])) < len(declared_kernels())


def test_the_seconds_of_compiling_are_those_of_all_kernels_and_of_kernels_within_kernels_once(monkeypatch, capsys):
    clock = 100.0
    monkeypatch.setattr("mcplan.util.compiling.time", SimpleNamespace(monotonic=lambda: clock))
    watch = Compiling()
    for seconds in (2.0, 3.0):
        watch.compilation_started("outer")
        clock += 0.5 * seconds
        watch.compilation_started("inner")
        clock += 0.5 * seconds
        watch.compilation_ended()
        watch.compilation_ended()
        clock += 10.0
    assert watch.seconds == pytest.approx(5.0)


def test_a_first_run_is_told_from_a_later_one(tmp_path, monkeypatch, capsys):
    watch = Compiling()
    assert not watch.announce_first_run("qp")
    monkeypatch.setattr("mcplan.util.compiling.cache_directory", lambda: str(tmp_path))
    assert watch.announce_first_run("qp")
    watch.compilation_started("some_kernel")
    watch.compilation_ended()
    minutes = 0.5 * SECONDS_PER_KERNEL[accelerated()] * len(declared_kernels(["contact"])) / 60.0
    (found,) = re.findall(r"^compiling kernels, once per installation: up to (\d) min\n$", capsys.readouterr().err)
    assert 0.5 * minutes < int(found) < minutes + 1.0


def test_python_on_a_cold_cache_is_told_of_minutes_and_on_a_warm_one_of_seconds(tmp_path, monkeypatch, capsys):
    """One process compiles all kernels then, and which ones it needs is not known."""
    for directory, text in ((str(tmp_path), r"up to \d min"), (cache_directory(), r"(some seconds|up to 1 min)")):
        monkeypatch.setattr("mcplan.util.compiling.cache_directory", lambda directory=directory: directory)
        watch = Compiling()
        watch.compilation_started("some_kernel")
        watch.compilation_ended()
        assert re.fullmatch(f"compiling kernels, once per installation: {text}\n", capsys.readouterr().err)


def test_what_compiles_is_told(tmp_path):
    """In a process of its own: the cache of this one has everything."""
    code = (
        "from mcplan.core.compilation import on_compiling\n"
        "from mcplan.core.algebra.rotation import quaternion_multiply\nimport numpy as np\n"
        "told = []\non_compiling(told.append, lambda: told.append('.'))\n"
        "for _ in range(2): quaternion_multiply(np.ones(4), np.ones(4), np.empty(4))\n"
        "print(*told)"
    )
    mine = {"XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[1])}
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"} | mine
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.stdout.split() == ["quaternion_multiply", "."], done.stderr
