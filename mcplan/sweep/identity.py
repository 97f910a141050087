"""What makes two cases the same: the resolved configuration, and the code that runs it."""

import hashlib
import json
import subprocess
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from mcplan.document import Document
from mcplan.model.mesh_file import SCENE_SUFFIXES, WORLDS, MeshFiles
from mcplan.scene.found.world_file import read_world

UNUSED = ("sweep", "view", "bench", "commands")
"""Packages of mcplan that no result depends on."""


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


def mesh_files(document: Document) -> list[Path]:
    """Return the mesh files of a scenario: its environment's, what that names, those of obstacles and objects."""
    environment = document.data.get("environment") or {}
    solids = [solid for kind in ("obstacles", "objects") for solid in environment.get(kind) or ()]
    files = MeshFiles(Path(document.path), suffixes=SCENE_SUFFIXES)
    found = list[Path]()
    if "mesh" in environment:
        whole = files.find(environment["mesh"])
        stat = whole.stat()
        found += [whole, *_files_of_world(whole, stat.st_mtime_ns, stat.st_size)]
    return [*found, *(files.find(solid["mesh"]["file"]) for solid in solids if "mesh" in solid)]


@lru_cache(maxsize=64)
def _files_of_world(path: Path, _modified: int, _size: int) -> tuple[Path, ...]:
    return tuple(sorted(read_world(path).files)) if path.suffix.lower() in WORLDS else ()


@cache
def code_version() -> str:
    """Return the first 16 hex digits of the sha256 of the source files that results depend on."""
    package = Path(__file__).resolve().parents[1]
    found = hashlib.sha256()
    for folder in sorted(path for path in package.iterdir() if path.is_dir() and path.name not in UNUSED):
        for file in sorted(folder.rglob("*.py")):
            found.update(file.relative_to(package).as_posix().encode() + b"\0" + file.read_bytes())
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
