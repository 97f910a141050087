"""The policy of compilation."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import mcplan
from mcplan.core import jit

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
    monkeypatch.setattr(jit, "CACHE_DIRECTORY", str(tmp_path))

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


def test_a_second_clone_of_the_same_version_compiles_nothing(tmp_path):
    first = Path(mcplan.__file__).parent
    second = tmp_path / "clone" / "mcplan"
    shutil.copytree(first, second, ignore=shutil.ignore_patterns("__pycache__"))

    def compiled(root):
        mine = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_DISABLE_JIT": "0"}
        command = [sys.executable, "-c", COUNTING]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root, env=mine)
        return done.stdout.split()

    assert compiled(first.parent) == ["quaternion_multiply"]
    assert compiled(second.parent) == []
    kernels = second / "core" / "algebra" / "rotation.py"
    kernels.write_text(kernels.read_text() + "\n# another version\n")
    assert compiled(second.parent) == ["quaternion_multiply"]


def test_kernels_of_other_files_are_told_apart_by_their_paths(tmp_path):
    mine = jit.KernelLocator.get_suitable_cache_subpath(str(Path(jit.__file__).parent / "algebra" / "rotation.py"))
    assert mine == "algebra"
    others = {jit.KernelLocator.get_suitable_cache_subpath(str(tmp_path / name / "algebra" / "k.py")) for name in "ab"}
    assert len(others) == 2
    assert mine not in others
