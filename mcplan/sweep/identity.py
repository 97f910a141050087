"""What makes two cases the same: hashes of the resolved configuration, of files, and of the code."""

import hashlib
import json
import subprocess
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

UNUSED = (
    "sweep", "view", "bench", "commands", "cli.py", "__main__.py", "run_directory.py", "progress.py", "bars.py",
    "version.py",
)  # fmt: skip
"""Packages and modules of mcplan that no result depends on, but for ``ROWS``."""

ROWS = ("sweep/job.py", "sweep/shared_plan.py")
"""Files of these that make the rows of a table."""


def digest(value: Any) -> str:
    """Return the sha256 (hex) of plain values; the order of keys does not count."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def file_digest(path: Path) -> str:
    """Return the sha256 (hex) of a file's content, read once while its time and size stay: every case asks for it."""
    stat = path.stat()
    return _content_digest(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=1024)
def _content_digest(path: Path, _modified: int, _size: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def code_version() -> str:
    """Return the first 16 hex digits of the sha256 of the source files that results depend on."""
    package = Path(__file__).resolve().parents[1]
    found = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        name = file.relative_to(package)
        if name.parts[0] not in UNUSED or name.as_posix() in ROWS:
            found.update(name.as_posix().encode() + b"\0" + file.read_bytes())
    return found.hexdigest()[:16]


@cache
def commit() -> str:
    """Return the commit of the checkout that the package sits in, with ``+`` where files differ; else nothing."""
    package = Path(__file__).resolve().parents[1]

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(package), *arguments], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        if not git("ls-files", "version.py"):  # an installed copy inside of somebody's checkout
            return ""
        return git("rev-parse", "--short=10", "HEAD") + ("+" if git("status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""
