"""The policy of compilation, with the accelerator and on public Numba alone."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

import mcplan
from mcplan.core import compilation, jit
from mcplan.util import kernel_cache
from mcplan.util.kernel_cache import TESTED_NUMBA, accelerated

ROOT = Path(mcplan.__file__).parents[1]

needs_accelerator = pytest.mark.skipif(not accelerated(), reason="the accelerator is off")
both_policies = pytest.mark.parametrize(
    "accelerator", [pytest.param("1", marks=needs_accelerator, id="accelerator"), pytest.param("0", id="public")]
)

COUNTING = """
import numpy as np
from mcplan.core.algebra.rotation import quaternion_multiply
from mcplan.core.compilation import on_compiling
told = []
on_compiling(told.append, lambda: None)
quaternion_multiply(np.ones(4), np.ones(4), np.empty(4))
print(*told)
"""


def environment(cache, accelerator="1", root=ROOT):
    """Return the environment of a process with kernels in a cache of its own."""
    mine = {"NUMBA_CACHE_DIR": str(cache), "NUMBA_DISABLE_JIT": "0", "MCPLAN_ACCELERATOR": accelerator}
    return os.environ | mine | {"PYTHONPATH": str(root)}


def printed(code, cache, *arguments, **options):
    """Run code in a process of its own; return the words that it prints."""
    cache.mkdir(exist_ok=True)
    (cache / "script.py").write_text(code)  # Numba caches nothing that stands in no file
    command = [sys.executable, str(cache / "script.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment(cache, **options))
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_kernel_is_compiled_by_its_own_rules_whoever_calls_it_first(tmp_path, monkeypatch):
    monkeypatch.setattr(compilation, "CACHE_DIRECTORY", str(tmp_path))

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


def test_code_of_the_user_keeps_its_cache():
    before = numba.config.CACHE_DIR
    jit.jit(lambda x: x)
    assert before == numba.config.CACHE_DIR != jit.CACHE_DIRECTORY


def test_the_environment_and_the_version_of_numba_turn_the_accelerator_off(monkeypatch):
    for number, variable, expected in (
        (f"{TESTED_NUMBA[-1]}.1", "1", True), (f"{TESTED_NUMBA[-1]}.1", "0", False), ("99.0.0", "1", False),
    ):  # fmt: skip
        monkeypatch.setattr("mcplan.util.kernel_cache.version", lambda name, number=number: number)
        monkeypatch.setenv("MCPLAN_ACCELERATOR", variable)
        assert accelerated() is expected


VIEWS = """
import numpy as np
from mcplan.core import jit
from mcplan.core.bundle import axes1, axes2, axes3, bundle

@jit.jit
def overwrite(packed):
    axes1(packed.integer, packed.layout, 1)[2] = 7
    matrix = axes2(packed.real, packed.layout, 0)
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            matrix[i, j] += axes3(packed.real, packed.layout, 2)[i, j, 1]

@jit.jit
def sum_of(packed):
    total = 0.0
    for entry in axes2(packed.real, packed.layout, 0).flat:
        total += entry
    return total

rng = np.random.default_rng(0)
arrays = [rng.normal(size=(3, 4)), rng.integers(9, size=5), rng.normal(size=(3, 4, 2))]
packed, views = bundle(arrays)
overwrite(packed)
assert views[1][2] == 7
assert np.array_equal(views[0], arrays[0] + arrays[2][:, :, 1])
for view in views:
    view.flags.writeable = False
frozen, _ = bundle(views)
assert abs(sum_of(frozen) - views[0].sum()) < 1e-12
try:
    overwrite(frozen)
    print("written")
except Exception as error:
    print(type(error).__name__, jit.ACCELERATED)
"""


@both_policies
def test_views_in_kernels_are_those_in_python_and_read_only_where_the_buffer_is(tmp_path, accelerator):
    assert printed(VIEWS, tmp_path, accelerator=accelerator) == ["TypingError", str(accelerator == "1")]


def clone(folder):
    """Return the root of a copy of the package."""
    shutil.copytree(ROOT / "mcplan", folder / "mcplan", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@needs_accelerator
def test_a_second_clone_of_the_same_version_compiles_nothing(tmp_path):
    second = clone(tmp_path / "clone")
    assert printed(COUNTING, tmp_path / "cache") == ["quaternion_multiply"]
    assert printed(COUNTING, tmp_path / "cache", root=second) == []


@both_policies
def test_an_edit_in_the_file_of_a_callee_compiles_its_callers_again_and_nothing_else(tmp_path, accelerator):
    root = clone(tmp_path / "clone")
    kernel, caller = root / "mcplan" / "core" / "edited.py", root / "mcplan" / "core" / "caller.py"
    kernel.write_text("from mcplan.core.jit import jit\n\n@jit\ndef one(x):\n    return x + 1\n")
    imports = "from mcplan.core.jit import jit\nfrom mcplan.core.edited import one\n"
    caller.write_text(f"{imports}\n@jit\ndef two(x):\n    return one(x) + 1\n")
    code = f"from mcplan.core.caller import two\n{COUNTING}print(two(1))\nprint(*told)"
    first, second = (printed(code, tmp_path / "cache", accelerator=accelerator, root=root) for _ in range(2))
    assert (first, second) == (["quaternion_multiply", "3", "quaternion_multiply", "two", "one"], ["3"])
    kernel.write_text(kernel.read_text().replace("x + 1", "x + 5"))
    edited = printed(code, tmp_path / "cache", accelerator=accelerator, root=root)
    assert edited == ["7", "two", "one"]  # the kernel of another file is taken over from the last version


@needs_accelerator
def test_kernels_of_other_files_are_told_apart_by_their_paths(tmp_path, monkeypatch):
    from mcplan.core import accelerator

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def place(file):
        return Path(accelerator.KernelLocator(place, str(file)).get_cache_path()).relative_to(tmp_path)

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


@pytest.mark.slow
@both_policies
def test_processes_that_compile_the_same_kernel_at_once_do_not_mix_it_up(tmp_path, accelerator):
    """Each of these saves the code for another type: all are found again, each with its own."""
    (tmp_path / "saving.py").write_text(SAVING)
    mine = environment(tmp_path / "cache", accelerator)

    def at_once():
        return [subprocess.Popen([sys.executable, "saving.py", kind], cwd=tmp_path, env=mine) for kind in "if"]

    for processes in (at_once(), at_once()):
        assert [process.wait() for process in processes] == [0, 0]
    (index,) = (tmp_path / "cache").rglob("*.nbi")
    assert len(list(index.parent.glob("*.nbc"))) == 2


@pytest.mark.slow
@both_policies
def test_files_of_the_cache_that_were_cut_short_are_dropped_and_compiled_again(tmp_path, accelerator):
    def compiled():
        return printed(COUNTING, tmp_path, accelerator=accelerator)

    assert compiled() == ["quaternion_multiply"]
    for suffix, kept in (("nbi", 0.6), ("nbc", 0.0), ("nbc", 0.6)):
        (file,) = tmp_path.rglob(f"*.{suffix}")
        file.write_bytes(file.read_bytes()[: int(kept * file.stat().st_size)])
        assert compiled() == ["quaternion_multiply"]
    assert compiled() == []


def test_who_has_no_home_gets_a_temporary_directory_and_one_notice(tmp_path):
    """A user number without an entry in passwd has none: Python raises then."""
    code = (
        "from pathlib import Path\n"
        "def home(): raise RuntimeError('Could not determine home directory.')\n"
        "Path.home = home\n"
    )
    mine = {name: value for name, value in environment("").items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    mine["TMPDIR"] = str(tmp_path)
    for compiled in (["quaternion_multiply"], []):
        done = subprocess.run(
            [sys.executable, "-c", code + COUNTING], capture_output=True, text=True, check=False, env=mine
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == compiled
        assert len(re.findall(f"compiled kernels are kept in {tmp_path}", done.stderr)) == 1
    (directory,) = tmp_path.glob("mcplan-*")
    assert directory.stat().st_mode & 0o077 == 0


def test_where_no_cache_can_be_written_a_temporary_directory_is_used(tmp_path):
    (tmp_path / "file").touch()
    mine = environment(tmp_path / "file") | {"TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", COUNTING], capture_output=True, text=True, check=False, env=mine)
    assert (done.returncode, done.stdout) == (0, "quaternion_multiply\n"), done.stderr
    assert str(tmp_path / "mcplan-") in done.stderr


CALLING = """
import sys
import numpy as np
from mcplan.core import accelerator, compilation
accelerator.MAX_COPIED_LINES = 0
from mcplan.core.algebra.rotation import matrix_to_quaternion, quaternion_log, rotation_log
told = []
compilation.on_compiling(told.append, lambda: None)
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


@pytest.mark.slow
@needs_accelerator
def test_a_kernel_that_is_called_in_place_is_there_before_its_caller(tmp_path):
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
    for file in folder.rglob("rotation.quaternion_log-*"):
        file.write_bytes(file.read_bytes()[:-1])
    assert compiled("rotation_log") == ["quaternion_log"]
    assert compiled("rotation_log") == []
    assert compiled("rotation_log", "quaternion_log") == ["quaternion_log"], "it had no entry for Python"
    assert compiled("quaternion_log") == compiled("rotation_log", "quaternion_log") == []


def test_kernels_of_a_wheel_are_copied_for_a_processor_that_runs_them(tmp_path, monkeypatch):
    """They keep the name of their processor; nothing is copied for another one, or if the user names one."""
    wheel, cache = tmp_path / "wheel", tmp_path / "cache"
    wheel.mkdir()
    cache.mkdir()
    (wheel / "cpu").write_text("x86-64-v3\n")
    (wheel / "kernel.nbi").write_bytes(b"code")
    features = dict.fromkeys(kernel_cache.CPU_FEATURES["x86-64-v3"], True)
    monkeypatch.delenv("NUMBA_CPU_NAME", raising=False)
    for lacking, named, copied in (("avx2", "", False), ("", "generic", False), ("", "", True)):
        monkeypatch.setattr("llvmlite.binding.get_host_cpu_features", lambda no=lacking: features | {no: False})
        if named:
            monkeypatch.setenv("NUMBA_CPU_NAME", named)
        kernel_cache._copy_wheel_kernels(wheel, cache / "a")
        monkeypatch.delenv("NUMBA_CPU_NAME", raising=False)
        assert [file.name for file in cache.rglob("*.nbi")] == (["kernel.nbi"] if copied else [])
    assert kernel_cache.wheel_cpu(cache / "a") == "x86-64-v3"
    assert kernel_cache.wheel_cpu(cache / "b") == ""


LAZY = """
import sys
import mcplan
from mcplan.core.algebra.rotation import quaternion_multiply
from mcplan.core.jit import Kernel
robot = mcplan.load_robot("hrp2")
assert type(quaternion_multiply) is Kernel
print("numba" in sys.modules)
robot.com(robot.posture("half_sitting"))
print("numba" in sys.modules, type(quaternion_multiply) is Kernel)
"""


def test_a_robot_is_loaded_without_numba_and_the_first_call_puts_compiled_kernels_everywhere(tmp_path):
    done = subprocess.run([sys.executable, "-c", LAZY], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "False"]
