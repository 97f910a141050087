"""Mesh files: paths, packages (``package://``, ROS, conda, Python), formats, size limits, units and upward axes.

Files may be hostile: paths and sizes are checked before any file is read.
"""

import io
import math
import os
import site
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import numpy as np

from mcplan.errors import RobotError
from mcplan.robot.mesh_count import MeshCountError, collada_counts, gltf_counts
from mcplan.robot.xml_reader import Element, read_xml
from mcplan.util.arrays import read_only
from mcplan.util.files import PACKAGE_URI

INSTALL_COMMANDS = {"example-robot-data": "pip install 'mcplan[robots]'"}
"""Install commands of packages with bundled robots."""


def package_file(name: str, directories: Sequence[Path] = ()) -> Path:
    """Return the file of ``package://NAME/path``.

    Parameters
    ----------
    directories : directories to search before installed packages; each is the package NAME or contains it.

    Raises
    ------
    RobotError
        The package or the file does not exist.
    """
    package, _, inner = name.removeprefix(PACKAGE_URI).partition("/")
    resolved = [folder.resolve() for folder in directories]  # so that `.` and `..` have their real names
    candidates = [folder if folder.name == package else folder / package for folder in resolved]
    folders = [folder for folder in (*candidates, find_package(package)) if folder is not None and folder.is_dir()]
    if not folders:
        hint = INSTALL_COMMANDS.get(package, "name the directory that holds it in `packages`, or with --package-dir")
        raise RobotError(f"{name}: the package {package!r} is not installed: {hint}")
    for folder in folders:
        if _is_inside(folder / inner, folder, links=True) and (folder / inner).is_file():
            return (folder / inner).resolve()
    raise RobotError(f"{name}: the package {str(folders[0])!r} holds no file {inner!r}")


def find_package(name: str) -> Path | None:
    """Return the directory of an installed package: ``share/NAME``, or NAME on a ROS path."""
    if not name or Path(name).name != name or name in (".", ".."):
        return None
    return next((folder for folder in _folders(name) if folder.is_dir()), None)


def _folders(name: str) -> Iterator[Path]:
    for variable in ("AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH"):
        for prefix in _paths_of_variable(variable):
            yield prefix / "share" / name
    for directory in _paths_of_variable("ROS_PACKAGE_PATH"):
        yield directory if directory.name == name else directory / name
    for installed in dict.fromkeys([sysconfig.get_path("purelib"), *sys.path, site.getusersitepackages()]):
        yield Path(installed) / "cmeel.prefix" / "share" / name
    for python in dict.fromkeys([sys.prefix, sys.base_prefix]):
        yield Path(python) / "share" / name


def _paths_of_variable(variable: str) -> list[Path]:
    return [Path(part) for part in os.environ.get(variable, "").split(os.pathsep) if part]


def separator_hint(name: str) -> str:
    """Return a hint for a path with backslashes, which are escapes in YAML strings with double quotes."""
    return "; write / between folders, not \\" if "\\" in name or not name.isprintable() else ""


SUFFIXES = (".stl", ".obj", ".ply", ".off", ".dae")
GRIDS = (".npy", ".csv", ".png")
WORLDS = (".urdf", ".sdf", ".world", ".xml")
SCENE_SUFFIXES = (*SUFFIXES, ".glb", ".gltf", *GRIDS, *WORLDS)
"""File formats of an environment; ``SUFFIXES`` are those of a URDF, ``GRIDS`` height maps, ``WORLDS`` world files."""

MAX_MESH_BYTES = 64_000_000
MAX_TRIANGLES = 500_000
"""Maximum number of triangles of a mesh."""

MAX_ITEMS = 8_000_000
"""Maximum number of items of all accessors in a glTF file: corners, normals, colours, indices."""

UP_AXES = {
    "X_UP": ((0, -1, 0), (0, 0, -1), (1, 0, 0)),
    "Y_UP": ((1, 0, 0), (0, 0, -1), (0, 1, 0)),
    "Z_UP": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
}
"""Rotations from the axes of a COLLADA file to z up (COLLADA 1.4.1, ``up_axis``: right, up and inwards)."""

WRONG_UP_AXIS = "VCGLib"
"""Name of an authoring tool (MeshLab) that writes ``Y_UP`` into every file, also where z is up."""


PACKAGE_OPTIONS = "package_directories (--package-dir, `packages` of a robot.yaml)"
"""Where the user names package directories, for messages."""


class MeshError(Exception):
    """A mesh cannot be used; the message is the reason."""


class MeshFiles:
    """Reader of the meshes that one URDF refers to.

    Files must lie inside the model's directory, its package (a parent directory with the package's name, or the
    installed package) or the named package directories. Symbolic links may lead out of installed or named packages
    (``colcon build --symlink-install``), but not out of the model's directory.

    Parameters
    ----------
    urdf : the file that refers to the meshes.
    package_directories : directories that are packages or contain packages.
    suffixes : allowed formats.
    siblings : whether files below the parent of the model's directory are allowed, such as ``../meshes/x.stl``.

    Attributes
    ----------
    by_name : vertices and faces of the meshes read so far, by their names in the URDF.
    """

    def __init__(
        self,
        urdf: Path,
        package_directories: Sequence[str | Path] = (),
        suffixes: Sequence[str] = SUFFIXES,
        siblings: bool = False,
    ):
        self.suffixes = suffixes
        self.directory = urdf.resolve().parent
        self.home = self.directory.parent if siblings else self.directory
        self.packages = [Path(directory).resolve() for directory in package_directories]
        self._read: dict[Path, tuple[np.ndarray, np.ndarray]] = {}
        self.by_name: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def read(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return vertices (k,3) and faces (m,3) of the mesh ``name`` of the URDF."""
        path = self.find(name)
        if path not in self._read:
            self._read[path] = read_mesh(path)
        self.by_name[name] = self._read[path]
        return self._read[path]

    def find(self, name: str) -> Path:
        """Return the file for ``package://NAME/path``, ``file:///path`` or a path relative to the URDF."""
        suffix = Path(name).suffix.lower()
        if suffix not in self.suffixes:
            raise MeshError(f"the format {suffix or '(none)'} is not one of {', '.join(self.suffixes)}")
        if "\0" in name:
            raise MeshError("the name holds a NUL")
        scheme, _, remainder = name.partition("://")
        if remainder and scheme not in ("package", "model", "file"):
            raise MeshError(f"{scheme[:20]}:// is not read; use package:// or a path relative to the URDF")
        try:
            candidates = self._candidates(scheme, remainder, name)
            for root, candidate in candidates:
                if _is_inside(candidate, root, root not in (self.directory, self.home)) and candidate.is_file():
                    return candidate.resolve()
        except (OSError, ValueError, RuntimeError) as error:  # name too long, malformed address, or loop of links
            raise MeshError(f"cannot be looked up: {error}") from None
        if hint := separator_hint(name):
            raise MeshError(f"not found{hint}")
        if remainder and scheme in ("package", "model"):
            directories = ", ".join(str(path) for path in (self.directory, *self.packages))
            raise MeshError(f"not found (looked in {directories}); name its package in {PACKAGE_OPTIONS}")
        if not all(_is_inside(path, root, False) for root, path in candidates):
            raise MeshError(f"lies outside the model's directory; name its directory in {PACKAGE_OPTIONS}")
        raise MeshError("there is no such file")

    def _candidates(self, scheme: str, remainder: str, name: str) -> list[tuple[Path, Path]]:
        """Return pairs (directory that must contain the file, candidate for the file) in order of priority."""
        if not remainder or scheme == "file":
            path = Path(unquote(urlparse(name).path)) if remainder else self.directory / name
            return [(root, path) for root in (self.home, *self.packages)]
        package, _, inner = remainder.lstrip("/").partition("/")
        candidates = []
        for directory in self.packages:
            if directory.name == package:
                candidates.append((directory, directory / inner))
            candidates.append((directory, directory / package / inner))
        for directory in (self.directory, *self.directory.parents):
            if directory.name == package:
                candidates.append((directory, directory / inner))
        if (installed := find_package(package)) is not None:
            candidates.append((installed, installed / inner))
        return [
            *candidates,
            (self.directory, self.directory / package / inner),
            (self.directory, self.directory / inner),
        ]


def _is_inside(path: Path, root: Path, links: bool) -> bool:
    """Return whether a path is below a directory; ``links``: symbolic links in the directory may lead outside."""
    inside_before_links = Path(os.path.abspath(path)).is_relative_to(os.path.abspath(root))
    return (links and inside_before_links) or path.resolve().is_relative_to(root.resolve())


def read_mesh(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read one mesh file of an allowed format: vertices (k,3) float64 in m, faces (m,3) int64, both read-only.

    Unit and upward axis of COLLADA are applied. In glTF y is up and the unit is the metre; only embedded data are read.
    """
    import trimesh  # slow to import, and most bundled robots have no meshes

    try:
        size = path.stat().st_size
        if size > MAX_MESH_BYTES:
            raise MeshError(f"has {size} bytes, at most {MAX_MESH_BYTES} are read")
        data, suffix = path.read_bytes(), path.suffix.lower()
    except OSError as error:
        raise MeshError(f"cannot be read: {error.strerror}") from None
    frame = _file_frame(data, path)
    try:
        # from bytes, so that no other file (materials, textures) is opened
        loaded: Any = trimesh.load(io.BytesIO(data), file_type=suffix[1:], force="mesh")
        vertices = np.array(loaded.vertices, dtype=float).reshape(-1, 3) @ frame.T
        faces = np.array(loaded.faces, dtype=np.int64).reshape(-1, 3)
    except Exception as error:  # the readers raise exceptions of many types
        raise MeshError(f"cannot be read: {type(error).__name__}: {str(error)[:100]}") from None
    if not len(faces) or not len(vertices):
        raise MeshError("holds no triangles")
    _check_count(len(faces), "triangles", MAX_TRIANGLES)
    if not np.isfinite(vertices).all() or faces.min() < 0 or faces.max() >= len(vertices):
        raise MeshError("holds vertices that are not finite or do not exist")
    return read_only(vertices), read_only(faces)


def _check_count(count: int, what: str, limit: int) -> None:
    if count > limit:
        raise MeshError(f"holds {count} {what}, at most {limit} are taken")


def _file_frame(data: bytes, path: Path) -> np.ndarray:
    """Check the size of a file's content; return the scaled rotation (3,3) from the file's axes to metres with z up.

    COLLADA files are parsed by the strict XML reader first.
    """
    suffix = path.suffix.lower()
    try:
        if suffix in (".glb", ".gltf"):
            items, triangles = gltf_counts(data, suffix == ".glb")
            _check_count(items, "items of accessors", MAX_ITEMS)
            _check_count(triangles, "triangles", MAX_TRIANGLES)
            return np.array(UP_AXES["Y_UP"], float)
        if suffix != ".dae":
            return np.eye(3)
        root = read_xml(data, path.name)
        nodes, triangles = collada_counts(root)
    except MeshCountError as error:
        raise MeshError(f"cannot be read: {error}") from None
    except RobotError as error:
        raise MeshError(f"cannot be read: {error.problems[0].message}") from None
    _check_count(nodes, "nodes", MAX_TRIANGLES)
    _check_count(triangles, "triangles", MAX_TRIANGLES)
    return _collada_frame(root)


def _collada_frame(root: Element) -> np.ndarray:
    """Return the scaled rotation (3,3) from the axes of a COLLADA document to metres with z up.

    A file without ``up_axis`` is not rotated, although the format's default is y: the writing tools ignore it too.
    """
    assets = root.all("asset")
    candidates = [unit.attributes.get("meter", "1") for asset in assets for unit in asset.all("unit")]
    try:
        unit = float(candidates[0]) if candidates else 1.0
    except ValueError:
        unit = math.nan
    if not 0.0 < unit < math.inf:
        raise MeshError(f"cannot be read: a unit of {candidates[0][:24]!r} metres")
    up = [axis.text.strip() for asset in assets for axis in asset.all("up_axis")] or ["Z_UP"]
    if up[0] not in UP_AXES:
        raise MeshError(f"cannot be read: an up_axis of {up[0][:24]!r}, expected one of {', '.join(UP_AXES)}")
    tools = [t.text for asset in assets for c in asset.all("contributor") for t in c.all("authoring_tool")]
    return unit * np.array(UP_AXES["Z_UP" if any(WRONG_UP_AXIS in tool for tool in tools) else up[0]], float)
