"""Where compiled kernels are kept, how many there will be, and how many there are: without importing Numba.

So that a first run can say at once that it compiles, and how far it is, whichever process does it.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

try:
    import fcntl
except ModuleNotFoundError:  # Windows: the first of several processes that compile should be let finish alone
    fcntl = None  # type: ignore[assignment]

HERE = Path(__file__).parent

_KERNEL = re.compile(r"^@jit(?:_\w+)?(?:\(.*\))?\n(?:@.*\n)*def (\w+)", re.MULTILINE)


def cache_directory() -> str:
    """Return the directory for compiled kernels, named by the hash of Numba's version and all files of ``core/``."""
    digest = hashlib.sha256(version("numba").encode())
    for file in sorted(HERE.rglob("*.py")):
        digest.update(file.relative_to(HERE).as_posix().encode() + file.read_bytes())
    base = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return str(Path(base) / "mcplan" / digest.hexdigest()[:16])


def declared_kernels(without: Iterable[str] = ()) -> set[str]:
    """Return the kernels that the files declare, as ``folder/file.function``; ``without`` some folders or files."""
    left_out = set(without)
    found = set()
    for file in HERE.rglob("*.py"):
        if left_out.isdisjoint((file.parent.name, f"{file.parent.name}/{file.stem}")):
            names = _KERNEL.findall(file.read_text(encoding="utf-8"))
            found |= {f"{file.parent.name}/{file.stem}.{name}" for name in names}
    return found


def compiled_kernels(directory: str) -> set[str]:
    """Return the kernels that are in the cache, under the same names."""
    found = set()
    for index in Path(directory).glob("*/*.nbi"):
        found.add(f"{index.parent.name}/{index.name.partition('-')[0]}")
    return found


@contextmanager
def exclusive(file: Path) -> Iterator[None]:
    """Let one process at a time into the block, of all that name the same file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as held:
        if fcntl is not None:
            fcntl.flock(held, fcntl.LOCK_EX)  # until it is closed
        yield
