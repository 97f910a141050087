"""Environment of a scenario file: listed things, and things detected in a mesh, height map or world file."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mcplan.document.document import Document
from mcplan.errors import InputError, Problem
from mcplan.scenario.schema import BarSpec, EnvironmentSpec, ObjectSpec, ObstacleSpec, SolidSpec, SurfaceSpec
from mcplan.scenario.values import environment_data
from mcplan.scene.environment import Bar, Environment, FreeObject, Obstacle, Surface, Thing
from mcplan.scene.spec import PoseSpec

if TYPE_CHECKING:
    from mcplan.robot.description import Shape
    from mcplan.scene.detection.detect import DetectedScene


Key = tuple[str | int, ...]


def build_environment(spec: EnvironmentSpec, document: Document) -> tuple[Environment, list[Problem]]:
    """Return the environment, and its problems, such as repeated names and unreadable meshes."""
    problems: list[Problem] = []
    things: list[Thing] = []

    def add_thing(key: Key, make: Callable[[], Thing | None]) -> None:
        try:
            thing = make()
        except InputError as error:
            problems.extend(document.problem(key, p.message) for p in error.problems)
        else:
            things.extend([] if thing is None else [thing])

    def make_solid(item: ObstacleSpec | ObjectSpec, key: Key) -> Thing | None:
        shape, R, p = _shape(item, document, key, problems), item.pose.R, item.pose.p
        if shape is None:
            return None
        if isinstance(item, ObstacleSpec):
            return Obstacle(item.name, shape, R, p)
        object_surfaces = [_surface(surface, spec.friction, R, p, item.name) for surface in item.surfaces]
        return FreeObject(item.name, shape, R, p, item.mass, item.friction, object_surfaces)

    def make_bar(item: BarSpec) -> Bar:
        return Bar(item.name, item.ends, item.radius, _common_or_own(spec.friction, item.friction), item.max_force)

    for k, surface in enumerate(spec.surfaces):
        add_thing(("environment", "surfaces", k), partial(_surface, surface, spec.friction))
    for k, item in enumerate(spec.bars):
        add_thing(("environment", "bars", k), partial(make_bar, item))
    for group in ("obstacles", "objects"):
        for k, thing in enumerate(getattr(spec, group)):
            add_thing(("environment", group, k), partial(make_solid, thing, ("environment", group, k)))
    environment = Environment(things)
    line_by_name: dict[str, int | None] = {}
    for key, name in _named_things(spec):
        line = document.line((*key, "name"))
        if name in line_by_name:
            previous_line = "" if line_by_name[name] is None else f" in line {line_by_name[name]}"
            problems.append(document.problem((*key, "name"), f"`{name}` is named{previous_line} already"))
        line_by_name.setdefault(name, line)
    return environment, problems


def _surface(
    spec: SurfaceSpec,
    friction: float | None,
    R: np.ndarray | None = None,
    p: np.ndarray | None = None,
    owner: str | None = None,
) -> Surface:
    R_S, p_S = spec.pose.R, spec.pose.p
    if R is not None and p is not None:
        R_S, p_S = R @ R_S, p + R @ p_S
    return Surface(spec.name, R_S, p_S, spec.corners, spec.thickness, _common_or_own(friction, spec.friction), owner)


def _common_or_own(common: float | None, own_friction: float) -> float:
    return own_friction if common is None else common


def _shape(spec: SolidSpec, document: Document, key: Key, problems: list[Problem]) -> "Shape | None":
    from mcplan.robot.description import Box, Capsule, Cylinder, MeshShape, Sphere

    if spec.box is not None:
        return Box(spec.box.size)
    if spec.sphere is not None:
        return Sphere(spec.sphere.radius)
    if spec.capsule is not None:
        return Capsule(spec.capsule.radius, spec.capsule.length)
    if spec.cylinder is not None:
        return Cylinder(spec.cylinder.radius, spec.cylinder.length)
    if spec.hull is not None:
        from mcplan.scene.detection.obstacles import hull_shape

        return hull_shape(np.array(spec.hull.points))
    assert spec.mesh is not None
    from mcplan.robot.mesh_file import MeshError, MeshFiles

    try:
        vertices, faces = MeshFiles(Path(document.path)).read(spec.mesh.file)
    except MeshError as reason:
        problems.append(document.problem((*key, "mesh", "file"), f"{spec.mesh.file}: {reason}"))
        return None
    return MeshShape(vertices * spec.mesh.scale, faces)


def _named_things(spec: EnvironmentSpec) -> Iterator[tuple[Key, str]]:
    for group in ("surfaces", "bars", "obstacles", "objects"):
        for k, item in enumerate(getattr(spec, group)):
            yield ("environment", group, k), item.name
            for j, surface in enumerate(getattr(item, "surfaces", ())):
                yield ("environment", group, k, "surfaces", j), surface.name


MESH_KEYS = ("mesh", "scale", "up", "pose", "find", "cell", "height")
"""Keys of ``environment`` that are removed once the mesh has been read."""

THING_GROUPS = ("surfaces", "bars", "obstacles")

MAX_SCENE_SIZE_M = 200.0
"""Extent (m) above which a scene is taken not to be in metres."""

UP_RPY = {"x": (0.0, -np.pi / 2, 0.0), "y": (np.pi / 2, 0.0, 0.0), "z": (0.0, 0.0, 0.0)}
"""Roll, pitch, yaw (rad) that rotate an axis of the file to the vertical."""


def expand_mesh(document: Document, spec: EnvironmentSpec) -> tuple[Document, list[Problem]]:
    """Return the document with the things detected in its mesh added to the listed ones, and the problems of the mesh.

    A listed thing replaces a detected one of the same name.
    """
    section = document.data.get("environment")
    if spec.mesh is None or not isinstance(section, dict):  # ``spec`` may come from a misspelt key that was corrected
        return document, []
    environment = {key: value for key, value in section.items() if key not in MESH_KEYS}
    try:
        scene = find_in_mesh(document, spec)
    except InputError as error:
        problems = [document.problem(("environment", "mesh"), p.message) for p in error.problems]
        return document.with_data({**document.data, "environment": environment}), problems
    detected_data = environment_data(scene.environment)
    listed_things = {group: _as_list(environment.get(group)) for group in (*THING_GROUPS, "objects")}
    listed_names = [item.get("name") for items in listed_things.values() for item in items if isinstance(item, dict)]
    for group in THING_GROUPS:
        environment[group] = listed_things[group] + [
            item for item in detected_data.get(group, ()) if item["name"] not in listed_names
        ]
    return document.with_data({**document.data, "environment": environment}), []


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def find_in_mesh(document: Document, spec: EnvironmentSpec) -> "DetectedScene":
    """Detect surfaces, bars and obstacles in the mesh that a document names.

    Raises
    ------
    InputError
        The file does not exist, cannot be read, or is empty.
    """
    from mcplan.robot.mesh_file import SCENE_SUFFIXES, MeshError, MeshFiles

    assert spec.mesh is not None
    try:
        path = MeshFiles(Path(document.path), suffixes=SCENE_SUFFIXES).find(spec.mesh)
    except MeshError as reason:
        raise InputError(f"{spec.mesh}: {reason}") from None
    return find_in_mesh_file(path, spec)


def find_in_mesh_file(path: Path, spec: EnvironmentSpec) -> "DetectedScene":
    """Detect surfaces, bars and obstacles in a mesh file with the pose and scale of the environment.

    Raises
    ------
    InputError
        The file cannot be read, is empty, or is not in metres.
    """
    from mcplan.scene.detection.settings import FindSettings

    stat, settings = path.stat(), spec.find or FindSettings()
    pose = tuple(map(float, (*spec.pose.p, *spec.pose.R.ravel())))
    grid = (spec.cell, spec.height)
    return _detect_cached(
        path, stat.st_mtime_ns, stat.st_size, spec.scale, spec.up, pose, grid, settings.model_dump_json()
    )


@lru_cache(maxsize=8)
def _detect_cached(
    path: Path, _modified: int, _size: int, scale: float, up: str, pose: Any, grid: tuple[float, float], settings: str
) -> "DetectedScene":
    from mcplan.robot.mesh_file import GRIDS, WORLDS, MeshError, read_mesh
    from mcplan.scene.detection.detect import detect_scene
    from mcplan.scene.detection.settings import FindSettings
    from mcplan.scene.detection.triangles import Triangles, read_height_map
    from mcplan.scene.detection.world_file import read_world

    suffix, notices = path.suffix.lower(), list[str]()
    try:
        if suffix in WORLDS:
            world = read_world(path)
            (vertices, faces), notices = world.triangles(), world.notices
        else:
            vertices, faces = read_height_map(path, *grid) if suffix in GRIDS else read_mesh(path)
    except MeshError as reason:
        raise InputError(f"{path.name}: {reason}") from None
    world_vertices = scale * vertices @ PoseSpec(rpy=UP_RPY[up]).R.T @ np.array(pose[3:]).reshape(3, 3).T + pose[:3]
    size = float(np.ptp(world_vertices, axis=0).max())
    if size > MAX_SCENE_SIZE_M:
        raise InputError(f"{path.name}: {size:.0f} m across; is it in mm? environment: {{scale: 0.001}}")
    try:
        scene = detect_scene(Triangles.of(world_vertices, faces), FindSettings.model_validate_json(settings))
    except InputError as error:
        raise InputError(f"{path.name}: {error}") from None
    return replace(scene, notices=(*notices, *scene.notices))
