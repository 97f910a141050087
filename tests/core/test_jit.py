"""The policy of compilation."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import mcplan
from mcplan.core import jit, kernel_cache

COUNTING = """
import numpy as np
from mcplan.core.algebra.rotation import quaternion_multiply
from mcplan.core.jit import on_compiling
told = []
on_compiling(told.append, lambda: None)
quaternion_multiply(np.ones(4), np.ones(4), np.empty(4))
print(*told)
"""


def test_a_kernel_is_compiled_by_its_own_rules_whoever_calls_it_first(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_cache, "CACHE_DIRECTORY", str(tmp_path))

    @jit.jit
    def exact(x):
        total = 0.0
        for k in range(x.size):
            total += x[k]
        return total

    @jit.jit_inline
    def fast(x):
        return 2.0 * exact(x)

    assert fast(np.ones(5)) == 10.0
    ((_, by_itself),) = exact.inspect_llvm().items()
    assert "fadd double" in by_itself
    assert "reassoc" not in by_itself
    assert "alwaysinline" not in by_itself
    ((_, caller),) = fast.inspect_llvm().items()
    assert "reassoc" in caller


def printed(code, cache, *arguments, root=None):
    """Run code in a process of its own, with kernels in a cache of its own; return the words that it prints."""
    mine = os.environ | {"NUMBA_CACHE_DIR": str(cache), "NUMBA_DISABLE_JIT": "0"}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=root, env=mine).stdout.split()


def test_a_second_clone_of_the_same_version_compiles_nothing(tmp_path):
    first = Path(mcplan.__file__).parent
    second = tmp_path / "clone" / "mcplan"
    shutil.copytree(first, second, ignore=shutil.ignore_patterns("__pycache__"))

    def compiled(root):
        return printed(COUNTING, tmp_path / "cache", root=root)

    assert compiled(first.parent) == ["quaternion_multiply"]
    assert compiled(second.parent) == []
    kernels = second / "core" / "algebra" / "rotation.py"
    kernels.write_text(kernels.read_text() + "\n# another version\n")
    assert compiled(second.parent) == ["quaternion_multiply"]


def test_kernels_of_other_files_are_told_apart_by_their_paths(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_cache, "CACHE_DIRECTORY", str(tmp_path))

    def place(file):
        return Path(kernel_cache.KernelLocator(place, str(file)).get_cache_path()).relative_to(tmp_path)

    mine = place(Path(jit.__file__).parent / "algebra" / "rotation.py")
    assert mine == Path("algebra")
    others = {place(tmp_path / name / "algebra" / "k.py") for name in "ab"}
    assert len(others) == 2
    assert mine not in others


SAVING = """
import sys, time
from numba.core.caching import IndexDataCacheFile
from mcplan.core import jit

save_index = IndexDataCacheFile._save_index
def slowly(self, overloads):
    time.sleep(0.5)
    save_index(self, overloads)
IndexDataCacheFile._save_index = slowly

@jit.jit
def double(x):
    return x + x
kind, answer = {"i": (3, 6), "f": (0.5, 1.0)}[sys.argv[1]]
assert double(kind) == answer and type(double(kind)) is type(answer)
"""


def test_processes_that_compile_the_same_kernel_at_once_do_not_mix_it_up(tmp_path):
    """Each of these saves the code for another type: all are found again, each with its own."""
    (tmp_path / "saving.py").write_text(SAVING)
    mine = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "NUMBA_DISABLE_JIT": "0",
        "PYTHONPATH": str(Path(mcplan.__file__).parents[1]),
    }

    def at_once():
        return [subprocess.Popen([sys.executable, "saving.py", kind], cwd=tmp_path, env=mine) for kind in "if"]

    for processes in (at_once(), at_once()):
        assert [process.wait() for process in processes] == [0, 0]
    (index,) = (tmp_path / "cache").rglob("*.nbi")
    assert len(list(index.parent.glob("*.nbc"))) == 2


CALLING = """
import sys
import numpy as np
from mcplan.core import jit, kernel_cache
kernel_cache.LONG = 0
from mcplan.core.algebra.rotation import matrix_to_quaternion, quaternion_log, rotation_log
told = []
jit.on_compiling(told.append, lambda: None)
out = np.empty(3)
for kernel in sys.argv[1:]:
    if kernel == "rotation_log":
        rotation_log(np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]), np.empty(4), out)
        assert np.allclose(out, [0, 0, np.pi / 2]), out
    else:
        quaternion_log(np.array([0.0, 1, 0, 0]), out)
        assert np.allclose(out, [np.pi, 0, 0]), out
print(*told)
"""


def test_a_kernel_that_is_called_where_it_is_is_there_before_its_caller(tmp_path):
    """Compiled by one process and called by another, after it or alone, in whatever order; and where it is gone."""

    def compiled(*kernels):
        return printed(CALLING, tmp_path, *kernels)

    assert compiled("quaternion_log") == ["quaternion_log"]
    assert sorted(compiled("rotation_log")) == ["matrix_to_quaternion", "quaternion_normalise", "rotation_log"]
    assert compiled("rotation_log", "quaternion_log") == compiled("quaternion_log", "rotation_log") == []
    (folder,) = (tmp_path / "mcplan").iterdir()
    sizes = {file.name.partition("-")[0]: file.stat().st_size for file in folder.rglob("*.nbc")}
    assert sizes["rotation.rotation_log"] < sizes["rotation.matrix_to_quaternion"], "it holds no copy of what it calls"
    for file in folder.rglob("rotation.quaternion_log-*"):
        file.unlink()
    assert compiled("rotation_log") == ["quaternion_log"]
    assert compiled("rotation_log") == []
