"""``environment: {mesh: FILE}``: the file's surfaces, bars and obstacles in place of its name."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial.transform import Rotation

from mcplan.document.document import Document
from mcplan.errors import InputError, Problem
from mcplan.scenario.schema import EnvironmentSpec

if TYPE_CHECKING:
    from mcplan.scene.found.find import Found

KEYS = ("mesh", "scale", "up", "pose", "find", "cell", "height")
"""Of ``environment``: gone once the mesh has been looked at."""

GROUPS = ("surfaces", "bars", "obstacles")

FAR = 200.0
"""m: a scene larger than this was hardly drawn in metres."""

TURNS = {"x": (0.0, -np.pi / 2, 0.0), "y": (np.pi / 2, 0.0, 0.0), "z": (0.0, 0.0, 0.0)}
"""Roll, pitch, yaw (rad) that turn an axis of the file up."""


def expanded(document: Document, spec: EnvironmentSpec) -> tuple[Document, list[Problem]]:
    """Return the document with what its mesh holds after what it lists by itself, and what is wrong with the mesh.

    What is found takes no name that stands in the file already: a surface listed there replaces the one that is found.
    """
    section = document.data.get("environment")
    if spec.mesh is None or not isinstance(section, dict):  # the specification is also read from a misspelt key
        return document, []
    environment = {key: value for key, value in section.items() if key not in KEYS}
    try:
        found = found_in(document, spec)
    except InputError as error:
        problems = [document.problem(("environment", "mesh"), p.message) for p in error.problems]
        return document.with_data({**document.data, "environment": environment}), problems
    from mcplan.scenario.values import environment_data

    data = environment_data(found.environment)
    own = {group: _list(environment.get(group)) for group in (*GROUPS, "objects")}
    taken = [item.get("name") for items in own.values() for item in items if isinstance(item, dict)]
    for group in GROUPS:
        environment[group] = own[group] + [item for item in data.get(group, ()) if item["name"] not in taken]
    return document.with_data({**document.data, "environment": environment}), []


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def found_in(document: Document, spec: EnvironmentSpec) -> "Found":
    """Return what is in the mesh that a document names.

    Raises
    ------
    InputError
        There is no such file, it cannot be read, or nothing is in it.
    """
    from mcplan.robot.mesh_file import SCENE_SUFFIXES, MeshFiles, MeshProblem

    assert spec.mesh is not None
    try:
        path = MeshFiles(Path(document.path), suffixes=SCENE_SUFFIXES).find(spec.mesh)
    except MeshProblem as reason:
        raise InputError(f"{spec.mesh}: {reason}") from None
    return found_in_file(path, spec)


def found_in_file(path: Path, spec: EnvironmentSpec) -> "Found":
    """Return what is in a mesh file, turned, scaled and placed as the environment says.

    Raises
    ------
    InputError
        It cannot be read, nothing is in it, or it is not in metres.
    """
    from mcplan.scene.found.settings import FindSettings

    stat, settings = path.stat(), spec.find or FindSettings()
    pose = tuple(map(float, (*spec.pose.p, *spec.pose.R.ravel())))
    grid = (spec.cell, spec.height)
    return _found(path, stat.st_mtime_ns, stat.st_size, spec.scale, spec.up, pose, grid, settings.model_dump_json())


@lru_cache(maxsize=8)
def _found(
    path: Path, _modified: int, _size: int, scale: float, up: str, pose: Any, grid: tuple[float, float], settings: str
) -> "Found":
    from mcplan.robot.mesh_file import GRIDS, WORLDS, MeshProblem, read_mesh
    from mcplan.scene.found.find import find
    from mcplan.scene.found.settings import FindSettings
    from mcplan.scene.found.triangles import Triangles, read_height_map
    from mcplan.scene.found.world_file import read_world

    suffix, notices = path.suffix.lower(), list[str]()
    try:
        if suffix in WORLDS:
            world = read_world(path)
            (vertices, faces), notices = world.triangles(), world.notices
        else:
            vertices, faces = read_height_map(path, *grid) if suffix in GRIDS else read_mesh(path)
    except MeshProblem as reason:
        raise InputError(f"{path.name}: {reason}") from None
    turn = Rotation.from_euler("xyz", TURNS[up]).as_matrix()
    placed = scale * vertices @ turn.T @ np.array(pose[3:]).reshape(3, 3).T + pose[:3]
    size = float(np.ptp(placed, axis=0).max())
    if size > FAR:
        raise InputError(f"{path.name}: {size:.0f} m across; is it in mm? environment: {{scale: 0.001}}")
    try:
        found = find(Triangles.of(placed, faces), FindSettings.model_validate_json(settings))
    except InputError as error:
        raise InputError(f"{path.name}: {error}") from None
    return replace(found, notices=(*notices, *found.notices))
