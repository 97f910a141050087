"""A copy of the tree in which faults are made, one at a time; the checkout is never touched.

Numba finds compiled kernels by the path of their source, its size and its time. So a copy stays where it is from one
run to the next, files keep their times, and what the checkout has compiled is handed on.
"""

import atexit
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.mutation.catalogue import ROOT, Fault

OWN = "tests/mutation/"
"""The list of faults itself is no part of what is judged."""

RUNNING: set[subprocess.Popen] = set()
"""Tests that have to end with the campaign, with all that they have started."""


@atexit.register
def _end() -> None:
    for process in tuple(RUNNING):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def tracked(root: Path = ROOT) -> list[str]:
    """Return the files of the checkout that are under version control, and new ones of program and tests."""
    command = ["git", "ls-files", "-z", "--exclude-standard"]
    names = set()
    for further in (["--cached"], ["--others", "mcplan", "tests"]):
        text = subprocess.run([*command, *further], cwd=root, capture_output=True, check=True, text=True).stdout
        names.update(text.split("\0"))
    return sorted(name for name in names if name and (root / name).is_file() and not name.startswith(OWN))


def digest(root: Path = ROOT) -> str:
    """Hash of the tree: what was found in another one need not hold in this one."""
    total = hashlib.sha256()
    for name in tracked(root):
        if not name.startswith("docs/"):
            total.update(name.encode() + (root / name).read_bytes())
    return total.hexdigest()[:16]


class Copy:
    """A copy of the checkout for one worker.

    Parameters
    ----------
    number : of the worker.

    Attributes
    ----------
    root : of the copy.
    warm : whether it was there before, with kernels that its tests have had compiled.
    """

    def __init__(self, number: int):
        self.root = Path(tempfile.gettempdir()) / f"mcplan-mutation-{os.getuid()}" / f"worker{number}"
        self.warm, names = self.root.is_dir(), tracked()
        for path in [p for p in self.root.rglob("*") if p.is_file() and p.suffix != ".pyc"]:
            if str(path.relative_to(self.root)) not in names:
                path.unlink()
        for name in names:
            here, there = ROOT / name, self.root / name
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(here, there)

    @contextmanager
    def fault(self, fault: Fault):
        """Have a fault in the copy for a while."""
        path = self.root / fault.file
        before, times = path.read_bytes(), path.stat()
        path.write_text(fault.apply(before.decode()))
        try:
            yield
        finally:
            path.write_bytes(before)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def pytest(self, arguments: list[str], compiled: bool, timeout: float, keep: bool) -> tuple[int | None, str]:
        """Run tests in the copy: the exit code, None after the timeout, and what pytest wrote.

        Only of the clean tree Python may keep what it has compiled.
        """
        shutil.rmtree(self.root / ".hypothesis", ignore_errors=True)  # no example that another fault has left there
        environment = os.environ | {
            "PYTHONPATH": str(self.root),
            "PYTHONDONTWRITEBYTECODE": "" if keep else "1",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "NUMBA_DISABLE_JIT": "0" if compiled else "1",
        }
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=line", "-rfE", *arguments]
        process = subprocess.Popen(
            command,
            cwd=self.root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        RUNNING.add(process)
        try:
            text, _ = process.communicate(timeout=timeout)
            return process.returncode, text
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None, process.communicate()[0]
        finally:
            RUNNING.discard(process)
