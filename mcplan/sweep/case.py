"""One case of an experiment.

What makes two cases the same: hashes of the resolved configuration, of files, and of the code.

The mesh files of a scenario, which its text only names.
"""

import hashlib
import json
import subprocess
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

from mcplan.document.document import Document
from mcplan.errors import ScenarioError
from mcplan.robot.mesh_file import SCENE_SUFFIXES, WORLDS, MeshFiles
from mcplan.scenario.parameters import resolve
from mcplan.scenario.variant import variant_document
from mcplan.scene.found.world_file import read_world

UNUSED = (
    "sweep/", "view/", "bench/", "cli/", "__main__.py", "api.py", "sim/progress_bar.py", "util/bars.py", "version.py",
)  # fmt: skip
"""Packages and modules of mcplan that no result depends on, but for ``ROWS``."""

ROWS = ("sweep/job.py",)
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
        if not name.as_posix().startswith(UNUSED) or name.as_posix() in ROWS:
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


def mesh_digests(document: Document) -> tuple[str, ...]:
    """Return the sha256 (hex) of each mesh file of a scenario: its environment's, what that names, those of solids."""
    environment = document.data.get("environment") or {}
    solids = [solid for kind in ("obstacles", "objects") for solid in environment.get(kind) or ()]
    files = MeshFiles(Path(document.path), suffixes=SCENE_SUFFIXES)
    found = list[Path]()
    if "mesh" in environment:
        whole = files.find(environment["mesh"])
        stat = whole.stat()
        found += [whole, *_files_of_world(whole, stat.st_mtime_ns, stat.st_size)]
    found += [files.find(solid["mesh"]["file"]) for solid in solids if "mesh" in solid]
    return tuple(map(file_digest, found))


@lru_cache(maxsize=64)
def _files_of_world(path: Path, _modified: int, _size: int) -> tuple[Path, ...]:
    return tuple(sorted(read_world(path).files)) if path.suffix.lower() in WORLDS else ()


@dataclass(frozen=True)
class Case:
    """A scenario with values of its own.

    Parameters
    ----------
    scenario : name, as the table shows it.
    source : the scenario's document, before overrides.
    overrides : from the path of a field to its value, those of all cases included.
    swept : the overrides that differ between cases.
    seed : of the simulation; of the planner where there is no variant.
    variant : seed of the scenario's variant, or None.
    steps : ``plan`` or ``simulate``.
    robot : identity of the robot, its meshes included.
    """

    scenario: str
    source: Document = field(repr=False, compare=False)
    overrides: dict[str, Any]
    swept: tuple[str, ...]
    seed: int
    variant: int | None
    steps: str
    robot: str

    def document(self) -> Document:
        """Return the scenario's document with plain numbers only; it is made anew at each call.

        Raises
        ------
        ScenarioError
            An override that cannot be, or a variant that is not sound.
        """
        document = self.source.with_overrides(self.overrides, ScenarioError) if self.overrides else self.source
        resolved, problems = resolve(document) if self.variant is None else variant_document(document, self.variant)
        if problems:
            raise ScenarioError(*problems)
        return resolved

    @cached_property
    def configuration(self) -> str:
        """Hash (hex) of everything that was asked for: the same before and after a change of the code."""
        document = self.document()
        data = {key: value for key, value in document.data.items() if key not in ("name", "description")}
        asked = {"scenario": data, "robot": self.robot, "seed": self.seed, "steps": self.steps}
        meshes = mesh_digests(document)
        return digest(asked | {"meshes": meshes} if meshes else asked)

    @cached_property
    def id(self) -> str:
        """Hash (hex) of the configuration and of the code that runs it."""
        return digest([self.configuration, code_version()])

    @property
    def physics(self) -> str:
        """Name of the physics back end."""
        section = self.source.data.get("simulation") or {}
        return str(self.overrides.get("simulation.physics", section.get("physics", "qp")))

    @property
    def fields(self) -> dict[str, Any]:
        """What the case is given, as columns of the table."""
        values = {name: self.overrides[name] for name in self.swept if name in self.overrides}
        return {"scenario": self.scenario, **values, "seed": self.seed}
