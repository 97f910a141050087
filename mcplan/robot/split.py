"""Convex decomposition of a URDF's collision meshes by CoACD.

Collision checks use the convex hull of a mesh, which closes hollows: a peg in a fork then collides at rest. Therefore
concave meshes are replaced by convex parts. Source: Wei et al., Approximate Convex Decomposition for 3D Meshes with
Collision-Aware Concavity and Tree Search (CoACD), ACM Transactions on Graphics 41(4), 2022.
"""

import copy
import io
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from scipy.spatial import ConvexHull, QhullError, cKDTree

from mcplan.errors import InputError, Problem
from mcplan.robot.mesh_file import MeshError, MeshFiles, package_file
from mcplan.robot.urdf import parse_urdf, read_bytes
from mcplan.util.files import PACKAGE_URI, atomic_write
from mcplan.util.spelling import did_you_mean

MAX_DEVIATION_M = 0.03
"""Deviation (m) of a hull from its mesh up to which the mesh is not decomposed."""

MAX_PARTS = 32
"""Maximum number of parts of one mesh; each part adds distance computations in every posture."""

MIN_SAMPLES = 4000
"""Number of sample points of a hull for its deviation, and minimum number of sample points of a mesh."""


@dataclass(frozen=True)
class Split:
    """Result of the decomposition of one mesh: deviation (m) of its hull ``before``, of the parts ``after``."""

    link: str
    mesh: str
    before: float
    after: float
    parts: int


def split_collisions(
    urdf: str | os.PathLike[str],
    out: str | os.PathLike[str],
    links: Sequence[str] = (),
    within: float = MAX_DEVIATION_M,
    package_directories: Sequence[str | os.PathLike[str]] = (),
    progress: Callable[[str], None] = lambda text: None,
) -> list[Split]:
    """Write a copy of a URDF with concave collision meshes replaced by convex parts.

    Parameters
    ----------
    urdf : path of the URDF, or ``package://NAME/path``.
    out : path of the new URDF; the parts are written to the directory ``NAME_parts`` beside it.
    links : names of links to process; by default all.
    within : maximum deviation (m) of the parts from a mesh; a mesh whose hull deviates less is unchanged.
    package_directories : as for ``load_robot``.
    progress : called with a message before each decomposition.

    Raises
    ------
    InputError
        A link does not exist, the URDF's other meshes would not be found from ``out``, the prefix of a tag is not
        declared, or CoACD is not installed.
    RobotError
        The URDF cannot be read.
    """
    directories = [Path(folder) for folder in package_directories]
    path = package_file(str(urdf), directories) if str(urdf).startswith(PACKAGE_URI) else Path(urdf)
    target = Path(out)
    data = read_bytes(path)
    model = parse_urdf(data, path, False, directories)  # all checks of the URDF, so that the code below can rely on it
    if missing := [name for name in links if name not in model.links]:
        raise InputError(f"{path}: there is no link {missing[0]!r}{did_you_mean(missing[0], model.links)}")
    decompose = _coacd()
    root = _tree(data, path)
    files = MeshFiles(path, directories, siblings=True)
    _rebase(root, files, target)
    splits, parts = list[Split](), dict[str, np.ndarray]()
    for element, collision in list(_mesh_collisions(root, links)):
        link, mesh = _name(element), collision.find("geometry/mesh")
        name = str(mesh.get("filename")).strip()
        scale = np.array([float(value) for value in mesh.get("scale", "1 1 1").split()])
        unscaled, faces = files.read(_original_name(name, path, target))
        vertices = unscaled * scale
        surface = cKDTree(_surface_samples(vertices, faces, within))
        before = _deviation([vertices], surface, within)
        if before <= within:
            continue
        progress(f"{link}: {Path(name).name}, whose hull is up to {1000 * before:.0f} mm off")
        part_corners = decompose(vertices, faces, within)
        names = [
            f"{target.stem}_parts/{re.sub(r'[^A-Za-z0-9_-]', '_', link)}_{len(parts) + k}.stl"
            for k in range(len(part_corners))
        ]
        parts |= {file: piece / scale for file, piece in zip(names, part_corners, strict=True)}
        _replace(element, collision, names)
        splits.append(Split(link, name, before, _deviation(part_corners, surface, within), len(part_corners)))
    for file, corners in parts.items():
        _write_hull(target.parent / file, corners)
    if splits:
        with atomic_write(target) as partial:
            ElementTree.ElementTree(root).write(partial, encoding="utf-8", xml_declaration=True)
    return splits


def _tree(data: bytes, path: Path) -> Any:
    """Return the root of a URDF with its comments; tags in a default namespace are without it, as in the file."""
    try:
        root = ElementTree.fromstring(data, ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True)))
        namespaces = [space for _, space in ElementTree.iterparse(io.BytesIO(data), events=["start-ns"])]
    except ElementTree.ParseError as reason:
        message = f'{reason}; a prefix of a tag is declared in <robot>: xmlns:drake="http://drake.mit.edu"'
        raise InputError(Problem(str(path), reason.position[0], "", message)) from None
    defaults = {uri for prefix, uri in namespaces if not prefix}
    for element in root.iter():
        if isinstance(element.tag, str) and element.tag.startswith("{"):  # the tag of a comment is a function
            uri, _, tag = element.tag[1:].rpartition("}")
            element.tag = tag if uri in defaults else element.tag
    return root


def _coacd() -> Callable[[np.ndarray, np.ndarray, float], list[np.ndarray]]:
    """Return the decomposition function.

    Its arguments are vertices (k,3) in m, faces (m,3) and the maximum deviation (m); it returns the parts' corners.
    """
    try:
        import coacd
    except ImportError:
        raise InputError("mesh decomposition needs CoACD: pip install 'mcplan[meshes]'") from None
    coacd.set_log_level("error")

    def decompose(vertices: np.ndarray, faces: np.ndarray, within: float) -> list[np.ndarray]:
        half_side = float(np.ptp(vertices, axis=0).max()) / 2  # the unit of CoACD is half of the mesh's longest side
        threshold = float(np.clip(within / half_side, 0.01, 1.0))
        mesh = coacd.Mesh(vertices, faces)
        parts = [
            np.asarray(corners) for corners, _ in coacd.run_coacd(mesh, threshold, max_convex_hull=MAX_PARTS, seed=0)
        ]
        # sorted, because threads of CoACD finish in any order
        return sorted(parts, key=lambda corners: (*corners.min(axis=0), *corners.max(axis=0)))

    return decompose


def _mesh_collisions(root: Any, links: Sequence[str]) -> Iterator[tuple[Any, Any]]:
    """Yield the link and collision elements of all collision meshes of the given links, or of all links."""
    for link in root.findall("link"):
        for collision in link.findall("collision") if not links or _name(link) in links else ():
            if collision.find("geometry/mesh") is not None:
                yield link, collision


def _name(link: Any) -> str:
    return str(link.get("name")).strip()


def _replace(link: Any, collision: Any, files: Sequence[str]) -> None:
    """Replace a collision element by one for each file with a part."""
    index = list(link).index(collision)
    link.remove(collision)
    for k, file in enumerate(files):
        part = copy.deepcopy(collision)
        part.find("geometry/mesh").set("filename", file)
        link.insert(index + k, part)


def _rebase(root: Any, files: MeshFiles, target: Path) -> None:
    """Make mesh paths relative to the directory of the new URDF."""
    target_directory = target.resolve().parent
    for mesh in root.iter("mesh"):
        name = str(mesh.get("filename")).strip()
        if "://" in name:
            continue
        try:
            file = files.find(name)
        except MeshError:  # a visual mesh that is missing in the old URDF too
            continue
        if not file.is_relative_to(target_directory):
            raise InputError(
                f"-o {target}: the URDF's mesh {name} would lie outside of its directory; write it to {files.directory}"
            )
        mesh.set("filename", file.relative_to(target_directory).as_posix())


def _original_name(name: str, path: Path, target: Path) -> str:
    """Return the path of a mesh as in the old URDF, given its path ``name`` in the new one."""
    return name if "://" in name else os.path.relpath(target.resolve().parent / name, path.resolve().parent)


def _surface_samples(vertices: np.ndarray, faces: np.ndarray, within: float) -> np.ndarray:
    """Return the vertices and sample points (k,3) on the faces, with a spacing of about a quarter of ``within`` (m)."""
    import trimesh

    mesh = trimesh.Trimesh(vertices, faces, process=False)
    count = int(np.clip(mesh.area / (within / 4) ** 2, MIN_SAMPLES, 1_000_000))
    return np.vstack([vertices, trimesh.sample.sample_surface(mesh, count, seed=0)[0]])


def _deviation(parts: Sequence[np.ndarray], surface: cKDTree, within: float) -> float:
    """Return the largest distance (m) of the union of convex parts, given by corners (k,3), from a sampled surface.

    Points inside another part are not on the boundary of the union and do not count.
    """
    import trimesh

    hulls = [_hull(corners) for corners in parts]
    largest = 0.0
    for k, hull in enumerate(hulls):
        mesh = trimesh.Trimesh(hull.points, hull.simplices, process=False)
        points = trimesh.sample.sample_surface(mesh, MIN_SAMPLES, seed=0)[0]
        for other in (other for j, other in enumerate(hulls) if j != k):
            A, b = other.equations[:, :3], other.equations[:, 3]
            points = points[(points @ A.T + b).max(axis=1) > within / 4]
        if len(points):
            largest = max(largest, float(surface.query(points)[0].max()))
    return largest


def _hull(corners: np.ndarray) -> ConvexHull:
    try:
        return ConvexHull(corners)
    except QhullError:
        return ConvexHull(corners, qhull_options="QJ")  # a flat mesh


def _write_hull(file: Path, corners: np.ndarray) -> None:
    import trimesh

    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(file) as partial:
        partial.write_bytes(trimesh.Trimesh(corners, []).convex_hull.export(file_type="stl"))
