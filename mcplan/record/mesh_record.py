"""Meshes in a run, so that it can be shown and judged where the files of robot and scenario are not."""

import html
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from mcplan.record.records import MeshRecord
from mcplan.robot.description import MeshShape

BUDGET = 60_000
"""Triangles that a run keeps of all meshes together; what goes beyond is kept as its convex hull."""

_FILENAME = re.compile(r"""(filename\s*=\s*)(["'])(.*?)\2""")


def record_meshes(meshes: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, MeshRecord]:
    """Keep meshes (vertices (k,3), faces (m,3)) by name: the smallest whole, the others as their convex hulls.

    Collisions are judged with the convex hull of a mesh in any case.
    """
    kept, left = {}, BUDGET
    for name, (vertices, faces) in sorted(meshes.items(), key=lambda item: (len(item[1][1]), item[0])):
        if len(faces) > left:
            vertices, faces = _hull(vertices, faces)
        else:
            left -= len(faces)
        kept[name] = MeshRecord(vertices=np.asarray(vertices).tolist(), faces=np.asarray(faces).tolist())
    return kept


def scene_meshes(environment: Any) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the meshes of obstacles and objects by the thing's name, scaled."""
    return {
        thing.name: (thing.shape.vertices, thing.shape.faces)
        for thing in (*environment.obstacles, *environment.objects)
        if isinstance(thing.shape, MeshShape)
    }


def unpack_urdf(text: str, meshes: Mapping[str, MeshRecord], directory: Path) -> str:
    """Write the meshes of a URDF into a directory; return its text with their new names, on the same lines."""
    names = {name: f"mesh_{k}.off" for k, name in enumerate(sorted(meshes))}
    for name, file in names.items():
        write_off(meshes[name], directory / file)

    def renamed(match: re.Match[str]) -> str:
        file = names.get(html.unescape(match[3]).strip())
        return match[0] if file is None else f"{match[1]}{match[2]}{file}{match[2]}"

    return _FILENAME.sub(renamed, text)


def unpack_scene(document: dict[str, Any], meshes: Mapping[str, MeshRecord], directory: Path) -> dict[str, Any]:
    """Write the meshes of a scene into a directory; return the document with their new names."""
    environment = dict(document.get("environment") or {})
    for group in ("obstacles", "objects"):
        if environment.get(group):
            environment[group] = [_unpacked(item, meshes, directory) for item in environment[group]]
    return document | {"environment": environment} if environment else document


def write_off(mesh: MeshRecord, path: Path) -> None:
    """Write a mesh in the Object File Format, which has the digits of a double."""
    lines = ["OFF", f"{len(mesh.vertices)} {len(mesh.faces)} 0"]
    lines += [" ".join(map(repr, vertex)) for vertex in mesh.vertices]
    lines += ["3 " + " ".join(map(str, face)) for face in mesh.faces]
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


def _unpacked(item: dict[str, Any], meshes: Mapping[str, MeshRecord], directory: Path) -> dict[str, Any]:
    name = str(item.get("name"))
    if "mesh" not in item or name not in meshes:
        return item
    file = f"thing_{sorted(meshes).index(name)}.off"
    write_off(meshes[name], directory / file)
    return item | {"mesh": {"file": file}}


def _hull(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the convex hull, its faces turned outward; a flat mesh has none and becomes its bounding box."""
    try:
        hull = ConvexHull(vertices)
    except QhullError:
        low, high = vertices.min(axis=0), vertices.max(axis=0)
        thin = np.maximum(high - low, 1e-4)
        corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)])
        return _hull(low + corners * thin, faces)
    order = np.full(len(vertices), -1)
    order[hull.vertices] = np.arange(len(hull.vertices))
    corners = vertices[hull.simplices]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inward = np.einsum("ij,ij->i", normal, hull.equations[:, :3]) < 0.0
    triangles = np.where(inward[:, None], hull.simplices[:, ::-1], hull.simplices)
    return vertices[hull.vertices], order[triangles]
