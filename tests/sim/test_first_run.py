"""The second process of a first run: kernels that it compiles, and that it does not outlive the first."""

import subprocess
import sys
from contextlib import suppress

import pytest

from mcplan.core import jit
from mcplan.core.posture.search import search_posture
from mcplan.core.whole_body.fill import fill
from mcplan.sim import first_run


@pytest.mark.parametrize("physics", ["qp", "contact"])
def test_everything_that_is_to_be_compiled_can_be_called(physics):
    first_run.compile_all(physics)
    assert jit.is_cached(fill)
    assert jit.is_cached(search_posture)


def test_a_kernel_is_cached_where_its_index_is(tmp_path, monkeypatch):
    monkeypatch.setattr(jit, "CACHE_DIRECTORY", str(tmp_path))
    assert not jit.is_cached(fill)
    (tmp_path / "whole_body").mkdir()
    (tmp_path / "whole_body" / "fill.fill_in-12.py311.nbi").touch()
    assert not jit.is_cached(fill)
    (tmp_path / "whole_body" / "fill.fill-12.py311.nbi").touch()
    assert jit.is_cached(fill)


def test_a_plain_function_needs_no_compiling():
    assert jit.is_cached(fill.py_func)


def test_nothing_is_started_where_everything_is_compiled(monkeypatch):
    monkeypatch.setattr(first_run, "is_cached", lambda kernel: True)
    monkeypatch.setattr(subprocess, "Popen", None)
    with first_run.compiling_ahead("qp") as compiling:
        assert not compiling


def test_the_second_process_works_as_long_as_the_block(monkeypatch):
    started, popen = [], subprocess.Popen

    def start(command, **options):
        assert command[:3] == [sys.executable, "-m", "mcplan.sim.first_run"]
        started.append(popen([sys.executable, "-c", "import time; time.sleep(600)"], **options))
        return started[-1]

    monkeypatch.setattr(first_run, "is_cached", lambda kernel: False)
    monkeypatch.setattr(subprocess, "Popen", start)
    with suppress(KeyError), first_run.compiling_ahead("qp") as compiling:
        assert compiling
        assert started[0].poll() is None
        raise KeyError
    assert started[0].returncode is not None
