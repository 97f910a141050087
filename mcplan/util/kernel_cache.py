"""Cache of compiled kernels: directory, cached and missing kernels; without importing Numba.

Without that import a first run can report compilation at once, and its progress in all processes.
"""

import functools
import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path

from mcplan.util.bars import note

try:
    import fcntl
except ModuleNotFoundError:  # Windows has no file locks of this kind: let a first process compile alone
    fcntl = None  # type: ignore[assignment]

CORE = Path(__file__).parents[1] / "core"
"""Directory of the kernels."""

WHEEL_KERNELS = CORE.parent / "kernels"
"""Compiled kernels that come with a wheel (``make wheel``), in folders as in the cache."""

CPU_FEATURES = {"x86-64-v3": ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")}
"""Features of the processors that wheels have kernels for, by LLVM's name of the processor."""

TESTED_NUMBA = ("0.68",)
"""Minor versions of Numba on which all tests pass with `mcplan.core.accelerator`."""

_KERNEL_DECLARATION = re.compile(r"^@jit(?:_(?!view)\w+)?(?:\(.*\))?\n(?:@.*\n)*def (\w+)", re.MULTILINE)


def accelerated() -> bool:
    """Whether `mcplan.core.accelerator` compiles the kernels; the environment's ``MCPLAN_ACCELERATOR=0`` forbids it."""
    return os.environ.get("MCPLAN_ACCELERATOR") != "0" and version("numba").rpartition(".")[0] in TESTED_NUMBA


@functools.cache
def cache_directory() -> str:
    """Return the directory for compiled kernels, named by a hash of Numba's version and all files of ``core/``.

    Numba's own cache compares only the file of a kernel itself: after an edit in the file of a callee the caller would
    return the old result. A new directory begins with the kernels of another version that depend on equal files only.
    """
    digest = hashlib.sha256(f"{version('numba')} {accelerated()}".encode())
    if not accelerated():  # Numba's own cache distinguishes files by their path
        digest.update(str(CORE).encode())
    for file in sorted(CORE.rglob("*.py")):
        digest.update(file.relative_to(CORE).as_posix().encode() + file.read_bytes())
    directory = _caches() / "mcplan" / digest.hexdigest()[:16]
    if not directory.exists():
        _copy_wheel_kernels(WHEEL_KERNELS / directory.name, directory)
    if not directory.exists():
        _copy_unchanged_kernels(directory)
    return str(directory)


_CORE_IMPORT = re.compile(r"^ *from (mcplan\.core[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)
"""Import from ``core/``: a package or module, and names that may be modules."""

SOURCES = "sources"
"""File in the cache with a line per file of ``core/``: its name, and the hash of all that its kernels depend on."""


def _source_hashes() -> dict[str, str]:
    """Return, by ``folder/file``, a hash of each file of ``core/`` and of all that it imports from there."""
    files = {
        ".".join((CORE.parent.name, *file.relative_to(CORE.parent).with_suffix("").parts)): file
        for file in CORE.rglob("*.py")
    }
    imports = {}
    for module, file in files.items():
        statements = _CORE_IMPORT.findall(file.read_text(encoding="utf-8"))
        names = {f"{start}.{name}" for start, ends in statements for name in re.findall(r"\w+", ends)}
        names |= {start for start, _ in statements}
        imports[module] = names & files.keys()
    compilers = {f"mcplan.core.{name}" for name in ("jit", "compilation", "accelerator")}
    hashes = {}
    for module, file in files.items():
        found, waiting = set[str](), compilers | {module}
        while waiting:
            found |= waiting
            waiting = {name for one in waiting for name in imports[one]} - found
        digest = hashlib.sha256(f"{version('numba')} {accelerated() or CORE}".encode())
        for name in sorted(found):
            digest.update(name.encode() + files[name].read_bytes())
        hashes[f"{file.parent.name}/{file.stem}"] = digest.hexdigest()
    return hashes


def _copy_unchanged_kernels(target: Path) -> None:
    """Create the cache of this version, with the kernels of another version that depend on the same files only."""
    hashes = _source_hashes()
    lines = {f"{name} {digest}" for name, digest in hashes.items()}
    best, unchanged = None, set[str]()
    for sources in target.parent.glob(f"*/{SOURCES}"):
        with suppress(OSError):
            same = lines & set(sources.read_text().splitlines())
            if len(same) > len(unchanged):
                best, unchanged = sources.parent, same
    modules = {line.partition(" ")[0] for line in unchanged}
    with suppress(OSError), tempfile.TemporaryDirectory(dir=target.parent) as folder:
        new = Path(folder) / target.name
        new.mkdir()
        for file in best.glob("*/*.nb[ic]") if best else ():
            if _kernel_of(file).partition(".")[0] in modules:
                (new / file.parent.name).mkdir(exist_ok=True)
                shutil.copy2(file, new / file.parent.name / file.name)
        (new / SOURCES).write_text("\n".join(sorted(lines)))
        new.rename(target)  # an error if another process was first


def _copy_wheel_kernels(source: Path, target: Path) -> None:
    """Copy the kernels of a wheel to the cache, if it has any for this version and they run on this processor."""
    cpu = wheel_cpu(source)
    if not cpu or "NUMBA_CPU_NAME" in os.environ:
        return
    from llvmlite.binding import get_host_cpu_features

    features = get_host_cpu_features()
    if not all(features.get(name) for name in CPU_FEATURES[cpu]):
        note(f"the compiled kernels of this installation are for {cpu}, not for this processor")
        return
    with suppress(OSError), tempfile.TemporaryDirectory(dir=target.parent) as folder:
        shutil.copytree(source, Path(folder) / target.name)
        (Path(folder) / target.name).rename(target)  # an error if another process was first


def wheel_cpu(directory: Path) -> str:
    """Return the processor that the kernels in a folder were compiled for, if not for that of the user; else ""."""
    with suppress(OSError):
        return (directory / "cpu").read_text().strip()
    return ""


def _caches() -> Path:
    """Return the directory of caches: that of the environment, of the user, or a temporary one."""
    with suppress(OSError, RuntimeError):  # RuntimeError: neither a home directory nor an entry in passwd
        variable = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
        caches = Path(variable) if variable else Path.home() / ".cache"
        (caches / "mcplan").mkdir(parents=True, exist_ok=True)
        if os.access(caches / "mcplan", os.W_OK):
            return caches
    caches = _temporary_directory()
    note(f"compiled kernels are kept in {caches}: no cache directory is writable (set NUMBA_CACHE_DIR)")
    return caches


def _temporary_directory() -> Path:
    """Return a temporary directory writable only by this user, since its files are executed."""
    with suppress(OSError, AttributeError):  # AttributeError: Windows has no user numbers
        directory = Path(tempfile.gettempdir()) / f"mcplan-{os.getuid()}"
        directory.mkdir(mode=0o700, exist_ok=True)
        status = directory.lstat()
        if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022:
            return directory
    return Path(tempfile.mkdtemp(prefix="mcplan-"))


def declared_kernels(excluding: Iterable[str] = ()) -> set[str]:
    """Return the kernels that files of `core` declare, as ``folder/file.function``, except in some folders or files."""
    excluded = set(excluding)
    kernels = set()
    for file in CORE.rglob("*.py"):
        if excluded.isdisjoint((file.parent.name, f"{file.parent.name}/{file.stem}")):
            names = _KERNEL_DECLARATION.findall(file.read_text(encoding="utf-8"))
            kernels |= {f"{file.parent.name}/{file.stem}.{name}" for name in names}
    return kernels


def compiled_kernels(directory: str) -> set[str]:
    """Return the kernels that are in the cache, under the same names."""
    return {_kernel_of(index) for index in Path(directory).glob("*/*.nbi")}


def _kernel_of(file: Path) -> str:
    """Return the kernel of a file of the cache, as ``folder/file.function``."""
    folder = re.sub("_[0-9a-f]{40}$", "", file.parent.name)  # Numba's own cache appends a hash of the path
    return f"{folder}/{file.name.partition('-')[0]}"


def drop_truncated(directory: str) -> None:
    """Delete truncated cache files (no end of pickle): Numba would fail on them at every start."""
    for file in Path(directory).glob("*/*.nb[ic]"):
        with suppress(OSError), file.open("rb") as opened:
            opened.seek(max(0, file.stat().st_size - 1))
            if opened.read() != b".":
                file.unlink()


@contextmanager
def exclusive(directory: str) -> Iterator[None]:
    """Run the block in one process at a time, by a lock in a directory."""
    Path(directory).mkdir(parents=True, exist_ok=True)
    with (Path(directory) / "lock").open("a") as lock:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)  # released when the file is closed
        yield
