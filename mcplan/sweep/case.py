"""One case of an experiment, and its hash.

The hash covers the resolved configuration, the robot's and the scenario's mesh files, and the code.
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
from mcplan.scene.detection.world_file import read_world

UNHASHED = (
    "sweep/", "view/", "bench/", "cli/", "__main__.py", "api.py", "sim/progress_bar.py", "util/bars.py", "version.py",
)  # fmt: skip
"""Packages and modules of mcplan that no result depends on, except ``HASHED_ANYWAY``."""

HASHED_ANYWAY = ("sweep/job.py",)
"""Files within ``UNHASHED`` that results depend on, because they compute the rows of a table."""


def digest(value: Any) -> str:
    """Return the sha256 (hex) of plain values, independent of the order of keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def file_digest(path: Path) -> str:
    """Return the sha256 (hex) of a file's content, cached by modification time and size."""
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
    hasher = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        name = file.relative_to(package)
        if not name.as_posix().startswith(UNHASHED) or name.as_posix() in HASHED_ANYWAY:
            hasher.update(name.as_posix().encode() + b"\0" + file.read_bytes())
    return hasher.hexdigest()[:16]


@cache
def commit() -> str:
    """Return the git commit of the package, followed by ``+`` if files were changed; empty outside a checkout."""
    package = Path(__file__).resolve().parents[1]

    def git(*arguments: str) -> str:
        result = subprocess.run(["git", "-C", str(package), *arguments], capture_output=True, text=True, check=True)
        return result.stdout.strip()

    try:
        if not git("ls-files", "version.py"):  # an installed copy inside another checkout
            return ""
        return git("rev-parse", "--short=10", "HEAD") + ("+" if git("status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def mesh_digests(document: Document) -> tuple[str, ...]:
    """Return the sha256 (hex) of each mesh file of a scenario: environment, included files, solids."""
    environment = document.data.get("environment") or {}
    solids = [solid for kind in ("obstacles", "objects") for solid in environment.get(kind) or ()]
    files = MeshFiles(Path(document.path), suffixes=SCENE_SUFFIXES)
    paths = list[Path]()
    if "mesh" in environment:
        world = files.find(environment["mesh"])
        stat = world.stat()
        paths += [world, *_files_of_world(world, stat.st_mtime_ns, stat.st_size)]
    paths += [files.find(solid["mesh"]["file"]) for solid in solids if "mesh" in solid]
    return tuple(map(file_digest, paths))


@lru_cache(maxsize=64)
def _files_of_world(path: Path, _modified: int, _size: int) -> tuple[Path, ...]:
    """Return the files that a world file includes; none for a mesh file."""
    return tuple(sorted(read_world(path).files)) if path.suffix.lower() in WORLDS else ()


@dataclass(frozen=True)
class Case:
    """A scenario with overrides and a seed.

    Parameters
    ----------
    scenario : name, as the table shows it.
    source : the scenario's document, before overrides.
    overrides : values by the path of their field, including those common to all cases.
    swept : names of the overrides that differ between cases.
    seed : seed of the simulation; without a variant also of the planner.
    variant : seed of the scenario's variant, or None.
    steps : ``plan``, or ``simulate`` (plan and simulate).
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
        """Resolve the scenario's document to plain numbers; the result is not cached.

        Raises
        ------
        ScenarioError
            An override or the variant is invalid.
        """
        document = self.source.with_overrides(self.overrides, ScenarioError) if self.overrides else self.source
        resolved, problems = resolve(document) if self.variant is None else variant_document(document, self.variant)
        if problems:
            raise ScenarioError(*problems)
        return resolved

    @cached_property
    def configuration(self) -> str:
        """Hash (hex) of the inputs, without the code: comparisons across versions match cases by it."""
        document = self.document()
        data = {key: value for key, value in document.data.items() if key not in ("name", "description")}
        inputs = {"scenario": data, "robot": self.robot, "seed": self.seed, "steps": self.steps}
        meshes = mesh_digests(document)
        return digest(inputs | {"meshes": meshes} if meshes else inputs)

    @cached_property
    def id(self) -> str:
        """Hash (hex) of the configuration and the code."""
        return digest([self.configuration, code_version()])

    @property
    def physics(self) -> str:
        """Name of the physics back end."""
        section = self.source.data.get("simulation") or {}
        return str(self.overrides.get("simulation.physics", section.get("physics", "qp")))

    @property
    def fields(self) -> dict[str, Any]:
        """Inputs of the case, as columns of the table."""
        values = {name: self.overrides[name] for name in self.swept if name in self.overrides}
        return {"scenario": self.scenario, **values, "seed": self.seed}
